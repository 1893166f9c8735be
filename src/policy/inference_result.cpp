#include <algorithm>

#include "policy/ownership_builder.hpp"

namespace homing::policy {
namespace {

// Borders of an even division are no further than this part of a block from where they should be.
constexpr std::uint64_t uneven_part = 8;

} // namespace

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
            if (is_clear(i)) result_.seen_.emplace_back(samples_.page(i), samples_.dominant(i));
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

// The first page of draft k, where the samples leave a gap: where an even division of the area has it
// (schedule(static), OpenMP 5.2 section 11.5.3), if that may be; or its middle.
std::uint64_t OwnershipBuilder::border_before(std::size_t k, bool even) const {
    const std::uint64_t low = end_page(drafts_[k - 1]), high = first_page(drafts_[k]);
    if (even && low <= even_border(k) && even_border(k) <= high) return even_border(k);
    return low + (high - low) / 2;
}

std::uint64_t OwnershipBuilder::even_border(std::size_t k) const {
    return static_cast<std::uint64_t>(static_cast<double>(result_.pages_) * static_cast<double>(k) /
                                          static_cast<double>(drafts_.size()) +
                                      0.5);
}

// Blocks whose borders may all lie where an even division has them, or near there: elements of one size are
// divided evenly, rows of about one size nearly so.
bool OwnershipBuilder::is_even() const {
    if (drafts_.empty()) return false;
    const std::uint64_t near = result_.pages_ / drafts_.size() / uneven_part;
    for (std::size_t k = 1; k < drafts_.size(); ++k)
        if (even_border(k) + near < end_page(drafts_[k - 1]) ||
            even_border(k) > first_page(drafts_[k]) + near)
            return false;
    return std::ranges::all_of(drafts_, [](const Draft& draft) { return draft.pattern == Pattern::owned; });
}

void OwnershipBuilder::emit_runs() {
    const bool even = is_even();
    result_.runs_.clear();
    for (std::size_t k = 0; k < drafts_.size(); ++k) {
        Run run;
        describe(drafts_[k], run);
        run.end = result_.pages_;
        if (k > 0) {
            run.border = {end_page(drafts_[k - 1]), first_page(drafts_[k])};
            run.first = border_before(k, even);
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

} // namespace homing::policy
