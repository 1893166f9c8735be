// Calls that wait: for events, for time, for signals, for children, for semaphores of System V.
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

namespace {
/// A set of descriptors below n: whole words, which may be more than an fd_set has.
homing::hooks::bytes set(const fd_set* descriptors, int n) noexcept {
    constexpr int word = 8 * sizeof(long);
    return {descriptors, n > 0 ? static_cast<std::size_t>((n + word - 1) / word) * sizeof(long) : 0};
}
} // namespace

HOMING_CALL3(poll, objects(a, b))
HOMING_CALL3(__poll, objects(a, b))
HOMING_CALL4(__poll_chk, objects(a, b))
HOMING_CALL4(ppoll, objects(a, b), object(c), object(d))
HOMING_CALL5(__ppoll_chk, objects(a, b), object(c), object(d))
HOMING_CALL5(select, set(b, a), set(c, a), set(d, a), object(e))
HOMING_CALL5(__select, set(b, a), set(c, a), set(d, a), object(e))
HOMING_CALL6(pselect, set(b, a), set(c, a), set(d, a), object(e), object(f))
HOMING_CALL4(epoll_ctl, object(d))
HOMING_CALL4(epoll_wait, objects(b, length(c)))
HOMING_CALL5(epoll_pwait, objects(b, length(c)), object(e))
#if __GLIBC_PREREQ(2, 35)
HOMING_CALL5(epoll_pwait2, objects(b, length(c)), object(d), object(e))
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
