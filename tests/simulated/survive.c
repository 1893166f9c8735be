// What real programs do besides loops over arrays; each mode checks itself and prints one number.
#include <omp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { n = 40000 };
static double a[n], b[n];
static atomic_long counter;
static jmp_buf back;

static double work(void) {
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; ++i) {
        a[i] = i;
        sum += a[i];
    }
    return sum;
}

static double nested(void) {
    omp_set_max_active_levels(2);
    double sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
    {
        const int outer = omp_get_thread_num();
        double part = 0;
#pragma omp parallel for num_threads(2) reduction(+ : part)
        for (int i = 0; i < n; ++i)
            part += b[i] + outer;
        sum += part;
    }
    return sum;
}

static double tasks(void) {
    double sum = 0;
#pragma omp parallel
#pragma omp single
    for (int k = 0; k < 50; ++k) {
#pragma omp task firstprivate(k)
        {
            double part = 0;
            for (int i = 0; i < 500; ++i)
                part += a[500 * (k % 4) + i] + k;
#pragma omp atomic
            sum += part;
        }
    }
    return sum;
}

static void* thread(void* number) {
    for (int i = 0; i < n; ++i) {
        b[i] = (double)(long)number;
        if (i % 100 == 0) atomic_fetch_add(&counter, 1);
    }
    return NULL;
}

static double threads(void) {
    pthread_t all[6];
    for (long k = 0; k < 6; ++k)
        pthread_create(&all[k], NULL, thread, (void*)k);
    for (int k = 0; k < 6; ++k)
        pthread_join(all[k], NULL);
    return (double)counter;
}

/// A destructor of a thread's own data makes more accesses than are left of the thread's turn.
static pthread_key_t last;
static void ends(void* slot) {
    for (int i = 0; i < n; ++i)
        *(double*)slot += a[i];
}
static void* thread_with_data(void* slot) {
    *(double*)slot = a[1];
    pthread_setspecific(last, slot);
    return NULL;
}

static double keys(void) {
    static double slots[3];
    pthread_t all[3];
    pthread_key_create(&last, ends);
    for (int k = 0; k < 3; ++k)
        pthread_create(&all[k], NULL, thread_with_data, &slots[k]);
    for (int k = 0; k < 3; ++k)
        pthread_join(all[k], NULL);
    return slots[0] + slots[1] + slots[2];
}

static double forked(void) {
    const pid_t child = fork();
    if (child == 0) {
        double sum = 0;
        for (int i = 0; i < n; ++i)
            sum += a[i];
        _exit(sum > 0 ? 7 : 8);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static double jump(void) {
    volatile int times = 0;
    if (setjmp(back) < 3) {
        ++times;
        work();
        longjmp(back, times);
    }
    return times;
}

/// A length that no compiler knows: calls, checked ones under _FORTIFY_SOURCE.
static volatile size_t length = n * sizeof(double);

static double memory(void) {
    double* u = malloc(n * sizeof *u);
    memset(u, 0, length);
    memcpy(u, a, length);
    u = realloc(u, 16 * n * sizeof *u);
    memmove(u + 1, u, length);
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i <= n; ++i)
        sum += u[i];
    free(u);
    return sum;
}

/// Atomic operations of 128 bits: a ticket for each iteration, none lost.
static __int128 ticket;
static double wide(void) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        __atomic_fetch_add(&ticket, (__int128)1 << 65 | 1, __ATOMIC_SEQ_CST);
        __int128 seen = __atomic_load_n(&ticket, __ATOMIC_SEQ_CST);
        while (!__atomic_compare_exchange_n(&ticket, &seen, seen ^ 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            ;
    }
    const __int128 last = __atomic_exchange_n(&ticket, 0, __ATOMIC_SEQ_CST);
    return (double)(long)last + (double)(long)(last >> 65);
}

static double leave(void) {
#pragma omp parallel
    if (omp_get_thread_num() == 1) exit(5);
    return 0;
}

int main(int argc, char** argv) {
    const char* mode = argc > 1 ? argv[1] : "";
    double result = work();
    if (!strcmp(mode, "nested")) result = nested();
    if (!strcmp(mode, "tasks")) result = tasks();
    if (!strcmp(mode, "threads")) result = threads();
    if (!strcmp(mode, "keys")) result = keys();
    if (!strcmp(mode, "fork")) result = forked();
    if (!strcmp(mode, "jump")) result = jump();
    if (!strcmp(mode, "memory")) result = memory();
    if (!strcmp(mode, "wide")) result = wide();
    if (!strcmp(mode, "leave")) result = leave();
    printf("%.17g\n", result);
    return 0;
}
