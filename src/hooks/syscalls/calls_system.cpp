// Calls that ask the system or tell it something, with small structures: sockets, time, limits, identity,
// scheduling, queues, modules.
#include "hooks/syscalls/calls.hpp"

#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>
#if __GLIBC_PREREQ(2, 36)
#include <sys/pidfd.h>
#endif

extern "C" {
int __connect(int, const sockaddr*, socklen_t);
int __gethostname_chk(char*, std::size_t, std::size_t);
int __getdomainname_chk(char*, std::size_t, std::size_t);
int __getgroups_chk(int, gid_t*, std::size_t);
int __pipe(int*);
int __gettimeofday(timeval*, void*);
int __clock_gettime(clockid_t, timespec*);
int __adjtimex(timex*);
int __getrlimit(__rlimit_resource_t, rlimit*);
int __sched_getparam(pid_t, sched_param*);
int __sched_setscheduler(pid_t, int, const sched_param*);
// Answers of the name service are received straight into the caller's buffer.
int res_query(const char*, int, int, unsigned char*, int);
int res_search(const char*, int, int, unsigned char*, int);
int res_querydomain(const char*, const char*, int, int, unsigned char*, int);
int res_send(const unsigned char*, int, unsigned char*, int);
int res_nquery(void*, const char*, int, int, unsigned char*, int);
int res_nsearch(void*, const char*, int, int, unsigned char*, int);
int res_nquerydomain(void*, const char*, const char*, int, int, unsigned char*, int);
int res_nsend(void*, const unsigned char*, int, unsigned char*, int);
int __res_query(const char*, int, int, unsigned char*, int);
int __res_search(const char*, int, int, unsigned char*, int);
int __res_querydomain(const char*, const char*, int, int, unsigned char*, int);
int __res_send(const unsigned char*, int, unsigned char*, int);
int __res_nquery(void*, const char*, int, int, unsigned char*, int);
int __res_nsearch(void*, const char*, int, int, unsigned char*, int);
int __res_nquerydomain(void*, const char*, const char*, int, int, unsigned char*, int);
int __res_nsend(void*, const unsigned char*, int, unsigned char*, int);
int bindresvport(int, sockaddr_in*);
// In no header of the C library.
int capget(__user_cap_header_struct*, __user_cap_data_struct*);
int capset(__user_cap_header_struct*, const __user_cap_data_struct*);
int init_module(void*, unsigned long, const char*);
int delete_module(const char*, unsigned);
int ntp_adjtime(timex*);
#if defined(__x86_64__)
int arch_prctl(int, unsigned long*);
int __arch_prctl(int, unsigned long*);
int modify_ldt(int, void*, unsigned long);
#endif
}

HOMING_CALL3(bind, bytes(b, c))
HOMING_CALL3(connect, bytes(b, c))
HOMING_CALL3(__connect, bytes(b, c))
HOMING_CALL3(accept, address(b, c))
HOMING_CALL4(accept4, address(b, c))
HOMING_CALL3(getsockname, address(b, c))
HOMING_CALL3(getpeername, address(b, c))
HOMING_CALL5(getsockopt, value(d, e))
HOMING_CALL5(setsockopt, bytes(d, e))
HOMING_CALL4(socketpair, objects(d, 2))
HOMING_CALL2(bindresvport, object(b))
HOMING_CALL1(pipe, objects(a, 2))
HOMING_CALL1(__pipe, objects(a, 2))
HOMING_CALL2(pipe2, objects(a, 2))

HOMING_CALL5(res_query, bytes(d, length(e)))
HOMING_CALL5(res_search, bytes(d, length(e)))
HOMING_CALL6(res_querydomain, bytes(e, length(f)))
HOMING_CALL4(res_send, bytes(a, length(b)), bytes(c, length(d)))
HOMING_CALL6(res_nquery, bytes(e, length(f)))
HOMING_CALL6(res_nsearch, bytes(e, length(f)))
HOMING_CALL7(res_nquerydomain, bytes(f, length(g)))
HOMING_CALL5(res_nsend, bytes(b, length(c)), bytes(d, length(e)))
HOMING_CALL5(__res_query, bytes(d, length(e)))
HOMING_CALL5(__res_search, bytes(d, length(e)))
HOMING_CALL6(__res_querydomain, bytes(e, length(f)))
HOMING_CALL4(__res_send, bytes(a, length(b)), bytes(c, length(d)))
HOMING_CALL6(__res_nquery, bytes(e, length(f)))
HOMING_CALL6(__res_nsearch, bytes(e, length(f)))
HOMING_CALL7(__res_nquerydomain, bytes(f, length(g)))
HOMING_CALL5(__res_nsend, bytes(b, length(c)), bytes(d, length(e)))

HOMING_CALL2(clock_gettime, object(b))
HOMING_CALL2(__clock_gettime, object(b))
HOMING_CALL2(clock_settime, object(b))
HOMING_CALL2(clock_getres, object(b))
HOMING_CALL2(clock_adjtime, object(b))
HOMING_CALL2(timespec_get, object(a))
#if __GLIBC_PREREQ(2, 34)
HOMING_CALL2(timespec_getres, object(a))
#endif
HOMING_CALL1(time, object(a))
HOMING_CALL2(gettimeofday, object(a), bytes(b, sizeof(struct timezone)))
HOMING_CALL2(__gettimeofday, object(a), bytes(b, sizeof(struct timezone)))
HOMING_CALL2(settimeofday, object(a), object(b))
HOMING_CALL1(adjtimex, object(a))
HOMING_CALL1(__adjtimex, object(a))
HOMING_CALL1(ntp_adjtime, object(a))
HOMING_CALL1(times, object(a))
HOMING_CALL2(getitimer, object(b))
HOMING_CALL3(setitimer, object(b), object(c))
HOMING_CALL2(timer_gettime, object(b))
HOMING_CALL4(timer_settime, object(c), object(d))
HOMING_CALL2(timerfd_gettime, object(b))
HOMING_CALL4(timerfd_settime, object(c), object(d))

HOMING_CALL2(getrlimit, object(b))
HOMING_CALL2(__getrlimit, object(b))
HOMING_CALL2(getrlimit64, object(b))
// With a limit to its data (RLIMIT_DATA) the kernel might not give back what a window has taken.
HOMING_CALL2(setrlimit, everything{})
HOMING_CALL2(setrlimit64, everything{})
HOMING_CALL4(prlimit, everything{})
HOMING_CALL4(prlimit64, everything{})
HOMING_CALL2(getrusage, object(b))
HOMING_CALL1(sysinfo, object(a))
HOMING_CALL1(uname, object(a))
HOMING_CALL2(gethostname, bytes(a, b))
HOMING_CALL3(__gethostname_chk, bytes(a, b))
HOMING_CALL2(sethostname, bytes(a, b))
HOMING_CALL2(getdomainname, bytes(a, b))
HOMING_CALL3(__getdomainname_chk, bytes(a, b))
HOMING_CALL2(setdomainname, bytes(a, b))
HOMING_CALL3(klogctl, bytes(b, length(c)))

HOMING_CALL2(getgroups, objects(b, length(a)))
HOMING_CALL3(__getgroups_chk, objects(b, length(a)))
HOMING_CALL2(setgroups, objects(b, a))
HOMING_CALL3(getresuid, object(a), object(b), object(c))
HOMING_CALL3(getresgid, object(a), object(b), object(c))
HOMING_CALL2(capget, object(a), objects(b, _LINUX_CAPABILITY_U32S_3))
HOMING_CALL2(capset, object(a), objects(b, _LINUX_CAPABILITY_U32S_3))

HOMING_CALL2(sched_getparam, object(b))
HOMING_CALL2(__sched_getparam, object(b))
HOMING_CALL2(sched_setparam, object(b))
HOMING_CALL3(sched_setscheduler, object(c))
HOMING_CALL3(__sched_setscheduler, object(c))
HOMING_CALL2(sched_rr_get_interval, object(b))
HOMING_CALL3(pthread_setschedparam, object(c))
HOMING_CALL2(pthread_setname_np, bytes(b, 16))
HOMING_CALL3(pthread_getname_np, bytes(b, c))

HOMING_CALL3(mincore, bytes(c, b / homing::page_bytes() + 1))
HOMING_CALL3(msgctl, structure(c))
HOMING_CALL3(shmctl, structure(c))
HOMING_CALL2(mq_getattr, object(b))
HOMING_CALL3(mq_setattr, object(b), object(c))
HOMING_CALL3(init_module, bytes(a, b), text(c))
HOMING_CALL2(delete_module, text(a))
#if __GLIBC_PREREQ(2, 36)
HOMING_CALL4(pidfd_send_signal, object(c))
HOMING_CALL5(process_madvise, pieces(b, static_cast<long>(c)))
#endif
#if defined(__x86_64__)
HOMING_CALL2(arch_prctl, object(b))
HOMING_CALL2(__arch_prctl, object(b))
HOMING_CALL3(modify_ldt, bytes(b, c))
#endif
