// Threads outside OpenMP: they touch the arrays all the time, run regions of their own at the same time, come
// and go.
//
// touch | regions | brief (hundreds of threads, each with a region) | cancel | detached | keys (destructors
// touch the arrays) | waiting (blocked in read on a pipe and cancelled there) | reused (what they free is
// mapped again at once with a protection of its own)
#include "core.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile int stop;
static volatile uint64_t sink;
static pthread_key_t key;
static int destroyed;
static int ends[2];

static void* touch(void* nothing) {
    (void)nothing;
    while (!stop) {
        for (long i = 0; i < CORE_WORDS; i += 512)
            sink = core_a[i] + core_b[i] + core_c[i];
        usleep(300);
    }
    return NULL;
}

static uint64_t own_regions(int rounds, int threads) {
    enum { words = 1 << 16 };
    uint64_t* mine = (uint64_t*)calloc(words, sizeof *mine);
    uint64_t sum = 0;
    for (int round = 0; round < rounds; ++round) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (long i = 0; i < words; ++i)
            mine[i] = mine[i] * 3 + (uint64_t)(i + round);
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
        for (long i = 0; i < words; ++i)
            sum += mine[i];
    }
    free(mine);
    return sum;
}

static void* regions(void* result) {
    *(uint64_t*)result = own_regions(30, 2);
    return NULL;
}

// Are all mappings of [begin, end) there, with this protection?
static int protected_as(const char* wanted, unsigned long begin, unsigned long end) {
    char line[512];
    unsigned long covered = begin;
    FILE* maps = fopen("/proc/self/maps", "r");
    if (!maps) return 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long from = 0, to = 0;
        char protection[8] = "";
        if (sscanf(line, "%lx-%lx %7s", &from, &to, protection) != 3) continue;
        if (from <= covered && to > covered && strcmp(protection, wanted) == 0) covered = to;
    }
    fclose(maps);
    return covered >= end;
}

static void* reuses(void* rounds) {
    const size_t bytes = 1 << 21;
    uint64_t met = 0;
    for (int round = 0; round < 40; ++round) {
        uint64_t* block = (uint64_t*)malloc(bytes); // from a mapping of its own
        if (!block) abort();
        for (int time = 0; time < 3; ++time) {
#pragma omp parallel for num_threads(2) schedule(static)
            for (long i = 0; i < (long)(bytes / sizeof *block); i += 64)
                block[i] = (uint64_t)(i + time);
        }
        void* place = (void*)((uintptr_t)block & ~(uintptr_t)4095);
        free(block);
        char* next = (char*)mmap(place, bytes, PROT_READ | PROT_EXEC,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (next == MAP_FAILED) continue; // another thread was quicker
        for (int time = 0; time < 3; ++time) {
            expect(protected_as("r-xp", (unsigned long)next, (unsigned long)next + bytes),
                   "new memory keeps its protection");
            usleep(50);
        }
        ++met;
        munmap(next, bytes);
    }
    *(uint64_t*)rounds = met > 0;
    return NULL;
}

static void* brief(void* result) {
    *(uint64_t*)result = own_regions(1, 2);
    return NULL;
}

static void destroy(void* value) {
    (void)value;
    for (long i = 0; i < CORE_WORDS; i += 512)
        sink = core_a[i] + core_b[i] + core_c[i];
    free(malloc(300000));
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED);
}

static void* keyed(void* nothing) {
    pthread_setspecific(key, nothing);
    free(malloc(200000));
    return NULL;
}

static void* waits(void* nothing) {
    char* buffer = (char*)malloc(1 << 20);
    pthread_cleanup_push(free, buffer);
    (void)!read(ends[0], buffer, 1 << 20);
    pthread_cleanup_pop(1);
    return nothing;
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "touch";
    enum { threads = 3 };
    pthread_t thread[threads];
    uint64_t results[threads] = {0};
    core_start();
    pthread_key_create(&key, destroy);
    expect(pipe(ends) == 0, "pipe");
    void* (*last)(void*) = strcmp(how, "touch") == 0     ? touch
                           : strcmp(how, "regions") == 0 ? regions
                           : strcmp(how, "reused") == 0  ? reuses
                                                         : NULL;
    const int lasting = last != NULL;
    if (lasting) {
        // Fixed: glibc would raise it when the first block is freed.
        if (last == reuses) mallopt(M_MMAP_THRESHOLD, 1 << 20);
        for (int t = 0; t < threads; ++t)
            pthread_create(&thread[t], NULL, last, &results[t]);
    }
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (lasting) continue;
        for (int t = 0; t < threads; ++t) {
            void* (*body)(void*) = strcmp(how, "brief") == 0     ? brief
                                   : strcmp(how, "keys") == 0    ? keyed
                                   : strcmp(how, "waiting") == 0 ? waits
                                                                 : touch;
            if (strcmp(how, "detached") == 0) {
                pthread_attr_t attribute;
                pthread_attr_init(&attribute);
                pthread_attr_setdetachstate(&attribute, PTHREAD_CREATE_DETACHED);
                pthread_create(&thread[t], &attribute, keyed, &results[t]);
            } else {
                pthread_create(&thread[t], NULL, body, &results[t]);
            }
        }
        if (strcmp(how, "detached") == 0) continue;
        core_step(i);
        for (int t = 0; t < threads; ++t) {
            void* result = NULL;
            const int cancels = strcmp(how, "cancel") == 0 || strcmp(how, "waiting") == 0;
            if (cancels) pthread_cancel(thread[t]);
            expect(pthread_join(thread[t], &result) == 0, "join");
            expect((result == PTHREAD_CANCELED) == cancels, "cancelled or not");
        }
    }
    stop = 1;
    if (lasting)
        for (int t = 0; t < threads; ++t)
            pthread_join(thread[t], NULL);
    if (strcmp(how, "detached") == 0)
        while (__atomic_load_n(&destroyed, __ATOMIC_RELAXED) < threads * CORE_ITERATIONS)
            usleep(1000);
    printf("destroyed %d results %016llx %016llx\n", destroyed, (unsigned long long)results[0],
           (unsigned long long)results[2]);
    return core_end();
}
