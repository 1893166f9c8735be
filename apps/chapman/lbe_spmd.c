// lbe.c written by hand in SPMD style: the C twin of lbe_spmd.f90, which see. A thread's row r, from 1 to
// `rows`, is row low + r - 1; rows 0 and rows + 1 of f are the shadow. ux, uy and p have these rows, too.
#include "app.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;
static const double W0 = 4.0 / 9, W1 = 1.0 / 9, W2 = 1.0 / 36;
// At (tau - 1/2)^2 = 3/16 the walls lie exactly halfway (the viscosity is (tau - 1/2)/3).
static const double TAU = 0.9330127018922193;
static const double WAVE = 1e-3;
// Of the root mean square of the velocity, compared with the series': molecules take a few steps to become a
// fluid.
static const double TOLERANCE = 0.002, TOLERANCE_FIRST_STEP = 0.1, TOLERANCE_MASS = 1e-11;

struct problem {
    long nx, ny, iterations, steps;
    double force;
    // 3 rows of nx for thread p in steps of parity t, from 3 (2 p + t) on: populations 4, 7, 8 pushed below
    // its first row, and 2, 5, 6 above its last row.
    double *below, *above;
    double *row_mass, *row_velocity, *row_momentum;
};

static double* allocate(size_t count) {
    double* memory = malloc(count * sizeof(double));
    if (memory == NULL) app_error("not enough memory for the populations");
    return memory;
}

static void start(long nx, long rows, double f[rows + 2][9][nx + 2], double fold[rows + 2][9][nx + 2]) {
    for (long r = 1; r <= rows; r++)
        for (long q = 0; q < 9; q++) {
            double w = q == 0 ? W0 : q <= 4 ? W1 : W2;
            for (long i = 0; i < nx + 2; i++) {
                double rho = 1 + WAVE * cos(2 * PI * (double)i / (double)nx);
                f[r][q][i] = w * rho;
                fold[r][q][i] = w * rho;
            }
        }
}

// Rows begin to end are those between the walls.
static void calculate_ux_uy_p(long nx, long begin, long end, double force, double fold[][9][nx + 2],
                              double ux[][nx], double uy[][nx], double p[][nx]) {
    for (long r = begin; r <= end; r++)
        for (long i = 0; i < nx; i++) {
            double rho = fold[r][0][i + 1] + fold[r][1][i + 1] + fold[r][2][i + 1] + fold[r][3][i + 1] +
                         fold[r][4][i + 1] + fold[r][5][i + 1] + fold[r][6][i + 1] + fold[r][7][i + 1] +
                         fold[r][8][i + 1];
            ux[r][i] = (fold[r][1][i + 1] - fold[r][3][i + 1] + fold[r][5][i + 1] - fold[r][6][i + 1] -
                        fold[r][7][i + 1] + fold[r][8][i + 1] + 0.5 * force) /
                       rho;
            uy[r][i] = (fold[r][2][i + 1] - fold[r][4][i + 1] + fold[r][5][i + 1] + fold[r][6][i + 1] -
                        fold[r][7][i + 1] - fold[r][8][i + 1]) /
                       rho;
            p[r][i] = rho / 3;
        }
}

static void collision_advection_interior(long nx, long begin, long end, double force, double f[][9][nx + 2],
                                         double fold[][9][nx + 2], double ux[][nx], double uy[][nx],
                                         double p[][nx]) {
    double omega = 1 / TAU, push = 3 * (1 - 0.5 * omega) * force;
    for (long r = begin; r <= end; r++)
        for (long i = 1; i <= nx; i++) {
            double rho = 3 * p[r][i - 1], u = ux[r][i - 1], v = uy[r][i - 1];
            double uu = 1.5 * (u * u + v * v), s = u + v, d = u - v;
            f[r][0][i] = fold[r][0][i] - omega * (fold[r][0][i] - W0 * rho * (1 - uu)) - W0 * push * u;
            f[r][1][i + 1] = fold[r][1][i] -
                             omega * (fold[r][1][i] - W1 * rho * (1 + 3 * u + 4.5 * u * u - uu)) +
                             W1 * push * (1 + 2 * u);
            f[r + 1][2][i] = fold[r][2][i] -
                             omega * (fold[r][2][i] - W1 * rho * (1 + 3 * v + 4.5 * v * v - uu)) -
                             W1 * push * u;
            f[r][3][i - 1] = fold[r][3][i] -
                             omega * (fold[r][3][i] - W1 * rho * (1 - 3 * u + 4.5 * u * u - uu)) +
                             W1 * push * (2 * u - 1);
            f[r - 1][4][i] = fold[r][4][i] -
                             omega * (fold[r][4][i] - W1 * rho * (1 - 3 * v + 4.5 * v * v - uu)) -
                             W1 * push * u;
            f[r + 1][5][i + 1] = fold[r][5][i] -
                                 omega * (fold[r][5][i] - W2 * rho * (1 + 3 * s + 4.5 * s * s - uu)) +
                                 W2 * push * (1 + 2 * u + 3 * v);
            f[r + 1][6][i - 1] = fold[r][6][i] -
                                 omega * (fold[r][6][i] - W2 * rho * (1 - 3 * d + 4.5 * d * d - uu)) +
                                 W2 * push * (2 * u - 1 - 3 * v);
            f[r - 1][7][i - 1] = fold[r][7][i] -
                                 omega * (fold[r][7][i] - W2 * rho * (1 - 3 * s + 4.5 * s * s - uu)) +
                                 W2 * push * (2 * u - 1 + 3 * v);
            f[r - 1][8][i + 1] = fold[r][8][i] -
                                 omega * (fold[r][8][i] - W2 * rho * (1 + 3 * d + 4.5 * d * d - uu)) +
                                 W2 * push * (1 + 2 * u - 3 * v);
        }
}

static void exchange(const struct problem* of, long low, long rows, double f[][9][of->nx + 2], long me,
                     long parity) {
    const long nx = of->nx, ny = of->ny, high = low + rows - 1;
    const size_t bytes = (size_t)nx * sizeof(double);
    double(*below)[3][nx] = (double(*)[3][nx])of->below, (*above)[3][nx] = (double(*)[3][nx])of->above;
    if (rows > 0 && low >= 1 && low <= ny) {
        memcpy(below[2 * me + parity][0], &f[0][4][1], bytes);
        memcpy(below[2 * me + parity][1], &f[0][7][0], bytes);
        memcpy(below[2 * me + parity][2], &f[0][8][2], bytes);
    }
    if (rows > 0 && high >= 1 && high <= ny) {
        memcpy(above[2 * me + parity][0], &f[rows + 1][2][1], bytes);
        memcpy(above[2 * me + parity][1], &f[rows + 1][5][2], bytes);
        memcpy(above[2 * me + parity][2], &f[rows + 1][6][0], bytes);
    }
#pragma omp barrier
    if (rows > 0 && high < ny) {
        memcpy(&f[rows][4][1], below[2 * (me + 1) + parity][0], bytes);
        memcpy(&f[rows][7][0], below[2 * (me + 1) + parity][1], bytes);
        memcpy(&f[rows][8][2], below[2 * (me + 1) + parity][2], bytes);
    }
    if (rows > 0 && low > 1) {
        memcpy(&f[1][2][1], above[2 * (me - 1) + parity][0], bytes);
        memcpy(&f[1][5][2], above[2 * (me - 1) + parity][1], bytes);
        memcpy(&f[1][6][0], above[2 * (me - 1) + parity][2], bytes);
    }
}

// The wall's row, 0 or ny + 1, is the thread's own or its shadow; nobody else pushes into it.
static void collision_advection_boundary(long nx, long ny, long low, long begin, long end,
                                         double f[][9][nx + 2]) {
    for (long r = begin; r <= end; r++) {
        f[r][1][1] = f[r][1][nx + 1];
        f[r][3][nx] = f[r][3][0];
        f[r][5][1] = f[r][5][nx + 1];
        f[r][6][nx] = f[r][6][0];
        f[r][7][nx] = f[r][7][0];
        f[r][8][1] = f[r][8][nx + 1];
    }
    if (begin > end) return;
    if (low + begin - 1 == 1)
        for (long i = 1; i <= nx; i++) {
            f[begin][2][i] = f[begin - 1][4][i];
            f[begin][5][i] = f[begin - 1][7][i - 1];
            f[begin][6][i] = f[begin - 1][8][i + 1];
        }
    if (low + end - 1 == ny)
        for (long i = 1; i <= nx; i++) {
            f[end][4][i] = f[end + 1][2][i];
            f[end][7][i] = f[end + 1][5][i + 1];
            f[end][8][i] = f[end + 1][6][i - 1];
        }
}

static void thread(const struct problem* of, long me, long threads) {
    const long nx = of->nx, ny = of->ny;
    const long width = (ny + 2 + threads - 1) / threads;
    const long low = me * width < ny + 2 ? me * width : ny + 2;
    const long rows = low + width < ny + 2 ? width : ny + 2 - low;
    const long begin = low == 0 ? 2 : 1, end = low + rows == ny + 2 ? rows - 1 : rows;
    const size_t row = 9 * (size_t)(nx + 2), own = (size_t)(rows + 2);
    double(*f)[9][nx + 2] = (double(*)[9][nx + 2]) allocate(own * row);
    double(*fold)[9][nx + 2] = (double(*)[9][nx + 2]) allocate(own * row);
    double(*ux)[nx] = (double(*)[nx])allocate(own * (size_t)nx);
    double(*uy)[nx] = (double(*)[nx])allocate(own * (size_t)nx);
    double(*p)[nx] = (double(*)[nx])allocate(own * (size_t)nx);
    start(nx, rows, f, fold);
#pragma omp barrier
#pragma omp master
    app_iterations_begin(of->iterations);
    long parity = 0;
    for (long m = 0; m < of->iterations; m++) {
#pragma omp master
        app_iteration_begin();
        for (long k = 0; k < of->steps; k++) {
            calculate_ux_uy_p(nx, begin, end, of->force, fold, ux, uy, p);
            collision_advection_interior(nx, begin, end, of->force, f, fold, ux, uy, p);
            exchange(of, low, rows, f, me, parity);
            parity = 1 - parity;
            collision_advection_boundary(nx, ny, low, begin, end, f);
            for (long r = begin; r <= end; r++)
                for (long q = 0; q < 9; q++)
                    for (long i = 1; i <= nx; i++)
                        fold[r][q][i] = f[r][q][i];
        }
#pragma omp barrier
#pragma omp master
        app_iteration_end(NULL, 0);
    }
#pragma omp master
    app_iterations_end();
    calculate_ux_uy_p(nx, begin, end, of->force, fold, ux, uy, p);
    for (long r = begin; r <= end; r++) {
        double mass = 0, velocity = 0, momentum = 0;
        for (long i = 0; i < nx; i++) {
            mass += 3 * p[r][i];
            velocity += ux[r][i] / (double)nx;
            momentum += 3 * p[r][i] * uy[r][i];
        }
        const long j = low + r - 2; // rows of the flow count from 0
        of->row_mass[j] = mass;
        of->row_velocity[j] = velocity;
        of->row_momentum[j] = momentum;
    }
    free(p);
    free(uy);
    free(ux);
    free(fold);
    free(f);
}

// The start-up flow at time `time` and height y of the distance of the walls, in units of its largest
// velocity.
static double series(double viscosity, double time, long ny, double y) {
    double result = 0.2 * y * (1 - y);
    for (int k = 1; k < 200; k += 2)
        result -=
            1.6 / pow(PI * k, 3) * sin(k * PI * y) * exp(-viscosity * time * pow(PI * k / (double)ny, 2));
    return result;
}

int main(int argc, char** argv) {
    app_begin("chapman_lbe", argc, argv);
    struct problem of = {
        .nx = app_integer_option("--nx", 256, 1, 20000, "points along the walls, default 256")};
    of.ny = app_integer_option("--ny", 256, 1, 20000, "points between them, default 256");
    of.iterations = app_integer_option("--iterations", 10, 1, 1000000, "default 10");
    of.steps = app_integer_option("--steps", 10, 1, 1000000, "time steps an iteration, default 10");
    app_options_end();

    const long nx = of.nx, ny = of.ny, iterations = of.iterations, steps = of.steps;
    const size_t threads = (size_t)omp_get_max_threads();
    of.below = allocate(6 * threads * (size_t)nx);
    of.above = allocate(6 * threads * (size_t)nx);
    of.row_mass = allocate((size_t)ny);
    of.row_velocity = allocate((size_t)ny);
    of.row_momentum = allocate((size_t)ny);
    double viscosity = (TAU - 0.5) / 3;
    of.force = 8 * viscosity * 0.05 / ((double)ny * (double)ny);
    char size[64];
    snprintf(size, sizeof size, "%ld x %ld points", nx, ny);
    app_describe(size, (long)sizeof(double) * (18 * (nx + 2) * (ny + 2) + 3 * nx * ny), APP_PARALLEL,
                 (int)threads);

#pragma omp parallel
    thread(&of, omp_get_thread_num(), omp_get_num_threads());

    // Starting populations are those of rest, so that the velocity is half a step ahead.
    double all_steps = (double)iterations * (double)steps, time = all_steps + 0.5;
    double mass = 0, velocity = 0, momentum = 0, difference = 0, norm = 0;
    for (long j = 0; j < ny; j++) {
        mass += of.row_mass[j];
        velocity += of.row_velocity[j];
        momentum += of.row_momentum[j];
        double expected = series(viscosity, time, ny, ((double)j + 0.5) / (double)ny);
        difference += (of.row_velocity[j] - expected) * (of.row_velocity[j] - expected);
        norm += expected * expected;
    }
    difference = sqrt(difference / norm);
    double tolerated = TOLERANCE + TOLERANCE_FIRST_STEP / all_steps;
    app_result("mass", mass);
    app_result("momentum across", momentum);
    app_result("velocity", velocity / (double)ny);
    app_result("difference from the series", difference);
    app_result("tolerated difference", tolerated);
    // The wave has no mean, but with one column it is a constant.
    double lost = mass / ((double)nx * (double)ny) - (nx == 1 ? 1 + WAVE : 1);
    app_finish(difference <= tolerated && fabs(lost) <= TOLERANCE_MASS ? APP_SUCCESSFUL : APP_FAILED);
    free(of.row_momentum);
    free(of.row_velocity);
    free(of.row_mass);
    free(of.above);
    free(of.below);
    return 0;
}
