// The calls of UPMlib in orders and from places that the paper never thought of, as its first argument says;
// C and C++. The arrays keep their values, the process goes on, "passed" is printed.
#include <homing/homing.h>

#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, ARRAYS = 4, LONGS = 64 * PAGE / 8, PHASES = 1000, CALLS = 1500 };

static long* array[ARRAYS];
static long expected[ARRAYS];
static uint64_t state;

static uint64_t any(uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

static void* mapped(size_t bytes, int protection) {
    void* found = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) exit(3);
    return found;
}

static void make(int which) {
    array[which] = (long*)mapped(LONGS * sizeof(long), PROT_READ | PROT_WRITE);
    expected[which] = 0;
}
static void forwards(int which) {
    long* a = array[which];
    ++expected[which];
#pragma omp parallel for schedule(static)
    for (long i = 0; i < LONGS; ++i)
        a[i] += 1;
}
static void backwards(int which) {
    long* a = array[which];
    ++expected[which];
#pragma omp parallel for schedule(static)
    for (long i = LONGS; i > 0; --i)
        a[LONGS - i] += 1;
}
static void nested(int which) {
    long* a = array[which];
    ++expected[which];
#pragma omp parallel num_threads(2)
    {
        const int outer = omp_get_thread_num(), teams = omp_get_num_threads();
        if (any(2)) upmlib_record(); // wherever it is called from
#pragma omp parallel for num_threads(2)
        for (long i = LONGS * outer / teams; i < LONGS * (outer + 1) / teams; ++i)
            a[i] += 1;
        upmlib_undo();
    }
}

static void call(int which) {
    switch (which) {
    case 0:
        upmlib_init();
        break;
    case 1:
        upmlib_record();
        break;
    case 2:
        upmlib_replay();
        break;
    case 3:
        upmlib_undo();
        break;
    default:
        upmlib_migrate_memory();
    }
}

static int right(void) {
    for (int one = 0; one < ARRAYS; ++one)
        for (long i = 0; array[one] && i < LONGS; ++i)
            if (array[one][i] != expected[one]) {
                printf("failed: array %d is %ld, not %ld\n", one, array[one][i], expected[one]);
                return 0;
            }
    return 1;
}

// Sizes and addresses that are none; those of Fortran without underscores are tried as addresses, too.
static void nonsense(void) {
    char* none = (char*)mapped(2 * PAGE, PROT_NONE);
    int size = 100;
    upmlib_memrefcnt(array[0], (size_t)none);          // read as an address it cannot be read from
    upmlib_memrefcnt(array[0], (size_t)(none + PAGE)); // likewise
    upmlib_memrefcnt(none, PAGE);
    upmlib_memrefcnt(none + 1, 1);
    upmlib_memrefcnt(&size, (size_t)-1);
    upmlib_memrefcnt((void*)-1, PAGE);
    upmlib_memrefcnt((void*)8, 8);
    upmlib_memrefcnt(array[0], (size_t)&size);
    size = -1;
    upmlib_memrefcnt(array[0], (size_t)&size);
    munmap(none, 2 * PAGE);
    upmlib_memrefcnt(none, PAGE);
}

static void in_any_order(void) {
    omp_set_max_active_levels(2);
    nonsense();
    for (int i = 0; i < CALLS; ++i) {
        const int which = (int)any(ARRAYS);
        switch (any(12)) {
        case 0:
            forwards(which);
            break;
        case 1:
            backwards(which);
            break;
        case 2:
            nested(which);
            break;
        case 3: // freed, and other memory in its place
            munmap(array[which], LONGS * sizeof(long));
            make(which);
            break;
        case 4:
            upmlib_memrefcnt(array[which], any(2) ? LONGS * sizeof(long) : (size_t)any(1 << 20));
            break;
        default:
            call((int)any(5));
        }
    }
}

static void unbalanced(void) {
    for (int i = 0; i < ARRAYS; ++i)
        upmlib_memrefcnt(array[i], LONGS * sizeof(long));
    upmlib_undo();
    upmlib_replay();
    upmlib_record();
    upmlib_undo(); // one record, nothing replayed
    upmlib_replay();
    for (int step = 0; step < 6; ++step) {
        forwards(0);
        upmlib_record();
        upmlib_record(); // a phase of length zero
        backwards(0);
        upmlib_record();
        for (int i = 0; i < step; ++i) // more replays than phases, and never an undo; then more undos
            upmlib_replay();
        forwards(1);
        for (int i = 6; i > step; --i)
            upmlib_undo();
    }
}

static void freed(void) {
    for (int i = 0; i < ARRAYS; ++i)
        upmlib_memrefcnt(array[i], LONGS * sizeof(long));
    for (int step = 0; step < 8; ++step) {
        for (int i = 0; i < ARRAYS; ++i)
            forwards(i);
        if (step == 0)
            upmlib_record();
        else
            upmlib_replay();
        for (int i = 0; i < ARRAYS; ++i)
            backwards(i);
        if (step == 2) { // within the phase
            munmap(array[1], LONGS * sizeof(long));
            make(1);
        }
        if (step == 3) mprotect(array[2], LONGS * sizeof(long), PROT_NONE);
        if (step == 0)
            upmlib_record();
        else
            upmlib_undo();
        if (step == 3) mprotect(array[2], LONGS * sizeof(long), PROT_READ | PROT_WRITE);
        if (step == 4) { // between undo and replay, all pages but the address
            munmap(array[3], LONGS * sizeof(long));
            array[3] = (long*)mmap(array[3], LONGS * sizeof(long), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
            expected[3] = 0;
        }
        upmlib_migrate_memory();
    }
}

static void thousand(void) {
    upmlib_memrefcnt(array[0], LONGS * sizeof(long));
    for (int step = 0; step < 3; ++step) {
        for (int phase = 0; phase < PHASES; ++phase) {
            if (step == 0)
                upmlib_record();
            else
                upmlib_replay();
            if (phase % 50 == 0) forwards(0);
            if (step > 0 && phase % 3 == 0) upmlib_undo();
        }
        if (step == 0) upmlib_record();
    }
}

static void forked(void) {
    upmlib_memrefcnt(array[0], LONGS * sizeof(long));
    forwards(0);
    upmlib_record();
    backwards(0);
    upmlib_record();
    for (int step = 0; step < 3; ++step) {
        forwards(0);
        upmlib_replay();
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) { // in the middle of a phase; libgomp's threads are not here, so no regions
            upmlib_undo();
            upmlib_record();
            upmlib_record();
            upmlib_replay();
            upmlib_migrate_memory();
            upmlib_memrefcnt(array[1], LONGS * sizeof(long));
            for (long i = 0; i < LONGS; ++i)
                array[0][i] += 1;
            ++expected[0];
            _exit(right() ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) printf("failed: the child ended with %d\n", status);
        backwards(0);
        upmlib_undo();
    }
}

static int ended;
static void* other_thread(void* unused) {
    uint64_t mine = 7;
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {
        mine = mine * 6364136223846793005u + 1;
        call((int)((mine >> 33) % 5));
        upmlib_memrefcnt(array[(mine >> 40) % ARRAYS], LONGS * sizeof(long));
    }
    return unused;
}
static void from_another_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, NULL);
    for (int step = 0; step < 60; ++step) {
        forwards(step % ARRAYS);
        call((int)any(5));
        backwards(step % ARRAYS);
    }
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
}

// Iterations of one kind, then of others, and none at all, while phases are replayed.
static void broken_period(void) {
    for (int i = 0; i < ARRAYS; ++i)
        upmlib_memrefcnt(array[i], LONGS * sizeof(long));
    for (int step = 0; step < 40; ++step) {
        const int kind = step / 10;
        for (int i = 0; i <= kind; ++i)
            forwards((i + kind) % ARRAYS);
        if (step == 0 || step == 20)
            upmlib_record();
        else
            upmlib_replay();
        if (kind != 1) backwards(kind);
        if (step == 0 || step == 20)
            upmlib_record();
        else
            upmlib_undo();
        for (int i = 0; kind == 3 && i < (int)any(4); ++i)
            nested((int)any(ARRAYS));
        if (kind != 2) upmlib_migrate_memory();
    }
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "";
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (int i = 0; i < ARRAYS; ++i)
        make(i);
    if (!strcmp(what, "order"))
        in_any_order();
    else if (!strcmp(what, "unbalanced"))
        unbalanced();
    else if (!strcmp(what, "freed"))
        freed();
    else if (!strcmp(what, "thousand"))
        thousand();
    else if (!strcmp(what, "forked"))
        forked();
    else if (!strcmp(what, "thread"))
        from_another_thread();
    else if (!strcmp(what, "period"))
        broken_period();
    else
        return 2;
    if (!right()) return 1;
    puts("passed");
    return 0;
}
