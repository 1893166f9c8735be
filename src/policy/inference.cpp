#include <algorithm>
#include <cmath>

#include "policy/cycle_search.hpp"
#include "policy/ownership.hpp"
#include "policy/segmentation.hpp"

namespace homing::policy {

namespace {

constexpr double clear_share = 0.6;  // of a page's touches, for the page to be counted as one node's
constexpr double sharer_share = 0.2; // of the most active sharer's touches, to be counted as sharing
constexpr int most_cycles = 16;
constexpr std::uint64_t border_zone_share = 4; // of the blocks beside it, at most
constexpr std::size_t least_sightings = 40;    // for the search of a period

bool is_clear(const Samples& samples, std::size_t i) { return samples.share(i) >= clear_share; }

} // namespace

class OwnershipBuilder {
  public:
    OwnershipBuilder(std::uint64_t pages, const Samples& samples, const InferenceOptions& options)
        : samples_(samples), options_(options), evidence_(samples, 0, samples.size(), true),
          result_(pages, samples.nodes()) {}

    Ownership build();

  private:
    // Samples [first, end) of one pattern.
    struct Draft {
        std::size_t first, end;
        Pattern pattern;
        Node node = unknown_node;
        std::uint32_t cycle = 0;
        double gain = 0; // pattern owned: by so much more likely than disorder (nats)
    };

    void segment();
    double gain_of(const Draft& draft) const;
    void justify();
    Node most_seen(const Draft& draft) const;
    void join_alike();
    void recheck_shared();
    bool shares(const Draft& draft) const;
    void close_borders();
    bool is_border_zone(const Draft& below, PageRange zone, const Draft& above) const;
    std::size_t cut_of(const Draft& below, PageRange zone, const Draft& above) const;
    void find_cycles();
    void search_cycles(std::size_t first, std::size_t end, double hint, std::vector<Draft>& found);
    double period_of_runs() const;
    double description_length(PageRange pages, double match, double miss, double penalty) const;
    void replace(const std::vector<Draft>& found);
    void resolve_stretches();
    Draft draft_of(const Segment& segment) const;
    void split_shared();
    void split_by_mix(const Draft& draft, std::vector<Draft>& into) const;
    // Samples by what they stand for, and those that a pattern explains.
    struct Agreement {
        double agreeing = 0, samples = 0;
        double share() const { return samples > 0 ? agreeing / samples : 0; }
        bool holds(double least) const { return agreeing + 1 >= least * samples; }
        Agreement& operator+=(const Agreement& other) {
            agreeing += other.agreeing;
            samples += other.samples;
            return *this;
        }
    };
    Agreement touches_of_owner(const Draft& draft, double most_touches) const;
    Agreement agreement(const Draft& draft) const;
    Node owner_in(const Draft& draft, std::size_t i) const;
    void drop_mixes();
    void emit_runs();
    void estimate_noise();
    void estimate_confidence();
    void describe(const Draft& draft, Run& run);
    void doubt();
    bool seen_shared(std::size_t first, std::size_t end) const;
    NodeSet sharers(std::size_t first, std::size_t end) const;
    std::uint64_t first_page(const Draft& d) const { return samples_.page(d.first); }
    std::uint64_t end_page(const Draft& d) const { return samples_.page(d.end - 1) + 1; }

    const Samples& samples_;
    const InferenceOptions& options_;
    const Evidence evidence_;
    Ownership result_;
    std::vector<Draft> drafts_;
    double noise_ = 0.05;
};

NodeSet OwnershipBuilder::sharers(std::size_t first, std::size_t end) const {
    std::vector<double> weight(static_cast<std::size_t>(samples_.nodes()), 0.0);
    for (std::size_t i = first; i < end; ++i) {
        const double total = samples_.touches(i);
        const auto counts = samples_.counts(i);
        for (std::size_t n = 0; n < weight.size(); ++n)
            weight[n] += counts[n] * std::min(1.0, 4 / total);
    }
    const double most = *std::max_element(weight.begin(), weight.end());
    NodeSet set = 0;
    for (std::size_t n = 0; n < weight.size(); ++n)
        if (weight[n] > 0 && weight[n] >= sharer_share * most) set |= node_bit(static_cast<Node>(n));
    return set;
}

// Pages seen once say nothing about sharing: of those seen more often, enough must show several nodes.
bool OwnershipBuilder::seen_shared(std::size_t first, std::size_t end) const {
    std::size_t often = 0, several = 0;
    for (std::size_t i = first; i < end; ++i) {
        if (samples_.seen_once(i)) continue;
        ++often;
        several += samples_.share(i) < 0.75;
    }
    return several >= std::min<std::size_t>(3, end - first) && 100 * several >= 35 * often;
}

// Runs by dynamic programming; a second time with the noise and the sharing nodes that the first one shows.
void OwnershipBuilder::segment() {
    const int nodes = samples_.nodes();
    noise_ = std::clamp(options_.noise, 0.005, 0.2);
    NodeSet sharing = all_nodes(nodes);
    std::vector<Segment> segments = segment_samples(evidence_, noise_, sharing);
    double wrong = 0, tested = 0;
    NodeSet seen_sharing = 0;
    for (const Segment& segment : segments) {
        if (segment.state == nodes) seen_sharing |= sharers(segment.first, segment.end);
        if (segment.state >= nodes) continue;
        for (std::size_t i = segment.first; i < segment.end; ++i) {
            tested += evidence_.weight(i);
            wrong += samples_.dominant(i) != segment.state ? evidence_.weight(i) : 0;
        }
    }
    // A weak prior of 40 samples at the first guess.
    const double estimate = std::clamp((wrong + 40 * noise_) / (tested + 40), 0.005, 0.15);
    if (std::abs(std::log(estimate / noise_)) > 0.3 || (seen_sharing != 0 && seen_sharing != sharing)) {
        noise_ = estimate;
        segments = segment_samples(evidence_, noise_, seen_sharing != 0 ? seen_sharing : sharing);
    }
    for (const Segment& segment : segments) {
        drafts_.push_back(draft_of(segment));
        if (drafts_.back().pattern == Pattern::owned) drafts_.back().gain = gain_of(drafts_.back());
    }
}

OwnershipBuilder::Draft OwnershipBuilder::draft_of(const Segment& segment) const {
    const int nodes = samples_.nodes();
    if (segment.state < nodes)
        return {segment.first, segment.end, Pattern::owned, static_cast<Node>(segment.state)};
    return {segment.first, segment.end, segment.state == nodes ? Pattern::shared : Pattern::unknown};
}

// Pages shared by a few of many nodes look owned or disordered as long as nobody knows which nodes share:
// with that known, the likelihoods are compared again.
void OwnershipBuilder::recheck_shared() {
    std::vector<Draft> checked;
    for (const Draft& draft : drafts_) {
        if (draft.pattern == Pattern::shared || !seen_shared(draft.first, draft.end)) {
            checked.push_back(draft);
            if (draft.pattern == Pattern::shared && !shares(draft)) checked.back().pattern = Pattern::unknown;
            continue;
        }
        std::vector<Draft> parts{draft};
        if (draft.pattern == Pattern::unknown) {
            parts.clear();
            split_by_mix(draft, parts);
        }
        const std::size_t before = checked.size();
        for (Draft& part : parts) {
            if (shares(part)) part.pattern = Pattern::shared;
            const bool goes_on = checked.size() > before && part.pattern == Pattern::unknown &&
                                 checked.back().pattern == Pattern::unknown;
            if (goes_on)
                checked.back().end = part.end;
            else
                checked.push_back(part);
        }
    }
    drafts_.swap(checked);
}

bool OwnershipBuilder::shares(const Draft& draft) const {
    if (!seen_shared(draft.first, draft.end)) return false;
    if (draft.pattern == Pattern::owned && touches_of_owner(draft, 1).holds(options_.least_agreement))
        return false;
    const NodeSet set = sharers(draft.first, draft.end);
    if (size_of(set) < 2) return false;
    const auto likelihood = [&](int state) {
        return log_likelihood(evidence_, draft.first, draft.end, state, noise_, set);
    };
    const int shared = samples_.nodes();
    const int otherwise = draft.pattern == Pattern::owned ? draft.node : shared + 1;
    return likelihood(shared) > likelihood(otherwise) + 2 * change_penalty(evidence_.total_weight());
}

double OwnershipBuilder::gain_of(const Draft& draft) const {
    const NodeSet all = all_nodes(samples_.nodes());
    return log_likelihood(evidence_, draft.first, draft.end, draft.node, noise_, all) -
           log_likelihood(evidence_, draft.first, draft.end, samples_.nodes() + 1, noise_, all);
}

// Around the border of two blocks either owner reads the other's pages, and sampled first touches mix both.
// Such a zone is no pattern of its own: it is cut in two. Nor is one inside a block where chance gathered a
// few wrong samples.
void OwnershipBuilder::close_borders() {
    std::vector<Draft> kept;
    for (std::size_t k = 0; k < drafts_.size(); ++k) {
        std::size_t above = k;
        while (above < drafts_.size() && drafts_[above].pattern != Pattern::owned)
            ++above;
        if (above == k || kept.empty() || kept.back().pattern != Pattern::owned || above == drafts_.size() ||
            !is_border_zone(kept.back(), {drafts_[k].first, drafts_[above].first}, drafts_[above])) {
            kept.push_back(drafts_[k]);
            continue;
        }
        Draft upper = drafts_[above];
        if (upper.node == kept.back().node) {
            kept.back().end = upper.end;
            kept.back().gain += upper.gain;
        } else {
            upper.first = kept.back().end = cut_of(kept.back(), {drafts_[k].first, upper.first}, upper);
            kept.push_back(upper);
        }
        k = above;
    }
    drafts_.swap(kept);
}

// The changes to and from disorder were cheap, for the sake of such zones. Disorder that is left, and blocks
// amid it, must be told from chance at the price of whole changes.
void OwnershipBuilder::justify() {
    for (Draft& draft : drafts_) {
        if (draft.pattern != Pattern::unknown) continue;
        Draft owned{draft.first, draft.end, Pattern::owned, most_seen(draft)};
        owned.gain = gain_of(owned);
        if (owned.gain > 0) draft = owned;
    }
    join_alike();
    const double penalty = change_penalty(evidence_.total_weight());
    const auto is_block = [&](std::size_t k) { return drafts_[k].pattern == Pattern::owned; };
    for (std::size_t k = 0, end; k < drafts_.size(); k = end) {
        double gain = penalty;
        for (end = k; end < drafts_.size() && is_block(end); ++end)
            gain += drafts_[end].gain - penalty;
        const int ends = (k > 0 && !is_block(k - 1)) + (end < drafts_.size() && !is_block(end));
        for (std::size_t i = k; i < end && gain < ends * penalty; ++i)
            drafts_[i] = {drafts_[i].first, drafts_[i].end, Pattern::unknown};
        end = std::max(end, k + 1);
    }
    join_alike();
}

// The node that owns most of the draft's samples.
Node OwnershipBuilder::most_seen(const Draft& draft) const {
    std::vector<double> weight(static_cast<std::size_t>(samples_.nodes()), 0.0);
    for (std::size_t i = draft.first; i < draft.end; ++i)
        weight[static_cast<std::size_t>(samples_.dominant(i))] += evidence_.weight(i);
    return static_cast<Node>(std::max_element(weight.begin(), weight.end()) - weight.begin());
}

void OwnershipBuilder::join_alike() {
    std::vector<Draft> joined;
    for (const Draft& draft : drafts_) {
        const bool blocks_or_disorder = draft.pattern == Pattern::owned || draft.pattern == Pattern::unknown;
        if (!joined.empty() && blocks_or_disorder && joined.back().pattern == draft.pattern &&
            joined.back().node == draft.node) {
            joined.back().end = draft.end;
            joined.back().gain += draft.gain;
        } else {
            joined.push_back(draft);
        }
    }
    drafts_.swap(joined);
}

// zone: indices of samples.
bool OwnershipBuilder::is_border_zone(const Draft& below, PageRange zone, const Draft& above) const {
    if (below.node == above.node) {
        const Draft draft{zone.first, zone.end, Pattern::owned, below.node};
        return -gain_of(draft) < 2 * change_penalty(evidence_.total_weight());
    }
    const std::uint64_t inside = end_page(below) - first_page(below) + end_page(above) - first_page(above);
    if (border_zone_share * (first_page(above) - end_page(below)) > inside) return false;
    std::size_t others = 0;
    for (std::size_t i = zone.first; i < zone.end; ++i)
        others += samples_.dominant(i) != below.node && samples_.dominant(i) != above.node;
    return 10 * others <= zone.size();
}

// The cut that explains most samples; of those that explain nearly as many the one next to the middle: where
// either reads as much of the other's pages, chance alone would choose.
std::size_t OwnershipBuilder::cut_of(const Draft& below, PageRange zone, const Draft& above) const {
    std::vector<int> explained(zone.size() + 1, 0);
    for (std::size_t i = zone.first; i < zone.end; ++i) {
        const Node node = samples_.dominant(i);
        explained[i - zone.first + 1] =
            explained[i - zone.first] + (node == below.node) - (node == above.node);
    }
    const double chance = std::sqrt(static_cast<double>(zone.size()));
    const double enough = *std::max_element(explained.begin(), explained.end()) - chance;
    const std::uint64_t middle = end_page(below) + (first_page(above) - end_page(below)) / 2;
    std::size_t cut = zone.first;
    std::uint64_t nearest = ~std::uint64_t{0};
    for (std::size_t i = zone.first; i <= zone.end; ++i) {
        const std::uint64_t page = samples_.page(i);
        const std::uint64_t distance = page > middle ? page - middle : middle - page;
        if (explained[i - zone.first] >= enough && distance < nearest) nearest = distance, cut = i;
    }
    return cut;
}

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
        if (is_clear(samples_, i))
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
            if (samples_.page(i) < pages.first || samples_.page(i) >= pages.end || !is_clear(samples_, i))
                continue;
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

// What neither runs nor cycles explain, looked at by itself.
void OwnershipBuilder::resolve_stretches() {
    std::vector<Draft> resolved;
    for (const Draft& draft : drafts_) {
        std::vector<Segment> segments;
        if (draft.pattern == Pattern::unknown)
            segments = segment_stretch(samples_, draft.first, draft.end, noise_);
        if (segments.empty()) resolved.push_back(draft);
        for (const Segment& segment : segments)
            resolved.push_back(draft_of(segment));
    }
    drafts_.swap(resolved);
}

// Neighbouring arrays may be shared by different nodes: shared runs are cut where the mix of nodes changes.
void OwnershipBuilder::split_shared() {
    std::vector<Draft> cut;
    for (const Draft& draft : drafts_) {
        if (draft.pattern == Pattern::shared)
            split_by_mix(draft, cut);
        else
            cut.push_back(draft);
    }
    drafts_.swap(cut);
}

// Cuts a draft where the mix of the nodes that touch its pages changes.
void OwnershipBuilder::split_by_mix(const Draft& draft, std::vector<Draft>& into) const {
    const auto width = static_cast<std::size_t>(samples_.nodes());
    const std::size_t count = draft.end - draft.first;
    std::vector<double> all(width, 0.0), left(width, 0.0), row(width, 0.0);
    const auto weigh = [&](std::size_t i) {
        const auto counts = samples_.counts(i);
        const double scale = std::min(1.0, 4.0 / samples_.touches(i));
        for (std::size_t n = 0; n < width; ++n)
            row[n] = counts[n] * scale;
    };
    const auto entropy = [&](const std::vector<double>& part, const std::vector<double>* minus) {
        double sum = 0, logs = 0;
        for (std::size_t n = 0; n < width; ++n) {
            const double c = minus ? std::max(part[n] - (*minus)[n], 0.0) : part[n];
            sum += c;
            if (c > 0) logs += c * std::log(c);
        }
        return sum > 0 ? logs - sum * std::log(sum) : 0; // log-likelihood of the part under its own mix
    };
    for (std::size_t i = draft.first; i < draft.end; ++i) {
        weigh(i);
        for (std::size_t n = 0; n < width; ++n)
            all[n] += row[n];
    }
    const double whole = entropy(all, nullptr);
    double best = 0;
    std::size_t place = draft.first;
    for (std::size_t i = draft.first; i + 1 < draft.end; ++i) {
        weigh(i);
        for (std::size_t n = 0; n < width; ++n)
            left[n] += row[n];
        const double gain = entropy(left, nullptr) + entropy(all, &left) - whole;
        if (gain > best) best = gain, place = i + 1;
    }
    const double size = std::log(static_cast<double>(std::max<std::size_t>(samples_.size(), 2)));
    const double penalty = 0.5 * static_cast<double>(width - 1) * size + size + 6;
    if (count < 8 || best <= penalty) {
        into.push_back(draft);
        return;
    }
    split_by_mix({draft.first, place, draft.pattern}, into);
    split_by_mix({place, draft.end, draft.pattern}, into);
}

void OwnershipBuilder::describe(const Draft& draft, Run& run) {
    run.pattern = draft.pattern;
    run.samples = static_cast<std::uint32_t>(draft.end - draft.first);
    run.nodes = sharers(draft.first, draft.end);
    run.agreement = agreement(draft).share();
    switch (draft.pattern) {
    case Pattern::owned:
        run.node = draft.node;
        run.nodes = node_bit(draft.node);
        break;
    case Pattern::cyclic: {
        run.cycle = draft.cycle;
        run.nodes = 0;
        const Cycle& cycle = result_.cycles_[draft.cycle];
        for (const Cycle::Piece& piece : cycle.pieces)
            run.nodes |= node_bit(piece.node);
        break;
    }
    case Pattern::shared:
        break;
    case Pattern::unknown:
        for (std::size_t i = draft.first; i < draft.end; ++i)
            if (is_clear(samples_, i)) result_.seen_.emplace_back(samples_.page(i), samples_.dominant(i));
        break;
    }
}

// A page that its owner and others touched alike agrees.
OwnershipBuilder::Agreement OwnershipBuilder::agreement(const Draft& draft) const {
    Agreement result;
    for (std::size_t i = draft.first; i < draft.end; ++i) {
        const double pages = evidence_.spread(i);
        result.samples += pages;
        if (draft.pattern == Pattern::unknown) continue;
        const Node owner = owner_in(draft, i);
        const auto counts = samples_.counts(i);
        const auto most = counts[static_cast<std::size_t>(samples_.dominant(i))];
        if (owner == unknown_node || counts[static_cast<std::size_t>(owner)] == most)
            result.agreeing += pages;
    }
    return result;
}

// Of a sample's page by the pattern; unknown_node: any.
Node OwnershipBuilder::owner_in(const Draft& draft, std::size_t i) const {
    if (draft.pattern == Pattern::owned) return draft.node;
    if (draft.pattern == Pattern::cyclic) return result_.cycles_[draft.cycle].owner(samples_.page(i));
    return unknown_node;
}

// The last word on blocks: one whose pages are too often another node's is a mix.
void OwnershipBuilder::drop_mixes() {
    for (Draft& draft : drafts_)
        if (draft.pattern == Pattern::owned && !agreement(draft).holds(options_.least_agreement))
            draft = {draft.first, draft.end, Pattern::unknown};
    join_alike();
}

void OwnershipBuilder::emit_runs() {
    result_.runs_.clear();
    for (std::size_t k = 0; k < drafts_.size(); ++k) {
        Run run;
        describe(drafts_[k], run);
        run.end = result_.pages_;
        if (k > 0) {
            // The border lies between the last sample of one run and the first of the next; its middle until
            // more is known.
            const std::uint64_t low = end_page(drafts_[k - 1]), high = first_page(drafts_[k]);
            run.border = {low, high};
            run.first = low + (high - low) / 2;
            result_.runs_.back().end = run.first;
        }
        result_.runs_.push_back(run);
    }
    estimate_noise();
    estimate_confidence();
}

// Touches that the patterns do not explain, of all touches: of a page that was seen again because it was
// doubted, the first one counts no more than the second.
void OwnershipBuilder::estimate_noise() {
    Agreement all;
    for (const Draft& draft : drafts_)
        if (draft.pattern == Pattern::owned || draft.pattern == Pattern::cyclic)
            all += touches_of_owner(draft, 4);
    result_.noise_ = all.samples > 0 ? 1 - all.share() : noise_;
}

// most_touches: that the touches of a page count for together.
OwnershipBuilder::Agreement OwnershipBuilder::touches_of_owner(const Draft& draft,
                                                               double most_touches) const {
    Agreement result;
    for (std::size_t i = draft.first; i < draft.end; ++i) {
        const double touches = samples_.touches(i);
        const double scale = evidence_.spread(i) * std::min(1.0, most_touches / touches);
        result.samples += scale * touches;
        result.agreeing += scale * samples_.counts(i)[static_cast<std::size_t>(owner_in(draft, i))];
    }
    return result;
}

// Unseen pages of a run are right as often as its samples agree: whether a contradiction is a wrong sample or
// a wrong owner is told by seeing the page again (SamplePlan). One pseudo-sample as all runs have it, unless
// nothing is left to extrapolate.
void OwnershipBuilder::estimate_confidence() {
    Agreement all{1, 2};
    for (const Draft& draft : drafts_) {
        if (draft.pattern != Pattern::owned && draft.pattern != Pattern::cyclic) continue;
        all += agreement(draft);
    }
    double right = 0;
    for (std::size_t k = 0; k < drafts_.size(); ++k) {
        const Run& run = result_.runs_[k];
        const auto pages = static_cast<double>(run.end - run.first);
        if (run.pattern == Pattern::unknown) continue;
        const Agreement one = agreement(drafts_[k]);
        const double share =
            run.samples >= pages ? one.share() : (one.agreeing + all.share()) / (one.samples + 1);
        if (run.pattern == Pattern::cyclic) right -= pages * result_.cycles_[run.cycle].border_error;
        right += pages * share - static_cast<double>(run.border.size()) / 4;
    }
    result_.right_pages_ = std::max(right, 0.0) + static_cast<double>(result_.seen_.size());
}

void OwnershipBuilder::doubt() {
    result_.doubtful_.clear();
    for (std::size_t k = 0; k < drafts_.size(); ++k) {
        const Run& run = result_.runs_[k];
        if (k > 0 && run.border.size() >= std::max<std::uint64_t>(options_.border_tolerance, 1))
            result_.doubtful_.push_back({run.border, Doubt::border});
        if (run.pattern == Pattern::cyclic &&
            result_.cycles_[run.cycle].border_error > border_error_tolerance)
            result_.doubtful_.push_back({{run.first, run.end}, Doubt::period});
        if (run.pattern != Pattern::unknown || run.samples >= run.end - run.first) continue;
        std::uint32_t once = 0;
        for (std::size_t i = drafts_[k].first; i < drafts_[k].end; ++i)
            once += samples_.seen_once(i);
        const bool mostly_once = 4 * std::uint64_t{once} > 3 * std::uint64_t{run.samples};
        result_.doubtful_.push_back(
            {{run.first, run.end}, mostly_once ? Doubt::touched_once : Doubt::disordered});
    }
}

Ownership OwnershipBuilder::build() {
    if (result_.pages_ == 0 || samples_.empty()) return result_;
    segment();
    close_borders();
    justify();
    recheck_shared();
    find_cycles();
    resolve_stretches();
    drop_mixes();
    split_shared();
    emit_runs();
    doubt();
    return result_;
}

Ownership infer_ownership(std::uint64_t pages, const Samples& samples, const InferenceOptions& options) {
    bool usable = samples.settled();
    for (std::size_t i = 0; usable && i < samples.size(); ++i)
        usable = samples.page(i) < pages && samples.touches(i) > 0;
    if (usable) return OwnershipBuilder(pages, samples, options).build();
    Samples copy(samples.nodes());
    copy.reserve(samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i)
        if (samples.page(i) < pages && samples.touches(i) > 0) copy.add(samples.page(i), samples.counts(i));
    copy.settle();
    return OwnershipBuilder(pages, copy, options).build();
}

} // namespace homing::policy
