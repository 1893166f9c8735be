// OpenMP tasks with the affinity clause, one mode a topic of the specification: what is printed, and every
// property that is checked, holds with and without homing, in whatever order tasks run.
#include "core.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { blocks = 64, words = 4096 }; // blocks of 32 KiB
static uint64_t* data;

static uint64_t* block(long i) { return data + i % blocks * words; }

static void fill(void) {
    data = (uint64_t*)malloc(sizeof *data * blocks * words);
    if (!data) abort();
    for (long i = 0; i < (long)blocks * words; ++i)
        data[i] = (uint64_t)i * 0x9e3779b97f4a7c15u;
}

static uint64_t sum_of(const uint64_t* a, long count) {
    uint64_t sum = 0;
    for (long i = 0; i < count; ++i)
        sum += a[i] ^ (uint64_t)i;
    return sum;
}

static uint64_t checksum(void) { return sum_of(data, (long)blocks * words); }

static void add(uint64_t* to, uint64_t value) { __atomic_fetch_add(to, value, __ATOMIC_RELAXED); }
static uint64_t seen(uint64_t* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }

#define TASKS 2000

static uint64_t mode_task(void) {
    uint64_t total = 0;
#pragma omp parallel
#pragma omp single
    for (long i = 0; i < TASKS; ++i) {
        uint64_t* a = block(i);
#pragma omp task affinity(a[0 : words]) firstprivate(i, a) shared(total)
        add(&total, sum_of(a, 64) * (uint64_t)(i + 1));
    }
    return total;
}

// The children of one task: all done after taskwait, each once.
static uint64_t mode_taskwait(void) {
    uint64_t total = 0;
#pragma omp parallel
#pragma omp single
    for (int round = 0; round < 40; ++round) {
        uint64_t done[50] = {0};
        for (int i = 0; i < 50; ++i) {
            uint64_t* a = block(i + round);
#pragma omp task affinity(a[0 : words]) shared(done, total) firstprivate(i, a)
            {
                uint64_t inner[4] = {0};
                for (int k = 0; k < 4; ++k) {
#pragma omp task affinity(a[k * 1024 : 1024]) shared(inner) firstprivate(k, a)
                    inner[k] = sum_of(a + k * 1024, 32);
                }
#pragma omp taskwait
                for (int k = 0; k < 4; ++k)
                    expect(inner[k] == sum_of(a + k * 1024, 32), "a child is done after taskwait");
                add(&done[i], 1);
            }
        }
#pragma omp taskwait
        for (int i = 0; i < 50; ++i) {
            expect(seen(&done[i]) == 1, "each child ran once before taskwait ended");
            total += done[i];
        }
    }
    return total;
}

// A taskgroup waits for grandchildren, too, and not for tasks of before.
static uint64_t mode_taskgroup(void) {
    uint64_t outside = 0, total = 0;
#pragma omp parallel
#pragma omp single
    for (int round = 0; round < 40; ++round) {
        uint64_t *before = block(round), count = 0;
#pragma omp task affinity(before[0 : words]) shared(outside)
        add(&outside, 1);
#pragma omp taskgroup
        {
            for (int i = 0; i < 30; ++i) {
                uint64_t* a = block(i);
#pragma omp task affinity(a[0 : words]) shared(count) firstprivate(a)
                {
#pragma omp task affinity(a[0 : words]) shared(count)
                    add(&count, 1);
#pragma omp taskgroup
                    {
#pragma omp task affinity(a[0 : words]) shared(count)
                        add(&count, 1);
                    }
                    add(&count, 1);
                }
            }
        }
        expect(seen(&count) == 90, "the group's descendants are done");
        total += count;
    }
    return total + outside;
}

// Dependences are the runtime's; their siblings without are not.
static uint64_t mode_depend(void) {
    uint64_t free_tasks = 0;
#pragma omp parallel
#pragma omp single
    {
        for (int round = 0; round < 20; ++round)
            for (int i = 0; i < blocks; ++i) {
                uint64_t *a = block(i), *b = block(i + 1);
#pragma omp task affinity(a[0 : words]) depend(inout : a[0]) firstprivate(a, round)
                for (int k = 0; k < words; ++k)
                    a[k] = a[k] * 3 + (uint64_t)round;
#pragma omp task affinity(b[0 : words]) depend(in : a[0]) depend(inout : b[0]) firstprivate(a, b)
                for (int k = 0; k < words; ++k)
                    b[k] ^= a[k] >> 3;
#pragma omp task affinity(a[0 : words]) shared(free_tasks)
                add(&free_tasks, 1);
            }
        uint64_t last = 0;
#pragma omp task affinity(data[0 : words]) depend(inout : data[0]) shared(last)
        last = 1;
#pragma omp taskwait depend(in : data[0])
        expect(seen(&last) == 1, "taskwait with a dependence waits for it");
    }
    return checksum() + free_tasks;
}

static uint64_t mode_taskloop(void) {
    uint64_t total = 0, more = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop grainsize(3) reduction(+ : total)
        for (int i = 0; i < blocks; ++i)
            total += sum_of(block(i), words);
#pragma omp taskloop collapse(2) num_tasks(7) shared(more)
        for (int i = 0; i < blocks; ++i)
            for (int k = 0; k < 4; ++k) {
                uint64_t* a = block(i) + k;
#pragma omp task affinity(a[0 : 8]) firstprivate(a) shared(more)
                add(&more, a[0]);
            }
#pragma omp taskloop nogroup shared(more)
        for (int i = 0; i < blocks; ++i)
            add(&more, 1);
    }
    return total + more;
}

static uint64_t mode_reduction(void) {
    uint64_t total = 0, whole = 0;
#pragma omp parallel
#pragma omp single
    for (int round = 0; round < 20; ++round) {
        uint64_t sum = 0, most = 0;
#pragma omp taskgroup task_reduction(+ : sum) task_reduction(max : most)
        for (int i = 0; i < blocks; ++i) {
            uint64_t* a = block(i);
#pragma omp task affinity(a[0 : words]) in_reduction(+ : sum) in_reduction(max : most) firstprivate(a)
            {
                sum += sum_of(a, 256);
                if (a[0] > most) most = a[0];
#pragma omp task affinity(a[0 : words]) in_reduction(+ : sum)
                sum += 1;
            }
        }
        total += sum + most;
    }
#pragma omp parallel reduction(task, + : whole)
    {
#pragma omp single
        for (int i = 0; i < blocks; ++i) {
            uint64_t* a = block(i);
#pragma omp task affinity(a[0 : words]) in_reduction(+ : whole) firstprivate(a)
            whole += sum_of(a, words);
        }
    }
    return total + whole;
}

// A cancelled taskgroup ends early (with OMP_CANCELLATION), and never hangs.
static uint64_t mode_cancel(void) {
    uint64_t found = 0;
#pragma omp parallel
#pragma omp single
    for (int round = 0; round < 60; ++round) {
        uint64_t here = 0;
#pragma omp taskgroup
        for (int i = 0; i < 300; ++i) {
            uint64_t* a = block(i);
#pragma omp task affinity(a[0 : words]) shared(here) firstprivate(i, a)
            {
                if (sum_of(a, 16) && i == 17) {
                    __atomic_store_n(&here, 1, __ATOMIC_RELEASE);
#pragma omp cancel taskgroup
                }
#pragma omp cancellation point taskgroup
            }
        }
        expect(seen(&here) <= 1, "at most one is found");
        found += here <= 1;
        uint64_t after = 0;
        for (int i = 0; i < 20; ++i) {
            uint64_t* a = block(i);
#pragma omp task affinity(a[0 : words]) shared(after)
            add(&after, 1);
        }
#pragma omp taskwait
        expect(seen(&after) == 20, "tasks after a cancelled group run");
    }
    return found;
}

static uint64_t mode_detach(void) {
    uint64_t total = 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 300; ++i) {
        omp_event_handle_t event;
        uint64_t *a = block(i), *done = &total;
#pragma omp task affinity(a[0 : words]) detach(event) firstprivate(done)
        add(done, 1);
#pragma omp task affinity(a[0 : words]) firstprivate(event, done)
        {
            add(done, 1000);
            omp_fulfill_event(event);
        }
    }
    return total;
}

static uint64_t mode_priority(void) {
    uint64_t total = 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < TASKS; ++i) {
        uint64_t* a = block(i);
#pragma omp task affinity(a[0 : words]) priority(i % 5) shared(total) firstprivate(a)
        add(&total, a[1]);
#pragma omp task affinity(a[0 : words]) shared(total) firstprivate(a)
        add(&total, a[2]);
    }
    return total;
}

static void final_tree(int depth, uint64_t* count, uint64_t* inside) {
    add(count, 1);
    add(inside, omp_in_final() != 0);
    if (depth == 0) return;
    for (int i = 0; i < 2; ++i) {
        uint64_t* a = block(depth * 2 + i);
#pragma omp task affinity(a[0 : words]) final(depth < 4) mergeable firstprivate(depth, count, inside)
        {
            const uint64_t before = seen(count);
            final_tree(depth - 1, count, inside);
            if (omp_in_final())
                expect(seen(count) >= before + (1u << depth) - 1, "a final task's children ran at once");
        }
    }
}

static uint64_t mode_final(void) {
    uint64_t count = 0, inside = 0;
#pragma omp parallel
#pragma omp single
    final_tree(9, &count, &inside);
    return count * 10000 + inside;
}

// if(0): at once, by this thread. Its hint must not stick to a later task.
static uint64_t mode_if0(void) {
    uint64_t total = 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < TASKS; ++i) {
        uint64_t *a = block(i), ran = 0;
        const int thread = omp_get_thread_num();
#pragma omp task affinity(a[0 : words]) if (i % 3) shared(ran, total) firstprivate(i, a, thread)
        {
            if (i % 3 == 0) expect(omp_get_thread_num() == thread, "an undeferred task stays on its thread");
            add(&total, a[3]);
            __atomic_store_n(&ran, 1, __ATOMIC_RELEASE);
        }
        if (i % 3 == 0) expect(seen(&ran) == 1, "an undeferred task is over");
#pragma omp task shared(total)
        add(&total, 1);
#pragma omp taskwait
    }
    return total;
}

static uint64_t mode_untied(void) {
    uint64_t total = 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < TASKS; ++i) {
        uint64_t* a = block(i);
#pragma omp task untied affinity(a[0 : words]) shared(total) firstprivate(a, i)
        {
            uint64_t mine = a[0];
#pragma omp taskyield
#pragma omp task affinity(a[0 : words]) shared(mine, total)
            mine += a[1];
#pragma omp taskwait
            add(&total, mine * (uint64_t)(i + 1));
        }
    }
    return total;
}

// Private data of every size, until the very end of the task.
struct large {
    uint64_t values[300];
};
static uint64_t mode_private(void) {
    uint64_t total = 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < TASKS; ++i) {
        struct large values;
        enum { length = 77 };
        uint64_t variable[length];
        for (int k = 0; k < 300; ++k)
            values.values[k] = (uint64_t)(i * 1000 + k);
        for (int k = 0; k < length; ++k)
            variable[k] = (uint64_t)(i + k);
        uint64_t* a = block(i);
#pragma omp task affinity(a[0 : words]) firstprivate(values, variable, i) shared(total)
        {
            int wrong = 0;
#pragma omp taskyield
            for (int k = 0; k < 300; ++k)
                wrong += values.values[k] != (uint64_t)(i * 1000 + k);
            for (int k = 0; k < length; ++k)
                wrong += variable[k] != (uint64_t)(i + k);
            expect(!wrong, "private data is the task's own");
            add(&total, values.values[299] + variable[length - 1]);
        }
    }
    return total;
}

static uint64_t mode_nested(void) {
    uint64_t total = 0;
    omp_set_max_active_levels(3);
#pragma omp parallel num_threads(3)
    {
#pragma omp parallel num_threads(2)
#pragma omp single
        {
            for (int i = 0; i < 200; ++i) {
                uint64_t* a = block(i);
                const int level = omp_get_level();
#pragma omp task affinity(a[0 : words]) shared(total) firstprivate(level)
                {
                    expect(omp_get_level() == level && omp_get_num_threads() == 2,
                           "a task stays in its team");
                    add(&total, 1);
                    if (a[0] % 7 == 0) {
#pragma omp parallel num_threads(1)
#pragma omp task affinity(a[0 : words]) shared(total)
                        add(&total, 1);
                    }
                }
            }
        }
        uint64_t* b = block(omp_get_thread_num());
#pragma omp task affinity(b[0 : words]) shared(total)
        {
            expect(omp_get_num_threads() == 3, "a task stays in its team");
            add(&total, 1);
        }
    }
    return total;
}

static uint64_t tree(int depth, long first, long last) {
    if (depth == 0) return sum_of(data + first, last - first) - sum_of(data + first, 0);
    uint64_t left = 0, right = 0;
    const long middle = (first + last) / 2;
#pragma omp task affinity(data[first : middle - first]) shared(left)
    left = tree(depth - 1, first, middle);
#pragma omp task affinity(data[middle : last - middle]) shared(right)
    right = tree(depth - 1, middle, last);
#pragma omp taskwait
    return left + right;
}
static uint64_t mode_tree(void) {
    uint64_t total = 0;
#pragma omp parallel
#pragma omp single
    for (int round = 0; round < 4; ++round)
        total += tree(10, 0, (long)blocks * words);
    return total;
}

// More tasks than a family holds, while all other threads are busy.
static uint64_t mode_full(void) {
    uint64_t total = 0, over = 0;
#pragma omp parallel num_threads(3)
    {
#pragma omp single nowait
        {
            for (long i = 0; i < 80000; ++i) {
                uint64_t* a = block(i);
#pragma omp task affinity(a[0 : words]) shared(total)
                add(&total, 1);
            }
            __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
        }
        while (!seen(&over))
            usleep(1000);
    }
    return total;
}

// Every thread submits.
static uint64_t mode_producers(void) {
    uint64_t total = 0;
#pragma omp parallel
    for (int i = 0; i < TASKS; ++i) {
        uint64_t* a = block(i + omp_get_thread_num());
#pragma omp task affinity(a[0 : words]) shared(total)
        add(&total, 1);
        if (i % 100 == 0) {
#pragma omp taskwait
        }
    }
    return total;
}

// Parents that end before their children.
static uint64_t mode_orphans(void) {
    uint64_t total = 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 500; ++i) {
        uint64_t* a = block(i);
#pragma omp task affinity(a[0 : words]) shared(total)
        for (int k = 0; k < 3; ++k) {
#pragma omp task affinity(a[0 : words]) shared(total)
            {
#pragma omp task affinity(a[0 : words]) shared(total)
                add(&total, 1);
                add(&total, 1);
            }
        }
    }
    return total;
}

static uint64_t mode_fork(void) {
    uint64_t total = mode_task();
    for (int round = 0; round < 3; ++round) {
        const pid_t child = fork();
        if (child == 0) _exit(mode_task() == total ? 21 : 22);
        int status = 0;
        waitpid(child, &status, 0);
        expect(WIFEXITED(status) && WEXITSTATUS(status) == 21, "the child's tasks are right");
        expect(mode_task() == total, "the parent goes on");
    }
    return total;
}

static uint64_t mode_iterator(void) {
    uint64_t total = 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < TASKS; ++i) {
        uint64_t *a = block(i), *b = block(i + 9);
#pragma omp task affinity(iterator(int k = 0 : 8) : a[k * 512]) affinity(b[0 : 8]) shared(total)             \
    firstprivate(a)
        add(&total, a[512]);
    }
    return total;
}

// Hints at memory that is not there: never touched, never mapped, nothing at all.
static uint64_t mode_unmapped(void) {
    uint64_t total = 0;
    char* fresh = (char*)mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* gone = (char*)mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* nowhere = NULL;
    munmap(gone, 1 << 20);
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 300; ++i) {
#pragma omp task affinity(fresh[0 : 1 << 20]) shared(total)
        add(&total, 1);
#pragma omp task affinity(gone[0 : 1 << 20]) shared(total)
        add(&total, 1);
#pragma omp task affinity(nowhere[0 : 100]) shared(total)
        add(&total, 1);
    }
    return total;
}

static uint64_t own;
#pragma omp threadprivate(own)
static uint64_t mode_locks(void) {
    uint64_t total = 0, critical = 0, locked = 0;
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel
    {
        own = 0;
#pragma omp barrier
#pragma omp single
        for (int i = 0; i < TASKS; ++i) {
            uint64_t* a = block(i);
#pragma omp task affinity(a[0 : words]) shared(critical, locked)
            {
                ++own;
#pragma omp critical
                ++critical;
                omp_set_lock(&lock);
                ++locked;
                omp_unset_lock(&lock);
            }
        }
        add(&total, own);
    }
    omp_destroy_lock(&lock);
    return total * 100000000 + critical * 10000 + locked;
}

static uint64_t mode_serial(void) {
    uint64_t total = 0;
    for (int i = 0; i < 100; ++i) {
        uint64_t* a = block(i);
#pragma omp task affinity(a[0 : words]) shared(total)
        total += a[0];
    }
#pragma omp parallel num_threads(1)
    for (int i = 0; i < 100; ++i) {
        uint64_t *a = block(i), before = total;
#pragma omp task affinity(a[0 : words]) shared(total)
        total = total * 3 + a[0];
        expect(total == before * 3 + a[0], "a team of one runs tasks at once");
    }
    return total;
}

// The process ends while tasks are queued.
static uint64_t mode_leave(void) {
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 5000; ++i) {
        uint64_t* a = block(i);
#pragma omp task affinity(a[0 : words]) firstprivate(i)
        if (i == 2500) {
            printf("leaving\n");
            fflush(stdout);
            _exit(5);
        }
    }
    return 0;
}

static const struct {
    const char* name;
    uint64_t (*run)(void);
} modes[] = {
    {"task", mode_task},
    {"taskwait", mode_taskwait},
    {"taskgroup", mode_taskgroup},
    {"depend", mode_depend},
    {"taskloop", mode_taskloop},
    {"reduction", mode_reduction},
    {"cancel", mode_cancel},
    {"detach", mode_detach},
    {"priority", mode_priority},
    {"final", mode_final},
    {"if0", mode_if0},
    {"untied", mode_untied},
    {"private", mode_private},
    {"nested", mode_nested},
    {"tree", mode_tree},
    {"full", mode_full},
    {"producers", mode_producers},
    {"orphans", mode_orphans},
    {"fork", mode_fork},
    {"iterator", mode_iterator},
    {"unmapped", mode_unmapped},
    {"locks", mode_locks},
    {"serial", mode_serial},
    {"leave", mode_leave},
};

int main(int count, char** arguments) {
    fill();
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i)
        if (count > 1 && strcmp(arguments[1], modes[i].name) == 0) {
            for (int round = 0; round < 3; ++round)
                printf("%s %016llx\n", modes[i].name, (unsigned long long)modes[i].run());
            printf("data %016llx\n", (unsigned long long)checksum());
            return core_wrong != 0;
        }
    printf("no such mode\n");
    return 2;
}
