// Objects on which threads wait: locks, conditions, semaphores, barriers. The kernel looks at the object when
// the wait begins, and again when a signal's handler has run; on a page that is taken away it says EFAULT,
// which the C library takes for a broken program and ends it. So such an object is in flight as long as a
// thread waits.
//
// Who wakes a waiter needs no hook: its call has no use for the page. Of objects that processes may share it
// has: those are never taken away.
//
// Locks of OpenMP need none: the runtimes' waits look at the object themselves, whatever the kernel says.
#include "hooks/syscalls/calls.hpp"
#include "hooks/syscalls/guards.hpp"

#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

extern "C" {
int __pthread_mutex_lock(pthread_mutex_t*);
int __pthread_rwlock_rdlock(pthread_rwlock_t*);
int __pthread_rwlock_wrlock(pthread_rwlock_t*);
int __pthread_once(pthread_once_t*, void (*)());
}

HOMING_CALL1(pthread_mutex_lock, object(a))
HOMING_CALL1(__pthread_mutex_lock, object(a))
HOMING_CALL2(pthread_mutex_timedlock, object(a), object(b))
HOMING_CALL3(pthread_mutex_setprioceiling, object(a), object(c))
HOMING_CALL1(mtx_lock, object(a))
HOMING_CALL2(mtx_timedlock, object(a), object(b))

HOMING_CALL2(pthread_cond_wait, object(a), object(b))
HOMING_CALL3(pthread_cond_timedwait, object(a), object(b), object(c))
HOMING_CALL1(pthread_cond_signal, object(a))
HOMING_CALL1(pthread_cond_broadcast, object(a))
HOMING_CALL1(pthread_cond_destroy, object(a))
HOMING_CALL2(cnd_wait, object(a), object(b))
HOMING_CALL3(cnd_timedwait, object(a), object(b), object(c))
HOMING_CALL1(cnd_signal, object(a))
HOMING_CALL1(cnd_broadcast, object(a))
HOMING_CALL1(cnd_destroy, object(a))

HOMING_CALL1(pthread_rwlock_rdlock, object(a))
HOMING_CALL1(pthread_rwlock_wrlock, object(a))
HOMING_CALL1(__pthread_rwlock_rdlock, object(a))
HOMING_CALL1(__pthread_rwlock_wrlock, object(a))
HOMING_CALL2(pthread_rwlock_timedrdlock, object(a), object(b))
HOMING_CALL2(pthread_rwlock_timedwrlock, object(a), object(b))

HOMING_CALL1(sem_wait, object(a))
HOMING_CALL2(sem_timedwait, object(a), object(b))

#if __GLIBC_PREREQ(2, 30)
HOMING_CALL3(pthread_mutex_clocklock, object(a), object(c))
HOMING_CALL4(pthread_cond_clockwait, object(a), object(b), object(d))
HOMING_CALL3(pthread_rwlock_clockrdlock, object(a), object(c))
HOMING_CALL3(pthread_rwlock_clockwrlock, object(a), object(c))
HOMING_CALL3(sem_clockwait, object(a), object(c))
#endif

HOMING_CALL1(pthread_barrier_wait, object(a))
HOMING_CALL1(pthread_barrier_destroy, object(a))
HOMING_CALL2(pthread_once, object(a))
HOMING_CALL2(__pthread_once, object(a))
HOMING_CALL2(call_once, object(a))

HOMING_CALL3(pthread_timedjoin_np, object(c))
#if __GLIBC_PREREQ(2, 31)
HOMING_CALL4(pthread_clockjoin_np, object(d))
#endif

// Of these the kernel goes on to know while a thread holds them: it marks them when the thread ends, or lends
// it the priority of those who wait.
HOMING_HOOK(pthread_mutex_init, (pthread_mutex_t * mutex, const pthread_mutexattr_t* attributes)) {
    using namespace homing::hooks;
    static constinit Real<Signature<&::pthread_mutex_init>::Function> real{"pthread_mutex_init"};
    if (!real.is_ready()) return early(real, mutex, attributes);
    int robust = PTHREAD_MUTEX_STALLED;
    int protocol = PTHREAD_PRIO_NONE;
    int shared = PTHREAD_PROCESS_PRIVATE;
    if (attributes) {
        ::pthread_mutexattr_getrobust(attributes, &robust);
        ::pthread_mutexattr_getprotocol(attributes, &protocol);
        ::pthread_mutexattr_getpshared(attributes, &shared);
    }
    if (robust == PTHREAD_MUTEX_ROBUST || protocol == PTHREAD_PRIO_INHERIT ||
        shared == PTHREAD_PROCESS_SHARED)
        never_arm(mutex, sizeof *mutex);
    return real.get()(mutex, attributes);
}

// Objects that processes may share, each with a type of attributes.
namespace {
template <class Attributes, class Object>
void keep_shared(const Attributes* attributes, int (*get_shared)(const Attributes*, int*),
                 const Object* object) noexcept {
    int shared = PTHREAD_PROCESS_PRIVATE;
    if (attributes) get_shared(attributes, &shared);
    if (shared == PTHREAD_PROCESS_SHARED) homing::hooks::never_arm(object, sizeof *object);
}
} // namespace
#define HOMING_INIT(name, get_shared, parameters, ...)                                                       \
    HOMING_HOOK(name, parameters) {                                                                          \
        static constinit homing::hooks::Real<homing::hooks::Signature<&::name>::Function> real{#name};       \
        if (!real.is_ready()) return homing::hooks::early(real, __VA_ARGS__);                                \
        keep_shared(attributes, get_shared, object);                                                         \
        return real.get()(__VA_ARGS__);                                                                      \
    }
HOMING_INIT(pthread_cond_init, ::pthread_condattr_getpshared,
            (pthread_cond_t * object, const pthread_condattr_t* attributes), object, attributes)
HOMING_INIT(pthread_rwlock_init, ::pthread_rwlockattr_getpshared,
            (pthread_rwlock_t * object, const pthread_rwlockattr_t* attributes), object, attributes)
HOMING_INIT(pthread_barrier_init, ::pthread_barrierattr_getpshared,
            (pthread_barrier_t * object, const pthread_barrierattr_t* attributes, unsigned count), object,
            attributes, count)
HOMING_HOOK(sem_init, (sem_t * semaphore, int shared, unsigned value)) {
    using namespace homing::hooks;
    static constinit Real<Signature<&::sem_init>::Function> real{"sem_init"};
    if (!real.is_ready()) return early(real, semaphore, shared, value);
    if (shared) never_arm(semaphore, sizeof *semaphore);
    return real.get()(semaphore, shared, value);
}
