// Calls that wait: for events, for time, for signals, for children, for semaphores of System V.
#include "hooks/signals/masks.hpp"
#include "hooks/syscalls/calls.hpp"

#include <aio.h>
#include <csignal>
#include <ctime>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <threads.h>

extern "C" {
int __poll(pollfd*, nfds_t, int);
int __poll_chk(pollfd*, nfds_t, int, std::size_t);
int __ppoll_chk(pollfd*, nfds_t, const timespec*, const sigset_t*, std::size_t);
int __select(int, fd_set*, fd_set*, fd_set*, timeval*);
int __nanosleep(const timespec*, timespec*);
pid_t __wait(int*);
pid_t __waitpid(pid_t, int*, int);
}

HOMING_CALL3(poll, objects(a, b))
HOMING_CALL3(__poll, objects(a, b))
HOMING_CALL4(__poll_chk, objects(a, b))
HOMING_CALL5(select, set(b, a), set(c, a), set(d, a), object(e))
HOMING_CALL5(__select, set(b, a), set(c, a), set(d, a), object(e))
HOMING_CALL4(epoll_ctl, object(d))
HOMING_CALL4(epoll_wait, objects(b, length(c)))

// These wait under a mask of the program's. A handler that runs meanwhile may touch an array, so the kernel
// gets a mask that lets the fault through, as of sigprocmask (hooks/signals/masks.hpp).
#define HOMING_WAIT(name, parameters, memory, mask, ...)                                                     \
    HOMING_HOOK(name, parameters) {                                                                          \
        using namespace homing::hooks;                                                                       \
        static constinit Real<Signature<&::name>::Function> real{#name};                                     \
        if (!real.is_ready()) return early(real, __VA_ARGS__);                                               \
        const bool translated = translates_masks();                                                          \
        GivenMask given{translated ? mask : nullptr};                                                        \
        if (translated) mask = given.get();                                                                  \
        homing::InFlight call;                                                                               \
        begin(call, HOMING_LIST memory);                                                                     \
        return finish(call, real, __VA_ARGS__);                                                              \
    }

HOMING_WAIT(ppoll, (pollfd * a, nfds_t b, const timespec* c, const sigset_t* d), (objects(a, b), object(c)),
            d, a, b, c, d)
HOMING_WAIT(__ppoll_chk, (pollfd * a, nfds_t b, const timespec* c, const sigset_t* d, std::size_t e),
            (objects(a, b), object(c)), d, a, b, c, d, e)
HOMING_WAIT(pselect, (int a, fd_set* b, fd_set* c, fd_set* d, const timespec* e, const sigset_t* f),
            (set(b, a), set(c, a), set(d, a), object(e)), f, a, b, c, d, e, f)
HOMING_WAIT(epoll_pwait, (int a, epoll_event* b, int c, int d, const sigset_t* e), (objects(b, length(c))), e,
            a, b, c, d, e)
#if __GLIBC_PREREQ(2, 35)
HOMING_WAIT(epoll_pwait2, (int a, epoll_event* b, int c, const timespec* d, const sigset_t* e),
            (objects(b, length(c)), object(d)), e, a, b, c, d, e)
#endif

HOMING_CALL2(nanosleep, object(a), object(b))
HOMING_CALL2(__nanosleep, object(a), object(b))
HOMING_CALL4(clock_nanosleep, object(c), object(d))
HOMING_CALL2(thrd_sleep, object(a), object(b))

HOMING_CALL1(sigpending, object(a))
HOMING_CALL2(sigwait, object(a), object(b))
HOMING_CALL2(sigwaitinfo, object(a), object(b))
HOMING_CALL3(sigtimedwait, object(a), object(b), object(c))
HOMING_CALL3(signalfd, object(b))

HOMING_CALL1(wait, object(a))
HOMING_CALL1(__wait, object(a))
HOMING_CALL3(waitpid, object(b))
HOMING_CALL3(__waitpid, object(b))
HOMING_CALL3(wait3, object(a), object(c))
HOMING_CALL4(wait4, object(b), object(d))
HOMING_CALL4(waitid, object(c))

HOMING_CALL3(semop, objects(b, c))
HOMING_CALL4(semtimedop, objects(b, c), object(d))
