#include "pattern.h"

#include <stdio.h>
#include <stdlib.h>

static const long DEFAULT_BYTES = 4L << 20, LEAST_BYTES = 1L << 20, MOST_BYTES = 1L << 46;
static const long DEFAULT_ITERATIONS = 20;

int pattern_initialisation;

word* pattern_array(long words) {
    word* array = malloc((size_t)words * sizeof *array);
    if (array == NULL) app_error("not enough memory for the arrays");
    return array;
}

word pattern_sum(word sum, const word* array, long words) {
    for (long i = 0; i < words; i++)
        sum = 31 * sum + array[i];
    return sum;
}

int pattern_run(const struct pattern* pattern, int argc, char** argv) {
    app_begin(pattern->name, argc, argv);
    long bytes = app_bytes_option("--size", DEFAULT_BYTES, LEAST_BYTES, MOST_BYTES,
                                  "bytes of all arrays together, about; default 4M");
    long iterations = app_integer_option("--iterations", DEFAULT_ITERATIONS, 1, 1000000, "default 20");
    pattern_initialisation = app_initialise_option();
    if (pattern->options != NULL) pattern->options();
    app_options_end();

    bytes = pattern->allocate(bytes);
    if (pattern_initialisation == APP_PARALLEL) {
#pragma omp parallel
        pattern->fill();
    } else {
        pattern->fill();
    }
    char size[32];
    snprintf(size, sizeof size, "%ld bytes", bytes);
    app_describe(size, bytes, pattern_initialisation, omp_get_max_threads());

    app_iterations_begin(iterations);
    for (long number = 1; number <= iterations; number++) {
        app_iteration_begin();
        pattern->iterate(number);
        app_iteration_end(NULL, 0);
    }
    app_iterations_end();
    app_result_integer("checksum", (long)pattern->checksum());
    app_finish(APP_NOT_APPLICABLE);
    return 0;
}
