#include "policy/ownership.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace homing::policy {

const char* name(OwnershipKind kind) {
    switch (kind) {
    case OwnershipKind::none:
        return "none";
    case OwnershipKind::block:
        return "block";
    case OwnershipKind::cyclic:
        return "cyclic";
    case OwnershipKind::shared:
        return "shared";
    case OwnershipKind::mixed:
        return "mixed";
    }
    return "?";
}

// ------------------------------------------------------------------------------------------------- Ownership

Ownership::Ownership(std::uint64_t pages, int nodes) : pages_(pages), nodes_(nodes) {
    if (pages > 0) {
        Run run;
        run.end = pages;
        runs_.push_back(run);
        doubtful_.push_back({{0, pages}, Doubt::unseen});
    }
}

const Run* Ownership::run_of(std::uint64_t page) const {
    const auto after = std::upper_bound(runs_.begin(), runs_.end(), page,
                                        [](std::uint64_t p, const Run& run) { return p < run.first; });
    if (after == runs_.begin()) return nullptr;
    const Run& run = *std::prev(after);
    return page < run.end ? &run : nullptr;
}

std::pair<Node, std::uint64_t> Ownership::owner_until(std::uint64_t page, std::uint64_t limit) const {
    const Run* run = run_of(page);
    if (!run) return {unknown_node, std::max(limit, page + 1)};
    const std::uint64_t end = std::max(std::min(limit, run->end), page + 1);
    switch (run->pattern) {
    case Pattern::owned:
        return {run->node, end};
    case Pattern::shared:
        return {nth_node(run->nodes, page), size_of(run->nodes) > 1 ? page + 1 : end};
    case Pattern::cyclic: {
        const Cycle& cycle = cycles_[run->cycle];
        return {cycle.owner(page), std::min(end, cycle.stretch_end(page))};
    }
    case Pattern::unknown:
        break;
    }
    const auto seen = std::lower_bound(seen_.begin(), seen_.end(), std::pair{page, Node{-1}});
    if (seen == seen_.end()) return {unknown_node, end};
    if (seen->first != page) return {unknown_node, std::min(end, seen->first)};
    return {seen->second, page + 1};
}

Node Ownership::owner(std::uint64_t page) const { return owner_until(page, page + 1).first; }

double Ownership::confidence() const {
    return pages_ ? std::clamp(right_pages_ / static_cast<double>(pages_), 0.0, 1.0) : 0;
}

OwnershipKind Ownership::kind() const {
    std::uint64_t share[4] = {0, 0, 0, 0};
    for (const Run& run : runs_)
        share[static_cast<int>(run.pattern)] += run.end - run.first;
    // Scraps at the edges of a pattern do not make an area mixed.
    const std::uint64_t nearly_all = pages_ - pages_ / 50;
    if (share[static_cast<int>(Pattern::owned)] >= nearly_all) return OwnershipKind::block;
    if (share[static_cast<int>(Pattern::cyclic)] >= nearly_all && cycles_.size() == 1)
        return OwnershipKind::cyclic;
    if (share[static_cast<int>(Pattern::shared)] >= nearly_all) return OwnershipKind::shared;
    if (share[static_cast<int>(Pattern::unknown)] >= nearly_all) return OwnershipKind::none;
    return OwnershipKind::mixed;
}

// ---------------------------------------------------------------------------------------------------- change

// Chernoff's bound on the tail of a binomial distribution: P(X >= k) <= exp(-n KL(k/n || p)).
bool significant_share(double k, double n, double p) {
    const double q = k / n;
    if (n < 1 || q <= p) return false;
    const double divergence = q * std::log(q / p) + (q < 1 ? (1 - q) * std::log((1 - q) / (1 - p)) : 0);
    return n * divergence > std::log(1000.0);
}

namespace {

constexpr double shared_but_clear = 0.15; // of the pages of a shared run look like one node's by chance

enum class Verdict : std::uint8_t { untested, agrees, contradicts };

// Near the ends of its run a page is as likely read by a neighbour (a halo) as by its owner, and whoever
// comes first in a window says nothing. A write does; so do several touches.
constexpr std::uint64_t halo_share = 8;   // of a run, at each end
constexpr std::uint16_t sure_touches = 8; // weigh more than what chance adds to a page

std::uint64_t halo_reach(const Run& run) { return (run.end - run.first) / halo_share; }

bool near_end(std::uint64_t page, const Run& run) {
    return run.pattern == Pattern::owned && run.end - page <= halo_reach(run);
}

bool in_halo(std::uint64_t page, const Run& run) {
    return (run.pattern == Pattern::owned && page - run.first < halo_reach(run)) || near_end(page, run);
}

// Next to a border whose place is not yet known the belief is a guess, and no sample contradicts it.
bool in_doubt(const Ownership& believed, std::uint64_t page, std::span<const Run> from) {
    const auto inside = [&](const PageRange& gap) { return page >= gap.first && page < gap.end; };
    if (inside(from[0].border) || (from.size() > 1 && inside(from[1].border))) return true;
    if (from[0].pattern != Pattern::cyclic) return false;
    const Cycle& cycle = believed.cycles()[from[0].cycle];
    const double gap = 4 * cycle.border_error * cycle.period / static_cast<double>(cycle.pieces.size());
    const auto reach = static_cast<std::uint64_t>(gap);
    const Node node = cycle.owner(page);
    return cycle.stretch_end(page) <= page + reach || (page >= reach && cycle.owner(page - reach) != node);
}

using RunIterator = std::vector<Run>::const_iterator;

// Visits each sample (by index) with the believed run that it lies in; samples beyond the area are left out.
template <class Visit>
void for_each_in_runs(const Ownership& believed, const Samples& samples, Visit&& visit) {
    RunIterator run = believed.runs().begin();
    for (std::size_t i = 0; i < samples.size(); ++i) {
        while (run != believed.runs().end() && run->end <= samples.page(i))
            ++run;
        if (run == believed.runs().end()) return;
        visit(i, run);
    }
}

Verdict judge(const Ownership& believed, const Samples& fresh, std::size_t i, RunIterator at) {
    const std::span<const Run> from{at, believed.runs().end()};
    const Run& run = from[0];
    const std::uint32_t total = fresh.touches(i);
    if (total == 0 || in_doubt(believed, fresh.page(i), from)) return Verdict::untested;
    const auto counts = fresh.counts(i);
    if (run.pattern == Pattern::shared) {
        std::uint32_t inside = 0;
        for (std::size_t n = 0; n < counts.size(); ++n)
            if (contains(run.nodes, static_cast<Node>(n))) inside += counts[n];
        const bool alone = total >= 3 && fresh.share(i) >= 0.8;
        return 2 * inside < total || alone ? Verdict::contradicts : Verdict::agrees;
    }
    const Node owner = believed.owner(fresh.page(i));
    if (owner == unknown_node || owner >= fresh.nodes()) return Verdict::untested;
    const Node dominant = fresh.dominant(i);
    if (in_halo(fresh.page(i), run) && counts[static_cast<std::size_t>(dominant)] < touches_of_write)
        return Verdict::untested;
    if (dominant == owner ||
        counts[static_cast<std::size_t>(owner)] == counts[static_cast<std::size_t>(dominant)])
        return Verdict::agrees;
    return Verdict::contradicts;
}

// The border of its run that a contradicting sample says has passed it: the run beyond is its toucher's.
std::optional<std::uint64_t> passed_border(const Ownership& believed, const Samples& fresh, std::size_t i,
                                           RunIterator run) {
    if (run->pattern != Pattern::owned) return std::nullopt;
    const Node node = fresh.dominant(i);
    const std::uint64_t page = fresh.page(i);
    // The nearer border. At the ends of the area a block may come in that was not there before: one node's,
    // up to the end. Several nodes' are an array of their own that nobody looked at so far.
    const auto comes_in = [&](std::size_t first, std::size_t end) {
        for (std::size_t k = first; k < end; ++k)
            if (fresh.dominant(k) != node) return false;
        return true;
    };
    if (page - run->first < run->end - page) {
        const bool passed = run == believed.runs().begin()
                                ? comes_in(0, i)
                                : (run - 1)->pattern == Pattern::owned && (run - 1)->node == node;
        return passed ? std::optional(run->first) : std::nullopt;
    }
    const bool passed = run + 1 == believed.runs().end()
                            ? comes_in(i + 1, fresh.size())
                            : (run + 1)->pattern == Pattern::owned && (run + 1)->node == node;
    return passed ? std::optional(run->end) : std::nullopt;
}

} // namespace

Contradiction changed(const Ownership& believed, const Samples& fresh) {
    Contradiction result;
    double shared_tested = 0, shared_contradicted = 0;
    double border_tested = 0, border_contradicted = 0;
    for_each_in_runs(believed, fresh, [&](std::size_t i, RunIterator run) {
        const Verdict verdict = judge(believed, fresh, i, run);
        if (verdict == Verdict::untested) return;
        ++result.tested;
        result.contradicted += verdict == Verdict::contradicts;
        if (run->pattern == Pattern::shared) {
            ++shared_tested;
            shared_contradicted += verdict == Verdict::contradicts;
        } else if (in_halo(fresh.page(i), *run)) {
            ++border_tested;
            border_contradicted += verdict == Verdict::contradicts;
        }
        if (verdict == Verdict::contradicts)
            result.drifted += passed_border(believed, fresh, i, run).has_value();
    });
    if (result.tested == 0) return result;
    result.fraction = static_cast<double>(result.contradicted) / result.tested;
    // The noise was itself estimated, so a little is allowed on top.
    const double expected = std::clamp(1.25 * believed.noise() + 0.01, 0.02, 0.4);
    result.significant =
        significant_share(result.contradicted - shared_contradicted, result.tested - shared_tested,
                          expected) ||
        significant_share(border_contradicted, border_tested, expected) ||
        significant_share(shared_contradicted, shared_tested, std::max(shared_but_clear, expected));
    return result;
}

Samples where_known(const Ownership& believed, const Samples& known, const Samples& fresh) {
    Samples kept(fresh.nodes());
    kept.reserve(fresh.size());
    std::size_t next = 0; // the first known sample that is not before the page
    for_each_in_runs(believed, fresh, [&](std::size_t i, RunIterator run) {
        const std::uint64_t page = fresh.page(i);
        while (next < known.size() && known.page(next) < page)
            ++next;
        const std::uint64_t before = next > 0 ? std::max(known.page(next - 1) + 1, run->first) : run->first;
        const std::uint64_t after = next < known.size() ? std::min(known.page(next), run->end) : run->end;
        if (after <= before || (after - before) * unseen_share <= run->end - run->first)
            kept.add(page, fresh.counts(i));
    });
    kept.settle();
    return kept;
}

Samples without_halo_reads(const Ownership& believed, const Samples& samples, const Samples& writes) {
    Samples kept(samples.nodes());
    kept.reserve(samples.size());
    for_each_in_runs(believed, samples, [&](std::size_t i, RunIterator run) {
        const std::uint64_t page = samples.page(i);
        // The ends of the area are no borders.
        const bool lower_half = page - run->first < run->end - page;
        const bool at_end = lower_half ? run == believed.runs().begin() : run + 1 == believed.runs().end();
        if (at_end || !in_halo(page, *run))
            kept.add(page, samples.counts(i));
        else if (const std::size_t written = writes.find(page); written < writes.size())
            kept.add(page, writes.counts(written));
    });
    kept.settle();
    return kept;
}

Samples with_borders_of(const Ownership& sibling, const Ownership& believed, const Samples& samples) {
    struct Border {
        PageRange halo; // the upper owner's samples here say nothing
        PageRange gap;  // where the sibling's border is
        Node lower, upper;
    };
    const auto owned = [](const Run& run) { return run.pattern == Pattern::owned; };
    std::vector<Border> borders;
    const auto& runs = believed.runs();
    const auto& others = sibling.runs();
    std::size_t other = 1;
    for (std::size_t r = 1; r < runs.size(); ++r) {
        if (!owned(runs[r - 1]) || !owned(runs[r])) continue;
        while (other < others.size() && others[other].first < runs[r].border.first)
            ++other;
        if (other == others.size()) break;
        const Run& below = others[other - 1];
        const Run& above = others[other];
        if (!owned(below) || !owned(above) || below.node != runs[r - 1].node || above.node != runs[r].node)
            continue;
        // A page more or less is how the arrays lie in their pages.
        if (above.first <= runs[r].first + 1 && above.first + 1 >= runs[r].first &&
            runs[r].border.size() <= 2)
            continue;
        if (above.first > runs[r].first + halo_reach(runs[r])) continue;
        const PageRange gap = above.border.size() > 0 ? above.border : PageRange{above.first, above.first};
        if (gap.first == 0 || gap.end >= believed.pages()) continue;
        borders.push_back({{runs[r].border.first, gap.first}, gap, below.node, above.node});
    }
    Samples kept(samples.nodes());
    kept.reserve(samples.size() + 2 * borders.size());
    std::size_t at = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const std::uint64_t page = samples.page(i);
        while (at < borders.size() && borders[at].halo.end <= page)
            ++at;
        const bool halo =
            at < borders.size() && page >= borders[at].halo.first && samples.dominant(i) == borders[at].upper;
        if (!halo) kept.add(page, samples.counts(i));
    }
    for (const Border& border : borders) {
        kept.add(border.gap.first - 1, border.lower, sure_touches);
        kept.add(border.gap.end, border.upper, sure_touches);
    }
    kept.settle();
    return kept;
}

Samples without_upper_reads(const Ownership& believed, const Samples& samples) {
    Samples kept(samples.nodes());
    kept.reserve(samples.size());
    for_each_in_runs(believed, samples, [&](std::size_t i, RunIterator run) {
        const bool by_next = run + 1 != believed.runs().end() && (run + 1)->pattern == Pattern::owned &&
                             samples.dominant(i) == (run + 1)->node;
        if (!by_next || !near_end(samples.page(i), *run)) kept.add(samples.page(i), samples.counts(i));
    });
    kept.settle();
    return kept;
}

Samples scaled(const Samples& samples, std::uint64_t pages, std::uint64_t other) {
    Samples result(samples.nodes());
    result.reserve(samples.size());
    const double ratio = static_cast<double>(other) / static_cast<double>(std::max<std::uint64_t>(pages, 1));
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const auto page = static_cast<std::uint64_t>((static_cast<double>(samples.page(i)) + 0.5) * ratio);
        if (page < other) result.add(page, samples.counts(i));
    }
    result.settle();
    return result;
}

bool alike(const Ownership& believed, const Samples& samples) {
    constexpr std::size_t enough = 20;
    constexpr std::size_t enough_at_borders = 4;
    if (samples.size() < enough || believed.nodes() != samples.nodes()) return false;
    std::size_t tested = 0, agreeing = 0, tested_at_borders = 0, agreeing_at_borders = 0;
    for_each_in_runs(believed, samples, [&](std::size_t i, RunIterator run) {
        if (run->pattern != Pattern::owned) return;
        const bool agrees = samples.dominant(i) == run->node;
        const bool at_border = in_halo(samples.page(i), *run);
        ++(at_border ? tested_at_borders : tested);
        (at_border ? agreeing_at_borders : agreeing) += agrees;
    });
    return tested + tested_at_borders >= enough && 10 * agreeing >= 9 * tested &&
           (tested_at_borders < enough_at_borders || 4 * agreeing_at_borders >= 3 * tested_at_borders);
}

Samples followed(const Ownership& believed, const Samples& old, const Samples& fresh) {
    if (fresh.nodes() != old.nodes()) return fresh;
    // Pages whose old samples go, and the node that they do not contradict.
    struct Passed {
        PageRange pages;
        Node node;
    };
    std::vector<Passed> passed;
    for_each_in_runs(believed, fresh, [&](std::size_t i, RunIterator run) {
        if (judge(believed, fresh, i, run) != Verdict::contradicts) return;
        const auto border = passed_border(believed, fresh, i, run);
        if (!border) return;
        const std::uint64_t page = fresh.page(i);
        const bool up = page >= *border;
        const std::uint64_t distance = up ? page - *border : *border - page;
        passed.push_back(
            {up ? PageRange{*border, std::min(page + distance + 1, run->end)}
                : PageRange{page > run->first + distance ? page - distance : run->first, *border},
             fresh.dominant(i)});
    });
    Samples kept(old.nodes());
    kept.reserve(old.size());
    for (std::size_t i = 0; i < old.size(); ++i) {
        const auto contradicts = [&, page = old.page(i), node = old.dominant(i)](const Passed& one) {
            return page >= one.pages.first && page < one.pages.end && node != one.node;
        };
        if (std::none_of(passed.begin(), passed.end(), contradicts)) kept.add(old.page(i), old.counts(i));
    }
    kept.settle();
    kept.replace_by(fresh);
    return kept;
}

Samples refreshed(const Ownership& believed, const Samples& old, const Samples& fresh) {
    if (fresh.nodes() != old.nodes()) return fresh;
    Samples kept = old;
    const std::uint64_t none = believed.pages();
    const std::uint64_t reach = 2 * none / std::max<std::size_t>(fresh.size(), 1) + 1;
    std::uint64_t agreeing = none, first = none,
                  last = none; // pages: last agreement, contradictions since then
    const auto drop = [&](std::uint64_t next) {
        if (first == none) return;
        // Between the agreeing neighbours, but not far beyond the usual distance of fresh samples.
        const std::uint64_t low = agreeing == none ? 0 : agreeing + 1;
        kept.forget({std::max(low, first - std::min(first, reach)), std::min(next, last + reach + 1)});
        first = none;
    };
    for_each_in_runs(believed, fresh, [&](std::size_t i, RunIterator run) {
        const std::uint64_t page = fresh.page(i);
        const Verdict verdict = judge(believed, fresh, i, run);
        if (verdict == Verdict::contradicts) {
            if (first == none) first = page;
            last = page;
        } else if (verdict == Verdict::agrees) {
            drop(page);
            agreeing = page;
        }
    });
    drop(none);
    kept.replace_by(fresh);
    return kept;
}

} // namespace homing::policy
