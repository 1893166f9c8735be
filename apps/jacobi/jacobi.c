// Jacobi's method for Laplace's equation on a cube, 7 points, two grids that exchange their roles every
// iteration.
//
// The boundary values are those of the discrete harmonic function h = x + 2y + 3z + x^2 - y^2, and the
// iteration starts from h plus one eigenvector e of the iteration matrix, sin(4 pi x) sin(3 pi y) sin(2 pi
// z), with eigenvalue lambda = (cos(4 pi d) + cos(3 pi d) + cos(2 pi d)) / 3 at distance d of the points. So
// after m iterations the grid must hold h + lambda^m e but for rounding, for every n and m, and every point
// is checked against that.
#include "app.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;

// Rounding of values below 8, which the iteration averages and does not amplify, and of lambda, which its
// m-th power multiplies by m.
static const double TOLERANCE = 1e-13, TOLERANCE_AN_ITERATION = 2.3e-16;

// Points a side by class, boundary included, and the iterations.
static const long class_points[] = {64, 128, 256, 320, 512};
static const long class_iterations[] = {40, 40, 40, 40, 40};

static long n; // points a side

static inline size_t at(long k, long j, long i) {
    return ((size_t)k * (size_t)n + (size_t)j) * (size_t)n + (size_t)i;
}

static double harmonic(long k, long j, long i) {
    double d = 1.0 / (double)(n - 1), x = (double)i * d, y = (double)j * d, z = (double)k * d;
    return x + 2 * y + 3 * z + x * x - y * y;
}

// sine[m * n + i] = sin(m pi i d), which is 0 on the boundary.
static double* sine_table(void) {
    double* sine = malloc(5 * (size_t)n * sizeof *sine);
    if (sine == NULL) app_error("out of memory");
    for (long m = 0; m < 5; m++)
        for (long i = 0; i < n; i++)
            sine[m * n + i] = i == n - 1 ? 0 : sin((double)m * PI * (double)i / (double)(n - 1));
    return sine;
}

static double eigenvector(const double* sine, long k, long j, long i) {
    return sine[4 * n + i] * sine[3 * n + j] * sine[2 * n + k];
}

static void fill_planes(double* a, double* b, const double* sine, long first, long last) {
    for (long k = first; k <= last; k++)
        for (long j = 0; j < n; j++)
            for (long i = 0; i < n; i++)
                a[at(k, j, i)] = b[at(k, j, i)] = harmonic(k, j, i) + eigenvector(sine, k, j, i);
}

// First touch of both grids, dealt out as the interior planes are in sweep; a boundary plane goes with its
// neighbour. The loop binds to the region around it: called outside of one, the master thread runs all of it.
static void fill(double* a, double* b, const double* sine) {
#pragma omp for schedule(static)
    for (long k = 1; k < n - 1; k++)
        fill_planes(a, b, sine, k == 1 ? 0 : k, k == n - 2 ? n - 1 : k);
}

// Returns the largest change of a point. (A maximum, unlike a sum, does not depend on the order of the
// threads.)
static double sweep(const double* restrict from, double* restrict to) {
    const size_t line = (size_t)n, plane = line * line;
    double most = 0;
#pragma omp parallel for schedule(static) reduction(max : most)
    for (long k = 1; k < n - 1; k++)
        for (long j = 1; j < n - 1; j++) {
            const double* restrict p = from + at(k, j, 0);
            double* restrict q = to + at(k, j, 0);
            for (size_t i = 1; i < line - 1; i++) {
                q[i] = ((p[i - 1] + p[i + 1]) + (p - line)[i] + (p + line)[i] + (p - plane)[i] +
                        (p + plane)[i]) /
                       6;
                double change = fabs(q[i] - p[i]);
                most = change > most ? change : most;
            }
        }
    return most;
}

// Per plane: the sum of the values and the largest distance from the solution; added up in the order of the
// planes, so that the digits are those of one thread.
static double check(const double* grid, const double* sine, double shrunk, double* sum) {
    double* plane_sum = calloc((size_t)n, sizeof *plane_sum);
    if (plane_sum == NULL) app_error("out of memory");
    double worst = 0;
#pragma omp parallel for schedule(static) reduction(max : worst)
    for (long k = 0; k < n; k++)
        for (long j = 0; j < n; j++)
            for (long i = 0; i < n; i++) {
                double value = grid[at(k, j, i)];
                double error = fabs(value - (harmonic(k, j, i) + shrunk * eigenvector(sine, k, j, i)));
                plane_sum[k] += value;
                worst = error <= worst ? worst : error;
                if (isnan(error)) worst = INFINITY; // a maximum would lose it
            }
    *sum = 0;
    for (long k = 0; k < n; k++)
        *sum += plane_sum[k];
    free(plane_sum);
    return worst;
}

int main(int argc, char** argv) {
    app_begin("jacobi", argc, argv);
    int class =
        app_choice_option("--class", 0, "S|W|A|B|C", "64, 128, 256, 320 or 512 points a side, 40 iterations");
    n = app_integer_option("--n", class_points[class], 3, 4096,
                           "points a side, boundary included; default by class");
    long iterations = app_integer_option("--iterations", class_iterations[class], 1, 1000000, "default 40");
    int initialisation = app_initialise_option();
    app_options_end();

    size_t bytes = (size_t)n * (size_t)n * (size_t)n * sizeof(double);
    double *from = malloc(bytes), *to = malloc(bytes);
    if (from == NULL || to == NULL) app_error("not enough memory for the grids");
    double* sine = sine_table();
    if (initialisation == APP_PARALLEL) {
#pragma omp parallel
        fill(from, to, sine);
    } else {
        fill(from, to, sine);
    }
    char size[64];
    snprintf(size, sizeof size, "%ld x %ld x %ld points", n, n, n);
    app_describe(size, (long)(2 * bytes), initialisation, omp_get_max_threads());

    app_iterations_begin(iterations);
    double change = 0;
    for (long m = 0; m < iterations; m++) {
        app_iteration_begin();
        change = sweep(from, to);
        double* exchanged = from;
        from = to;
        to = exchanged;
        app_iteration_end("largest change", change);
    }
    app_iterations_end();

    double angle = PI / (double)(n - 1);
    double lambda = (cos(4 * angle) + cos(3 * angle) + cos(2 * angle)) / 3;
    double sum, worst = check(from, sine, pow(lambda, (double)iterations), &sum);
    double tolerance = TOLERANCE + TOLERANCE_AN_ITERATION * (double)iterations;
    app_result("largest change", change);
    app_result("sum", sum);
    app_result("largest error", worst);
    app_result("tolerated error", tolerance);
    app_finish(worst <= tolerance ? APP_SUCCESSFUL : APP_FAILED);
    free(sine);
    free(from);
    free(to);
    return 0;
}
