// The lattice Boltzmann code on the shared memory: the paper's Program 3 as "shared", and in SPMD style as
// section 5 tells it as "private". The flow is that of chapman/lbe.c: a force along two walls. f[j][q][i] is
// population q of point i of row j. As in Program 3 the grid has its boundary in it: 256 x 256 in all, so
// that blocks of rows begin where pages begin.
//
// Shared: a barrier after each of the three routines and after the copy. Private: three populations go across
// each border, through buffers that are shared; two pairs of buffers take turns, so that a step has one
// barrier. The paper does not say how its buffers lie; here each begins in a page of its own.
#include "app.h"
#include "program.h"

#include <string.h>

enum { Q = 9, SENT = 3 }; // populations of a point; and of them those that go across one border
static const double W0 = 4.0 / 9, W1 = 1.0 / 9, W2 = 1.0 / 36;
static const double TAU = 0.9330127018922193;
static const double FORCE = 1e-6;
static const int UP[SENT] = {2, 5, 6}, DOWN[SENT] = {4, 7, 8};

// Rows begin to end - 1 of these arrays are worked on; `low` is the row of the grid that is row 0 of them.
struct grid {
    long n, low;
    void *f, *fold, *ux, *uy, *p;
};

static size_t population_bytes(long n, long rows) { return (size_t)rows * Q * (size_t)n * sizeof(double); }

static size_t field_bytes(long n, long rows) { return (size_t)rows * (size_t)n * sizeof(double); }

static struct grid make_grid(long n, long low, long rows, void* (*allocate)(size_t bytes)) {
    struct grid grid = {.n = n, .low = low};
    grid.f = allocate(population_bytes(n, rows));
    grid.fold = allocate(population_bytes(n, rows));
    grid.ux = allocate(field_bytes(n, rows));
    grid.uy = allocate(field_bytes(n, rows));
    grid.p = allocate(field_bytes(n, rows));
    return grid;
}

static void fill(const struct grid* of, long begin, long end) {
    const long n = of->n;
    double(*f)[Q][n] = of->f, (*fold)[Q][n] = of->fold;
    for (long j = begin; j < end; j++)
        for (int q = 0; q < Q; q++)
            for (long i = 0; i < n; i++) {
                double weight = q == 0 ? W0 : q <= 4 ? W1 : W2;
                double density = 1 + 1e-3 * (double)(i * 13 % 61) / 61;
                f[j][q][i] = fold[j][q][i] = weight * density;
            }
}

static void calculate_ux_uy_p(const struct grid* of, long begin, long end) {
    const long n = of->n;
    double(*fold)[Q][n] = of->fold, (*ux)[n] = of->ux, (*uy)[n] = of->uy, (*p)[n] = of->p;
    for (long j = begin; j < end; j++)
        for (long i = 1; i < n - 1; i++) {
            double rho = 0;
            for (int q = 0; q < Q; q++)
                rho += fold[j][q][i];
            ux[j][i] = (fold[j][1][i] - fold[j][3][i] + fold[j][5][i] - fold[j][6][i] - fold[j][7][i] +
                        fold[j][8][i] + 0.5 * FORCE) /
                       rho;
            uy[j][i] = (fold[j][2][i] - fold[j][4][i] + fold[j][5][i] + fold[j][6][i] - fold[j][7][i] -
                        fold[j][8][i]) /
                       rho;
            p[j][i] = rho / 3;
        }
}

// A population after the collision: `along` is the velocity in its direction.
static double collided(double fold, double weight, double rho, double along, double uu, double push) {
    return fold - (fold - weight * rho * (1 + 3 * along + 4.5 * along * along - uu)) / TAU + weight * push;
}

static void collision_advection_interior(const struct grid* of, long begin, long end) {
    const long n = of->n;
    double(*f)[Q][n] = of->f, (*fold)[Q][n] = of->fold, (*ux)[n] = of->ux, (*uy)[n] = of->uy, (*p)[n] = of->p;
    const double push = 3 * (1 - 0.5 / TAU) * FORCE;
    for (long j = begin; j < end; j++)
        for (long i = 1; i < n - 1; i++) {
            double rho = 3 * p[j][i], u = ux[j][i], v = uy[j][i], uu = 1.5 * (u * u + v * v);
            double sum = u + v, difference = u - v;
            f[j][0][i] = collided(fold[j][0][i], W0, rho, 0, uu, -push * u);
            f[j][1][i + 1] = collided(fold[j][1][i], W1, rho, u, uu, push * (1 + 2 * u));
            f[j + 1][2][i] = collided(fold[j][2][i], W1, rho, v, uu, -push * u);
            f[j][3][i - 1] = collided(fold[j][3][i], W1, rho, -u, uu, push * (2 * u - 1));
            f[j - 1][4][i] = collided(fold[j][4][i], W1, rho, -v, uu, -push * u);
            f[j + 1][5][i + 1] = collided(fold[j][5][i], W2, rho, sum, uu, push * (1 + 2 * u + 3 * v));
            f[j + 1][6][i - 1] =
                collided(fold[j][6][i], W2, rho, -difference, uu, push * (2 * u - 1 - 3 * v));
            f[j - 1][7][i - 1] = collided(fold[j][7][i], W2, rho, -sum, uu, push * (2 * u - 1 + 3 * v));
            f[j - 1][8][i + 1] = collided(fold[j][8][i], W2, rho, difference, uu, push * (1 + 2 * u - 3 * v));
        }
}

// What left at a side comes in at the other; what hit a wall goes back to where it came from.
static void collision_advection_boundary(const struct grid* of, long begin, long end) {
    const long n = of->n, below = 1 - of->low, above = n - 2 - of->low; // the rows along the walls
    double(*f)[Q][n] = of->f;
    for (long j = begin; j < end; j++) {
        f[j][1][1] = f[j][1][n - 1];
        f[j][3][n - 2] = f[j][3][0];
        f[j][5][1] = f[j][5][n - 1];
        f[j][6][n - 2] = f[j][6][0];
        f[j][7][n - 2] = f[j][7][0];
        f[j][8][1] = f[j][8][n - 1];
    }
    for (long i = 1; begin <= below && below < end && i < n - 1; i++) {
        f[below][2][i] = f[below - 1][4][i];
        f[below][5][i] = f[below - 1][7][i - 1];
        f[below][6][i] = f[below - 1][8][i + 1];
    }
    for (long i = 1; begin <= above && above < end && i < n - 1; i++) {
        f[above][4][i] = f[above + 1][2][i];
        f[above][7][i] = f[above + 1][5][i + 1];
        f[above][8][i] = f[above + 1][6][i - 1];
    }
}

static void copy_back(const struct grid* of, long begin, long end) {
    const long n = of->n;
    double(*f)[Q][n] = of->f, (*fold)[Q][n] = of->fold;
    for (long j = begin; j < end; j++)
        for (int q = 0; q < Q; q++)
            for (long i = 1; i < n - 1; i++)
                fold[j][q][i] = f[j][q][i];
}

static struct block inner(long n, struct block mine) {
    return (struct block){mine.begin < 1 ? 1 : mine.begin, mine.end > n - 1 ? n - 1 : mine.end};
}

static const void* run_shared(long n, long before, long steps) {
    const struct grid grid = make_grid(n, 0, n, dsm_allocate);
    const struct block mine = block_of(n, dsm_me(), dsm_processes()), in = inner(n, mine);
    fill(&grid, mine.begin, mine.end);
    for (long step = -before; step < steps; step++) {
        if (step == 0)
            dsm_measure_begin();
        else
            dsm_barrier();
        calculate_ux_uy_p(&grid, in.begin, in.end);
        dsm_barrier();
        collision_advection_interior(&grid, in.begin, in.end);
        dsm_work((double)((in.end - in.begin) * (n - 2)));
        dsm_barrier();
        collision_advection_boundary(&grid, in.begin, in.end);
        dsm_barrier();
        copy_back(&grid, in.begin, in.end);
    }
    dsm_barrier();
    dsm_measure_end();
    return grid.f;
}

enum { BUFFER_ROWS = SENT + 1 }; // whole pages for 256 points

static void send(long n, double (*f)[Q][n], const int* which, double (*buffer)[n]) {
    for (int row = 0; row < SENT; row++)
        memcpy(buffer[row], (*f)[which[row]], (size_t)n * sizeof(double));
}

static void receive(long n, double (*f)[Q][n], const int* which, double (*buffer)[n]) {
    for (int row = 0; row < SENT; row++)
        memcpy((*f)[which[row]], buffer[row], (size_t)n * sizeof(double));
}

static const void* run_private(long n, long before, long steps) {
    const int me = dsm_me(), processes = dsm_processes();
    const size_t buffers = 2 * (size_t)processes * BUFFER_ROWS * (size_t)n * sizeof(double);
    double(*down)[BUFFER_ROWS][n] = dsm_allocate(buffers); // of process p in steps of parity t at 2 p + t
    double(*up)[BUFFER_ROWS][n] = dsm_allocate(buffers);
    double(*result)[Q][n] = dsm_allocate(population_bytes(n, n));
    const struct block mine = block_of(n, me, processes), in = inner(n, mine);
    const long rows = mine.end - mine.begin;
    const struct grid grid = make_grid(n, mine.begin - 1, rows + 2, program_memory);
    double(*f)[Q][n] = grid.f;
    const long begin = in.begin - grid.low, end = in.end - grid.low;
    fill(&grid, 0, rows + 2);
    long parity = 0;
    for (long step = -before; step < steps; step++) {
        if (step == 0) dsm_measure_begin();
        calculate_ux_uy_p(&grid, begin, end);
        collision_advection_interior(&grid, begin, end);
        dsm_work((double)((in.end - in.begin) * (n - 2)));
        if (me > 0) send(n, &f[0], DOWN, down[2 * me + parity]);
        if (me < processes - 1) send(n, &f[rows + 1], UP, up[2 * me + parity]);
        dsm_barrier();
        if (me < processes - 1) receive(n, &f[rows], DOWN, down[2 * (me + 1) + parity]);
        if (me > 0) receive(n, &f[1], UP, up[2 * (me - 1) + parity]);
        parity = 1 - parity;
        collision_advection_boundary(&grid, begin, end);
        copy_back(&grid, begin, end);
    }
    dsm_measure_end();
    memcpy(result[mine.begin], f[1], population_bytes(n, rows));
    dsm_barrier();
    return result;
}

int main(int argc, char** argv) {
    app_begin("dsm_lbe", argc, argv);
    const struct program chosen = program_options();
    const long n = app_integer_option("--n", 256, 4, 2048, "points a side, boundary included, default 256");
    const long steps = app_integer_option("--steps", 10, 1, 100000, "that are counted, default 10");
    const long before = app_integer_option("--steps-before", 2, 0, 1000, "that are not counted, default 2");
    app_options_end();
    if (n < 3L * chosen.dsm.processes) app_error("too few rows for so many processes");
    const size_t arrays = 2 * population_bytes(n, n) + 3 * field_bytes(n, n);
    const size_t buffers = 4 * (size_t)chosen.dsm.processes * BUFFER_ROWS * (size_t)n * sizeof(double);
    dsm_start(&chosen.dsm, arrays + buffers + 16L * DSM_PAGE_BYTES);
    const void* result =
        chosen.version == VERSION_SHARED ? run_shared(n, before, steps) : run_private(n, before, steps);
    bool same = true;
    if (dsm_me() == 0) {
        const struct grid grid = make_grid(n, 0, n, program_memory);
        fill(&grid, 0, n);
        for (long step = 0; step < before + steps; step++) {
            calculate_ux_uy_p(&grid, 1, n - 1);
            collision_advection_interior(&grid, 1, n - 1);
            collision_advection_boundary(&grid, 1, n - 1);
            copy_back(&grid, 1, n - 1);
        }
        same = same_bits(result, grid.f, population_bytes(n, n));
    }
    dsm_finish(same);
    return 0;
}
