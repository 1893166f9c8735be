// Calls that wait, for what is there already (calls.h).
#include "calls.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>

int __poll(struct pollfd*, nfds_t, int);
int __poll_chk(struct pollfd*, nfds_t, int, size_t);
int __ppoll_chk(struct pollfd*, nfds_t, const struct timespec*, const sigset_t*, size_t);
int __select(int, fd_set*, fd_set*, fd_set*, struct timeval*);
int __nanosleep(const struct timespec*, struct timespec*);
pid_t __wait(int*);
pid_t __waitpid(pid_t, int*, int);
#define READY IN(struct pollfd, zero, POLLIN, 0)
static fd_set* set_of(int descriptor) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(descriptor, &set);
    return (fd_set*)place(&set, sizeof set);
}
static sigset_t* of_signal(int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    return (sigset_t*)place(&set, sizeof set);
}
CALL(poll, poll(READY, 1, 0))
CALL(__poll, __poll(READY, 1, 0))
CALL(__poll_chk, __poll_chk(READY, 1, 0, sizeof(struct pollfd)))
CALL(ppoll, ppoll(READY, 1, OUT(struct timespec), of_signal(SIGUSR2)))
CALL(__ppoll_chk, __ppoll_chk(READY, 1, OUT(struct timespec), of_signal(SIGUSR2), sizeof(struct pollfd)))
CALL(select, select(zero + 1, set_of(zero), NULL, set_of(zero), OUT(struct timeval)))
CALL(__select, __select(zero + 1, set_of(zero), set_of(zero), NULL, OUT(struct timeval)))
CALL(pselect, pselect(zero + 1, set_of(zero), NULL, NULL, OUT(struct timespec), of_signal(SIGUSR2)))
static int events; // of the ready end of a pipe
static int ready[2];
CALLS(epoll_ctl, const int own = epoll_create1(0);
      const int result = epoll_ctl(own, EPOLL_CTL_ADD, ready[0], IN(struct epoll_event, EPOLLIN, {0}));
      close(own); return result;)
CALL(epoll_wait, epoll_wait(events, SPACE(4 * sizeof(struct epoll_event)), 4, 0))
CALL(epoll_pwait, epoll_pwait(events, SPACE(4 * sizeof(struct epoll_event)), 4, 0, of_signal(SIGUSR2)))
#if __GLIBC_PREREQ(2, 35)
CALL(epoll_pwait2,
     epoll_pwait2(events, SPACE(4 * sizeof(struct epoll_event)), 4, OUT(struct timespec), of_signal(SIGUSR2)))
#endif
CALL(nanosleep, nanosleep(IN(struct timespec, 0, 1000), OUT(struct timespec)))
CALL(__nanosleep, __nanosleep(IN(struct timespec, 0, 1000), OUT(struct timespec)))
CALL(clock_nanosleep, clock_nanosleep(CLOCK_MONOTONIC, 0, IN(struct timespec, 0, 1000), OUT(struct timespec)))
CALL(thrd_sleep, thrd_sleep(IN(struct timespec, 0, 1000), OUT(struct timespec)))
CALL(sigpending, sigpending(OUT(sigset_t)))
// A signal that waits for the thread.
static void pend(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_kill(pthread_self(), SIGUSR2);
}
CALLS(sigwait, pend(); return sigwait(of_signal(SIGUSR2), OUT(int));)
CALLS(sigwaitinfo, pend(); return sigwaitinfo(of_signal(SIGUSR2), OUT(siginfo_t));)
CALLS(sigtimedwait, pend(); return sigtimedwait(of_signal(SIGUSR2), OUT(siginfo_t), OUT(struct timespec));)
CALL(signalfd, closed(signalfd(-1, of_signal(SIGUSR2), 0)))
static pid_t child(void) {
    const pid_t made = fork();
    if (made == 0) _exit(3);
    return made;
}
static long of_child(pid_t made, pid_t result, const int* status) {
    return result == made && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
}
#define CHILD(call)                                                                                          \
    const pid_t made = child();                                                                              \
    int* const status = OUT(int);                                                                            \
    const pid_t result = call;                                                                               \
    if (result < 0) waitpid(made, NULL, 0);                                                                  \
    return of_child(made, result, status);
CALLS(wait, CHILD(wait(status)))
CALLS(__wait, CHILD(__wait(status)))
CALLS(waitpid, CHILD(waitpid(made, status, 0)))
CALLS(__waitpid, CHILD(__waitpid(made, status, 0)))
CALLS(wait3, CHILD(wait3(status, 0, OUT(struct rusage))))
CALLS(wait4, CHILD(wait4(made, status, 0, OUT(struct rusage))))
CALLS(waitid, const pid_t made = child(); siginfo_t* const about = OUT(siginfo_t);
      return waitid(P_PID, (id_t)made, about, WEXITED) == 0 ? about->si_status : -1;)
static int semaphores;
CALL(semop, semop(semaphores, IN(struct sembuf, 0, 1, 0), 1))
CALL(semtimedop, semtimedop(semaphores, IN(struct sembuf, 0, 1, 0), 1, IN(struct timespec, 1, 0)))
CALLS(
    semctl,
    union {
        int value;
        unsigned short* all;
    } argument = {.all = (unsigned short*)SPACE(16)};
    return semctl(semaphores, 0, GETALL, argument);)

int main(int count, char** words) {
    begin_calls();
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    expect(pipe(ready) == 0 && write(ready[1], "x", 1) == 1, "a pipe that is ready");
    events = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(events, EPOLL_CTL_ADD, ready[0], &event);
    const int result = run_calls(count, words);
    semctl(semaphores, 0, IPC_RMID);
    return result;
}
