// Objects in a watched array that the kernel, or the C library on its behalf, uses without a call that says
// so: their pages are never taken away. The others are, at some time or other.
#include "core.h"
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

enum { page64 = 65536, pages = 16, kept = 10 };
static char* block;
#define AT(type, page) ((type*)(void*)(block + (page) * page64))

// Of which pages is access taken away just now? A bit each.
static unsigned taken_away(void) {
    static char text[1 << 20];
    unsigned found = 0;
    size_t length = 0;
    const int maps = open("/proc/self/maps", O_RDONLY);
    for (ssize_t got; (got = read(maps, text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)got;
    close(maps);
    text[length] = 0;
    for (char* line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        unsigned long begin, end;
        char access[5];
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, access) != 3 || access[0] != '-') continue;
        for (int page = 0; page < pages; ++page)
            if (begin <= (unsigned long)AT(char, page) && (unsigned long)AT(char, page) < end)
                found |= 1u << page;
    }
    return found;
}

int main(void) {
    core_start();
    block = (char*)aligned_alloc(page64, pages * page64);
    memset(block, 0, pages * page64);
    sem_init(AT(sem_t, 0), 1, 0);
    pthread_mutexattr_t mutex;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(AT(pthread_mutex_t, 1), &mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_PRIVATE);
    pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(AT(pthread_mutex_t, 2), &mutex);
    pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_STALLED);
    pthread_mutexattr_setprotocol(&mutex, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(AT(pthread_mutex_t, 3), &mutex);
    pthread_condattr_t condition;
    pthread_condattr_init(&condition);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(AT(pthread_cond_t, 4), &condition);
    pthread_rwlockattr_t rwlock;
    pthread_rwlockattr_init(&rwlock);
    pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
    pthread_rwlock_init(AT(pthread_rwlock_t, 5), &rwlock);
    pthread_barrierattr_t barrier;
    pthread_barrierattr_init(&barrier);
    pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(AT(pthread_barrier_t, 6), &barrier, 1);
    FILE* streams[3];
    for (int i = 0; i < 3; ++i)
        streams[i] = fopen("/dev/null", "w");
    setvbuf(streams[0], AT(char, 7), _IOFBF, 4096);
    setbuf(streams[1], AT(char, 8));
    setbuffer(streams[2], AT(char, 9), 4096);
    // Nobody else has any of these.
    pthread_mutexattr_t plain;
    pthread_mutexattr_init(&plain);
    pthread_mutex_init(AT(pthread_mutex_t, 10), &plain);
    sem_init(AT(sem_t, 11), 0, 0);
    unsigned seen = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
#pragma omp parallel for num_threads(3)
        for (long at = 0; at < pages * page64; at += 512) // ordinary use
            if (at % page64 >= 4096) block[at] = (char)(block[at] + 1);
#pragma omp parallel num_threads(3)
        {
            if (omp_get_thread_num() == 1) seen |= taken_away();
            core_read_share();
        }
    }
    expect((seen & ((1u << kept) - 1)) == 0, "what the kernel uses at any time is never taken away");
    const char* arm = getenv("HOMING_ARM"); // else there may be few windows
    if (arm && strcmp(arm, "every-region") == 0) expect((seen >> kept) != 0, "the others are");
    for (int i = 0; i < 3; ++i)
        fclose(streams[i]);
    return core_end();
}
