// Calls that ask the system or tell it something, and calls by number (calls.h).
#include "calls.h"
#include <arpa/inet.h>
#include <grp.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#if __GLIBC_PREREQ(2, 36)
#include <sys/pidfd.h>
#endif
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <time.h>

int __connect(int, const struct sockaddr*, socklen_t);
int __gethostname_chk(char*, size_t, size_t);
int __getdomainname_chk(char*, size_t, size_t);
int __getgroups_chk(int, gid_t*, size_t);
int __pipe(int*);
int __gettimeofday(struct timeval*, void*);
int __clock_gettime(clockid_t, struct timespec*);
int __adjtimex(struct timex*);
int __getrlimit(int, struct rlimit*);
int __sched_getparam(pid_t, struct sched_param*);
int __sched_setscheduler(pid_t, int, const struct sched_param*);
int __fcntl(int, int, ...);
int bindresvport(int, struct sockaddr_in*);
int capget(cap_user_header_t, cap_user_data_t);
int capset(cap_user_header_t, const cap_user_data_t);
int init_module(void*, unsigned long, const char*);
int delete_module(const char*, unsigned);
#define NAMED IN(struct sockaddr_in, .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)})
static struct sockaddr_in listening_at;
static int listener;
CALLS(bind, const int s = socket(AF_INET, SOCK_STREAM, 0);
      const int result = bind(s, (struct sockaddr*)NAMED, sizeof(struct sockaddr_in)); close(s);
      return result;)
CALLS(bindresvport, const int s = socket(AF_INET, SOCK_STREAM, 0); const int result = bindresvport(s, NAMED);
      closed(s); return result;)
static long to_listener(int connects(int, const struct sockaddr*, socklen_t)) {
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    const int result =
        connects(s, (struct sockaddr*)place(&listening_at, sizeof listening_at), sizeof listening_at);
    closed(s);
    closed(accept(listener, NULL, NULL));
    return result;
}
static int connects(int s, const struct sockaddr* to, socklen_t length) { return connect(s, to, length); }
CALL(connect, to_listener(connects))
CALL(__connect, to_listener(__connect))
static int caller(void) {
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    expect(connect(s, (struct sockaddr*)&listening_at, sizeof listening_at) == 0, "connect from elsewhere");
    return s;
}
CALLS(accept, const int s = caller();
      const long result = closed(accept(listener, (struct sockaddr*)OUT(struct sockaddr_in),
                                        IN(socklen_t, 16)));
      closed(s); return result;)
CALLS(accept4, const int s = caller();
      const long result = closed(accept4(listener, (struct sockaddr*)OUT(struct sockaddr_in),
                                         IN(socklen_t, 16), 0));
      closed(s); return result;)
CALL(getsockname, getsockname(listener, (struct sockaddr*)OUT(struct sockaddr_in), IN(socklen_t, 16)))
CALL(getpeername, getpeername(pair[0], (struct sockaddr*)OUT(struct sockaddr_un), IN(socklen_t, 100)))
CALL(getsockopt, getsockopt(listener, SOL_SOCKET, SO_TYPE, OUT(int), IN(socklen_t, sizeof(int))))
CALL(setsockopt, setsockopt(listener, SOL_SOCKET, SO_KEEPALIVE, IN(int, 1), sizeof(int)))
CALLS(
    socketpair, int* const both = (int*)SPACE(2 * sizeof(int));
    const int result = socketpair(AF_UNIX, SOCK_STREAM, 0, both); if (result == 0) {
        close(both[0]);
        close(both[1]);
    } return result;)
static long close_both(int result, const int* both) {
    if (result == 0) {
        close(both[0]);
        close(both[1]);
    }
    return result;
}
CALLS(pipe, int* const both = (int*)SPACE(2 * sizeof(int)); return close_both(pipe(both), both);)
CALLS(__pipe, int* const both = (int*)SPACE(2 * sizeof(int)); return close_both(__pipe(both), both);)
CALLS(pipe2, int* const both = (int*)SPACE(2 * sizeof(int)); return close_both(pipe2(both, 0), both);)
CALL(clock_gettime, clock_gettime(CLOCK_THREAD_CPUTIME_ID, OUT(struct timespec)))
CALL(clock_settime, clock_settime(CLOCK_REALTIME, IN(struct timespec, 1, 2000000000)))
CALL(clock_getres, clock_getres(CLOCK_MONOTONIC, OUT(struct timespec)))
CALL(clock_adjtime, some(clock_adjtime(CLOCK_REALTIME, OUT(struct timex))))
CALL(timespec_get, timespec_get(OUT(struct timespec), TIME_UTC))
#if __GLIBC_PREREQ(2, 34)
CALL(timespec_getres, timespec_getres(OUT(struct timespec), TIME_UTC))
#endif
CALL(time, some(time(OUT(time_t))))
CALL(gettimeofday, gettimeofday(OUT(struct timeval), OUT(struct timezone)))
CALL(__gettimeofday, __gettimeofday(OUT(struct timeval), OUT(struct timezone)))
CALL(settimeofday, settimeofday(IN(struct timeval, 1, 2000000), NULL))
CALL(adjtimex, some(adjtimex(OUT(struct timex))))
CALL(__adjtimex, some(__adjtimex(OUT(struct timex))))
CALL(ntp_adjtime, some(ntp_adjtime(OUT(struct timex))))
CALL(times, some(times(OUT(struct tms))))
static timer_t own_timer;
static int timer_descriptor;
CALLS(timer_create, struct sigevent* const event = IN(struct sigevent, .sigev_notify = SIGEV_NONE);
      timer_t* const made = OUT(timer_t); const int result = timer_create(CLOCK_MONOTONIC, event, made);
      if (result == 0) timer_delete(*made); return result;)
CALL(getitimer, getitimer(ITIMER_REAL, OUT(struct itimerval)))
CALL(setitimer, setitimer(ITIMER_REAL, OUT(struct itimerval), OUT(struct itimerval)))
CALL(timer_gettime, timer_gettime(own_timer, OUT(struct itimerspec)))
CALL(timer_settime, timer_settime(own_timer, 0, OUT(struct itimerspec), OUT(struct itimerspec)))
CALL(timerfd_gettime, timerfd_gettime(timer_descriptor, OUT(struct itimerspec)))
CALL(timerfd_settime, timerfd_settime(timer_descriptor, 0, OUT(struct itimerspec), OUT(struct itimerspec)))
static struct rlimit limit; // as it is
static struct rlimit64 limit64;
CALL(getrlimit, getrlimit(RLIMIT_NOFILE, OUT(struct rlimit)))
CALL(__getrlimit, __getrlimit(RLIMIT_NOFILE, OUT(struct rlimit)))
CALL(getrlimit64, getrlimit64(RLIMIT_NOFILE, OUT(struct rlimit64)))
CALL(setrlimit, setrlimit(RLIMIT_NOFILE, (struct rlimit*)place(&limit, sizeof limit)))
CALL(setrlimit64, setrlimit64(RLIMIT_NOFILE, (struct rlimit64*)place(&limit64, sizeof limit64)))
CALL(prlimit, prlimit(0, RLIMIT_NOFILE, (struct rlimit*)place(&limit, sizeof limit), OUT(struct rlimit)))
CALL(prlimit64,
     prlimit64(0, RLIMIT_NOFILE, (struct rlimit64*)place(&limit64, sizeof limit64), OUT(struct rlimit64)))
CALL(getrusage, getrusage(RUSAGE_SELF, OUT(struct rusage)))
CALL(sysinfo, sysinfo(OUT(struct sysinfo)))
CALL(uname, uname(OUT(struct utsname)))
static char host[256];
static char domain[256];
CALL(gethostname, gethostname(SPACE(256), 256))
CALL(__gethostname_chk, __gethostname_chk(SPACE(256), 256, 256))
CALL(sethostname, sethostname(P(host), strlen(host)))
CALL(getdomainname, getdomainname(SPACE(256), 256))
CALL(__getdomainname_chk, __getdomainname_chk(SPACE(256), 256, 256))
CALL(setdomainname, setdomainname(P(domain), strlen(domain)))
CALL(klogctl, some(klogctl(3, SPACE(100), 100)))
static gid_t groups[64];
static int group_count;
CALL(getgroups, getgroups(64, SPACE(64 * sizeof(gid_t))))
CALL(__getgroups_chk, __getgroups_chk(64, SPACE(64 * sizeof(gid_t)), 64 * sizeof(gid_t)))
CALL(setgroups, setgroups((size_t)group_count, (gid_t*)place(groups, sizeof groups)))
CALL(getresuid, getresuid(OUT(uid_t), OUT(uid_t), OUT(uid_t)))
CALL(getresgid, getresgid(OUT(gid_t), OUT(gid_t), OUT(gid_t)))
static struct __user_cap_data_struct capabilities[2];
#define CAPABILITIES IN(struct __user_cap_header_struct, _LINUX_CAPABILITY_VERSION_3, 0)
CALL(capget, capget(CAPABILITIES, (cap_user_data_t)SPACE(sizeof capabilities)))
CALL(capset, capset(CAPABILITIES, (cap_user_data_t)place(capabilities, sizeof capabilities)))
static cpu_set_t cpus;
CALL(sched_getaffinity, sched_getaffinity(0, sizeof cpus, OUT(cpu_set_t)))
CALL(sched_setaffinity, sched_setaffinity(0, sizeof cpus, (cpu_set_t*)place(&cpus, sizeof cpus)))
CALL(pthread_getaffinity_np, pthread_getaffinity_np(pthread_self(), sizeof cpus, OUT(cpu_set_t)))
CALL(pthread_setaffinity_np,
     pthread_setaffinity_np(pthread_self(), sizeof cpus, (cpu_set_t*)place(&cpus, sizeof cpus)))
CALL(sched_getparam, sched_getparam(0, OUT(struct sched_param)))
CALL(__sched_getparam, __sched_getparam(0, OUT(struct sched_param)))
CALL(sched_setparam, sched_setparam(0, OUT(struct sched_param)))
CALL(sched_setscheduler, sched_setscheduler(0, SCHED_OTHER, OUT(struct sched_param)))
CALL(__sched_setscheduler, __sched_setscheduler(0, SCHED_OTHER, OUT(struct sched_param)))
CALL(sched_rr_get_interval, sched_rr_get_interval(0, OUT(struct timespec)))
CALL(pthread_setschedparam, pthread_setschedparam(pthread_self(), SCHED_OTHER, OUT(struct sched_param)))
CALL(pthread_setname_np, pthread_setname_np(pthread_self(), P("calls")))
CALL(pthread_getname_np, pthread_getname_np(pthread_self(), SPACE(100), 100))
CALL(getcpu, getcpu(OUT(unsigned), OUT(unsigned)))
CALL(mincore, mincore(array, 1 << 16, SPACE(16)))
static int shared_memory;
CALL(msgctl, msgctl(queue_of_messages, IPC_STAT, OUT(struct msqid_ds)))
CALL(shmctl, shmctl(shared_memory, IPC_STAT, OUT(struct shmid_ds)))
CALL(mq_getattr, mq_getattr(posix_queue, OUT(struct mq_attr)))
CALL(mq_setattr, mq_setattr(posix_queue, IN(struct mq_attr, .mq_flags = O_NONBLOCK), OUT(struct mq_attr)))
CALLS(mq_notify, const int result = mq_notify(posix_queue, IN(struct sigevent, .sigev_notify = SIGEV_NONE));
      mq_notify(posix_queue, NULL); return result;)
CALL(init_module, init_module(SPACE(4096), 4096, P("")))
CALL(delete_module, delete_module(P("no_module_of_this_name"), 0))
#if __GLIBC_PREREQ(2, 36)
CALLS(pidfd_send_signal, const int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
      const long result = syscall(SYS_pidfd_send_signal, self, 0, NULL, 0) ||
                          pidfd_send_signal(self, 0, IN(siginfo_t, .si_code = SI_QUEUE), 0);
      closed(self); return result;)
CALLS(process_madvise, const int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
      const long result = process_madvise(self, list(), 2, MADV_COLD, 0); closed(self);
      return result < 0 && errno != EFAULT ? -2 : result;)
#endif
CALL(ioctl, ioctl(ends[0], FIONREAD, OUT(int)))
CALL(fcntl, fcntl(file, F_GETLK, IN(struct flock, .l_type = F_RDLCK, .l_whence = SEEK_SET)))
CALL(fcntl64, fcntl64(file, F_GETLK64, IN(struct flock64, .l_type = F_RDLCK, .l_whence = SEEK_SET)))
CALL(__fcntl, __fcntl(file, F_GETLK, IN(struct flock, .l_type = F_RDLCK, .l_whence = SEEK_SET)))
CALL(prctl, prctl(PR_GET_NAME, SPACE(16)))
#ifdef __x86_64__
int arch_prctl(int, unsigned long*);
int __arch_prctl(int, unsigned long*);
int modify_ldt(int, void*, unsigned long);
CALL(arch_prctl, arch_prctl(0x1004 /* ARCH_GET_GS */, OUT(unsigned long)))
CALL(__arch_prctl, __arch_prctl(0x1004, OUT(unsigned long)))
CALL(modify_ldt, some(modify_ldt(2 /* read the default */, SPACE(64), 64)))
#endif
// By number.
CALL(syscall, syscall(SYS_pread64, file, SPACE(much), much, 0L))
CALL(raw_preadv, syscall(SYS_preadv, file, list(), 2L, 0L, 0L))
CALL(raw_unknown, syscall(SYS_lgetxattr, P("/"), P("user.none"), SPACE(100), 100L))
CALL(raw_futex,
     syscall(SYS_futex, IN(int, 5), 128 /* FUTEX_WAIT, private */, 5, IN(struct timespec, 0, 1000)))

int main(int count, char** words) {
    begin_calls();
    shared_memory = shmget(IPC_PRIVATE, 4096, 0600);
    struct sigevent silent = {.sigev_notify = SIGEV_NONE};
    timer_create(CLOCK_MONOTONIC, &silent, &own_timer);
    timer_descriptor = timerfd_create(CLOCK_MONOTONIC, 0);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    listening_at.sin_family = AF_INET;
    listening_at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, (struct sockaddr*)&listening_at, sizeof listening_at);
    listen(listener, 4);
    socklen_t length = sizeof listening_at;
    getsockname(listener, (struct sockaddr*)&listening_at, &length);
    getrlimit(RLIMIT_NOFILE, &limit);
    getrlimit64(RLIMIT_NOFILE, &limit64);
    gethostname(host, sizeof host);
    if (getdomainname(domain, sizeof domain) != 0) domain[0] = 0;
    group_count = getgroups(64, groups);
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    capget(&head, capabilities);
    sched_getaffinity(0, sizeof cpus, &cpus);
    const int result = run_calls(count, words);
    shmctl(shared_memory, IPC_RMID, NULL);
    return result;
}
