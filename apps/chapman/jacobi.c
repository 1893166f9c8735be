// Jacobi's method for Laplace's equation on a square: the C twin of jacobi.f90, which see. C lays out rows
// side by side, so rows are distributed here where Fortran distributes columns.
#include "app.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;
static const double TOLERANCE = 1e-13, TOLERANCE_A_STEP = 2.3e-16;

int main(int argc, char** argv) {
    app_begin("chapman_jacobi", argc, argv);
    long n = app_integer_option("--n", 1024, 1, 30000, "interior points a side, default 1024");
    long iterations = app_integer_option("--iterations", 10, 1, 1000000, "default 10");
    long steps =
        app_integer_option("--steps", 10, 1, 1000000, "steps of the method an iteration, default 10");
    int initialisation = app_initialise_option();
    app_options_end();

    size_t bytes = (size_t)(n + 2) * (size_t)(n + 2) * sizeof(double);
    double(*a)[n + 2] = malloc(bytes);
    double(*b)[n + 2] = malloc(bytes);
    double(*sine)[n + 2] = malloc(5 * (size_t)(n + 2) * sizeof(double));
    double* row_sum = malloc((size_t)(n + 2) * sizeof(double));
    double* row_error = malloc((size_t)(n + 2) * sizeof(double));
#pragma homing distribute a[block][*], b[block][*] extent(n + 2, n + 2)
#pragma homing align row_sum[j] with b[j][*]
#pragma homing align row_error[j] with b[j][*]
    if (a == NULL || b == NULL || sine == NULL || row_sum == NULL || row_error == NULL)
        app_error("not enough memory for the grids");

    double d = 1 / (double)(n + 1);
    for (long m = 0; m < 5; m++) {
        for (long i = 0; i < n + 2; i++)
            sine[m][i] = sin((double)m * PI * (double)i * d);
        sine[m][0] = sine[m][n + 1] = 0;
    }

#pragma omp parallel for schedule(static) if (initialisation == APP_PARALLEL)
#pragma homing on home(b[j][ : ])
    for (long j = 0; j < n + 2; j++) {
        double y = (double)j * d;
        for (long i = 0; i < n + 2; i++) {
            double x = (double)i * d;
            b[j][i] = x + 2 * y + x * x - y * y + sine[4][i] * sine[3][j];
            a[j][i] = b[j][i];
        }
    }

    char size[64];
    snprintf(size, sizeof size, "%ld x %ld points", n, n);
    app_describe(size, (long)(2 * bytes), initialisation, omp_get_max_threads());
    app_iterations_begin(iterations);
    for (long m = 0; m < iterations; m++) {
        app_iteration_begin();
        for (long k = 0; k < steps; k++) {
#pragma omp parallel for schedule(static)
#pragma homing on home(a[j][ : ])
            for (long j = 1; j <= n; j++)
                for (long i = 1; i <= n; i++)
                    a[j][i] = (b[j][i - 1] + b[j][i + 1] + b[j - 1][i] + b[j + 1][i]) * 0.25;
#pragma omp parallel for schedule(static)
#pragma homing on home(b[j][ : ])
            for (long j = 1; j <= n; j++)
                for (long i = 1; i <= n; i++)
                    b[j][i] = a[j][i];
        }
        app_iteration_end(NULL, 0);
    }
    app_iterations_end();

    double lambda = (cos(4 * PI * d) + cos(3 * PI * d)) / 2;
    double shrunk = pow(lambda, (double)(iterations * steps));
    // Per row, added up in the order of the rows, so that the digits are those of one thread.
#pragma omp parallel for schedule(static)
#pragma homing on home(b[j][ : ])
    for (long j = 0; j < n + 2; j++) {
        double y = (double)j * d, sum = 0, error = 0;
        for (long i = 0; i < n + 2; i++) {
            double x = (double)i * d;
            sum += b[j][i];
            error += fabs(b[j][i] - (x + 2 * y + x * x - y * y + shrunk * sine[4][i] * sine[3][j]));
        }
        row_sum[j] = sum;
        row_error[j] = error;
    }
    double total = 0, worst = 0;
    for (long j = 0; j < n + 2; j++) {
        total += row_sum[j];
        worst += row_error[j];
    }
    // The mean, in which a value that is not a number shows; a maximum would lose it.
    worst /= (double)(n + 2) * (double)(n + 2);
    double tolerated = TOLERANCE + TOLERANCE_A_STEP * (double)iterations * (double)steps;
    app_result("sum", total);
    app_result("mean error", worst);
    app_result("tolerated error", tolerated);
    app_finish(worst <= tolerated ? APP_SUCCESSFUL : APP_FAILED);
    free(row_error);
    free(row_sum);
    free(sine);
    free(b);
    free(a);
    return 0;
}
