// Jacobi's method on the shared memory: the paper's Program 1 as "shared", Program 4 as "private". Rows of C
// lie as Fortran's columns. The paper's matrix has 1,024 x 1,024 points, boundary included; a step is a sweep
// and the copy back, with a barrier after each in the shared version.
//
// Program 4 as printed has one barrier a step and one pair of buffers, which a fast process writes again
// while its neighbour still reads: here there are two pairs that take turns.
#include "app.h"
#include "program.h"

#include <string.h>

static double first_value(long n, long j, long i) {
    // The boundary and a pattern inside that no sweep leaves as it is.
    return (double)((j * 31 + i * 17) % 97) / 97 + (j == 0 || i == n - 1 ? 1 : 0);
}

static void fill(long n, long begin, long end, long shift, double (*a)[n], double (*b)[n]) {
    for (long j = begin; j < end; j++)
        for (long i = 0; i < n; i++)
            a[j][i] = b[j][i] = first_value(n, j + shift, i);
}

static void sweep(long n, long begin, long end, double (*a)[n], double (*b)[n]) {
    for (long j = begin; j < end; j++)
        for (long i = 1; i < n - 1; i++)
            a[j][i] = (b[j][i - 1] + b[j][i + 1] + b[j - 1][i] + b[j + 1][i]) * 0.25;
}

static void copy_back(long n, long begin, long end, double (*a)[n], double (*b)[n]) {
    for (long j = begin; j < end; j++)
        for (long i = 1; i < n - 1; i++)
            b[j][i] = a[j][i];
}

static struct block inner(long n, struct block mine) {
    return (struct block){mine.begin < 1 ? 1 : mine.begin, mine.end > n - 1 ? n - 1 : mine.end};
}

// `before` steps come before those that are counted. Returns the shared result.
static double* run_shared(long n, long before, long steps) {
    const size_t bytes = (size_t)n * (size_t)n * sizeof(double);
    double(*a)[n] = dsm_allocate(bytes), (*b)[n] = dsm_allocate(bytes);
    const struct block mine = block_of(n, dsm_me(), dsm_processes()), in = inner(n, mine);
    fill(n, mine.begin, mine.end, 0, a, b);
    for (long step = -before; step < steps; step++) {
        if (step == 0)
            dsm_measure_begin();
        else
            dsm_barrier();
        sweep(n, in.begin, in.end, a, b);
        dsm_work((double)((in.end - in.begin) * (n - 2)));
        dsm_barrier();
        copy_back(n, in.begin, in.end, a, b);
    }
    dsm_barrier();
    dsm_measure_end();
    return b[0];
}

static double* run_private(long n, long before, long steps) {
    const int me = dsm_me(), processes = dsm_processes();
    const size_t row = (size_t)n * sizeof(double);
    double(*first)[n] =
        dsm_allocate(2 * (size_t)processes * row); // of process p in steps of parity t at 2 p + t
    double(*last)[n] = dsm_allocate(2 * (size_t)processes * row);
    double(*result)[n] = dsm_allocate((size_t)n * row);
    const struct block mine = block_of(n, me, processes), in = inner(n, mine);
    const long rows = mine.end - mine.begin,
               shift = mine.begin - 1; // row r here is row r + shift of the grid
    double(*a)[n] = program_memory((size_t)(rows + 2) * row),
    (*b)[n] = program_memory((size_t)(rows + 2) * row);
    fill(n, 1, rows + 1, shift, a, b);
    long parity = 0;
    for (long step = -before; step < steps; step++) {
        if (step == 0) dsm_measure_begin();
        memcpy(first[2 * me + parity], b[1], row);
        memcpy(last[2 * me + parity], b[rows], row);
        dsm_barrier();
        if (me > 0) memcpy(b[0], last[2 * (me - 1) + parity], row);
        if (me < processes - 1) memcpy(b[rows + 1], first[2 * (me + 1) + parity], row);
        parity = 1 - parity;
        sweep(n, in.begin - shift, in.end - shift, a, b);
        copy_back(n, in.begin - shift, in.end - shift, a, b);
        dsm_work((double)((in.end - in.begin) * (n - 2)));
    }
    dsm_measure_end();
    memcpy(result[mine.begin], b[1], (size_t)rows * row);
    dsm_barrier();
    return result[0];
}

int main(int argc, char** argv) {
    app_begin("dsm_jacobi", argc, argv);
    const struct program chosen = program_options();
    const long n = app_integer_option("--n", 1024, 4, 8192, "points a side, boundary included, default 1024");
    const long steps = app_integer_option("--steps", 10, 1, 100000, "that are counted, default 10");
    const long before = app_integer_option("--steps-before", 2, 0, 1000, "that are not counted, default 2");
    app_options_end();
    const size_t processes = (size_t)chosen.dsm.processes;
    if (n < 3L * chosen.dsm.processes) app_error("too few rows for so many processes");
    const size_t bytes = (size_t)n * (size_t)n * sizeof(double);
    dsm_start(&chosen.dsm, 2 * bytes + 5 * processes * ((size_t)n * sizeof(double) + DSM_PAGE_BYTES));
    const double* result =
        chosen.version == VERSION_SHARED ? run_shared(n, before, steps) : run_private(n, before, steps);
    bool same = true;
    if (dsm_me() == 0) {
        double(*a)[n] = program_memory(bytes), (*b)[n] = program_memory(bytes);
        fill(n, 0, n, 0, a, b);
        for (long step = 0; step < before + steps; step++) {
            sweep(n, 1, n - 1, a, b);
            copy_back(n, 1, n - 1, a, b);
        }
        same = same_bits(result, b, bytes);
    }
    dsm_finish(same);
    return 0;
}
