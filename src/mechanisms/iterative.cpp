// The iterative mechanism (Nikolopoulos et al. 2000, section 2.1): at the end of an outer iteration the
// reference counters tell where each page belongs; pages that satisfy the competitive criterion move; pages
// that bounce are frozen; the mechanism rests when placement is stable. Beyond the paper: counters are a
// sample, from which the owners of all pages are inferred (policy/ownership), and a guard keeps a run from
// paying more for moves than they can bring.
#include "mechanisms/engine.hpp"
#include "mechanisms/learner.hpp"

#include "base/options.hpp"
#include "policy/competitive.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <linux/mempolicy.h>

namespace homing {
namespace {

/// A placement is even when no node holds more than so many times its share: then shared pages stay where
/// they are.
constexpr double uneven = 1.5;
/// One pause for moving at the end of an iteration: this share of the iteration, or this much if that is
/// more.
constexpr double pause_share = 0.5;
constexpr double least_pause = 1.0;
constexpr double most_pause = 2.0;
/// Instead of enough_samples, where remote accesses have cost much more than the move. (A small area needs no
/// more than it has pages.)
constexpr std::size_t urgent_samples = 20;
/// Sampled first touches cannot tell the last planes of a block from a neighbour's halo: where no more than
/// this is misplaced, the placement that the program made is as likely right, and stays (no harm to what is
/// at home already).
constexpr double least_share = 0.08;
constexpr std::uint64_t least_granules = 4096;
/// Rounds without anything misplaced after which borders no longer drift.
constexpr int still_enough = 8;
/// Borders are narrow enough when no more of an area than this is between their samples; rounds without
/// progress after which they are left.
constexpr std::uint64_t narrow_enough = 512;
constexpr int patient_rounds = 4;
/// Sources that sample by themselves are waited for until so much of an area was seen, or little comes new.
constexpr double enough_covered = 0.5;
constexpr double still_growing = 1.05;
/// Observed iterations without any reference before the mechanism rests.
constexpr int idle_limit = 8;

class Iterative final : public Mechanism {
  public:
    explicit Iterative(bool moves) : moves_(moves), threshold_(option_number(Option::threshold)) {}
    const char* name() const noexcept override { return moves_ ? "iterative" : "observe"; }
    void iteration_observed(Engine& engine, bool check) override;

  private:
    struct Verdict {
        // Estimates over all granules: each sample stands for the granules up to half-way to its neighbours,
        // so that borders, where samples are dense, do not weigh more than they are.
        double considered = 0; ///< granules whose owner and home are known
        double misplaced = 0;
        /// Granules of the node that serves most of them, now and after the moves.
        double busiest_now = 0;
        double busiest_then = 0;
        double squares = 0; ///< of the samples' weights: how many equal samples they are worth
        std::uint64_t references = 0;
        double remote = 0;
    };
    static bool clearly_misplaced(const Verdict& verdict, const WatchedArea& area);
    Verdict judge(Engine& engine, WatchedArea& area, const policy::Samples& fresh);
    void add_targets(Engine& engine, WatchedArea& area, std::vector<std::vector<std::uint64_t>>& lists);
    void move(Engine& engine, WatchedArea& area, double deadline);

    bool moves_;
    Learner learner_;
    double threshold_;
    int idle_ = 0;
    std::vector<std::uint64_t> pages_;
    std::vector<int> homes_;
    policy::Ownership written_;
    bool written_valid_ = false;
    std::vector<bool> even_run_; ///< by run: shared, and spread evenly already
};

/// Is a border of the area still being told more exactly? Pages on its wrong side would stay there at rest.
bool border_narrows(WatchedArea& area) {
    std::uint64_t open = 0;
    for (const policy::DoubtfulRange& doubt : area.ownership.doubtful())
        if (doubt.doubt == policy::Doubt::border) open += doubt.pages.size();
    area.border_rounds = open < area.open_border ? 0 : area.border_rounds + 1;
    area.open_border = open;
    return open > area.granules / narrow_enough && area.border_rounds < patient_rounds;
}

/// Compare where sampled pages are with where they belong.
Iterative::Verdict Iterative::judge(Engine& engine, WatchedArea& area, const policy::Samples& fresh) {
    Verdict verdict;
    pages_.clear();
    for (std::size_t i = 0; i < area.samples.size(); ++i)
        pages_.push_back(area.samples.page(i));
    engine.mover().homes(area, pages_, homes_);

    // Shared runs: is the placement even already?
    const auto& runs = area.ownership.runs();
    const auto nodes = static_cast<std::size_t>(engine.nodes().count());
    std::vector<std::vector<std::uint64_t>> held(runs.size(), std::vector<std::uint64_t>(nodes, 0));
    std::size_t run = 0;
    auto run_at = [&](std::uint64_t page) {
        while (run + 1 < runs.size() && runs[run].end <= page)
            ++run;
        return run;
    };
    for (std::size_t i = 0; i < pages_.size(); ++i)
        if (homes_[i] >= 0 && !runs.empty()) ++held[run_at(pages_[i])][static_cast<std::size_t>(homes_[i])];
    even_run_.assign(runs.size(), false);
    bool any_shared = false;
    for (std::size_t r = 0; r < runs.size(); ++r) {
        if (runs[r].pattern != policy::Pattern::shared) continue;
        any_shared = true;
        std::uint64_t sum = 0;
        std::uint64_t most = 0;
        for (const std::uint64_t count : held[r]) {
            sum += count;
            most = std::max(most, count);
        }
        const int sharers = std::max(1, policy::size_of(runs[r].nodes));
        // Small samples scatter: one page more than the share is no sign.
        even_run_[r] = static_cast<double>(most) <= uneven * static_cast<double>(sum) / sharers + 1;
    }
    // Who writes shared pages breaks the tie between those who read them.
    written_valid_ = false;
    if (any_shared && area.writes.size() >= 16) {
        written_ = policy::infer_ownership(area.granules, samples_of(area.writes));
        written_valid_ = written_.kind() == policy::OwnershipKind::block ||
                         written_.kind() == policy::OwnershipKind::cyclic;
    }

    run = 0;
    std::vector<double> now(nodes, 0);
    std::vector<double> then(nodes, 0);
    for (std::size_t i = 0; i < pages_.size(); ++i) {
        const policy::Node owner = area.ownership.owner(pages_[i]);
        if (homes_[i] < 0 || owner == policy::unknown_node || runs.empty()) continue;
        const std::uint64_t before = i > 0 ? pages_[i - 1] : 0;
        const std::uint64_t after = i + 1 < pages_.size() ? pages_[i + 1] : area.granules;
        const bool alone =
            runs[run_at(pages_[i])].pattern == policy::Pattern::unknown; // stands for itself only
        const double weight = alone ? 1 : std::max(1.0, static_cast<double>(after - before) / 2);
        verdict.considered += weight;
        verdict.squares += weight * weight;
        const std::size_t r = run_at(pages_[i]);
        const auto home = static_cast<policy::Node>(homes_[i]);
        bool misplaced = false;
        switch (runs[r].pattern) {
        case policy::Pattern::shared:
            misplaced = !even_run_[r] && home != owner;
            break;
        case policy::Pattern::unknown: {
            policy::CompetitiveOptions options;
            options.threshold = threshold_;
            misplaced = policy::competitive(pages_[i], home, area.samples.counts(i), options).has_value();
            break;
        }
        default:
            misplaced = home != owner;
        }
        if (misplaced && area.freezer && area.freezer->frozen(pages_[i])) misplaced = false;
        verdict.misplaced += misplaced ? weight : 0;
        now[static_cast<std::size_t>(home)] += weight;
        then[static_cast<std::size_t>(misplaced ? owner : home)] += weight;
    }
    verdict.busiest_now = *std::max_element(now.begin(), now.end());
    verdict.busiest_then = *std::max_element(then.begin(), then.end());

    // The newest references, by node of the thread and home of the page.
    std::vector<double> matrix(nodes * nodes, 0);
    pages_.clear();
    for (std::size_t i = 0; i < fresh.size(); ++i)
        pages_.push_back(fresh.page(i));
    engine.mover().homes(area, pages_, homes_);
    for (std::size_t i = 0; i < pages_.size(); ++i) {
        if (homes_[i] < 0) continue;
        const auto counts = fresh.counts(i);
        for (std::size_t n = 0; n < nodes; ++n) {
            matrix[n * nodes + static_cast<std::size_t>(homes_[i])] += counts[n];
            verdict.references += counts[n];
            if (static_cast<int>(n) != homes_[i]) verdict.remote += counts[n];
        }
    }
    if (verdict.references > 0) {
        area.remote_fraction = verdict.remote / static_cast<double>(verdict.references);
        for (std::size_t from = 0; from < nodes; ++from)
            for (std::size_t first = 0; first < nodes; first += 8) {
                record::references_row row;
                row.area = area.id;
                row.iteration = engine.iteration();
                row.from = static_cast<record::u32>(from);
                row.first = static_cast<record::u32>(first);
                row.time = record::now();
                for (std::size_t k = first; k < std::min(nodes, first + 8); ++k)
                    row.to[k - first] = matrix[from * nodes + k];
                record::append(row);
            }
    }
    return verdict;
}

/// Is more misplaced than halos and chance explain?
bool Iterative::clearly_misplaced(const Verdict& verdict, const WatchedArea& area) {
    if (verdict.squares <= 0) return false;
    const double tolerated =
        std::min(least_share, static_cast<double>(least_granules) / static_cast<double>(area.granules));
    const double samples = verdict.considered * verdict.considered / verdict.squares;
    return policy::significant_share(samples * verdict.misplaced / verdict.considered, samples, tolerated);
}

/// What should be where: granules by target node, frozen ones left out.
void Iterative::add_targets(Engine& engine, WatchedArea& area,
                            std::vector<std::vector<std::uint64_t>>& lists) {
    lists.assign(static_cast<std::size_t>(engine.nodes().count()), {});
    auto add = [&](std::uint64_t granule, policy::Node node) {
        if (node < 0 || (area.freezer && area.freezer->frozen(granule))) return;
        lists[static_cast<std::size_t>(node)].push_back(granule);
    };
    const auto& runs = area.ownership.runs();
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const policy::PageRange range{runs[r].first, runs[r].end};
        if (runs[r].pattern == policy::Pattern::shared && even_run_[r]) continue;
        if (runs[r].pattern == policy::Pattern::unknown) {
            pages_.clear();
            for (std::size_t i = 0; i < area.samples.size(); ++i)
                if (area.samples.page(i) >= range.first && area.samples.page(i) < range.end)
                    pages_.push_back(area.samples.page(i));
            engine.mover().homes(area, pages_, homes_);
            policy::CompetitiveOptions options;
            options.threshold = threshold_;
            for (std::size_t i = 0; i < pages_.size(); ++i) {
                if (homes_[i] < 0) continue;
                const auto counts = area.samples.counts(area.samples.find(pages_[i]));
                if (const auto candidate =
                        policy::competitive(pages_[i], static_cast<policy::Node>(homes_[i]), counts, options))
                    add(pages_[i], candidate->to);
            }
            continue;
        }
        const bool by_writer = runs[r].pattern == policy::Pattern::shared && written_valid_;
        const policy::Ownership& ownership = by_writer ? written_ : area.ownership;
        ownership.for_each_range(range, [&](policy::PageRange rest, policy::Node node) {
            if (node < 0) return;
            std::vector<std::uint64_t>& list = lists[static_cast<std::size_t>(node)];
            while (rest.first < rest.end) {
                const policy::PageRange movable = area.freezer ? area.freezer->first_movable(rest) : rest;
                for (std::uint64_t page = movable.first; page < movable.end; ++page)
                    list.push_back(page);
                rest.first = movable.end;
            }
        });
    }
}

/// Memory that the program itself bound (mbind, or libnuma on top of it) is where it wants it.
bool bound_by_program(Engine& engine, const WatchedArea& area) {
    MemoryPolicy policy;
    if (engine.policies().found(area.range.begin) || engine.kernel().policy_at(area.range.begin, policy) != 0)
        return false;
    constexpr int flags = MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES | MPOL_F_NUMA_BALANCING;
    MemoryPolicy task;
    if ((policy.mode & ~flags) != MPOL_BIND || (engine.kernel().task_policy(task) == 0 && task == policy))
        return false;
    record::message(record::Level::note, area.name + " was bound to nodes by the program itself: left alone");
    return true;
}

void Iterative::move(Engine& engine, WatchedArea& area, double deadline) {
    if (bound_by_program(engine, area)) return;
    std::vector<std::vector<std::uint64_t>> lists;
    add_targets(engine, area, lists);
    if (!area.freezer) area.freezer = std::make_unique<policy::Freezer>();
    area.seen_homes.begin_round(engine.iteration(), engine.placements(), area.granules);
    MoveResult result;
    for (std::size_t node = 0; node < lists.size() && result.complete; ++node)
        engine.mover().send(area, lists[node], static_cast<int>(node), engine.iteration(), deadline, result);
    engine.mover().retry_refused(engine.watch(), engine.iteration(), deadline, result);
    area.sent_home |= result.moved > 0;
    engine.statistics().moved += result.moved;
    engine.statistics().refused += result.refused;
    engine.statistics().moving += result.seconds;
    engine.guard().moved(area.id, result.moved, std::max<std::uint32_t>(1, result.calls), result.complete);
    record::move_row row;
    row.area = area.id;
    row.time = record::now();
    row.wanted = result.wanted;
    row.moved = result.moved;
    row.refused = result.refused;
    row.bytes = result.moved * page_bytes();
    row.seconds = result.seconds;
    row.longest_call_seconds = result.longest_call;
    row.calls = result.calls;
    row.iteration = engine.iteration();
    record::append(row);
    for (const auto& [error, pages] : result.errors) {
        record::refusal_row refusal;
        refusal.area = area.id;
        refusal.error = error;
        refusal.pages = pages;
        refusal.iteration = engine.iteration();
        record::append(refusal);
    }
    engine.record_move(area, result.moved);
}

void Iterative::iteration_observed(Engine& engine, bool check) {
    std::uint64_t wanted = 0;
    std::uint64_t considered = 0;
    std::uint64_t unseen =
        0; ///< granules of areas that were sampled too thinly to rest, or whose owners drift
    bool any_fresh = false;
    bool any_changed = false;
    double footprint = 0;
    for (const auto& area : engine.watch().areas())
        if (area->fresh_references || !area->samples.empty())
            footprint += static_cast<double>(area->range.bytes());
    const double begin = record::now();
    const double iteration_seconds = begin - engine.iteration_begin();
    const double deadline = begin + std::clamp(pause_share * iteration_seconds, least_pause, most_pause);

    // Where the accumulated cost is highest first: a pause that ends early has then done the most.
    std::vector<WatchedArea*> areas;
    for (const auto& area : engine.watch().areas())
        if (area->fresh_references > 0 || (area->waiting && !check)) areas.push_back(area.get());
    std::sort(areas.begin(), areas.end(),
              [](const WatchedArea* a, const WatchedArea* b) { return a->range.bytes() > b->range.bytes(); });
    if (moves_ && !areas.empty()) engine.own_areas();
    learner_.gather(engine.watch());
    std::vector<Learnt> learnt;
    learnt.reserve(areas.size());
    for (WatchedArea* area : areas) {
        any_fresh |= area->fresh_references > 0;
        area->fresh_references = 0;
        const std::size_t known = area->samples.size();
        Learnt one = learner_.learn(*area, check);
        // The kernel's scans and the PMU's samples come in their own time and order: what was seen of a part
        // says nothing of the whole yet.
        if (engine.samples_itself())
            area->thinly_sampled =
                static_cast<double>(area->samples.size()) <
                    enough_covered * static_cast<double>(area->granules) &&
                static_cast<double>(area->samples.size()) > still_growing * static_cast<double>(known);
        any_changed |= one.changed;
        if (!check || one.changed) learnt.push_back(std::move(one));
    }
    for (const Learnt& one : learnt)
        learner_.refine(*one.area);
    for (const auto& [area, fresh, changed] : learnt) {
        const Verdict verdict = judge(engine, *area, fresh);
        auto misplaced = static_cast<std::uint64_t>(verdict.misplaced + 0.5);
        if (!area->sent_home && !clearly_misplaced(verdict, *area)) misplaced = 0;
        const std::uint64_t pages_each = std::max<std::uint64_t>(1, area->granule / page_bytes());
        considered += static_cast<std::uint64_t>(verdict.considered);

        policy::TouchModel model;
        model.page_size = area->granule;
        model.line_size = cache_line_bytes;
        model.cache_bytes = engine.cache_bytes();
        model.footprint_bytes = static_cast<std::uint64_t>(footprint / engine.nodes().count());
        model.threads = engine.threads();
        model.nodes = engine.nodes().count();
        const double touches = engine.touches_in_round(*area);
        const double region_ns = 1e9 * engine.region_seconds();
        const policy::Costs& costs = engine.guard().costs();
        double remote_ns = model.excess_ns(
            static_cast<std::uint64_t>(touches * static_cast<double>(misplaced)), costs, region_ns);
        if (engine.counts_misses()) {
            // What is misplaced of the area has its part in the misses that were counted. Nothing overlaps:
            // the least that a machine can hide.
            const double part = verdict.considered > 0 ? verdict.misplaced / verdict.considered : 0.0;
            remote_ns = static_cast<double>(area->remote_misses) * std::min(part, 1.0) *
                        std::max(costs.remote_ns - costs.local_ns, 0.0) / std::max(1, engine.threads());
            area->remote_misses = 0;
        } else if (misplaced > 0)
            remote_ns =
                std::max(remote_ns, model.contention_ns(touches * verdict.busiest_now,
                                                        touches * verdict.busiest_then, costs, region_ns));
        engine.guard().accumulate(area->id, remote_ns);
        // What costs nothing where it is (it fits into the caches) need not move, and need not be waited for.
        wanted += remote_ns > 0 ? misplaced : 0;
        area->was_misplaced |= misplaced > 0;
        // A border that moves on leaves something misplaced in every few rounds.
        area->still_rounds = misplaced > 0 ? 0 : area->still_rounds + 1;
        area->drifts &= area->still_rounds < still_enough;
        const bool narrows = area->sent_home && border_narrows(*area);
        if (area->drifts || narrows ||
            (area->thinly_sampled && (area->was_misplaced || engine.samples_itself())))
            unseen += area->granules;
        const std::uint64_t calls = 1 + misplaced / 512;
        const bool permitted = engine.guard().permits(area->id, misplaced * pages_each, calls);
        // What is lost by waiting for more samples weighs, too: where remote accesses have cost as much as
        // the move there and back, fewer have to do.
        const bool urgent = engine.guard().permits(area->id, 2 * misplaced * pages_each, 2 * calls);
        const bool enough =
            area->samples.size() >=
            std::min<std::uint64_t>(urgent ? urgent_samples : enough_samples, (area->granules + 1) / 2);
        area->waiting = moves_ && misplaced > 0 && !permitted;
        const bool moves_now = moves_ && misplaced > 0 && permitted && enough;

        record::ownership_row row;
        row.area = area->id;
        row.iteration = engine.iteration();
        row.time = record::now();
        row.kind = static_cast<record::u32>(area->ownership.kind());
        row.runs = static_cast<record::u32>(area->ownership.runs().size());
        row.period_pages = area->ownership.cycles().empty() ? 0 : area->ownership.cycles().front().period;
        row.confidence = area->ownership.confidence();
        row.samples = area->samples.size();
        row.wanted = misplaced * pages_each;
        row.frozen = area->freezer ? area->freezer->frozen_pages() * pages_each : 0;
        for (const auto& doubt : area->ownership.doubtful())
            row.uncertain += doubt.pages.size();
        record::append(row);
        if (misplaced > 0) {
            record::guard_row guard;
            guard.area = area->id;
            guard.iteration = engine.iteration();
            guard.time = row.time;
            guard.remote_ns = engine.guard().accumulated_ns(area->id);
            guard.move_ns = engine.guard().costs().move_ns(misplaced * pages_each, calls);
            guard.permitted = permitted;
            record::append(guard);
        }
        if (moves_now && begin < deadline) move(engine, *area, deadline);
    }
    if (check) {
        engine.stability().checked(any_changed);
        return;
    }
    if (any_fresh && considered > 0) { // where nothing is known of any page, nothing is stable
        idle_ = 0;
        engine.stability().observed(std::max(wanted, unseen), considered);
    } else if (++idle_ >= idle_limit) {
        engine.stability().observed(0, 0); // nothing large is touched here: rest
    }
}

} // namespace

std::unique_ptr<Mechanism> make_iterative(bool moves) { return std::make_unique<Iterative>(moves); }

} // namespace homing
