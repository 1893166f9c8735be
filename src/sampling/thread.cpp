#include "sampling/thread.hpp"

#include "base/helper_thread.hpp"
#include "base/options.hpp"
#include "base/raw_calls.hpp"
#include "base/regions.hpp"
#include "base/running_time.hpp"
#include "engine/guarded.hpp"
#include "machine/simulation.hpp"
#include "record/record.hpp"
#include "sampling/sampler.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <sched.h>

namespace homing::sampling {
namespace {

/// Seconds between two scans at the least. By reason: a thread that hardly sleeps takes a core.
constexpr double least_interval = 1e-3;
/// The most that Linux is built for (CONFIG_NR_CPUS, x86-64).
constexpr int most_cpus = 8192;

struct State {
    Engine* engine = nullptr;
    Sampler* sampler = nullptr; ///< the engine's
    double interval = 1;
    bool unbound = false;
    HelperThread thread;
};
constinit std::atomic<State*> the_state{nullptr}; ///< never destroyed: used until the very end of the process

/// Threads inherit where they may run, which is one CPU where OpenMP binds: ours may run wherever one of the
/// program's may.
void unbind(Kernel& kernel) {
    cpu_set_t all[most_cpus / CPU_SETSIZE] = {};
    cpu_set_t one[most_cpus / CPU_SETSIZE] = {};
    for (const Kernel::Thread& thread : kernel.threads()) {
        if (::sched_getaffinity(thread.number, sizeof one, one) != 0) continue;
        auto* sum = reinterpret_cast<unsigned char*>(all);
        const auto* more = reinterpret_cast<const unsigned char*>(one);
        for (std::size_t byte = 0; byte < sizeof all; ++byte)
            sum[byte] |= more[byte];
    }
    raw::call(SYS_sched_setaffinity, 0, sizeof all, all);
}

double wake(void* self) noexcept {
    auto& here = *static_cast<State*>(self);
    if (phases::aside()) return -1;
    double pause = here.interval;
    here.engine->guarded([&] {
        const double begin = thread_seconds();
        if (!here.unbound) unbind(here.engine->kernel());
        here.unbound = true;
        const double before = here.engine->statistics().moving;
        here.sampler->scan(*here.engine);
        const double moving = here.engine->statistics().moving - before; // elapsed, so rather too much
        here.sampler->took(std::max(0.0, thread_seconds() - begin - moving));
        pause = here.sampler->pause(here.interval);
    });
    return pause;
}

} // namespace

void begin(Engine& engine) noexcept {
    if (!option_is(Option::mechanism, "sampling")) return;
    if (the_state.load(std::memory_order_acquire)) return;
    State* const state = new (std::nothrow) State;
    if (!state) return; // nothing is sampled; without memory nothing can be said, either
    State& here = *state;
    here.engine = &engine;
    here.interval = std::max(least_interval, option_number(Option::sampling_interval));
    engine.guarded([&] {
        auto sampler = std::make_unique<Sampler>(
            engine.nodes().count(),
            std::max<std::uint64_t>(1, static_cast<std::uint64_t>(option_number(Option::sampling_pages))),
            option_number(Option::threshold));
        here.sampler = sampler.get();
        engine.move_by(std::move(sampler));
        if (!engine.samples_itself())
            record::message(
                record::Level::note,
                "sampling by windows: pages of the next scan are armed at regions and barriers, "
                "and in a long region by the clock; nothing is seen of threads outside of regions");
    });
    the_state.store(&here, std::memory_order_release);
    // On a simulated machine the ends of iterations take its place.
    if (!here.sampler || simulation()) return;
    if (!here.thread.start(wake, &here, here.interval))
        record::message(record::Level::not_done,
                        "the memory management thread could not be made: nothing is sampled");
}

void stop() noexcept {
    if (State* here = the_state.load(std::memory_order_acquire)) here->thread.stop_and_wait();
}
void abandon() noexcept {
    if (State* here = the_state.load(std::memory_order_acquire)) here->thread.abandon();
}

} // namespace homing::sampling
