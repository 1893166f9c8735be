// Reads sparse matrices in the Matrix Market exchange format: coordinate, real or integer, general or
// symmetric. Source: R. Boisvert, R. Pozo, K. Remington, "The Matrix Market Exchange Formats: Initial
// Design", NISTIR 5935, 1996.
//
// What does not follow the format ends the program with the file, the line and the reason.
#ifndef HOMING_APPS_MATRIX_MARKET_H
#define HOMING_APPS_MATRIX_MARKET_H

struct matrix_market_size {
    long rows, columns, entries;
    int symmetric; // only the lower triangle and the diagonal are in the file
};

// Opens a file and reads its head. One file at a time.
void matrix_market_open(const char* path, struct matrix_market_size* size);
// The next entry; indices count from 1 and lie within the matrix. Call it as often as there are entries.
void matrix_market_next(int* row, int* column, double* value);
// Closes the file; what follows the last entry must be blank.
void matrix_market_close(void);

#endif
