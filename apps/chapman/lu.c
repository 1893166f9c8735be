// LU factorisation without pivoting: the C twin of lu.f90, which see. The matrix lies column by column, as in
// the paper's program 6: lu[j][i] is row i of column j.
#include "app.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static const double TOLERANCE_A_STEP = 1e-15;

int main(int argc, char** argv) {
    app_begin("chapman_lu", argc, argv);
    long n = app_integer_option("--n", 2048, 1, 30000, "rows and columns, default 2048");
    int initialisation = app_initialise_option();
    app_options_end();

    double(*lu)[n] = malloc((size_t)n * (size_t)n * sizeof(double));
    double* power = malloc((size_t)(n + 1) * sizeof(double));
    double* d = malloc((size_t)n * sizeof(double));
    double* column_sum = malloc((size_t)n * sizeof(double));
    double* column_error = malloc((size_t)n * sizeof(double));
#pragma homing distribute lu[cyclic][*] extent(n, n)
#pragma homing align column_sum[j] with lu[j][*]
#pragma homing align column_error[j] with lu[j][*]
    if (lu == NULL || power == NULL || d == NULL || column_sum == NULL || column_error == NULL)
        app_error("not enough memory for the matrix");

    // So near to 1 that no power is small.
    double r = 1 - 4 / (double)(n + 8);
    for (long i = 0; i <= n; i++)
        power[i] = pow(r, (double)i);
    for (long i = 0; i < n; i++)
        d[i] = 1 + (double)(7 * (i + 1) % 5) / 8;

#pragma omp parallel for if (initialisation == APP_PARALLEL)
#pragma homing affinity(j) = data(lu[j][0])
    for (long j = 0; j < n; j++)
        for (long i = 0; i < n; i++)
            lu[j][i] = d[i] * power[labs(i - j)];

    char size[64];
    snprintf(size, sizeof size, "%ld x %ld", n, n);
    app_describe(size, n * n * (long)sizeof(double), initialisation, omp_get_max_threads());
    app_iterations_begin(1);
    app_iteration_begin();
#pragma omp parallel
    for (long k = 0; k < n - 1; k++) {
#pragma omp single
        for (long i = k + 1; i < n; i++)
            lu[k][i] = lu[k][i] / lu[k][k];
#pragma omp for
#pragma homing affinity(j) = data(lu[j][0])
        for (long j = k + 1; j < n; j++)
            for (long i = k + 1; i < n; i++)
                lu[j][i] = lu[j][i] - lu[j][k] * lu[k][i];
    }
    app_iteration_end(NULL, 0);
    app_iterations_end();

    // Per column, added up in the order of the columns, so that the digits are those of one thread.
#pragma omp parallel for
#pragma homing affinity(j) = data(lu[j][0])
    for (long j = 0; j < n; j++) {
        double sum = 0, error = 0;
        for (long i = 0; i < n; i++) {
            double expected;
            if (i > j)
                expected = d[i] / d[j] * power[i - j];
            else if (i == 0)
                expected = d[0] * power[j];
            else
                expected = d[i] * (1 - r * r) * power[j - i];
            sum += lu[j][i];
            error += fabs(lu[j][i] - expected);
        }
        column_sum[j] = sum;
        column_error[j] = error;
    }
    double total = 0, worst = 0;
    for (long j = 0; j < n; j++) {
        total += column_sum[j];
        worst += column_error[j];
    }
    worst /= (double)n * (double)n;
    double tolerated = TOLERANCE_A_STEP * (double)n;
    app_result("sum", total);
    app_result("mean error", worst);
    app_result("tolerated error", tolerated);
    app_finish(worst <= tolerated ? APP_SUCCESSFUL : APP_FAILED);
    free(column_error);
    free(column_sum);
    free(d);
    free(power);
    free(lu);
    return 0;
}
