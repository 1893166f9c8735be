#include <algorithm>
#include <cmath>

#include "policy/ownership_builder.hpp"

namespace homing::policy {

namespace {

constexpr double sharer_share = 0.2; // of the most active sharer's touches, to be counted as sharing
constexpr std::uint64_t border_zone_share = 4; // of the blocks beside it, at most

} // namespace

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

// The last word on blocks and cycles: one whose pages are too often another node's is a mix, or explains the
// place only where samples crowd.
void OwnershipBuilder::drop_mixes() {
    for (Draft& draft : drafts_) {
        const bool pattern = draft.pattern == Pattern::owned || draft.pattern == Pattern::cyclic;
        if (pattern && !agreement(draft).holds(options_.least_agreement))
            draft = {draft.first, draft.end, Pattern::unknown};
    }
    join_alike();
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
