// lu.c written by hand in SPMD style: the C twin of lu_spmd.f90, which see. Column `own` of a thread is
// column me + own * threads of the matrix.
#include "app.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double TOLERANCE_A_STEP = 1e-15;

struct problem {
    long n;
    double r;
    const double *power, *d;
    double* pivot; // two rows of n: the pivot column of even and of odd steps
    double *column_sum, *column_error;
};

static double* allocate(size_t count) {
    double* memory = malloc(count * sizeof(double));
    if (memory == NULL) app_error("not enough memory for the matrix");
    return memory;
}

static void factorise(const struct problem* of, long owns, double (*lu)[of->n], long me, long threads) {
    const long n = of->n;
    double(*pivot)[n] = (double(*)[n])of->pivot;
    double* restrict own_pivot = allocate((size_t)n);
    long counter = 0; // the first own column that is not done
    for (long k = 0; k < n - 1; k++) {
        const size_t bytes = (size_t)(n - k - 1) * sizeof(double);
        if (k % threads == me) {
            for (long i = k + 1; i < n; i++)
                lu[counter][i] = lu[counter][i] / lu[counter][k];
            memcpy(&pivot[k % 2][k + 1], &lu[counter][k + 1], bytes);
            counter++;
        }
#pragma omp barrier
        memcpy(&own_pivot[k + 1], &pivot[k % 2][k + 1], bytes);
        for (long j = counter; j < owns; j++)
            for (long i = k + 1; i < n; i++)
                lu[j][i] = lu[j][i] - lu[j][k] * own_pivot[i];
    }
    free(own_pivot);
}

static void thread(const struct problem* of, long me, long threads) {
    const long n = of->n, owns = (n - me + threads - 1) / threads;
    const double *d = of->d, *power = of->power;
    double(*lu)[n] = (double(*)[n])allocate((size_t)owns * (size_t)n + 1);
    for (long own = 0; own < owns; own++)
        for (long i = 0; i < n; i++)
            lu[own][i] = d[i] * power[labs(i - (me + own * threads))];
#pragma omp barrier
#pragma omp master
    {
        app_iterations_begin(1);
        app_iteration_begin();
    }
    factorise(of, owns, lu, me, threads);
#pragma omp barrier
#pragma omp master
    {
        app_iteration_end(NULL, 0);
        app_iterations_end();
    }
    for (long own = 0; own < owns; own++) {
        const long j = me + own * threads;
        double sum = 0, error = 0;
        for (long i = 0; i < n; i++) {
            double expected;
            if (i > j)
                expected = d[i] / d[j] * power[i - j];
            else if (i == 0)
                expected = d[0] * power[j];
            else
                expected = d[i] * (1 - of->r * of->r) * power[j - i];
            sum += lu[own][i];
            error += fabs(lu[own][i] - expected);
        }
        of->column_sum[j] = sum;
        of->column_error[j] = error;
    }
    free(lu);
}

int main(int argc, char** argv) {
    app_begin("chapman_lu", argc, argv);
    const long n = app_integer_option("--n", 2048, 1, 30000, "rows and columns, default 2048");
    app_options_end();

    double *power = allocate((size_t)(n + 1)), *d = allocate((size_t)n);
    struct problem of = {.n = n, .r = 1 - 4 / (double)(n + 8), .power = power, .d = d};
    of.pivot = allocate(2 * (size_t)n);
    of.column_sum = allocate((size_t)n);
    of.column_error = allocate((size_t)n);
    for (long i = 0; i <= n; i++)
        power[i] = pow(of.r, (double)i);
    for (long i = 0; i < n; i++)
        d[i] = 1 + (double)(7 * (i + 1) % 5) / 8;
    char size[64];
    snprintf(size, sizeof size, "%ld x %ld", n, n);
    app_describe(size, n * n * (long)sizeof(double), APP_PARALLEL, omp_get_max_threads());

#pragma omp parallel
    thread(&of, omp_get_thread_num(), omp_get_num_threads());

    double total = 0, worst = 0;
    for (long j = 0; j < n; j++) {
        total += of.column_sum[j];
        worst += of.column_error[j];
    }
    worst /= (double)n * (double)n;
    double tolerated = TOLERANCE_A_STEP * (double)n;
    app_result("sum", total);
    app_result("mean error", worst);
    app_result("tolerated error", tolerated);
    app_finish(worst <= tolerated ? APP_SUCCESSFUL : APP_FAILED);
    free(of.column_error);
    free(of.column_sum);
    free(of.pivot);
    free(d);
    free(power);
    return 0;
}
