// The iterative mechanism (Nikolopoulos et al. 2000, section 2.1): at the end of an outer iteration what was
// seen tells where pages belong; those that would be better elsewhere move; the mechanism rests when
// placement is stable. Beyond the paper: few touches are seen, from which the owners of all pages are
// believed (model/belief), and a guard keeps a run from paying more for moves than they can bring. Pages that
// would go to and fro pay the guard each time, and so end by themselves: nothing is frozen.
#include "areas/dispatch.hpp"
#include "areas/page_rows.hpp"
#include "engine/engine.hpp"
#include "engine/judgement.hpp"
#include "engine/learner.hpp"

#include "base/options.hpp"
#include "base/running_time.hpp"
#include "model/questions.hpp"
#include "model/tuning.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

namespace homing {
namespace {

using namespace model::tuning;

class Iterative final : public Mechanism {
  public:
    Iterative(bool moves, const TeamTable& team)
        : moves_(moves), guarded_(option_is(Option::guard, "on")), learner_(team),
          threshold_(option_number(Option::threshold)) {}
    const char* name() const noexcept override { return moves_ ? "iterative" : "observe"; }
    void iteration_observed(Engine& engine, bool check) override;
    void iteration_begins(Engine& engine) override;
    bool places_allocations() const noexcept override { return moves_; }
    bool moves() const noexcept override { return moves_; }
    void process_ends(Engine& engine) override;

  private:
    /// An area's judgement, and what the guard says of it.
    struct Decision : Judgement {
        std::uint64_t wanted = 0; ///< granules that are to move
        bool moves_now = false;
        double each_ns = 0;        ///< what an iteration costs more while they do not
        std::uint32_t charged = 0; ///< the guard, up to this iteration
        std::uint64_t kind = 0;    ///< of these iterations (Engine::iteration_kind)
        double lacking_ns = 0;     ///< Guard::lacking_ns
    };
    bool learn(Engine& engine, const std::vector<WatchedArea*>& areas);
    Decision decide(Engine& engine, WatchedArea& area, std::uint64_t looks, bool ended);
    static void record_decision(Engine& engine, const Decision& decision, std::uint64_t calls,
                                bool permitted);
    void move(Engine& engine, const Decision& decision, double deadline);
    void carry_out(Engine& engine, std::vector<Decision>& decisions);

    bool moves_, guarded_;
    /// What has waited since the last decision, by area: nothing new was learnt of most of it.
    std::unordered_map<std::uint32_t, Decision> waiting_;
    std::uint32_t due_ = 0;        ///< the iteration in which the first of it will have paid for its move
    std::uint32_t placements_ = 0; ///< Engine::placements() then
    std::uint32_t guessed_ = 0;    ///< one after the newest iteration that was a guess
    Learner learner_;
    double threshold_;
    std::uint32_t idle_ = 0;
};

void Iterative::move(Engine& engine, const Decision& decision, double deadline) {
    WatchedArea& area = *decision.area;
    area.waiting = false;
    if (engine.policies().bound_by_program(area.range.begin)) {
        record::message(record::Level::note,
                        area.name + " was bound to nodes by the program itself: left alone");
        area.bound = true;
        return;
    }
    area.seen_homes.begin_round(engine.iteration(), engine.placements(), area.granules);
    const policy::NodeSet all_nodes = policy::all_nodes(engine.nodes().count());
    MoveResult result;
    Dispatch dispatch(engine.mover(), area, engine.nodes().count(), engine.iteration(), deadline, result);
    if (decision.wanted > 0)
        decision.for_each_move([&](policy::PageRange granules, policy::Node node, policy::NodeSet from) {
            dispatch.add(granules, node, from);
            return result.complete;
        });
    dispatch.finish(); // what waits below may be among these
    const std::uint64_t first_left = dispatch.first_left();
    area.refused.for_each_waiting([&](std::uint64_t granule) {
        dispatch.add({granule, granule + 1}, owner_of(area, granule), all_nodes);
    });
    dispatch.finish();
    area.sent_home |= result.moved > 0;
    area.waiting = !result.complete;
    area.next_to_move = result.complete ? 0 : area.there().below(first_left);
    // What was tried in vain was paid for, too.
    engine.guard().moved(area.id, std::max(result.moved, result.wanted),
                         std::max<std::uint32_t>(1, result.calls), result.complete);
    engine.record_moves(area.id, result.wanted, result);
    engine.record_move(area, result.moved);
}

/// Would one more touch of the area bring more than it costs?
bool question_pays(Engine& engine, const WatchedArea& area) {
    if (area.left_alone() || area.learnt.ignorance < negligible_part) return false;
    const model::Subject subject{area.there().size(), engine.traffic_ns(area), area.learnt.ignorance,
                                 static_cast<double>(area.learnt.telling())};
    const double to_come = std::max<double>(iterations_to_come, engine.iteration());
    return model::worth_of_touch(subject) * to_come > engine.touch_cost_ns();
}

/// What the misplaced granules cost since the last decision, in nanoseconds of elapsed time.
double remote_cost(Engine& engine, const Judgement& judgement) {
    const WatchedArea& area = *judgement.area;
    const policy::Costs& costs = engine.guard().costs();
    if (engine.counts_misses()) {
        // What would be gained has its part in the misses that were counted. Nothing overlaps: the least that
        // a machine can hide.
        const double part = judgement.considered > 0 ? judgement.gain / judgement.considered : 0.0;
        return static_cast<double>(area.remote_misses) * std::min(part, 1.0) *
               std::max(costs.remote_ns - costs.local_ns, 0.0) / std::max(1, engine.threads());
    }
    const policy::TouchModel model = engine.touch_model(area);
    const double region_ns = 1e9 * engine.region_seconds();
    const double touches = engine.touches_in_round(area);
    const double remote_ns =
        model.excess_ns(static_cast<std::uint64_t>(touches * judgement.gain), costs, region_ns);
    if (judgement.misplaced <= 0) return remote_ns;
    return std::max(remote_ns, model.contention_ns(touches * judgement.busiest_now,
                                                   touches * judgement.busiest_then, costs, region_ns));
}

void Iterative::record_decision(Engine& engine, const Decision& decision, std::uint64_t calls,
                                bool permitted) {
    const WatchedArea& area = *decision.area;
    const std::uint64_t pages = decision.wanted * std::max<std::uint64_t>(1, area.granule / page_bytes());
    record_belief(area, engine.iteration(), pages);
    if (decision.wanted == 0) return;
    record::append(record::guard_row{.area = area.id,
                                     .iteration = engine.iteration(),
                                     .time = record::now(),
                                     .remote_ns = engine.guard().accumulated_ns(area.id),
                                     .move_ns = engine.guard().costs().move_ns(pages, calls),
                                     .permitted = permitted});
}

/// Judges an area, charges the guard with what is misplaced, and asks it. ended: a round has, of which the
/// references were counted.
Iterative::Decision Iterative::decide(Engine& engine, WatchedArea& area, std::uint64_t looks, bool ended) {
    const auto before = waiting_.find(area.id);
    const bool waits = before != waiting_.end(), holds = waits && before->second.holds(area);
    Decision decision{holds ? before->second : judge(engine, area, looks, threshold_)};
    if (decision.held > border_share * decision.considered && area.learnt.may_know_better()) {
        area.learnt.forget_departures(area.granules);
        static_cast<Judgement&>(decision) = judge(engine, area, looks, threshold_);
    }
    // What serial code does before an iteration is known may be the last step of initialisation.
    const bool may_be_over = area.learnt.touches.are_serial_before(guessed_);
    decision.wanted =
        area.left_alone() || may_be_over ? 0 : static_cast<std::uint64_t>(decision.misplaced + 0.5);
    // It went on costing at rest, too, where nothing is seen.
    const std::uint32_t round = ended ? engine.round_iterations() : 0;
    const std::uint32_t since = waits ? engine.iteration() - before->second.charged : round;
    const std::uint32_t seen = std::min(since, round);
    const bool alike = waits && before->second.kind == engine.iteration_kind();
    const double before_ns = alike ? before->second.each_ns : 0;
    decision.each_ns = ended ? remote_cost(engine, decision) / round : before_ns;
    decision.charged = engine.iteration();
    decision.kind = engine.iteration_kind();
    if (ended) area.remote_misses = 0;
    engine.guard().accumulate(area.id, decision.each_ns * seen + before_ns * (since - seen));
    area.worth_nothing = decision.wanted > 0 && decision.each_ns <= 0;
    const std::uint64_t pages_each = std::max<std::uint64_t>(1, area.granule / page_bytes());
    const std::uint64_t more_looks = decision.looks - std::min(decision.looks, 2 * decision.wanted);
    const std::uint64_t pages = decision.wanted * pages_each +
                                static_cast<std::uint64_t>(look_share * static_cast<double>(more_looks));
    const std::uint64_t calls = 1 + decision.wanted / 512;
    decision.lacking_ns = decision.wanted > 0 && guarded_
                              ? engine.guard().lacking_ns(area.id, pages, calls, area.base_pages())
                              : 0;
    const bool permitted = decision.lacking_ns <= 0;
    area.waiting = moves_ && decision.wanted > 0; // until it has moved
    decision.moves_now = moves_ && ((decision.wanted > 0 && permitted) || area.refused.waiting() > 0);
    record_decision(engine, decision, calls, permitted);
    return decision;
}

/// Where the touches of the round come from, and where they go. Returns whether there are any.
bool record_fresh(Engine& engine, WatchedArea& area) {
    if (area.learnt.fresh.empty()) return false;
    area.find_homes_of_fresh(engine.mover());
    record_references(area, engine.nodes().count(), engine.iteration());
    return true;
}

/// Takes in what the round showed; makes beliefs anew as far as there is time. Returns: did owners change?
bool Iterative::learn(Engine& engine, const std::vector<WatchedArea*>& areas) {
    bool changed = false;
    const double begin = thread_seconds();
    learner_.begin_round(engine.watch());
    const auto has_time = [&] { return engine.may_infer(thread_seconds() - begin); };
    bool asked = false; // where there is no time for all, later touches will show a change
    for (WatchedArea* area : areas)
        if (record_fresh(engine, *area) && learner_.take(*area, engine.iteration()) &&
            (!std::exchange(asked, true) || has_time()))
            changed |= learner_.follow_change(*area, engine.iteration());
    for (WatchedArea* area : areas) {
        if (!learner_.is_stale(*area)) continue;
        learner_.fit(*area, engine.iteration());
        if (!has_time()) break; // the others have the next round
    }
    return changed;
}

/// Moves what may move now. What may not waits.
void Iterative::carry_out(Engine& engine, std::vector<Decision>& decisions) {
    // Where remote accesses have cost most comes first: a pause that ends early has then done the most.
    std::ranges::stable_sort(decisions, std::greater<>(), [&](const Decision& decision) {
        return engine.guard().accumulated_ns(decision.area->id);
    });
    // What inferring took is limited for itself (Engine::may_infer), and takes nothing from moving.
    const double deadline = record::now() + longest_pause;
    bool rest_waits = false;
    waiting_.clear();
    double due = std::numeric_limits<std::uint32_t>::max();
    for (const Decision& decision : decisions) {
        if (!decision.moves_now) {
            if (!decision.area->waiting) continue;
            waiting_.emplace(decision.area->id, decision);
            if (decision.each_ns > 0)
                due = std::min(due, engine.iteration() + 1 + decision.lacking_ns / decision.each_ns);
            continue;
        }
        if (record::now() < deadline) move(engine, decision, deadline);
        rest_waits |= decision.area->waiting;
    }
    due_ = static_cast<std::uint32_t>(due);
    engine.let_moves_wait(rest_waits);
}

/// Within a round and at rest nothing is learnt, but what lies elsewhere than it belongs goes on costing.
void Iterative::iteration_begins(Engine& engine) {
    if (waiting_.empty() || engine.iteration() < due_) return;
    if (placements_ != engine.placements()) return; // the next decision looks where pages are
    engine.take_in();                               // pages of a window cannot be moved
    Statistics& statistics = engine.statistics();
    const double elsewhere = record::now() - statistics.moving;
    std::vector<Decision> decisions;
    for (const auto& area : engine.watch().areas())
        if (waiting_.contains(area->id) && area->learnt.is_of(area->there().size()))
            decisions.push_back(decide(engine, *area, most_looks, false));
    carry_out(engine, decisions);
    statistics.deciding += record::now() - statistics.moving - elsewhere;
}

void Iterative::iteration_observed(Engine& engine, bool check) {
    if (engine.is_guess()) guessed_ = engine.iteration() + 1;
    const double inferring = thread_seconds();
    engine.team().update(engine.kernel(), engine.helper_thread());
    std::vector<WatchedArea*> areas;
    bool any_fresh = false;
    for (const auto& area : engine.watch().areas()) {
        any_fresh |= !area->learnt.fresh.empty();
        if (!area->learnt.fresh.empty() || area->waiting || area->refused.waiting() > 0 ||
            learner_.is_stale(*area))
            areas.push_back(area.get());
    }
    if (moves_ && !areas.empty()) engine.own_areas();
    // Where most is at stake comes first.
    std::ranges::stable_sort(areas, std::greater<>(), [&](const WatchedArea* area) {
        return engine.traffic(*area) * area->learnt.ignorance;
    });
    const bool owners_changed = learn(engine, areas);
    bool any_changed = owners_changed;
    // Of those that have grown there may have been no time for a belief.
    std::erase_if(areas, [](const WatchedArea* area) { return !area->learnt.is_of(area->there().size()); });
    const std::uint64_t looks = std::clamp<std::uint64_t>(
        granules_of_round / std::max<std::size_t>(1, areas.size()), least_looks, most_looks);
    std::uint64_t wanted = 0, considered = 0;
    // Granules of areas of which a question more would pay.
    std::uint64_t unseen = engine.granules_to_come();
    std::vector<Decision> decisions;
    decisions.reserve(areas.size());
    if (std::exchange(placements_, engine.placements()) != engine.placements()) waiting_.clear();
    for (WatchedArea* area : areas) {
        decisions.push_back(decide(engine, *area, looks, true));
        const Decision& decision = decisions.back();
        considered += static_cast<std::uint64_t>(decision.considered);
        // What costs nothing where it is (it fits into the caches) need not move, and need not be waited for.
        const std::uint64_t weighty = area->worth_nothing ? 0 : decision.wanted;
        wanted += weighty;
        any_changed |= check && !policy::are_few(weighty, area->there().size());
    }
    // Owners that change tell that the program does something else now: the other areas are asked anew,
    // whatever they seem to be.
    if (owners_changed) engine.watch().doubt_all();
    for (const auto& area : engine.watch().areas()) {
        AreaBelief& learnt = area->learnt;
        const bool silent = !learnt.belief && area->seen && !area->there().empty();
        if (silent && any_fresh) ++learnt.silent_rounds;
        const bool unknown = silent ? learnt.silent_rounds <= chances : learnt.belief != nullptr;
        if ((unknown && question_pays(engine, *area)) || area->refused.waiting() > 0)
            unseen += area->there().size();
    }
    engine.statistics().inferring += thread_seconds() - inferring;
    carry_out(engine, decisions);
    if (check) {
        engine.stability().checked(any_changed);
        return;
    }
    // A guess is a few regions of the iteration: that little moved in them says nothing of the others.
    if (engine.is_guess()) return;
    if (any_fresh && considered > 0) { // where nothing is known of any page, nothing is stable
        idle_ = 0;
        engine.stability().observed(std::max(wanted, unseen), considered);
    } else if (!engine.awaits_look() && ++idle_ >= chances) {
        engine.stability().observed(0, 0); // nothing large is touched here: rest
    }
}

/// Of areas whose users differ by place, what each place does: for the record's reader and for later runs.
void Iterative::process_ends(Engine& engine) {
    const double begin = thread_seconds();
    for (const auto& area : engine.watch().areas()) {
        record_fresh(engine, *area);
        if (area->learnt.places.empty() || !engine.may_infer(thread_seconds() - begin)) continue;
        for (const Learner::PlaceBelief& one : learner_.by_place(*area, engine.iteration())) {
            const model::Family family = one.belief.likeliest();
            record::append(record::place_distribution_row{.area = area->id,
                                                          .region = one.place,
                                                          .followed = area->learnt.follows(one.place),
                                                          .touches = static_cast<record::u32>(one.touches),
                                                          .family = static_cast<record::u32>(family),
                                                          .probability = one.belief.probability(family),
                                                          .words = record::text(one.belief.words())});
        }
    }
}

} // namespace

std::unique_ptr<Mechanism> make_iterative(bool moves, const TeamTable& team) {
    return std::make_unique<Iterative>(moves, team);
}

} // namespace homing
