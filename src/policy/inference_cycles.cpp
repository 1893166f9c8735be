#include <algorithm>
#include <cmath>
#include <optional>

#include "policy/cycle_search.hpp"
#include "policy/ownership_builder.hpp"

namespace homing::policy {

namespace {

constexpr int most_cycles = 16;
constexpr std::size_t least_sightings = 40; // for the search of a period

} // namespace

// Where to search for periods: disordered runs, together with neighbours too short to be seen at the density
// of their samples (a dense cluster resolves the blocks of a cyclic array around it); and many short runs.
void OwnershipBuilder::find_cycles() {
    const auto pages = [&](const Draft& d) { return end_page(d) - first_page(d); };
    std::vector<Draft> found;
    if (const double period = period_of_runs(); period > 0) {
        search_cycles(0, samples_.size(), period, found);
        if (!found.empty()) replace(found);
    }
    std::vector<PageRange> stretches; // of indices of drafts
    for (std::size_t k = 0; k < drafts_.size(); ++k) {
        if (drafts_[k].pattern != Pattern::unknown) continue;
        const std::uint64_t spacing = pages(drafts_[k]) / (drafts_[k].end - drafts_[k].first) + 1;
        std::size_t first = k, end = k + 1;
        const auto unresolved = [&](const Draft& d) {
            return d.pattern == Pattern::unknown || (d.pattern == Pattern::owned && pages(d) < 8 * spacing);
        };
        while (first > 0 && unresolved(drafts_[first - 1]))
            --first;
        while (end < drafts_.size() && unresolved(drafts_[end]))
            ++end;
        // A stretch of sparse samples reaches further back than the dense ones before it.
        PageRange stretch{first, end};
        while (!stretches.empty() && stretches.back().end > stretch.first) {
            stretch.first = std::min(stretch.first, stretches.back().first);
            stretch.end = std::max(stretch.end, stretches.back().end);
            stretches.pop_back();
        }
        stretches.push_back(stretch);
        k = end - 1;
    }
    found.clear();
    for (const PageRange& stretch : stretches)
        search_cycles(drafts_[stretch.first].first, drafts_[stretch.end - 1].end, 0, found);
    if (!found.empty()) replace(found);
}

// Where many runs are resolved, the usual distance between one run of a node and its next is the period: it
// would say the same in fewer words, and for unseen pages too. 0: no usual distance.
double OwnershipBuilder::period_of_runs() const {
    constexpr double unseen = -1;
    std::vector<double> last(static_cast<std::size_t>(samples_.nodes()), unseen), distances;
    for (std::size_t k = 0; k < drafts_.size(); ++k) {
        if (drafts_[k].pattern != Pattern::owned) continue;
        const double begin =
            k > 0 ? 0.5 * static_cast<double>(end_page(drafts_[k - 1]) + first_page(drafts_[k])) : 0.0;
        double& before = last[static_cast<std::size_t>(drafts_[k].node)];
        if (k > 0 && before != unseen) distances.push_back(begin - before);
        if (k > 0) before = begin;
    }
    if (distances.size() < 6) return 0;
    const auto centre = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
    std::nth_element(distances.begin(), centre, distances.end());
    const double usual = *centre;
    const auto near = std::count_if(distances.begin(), distances.end(),
                                    [&](double d) { return std::abs(d - usual) < 0.15 * usual; });
    return 10 * static_cast<std::size_t>(near) >= 6 * distances.size() ? usual : 0;
}

void OwnershipBuilder::search_cycles(std::size_t first, std::size_t end, double hint,
                                     std::vector<Draft>& found) {
    if (end - first < least_sightings || result_.cycles_.size() >= most_cycles) return;
    std::vector<Sighting> sightings;
    sightings.reserve(end - first);
    for (std::size_t i = first; i < end; ++i)
        if (is_clear(i))
            sightings.push_back({samples_.page(i), samples_.dominant(i), -evidence_.disorder_of_owner(i)});
    if (sightings.size() < least_sightings) return;
    // Description length: the likelihood of its samples, and a penalty for each piece as for each run.
    const double penalty = change_penalty(evidence_.total_weight());
    const double match = -std::log(1 - noise_);
    const double miss = -std::log(noise_ / std::max(samples_.nodes() - 1, 1));
    const auto gain = [&](const FoundCycle& c) {
        const double by_cycle = c.matches * match + (c.samples - c.matches) * miss +
                                penalty * (static_cast<double>(c.cycle.pieces.size()) + 2);
        return description_length(c.sampled, match, miss, penalty) - by_cycle;
    };
    const auto find = [&](double period, bool beside) {
        return find_cycle(sightings, samples_.nodes(), noise_, options_.least_agreement, gain, period,
                          beside);
    };
    // Where another dimension is distributed, too, the rows stay as long from block to block.
    std::optional<FoundCycle> cycle;
    for (std::size_t k = result_.cycles_.size(); k-- > 0 && !cycle;)
        cycle = find(result_.cycles_[k].period, true);
    if (!cycle) cycle = find(hint, false);
    if (!cycle) return;
    Draft draft{samples_.find(cycle->sampled.first), samples_.find(cycle->sampled.end - 1) + 1,
                Pattern::cyclic};
    // One or two samples left over at an end are no pattern of their own.
    if (draft.first - first < 3) draft.first = first;
    if (end - draft.end < 3) draft.end = end;
    draft.cycle = static_cast<std::uint32_t>(result_.cycles_.size());
    result_.cycles_.push_back(cycle->cycle);
    found.push_back(draft);
    search_cycles(first, draft.first, hint, found);
    search_cycles(draft.end, end, hint, found);
}

// Of the clear samples in these pages, as explained by the drafts (without cycles).
double OwnershipBuilder::description_length(PageRange pages, double match, double miss,
                                            double penalty) const {
    double length = 0;
    for (const Draft& draft : drafts_) {
        if (end_page(draft) <= pages.first || first_page(draft) >= pages.end) continue;
        length += penalty;
        for (std::size_t i = draft.first; i < draft.end; ++i) {
            if (samples_.page(i) < pages.first || samples_.page(i) >= pages.end || !is_clear(i)) continue;
            if (draft.pattern == Pattern::owned)
                length += samples_.dominant(i) == draft.node ? match : miss;
            else
                length -= evidence_.disorder_of_owner(i);
        }
    }
    return length;
}

// Puts the found patterns over the drafts that they explain.
void OwnershipBuilder::replace(const std::vector<Draft>& found) {
    std::vector<Draft> sorted = found;
    std::sort(sorted.begin(), sorted.end(), [](const Draft& a, const Draft& b) { return a.first < b.first; });
    std::vector<Draft> joined;
    auto next = sorted.begin();
    for (const Draft& draft : drafts_) {
        Draft rest = draft;
        while (rest.first < rest.end) {
            while (next != sorted.end() && next->end <= rest.first)
                joined.push_back(*next++);
            if (next == sorted.end() || next->first >= rest.end) {
                joined.push_back(rest);
                break;
            }
            if (rest.first < next->first) {
                Draft left = rest;
                left.end = next->first;
                joined.push_back(left);
            }
            rest.first = std::min(next->end, rest.end);
            if (next->end > rest.end) break;
        }
    }
    joined.insert(joined.end(), next, sorted.end());
    std::sort(joined.begin(), joined.end(), [](const Draft& a, const Draft& b) { return a.first < b.first; });
    drafts_.swap(joined);
}

} // namespace homing::policy
