// Products of a sparse matrix, kept row by row, and a vector, on an unstructured mesh: points of a plane,
// each joined to most of its eight neighbours.
//
// Truth: element, column, row_start, y: DISTRIBUTE(BLOCK) over all threads by rows; so is x where its owners
// write it, and where it is gathered it depends on --numbering of the points:
//   lines   line by line: a thread reads its own block and a line of its neighbours
//   curve   along Morton's curve: its own block and what lies around it
//   random  in any order: SHARED, all threads read all of it
// The master thread writes row_start, whoever initialises the rest.
#include "pattern.h"

#include <stdlib.h>

enum numbering { LINES, CURVE, RANDOM };
enum { NEIGHBOURS = 9, MOST_BITS = 13 }; // of a line and of a place: 32 bits number the elements

static int numbering;
static long side, rows; // of the square of points; side is a power of two
static int32_t *number_of, *point_of;
static word *element, *x, *y;
static int32_t *column, *row_start;

static void options(void) {
    numbering = app_choice_option("--numbering", CURVE, "lines|curve|random",
                                  "the order of the points; default curve");
}

// The bits of line and place, in turn.
static long along_curve(long line, long place) {
    long at = 0;
    for (int bit = 0; bit < MOST_BITS; bit++)
        at |= ((place >> bit & 1) << (2 * bit)) | ((line >> bit & 1) << (2 * bit + 1));
    return at;
}

static void number_points(void) {
    for (long point = 0; point < rows; point++) {
        long at = numbering == CURVE ? along_curve(point / side, point % side) : point;
        number_of[point] = (int32_t)at;
    }
    word random = 1;
    for (long point = rows - 1; numbering == RANDOM && point > 0; point--) {
        random = pattern_next(random);
        long other = (long)((random >> 33) % (word)(point + 1));
        int32_t swapped = number_of[point];
        number_of[point] = number_of[other];
        number_of[other] = swapped;
    }
    for (long point = 0; point < rows; point++)
        point_of[number_of[point]] = (int32_t)point;
}

// The points that are joined to one, itself among them. Every eighth pair or so is not joined.
static int neighbours(long point, int32_t found[NEIGHBOURS]) {
    int count = 0;
    long line = point / side, place = point % side;
    for (long down = -1; down <= 1; down++)
        for (long right = -1; right <= 1; right++) {
            long other = (line + down) * side + place + right;
            int outside =
                line + down < 0 || line + down >= side || place + right < 0 || place + right >= side;
            if (outside ||
                (other != point && pattern_next((word)(point ^ other) * (word)(point + other)) >> 61 == 0))
                continue;
            found[count++] = number_of[other];
        }
    return count;
}

static long allocate(long bytes) {
    long a_row = NEIGHBOURS * (long)(sizeof(word) + sizeof(int32_t)) + 2 * (long)sizeof(word);
    for (side = 1; 4 * side * side * a_row <= bytes && side < 1L << MOST_BITS;)
        side *= 2;
    rows = side * side;
    number_of = malloc((size_t)rows * sizeof *number_of);
    point_of = malloc((size_t)rows * sizeof *point_of);
    row_start = malloc((size_t)(rows + 1) * sizeof *row_start);
    if (number_of == NULL || point_of == NULL || row_start == NULL)
        app_error("not enough memory for the mesh");
    number_points();
    int32_t found[NEIGHBOURS];
    row_start[0] = 0;
    for (long row = 0; row < rows; row++)
        row_start[row + 1] = row_start[row] + neighbours(point_of[row], found);
    long nonzeros = row_start[rows];
    element = pattern_array(nonzeros);
    column = malloc((size_t)nonzeros * sizeof *column);
    if (column == NULL) app_error("not enough memory for the matrix");
    x = pattern_array(rows);
    y = pattern_array(rows);
    return nonzeros * (long)(sizeof(word) + sizeof(int32_t)) +
           rows * (long)(2 * sizeof(word) + sizeof(int32_t));
}

static void fill(void) {
#pragma omp for schedule(static)
    for (long row = 0; row < rows; row++) {
        int32_t found[NEIGHBOURS];
        int count = neighbours(point_of[row], found);
        for (int k = 0; k < count; k++) {
            column[row_start[row] + k] = found[k];
            element[row_start[row] + k] = (word)(2 * point_of[row] + k);
        }
        x[row] = (word)point_of[row];
        y[row] = 0;
    }
}

static void iterate(long number) {
#pragma omp parallel for schedule(static)
    for (long row = 0; row < rows; row++) {
        word sum = 0;
        for (long k = row_start[row]; k < row_start[row + 1]; k++)
            sum += element[k] * x[column[k]];
        y[row] = sum;
    }
#pragma omp parallel for schedule(static)
    for (long row = 0; row < rows; row++)
        x[row] = pattern_next(x[row] + y[row] + (word)number);
}

static word checksum(void) {
    free(number_of);
    free(point_of);
    return pattern_sum(pattern_sum(0, x, rows), y, rows);
}

int main(int argc, char** argv) {
    static const struct pattern csr = {"pattern_csr", options, allocate, fill, iterate, checksum};
    return pattern_run(&csr, argc, argv);
}
