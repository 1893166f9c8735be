// Loops whose chunks go to the thread that comes first: rows of different cost.
//
// Truth: a, b: no distribution (NONE): a row has another owner in every iteration. No placement is better
// than another, and none is to be sought.
#include "pattern.h"

enum { ROW = 1024, CHUNK = 4 }; // words of a row, rows of a chunk

static omp_sched_t schedule;
static long rows;
static word *a, *b;

static void options(void) {
    int guided = app_choice_option("--schedule", 0, "dynamic|guided", "default dynamic");
    schedule = guided ? omp_sched_guided : omp_sched_dynamic;
}

static long allocate(long bytes) {
    omp_set_schedule(schedule, CHUNK);
    rows = bytes / (2 * ROW * (long)sizeof(word));
    a = pattern_array(rows * ROW);
    b = pattern_array(rows * ROW);
    return 2 * rows * ROW * (long)sizeof(word);
}

static void fill(void) {
#pragma omp for schedule(runtime)
    for (long r = 0; r < rows; r++)
        for (long i = r * ROW; i < (r + 1) * ROW; i++) {
            a[i] = (word)i;
            b[i] = 0;
        }
}

static void iterate(long number) {
#pragma omp parallel for schedule(runtime)
    for (long r = 0; r < rows; r++)
        for (long i = r * ROW; i < (r + 1) * ROW; i++) {
            word value = a[i] + (word)number;
            for (long k = 0; k <= r % 4; k++)
                value = pattern_next(value);
            b[i] = value;
        }
#pragma omp parallel for schedule(runtime)
    for (long r = 0; r < rows; r++)
        for (long i = r * ROW; i < (r + 1) * ROW; i++)
            a[i] = b[i] + (i > 0 ? b[i - 1] : 0);
}

static word checksum(void) { return pattern_sum(pattern_sum(0, a, rows * ROW), b, rows * ROW); }

int main(int argc, char** argv) {
    static const struct pattern dynamic = {"pattern_dynamic", options, allocate, fill, iterate, checksum};
    return pattern_run(&dynamic, argc, argv);
}
