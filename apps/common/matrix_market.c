#define _POSIX_C_SOURCE 200809L
#include "matrix_market.h"
#include "app.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct {
    char* path; // a copy: Fortran's is gone when matrix_market_open returns
    FILE* stream;
    char* text; // of the line read last
    size_t capacity;
    long line;
    struct matrix_market_size size;
} file;

_Noreturn static void fail(const char* reason) {
    char message[512];
    snprintf(message, sizeof message, "%.300s:%ld: %s", file.path, file.line, reason);
    app_error(message);
}

static int next_line(void) {
    file.line++;
    errno = 0;
    if (getline(&file.text, &file.capacity, file.stream) >= 0) return 1;
    if (ferror(file.stream)) fail(strerror(errno));
    return 0;
}

static int is_blank(const char* text) { return text[strspn(text, " \t\r\n")] == '\0'; }

// A number from `least` to INT_MAX; advances the text.
static long integer(char** text, long least, const char* reason) {
    char* end;
    errno = 0;
    long value = strtol(*text, &end, 10);
    if (end == *text || errno != 0 || value < least || value > INT_MAX ||
        (*end && !isspace((unsigned char)*end)))
        fail(reason);
    *text = end;
    return value;
}

static void read_head(void) {
    char banner[5][32] = {{0}};
    if (!next_line() ||
        sscanf(file.text, "%31s %31s %31s %31s %31s", banner[0], banner[1], banner[2], banner[3],
               banner[4]) != 5 ||
        strcmp(banner[0], "%%MatrixMarket") != 0)
        fail("does not begin with %%MatrixMarket and four words");
    if (strcasecmp(banner[1], "matrix") != 0 || strcasecmp(banner[2], "coordinate") != 0)
        fail("must hold a matrix in coordinate format");
    if (strcasecmp(banner[3], "real") != 0 && strcasecmp(banner[3], "integer") != 0)
        fail("must hold real or integer values");
    file.size.symmetric = strcasecmp(banner[4], "symmetric") == 0;
    if (!file.size.symmetric && strcasecmp(banner[4], "general") != 0) fail("must be general or symmetric");
    do {
        if (!next_line()) fail("ends before the line with the matrix's size");
    } while (file.text[0] == '%' || is_blank(file.text));
}

void matrix_market_open(const char* path, struct matrix_market_size* size) {
    static const char wanted[] = "wants three positive numbers: rows, columns, entries";
    file.path = strdup(path);
    if (file.path == NULL) app_error("out of memory");
    file.line = 0;
    file.stream = fopen(path, "r");
    if (file.stream == NULL) {
        char message[512];
        snprintf(message, sizeof message, "%.300s: %s", path, strerror(errno));
        app_error(message);
    }
    setvbuf(file.stream, NULL, _IOFBF, 1 << 20);
    read_head();
    char* text = file.text;
    file.size.rows = integer(&text, 1, wanted);
    file.size.columns = integer(&text, 1, wanted);
    file.size.entries = integer(&text, 1, wanted);
    if (!is_blank(text)) fail(wanted);
    *size = file.size;
}

void matrix_market_next(int* row, int* column, double* value) {
    static const char wanted[] = "wants a row, a column and a value within the matrix";
    do {
        if (!next_line()) fail("ends before the last entry");
    } while (is_blank(file.text));
    char* text = file.text;
    *row = (int)integer(&text, 1, wanted);
    *column = (int)integer(&text, 1, wanted);
    char* end;
    *value = strtod(text, &end);
    if (end == text || !is_blank(end) || !isfinite(*value)) fail(wanted);
    if (*row > file.size.rows || *column > file.size.columns) fail(wanted);
    if (file.size.symmetric && *column > *row) fail("has an entry above the diagonal of a symmetric matrix");
}

void matrix_market_close(void) {
    while (next_line())
        if (!is_blank(file.text)) fail("goes on after the last entry");
    fclose(file.stream);
    free(file.text);
    free(file.path);
    file.text = NULL;
    file.capacity = 0;
}
