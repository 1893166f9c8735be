#include "policy/sample_plan.hpp"

#include "base/random.hpp"

#include <algorithm>
#include <bit>

namespace homing::policy {

namespace {

void sort_distinct(std::vector<std::uint64_t>& pages) {
    std::sort(pages.begin(), pages.end());
    pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
}

// The i-th of n equal parts of a range; exact for any size.
std::uint64_t part(std::uint64_t size, std::uint64_t i, std::uint64_t n) {
    return size / n * i + size % n * i / n;
}

std::uint64_t length(const Run& run) { return run.end - run.first; }

// The node that two thirds of the samples [first, end) say, or unknown_node.
Node main_owner(const Samples& seen, std::size_t first, std::size_t end) {
    std::vector<std::size_t> pages(static_cast<std::size_t>(seen.nodes()), 0);
    for (std::size_t i = first; i < end; ++i)
        ++pages[static_cast<std::size_t>(seen.dominant(i))];
    const auto most = std::max_element(pages.begin(), pages.end());
    return 3 * *most >= 2 * (end - first) ? static_cast<Node>(most - pages.begin()) : unknown_node;
}

} // namespace

SamplePlan::SamplePlan(std::uint64_t pages, std::uint64_t seed)
    : there_(PageSet::whole(pages)), state_(seed) {}

void SamplePlan::to_pages(std::vector<std::uint64_t>& numbers) const {
    if (there_.ranges() == 1 && there_.span().first == 0) return; // they are the same
    for (std::uint64_t& number : numbers)
        number = there_.at(number);
}

std::uint64_t SamplePlan::random() { return mixed(state_ += splitmix_step); }

void SamplePlan::stratified(PageRange range, std::size_t count, std::vector<std::uint64_t>& out) {
    if (range.size() <= count) {
        for (std::uint64_t page = range.first; page < range.end; ++page)
            out.push_back(page);
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t low = part(range.size(), i, count), high = part(range.size(), i + 1, count);
        out.push_back(range.first + low + random() % (high - low));
    }
}

// As many pages in every octave of distance from the centre, so that patterns of any length show; out to
// where the stratified samples (spacing pages apart) take over.
void SamplePlan::cluster(PageRange range, std::uint64_t centre, std::uint64_t reach, std::size_t count,
                         std::vector<std::uint64_t>& out) {
    reach = std::max<std::uint64_t>(std::min(reach, range.size()), 1);
    const std::size_t dense = std::min<std::size_t>(count / 8 + 8, count);
    const auto add = [&](std::uint64_t distance, bool up) {
        // Mirrored at the ends of the range.
        if (up ? centre + distance < range.end : distance <= centre - range.first)
            out.push_back(up ? centre + distance : centre - distance);
        else if (!up && centre + distance < range.end)
            out.push_back(centre + distance);
        else if (up && distance <= centre - range.first)
            out.push_back(centre - distance);
    };
    for (std::size_t i = 0; i < dense; ++i)
        add((i + 1) / 2, i % 2 != 0);
    const auto inner = static_cast<std::uint64_t>(dense / 2 + 1);
    if (reach <= inner || count <= dense) return;
    const std::size_t rest = count - dense;
    const int octaves = std::max(1, static_cast<int>(std::bit_width(reach / inner)));
    for (std::size_t i = 0; i < rest; ++i) {
        const auto octave = static_cast<int>(i * static_cast<std::size_t>(octaves) / rest);
        const std::uint64_t low = inner << octave;
        add(low + random() % low, (i & 1) != 0);
    }
}

std::vector<std::uint64_t> SamplePlan::first(std::size_t most) {
    std::vector<std::uint64_t> out;
    const std::uint64_t pages = there_.size();
    if (pages == 0 || most == 0) return out;
    out.reserve(most);
    const PageRange whole{0, pages};
    if (pages <= most || most < 64) {
        stratified(whole, most, out);
        to_pages(out);
        return out;
    }
    const std::size_t spread = most - most / 3;
    stratified(whole, spread, out);
    centre_ = random() % pages;
    ++clusters_;
    cluster(whole, centre_, pages / spread * cluster_reach, most - spread, out);
    sort_distinct(out);
    to_pages(out);
    return out;
}

// Divides the budget by what each kind of doubt needs: borders by the logarithm of their gaps (that is what
// pinning them down takes), disorder and imprecise periods by their pages.
std::vector<std::uint64_t> SamplePlan::next(const Ownership& ownership, const Samples& seen,
                                            const Samples& telling, std::size_t most) {
    std::vector<std::uint64_t> out, again;
    if (most == 0) return out;
    out.reserve(most + 16);
    second_looks(ownership, telling, most / 2, again);
    looks_at_islets(ownership, seen, most / 2, again);
    most -= again.size();
    const bool searching = clusters_ < patience;
    std::uint64_t border_bits = 0, wide_pages = 0;
    for (const DoubtfulRange& doubt : ownership.doubtful()) {
        const std::uint64_t pages = there_.count(doubt.pages);
        if (doubt.doubt == Doubt::border)
            border_bits += static_cast<std::uint64_t>(std::bit_width(pages));
        else if (doubt.doubt == Doubt::period || searching)
            wide_pages += pages;
    }
    const std::size_t for_borders = border_bits == 0 ? 0 : wide_pages == 0 ? most : most / 2;
    const std::size_t for_wide = most - for_borders;
    bool clustered = false;
    for (const DoubtfulRange& doubt : ownership.doubtful()) {
        const PageRange range = numbers(doubt.pages);
        const std::uint64_t pages = range.size();
        if (pages == 0) continue; // a hole
        if (doubt.doubt == Doubt::border) {
            if (out.size() >= most) continue;
            const auto bits = static_cast<std::uint64_t>(std::bit_width(pages));
            const std::uint64_t count =
                std::min(std::max<std::uint64_t>(for_borders * bits / border_bits, 1), pages);
            // The middles of count + 1 parts, so that the longest gap left is the shortest possible.
            for (std::uint64_t i = 0; i < count; ++i)
                out.push_back(range.first + std::min(part(pages, i + 1, count + 1), pages - 1));
            continue;
        }
        if (doubt.doubt != Doubt::period && !searching) continue;
        const auto share = std::max<std::size_t>(
            static_cast<std::size_t>(static_cast<double>(for_wide) * static_cast<double>(pages) /
                                     static_cast<double>(wide_pages)),
            8);
        if (doubt.doubt == Doubt::period) {
            // Evenly: all periods fold onto each other. Samples near the borders only would tell more about
            // these, but leave it open whether the cycle holds at all.
            stratified(range, share, out);
            continue;
        }
        clustered = true;
        if (doubt.doubt == Doubt::unseen) {
            stratified(range, share, out);
            continue;
        }
        // A cluster (at the old centre and at a new one by turns), an even spread, and, where pages were
        // touched once only, the same pages again: shared ones will show another node.
        const bool repeat = doubt.doubt == Doubt::touched_once;
        const std::size_t portion = share / (repeat ? 3 : 2);
        const bool inside = centre_ >= range.first && centre_ < range.end;
        if (!inside || clusters_ % 2 == 0) centre_ = range.first + random() % pages;
        cluster(range, centre_, pages / share * cluster_reach, portion, out);
        stratified(range, portion, out);
        if (repeat) repeat_pages(doubt.pages, seen, portion, out);
    }
    if (clustered) ++clusters_;
    sort_distinct(out);
    // Rounding up of small shares may have gone over the budget: thin out evenly.
    if (out.size() > most) {
        std::vector<std::uint64_t> thinned(most);
        for (std::size_t i = 0; i < most; ++i)
            thinned[i] = out[i * out.size() / most];
        out.swap(thinned);
    }
    to_pages(out);
    out.insert(out.end(), again.begin(), again.end());
    sort_distinct(out);
    return out;
}

SamplePlan::Doubted& SamplePlan::doubt_of(const Samples& seen, std::size_t i) {
    return doubted_.try_emplace(seen.page(i), Doubted{seen.touches(i), 0}).first->second;
}

void SamplePlan::second_looks(const Ownership& ownership, const Samples& seen, std::size_t most,
                              std::vector<std::uint64_t>& out) {
    const auto wants = [&](std::size_t i) {
        if (!there_.contains(seen.page(i))) return false;
        const auto doubted = doubted_.find(seen.page(i));
        if (doubted == doubted_.end()) return true;
        // Twice the same other node is an answer; two different ones are none.
        const bool answered = seen.touches(i) > doubted->second.touches && seen.share(i) >= 1;
        return !answered && doubted->second.rounds < hopeless;
    };
    std::vector<std::size_t> found; // contradictions, each followed by a sample that agrees
    auto run = ownership.runs().begin();
    bool agrees_next = false;
    for (std::size_t i = 0; i < seen.size(); ++i) {
        while (run != ownership.runs().end() && run->end <= seen.page(i))
            ++run;
        if (run == ownership.runs().end()) break;
        if (run->pattern != Pattern::owned && run->pattern != Pattern::cyclic) continue;
        const Node owner = ownership.owner(seen.page(i));
        if (owner < 0 || owner >= seen.nodes()) continue;
        const bool contradicts = seen.counts(i)[static_cast<std::size_t>(owner)] == 0;
        if (contradicts == agrees_next || !wants(i)) continue;
        if (!contradicts && seen.dominant(i) != owner) continue;
        found.push_back(i);
        agrees_next = contradicts;
    }
    const std::size_t pairs = (found.size() + 1) / 2, chosen = std::min(pairs, most / 2);
    for (std::size_t k = 0; k < chosen; ++k)
        for (std::size_t at = 2 * (k * pairs / chosen), end = std::min(at + 2, found.size()); at < end;
             ++at) {
            const std::size_t i = found[at];
            ++doubt_of(seen, i).rounds;
            out.push_back(seen.page(i));
        }
}

// Where no page is left unseen, nothing but another look tells wrong samples that chance gathered from other
// owners: of a few pages between longer blocks, and of those that deny a stretch without a pattern the one
// owner that most of it has.
void SamplePlan::looks_at_islets(const Ownership& ownership, const Samples& seen, std::size_t most,
                                 std::vector<std::uint64_t>& out) {
    const std::vector<Run>& runs = ownership.runs();
    const auto block = [&](std::size_t k) { return runs[k].pattern == Pattern::owned ? length(runs[k]) : 0; };
    std::size_t first = 0, end = 0; // of the run's samples
    for (std::size_t k = 0; k < runs.size() && out.size() < most; ++k, first = end) {
        while (end < seen.size() && seen.page(end) < runs[k].end)
            ++end;
        const bool owned = runs[k].pattern == Pattern::owned;
        if ((!owned && runs[k].pattern != Pattern::unknown) || end - first < length(runs[k])) continue;
        const std::uint64_t beside = (k > 0 ? block(k - 1) : 0) + (k + 1 < runs.size() ? block(k + 1) : 0);
        const bool islet = (owned ? 4 : 2) * length(runs[k]) <= beside;
        const Node main = islet ? unknown_node : main_owner(seen, first, end);
        if (!islet && (owned || main == unknown_node)) continue;
        for (std::size_t i = first; i < end && out.size() < most; ++i) {
            if (main != unknown_node && seen.counts(i)[static_cast<std::size_t>(main)] != 0) continue;
            if (!there_.contains(seen.page(i))) continue;
            Doubted& doubted = doubt_of(seen, i);
            if (doubted.rounds >= islet_looks) continue;
            ++doubted.rounds;
            out.push_back(seen.page(i));
        }
    }
}

void SamplePlan::repeat_pages(PageRange range, const Samples& seen, std::size_t count,
                              std::vector<std::uint64_t>& out) {
    std::vector<std::uint64_t> pages;
    for (std::size_t i = 0; i < seen.size(); ++i)
        if (seen.page(i) >= range.first && seen.page(i) < range.end && there_.contains(seen.page(i)))
            pages.push_back(there_.below(seen.page(i)));
    const std::size_t kept = std::min(count, pages.size());
    for (std::size_t i = 0; i < kept; ++i)
        out.push_back(pages[i * pages.size() / kept]);
}

std::vector<std::uint64_t> SamplePlan::check(std::size_t most) { return within(there_.span(), most); }

std::vector<std::uint64_t> SamplePlan::within(PageRange pages, std::size_t most) {
    std::vector<std::uint64_t> out;
    const PageRange range = numbers(pages);
    if (range.first < range.end) stratified(range, most, out);
    to_pages(out);
    return out;
}

std::vector<std::uint64_t> SamplePlan::gaps(const Ownership& ownership, const Samples& seen,
                                            std::size_t most) {
    struct Gap {
        double weight;
        PageRange pages;
    };
    constexpr double contradicted = 4; // so many times as wide as it is, beside a contradiction
    constexpr std::size_t most_tried = 4096;
    if (tried_.size() > most_tried) tried_.clear();
    wide_gap_ = false;
    std::vector<Gap> found; // pages by their numbers
    std::size_t at = 0;     // the first sample that is not before the run
    for (const Run& run : ownership.runs()) {
        const auto contradicts = [&](std::size_t i) {
            return i < seen.size() && seen.page(i) < run.end && run.pattern == Pattern::owned &&
                   seen.dominant(i) != run.node;
        };
        const std::uint64_t run_pages = there_.count({run.first, run.end});
        PageRange gap{run.first, run.first};
        bool before = false;
        for (;; ++at) {
            const bool last = at == seen.size() || seen.page(at) >= run.end;
            gap.end = last ? run.end : seen.page(at);
            const bool after = contradicts(at);
            const PageRange there = numbers(gap);
            const double width =
                there.size() == 0 ? 0 : static_cast<double>(there.size()) / static_cast<double>(run_pages);
            const bool doubtful = before || after;
            if (width > 0 && (doubtful || width * resolution > 1)) {
                const auto tried = tried_.find(there.first);
                if (tried == tried_.end() || tried->second.end != there.end ||
                    tried->second.rounds < hopeless) {
                    found.push_back({width * (doubtful ? contradicted : 1), there});
                    wide_gap_ |= width * unseen_share > 1;
                }
            }
            if (last) break;
            gap.first = seen.page(at) + 1;
            before = after;
        }
    }
    const auto wanted = static_cast<std::ptrdiff_t>(std::min(most, found.size()));
    std::partial_sort(found.begin(), found.begin() + wanted, found.end(), [](const Gap& a, const Gap& b) {
        return a.weight != b.weight ? a.weight > b.weight : a.pages.first < b.pages.first;
    });
    std::vector<std::uint64_t> out;
    for (auto it = found.begin(); it != found.begin() + wanted; ++it) {
        out.push_back(it->pages.first + random() % it->pages.size());
        Tried& tried = tried_[it->pages.first];
        tried = tried.end == it->pages.end ? Tried{tried.end, tried.rounds + 1} : Tried{it->pages.end, 1};
    }
    std::sort(out.begin(), out.end());
    to_pages(out);
    return out;
}

} // namespace homing::policy
