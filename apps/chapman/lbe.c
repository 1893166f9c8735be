// A nine-velocity lattice Boltzmann code: the C twin of lbe.f90, which see. f[j][q][i]: population q of point
// i of row j; rows are distributed.
#include "app.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;
static const double W0 = 4.0 / 9, W1 = 1.0 / 9, W2 = 1.0 / 36;
// At (tau - 1/2)^2 = 3/16 the walls lie exactly halfway (the viscosity is (tau - 1/2)/3).
static const double TAU = 0.9330127018922193;
static const double WAVE = 1e-3;
// Of the root mean square of the velocity, compared with the series': molecules take a few steps to become a
// fluid.
static const double TOLERANCE = 0.002, TOLERANCE_FIRST_STEP = 0.1, TOLERANCE_MASS = 1e-11;

// First touch. Column 0 and nx + 1 take what leaves at the sides, rows 0 and ny + 1 what hits the walls.
static void start(long nx, long ny, double f[ny + 2][9][nx + 2], double fold[ny + 2][9][nx + 2],
                  double ux[ny][nx], double uy[ny][nx], double p[ny][nx], double wave) {
#pragma omp for schedule(static)
#pragma homing on home(f[j][ : ][ : ])
    for (long j = 0; j < ny + 2; j++)
        for (long q = 0; q < 9; q++) {
            double w = q == 0 ? W0 : q <= 4 ? W1 : W2;
            for (long i = 0; i < nx + 2; i++) {
                double rho = 1 + wave * cos(2 * PI * (double)i / (double)nx);
                f[j][q][i] = w * rho;
                fold[j][q][i] = w * rho;
            }
        }
#pragma omp for schedule(static)
#pragma homing on home(p[j][ : ])
    for (long j = 0; j < ny; j++)
        for (long i = 0; i < nx; i++) {
            ux[j][i] = 0;
            uy[j][i] = 0;
            p[j][i] = 0;
        }
}

// Half of the force's impulse counts for the velocity of the moment.
static void calculate_ux_uy_p(long nx, long ny, double force, double fold[ny + 2][9][nx + 2],
                              double ux[ny][nx], double uy[ny][nx], double p[ny][nx]) {
#pragma omp for schedule(static)
#pragma homing on home(p[j][ : ])
    for (long j = 0; j < ny; j++)
        for (long i = 0; i < nx; i++) {
            double rho = fold[j + 1][0][i + 1] + fold[j + 1][1][i + 1] + fold[j + 1][2][i + 1] +
                         fold[j + 1][3][i + 1] + fold[j + 1][4][i + 1] + fold[j + 1][5][i + 1] +
                         fold[j + 1][6][i + 1] + fold[j + 1][7][i + 1] + fold[j + 1][8][i + 1];
            ux[j][i] = (fold[j + 1][1][i + 1] - fold[j + 1][3][i + 1] + fold[j + 1][5][i + 1] -
                        fold[j + 1][6][i + 1] - fold[j + 1][7][i + 1] + fold[j + 1][8][i + 1] + 0.5 * force) /
                       rho;
            uy[j][i] = (fold[j + 1][2][i + 1] - fold[j + 1][4][i + 1] + fold[j + 1][5][i + 1] +
                        fold[j + 1][6][i + 1] - fold[j + 1][7][i + 1] - fold[j + 1][8][i + 1]) /
                       rho;
            p[j][i] = rho / 3;
        }
}

static void collision_advection_interior(long nx, long ny, double force, double f[ny + 2][9][nx + 2],
                                         double fold[ny + 2][9][nx + 2], double ux[ny][nx], double uy[ny][nx],
                                         double p[ny][nx]) {
    double omega = 1 / TAU, push = 3 * (1 - 0.5 * omega) * force;
#pragma omp for schedule(static)
#pragma homing on home(f[j][ : ][ : ])
    for (long j = 1; j <= ny; j++)
        for (long i = 1; i <= nx; i++) {
            double rho = 3 * p[j - 1][i - 1], u = ux[j - 1][i - 1], v = uy[j - 1][i - 1];
            double uu = 1.5 * (u * u + v * v), s = u + v, d = u - v;
            f[j][0][i] = fold[j][0][i] - omega * (fold[j][0][i] - W0 * rho * (1 - uu)) - W0 * push * u;
            f[j][1][i + 1] = fold[j][1][i] -
                             omega * (fold[j][1][i] - W1 * rho * (1 + 3 * u + 4.5 * u * u - uu)) +
                             W1 * push * (1 + 2 * u);
            f[j + 1][2][i] = fold[j][2][i] -
                             omega * (fold[j][2][i] - W1 * rho * (1 + 3 * v + 4.5 * v * v - uu)) -
                             W1 * push * u;
            f[j][3][i - 1] = fold[j][3][i] -
                             omega * (fold[j][3][i] - W1 * rho * (1 - 3 * u + 4.5 * u * u - uu)) +
                             W1 * push * (2 * u - 1);
            f[j - 1][4][i] = fold[j][4][i] -
                             omega * (fold[j][4][i] - W1 * rho * (1 - 3 * v + 4.5 * v * v - uu)) -
                             W1 * push * u;
            f[j + 1][5][i + 1] = fold[j][5][i] -
                                 omega * (fold[j][5][i] - W2 * rho * (1 + 3 * s + 4.5 * s * s - uu)) +
                                 W2 * push * (1 + 2 * u + 3 * v);
            f[j + 1][6][i - 1] = fold[j][6][i] -
                                 omega * (fold[j][6][i] - W2 * rho * (1 - 3 * d + 4.5 * d * d - uu)) +
                                 W2 * push * (2 * u - 1 - 3 * v);
            f[j - 1][7][i - 1] = fold[j][7][i] -
                                 omega * (fold[j][7][i] - W2 * rho * (1 - 3 * s + 4.5 * s * s - uu)) +
                                 W2 * push * (2 * u - 1 + 3 * v);
            f[j - 1][8][i + 1] = fold[j][8][i] -
                                 omega * (fold[j][8][i] - W2 * rho * (1 + 3 * d + 4.5 * d * d - uu)) +
                                 W2 * push * (1 + 2 * u - 3 * v);
        }
}

// What left at a side comes in at the other; what hit a wall goes back to where it came from.
static void collision_advection_boundary(long nx, long ny, double f[ny + 2][9][nx + 2]) {
#pragma omp for schedule(static)
#pragma homing on home(f[j][ : ][ : ])
    for (long j = 1; j <= ny; j++) {
        f[j][1][1] = f[j][1][nx + 1];
        f[j][3][nx] = f[j][3][0];
        f[j][5][1] = f[j][5][nx + 1];
        f[j][6][nx] = f[j][6][0];
        f[j][7][nx] = f[j][7][0];
        f[j][8][1] = f[j][8][nx + 1];
    }
#pragma omp single
    for (long i = 1; i <= nx; i++) {
        f[1][2][i] = f[0][4][i];
        f[1][5][i] = f[0][7][i - 1];
        f[1][6][i] = f[0][8][i + 1];
    }
#pragma omp single
    for (long i = 1; i <= nx; i++) {
        f[ny][4][i] = f[ny + 1][2][i];
        f[ny][7][i] = f[ny + 1][5][i + 1];
        f[ny][8][i] = f[ny + 1][6][i - 1];
    }
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
    long nx = app_integer_option("--nx", 256, 1, 20000, "points along the walls, default 256");
    long ny = app_integer_option("--ny", 256, 1, 20000, "points between them, default 256");
    long iterations = app_integer_option("--iterations", 10, 1, 1000000, "default 10");
    long steps = app_integer_option("--steps", 10, 1, 1000000, "time steps an iteration, default 10");
    int initialisation = app_initialise_option();
    app_options_end();

    size_t points = (size_t)nx * (size_t)ny, padded = (size_t)(nx + 2) * (size_t)(ny + 2);
    double(*f)[9][nx + 2] = malloc(9 * padded * sizeof(double));
    double(*fold)[9][nx + 2] = malloc(9 * padded * sizeof(double));
    double(*ux)[nx] = malloc(points * sizeof(double));
    double(*uy)[nx] = malloc(points * sizeof(double));
    double(*p)[nx] = malloc(points * sizeof(double));
    double* row_mass = malloc((size_t)ny * sizeof(double));
    double* row_velocity = malloc((size_t)ny * sizeof(double));
    double* row_momentum = malloc((size_t)ny * sizeof(double));
#pragma homing distribute f[block][*][*], fold[block][*][*] extent(ny + 2, 9, nx + 2)
#pragma homing align ux[j][i] with f[j + 1][*][i + 1]
#pragma homing align uy[j][i] with f[j + 1][*][i + 1]
#pragma homing align p[j][i] with f[j + 1][*][i + 1]
#pragma homing align row_mass[j] with f[j + 1][*][*]
#pragma homing align row_velocity[j] with f[j + 1][*][*]
#pragma homing align row_momentum[j] with f[j + 1][*][*]
#pragma homing shadow f[1][0][0]
    if (f == NULL || fold == NULL || ux == NULL || uy == NULL || p == NULL || row_mass == NULL ||
        row_velocity == NULL || row_momentum == NULL)
        app_error("not enough memory for the populations");

    // The largest velocity will be 0.05 in the middle.
    double viscosity = (TAU - 0.5) / 3, force = 8 * viscosity * 0.05 / ((double)ny * (double)ny);
#pragma omp parallel if (initialisation == APP_PARALLEL)
    start(nx, ny, f, fold, ux, uy, p, WAVE);

    char size[64];
    snprintf(size, sizeof size, "%ld x %ld points", nx, ny);
    app_describe(size, (long)(sizeof(double) * (18 * padded + 3 * points)), initialisation,
                 omp_get_max_threads());
    app_iterations_begin(iterations);
    for (long m = 0; m < iterations; m++) {
        app_iteration_begin();
#pragma omp parallel
        for (long k = 0; k < steps; k++) {
            calculate_ux_uy_p(nx, ny, force, fold, ux, uy, p);
            collision_advection_interior(nx, ny, force, f, fold, ux, uy, p);
            collision_advection_boundary(nx, ny, f);
#pragma omp for schedule(static)
#pragma homing on home(f[j][ : ][ : ])
            for (long j = 1; j <= ny; j++)
                for (long q = 0; q < 9; q++)
                    for (long i = 1; i <= nx; i++)
                        fold[j][q][i] = f[j][q][i];
        }
        app_iteration_end(NULL, 0);
    }
    app_iterations_end();

#pragma omp parallel
    calculate_ux_uy_p(nx, ny, force, fold, ux, uy, p);
    // Per row, added up in the order of the rows, so that the digits are those of one thread.
#pragma omp parallel for schedule(static)
#pragma homing on home(p[j][ : ])
    for (long j = 0; j < ny; j++) {
        double mass = 0, velocity = 0, momentum = 0;
        for (long i = 0; i < nx; i++) {
            mass += 3 * p[j][i];
            velocity += ux[j][i] / (double)nx;
            momentum += 3 * p[j][i] * uy[j][i];
        }
        row_mass[j] = mass;
        row_velocity[j] = velocity;
        row_momentum[j] = momentum;
    }

    // Starting populations are those of rest, so that the velocity is half a step ahead.
    double all_steps = (double)iterations * (double)steps, time = all_steps + 0.5;
    double mass = 0, velocity = 0, momentum = 0, difference = 0, norm = 0;
    for (long j = 0; j < ny; j++) {
        mass += row_mass[j];
        velocity += row_velocity[j];
        momentum += row_momentum[j];
        double expected = series(viscosity, time, ny, ((double)j + 0.5) / (double)ny);
        difference += (row_velocity[j] - expected) * (row_velocity[j] - expected);
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
    double lost = mass / (double)points - (nx == 1 ? 1 + WAVE : 1);
    app_finish(difference <= tolerated && fabs(lost) <= TOLERANCE_MASS ? APP_SUCCESSFUL : APP_FAILED);
    free(row_momentum);
    free(row_velocity);
    free(row_mass);
    free(p);
    free(uy);
    free(ux);
    free(fold);
    free(f);
    return 0;
}
