// Particles on a ring of cells, kept in the order of the cells. Half of them crowd in a quarter of the ring
// at first, and all move on, some faster than others: the cells that a thread has stay, its particles do not.
//
// Truth: start, staying: DISTRIBUTE(BLOCK) over all threads, by cells. place, speed: DISTRIBUTE(GEN_BLOCK) by
// the number of particles in the cells of each thread, with borders that drift.
#include "pattern.h"

enum { CELLS = 256, CELL = 1 << 16 }; // length of a cell
// In CELL a step: of all particles, and further of some.
enum { LEAST_SPEED = CELL / 4, MORE_SPEED = CELL / 2 };

static long particles;
static int now; // which of the two copies holds the particles
static word *place[2], *speed[2];
static long start[2][CELLS + 1]; // first particle of a cell
static long staying[CELLS];      // particles that do not leave the cell in this step

static long allocate(long bytes) {
    particles = bytes / (4 * (long)sizeof(word));
    for (int copy = 0; copy < 2; copy++) {
        place[copy] = pattern_array(particles);
        speed[copy] = pattern_array(particles);
    }
    long in_quarter = particles / 2;
    for (long cell = 0; cell <= CELLS; cell++)
        start[0][cell] = cell <= CELLS / 4 ? in_quarter * cell / (CELLS / 4)
                                           : in_quarter + (particles - in_quarter) * (cell - CELLS / 4) /
                                                              (CELLS - CELLS / 4);
    return 4 * particles * (long)sizeof(word);
}

static void fill(void) {
#pragma omp for schedule(static)
    for (long cell = 0; cell < CELLS; cell++)
        for (long p = start[0][cell]; p < start[0][cell + 1]; p++) {
            word random = pattern_next((word)p);
            place[0][p] = (random >> 20) % CELL;
            speed[0][p] = LEAST_SPEED + (random >> 40) % MORE_SPEED;
            place[1][p] = speed[1][p] = 0;
        }
}

static long before(long cell) { return cell > 0 ? cell - 1 : CELLS - 1; }

// Those of one cell that stay, or that leave for the next one, into the other copy from `to` on.
static long copy_some(long cell, int leaving, long to) {
    const word *from_place = place[now], *from_speed = speed[now];
    for (long p = start[now][cell]; p < start[now][cell + 1]; p++) {
        if ((from_place[p] >= CELL) != leaving) continue;
        place[1 - now][to] = from_place[p] % CELL;
        speed[1 - now][to] = from_speed[p];
        to++;
    }
    return to;
}

static void iterate(long number) {
    (void)number;
#pragma omp parallel for schedule(static)
    for (long cell = 0; cell < CELLS; cell++) {
        staying[cell] = 0;
        for (long p = start[now][cell]; p < start[now][cell + 1]; p++) {
            place[now][p] += speed[now][p];
            staying[cell] += place[now][p] < CELL;
        }
    }
    for (long cell = 0; cell < CELLS; cell++) {
        long come_from = before(cell);
        long coming = start[now][come_from + 1] - start[now][come_from] - staying[come_from];
        start[1 - now][cell + 1] = start[1 - now][cell] + staying[cell] + coming;
    }
#pragma omp parallel for schedule(static)
    for (long cell = 0; cell < CELLS; cell++)
        copy_some(before(cell), 1, copy_some(cell, 0, start[1 - now][cell]));
    now = 1 - now;
}

static word checksum(void) {
    return pattern_sum(pattern_sum(0, place[now], particles), speed[now], particles);
}

int main(int argc, char** argv) {
    static const struct pattern of_particles = {"pattern_particles", NULL, allocate, fill, iterate, checksum};
    return pattern_run(&of_particles, argc, argv);
}
