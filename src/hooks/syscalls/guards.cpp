// What forbids windows, or keeps memory out of them for good: memory that is used at any time, not only while
// a call of the program runs (those are in calls_*.cpp).
#include "hooks/syscalls/guards.hpp"

#include "hooks/signals/signals.hpp"
#include "hooks/syscalls/calls.hpp"

#include <aio.h>
#include <algorithm>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <dlfcn.h>
#include <mqueue.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <ucontext.h>

namespace homing::hooks {

void no_more_windows(const char* reason) noexcept {
    forbid_windows(reason);
    if (Windows* windows = active_windows.load(std::memory_order_acquire)) windows->forbid(reason);
}

void never_arm(const void* memory, std::size_t bytes) noexcept {
    if (!memory || bytes == 0) return;
    // Whole pages: of many small objects each page is noted once.
    const Address begin = align_down(reinterpret_cast<Address>(memory), page_bytes());
    const Address end = align_up(reinterpret_cast<Address>(memory) + bytes, page_bytes());
    note_alternate_stack(reinterpret_cast<const void*>(begin), end - begin);
}

namespace {

/// What a thread's stack has by default (RLIMIT_STACK).
constexpr std::size_t usual_stack = std::size_t{8} << 20;

/// Where the stack begins is not known: it may reach so far.
void never_arm_stack_below(void* top) noexcept {
    const auto end = reinterpret_cast<Address>(top);
    const std::size_t bytes = std::min<std::size_t>(end, usual_stack);
    never_arm(reinterpret_cast<const void*>(end - bytes), bytes);
}

} // namespace
} // namespace homing::hooks

using homing::hooks::Real;
using homing::hooks::Signature;

// A stream's buffer is read and filled by the C library itself, at any time: never to be taken away.
HOMING_HOOK(setvbuf, (FILE * file, char* buffer, int mode, std::size_t n)) {
    static constinit Real<Signature<&::setvbuf>::Function> real{"setvbuf"};
    homing::hooks::never_arm(buffer, n);
    return real(file, buffer, mode, n);
}
extern "C" int _IO_setvbuf(FILE*, char*, int, std::size_t);
HOMING_HOOK(_IO_setvbuf, (FILE * file, char* buffer, int mode, std::size_t n)) {
    static constinit Real<Signature<&::_IO_setvbuf>::Function> real{"_IO_setvbuf"};
    homing::hooks::never_arm(buffer, n);
    return real(file, buffer, mode, n);
}
// NOLINTBEGIN(bugprone-unsafe-functions): the program has called it.
HOMING_HOOK(setbuf, (FILE * file, char* buffer)) {
    static constinit Real<Signature<&::setbuf>::Function> real{"setbuf"};
    homing::hooks::never_arm(buffer, BUFSIZ);
    real(file, buffer);
}
// NOLINTEND(bugprone-unsafe-functions)
HOMING_HOOK(setbuffer, (FILE * file, char* buffer, std::size_t n)) {
    static constinit Real<Signature<&::setbuffer>::Function> real{"setbuffer"};
    homing::hooks::never_arm(buffer, n);
    real(file, buffer, n);
}

// Work that threads of the C library go on with after the function has returned, with all signals blocked.
#define HOMING_FORBIDS(name, parameters, reason, ...)                                                        \
    HOMING_HOOK(name, parameters) {                                                                          \
        static constinit Real<Signature<&::name>::Function> real{#name};                                     \
        homing::hooks::no_more_windows(reason);                                                              \
        return real(__VA_ARGS__);                                                                            \
    }
HOMING_FORBIDS(aio_read, (aiocb * request), "asynchronous input is used", request)
HOMING_FORBIDS(aio_write, (aiocb * request), "asynchronous output is used", request)
HOMING_FORBIDS(aio_read64, (aiocb64 * request), "asynchronous input is used", request)
HOMING_FORBIDS(aio_write64, (aiocb64 * request), "asynchronous output is used", request)
HOMING_FORBIDS(lio_listio, (int mode, aiocb* const* list, int n, sigevent* event),
               "asynchronous input is used", mode, list, n, event)
HOMING_FORBIDS(lio_listio64, (int mode, aiocb64* const* list, int n, sigevent* event),
               "asynchronous input is used", mode, list, n, event)
HOMING_FORBIDS(getaddrinfo_a, (int mode, gaicb** list, int n, sigevent* event),
               "names are looked up by threads that block SIGSEGV", mode, list, n, event)

// What it loads has a C library of its own, whose functions have no hooks.
HOMING_HOOK(dlmopen, (Lmid_t where, const char* file, int mode)) {
    using namespace homing::hooks;
    static constinit Real<Signature<&::dlmopen>::Function> real{"dlmopen"};
    if (where != LM_ID_BASE)
        no_more_windows("libraries are loaded beside a C library of their own (dlmopen)");
    return real(where, file, mode);
}

// Timers that run functions in threads of the C library: those block SIGSEGV.
HOMING_HOOK(timer_create, (clockid_t clock, sigevent* event, timer_t* timer)) {
    using namespace homing::hooks;
    static constinit Real<Signature<&::timer_create>::Function> real{"timer_create"};
    if (!real.is_ready()) return early(real, clock, event, timer);
    if (event && event->sigev_notify == SIGEV_THREAD)
        no_more_windows("a timer runs functions in threads that block SIGSEGV");
    homing::InFlight call;
    begin(call, object(event), object(timer));
    return finish(call, real, clock, event, timer);
}
HOMING_HOOK(mq_notify, (mqd_t queue, const sigevent* event)) {
    using namespace homing::hooks;
    static constinit Real<Signature<&::mq_notify>::Function> real{"mq_notify"};
    if (!real.is_ready()) return early(real, queue, event);
    if (event && event->sigev_notify == SIGEV_THREAD)
        no_more_windows("a message queue runs functions in threads that block SIGSEGV");
    homing::InFlight call;
    begin(call, object(event));
    return finish(call, real, queue, event);
}

// Stacks of the program's own: where the page under the stack pointer is taken away, the kernel has no place
// to report the fault.
HOMING_HOOK(pthread_attr_setstack, (pthread_attr_t * attribute, void* stack, std::size_t n)) {
    static constinit Real<Signature<&::pthread_attr_setstack>::Function> real{"pthread_attr_setstack"};
    homing::hooks::never_arm(stack, n);
    return real(attribute, stack, n);
}

// A child that shares our memory and runs on a stack of the program's: of such a stack only the upper end is
// known.
extern "C" int __clone(int (*)(void*), void*, int, void*, ...);
#define HOMING_CLONE(name)                                                                                   \
    HOMING_HOOK(name, (int (*function)(void*), void* stack, int flags, void* argument, ...)) {               \
        using namespace homing::hooks;                                                                       \
        static constinit Real<Signature<&::name>::Function> real{#name};                                     \
        va_list list;                                                                                        \
        va_start(list, argument);                                                                            \
        void* const parent = va_arg(list, void*);                                                            \
        void* const local = va_arg(list, void*);                                                             \
        void* const child = va_arg(list, void*);                                                             \
        va_end(list);                                                                                        \
        if (!real.is_ready()) return early(real, function, stack, flags, argument, parent, local, child);    \
        if (stack && flags & CLONE_VM) never_arm_stack_below(stack);                                         \
        return real(function, stack, flags, argument, parent, local, child);                                 \
    }
HOMING_CLONE(clone)
HOMING_CLONE(__clone)

namespace {

/// The kernel reads and writes the signal mask of a context: hands off its pages from now on.
void keep_context(const ucontext_t* context) noexcept {
    if (homing::Windows* windows = homing::active_windows.load(std::memory_order_acquire))
        windows->exclude_if_watched(homing::range_of(context, sizeof *context));
}

void enter_context(const ucontext_t* context) noexcept {
    homing::in_flight::has_several_stacks();
    if (!context) return;
    keep_context(context);
    if (context->uc_stack.ss_sp)
        homing::hooks::note_alternate_stack(context->uc_stack.ss_sp, context->uc_stack.ss_size);
}

} // namespace

// Every stack that was made by makecontext is entered by one of these.
HOMING_HOOK(swapcontext, (ucontext_t * from, const ucontext_t* to)) {
    static constinit Real<Signature<&::swapcontext>::Function> real{"swapcontext"};
    if (from) keep_context(from);
    enter_context(to);
    return real(from, to);
}
HOMING_HOOK(setcontext, (const ucontext_t* to)) {
    static constinit Real<Signature<&::setcontext>::Function> real{"setcontext"};
    enter_context(to);
    return real(to);
}
