// LU factorisation without pivoting on the shared memory: the paper's Program 2 as "shared", Program 6 as
// "private". lu[j][i] is row i of column j; single precision, as the paper's "real matrix" of 2,048 columns.
//
// Shared: the iterations are dealt out in blocks anew in each step, and the normalisation lies between
// Tmk_lock_acquire and Tmk_lock_release (section 4.2). How SINGLE becomes a lock is not printed. --single
// all: each process takes the lock, and the first one finds that the column is not normalised; first: only
// process 0 takes it. Private is Program 6 as printed: columns dealt out in turn, one shared column, two
// barriers.
#include "app.h"
#include "program.h"

#include <math.h>

enum single { SINGLE_ALL, SINGLE_FIRST };
enum { LOCK = 0 };

static float first_value(long n, long j, long i) {
    return (i == j ? (float)n : 0) + 1 / (float)(1 + (i * 7 + j * 3) % 101);
}

static void fill_column(long n, long j, float* column) {
    for (long i = 0; i < n; i++)
        column[i] = first_value(n, j, i);
}

static void normalise(long n, long k, float* column) {
    for (long i = k + 1; i < n; i++)
        column[i] = column[i] / column[k];
}

static void update(long n, long k, float* restrict column, const float* restrict pivot) {
    const float factor = column[k];
    for (long i = k + 1; i < n; i++)
        column[i] = column[i] - factor * pivot[i];
}

static float* run_shared(long n, enum single single) {
    const int me = dsm_me(), processes = dsm_processes();
    float(*lu)[n] = dsm_allocate((size_t)n * (size_t)n * sizeof(float));
    long* done = dsm_allocate(sizeof *done); // columns that are normalised
    const struct block mine = block_of(n, me, processes);
    for (long j = mine.begin; j < mine.end; j++)
        fill_column(n, j, lu[j]);
    dsm_measure_begin();
    for (long k = 0; k < n - 1; k++) {
        if (single == SINGLE_ALL || me == 0) {
            dsm_acquire(LOCK);
            if (*done == k) {
                normalise(n, k, lu[k]);
                dsm_work((double)(n - k - 1));
                *done = k + 1;
            }
            dsm_release(LOCK);
        }
        dsm_barrier();
        const struct block columns = block_of(n - k - 1, me, processes);
        for (long j = k + 1 + columns.begin; j < k + 1 + columns.end; j++)
            update(n, k, lu[j], lu[k]);
        dsm_work((double)((columns.end - columns.begin) * (n - k - 1)));
        dsm_barrier();
    }
    dsm_measure_end();
    return lu[0];
}

static float* run_private(long n) {
    const int me = dsm_me(), processes = dsm_processes();
    float* shared = dsm_allocate((size_t)n * sizeof(float));
    float(*result)[n] = dsm_allocate((size_t)n * (size_t)n * sizeof(float));
    const long owns = (n - me + processes - 1) / processes;
    float(*lu)[n] = program_memory((size_t)owns * (size_t)n * sizeof(float));
    for (long own = 0; own < owns; own++)
        fill_column(n, me + own * processes, lu[own]);
    dsm_measure_begin();
    long next = me; // the first own column that is not done
    for (long k = 0; k < n - 1; k++) {
        if (k == next) {
            float* column = lu[k / processes];
            for (long i = k + 1; i < n; i++)
                shared[i] = column[i] = column[i] / column[k];
            dsm_work((double)(n - k - 1));
            next += processes;
        }
        dsm_barrier();
        for (long j = next; j < n; j += processes) {
            update(n, k, lu[j / processes], shared);
            dsm_work((double)(n - k - 1));
        }
        dsm_barrier();
    }
    dsm_measure_end();
    for (long own = 0; own < owns; own++)
        for (long i = 0; i < n; i++)
            result[me + own * processes][i] = lu[own][i];
    dsm_barrier();
    return result[0];
}

int main(int argc, char** argv) {
    app_begin("dsm_lu", argc, argv);
    const struct program chosen = program_options();
    const long n = app_integer_option("--n", 2048, 2, 8192, "rows and columns, default 2048");
    const int single = app_choice_option("--single", SINGLE_ALL, "all|first",
                                         "shared: who takes the lock for the normalisation, default all");
    app_options_end();
    const size_t bytes = (size_t)n * (size_t)n * sizeof(float);
    dsm_start(&chosen.dsm, bytes + (size_t)n * sizeof(float) + 4L * DSM_PAGE_BYTES);
    const float* result =
        chosen.version == VERSION_SHARED ? run_shared(n, (enum single)single) : run_private(n);
    bool same = true;
    if (dsm_me() == 0) {
        float(*lu)[n] = program_memory(bytes);
        for (long j = 0; j < n; j++)
            fill_column(n, j, lu[j]);
        for (long k = 0; k < n - 1; k++) {
            normalise(n, k, lu[k]);
            for (long j = k + 1; j < n; j++)
                update(n, k, lu[j], lu[k]);
        }
        same = same_bits(result, lu, bytes) && isfinite(lu[n - 1][n - 1]);
    }
    dsm_finish(same);
    return 0;
}
