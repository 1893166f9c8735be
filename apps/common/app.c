#define _GNU_SOURCE // RTLD_DEFAULT
#include "app.h"
#include "mark.h"
#include "place.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_OPTIONS = 32, ITERATIONS_A_LINE = 10, MOST_ITERATIONS_LISTED = 100 };

static const double SECONDS_BEFORE_PROGRESS = 2.0;

// The lines of --help, in the order in which the program asked for its options.
struct help_line {
    const char *option, *choices, *text;
};

static struct {
    const char* name;
    int argc;
    char** argv;
    char* used; // one flag an argument
    struct help_line help[MOST_OPTIONS];
    int options;
    int verbose;
    int (*iteration_ended)(void); // homing's homing_iteration, or NULL
    enum app_place place;
} self;

static struct {
    double program, iteration, progress; // when these began
    double* seconds;                     // of each iteration
    long iterations, done;
    int progress_shown;
} clocks;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

_Noreturn static void misuse(const char* option, const char* given, const char* wanted) {
    fprintf(stderr, "%s: %s%s%s: %s (see %s --help)\n", self.name, option, given ? " " : "",
            given ? given : "", wanted, self.name);
    exit(2);
}

_Noreturn void app_error(const char* message) {
    fprintf(stderr, "%s: %s\n", self.name, message);
    exit(1);
}

_Noreturn void app_missing(const char* option, const char* wanted) { misuse(option, NULL, wanted); }

void app_begin(const char* name, int argc, char** argv) {
    self.name = name;
    self.argc = argc;
    self.argv = argv;
    self.used = calloc((size_t)argc + 1, 1);
    if (self.used == NULL) app_error("out of memory");
    clocks.program = now();
    // A run of minutes should show where it is, also when its output goes to a file.
    setvbuf(stdout, NULL, _IOLBF, 0);
    homing_mark(HOMING_PHASE_INITIALISATION);
}

static void note_help(const char* option, const char* choices, const char* text) {
    if (self.options == MOST_OPTIONS) app_error("has more options than MOST_OPTIONS");
    self.help[self.options++] = (struct help_line){option, choices, text};
}

// The last value given for `option`, or NULL; marks the arguments as used. `wanted` says what the value
// should be.
static const char* value_of(const char* option, const char* wanted) {
    const char* value = NULL;
    size_t length = strlen(option);
    for (int i = 1; i < self.argc; i++) {
        if (self.used[i] || strncmp(self.argv[i], option, length) != 0) continue;
        if (self.argv[i][length] == '=') {
            value = self.argv[i] + length + 1;
        } else if (self.argv[i][length] == '\0') {
            if (i + 1 == self.argc) misuse(option, NULL, wanted);
            self.used[i++] = 1;
            value = self.argv[i];
        } else {
            continue;
        }
        self.used[i] = 1;
    }
    return value;
}

static long integer_with_suffix(const char* option, long otherwise, long least, long most,
                                const char* suffixes) {
    char wanted[96];
    snprintf(wanted, sizeof wanted, "must be %s from %ld to %ld",
             *suffixes ? "a number of bytes (K, M or G may follow)" : "an integer", least, most);
    const char* text = value_of(option, wanted);
    if (text == NULL) return otherwise;
    char* end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || errno != 0) misuse(option, text, wanted);
    const char* suffix = *end != '\0' ? strchr(suffixes, *end) : NULL;
    if (suffix != NULL) {
        long unit = 1L << (10 * (suffix - suffixes + 1));
        if (value > LONG_MAX / unit || value < 0) misuse(option, text, wanted);
        value *= unit;
        end++;
    }
    if (*end != '\0' || value < least || value > most) misuse(option, text, wanted);
    return value;
}

long app_integer_option(const char* name, long otherwise, long least, long most, const char* help) {
    note_help(name, "N", help);
    return integer_with_suffix(name, otherwise, least, most, "");
}

long app_bytes_option(const char* name, long otherwise, long least, long most, const char* help) {
    note_help(name, "BYTES", help);
    return integer_with_suffix(name, otherwise, least, most, "KMG");
}

int app_choice_option(const char* name, int otherwise, const char* choices, const char* help) {
    char wanted[96];
    note_help(name, choices, help);
    snprintf(wanted, sizeof wanted, "must be one of %s", choices);
    const char* text = value_of(name, wanted);
    if (text == NULL) return otherwise;
    int index = 0;
    for (const char* choice = choices;; index++) {
        size_t length = strcspn(choice, "|");
        if (strlen(text) == length && strncmp(text, choice, length) == 0) return index;
        if (choice[length] == '\0') misuse(name, text, wanted);
        choice += length + 1;
    }
}

const char* app_text_option(const char* name, const char* choices, const char* help) {
    note_help(name, choices, help);
    return value_of(name, "wants a value");
}

int app_initialise_option(void) {
    return app_choice_option("--initialise", APP_SERIAL, "serial|parallel",
                             "who touches the arrays first: the master thread, or each thread its part");
}

static int flag(const char* name) {
    int given = 0;
    for (int i = 1; i < self.argc; i++)
        if (!self.used[i] && strcmp(self.argv[i], name) == 0) self.used[i] = 1, given = 1;
    return given;
}

void app_options_end(void) {
    self.verbose = flag("--verbose");
    self.place = (enum app_place)app_choice_option(
        "--place", APP_PLACE_FIRST_TOUCH, "first-touch|round-robin|random",
        "where pages are before the first iteration; default first-touch: where initialisation put them");
    // POSIX lets dlsym's result be a function.
    if (flag("--mark-iterations")) *(void**)&self.iteration_ended = dlsym(RTLD_DEFAULT, "homing_iteration");
    int help = flag("--help");
    for (int i = 1; i < self.argc; i++)
        if (!self.used[i]) misuse("unknown argument", self.argv[i], "not an option of this program");
    free(self.used);
    if (!help) return;
    printf("usage: %s [options]\n", self.name);
    for (int i = 0; i < self.options; i++) {
        printf("  %s %s\n      %s\n", self.help[i].option, self.help[i].choices, self.help[i].text);
    }
    printf("  --mark-iterations\n      tell homing, where it is loaded, what an iteration is\n"
           "  --verbose\n      one line of result and one of time an iteration\n  --help\n");
    exit(0);
}

void app_describe(const char* size, long bytes, int initialisation, int threads) {
    static const char* const words[] = {"serial", "parallel", "published", "first-use"};
    printf("program: %s\nsize: %s\nbytes: %ld\ninitialise: %s\nthreads: %d\n", self.name, size, bytes,
           words[initialisation], threads);
}

void app_iterations_begin(long iterations) {
    clocks.iterations = iterations;
    clocks.seconds = calloc((size_t)iterations, sizeof *clocks.seconds);
    if (clocks.seconds == NULL) app_error("out of memory");
    const int error = app_place_pages(self.place);
    if (error != 0) {
        fprintf(stderr, "%s: pages could not be placed: %s\n", self.name, strerror(error));
        exit(1);
    }
    printf("iterations: %ld\n", iterations);
    printf("time initialisation: %.6f s\n", now() - clocks.program);
    if (self.iteration_ended != NULL) self.iteration_ended();
    clocks.progress = now();
}

// With an odd number of iterations the middle one belongs to the first half.
static long first_of_last_half(void) { return clocks.iterations - clocks.iterations / 2; }

void app_iteration_begin(void) {
    if (clocks.done == 0)
        homing_mark(HOMING_PHASE_FIRST_HALF);
    else if (clocks.done == first_of_last_half())
        homing_mark(HOMING_PHASE_LAST_HALF);
    clocks.iteration = now();
}

static void show_progress(double time) {
    if (self.verbose || time - clocks.progress < SECONDS_BEFORE_PROGRESS || !isatty(STDERR_FILENO)) return;
    clocks.progress = time;
    clocks.progress_shown = 1;
    fprintf(stderr, "\r%s: iteration %ld of %ld", self.name, clocks.done, clocks.iterations);
}

void app_iteration_end(const char* value_name, double value) {
    double time = now();
    double seconds = time - clocks.iteration;
    clocks.seconds[clocks.done++] = seconds;
    if (self.iteration_ended != NULL) self.iteration_ended();
    if (self.verbose) {
        if (value_name != NULL) printf("iteration %ld %s: %.17g\n", clocks.done, value_name, value);
        printf("time iteration %ld: %.6f s\n", clocks.done, seconds);
    }
    show_progress(time);
}

static int by_value(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void list_times(void) {
    for (long i = 0; i < clocks.done; i++) {
        if (i % ITERATIONS_A_LINE == 0) printf("%stime iterations from %ld:", i == 0 ? "" : "\n", i + 1);
        printf(" %.6f", clocks.seconds[i]);
    }
    printf("\n");
}

void app_iterations_end(void) {
    homing_mark(HOMING_PHASE_NOT_COUNTED);
    if (clocks.progress_shown) fprintf(stderr, "\r\033[K");
    double total = 0;
    for (long i = 0; i < clocks.done; i++)
        total += clocks.seconds[i];
    if (!self.verbose && clocks.done <= MOST_ITERATIONS_LISTED) list_times();
    qsort(clocks.seconds, (size_t)clocks.done, sizeof *clocks.seconds, by_value);
    printf("time iteration least, median, most: %.6f %.6f %.6f s\n", clocks.seconds[0],
           clocks.seconds[clocks.done / 2], clocks.seconds[clocks.done - 1]);
    printf("time total: %.6f s\n", total);
    free(clocks.seconds);
}

void app_result(const char* name, double value) { printf("result %s: %.17g\n", name, value); }

void app_result_integer(const char* name, long value) {
    printf("result %s: %lu\n", name, (unsigned long)value);
}

enum app_verdict app_compare(double value, double expected, double tolerance) {
    return fabs(value - expected) <= tolerance * fabs(expected) ? APP_SUCCESSFUL : APP_FAILED;
}

void app_finish(enum app_verdict verdict) {
    static const char* const words[] = {"successful", "FAILED", "not applicable"};
    printf("verification: %s\n", words[verdict]);
    fflush(stdout);
    if (verdict == APP_FAILED) exit(1);
}
