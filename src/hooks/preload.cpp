// What happens when the library comes into a process, and when it goes. Whether the
// process uses OpenMP shows at its first parallel region; until then only large blocks of memory are noted.
#include "areas/areas.hpp"
#include "base/asymmetric_fence.hpp"
#include "base/inside.hpp"
#include "base/kept_errno.hpp"
#include "base/options.hpp"
#include "base/program_name.hpp"
#include "base/uncancelled.hpp"
#include "counters/by_counters.hpp"
#include "engine/engine.hpp"
#include "first_touch/first_touches.hpp"
#include "hooks/allocator/heap.hpp"
#include "hooks/allocator/own_memory.hpp"
#include "hooks/export.hpp"
#include "hooks/openmp/affinity.hpp"
#include "hooks/own_imports.hpp"
#include "hooks/shadowed.hpp"
#include "hooks/signals/signals.hpp"
#include "hooks/surroundings.hpp"
#include "hooks/syscalls/own_calls.hpp"
#include "machine/machine.hpp"
#include "machine/simulation.hpp"
#include "phases/hybrid.hpp"
#include "phases/replayer.hpp"
#include "record/channel.hpp"
#include "record/record.hpp"
#include "sampling/thread.hpp"

#include <algorithm>
#include <pthread.h>

namespace homing::hooks {
namespace {

/// Of what only the program's own calls need.
void last_rows() noexcept {
    record_affinity();
    replay::write_rows();
    Engine* running = engine();
    FirstTouches* touches = first_touches();
    if (!running || !touches) return;
    try {
        touches->rows(running->watch(), running->nodes());
    } catch (...) {
        record::message(record::Level::not_done, "out of memory: first touches are not in the record");
    }
}

/// At the first parallel region of the process.
phases::Listener* start() noexcept {
    if (FirstTouches* touches = first_touches()) {
        const Inside inside;
        try {
            touches->look();
        } catch (...) {
            record::message(record::Level::not_done, "out of memory: first touches stay in their rings");
        }
    }
    phases::Listener* listener = start_engine();
    if (Engine* running = engine()) {
        counters::begin(*running);
        replay::begin_hybrid(*running);
        sampling::begin(*running);
    }
    return listener;
}

/// Does the program bring an OpenMP runtime? One that is loaded later has made its memory by then.
bool uses_openmp() noexcept {
    return next_definition("GOMP_parallel") || next_definition("__kmpc_fork_call");
}

/// Programs whose runtime must not share a process with us. What our tables know of would be no leak for the
/// last one.
constexpr const char* sanitizers[] = {"__asan_init", "__tsan_init", "__msan_init", "__hwasan_init",
                                      "__lsan_init"};

bool wanted_here() noexcept {
    if (option_is(Option::homing, "off")) return false;
    const char* only = option_text(Option::only);
    return !*only || program_is(only);
}

const char* sanitizer() noexcept {
    for (const char* symbol : sanitizers)
        if (::dlsym(RTLD_DEFAULT, symbol)) return symbol;
    ::dlerror();
    return nullptr;
}

constinit thread_local InFlight forking{nullptr};

/// A forked child is left alone, its memory's policies are as the program has set them: it shares neither our
/// threads nor our rings, and its record is the parent's.
void in_child() noexcept {
    forking.end();
    in_flight::forget_others();
    active_windows.store(nullptr, std::memory_order_release);
    armed_windows.store(nullptr, std::memory_order_release);
    if (Engine* running = engine()) {
        running->policies().after_fork_in_child();
        running->abandon();
        sampling::abandon();
    }
    if (Simulation* simulated = simulation()) simulated->abandon();
    phases::step_aside();
    note_no_blocks();
    if (FirstTouches* touches = first_touches()) touches->abandon();
    record::abandon();
}

/// No window is open in the child: another thread might have been about to open a granule, and is not there.
void before_fork() noexcept {
    InFlight call;
    call.add_across_functions(all_memory);
    Windows::begin(call);
    forking = call;
    if (Engine* running = engine()) running->policies().before_fork();
}

void after_fork() noexcept {
    if (Engine* running = engine()) running->policies().after_fork();
    forking.end();
}

void step_aside() noexcept {
    phases::step_aside();
    note_no_blocks();
}

__attribute__((constructor)) void enter() noexcept {
    const KeptErrno kept;
    const Inside inside;
    look_up_exports();
    find_shadowed();
    bind_own_imports();
    keep_options();
    keep_process_cpus();
    keep_own_memory_whole();
    know_c_library();
    prepare_asymmetric_fences();
    in_flight::prepare();
    if (homing_prepare_simulation) homing_prepare_simulation();
    record::channel::join();
    if (!wanted_here()) {
        record::channel::decline();
        step_aside();
    } else if (simulation()) {
        note_blocks_from(option_size(Option::area_minimum));
        lend_services({nullptr, nullptr, last_rows, nullptr}); // nothing is protected, nothing is in the way
        phases::set_starter(start);
        ::pthread_atfork(nullptr, nullptr, in_child);
    } else if (const char* symbol = sanitizer()) {
        step_aside();
        record::open(option_text(Option::record));
        record::fact("end", "stepped aside");
        record::message(record::Level::note,
                        std::string("a sanitizer is at work (") + symbol + "): homing stepped aside");
        record::close();
    } else if (option_number(Option::assume_nodes) < 2 && quick_node_count() < 2) {
        step_aside();
    } else {
        // Blocks that the user does not want to be watched are noted, too: the record names them.
        note_blocks_from(std::min(option_size(Option::area_minimum), unwatched_minimum), true);
        lend_services({prepare_handler, exclude_alternate_stacks, last_rows, surroundings_allow,
                       keeps_windows_in_regions, makes_own_calls, true});
        phases::set_starter(start);
        if (option_is(Option::first_touch, "on") && uses_openmp()) watch_first_touches(linux_kernel());
        ::pthread_atfork(before_fork, after_fork, in_child);
    }
}

__attribute__((destructor)) void leave() noexcept {
    const Uncancelled uncancelled;
    sampling::stop();
    if (Simulation* simulated = simulation())
        simulated->finish(engine());
    else if (Engine* running = engine())
        running->finish();
}

} // namespace
} // namespace homing::hooks
