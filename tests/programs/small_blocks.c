// Rows of two matrices that are allocated in turn, far below the size of an area: they lie in the allocator's
// memory with all else that it deals out. What the program does with it in the meantime:
//  rows: nothing | churn: threads free and allocate rows within regions, and change their sizes | trim: rows
//  go and the allocator gives memory back (malloc_trim) while others are worked on | streams: threads print
//  into files whose buffers lie between the rows | calls: system calls read and write rows | locks: mutexes
//  and condition variables between the rows | threads: rows of other threads' arenas | fork: children use
//  rows | buffers: the program gives its streams rows for buffers | mapped: rows of a pool of its own
//  mapping, which it unmaps and moves in part
// A second argument: steps of work.
#include "core.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 1024, WORDS = 1024, STEPS = 40 };

static uint64_t* a[ROWS];
static uint64_t* b[ROWS];
static FILE* streams[8];
static struct lock {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    long turn;
}* locks[8];

static uint64_t value(long row, long word) { return (uint64_t)(row * WORDS + word) * 0x9e3779b97f4a7c15u; }

static uint64_t* new_row(long row) {
    uint64_t* fresh = (uint64_t*)malloc(WORDS * sizeof *fresh);
    if (!fresh) abort();
    for (long i = 0; i < WORDS; ++i)
        fresh[i] = value(row, i);
    return fresh;
}

static void check_row(const uint64_t* row, long number, const char* what) {
    for (long i = 0; i < WORDS; ++i)
        if (row[i] != value(number, i)) {
            expect(0, what);
            return;
        }
}

static void* allocate_rows(void* unused) {
    (void)unused;
    for (long i = 0; i < ROWS; ++i) {
        a[i] = new_row(i);
        b[i] = new_row(i);
    }
    return NULL;
}

static void work(void) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < ROWS; ++i) {
        const uint64_t* above = a[i ? i - 1 : ROWS - 1];
        uint64_t sum = 0;
        for (long j = 0; j < WORDS; ++j)
            sum += above[j] ^ a[i][j];
        b[i][0] = sum;
    }
#pragma omp parallel for schedule(static)
    for (long i = 0; i < ROWS; ++i) {
        check_row(a[i], i, "a row");
        b[i][0] = value(i, 0);
    }
}

static void churn(int step) {
#pragma omp parallel for schedule(dynamic, 16)
    for (long i = 0; i < ROWS; ++i) {
        check_row(b[i], i, "a row before it goes");
        if ((i + step) % 3 == 0) {
            free(b[i]);
            b[i] = new_row(i);
        } else if ((i + step) % 3 == 1) {
            b[i] = (uint64_t*)realloc(b[i], WORDS * sizeof *b[i] * (1 + (size_t)(i + step) % 4));
            if (!b[i]) abort();
        }
        check_row(b[i], i, "a row after it came");
    }
}

static void trim(int step) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < ROWS; ++i) {
        check_row(a[i], i, "a row beside what goes");
        if (i % 2 == step % 2) {
            free(b[i]);
            b[i] = NULL;
        }
        if (i % 64 == 0) malloc_trim(0);
        check_row(a[i], i, "a row beside what went");
        if (!b[i]) b[i] = new_row(i);
    }
}

static void print_in_region(int step) {
#pragma omp parallel num_threads(8)
    {
        const int thread = omp_get_thread_num();
        for (int i = 0; i < 200; ++i)
            fprintf(streams[thread], "%d %d %d\n", thread, step, i);
    }
}

static void check_streams(void) {
    for (int t = 0; t < 8; ++t) {
        expect(fflush(streams[t]) == 0, "fflush");
        rewind(streams[t]);
        for (int step = 0; step < STEPS; ++step)
            for (int i = 0; i < 200; ++i) {
                int values[3] = {-1, -1, -1};
                if (fscanf(streams[t], "%d %d %d", &values[0], &values[1], &values[2]) != 3 ||
                    values[0] != t || values[1] != step || values[2] != i) {
                    expect(0, "what was printed");
                    return;
                }
            }
    }
}

static void call_in_region(void) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < ROWS; i += 8) {
        int ends[2];
        if (pipe(ends) != 0) abort();
        const size_t bytes = WORDS * sizeof **a;
        expect(write(ends[1], a[i], bytes) == (ssize_t)bytes, "write of a row");
        expect(read(ends[0], b[i], bytes) == (ssize_t)bytes, "read into a row");
        close(ends[0]);
        close(ends[1]);
        check_row(b[i], i, "what came through the pipe");
    }
}

static void lock_in_region(void) {
#pragma omp parallel num_threads(4)
    {
        const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
        struct lock* lock = locks[0];
        for (int i = 0; i < 20; ++i) {
            pthread_mutex_lock(&lock->mutex);
            while (lock->turn % threads != thread)
                pthread_cond_wait(&lock->changed, &lock->mutex);
            ++lock->turn;
            pthread_cond_broadcast(&lock->changed);
            pthread_mutex_unlock(&lock->mutex);
        }
    }
}

static void fork_in_region(int step) {
#pragma omp parallel num_threads(4)
    if (omp_get_thread_num() == step % 4) {
        const pid_t child = fork();
        if (child == 0) {
            for (long i = 0; i < ROWS; ++i)
                for (long j = 0; j < WORDS; j += 64)
                    if (a[i][j] != value(i, j)) _exit(1);
            _exit(0);
        }
        int status = -1;
        expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child reads the rows");
    }
}

static char* pool;
enum { POOL = 16 << 20 };

static void map_pool(void) {
    pool = (char*)mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool == MAP_FAILED) abort();
    for (long i = 0; i < ROWS; ++i) {
        a[i] = (uint64_t*)(pool + i * WORDS * 8);
        for (long j = 0; j < WORDS; ++j)
            a[i][j] = value(i, j);
        b[i] = new_row(i);
    }
}

static void change_pool(int step) {
    const size_t part = 1 << 20, bytes = POOL / 2;
    char* hole = pool + bytes + (size_t)(step % 8) * part;
#pragma omp parallel num_threads(4)
    {
        if (omp_get_thread_num() == 1) {
            munmap(hole, part);
            expect(mmap(hole, part, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void*)hole,
                   "a mapping in the hole");
            expect(hole[part / 2] == 0, "new memory is zero");
        }
        for (long i = 0; i < ROWS; ++i)
            check_row(a[i], i, "a row beside the hole");
    }
    expect(madvise(pool + bytes, 4096, MADV_DONTNEED) == 0, "madvise");
    if (step % 4 == 3) {
        char* moved = (char*)mremap(pool, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                                    mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        expect(moved != MAP_FAILED, "mremap");
        char* rest = pool + bytes;
        munmap(rest, bytes);
        pool = (char*)mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(pool, moved, bytes);
        munmap(moved, bytes);
        for (long i = 0; i < ROWS; ++i)
            a[i] = (uint64_t*)(pool + i * WORDS * 8);
    }
}

int main(int argc, char** argv) {
    const char* how = argc > 1 ? argv[1] : "rows";
    const int steps = argc > 2 ? atoi(argv[2]) : STEPS;
    const int is_streams = !strcmp(how, "streams") || !strcmp(how, "buffers");
    for (int t = 0; t < 8; ++t) {
        streams[t] = tmpfile();
        locks[t] = (struct lock*)malloc(sizeof *locks[t]);
        pthread_mutex_init(&locks[t]->mutex, NULL);
        pthread_cond_init(&locks[t]->changed, NULL);
        locks[t]->turn = 0;
        if (!streams[t]) abort();
    }
    if (!strcmp(how, "threads")) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, allocate_rows, NULL) != 0) abort();
        pthread_join(thread, NULL);
    } else if (!strcmp(how, "mapped")) {
        map_pool();
    } else {
        // Streams get their buffers when they are used first: here, among the rows.
        for (long i = 0; i < ROWS; ++i) {
            a[i] = new_row(i);
            if (is_streams && i % 128 == 0) {
                if (!strcmp(how, "buffers")) setvbuf(streams[i / 128], (char*)malloc(8192), _IOFBF, 8192);
                fputs("", streams[i / 128]);
                putc(' ', streams[i / 128]);
            }
            b[i] = new_row(i);
        }
    }
    core_start();
    for (int step = 0; step < steps; ++step) {
        if (step % 8 == 0) core_step(step);
        work();
        if (!strcmp(how, "churn")) churn(step);
        if (!strcmp(how, "trim")) trim(step);
        if (is_streams) print_in_region(step);
        if (!strcmp(how, "calls")) call_in_region();
        if (!strcmp(how, "locks")) lock_in_region();
        if (!strcmp(how, "fork")) fork_in_region(step);
        if (!strcmp(how, "mapped")) change_pool(step);
    }
    if (is_streams) check_streams();
    for (long i = 0; i < ROWS; ++i) {
        check_row(a[i], i, "a row at the end");
        check_row(b[i], i, "the other row at the end");
        free(b[i]);
        if (strcmp(how, "mapped")) free(a[i]);
    }
    return core_end();
}
