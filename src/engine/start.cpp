// How the engine starts, at the first parallel region of a process: machine, costs, source, areas, initial
// placement.
#include "engine/engine.hpp"

#include "base/floating_point.hpp"
#include "base/inside.hpp"
#include "base/options.hpp"
#include "base/raw_calls.hpp"
#include "base/uncancelled.hpp"
#include "machine/fit_speed.hpp"
#include "machine/simulation.hpp"
#include "machine/start_up.hpp"
#include "machine/threads.hpp"
#include "record/record.hpp"
#include "sources/window_costs.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <mutex>
#include <unistd.h>

namespace homing {
namespace {

constinit std::atomic<Engine*> the_engine{nullptr};
HookServices lent;

/// Asks the OpenMP runtime for a number. -1: there is no such function. The runtime may begin its work with
/// the question; what it allocates is the program's, where it would be without us.
int ask_runtime(const char* name) noexcept {
    using Function = int();
    auto* function = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
    const Borrowing borrowing;
    return function ? function() : -1;
}

/// What was placed, and asked for, before there was an engine.
struct CalledBefore {
    std::mutex mutex;
    PlacementResult placed;
    std::vector<Range> next_touches;
};
CalledBefore& called_before() {
    static auto* before = new CalledBefore; // never destroyed: used until the very end of the process
    return *before;
}

} // namespace

void report_placement(Range range, const PlacementResult& result) {
    if (!engine()) {
        const std::lock_guard lock(called_before().mutex);
        if (!engine()) return called_before().placed.add(result);
    }
    engine()->pages_placed(range, result);
}

bool request_next_touch(Range range) {
    if (!engine()) {
        const std::lock_guard lock(called_before().mutex);
        if (!engine()) return called_before().next_touches.push_back(range), true;
    }
    return engine()->next_touch_called(range);
}

Engine* engine() noexcept { return the_engine.load(std::memory_order_acquire); }
void lend_services(HookServices services) noexcept { lent = services; }

phases::Listener* start_engine() noexcept {
    const Uncancelled uncancelled;
    const OwnFloatingPoint own;
    try {
        record::open(option_text(Option::record));
        Simulation* simulated = simulation();
        Kernel& kernel = process_kernel();
        Machine machine = process_machine(kernel);
        // Assumed nodes are not those that the user bound memory to.
        if (!simulated && option_number(Option::assume_nodes) < 2) respect_binding(kernel, machine);
        auto fresh = std::make_unique<Engine>(kernel, std::move(machine), lent);
        if (!fresh->start()) {
            fresh.reset();
            if (simulated) return simulated->listen(nullptr); // there is something to count all the same
            record::fact("end", "stepped aside");
            record::close();
            return nullptr;
        }
        if (!simulated) bring_pages_of_hooks(kernel);
        const std::lock_guard lock(called_before().mutex); // other threads may be placing memory
        Engine* started = fresh.release();                 // lives as long as the process
        the_engine.store(started, std::memory_order_release);
        started->pages_placed({}, called_before().placed);
        for (const Range& range : std::exchange(called_before().next_touches, {}))
            started->next_touch_called(range);
        return simulated ? simulated->listen(started) : started;
    } catch (...) {
        record::message(record::Level::not_done, "homing could not start (out of memory): it stepped aside");
        return nullptr;
    }
}

bool Engine::start(std::unique_ptr<ReferenceSource> source, bool asks) {
    running_.start(record::now());
    record::fact("mechanism", option_text(Option::mechanism));
    record::message_of_each_line(record::Level::warning, option_errors());
    record_machine(machine_, nodes_, kernel_);
    if (nodes_.count() < 2) {
        record::message(record::Level::note,
                        std::string(nodes_.count() == 0 ? "no" : "only one") +
                            " node has both memory and CPUs of this process: there is nothing to send home");
        return false;
    }
    const StatedCosts stated = find_costs(option_text(Option::costs), machine_);
    guard_.set_costs(stated.costs);
    if (stated.costs.fit_us > 0) slowness_ = 1e6 * seconds_of_fit() / stated.costs.fit_us;
    cache_bytes_ = stated.cache_bytes
                       ? stated.cache_bytes
                       : machine_.last_level_cache_bytes *
                             static_cast<std::uint64_t>(std::max(1, machine_.last_level_caches_per_node));
    record::fact("costs", stated.source);
    record::fact("cost_values", cost_values(stated.costs));
    record::fact("cache_bytes", std::to_string(cache_bytes_));

    std::string chosen;
    std::string reasons;
    choose_source(std::move(source), asks, chosen, reasons);
    record::fact("source", chosen.empty() ? "none" : chosen);
    record::fact("source_reasons", reasons);

    if (option_is(Option::mechanism, "next-touch")) {
        if (!windows_) {
            record::message(record::Level::not_done,
                            "next-touch needs windows, which are not possible here (" + reasons +
                                "): homing stepped aside");
            return false;
        }
        mechanism_ = make_next_touch();
    } else {
        mechanism_ = make_iterative(!option_is(Option::mechanism, "observe"), team_);
    }
    if (!source_) {
        // Tasks find their homes without any reference.
        const bool tasks_only = option_is(Option::tasks, "affinity");
        record::message(record::Level::not_done,
                        "no source of references works here (" + reasons +
                            "): " + (tasks_only ? "pages stay where they are" : "homing stepped aside"));
        if (!tasks_only) return false;
        mechanism_ = make_iterative(false, team_);
    }
    const int threads = ask_runtime("omp_get_max_threads");
    threads_ = threads > 0 ? threads : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
    if (windows_ && simulation()) plan_.calibrate(0);
    if (windows_ && !simulation())
        measure_windows(kernel_, *windows_, services_.prepare_handler, slowness_, plan_);
    mover_.pages_may_hide([this] { pause_source(); });
    watch_.leave_to_the_program([](Range range) {
        if (Windows* windows = active_windows.load(std::memory_order_acquire))
            windows->exclude_if_watched(range);
    });
    watch_.synchronise(record::now());
    if (windows_) windows_->start(watch_.ranges());
    if (initial_.wanted() != "first-touch") record::fact("initial", initial_.wanted());
    initial_.place(watch_, iteration_);
    next_tick_ = record::now() + tick_;
    iteration_begin_ = record::now();
    begin_observing(policy::Activity::observe);
    return true;
}

/// The source that was given, or the best one that the machine allows, in the order pmu, hint-faults,
/// windows; or the one that was asked for.
void Engine::choose_source(std::unique_ptr<ReferenceSource> given, bool asks, std::string& chosen,
                           std::string& reasons) {
    const bool next_touch = option_is(Option::mechanism, "next-touch");
    const bool assumed = option_number(Option::assume_nodes) > 1;
    const std::string asked = option_text(Option::references);
    const std::string wanted = next_touch || assumed ? "windows" : asked;
    auto refuse = [&](const std::string& name, const std::string& reason) {
        reasons += (reasons.empty() ? "" : "; ") + name + ": " + reason;
    };
    Simulation* simulated = simulation();
    const bool sees_all = simulated && !next_touch && !given;
    if (sees_all) given.reset(simulated->make_source());
    if (given) {
        sampled_ = std::move(given);
        source_ = sampled_.get();
        chosen = source_->name();
        if (asks) ask_beside();
        if (sees_all && asked != "auto") refuse(asked, "the simulator sees every access");
        return;
    }
    if (wanted != asked && asked != "auto")
        refuse(asked, next_touch ? "next touch needs windows" : "nodes are assumed");
    auto try_sampled = [&](const char* name, ReferenceSource* source) {
        std::unique_ptr<ReferenceSource> candidate(source);
        const std::string reason = candidate->unavailable();
        if (!reason.empty()) return refuse(name, reason);
        sampled_ = std::move(candidate);
        source_ = sampled_.get();
        chosen = name;
    };
    if (wanted == "auto" || wanted == "pmu") try_sampled("pmu", make_pmu_source(kernel_));
    if (!source_ && (wanted == "auto" || wanted == "hint-faults"))
        try_sampled("hint-faults", make_hint_fault_source(kernel_, machine_, "/proc", &policies_));
    if (!source_ && (wanted == "auto" || wanted == "windows")) {
        if (const std::string reason = prepare_windows(); !reason.empty()) return refuse("windows", reason);
        source_ = windows_.get();
        asks_ = true;
        chosen = "windows";
    }
    if (scans()) ask_beside();
    if (wanted != "auto" && source_ == nullptr)
        record::message(record::Level::warning, "--references " + wanted + " is not possible: " + reasons);
}

/// The kernel scans where and when it likes, the more rarely the longer nothing new was found: what is to be
/// known now is asked for by windows, where they are possible.
void Engine::ask_beside() {
    const std::string reason = prepare_windows();
    asks_ = reason.empty();
    record::fact("questions", asks_ ? "windows" : "none (windows: " + reason + ")");
}

/// Windows as a source, or for the touches that a program asks for beside another source. What forbids them,
/// or empty.
std::string Engine::prepare_windows() {
    if (windows_) return {};
    if (option_flag(Option::no_signals)) return "--no-signals";
    auto windows =
        std::make_unique<Windows>(kernel_, simulation() ? Windows::most_capacity : Windows::usual_capacity);
    if (std::string reason = windows->unavailable(); !reason.empty()) return reason;
    if (services_.prepare_handler)
        if (const char* blocked = services_.prepare_handler()) return blocked;
    windows_ = std::move(windows);
    if (services_.exclude_alternate_stacks) services_.exclude_alternate_stacks(*windows_);
    return {};
}

/// Once, when there is a team to look at: after the first region, and before the end of the process at the
/// latest.
void Engine::say_threads() {
    if (threads_said_) return;
    threads_said_ = true;
    if (Simulation* simulated = simulation()) return simulated->record_threads();
    say_binding(record_threads(kernel_, "/proc/self/task", ::sched_getaffinity, helper_.id()));
}

} // namespace homing
