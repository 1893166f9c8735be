// A line solver, as NAS BT and SP have them: four sweeps of a step share out planes k, the fifth goes along k
// and shares out rows j. Its pages lie with the threads of their planes, and are used by those of their rows.
// So the program has some moved before that phase and sent home behind it (docs/phases.md).
//
//     homing cc gcc -O2 -g -fopenmp phases.c -lhoming -o phases    (gcc alone for a real machine)
//     homing run --on origin2000-16 --page-size 4KiB --cache 32KiB:2 -- ./phases
#include <homing/homing.h>

#include <stdio.h>
#include <stdlib.h>

enum { PLANES = 32, ROWS = 32, ROW = 512 }; // a row is a page of 4 KiB

static double u[PLANES][ROWS][ROW] __attribute__((aligned(4096)));

static void within_planes(void) { // compute_rhs, x_solve, y_solve, add
#pragma omp parallel for schedule(static)
    for (int k = 0; k < PLANES; ++k)
        for (int j = 0; j < ROWS; ++j)
            for (int i = 0; i < ROW; ++i)
                u[k][j][i] += 1;
}

static void across_planes(void) { // z_solve
#pragma omp parallel for schedule(static)
    for (int j = 0; j < ROWS; ++j)
        for (int k = 1; k < PLANES; ++k)
            for (int i = 0; i < ROW; ++i)
                u[k][j][i] += 0.5 * u[k - 1][j][i];
}

int main(int argc, char** argv) {
    const int calls = argc < 2,
              steps = calls ? 8 : atoi(argv[1]); // an argument: so many steps, without the calls
    within_planes();                             // each thread touches its planes first
    if (calls) upmlib_memrefcnt(u, sizeof u);
    for (int step = 1; step <= steps; ++step) {
        for (int sweep = 0; sweep < 3; ++sweep)
            within_planes();
        if (calls) step == 1 ? upmlib_record() : upmlib_replay();
        across_planes();
        if (calls) step == 1 ? upmlib_record() : upmlib_undo();
        within_planes();
    }
    double sum = 0;
    for (int k = 0; k < PLANES; ++k)
        sum += u[k][0][0];
    printf("sum %g\n", sum);
    return 0;
}
