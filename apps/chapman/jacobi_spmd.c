// jacobi.c written by hand in SPMD style: the C twin of jacobi_spmd.f90, which see. A thread's row r, from 1
// to `rows`, is row low + r - 1 of the grid; rows 0 and rows + 1 are the shadow.
#include "app.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;
static const double TOLERANCE = 1e-13, TOLERANCE_A_STEP = 2.3e-16;

struct problem {
    long n, iterations, steps;
    double d, shrunk;
    const double* sine;   // 5 rows of n + 2
    double *first, *last; // rows of n: those of thread p in steps of parity t at 2 p + t
    double *row_sum, *row_error;
};

static double* allocate(size_t count) {
    double* memory = malloc(count * sizeof(double));
    if (memory == NULL) app_error("not enough memory for the grids");
    return memory;
}

static void exchange(const struct problem* of, long rows, long low, double (*b)[of->n + 2], long me,
                     long parity) {
    const long n = of->n;
    double(*first)[n] = (double(*)[n])of->first, (*last)[n] = (double(*)[n])of->last;
    const size_t bytes = (size_t)n * sizeof(double);
    if (rows > 0) {
        memcpy(first[2 * me + parity], &b[1][1], bytes);
        memcpy(last[2 * me + parity], &b[rows][1], bytes);
    }
#pragma omp barrier
    if (rows > 0) {
        if (low > 0) memcpy(&b[0][1], last[2 * (me - 1) + parity], bytes);
        if (low + rows < n + 2) memcpy(&b[rows + 1][1], first[2 * (me + 1) + parity], bytes);
    }
}

static void sweep(long n, long begin, long end, double (*restrict a)[n + 2], double (*restrict b)[n + 2]) {
    for (long r = begin; r <= end; r++)
        for (long i = 1; i <= n; i++)
            a[r][i] = (b[r][i - 1] + b[r][i + 1] + b[r - 1][i] + b[r + 1][i]) * 0.25;
    for (long r = begin; r <= end; r++)
        for (long i = 1; i <= n; i++)
            b[r][i] = a[r][i];
}

static void thread(const struct problem* of, long me, long threads) {
    const long n = of->n;
    const long width = (n + 2 + threads - 1) / threads;
    const long low = me * width < n + 2 ? me * width : n + 2;
    const long rows = low + width < n + 2 ? width : n + 2 - low;
    const long begin = low == 0 ? 2 : 1, end = low + rows == n + 2 ? rows - 1 : rows; // without the boundary
    double(*a)[n + 2] = (double(*)[n + 2]) allocate((size_t)(rows + 2) * (size_t)(n + 2));
    double(*b)[n + 2] = (double(*)[n + 2]) allocate((size_t)(rows + 2) * (size_t)(n + 2));
    const double(*sine)[n + 2] = (const double(*)[n + 2]) of->sine;
    for (long r = 1; r <= rows; r++) {
        double y = (double)(low + r - 1) * of->d;
        for (long i = 0; i < n + 2; i++) {
            double x = (double)i * of->d;
            a[r][i] = b[r][i] = x + 2 * y + x * x - y * y + sine[4][i] * sine[3][low + r - 1];
        }
    }
#pragma omp barrier
#pragma omp master
    app_iterations_begin(of->iterations);
    long parity = 0;
    for (long m = 0; m < of->iterations; m++) {
#pragma omp master
        app_iteration_begin();
        for (long k = 0; k < of->steps; k++) {
            exchange(of, rows, low, b, me, parity);
            parity = 1 - parity;
            sweep(n, begin, end, a, b);
        }
#pragma omp barrier
#pragma omp master
        app_iteration_end(NULL, 0);
    }
#pragma omp master
    app_iterations_end();
    for (long r = 1; r <= rows; r++) {
        double y = (double)(low + r - 1) * of->d, sum = 0, error = 0;
        for (long i = 0; i < n + 2; i++) {
            double x = (double)i * of->d;
            sum += b[r][i];
            error +=
                fabs(b[r][i] - (x + 2 * y + x * x - y * y + of->shrunk * sine[4][i] * sine[3][low + r - 1]));
        }
        of->row_sum[low + r - 1] = sum;
        of->row_error[low + r - 1] = error;
    }
    free(b);
    free(a);
}

int main(int argc, char** argv) {
    app_begin("chapman_jacobi", argc, argv);
    struct problem of = {
        .n = app_integer_option("--n", 1024, 1, 30000, "interior points a side, default 1024")};
    of.iterations = app_integer_option("--iterations", 10, 1, 1000000, "default 10");
    of.steps = app_integer_option("--steps", 10, 1, 1000000, "steps of the method an iteration, default 10");
    app_options_end();

    const long n = of.n;
    const size_t threads = (size_t)omp_get_max_threads();
    of.d = 1 / (double)(n + 1);
    of.first = allocate(2 * threads * (size_t)n);
    of.last = allocate(2 * threads * (size_t)n);
    of.row_sum = allocate((size_t)(n + 2));
    of.row_error = allocate((size_t)(n + 2));
    double(*sine)[n + 2] = (double(*)[n + 2]) allocate(5 * (size_t)(n + 2));
    for (long m = 0; m < 5; m++) {
        for (long i = 0; i < n + 2; i++)
            sine[m][i] = sin((double)m * PI * (double)i * of.d);
        sine[m][0] = sine[m][n + 1] = 0;
    }
    of.sine = sine[0];
    double lambda = (cos(4 * PI * of.d) + cos(3 * PI * of.d)) / 2;
    of.shrunk = pow(lambda, (double)(of.iterations * of.steps));
    char size[64];
    snprintf(size, sizeof size, "%ld x %ld points", n, n);
    app_describe(size, 2 * (n + 2) * (n + 2) * (long)sizeof(double), APP_PARALLEL, (int)threads);

#pragma omp parallel
    thread(&of, omp_get_thread_num(), omp_get_num_threads());

    double total = 0, worst = 0;
    for (long j = 0; j < n + 2; j++) {
        total += of.row_sum[j];
        worst += of.row_error[j];
    }
    worst /= (double)(n + 2) * (double)(n + 2);
    double tolerated = TOLERANCE + TOLERANCE_A_STEP * (double)of.iterations * (double)of.steps;
    app_result("sum", total);
    app_result("mean error", worst);
    app_result("tolerated error", tolerated);
    app_finish(worst <= tolerated ? APP_SUCCESSFUL : APP_FAILED);
    free(sine);
    free(of.row_error);
    free(of.row_sum);
    free(of.last);
    free(of.first);
    return 0;
}
