// The engine: one per process. It hears of parallel regions, finds iterations in them, lets a source of
// references observe, and asks a mechanism what to do at the end of each iteration.
//
// Everything here runs on the thread that drives a region (base/regions), or on a helper thread within a
// long region, one at a time; except finish(), which comes at the end of the process and only reads where it
// may. At rest there is no lock: the helper does nothing then.
#pragma once

#include "areas/initial_placement.hpp"
#include "areas/policies.hpp"
#include "areas/survey.hpp"
#include "areas/watch.hpp"
#include "base/costs.hpp"
#include "base/helper_thread.hpp"
#include "base/options.hpp"
#include "base/raw_calls.hpp"
#include "base/raw_mutex.hpp"
#include "base/regions.hpp"
#include "base/running_time.hpp"
#include "kernel/balancing.hpp"
#include "kernel/kernel.hpp"
#include "kernel/move_rows.hpp"
#include "kernel/mover.hpp"
#include "kernel/placement.hpp"
#include "machine/costs.hpp"
#include "machine/machine.hpp"
#include "machine/team_table.hpp"
#include "model/guard.hpp"
#include "model/iteration.hpp"
#include "model/stability.hpp"
#include "sources/region_log.hpp"
#include "sources/region_rows.hpp"
#include "sources/region_table.hpp"
#include "sources/scan_rounds.hpp"
#include "sources/touch_record.hpp"
#include "sources/window_plan.hpp"
#include "sources/windows.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace homing {

/// What the hooks lend to the engine (the unit tests lend nothing).
struct HookServices {
    const char* (*prepare_handler)() noexcept = nullptr;
    bool (*exclude_alternate_stacks)(Windows&) noexcept = nullptr;
    void (*record_tasks)() noexcept = nullptr; ///< rows of the affinity clause, at the end
    bool (*surroundings_allow)(Windows&) noexcept = nullptr;
    /// Why a window must end with its region; null: it need not. Asked at every region.
    const char* (*keeps_windows_in_regions)() noexcept = nullptr;
    /// Why system calls may be made that no hook sees; null: none are. Asked at every region.
    const char* (*makes_own_calls)() noexcept = nullptr;
    bool may_have_helper = false; ///< a thread of ours (base/helper_thread)
};

/// How the outer iteration is known.
enum class Basis : std::uint32_t { none, period, anchor, barriers, time, call, guess };

class Engine;

/// When pages move: a page of code each (iterative.cpp, next_touch.cpp).
class Mechanism {
  public:
    virtual ~Mechanism() = default;
    virtual const char* name() const noexcept = 0;
    /// An iteration that was observed (or checked) has ended; `references` were counted into the areas
    /// already.
    virtual void iteration_observed(Engine& engine, bool check) = 0;
    /// A region is about to begin; true: the mechanism opened a window of its own.
    virtual bool region_begins(Engine&, std::uint32_t /*region*/) { return false; }
    virtual void region_ended(Engine&) {}
    /// These pages go to who touches them next, too. False: it has nothing to do with that.
    virtual bool takes_in(Engine&, Range) { return false; }
    /// The process ends: what is worth a row still.
    virtual void process_ends(Engine&) {}
    /// What the source saw was counted (Engine::references).
    virtual void references_came(Engine&) {}
    /// A new iteration begins, observed or not.
    virtual void iteration_begins(Engine&) {}
    /// Windows of its own are still to come: no rest.
    virtual bool needs_windows() const noexcept { return false; }
    /// Blocks to come may be placed as they are allocated.
    virtual bool places_allocations() const noexcept { return false; }
    /// It moves pages at all.
    virtual bool moves() const noexcept { return true; }
    /// References are to be sampled for it.
    virtual bool samples() const noexcept { return true; }
};
std::unique_ptr<Mechanism> make_iterative(bool moves, const TeamTable& team);
std::unique_ptr<Mechanism> make_next_touch();
/// Next touch of chosen memory only, beside another mechanism (C API). Kept until the regions of one
/// iteration ran.
std::unique_ptr<Mechanism> make_next_touch_of(Range range);

struct Statistics {
    std::uint64_t iterations = 0;
    std::uint64_t settled_at = 0;
    std::uint64_t moved = 0;
    std::uint64_t refused = 0;
    std::uint64_t references = 0;
    double observing = 0;
    double deciding = 0;
    double inferring = 0; ///< of deciding, processor seconds: learning who owns what, and judging it
    double moving = 0;
};

class Engine final : public phases::Listener {
  public:
    Engine(Kernel& kernel, Machine machine, HookServices services);
    ~Engine() override;

    /// Choose source and mechanism, adopt the areas. False: step aside (said in the record).
    /// source: of references, instead of those that the machine allows. asks: with windows beside it.
    bool start(std::unique_ptr<ReferenceSource> source = nullptr, bool asks = false);
    /// The process ends: restore what was changed, write the last rows. Any thread; at most once. Nothing in
    /// a child that was made past our fork handlers.
    void finish() noexcept;
    /// In the child of a fork: nothing of ours is true there, and nothing may be given back.
    void abandon() noexcept;
    /// No call of the system comes from a thread of ours any more, as far as we can wait for that.
    void end_helper() noexcept { helper_.stop_and_wait(); }

    void region_begin(Address function) noexcept override;
    void region_end() noexcept override;
    bool barrier(Address site) noexcept override;
    void barrier_passed() noexcept override;
    /// [helper thread] Time passes: where a region shows no event for long, it tells when to look and to
    /// decide. Returns the seconds until it should be called again; negative: it is not needed any more.
    double time_passes() noexcept;

    /// The program itself says where an iteration ends (C API); from then on only these count.
    void iteration_called() noexcept;
    /// The same within a region, by the thread that drives it: the work waits for that thread's next barrier,
    /// before which no thread of the team can begin what follows; at the latest for the end of the region.
    void iteration_called_in_region() noexcept { call_waits_ = true; }

    // What mechanisms use.
    Kernel& kernel() noexcept { return kernel_; }
    const Machine& machine() const noexcept { return machine_; }
    const NodeMap& nodes() const noexcept { return nodes_; }
    const Statistics& statistics() const noexcept { return statistics_; }
    /// The program asks for next touch of this memory in the iteration to come. False: windows are not
    /// possible.
    bool next_touch_called(Range range) noexcept;
    /// Alone, and never throwing into the program (engine/guarded.hpp).
    template <class Work> void guarded(Work&& work) noexcept;
    /// What the program asks for beside the mechanism, from now on; null: no more. Within guarded().
    void work_beside(std::unique_ptr<Mechanism> work);
    /// From now on pages move by this. Within guarded().
    void move_by(std::unique_ptr<Mechanism> mechanism) { mechanism_ = std::move(mechanism); }
    /// What was seen up to now is counted. Within guarded().
    void take_in();
    void begin_observing(policy::Activity activity);
    std::string prepare_windows();
    void follow_changes();
    WatchList& watch() noexcept { return watch_; }
    TeamTable& team() noexcept { return team_; }
    /// The number of our own thread, 0 where there is none.
    int helper_thread() const noexcept { return static_cast<int>(helper_.id()); }
    Mover& mover() noexcept { return mover_; }
    policy::Guard& guard() noexcept { return guard_; }
    policy::Stability& stability() noexcept { return stability_; }
    WindowPlan& plan() noexcept { return plan_; }
    RegionTable& regions() noexcept { return regions_; }
    Windows* windows() noexcept { return windows_.get(); }
    PolicyKeeper& policies() noexcept { return policies_; }
    Statistics& statistics() noexcept { return statistics_; }
    std::uint32_t iteration() const noexcept { return iteration_; }
    /// Differs when areas came or went since.
    std::uint64_t area_changes() const noexcept { return area_changes_; }
    std::uint64_t cache_bytes() const noexcept { return cache_bytes_; }
    /// How often an area's pages were touched since the last decision (once an iteration where that is not
    /// known).
    double touches_in_round(const WatchedArea& area) const;
    /// What an area's touches cost on this machine: its cache beside all that the iteration uses.
    policy::TouchModel touch_model(const WatchedArea& area) const;
    /// What an area's accesses weigh among those of all areas: the accesses that were sampled, or (where
    /// places are sampled) its bytes, each as often as regions touch it in an iteration.
    double traffic(const WatchedArea& area) const;
    /// What an iteration would cost more if all touches of the area were remote: elapsed nanoseconds.
    double traffic_ns(const WatchedArea& area) const;
    /// What one more touch costs the program, in elapsed nanoseconds.
    double touch_cost_ns() const;
    /// Is there time left to learn, when this round has taken so many seconds?
    bool may_infer(double spent);
    /// References come by themselves (pmu, hint-faults).
    bool samples_itself() const noexcept { return sampled_ != nullptr; }
    /// Touches of chosen pages are asked for by windows: these are the source, or stand beside hint faults.
    bool asks() const noexcept { return asks_; }
    /// Granules of areas that the source has not come to yet: nothing is known of them, and nothing can rest.
    std::uint64_t granules_to_come() const noexcept { return to_come_; }
    /// Is there something left to be moved that a pause had no time for? It has the next iteration's end.
    void let_moves_wait(bool wait) noexcept { moves_wait_ = wait; }
    /// Windows may have seen nothing because areas were used before it was time to look for them.
    bool awaits_look() const { return asks_ && survey_.may_have_missed(watch_, iteration_begin_); }
    /// Is what ends now taken for an iteration only because enough was seen?
    bool is_guess() const noexcept { return basis_ == Basis::guess; }
    /// References are all misses there are (ReferenceSource::counts_misses).
    bool counts_misses() const noexcept { return source_ && source_->counts_misses(); }
    /// Iterations that ended since the last decision.
    std::uint32_t round_iterations() const noexcept { return std::max(1u, round_iterations_); }
    /// Seconds that regions took since the last decision.
    double region_seconds() const noexcept { return round_region_seconds_; }
    int threads() const noexcept { return threads_; }
    /// Differs when something else than before is taken for an iteration.
    std::uint64_t iteration_kind() const noexcept {
        return std::uint64_t{static_cast<std::uint8_t>(basis_)} << 32 | period_;
    }
    /// Arm granules in the region that is about to begin, all guards observed.
    std::size_t open_window(std::vector<Range> granules);
    /// Whether a window that was wanted has opened; says where that is refused for long.
    void window_wanted(bool opened);
    void say_windows_ended();
    /// homing owns these areas now: kernel balancing leaves them alone until the end.
    void own_areas();
    /// The source leaves the pages alone until the next boundary (ReferenceSource::pause).
    void pause_source();
    /// Pages are being placed otherwise than by the mechanism: at the program's word.
    void pages_placed() noexcept { placements_.fetch_add(1, std::memory_order_relaxed); }
    /// The same, and this is what became of them: it is recorded and counted.
    void pages_placed(Range range, const PlacementResult& result) noexcept;
    /// How often that was.
    std::uint32_t placements() const noexcept { return placements_.load(std::memory_order_relaxed); }
    /// What the source saw last.
    const std::vector<Reference>& references() const noexcept { return references_; }
    /// Records and counts what became of so many base pages that were to move, of an area (its id).
    void record_moves(std::uint32_t area, std::uint64_t wanted, const Moves& moves);
    static constexpr std::uint32_t many_areas = ~std::uint32_t{0};
    /// So many pages of the area were moved: where its pages are now, where that can be seen in a sample.
    void record_move(WatchedArea& area, std::uint64_t pages);
    /// So many base pages of an area (its id) stay where they are for this reason (errno).
    void record_refusal(std::uint32_t area, int error, std::uint64_t pages);

    /// when: 1 as found (once an area), 2 now, 3 at the end (docs/record.md).
    void record_placements(std::uint32_t when);

  private:
    void record_placement(WatchedArea& area, std::uint32_t when);
    void record_homes(WatchedArea& area, std::uint32_t when);
    enum class Origin : std::uint8_t { sampled, asked };
    void record_touch(const WatchedArea& area, const Reference& reference, int position, Origin origin,
                      std::uint32_t region, double now);
    void choose_source(std::unique_ptr<ReferenceSource> given, bool asks, std::string& chosen,
                       std::string& reasons);
    void ask_beside();
    void say_threads();
    void iteration_boundary(Basis basis);
    void called_boundary();
    bool round_is_over(double now);
    bool has_enough_references() const noexcept;
    double observation_cost() const;
    double stated_seconds(double now);
    void next_iteration();
    void start_source();
    void keep_balancing_off();
    void stop_sampling();
    void follow_changes_within_round(double now);
    void end_observing();
    void plan_samples(bool check, bool all);
    void choose_samples(bool check, bool all);
    void take_references();
    void count_references(Origin origin);
    bool is_touch(std::size_t at) const noexcept;
    void forget_asked_for();
    void count_remote_misses();
    void enter(std::uint32_t region);
    void open_region_ends(double now);
    bool windows_outlast_regions();
    void serial_code_ends();
    void check_window(double now);
    void take_touches();
    void take_touches_of(Site site);
    bool has_handler();
    bool surroundings_allow();
    void close_window();
    bool window_may_stay(double now);
    void window_region_begins();
    void window_region_ends(double seconds);
    bool synchronise_areas();
    void place_initially();
    void plan_allocations();
    void event(Address id);
    phases::Step follow(std::uint32_t region);
    void another_iteration();
    void step_at_rest(std::uint32_t region, const phases::Step& step);
    void follow_log_at_rest() noexcept;
    void follow_time(double now);
    void boundary_by(std::uint32_t region, const phases::Step& step, double now);
    void part_begins(std::uint32_t region, double now);
    void want_helper();
    bool scans() const noexcept { return sampled_ && sampled_->scans(); }
    bool samples_accesses() const noexcept { return samples_itself() && !scans(); }
    void estimate_traffic();
    /// Rows of what is known of areas' remote shares; all: also where little is new.
    void record_estimates(bool all);
    void record_round(double now, std::uint64_t references, std::uint64_t moved);
    void record_overhead(double now) noexcept;
    void record_totals(double now) noexcept;
    /// Something went wrong inside homing: the program goes on without it.
    void step_aside(const std::string& reason) noexcept;

    Kernel& kernel_;
    Machine machine_;
    NodeMap nodes_;
    HookServices services_;
    WatchList watch_;
    TeamTable team_;
    Survey survey_;
    Mover mover_;
    InitialPlacement initial_;
    policy::Guard guard_;
    policy::Stability stability_;
    WindowPlan plan_;
    RegionTable regions_;
    PlaceTable places_;
    TouchRecord touch_record_;
    MoveRows move_rows_;
    record::RowPace round_pace_;
    PolicyKeeper policies_;
    std::unique_ptr<Windows> windows_;
    std::unique_ptr<ReferenceSource> sampled_; ///< pmu or hint-faults
    ReferenceSource* source_ = nullptr;        ///< that, or windows
    bool asks_ = false;                        ///< by windows
    RegionLog region_log_;                     ///< where references come by themselves
    std::unique_ptr<Mechanism> mechanism_;
    std::unique_ptr<Mechanism> called_touch_;
    phases::IterationFinder finder_;
    Statistics statistics_;
    std::vector<Reference> references_;
    std::vector<Reference>
        asked_for_; ///< touches in windows since the other source was drained, where there is one
    std::uint64_t sampled_references_ = 0;
    std::vector<void*> pages_; ///< of granules whose homes are asked for
    std::vector<int> homes_;

    policy::Activity activity_ = policy::Activity::observe;
    Basis basis_ = Basis::none;
    std::atomic<bool> resting_{false}; ///< fast path: nothing to do but to follow the iteration
    bool called_ = false;              ///< iterations are told by the program
    bool call_waits_ = false;          ///< one was told within the region that is open
    bool window_open_ = false;
    bool window_stays_ = false;       ///< when its region has ended
    std::uint64_t touches_taken_ = 0; ///< of all that windows saw
    double window_looked_at_ = 0;     ///< when it was made sure that it may stay
    double next_plan_ = 0;            ///< when samples may be chosen anew within a round
    double next_of_new_ = 0;          ///< the same of areas that have come since
    std::uint64_t plans_ = 0;         ///< how often they were
    bool plan_is_old_ = false;        ///< areas came or went, or were first used, since they were chosen
    bool windows_ended_said_ = false;
    bool windows_in_regions_said_ = false;
    std::uint32_t refused_ = 0; ///< windows in turn
    double refused_since_ = 0;
    bool source_running_ = false;
    bool source_paused_ = false;
    bool threads_said_ = false;
    std::uint32_t iteration_ = 0;
    std::uint32_t period_ = 0;
    std::uint32_t events_in_iteration_ = 0;
    std::uint32_t guesses_ = 0;     ///< so far, since the begin or something new
    std::size_t regions_known_ = 0; ///< when an iteration was found, or it came to rest, last
    std::uint64_t events_ = 0;
    std::uint64_t area_changes_ = 0;
    std::uint64_t source_areas_ = 0; ///< area_changes_ when the source was told of them
    double next_adoption_ = 0; ///< when a source that samples by itself is told of new ones at the earliest
    Site open_;                ///< the region that runs, or ran last
    Site before_barrier_;      ///< what ran when the driving thread arrived at the newest barrier
    bool region_open_ = false; ///< it runs (true only where it was not begun at rest)
    HelperThread helper_;
    std::uint64_t helper_saw_ = 0; ///< events_ when time_passes() looked last
    int idle_looks_ = 0;           ///< of time_passes() in turn, outside of regions
    double scale_ = 1;             ///< of the newest region's time, in its function's longest
    double region_begin_ = 0;
    RunningTime running_; ///< since the start of the engine
    double iteration_begin_ = 0;
    double round_region_seconds_ = 0;
    double parallel_seconds_ = 0;
    double next_tick_ = 0;
    std::uint64_t seed_ = static_cast<std::uint64_t>(option_number(Option::seed));
    double tick_ = 0.1; ///< seconds between steps where only time decides; grows (engine_events.cpp)
    double spent_in_iteration_ = 0;
    // A round of observation: the iterations between two decisions.
    std::uint64_t round_references_ = 0;
    ScanRounds scan_rounds_;
    std::uint64_t to_come_ = 0;
    std::uint64_t footprint_ = 0; ///< bytes that an iteration uses
    bool moves_wait_ = false;
    std::uint32_t round_iterations_ = 0;
    double round_begin_ = 0;
    double round_cost_begin_ = 0; ///< observation_cost() then
    std::uint64_t cache_bytes_ = 0;
    double slowness_ = 1; ///< of homing's work here, beside the machine whose costs are stated
    int threads_ = 1;
    long process_ = raw::call(SYS_getpid);
    std::atomic<std::uint32_t> placements_{0};
    RawMutex turn_; ///< driver or helper
    std::atomic<bool> busy_{false};
    std::atomic<bool> helper_works_{false};
    std::atomic<bool> finished_{false};
};

/// The engine of this process, or null. Set by start_engine().
Engine* engine() noexcept;
/// Starter for phases::set_starter.
phases::Listener* start_engine() noexcept;
void lend_services(HookServices services) noexcept;
/// The program had pages placed: the engine, if there is one, or the one to come shall know.
void report_placement(Range range, const PlacementResult& result);
/// Next touch of a range, also before the engine has started (it is remembered then). False: not possible.
bool request_next_touch(Range range);

} // namespace homing
