// The iterative mechanism (Nikolopoulos et al. 2000, section 2.1): at the end of an outer iteration the
// reference counters tell where each page belongs; pages that satisfy the competitive criterion move; pages
// that bounce are frozen; the mechanism rests when placement is stable. Beyond the paper: counters are a
// sample, from which the owners of all pages are inferred (policy/ownership), and a guard keeps a run from
// paying more for moves than they can bring.
#include "mechanisms/dispatch.hpp"
#include "mechanisms/engine.hpp"
#include "mechanisms/judgement.hpp"
#include "mechanisms/learner.hpp"

#include "base/options.hpp"
#include "base/running_time.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <linux/mempolicy.h>

namespace homing {
namespace {

/// One pause for moving at the end of an iteration: this share of the iteration, or this much if that is
/// more.
constexpr double pause_share = 0.5;
constexpr double least_pause = 1.0;
constexpr double most_pause = 2.0;
/// Instead of enough_samples, where remote accesses have cost much more than the move. (A small area needs no
/// more than it has pages.)
constexpr std::size_t urgent_samples = 20;
/// Rounds without anything misplaced after which borders no longer drift.
constexpr int still_enough = 8;
/// Borders are narrow enough when no more of an area than this is between their samples; rounds without
/// progress after which they are left.
constexpr std::uint64_t narrow_enough = 512;
constexpr int patient_rounds = 4;
/// Decisions for which the surroundings of what seems misplaced are looked at.
constexpr int most_doubtful_rounds = 4;
/// Asking where a page is costs this part of moving it; what a move has to ask for beyond the pages it moves
/// counts (the first few are in what a move was measured to cost).
constexpr double look_share = 0.2;
/// Observed iterations without any reference before the mechanism rests.
constexpr int idle_limit = 8;

class Iterative final : public Mechanism {
  public:
    explicit Iterative(bool moves) : moves_(moves), threshold_(option_number(Option::threshold)) {}
    const char* name() const noexcept override { return moves_ ? "iterative" : "observe"; }
    void iteration_observed(Engine& engine, bool check) override;

  private:
    /// An area's judgement, and what the guard says of it.
    struct Decision : Judgement {
        std::uint64_t wanted = 0; ///< granules that are to move
        bool moves_now = false;
    };
    Decision decide(Engine& engine, WatchedArea& area, double footprint);
    double remote_cost(Engine& engine, const Decision& decision, double footprint) const;
    static void record_decision(Engine& engine, const Decision& decision, std::uint64_t calls,
                                bool permitted);
    void move(Engine& engine, const Decision& decision, double deadline);

    bool moves_;
    Learner learner_;
    double threshold_;
    int idle_ = 0;
};

/// Is a border of the area still being told more exactly? Pages on its wrong side would stay there at rest.
bool border_narrows(WatchedArea& area) {
    std::uint64_t open = 0;
    for (const policy::DoubtfulRange& doubt : area.ownership.doubtful())
        if (doubt.doubt == policy::Doubt::border) open += area.there().count(doubt.pages);
    area.border_rounds = open < area.open_border ? 0 : area.border_rounds + 1;
    area.open_border = open;
    return open > area.there().size() / narrow_enough && area.border_rounds < patient_rounds;
}

/// Memory that the program itself bound (mbind, or libnuma on top of it) is where it wants it.
bool bound_by_program(Engine& engine, const WatchedArea& area) {
    MemoryPolicy policy;
    if (engine.policies().found(area.range.begin) || engine.kernel().policy_at(area.range.begin, policy) != 0)
        return false;
    MemoryPolicy task;
    if (policy.plain_mode() != MPOL_BIND || (engine.kernel().task_policy(task) == 0 && task == policy))
        return false;
    record::message(record::Level::note, area.name + " was bound to nodes by the program itself: left alone");
    return true;
}

void Iterative::move(Engine& engine, const Decision& decision, double deadline) {
    WatchedArea& area = *decision.area;
    area.waiting = false;
    if (bound_by_program(engine, area)) {
        area.left_alone = true;
        return;
    }
    if (!area.freezer) area.freezer = std::make_unique<policy::Freezer>();
    area.seen_homes.begin_round(engine.iteration(), engine.placements(), area.granules);
    const policy::NodeSet all_nodes = policy::all_nodes(engine.nodes().count());
    area.left_behind = {};
    MoveResult result;
    Dispatch dispatch(engine.mover(), area, engine.nodes().count(), engine.iteration(), deadline, result);
    decision.for_each_move([&](policy::PageRange granules, policy::Node node, policy::NodeSet from) {
        dispatch.add(granules, node, from);
    });
    dispatch.finish(); // what waits below may be among these
    area.refused.for_each_waiting([&](std::uint64_t granule) {
        dispatch.add({granule, granule + 1}, area.ownership.owner(granule), all_nodes);
    });
    dispatch.finish();
    area.sent_home |= result.moved > 0;
    area.waiting = !result.complete;
    engine.statistics().moved += result.moved;
    engine.statistics().refused += result.refused;
    engine.statistics().moving += result.seconds;
    // What was tried in vain was paid for, too.
    engine.guard().moved(area.id, std::max(result.moved, result.wanted),
                         std::max<std::uint32_t>(1, result.calls), result.complete);
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
    for (const auto& [error, pages] : result.errors)
        engine.record_refusal(area.id, error, pages);
    engine.record_move(area, result.moved);
}

/// What the misplaced granules cost since the last decision, in nanoseconds of elapsed time.
double Iterative::remote_cost(Engine& engine, const Decision& decision, double footprint) const {
    const WatchedArea& area = *decision.area;
    policy::TouchModel model;
    model.page_size = area.granule;
    model.line_size = cache_line_bytes;
    model.cache_bytes = engine.cache_bytes();
    model.footprint_bytes = static_cast<std::uint64_t>(footprint / engine.nodes().count());
    model.threads = engine.threads();
    model.nodes = engine.nodes().count();
    const double touches = engine.touches_in_round(area);
    const double region_ns = 1e9 * engine.region_seconds();
    const policy::Costs& costs = engine.guard().costs();
    if (engine.counts_misses()) {
        // What is misplaced of the area has its part in the misses that were counted. Nothing overlaps: the
        // least that a machine can hide.
        const double part = decision.considered > 0 ? decision.misplaced / decision.considered : 0.0;
        return static_cast<double>(area.remote_misses) * std::min(part, 1.0) *
               std::max(costs.remote_ns - costs.local_ns, 0.0) / std::max(1, engine.threads());
    }
    const double remote_ns = model.excess_ns(
        static_cast<std::uint64_t>(touches * static_cast<double>(decision.wanted)), costs, region_ns);
    if (decision.wanted == 0) return remote_ns;
    return std::max(remote_ns, model.contention_ns(touches * decision.busiest_now,
                                                   touches * decision.busiest_then, costs, region_ns));
}

void Iterative::record_decision(Engine& engine, const Decision& decision, std::uint64_t calls,
                                bool permitted) {
    const WatchedArea& area = *decision.area;
    const std::uint64_t pages_each = std::max<std::uint64_t>(1, area.granule / page_bytes());
    record::ownership_row row;
    row.area = area.id;
    row.iteration = engine.iteration();
    row.time = record::now();
    row.kind = static_cast<record::u32>(area.ownership.kind());
    row.runs = static_cast<record::u32>(area.ownership.runs().size());
    row.period_pages = area.ownership.cycles().empty() ? 0 : area.ownership.cycles().front().period;
    row.confidence = area.ownership.confidence();
    row.samples = area.samples.size();
    row.wanted = decision.wanted * pages_each;
    row.frozen = area.freezer ? area.freezer->frozen_pages() * pages_each : 0;
    for (const auto& doubt : area.ownership.doubtful())
        row.uncertain += doubt.pages.size();
    record::append(row);
    if (decision.wanted == 0) return;
    record::guard_row guard;
    guard.area = area.id;
    guard.iteration = engine.iteration();
    guard.time = row.time;
    guard.remote_ns = engine.guard().accumulated_ns(area.id);
    guard.move_ns = engine.guard().costs().move_ns(decision.wanted * pages_each, calls);
    guard.permitted = permitted;
    record::append(guard);
}

/// Judges an area, charges the guard with what is misplaced, and asks it.
Iterative::Decision Iterative::decide(Engine& engine, WatchedArea& area, double footprint) {
    Decision decision{judge(engine, area, threshold_), 0, false};
    decision.wanted = area.left_alone ? 0 : static_cast<std::uint64_t>(decision.misplaced + 0.5);
    const double remote_ns = remote_cost(engine, decision, footprint);
    area.remote_misses = 0;
    engine.guard().accumulate(area.id, remote_ns);
    area.worth_nothing = decision.wanted > 0 && remote_ns <= 0;
    area.was_misplaced |= decision.wanted > 0;
    // A border that moves on leaves something misplaced in every few rounds.
    area.still_rounds = decision.wanted > 0 ? 0 : area.still_rounds + 1;
    area.drifts &= area.still_rounds < still_enough;
    area.doubtful_rounds = decision.doubtful ? area.doubtful_rounds + 1 : 0;
    const std::uint64_t pages_each = std::max<std::uint64_t>(1, area.granule / page_bytes());
    const std::uint64_t more_looks = decision.looks - std::min(decision.looks, 2 * decision.wanted);
    const std::uint64_t pages = decision.wanted * pages_each +
                                static_cast<std::uint64_t>(look_share * static_cast<double>(more_looks));
    const std::uint64_t calls = 1 + decision.wanted / 512;
    const bool permitted = decision.wanted == 0 || engine.guard().permits(area.id, pages, calls);
    // What is lost by waiting for more samples weighs, too: where remote accesses have cost as much as the
    // move there and back, fewer have to do.
    const bool urgent = engine.guard().permits(area.id, 2 * pages, 2 * calls);
    const bool enough =
        area.telling.size() >=
        std::min<std::uint64_t>(urgent ? urgent_samples : enough_samples, (area.there().size() + 1) / 2);
    area.waiting = moves_ && decision.wanted > 0 && (!permitted || enough); // until it has moved
    decision.moves_now =
        moves_ && ((decision.wanted > 0 && permitted && enough) || area.refused.waiting() > 0);
    record_decision(engine, decision, calls, permitted);
    return decision;
}

void Iterative::iteration_observed(Engine& engine, bool check) {
    const double inferring = thread_seconds();
    std::uint64_t wanted = 0;
    std::uint64_t considered = 0;
    // Granules of areas that were sampled too thinly to rest, or whose owners drift.
    std::uint64_t unseen = engine.granules_to_come();
    bool any_fresh = false;
    bool any_changed = false;
    double footprint = 0;
    for (const auto& area : engine.watch().areas())
        if (area->fresh_references || !area->samples.empty())
            footprint += static_cast<double>(area->used_bytes());
    const double iteration_seconds = record::now() - engine.iteration_begin();

    std::vector<WatchedArea*> areas;
    for (const auto& area : engine.watch().areas())
        if (area->fresh_references > 0 || (!check && (area->waiting || area->refused.waiting() > 0)))
            areas.push_back(area.get());
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
                    enough_covered * static_cast<double>(area->there().size()) &&
                static_cast<double>(area->samples.size()) > still_growing * static_cast<double>(known);
        // Owners who stayed the same say nothing of their pages, which somebody else may have moved.
        any_changed |=
            one.changed || (check && !area->worth_nothing && misplaced_since(engine, *area, one.fresh));
        if (!check || one.changed) learnt.push_back(std::move(one));
    }
    for (const Learnt& one : learnt)
        learner_.refine(*one.area);
    std::vector<Decision> decisions;
    decisions.reserve(learnt.size());
    for (const auto& [area, fresh, changed] : learnt) {
        record_references(engine, *area, fresh);
        decisions.push_back(decide(engine, *area, footprint));
        const Decision& decision = decisions.back();
        considered += static_cast<std::uint64_t>(decision.considered);
        // What costs nothing where it is (it fits into the caches) need not move, and need not be waited for.
        wanted += area->worth_nothing ? 0 : decision.wanted;
        const bool narrows = area->sent_home && border_narrows(*area);
        const bool doubtful = decision.doubtful && area->doubtful_rounds <= most_doubtful_rounds;
        const bool thin =
            area->thinly_sampled && (area->sent_home || decision.wanted > 0 || engine.samples_itself());
        const bool learning = area->drifts || narrows || doubtful || thin;
        if ((learning && !area->worth_nothing) || area->refused.waiting() > 0) unseen += area->granules;
    }
    // Where remote accesses have cost most comes first: a pause that ends early has then done the most.
    std::ranges::stable_sort(decisions, std::greater<>(), [&](const Decision& decision) {
        return engine.guard().accumulated_ns(decision.area->id);
    });
    engine.statistics().inferring += thread_seconds() - inferring;
    // What inferring took is limited for itself (Engine::round_is_over), and takes nothing from moving.
    const double deadline =
        record::now() + std::clamp(pause_share * iteration_seconds, least_pause, most_pause);
    bool rest_waits = false;
    for (const Decision& decision : decisions) {
        if (!decision.moves_now) continue;
        if (record::now() < deadline) move(engine, decision, deadline);
        rest_waits |= decision.area->waiting;
    }
    engine.let_moves_wait(rest_waits);
    if (check) {
        engine.stability().checked(any_changed);
        return;
    }
    if (any_fresh && considered > 0) { // where nothing is known of any page, nothing is stable
        idle_ = 0;
        engine.stability().observed(std::max(wanted, unseen), considered);
    } else if (!engine.awaits_look() && ++idle_ >= idle_limit) {
        engine.stability().observed(0, 0); // nothing large is touched here: rest
    }
}

} // namespace

std::unique_ptr<Mechanism> make_iterative(bool moves) { return std::make_unique<Iterative>(moves); }

} // namespace homing
