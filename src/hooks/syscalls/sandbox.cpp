#include "hooks/syscalls/sandbox.hpp"

#include "base/inside.hpp"
#include "base/pages.hpp"
#include "base/raw_calls.hpp"
#include "base/regions.hpp"
#include "base/uncancelled.hpp"
#include "engine/engine.hpp"
#include "first_touch/first_touches.hpp"
#include "hooks/allocator/heap.hpp"
#include "hooks/signals/signals.hpp"
#include "hooks/syscalls/guards.hpp"
#include "record/record.hpp"
#include "sampling/thread.hpp"
#include "sources/windows.hpp"

#include <ctime>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace homing::hooks {
namespace {

/// May the filter do anything but let calls pass or refuse them?
bool is_deadly(const sock_fprog* program) noexcept {
    if (!program || !program->filter) return false; // the kernel refuses it
    for (const sock_filter* at = program->filter; at != program->filter + program->len; ++at) {
        if (BPF_CLASS(at->code) != BPF_RET) continue;
        if (BPF_RVAL(at->code) != BPF_K) return true; // computed
        const auto action = at->k & SECCOMP_RET_ACTION_FULL;
        if (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG && action != SECCOMP_RET_ERRNO)
            return true;
    }
    return false;
}

/// Does the call put the thread, or all of them, under a filter?
bool sets_filter(long number, const long* arguments) noexcept {
    return (number == SYS_seccomp && arguments[0] == SECCOMP_SET_MODE_FILTER) ||
           (number == SYS_prctl && arguments[0] == PR_SET_SECCOMP && arguments[1] == SECCOMP_MODE_FILTER);
}

/// May this thread take away and give back the right to access a page?
bool may_protect() noexcept {
    const std::size_t bytes = page_bytes();
    void* page = raw::map_memory(bytes);
    if (!page) return false;
    const bool may = raw::call(SYS_mprotect, page, bytes, PROT_NONE) == 0 &&
                     raw::call(SYS_mprotect, page, bytes, PROT_READ | PROT_WRITE) == 0;
    raw::unmap(page, bytes);
    return may;
}

bool is_deadly_call(long number, const long* arguments) noexcept {
    const auto* program = reinterpret_cast<const sock_fprog*>(arguments[2]);
    if (number == SYS_seccomp)
        return arguments[0] == SECCOMP_SET_MODE_STRICT ||
               (arguments[0] == SECCOMP_SET_MODE_FILTER && is_deadly(program));
    if (number != SYS_prctl || arguments[0] != PR_SET_SECCOMP) return false;
    return arguments[1] == SECCOMP_MODE_STRICT || (arguments[1] == SECCOMP_MODE_FILTER && is_deadly(program));
}

} // namespace

void filter_may_come(long number, const long* arguments) noexcept {
    if (!is_deadly_call(number, arguments)) return;
    const Inside inside;
    const Uncancelled uncancelled;
    Windows* windows = active_windows.load(std::memory_order_acquire);
    const bool was_open = windows && windows->is_open();
    if (Engine* running = engine()) {
        record::message(
            record::Level::warning,
            "the program puts itself under a filter of system calls that ends it (seccomp): homing "
            "stepped aside");
        running->finish();
        running->end_helper();
        sampling::stop();
    }
    phases::step_aside();
    note_no_blocks();
    if (FirstTouches* touches = first_touches()) touches->abandon();
    give_no_more_stacks();
    in_flight::make_no_calls();
    const timespec nap{0, 1'000'000}; // faults of other threads may be on their way to our handler
    if (was_open) raw::call(SYS_nanosleep, &nap, nullptr);
    hand_back_handler();
}

FilterCall::FilterCall(long number, const long* arguments) noexcept
    : comes_(!is_inside() && sets_filter(number, arguments)) {
    if (!comes_) return;
    call_ = InFlight();
    call_.add_across_functions(all_memory);
    Windows::begin(call_);
}

void FilterCall::returned(long result) noexcept {
    if (!comes_) return;
    if (result >= 0 && !may_protect())
        no_more_windows("a filter of system calls (seccomp) refuses to change the right to access pages");
    call_.end();
}

} // namespace homing::hooks
