// Locks that lie in watched arrays, contended from inside regions: the futex system call gets their address.
//
// mutex | condition | semaphore | barrier | rwlock | omp (omp_lock_t) | nest | spin | once
#include "core.h"
#include <pthread.h>
#include <semaphore.h>

enum { threads = 3, rounds = 60 };

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "mutex";
    core_start();
    char* block = (char*)malloc(2 << 20);
    memset(block, 0, 2 << 20);
    // each on a page of its own, so that it may be taken away
    pthread_mutex_t* mutex = (pthread_mutex_t*)(void*)(block + 100 * 4096);
    pthread_cond_t* condition = (pthread_cond_t*)(void*)(block + 120 * 4096);
    sem_t* semaphore = (sem_t*)(void*)(block + 140 * 4096);
    pthread_barrier_t* barrier = (pthread_barrier_t*)(void*)(block + 160 * 4096);
    pthread_rwlock_t* rwlock = (pthread_rwlock_t*)(void*)(block + 180 * 4096);
    omp_lock_t* lock = (omp_lock_t*)(void*)(block + 200 * 4096);
    omp_nest_lock_t* nest = (omp_nest_lock_t*)(void*)(block + 220 * 4096);
    pthread_spinlock_t* spin = (pthread_spinlock_t*)(void*)(block + 240 * 4096);
    long* value = (long*)(void*)(block + 260 * 4096);
    long* turn = (long*)(void*)(block + 280 * 4096);
    pthread_mutex_init(mutex, NULL);
    pthread_cond_init(condition, NULL);
    sem_init(semaphore, 0, 1);
    pthread_barrier_init(barrier, NULL, threads);
    pthread_rwlock_init(rwlock, NULL);
    pthread_spin_init(spin, 0);
    omp_init_lock(lock);
    omp_init_nest_lock(nest);
    omp_set_dynamic(0);
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
#pragma omp parallel num_threads(threads)
        {
            const int t = omp_get_thread_num();
            for (int round = 0; round < rounds; ++round) {
                if (strcmp(how, "mutex") == 0) {
                    pthread_mutex_lock(mutex);
                    *value += 1;
                    pthread_mutex_unlock(mutex);
                } else if (strcmp(how, "condition") == 0) {
                    pthread_mutex_lock(mutex);
                    while (*turn % threads != t)
                        pthread_cond_wait(condition, mutex);
                    *turn += 1;
                    *value += 1;
                    pthread_cond_broadcast(condition);
                    pthread_mutex_unlock(mutex);
                } else if (strcmp(how, "semaphore") == 0) {
                    sem_wait(semaphore);
                    *value += 1;
                    sem_post(semaphore);
                } else if (strcmp(how, "barrier") == 0) {
                    pthread_barrier_wait(barrier);
                    if (round % threads == t) *value += threads;
                } else if (strcmp(how, "rwlock") == 0) {
                    pthread_rwlock_rdlock(rwlock);
                    pthread_rwlock_unlock(rwlock);
                    pthread_rwlock_wrlock(rwlock);
                    *value += 1;
                    pthread_rwlock_unlock(rwlock);
                } else if (strcmp(how, "omp") == 0) {
                    omp_set_lock(lock);
                    *value += 1;
                    omp_unset_lock(lock);
                } else if (strcmp(how, "nest") == 0) {
                    omp_set_nest_lock(nest);
                    omp_set_nest_lock(nest);
                    *value += 1;
                    omp_unset_nest_lock(nest);
                    omp_unset_nest_lock(nest);
                } else {
                    pthread_spin_lock(spin);
                    *value += 1;
                    pthread_spin_unlock(spin);
                }
            }
#pragma omp for
            for (int page = 0; page < 90; ++page) // the rest is ordinary data
                block[page * 4096] += 1;
        }
    }
    expect(*value == (long)threads * rounds * CORE_ITERATIONS, "every turn counted");
    printf("value %ld\n", *value);
    return core_end();
}
