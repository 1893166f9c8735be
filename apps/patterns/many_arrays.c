// Many arrays of two lengths, as those of the elements and of the nodes of a mesh in LULESH, each used in few
// short regions of a time step; and many shorter regions on the front part of an array, as those of a
// material that only a part of the elements has.
//
// Truth: all arrays: DISTRIBUTE(BLOCK) over all threads; in the shorter regions their first eleventh is
// distributed so.
#include "pattern.h"

enum { ARRAYS = 40, PARTS = 11, SHORT_REGIONS = 44 };

static long length[2]; // words of the arrays of even and of odd number
static word* array[ARRAYS];

static long allocate(long bytes) {
    long words = bytes / (ARRAYS * (long)sizeof(word));
    length[0] = words - words / 32;
    length[1] = words + words / 32;
    for (long k = 0; k < ARRAYS; k++)
        array[k] = pattern_array(length[k % 2]);
    return ARRAYS / 2 * (length[0] + length[1]) * (long)sizeof(word);
}

static void fill(void) {
    for (long k = 0; k < ARRAYS; k++) {
#pragma omp for schedule(static)
        for (long i = 0; i < length[k % 2]; i++)
            array[k][i] = (word)(k + i);
    }
}

static void iterate(long number) {
    for (long k = 0; k + 2 < ARRAYS; k++) {
        const word* from = array[k];
        word* to = array[k + 2];
#pragma omp parallel for schedule(static)
        for (long i = 0; i < length[k % 2]; i++)
            to[i] = pattern_next(from[i] + to[i]);
    }
    for (long r = 0; r < SHORT_REGIONS; r++) {
        word* some = array[r % ARRAYS];
#pragma omp parallel for schedule(static)
        for (long i = 0; i < length[0] / PARTS; i++)
            some[i] += (word)number;
    }
}

static word checksum(void) {
    word sum = 0;
    for (long k = 0; k < ARRAYS; k++)
        sum = pattern_sum(sum, array[k], length[k % 2]);
    return sum;
}

int main(int argc, char** argv) {
    static const struct pattern many = {"pattern_many_arrays", NULL, allocate, fill, iterate, checksum};
    return pattern_run(&many, argc, argv);
}
