// Two matrices whose rows are allocated one by one, a row of each in turn: no array is larger than 8 KiB.
//
// Truth: rows of a and of b: DISTRIBUTE(BLOCK) over all threads; so is the memory that they are cut from,
// where one thread allocates all of them.
#include "pattern.h"

enum { ROW = 1024 }; // words

static long rows;
static word **a, **b;

static word** row_pointers(void) { return (word**)pattern_array(rows); }

static long allocate(long bytes) {
    rows = bytes / (2 * ROW * (long)sizeof(word));
    a = row_pointers();
    b = row_pointers();
    return 2 * rows * ROW * (long)sizeof(word);
}

// Rows are allocated by the thread that touches them first.
static void fill(void) {
#pragma omp for schedule(static)
    for (long r = 0; r < rows; r++) {
        a[r] = pattern_array(ROW);
        b[r] = pattern_array(ROW);
        for (long i = 0; i < ROW; i++) {
            a[r][i] = (word)(r * ROW + i);
            b[r][i] = 0;
        }
    }
}

static void iterate(long number) {
#pragma omp parallel for schedule(static)
    for (long r = 0; r < rows; r++)
        for (long i = 0; i < ROW; i++)
            b[r][i] = pattern_next(a[r][i] + (word)number);
#pragma omp parallel for schedule(static)
    for (long r = 0; r < rows; r++) {
        const word* above = b[r > 0 ? r - 1 : 0];
        for (long i = 0; i < ROW; i++)
            a[r][i] = b[r][i] + above[i];
    }
}

static word checksum(void) {
    word sum = 0;
    for (long r = 0; r < rows; r++)
        sum = pattern_sum(pattern_sum(sum, a[r], ROW), b[r], ROW);
    return sum;
}

int main(int argc, char** argv) {
    static const struct pattern of_rows = {"pattern_rows", NULL, allocate, fill, iterate, checksum};
    return pattern_run(&of_rows, argc, argv);
}
