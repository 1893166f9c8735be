/* homing_parts.h says what these functions do. Compile with -fopenmp; with -DHOMING_MPI for ranks. */
#define _GNU_SOURCE
#include "homing_parts.h"

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef HOMING_MPI
#include <mpi.h>
#endif

struct homing_layout {
    char name[64];
    int language, rank;
    size_t element;
    homing_dimension dimension[HOMING_RANK_MAX];
    long* bounds[HOMING_RANK_MAX]; /* GEN_BLOCK: parts + 1 ascending template indices */
    int grid_stride[HOMING_RANK_MAX];
    int parts;                             /* of the grid; a part beyond has nothing */
    void** memory;                         /* C: of each part; Fortran keeps it itself */
    void* whole;                           /* C: gathered inside a region */
    unsigned long made;                    /* which one of all: memory is used again */
    struct homing_layout *previous, *next; /* all that there are, to be freed at the end */
};

/* Made and freed in serial code, or in homing_layout_fit. */
static homing_layout* all_layouts = NULL;
static unsigned long layouts_made = 0;

/* Half-open ranges would need an exception for nothing; these are inclusive, empty when low > high. */
typedef struct range {
    long low, high;
} range;

/* --- the process -------------------------------------------------------------------------------------- */

typedef struct exchange_buffer {
    char* data;
    size_t bytes;
} exchange_buffer;

/* One a part, each on cache lines of its own. */
typedef struct part_state {
    exchange_buffer buffer[2];
    unsigned long exchanges;
    long bytes;
    exchange_buffer* copies; /* C: of homing_broadcast_copy, by slot */
    int slots;
    struct kept_exchange* kept; /* KEPT of them */
    unsigned long kept_count;   /* so many were worked out */
    char padding[64];
} part_state;

static void forget_exchanges(part_state* state);

static struct {
    int started, rank, ranks, threads, parts;
    part_state* state;
    long messages, message_bytes;
} process = {0, 0, 1, 1, 1, NULL, 0, 0};

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char* format, ...) {
    __builtin_va_list arguments;
    __builtin_va_start(arguments, format);
    fputs("homing: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    __builtin_va_end(arguments);
#ifdef HOMING_MPI
    MPI_Abort(MPI_COMM_WORLD, 3);
#endif
    _Exit(3);
}

static void* need(void* memory) {
    if (!memory) fail("out of memory");
    return memory;
}

static void at_end(void) {
    const char* wish = getenv("HOMING_PARTS");
    long exchanges, bytes, messages, message_bytes;
    homing_exchanged(&exchanges, &bytes, &messages, &message_bytes);
#ifdef HOMING_MPI
    int finalized;
    MPI_Finalized(&finalized);
    if (finalized) return;
    long mine[3] = {bytes, messages, message_bytes}, all[3];
    MPI_Reduce(mine, all, 3, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    bytes = all[0], messages = all[1], message_bytes = all[2];
    MPI_Finalize();
#endif
    if (wish && strcmp(wish, "statistics") == 0 && process.rank == 0)
        fprintf(stderr, "homing_parts parts %d exchanges %ld bytes %ld messages %ld message_bytes %ld\n",
                process.parts, exchanges, bytes, messages, message_bytes);
    while (all_layouts)
        homing_layout_free(all_layouts);
    for (int part = 0; part < process.parts; part++) {
        part_state* state = &process.state[part];
        for (int turn = 0; turn < 2; turn++)
            free(state->buffer[turn].data);
        for (int slot = 0; slot < state->slots; slot++)
            free(state->copies[slot].data);
        free(state->copies);
        forget_exchanges(state);
    }
    free(process.state);
    process.state = NULL;
    process.parts = 0;
}

void homing_start(void) {
    if (process.started) return;
    process.started = 1;
#ifdef HOMING_MPI
    int provided = MPI_THREAD_SINGLE, initialized;
    MPI_Initialized(&initialized);
    if (!initialized)
        MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    else
        MPI_Query_thread(&provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &process.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &process.ranks);
    if (process.rank > 0) { /* every rank runs the serial code; one of them is heard */
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0) fail("/dev/null cannot be opened");
        close(nowhere);
    }
#endif
#ifdef _OPENMP
    process.threads = omp_get_max_threads();
    omp_set_dynamic(0);
#endif
#ifdef HOMING_MPI
    int least, most;
    MPI_Allreduce(&process.threads, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&process.threads, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (least != most)
        fail("ranks with %d to %d threads: set OMP_NUM_THREADS to one number for all", least, most);
    if (process.threads > 1 && provided < MPI_THREAD_FUNNELED)
        fail("this MPI library allows no threads: set OMP_NUM_THREADS=1");
#endif
    process.parts = process.ranks * process.threads;
    process.state = need(calloc((size_t)process.parts, sizeof *process.state));
    atexit(at_end);
}

int homing_rank(void) {
    homing_start();
    return process.rank;
}

int homing_threads(void) {
    homing_start();
    return process.threads;
}

int homing_part_count(void) {
    homing_start();
    return process.parts;
}

int homing_first_part(void) {
    homing_start();
    return process.rank * process.threads;
}

int homing_last_part(void) { return homing_first_part() + process.threads - 1; }

int homing_part(void) {
#ifdef _OPENMP
    if (omp_get_num_threads() != process.threads)
        fail("a parallel region has %d threads where the arrays have %d parts a process: OMP_THREAD_LIMIT, "
             "OMP_DYNAMIC and nested regions must leave it all of them",
             omp_get_num_threads(), process.threads);
    return process.rank * process.threads + omp_get_thread_num();
#else
    return process.rank;
#endif
}

int homing_team(void) {
#ifdef _OPENMP
    return omp_get_num_threads();
#else
    return 1;
#endif
}

void homing_exchanged(long* exchanges, long* bytes, long* messages, long* message_bytes) {
    *exchanges = *bytes = 0;
    for (int part = 0; part < process.parts; part++) {
        const part_state* state = &process.state[part];
        if ((long)state->exchanges > *exchanges) *exchanges = (long)state->exchanges;
        *bytes += state->bytes;
    }
    *messages = process.messages;
    *message_bytes = process.message_bytes;
}

static void barrier(void) {
#ifdef _OPENMP
#pragma omp barrier
#endif
}

/* --- distributions ------------------------------------------------------------------------------------ */

static int distributed(const homing_dimension* d) { return d->kind != HOMING_STAR; }

/* Fills in the extents of the grid that were left open, the largest factors first. */
static void complete_grid(homing_layout* layout) {
    int open_dimensions = 0, left = homing_part_count();
    for (int i = 0; i < layout->rank; i++) {
        homing_dimension* d = &layout->dimension[i];
        if (!distributed(d)) {
            d->parts = 1;
        } else if (d->parts > 0) {
            left /= (int)d->parts > left ? left : (int)d->parts;
        } else {
            open_dimensions++;
        }
    }
    long product = 1;
    for (int i = 0; i < layout->rank; i++) {
        homing_dimension* d = &layout->dimension[i];
        if (distributed(d) && d->parts <= 0) {
            /* The smallest factor of what is left that is at least its open_dimensions-th root. */
            long factor = 1;
            for (;; factor++) {
                long power = 1;
                for (int k = 0; k < open_dimensions; k++)
                    power *= factor;
                if (left % factor == 0 && power >= left) break;
            }
            d->parts = factor;
            left /= (int)factor;
            open_dimensions--;
        }
        layout->grid_stride[i] = (int)product;
        product *= d->parts;
    }
    if (product > homing_part_count())
        fail("array '%s' is distributed over %ld processors, the program runs with %d", layout->name, product,
             homing_part_count());
    layout->parts = (int)product;
}

homing_layout* homing_layout_create(const char* name, int language, int rank, size_t element,
                                    const homing_dimension* dimensions, const long* sizes) {
    homing_layout* layout = need(calloc(1, sizeof *layout));
    layout->next = all_layouts;
    if (all_layouts) all_layouts->previous = layout;
    all_layouts = layout;
    snprintf(layout->name, sizeof layout->name, "%s", name);
    layout->language = language;
    layout->rank = rank;
    layout->element = element;
    memcpy(layout->dimension, dimensions, (size_t)rank * sizeof *dimensions);
    complete_grid(layout);
    for (int i = 0; i < rank; i++) {
        homing_dimension* d = &layout->dimension[i];
        if (d->kind == HOMING_CYCLIC && d->argument < 1)
            fail("array '%s', dimension %d: CYCLIC(%ld)", layout->name, i + 1, d->argument);
        if (distributed(d) && d->lower <= d->upper &&
            (d->lower + d->offset < d->template_lower || d->upper + d->offset > d->template_upper))
            fail("array '%s', dimension %d: %ld to %ld do not lie inside the template's %ld to %ld",
                 layout->name, i + 1, d->lower + d->offset, d->upper + d->offset, d->template_lower,
                 d->template_upper);
        if (d->kind != HOMING_GEN_BLOCK) continue;
        /* argument: how many sizes the program gave. Parts beyond get nothing; with fewer parts, the last one
         * gets what is left. */
        long* bounds = need(malloc((size_t)(d->parts + 1) * sizeof *bounds));
        bounds[0] = d->template_lower;
        for (long part = 1; part <= d->parts; part++)
            bounds[part] = d->template_lower;
        for (long index = 0, at = d->template_lower; index < d->argument; index++) {
            if (sizes[index] < 0)
                fail("array '%s', dimension %d: a GEN_BLOCK size of %ld", layout->name, i + 1, sizes[index]);
            at += sizes[index];
            for (long part = index < d->parts ? index : d->parts - 1; part < d->parts; part++)
                bounds[part + 1] = at;
        }
        if (bounds[d->parts] <= d->template_upper)
            fail("array '%s', dimension %d: the GEN_BLOCK sizes of %ld parts hold %ld of %ld elements",
                 layout->name, i + 1, d->parts, bounds[d->parts] - d->template_lower,
                 d->template_upper - d->template_lower + 1);
        layout->bounds[i] = bounds;
        sizes += d->argument;
    }
    if (language == HOMING_C) layout->memory = need(calloc((size_t)process.parts, sizeof(void*)));
    layout->made = ++layouts_made;
    return layout;
}

homing_layout* homing_layout_free(homing_layout* layout) {
    if (!layout) return NULL;
    if (layout->previous)
        layout->previous->next = layout->next;
    else
        all_layouts = layout->next;
    if (layout->next) layout->next->previous = layout->previous;
    for (int i = 0; i < layout->rank; i++)
        free(layout->bounds[i]);
    for (int part = 0; layout->memory && part < process.parts; part++)
        free(layout->memory[part]);
    free(layout->memory);
    free(layout);
    return NULL;
}

/* Is the layout what these dimensions say? The grid and GEN_BLOCK's sizes, which come from the same
 * directive, are not looked at. */
static int fits(const homing_layout* layout, const homing_dimension* dimensions) {
    for (int i = 0; layout && i < layout->rank; i++) {
        const homing_dimension *mine = &layout->dimension[i], *its = &dimensions[i];
        if (mine->lower != its->lower || mine->upper != its->upper || mine->kind != its->kind ||
            mine->argument != its->argument || mine->template_lower != its->template_lower ||
            mine->template_upper != its->template_upper || mine->offset != its->offset)
            return 0;
    }
    return layout != NULL;
}

int homing_layout_fit(homing_layout** layout, const char* name, int language, int rank, size_t element,
                      const homing_dimension* dimensions, const long* sizes) {
    int anew = 0;
#ifdef _OPENMP
#pragma omp critical(homing_layout_fit)
#endif
    if (!fits(*layout, dimensions)) {
        /* Other threads may still run a loop by the one before: it is freed at the end of the program. */
        *layout = homing_layout_create(name, language, rank, element, dimensions, sizes);
        anew = 1;
    }
    return anew;
}

static long coordinate(const homing_layout* layout, int part, int i) {
    return part / layout->grid_stride[i] % layout->dimension[i].parts;
}

static range overlap(range a, range b) {
    const range both = {a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
    return both;
}

static const range nothing = {0, -1};

/* What a part owns in a dimension that is not CYCLIC. */
static range own_range(const homing_layout* layout, int part, int i) {
    const homing_dimension* d = &layout->dimension[i];
    const range all = {d->lower, d->upper};
    if (part >= layout->parts) return nothing;
    if (d->kind == HOMING_STAR) return all;
    const long at = coordinate(layout, part, i);
    range own;
    if (d->kind == HOMING_GEN_BLOCK) {
        own.low = layout->bounds[i][at];
        own.high = layout->bounds[i][at + 1] - 1;
    } else {
        const long extent = d->template_upper - d->template_lower + 1;
        const long block = extent > 0 ? (extent + d->parts - 1) / d->parts : 0;
        own.low = d->template_lower + at * block;
        own.high = own.low + block - 1;
    }
    own.low -= d->offset;
    own.high -= d->offset;
    own = overlap(own, all);
    if (own.low > own.high) return nothing;
    return own;
}

/* CYCLIC: the part's first index not below `index`, beyond the upper bound when there is none. */
long homing_next(const homing_layout* layout, int part, int i, long index) {
    const homing_dimension* d = &layout->dimension[i];
    if (part >= layout->parts) return d->upper + 1;
    if (d->kind != HOMING_CYCLIC) {
        const range own = own_range(layout, part, i);
        if (own.low > own.high || index > own.high) return d->upper + 1;
        return index < own.low ? own.low : index;
    }
    if (index < d->lower) index = d->lower;
    const long k = d->argument, round = k * d->parts;
    const long at = index + d->offset - d->template_lower;
    const long begin = at / round * round + coordinate(layout, part, i) * k;
    if (at < begin) return index + (begin - at);
    if (at < begin + k) return index;
    return index + (begin + round - at);
}

long homing_stride(const homing_layout* layout, int i) {
    return layout->dimension[i].argument * layout->dimension[i].parts;
}

long homing_block_end(const homing_layout* layout, int part, int i, long index) {
    const homing_dimension* d = &layout->dimension[i];
    if (d->kind != HOMING_CYCLIC) return own_range(layout, part, i).high;
    const long at = index + d->offset - d->template_lower;
    return index + (d->argument - 1 - (at % d->argument + d->argument) % d->argument);
}

/* --- where CYCLIC elements lie in a part's memory ------------------------------------------------------- */

/* A part stores its blocks of k one after the other, each between a shadow of its own, so that a neighbour's
 * place is the element's place plus their distance. A dimension over one part has one block, which is all of
 * it. */
static int dealt_out(const homing_dimension* d) { return d->kind == HOMING_CYCLIC && d->parts > 1; }

/* Elements from a block's place in memory to the next one's. */
static long block_width(const homing_dimension* d) { return d->shadow_low + d->argument + d->shadow_high; }

long homing_local_stride(const homing_layout* layout, int i) {
    const homing_dimension* d = &layout->dimension[i];
    return dealt_out(d) ? block_width(d) : 1;
}

/* Template index, counted from 0. */
static long template_position(const homing_dimension* d, long index) {
    return index + d->offset - d->template_lower;
}

static long floor_divide(long a, long b) { return a / b - (a % b < 0); }

/* Which of a part's blocks an index of the template belongs to: the block counts in rounds. */
static long round_of(const homing_dimension* d, long position) {
    return floor_divide(position, d->argument * d->parts);
}

/* The rounds whose blocks a part stores: those that the array reaches, with their shadows. low > high: none.
 */
static range stored_rounds(const homing_layout* layout, int part, int i) {
    const homing_dimension* d = &layout->dimension[i];
    if (part >= layout->parts || d->lower > d->upper) return nothing;
    const long k = d->argument, mine = coordinate(layout, part, i) * k;
    const long top = template_position(d, d->upper) + d->shadow_low,
               template_top = d->template_upper - d->template_lower;
    const range rounds = {
        round_of(d, template_position(d, d->lower) - d->shadow_high - mine - k + d->parts * k),
        round_of(d, (top < template_top ? top : template_top) - mine),
    };
    const range all = {0, rounds.high};
    return overlap(rounds, all);
}

/* The place of an index of the block of a round (its shadow included), before the part's first place is
 * taken off. */
static long block_place(const homing_layout* layout, int part, int i, long round, long index) {
    const homing_dimension* d = &layout->dimension[i];
    const long begin = round * d->argument * d->parts + coordinate(layout, part, i) * d->argument;
    return round * block_width(d) + d->shadow_low + template_position(d, index) - begin;
}

/* The first place that a part stores. Without shadows, places count from its first index in the array. */
static long first_place(const homing_layout* layout, int part, int i) {
    const homing_dimension* d = &layout->dimension[i];
    if (!dealt_out(d)) return d->lower;
    if (d->shadow_low || d->shadow_high) return stored_rounds(layout, part, i).low * block_width(d);
    const long first = homing_next(layout, part, i, d->lower);
    return block_place(layout, part, i, round_of(d, template_position(d, first)), first);
}

static long local_origin(const homing_layout* layout) { return layout->language == HOMING_FORTRAN; }

/* CYCLIC: the place of an index that the part owns, from 0. */
static long local_position(const homing_layout* layout, int part, int i, long index) {
    const homing_dimension* d = &layout->dimension[i];
    if (!dealt_out(d)) return index - d->lower;
    return block_place(layout, part, i, round_of(d, template_position(d, index)), index) -
           first_place(layout, part, i);
}

long homing_local(const homing_layout* layout, int part, int i, long index) {
    if (layout->dimension[i].kind != HOMING_CYCLIC) return index;
    return local_position(layout, part, i, index) + local_origin(layout);
}

int homing_owns(const homing_layout* layout, int part, int i, long index) {
    const homing_dimension* d = &layout->dimension[i];
    if (index < d->lower || index > d->upper) return 0;
    if (d->kind == HOMING_CYCLIC) return homing_next(layout, part, i, index) == index;
    const range own = own_range(layout, part, i);
    return own.low <= index && index <= own.high;
}

/* Places of a CYCLIC dimension that a part stores. */
static long cyclic_places(const homing_layout* layout, int part, int i) {
    const homing_dimension* d = &layout->dimension[i];
    if (part >= layout->parts || d->lower > d->upper) return 0;
    if (!dealt_out(d)) return d->upper - d->lower + 1;
    if (d->shadow_low || d->shadow_high) {
        const range rounds = stored_rounds(layout, part, i);
        return rounds.low > rounds.high ? 0 : (rounds.high - rounds.low + 1) * block_width(d);
    }
    /* Up to the part's last index: the last one of the block before the first that lies beyond. */
    const long first = homing_next(layout, part, i, d->lower);
    if (first > d->upper) return 0;
    const long mine = coordinate(layout, part, i) * d->argument;
    const long top = template_position(d, d->upper) - mine, round = round_of(d, top);
    const long inside = top - round * homing_stride(layout, i);
    const long last = round * d->argument + (inside < d->argument ? inside : d->argument - 1);
    return last - first_place(layout, part, i) + 1;
}

/* What a part stores, in the coordinates of its memory. */
static range stored_range(const homing_layout* layout, int part, int i) {
    const homing_dimension* d = &layout->dimension[i];
    if (d->kind == HOMING_CYCLIC) {
        const range local = {local_origin(layout), local_origin(layout) + cyclic_places(layout, part, i) - 1};
        return local;
    }
    const range own = own_range(layout, part, i), all = {d->lower, d->upper};
    if (own.low > own.high || d->kind == HOMING_STAR) return own;
    const range wide = {own.low - d->shadow_low, own.high + d->shadow_high};
    return overlap(wide, all);
}

long homing_lower(const homing_layout* layout, int i) { return layout->dimension[i].lower; }

long homing_upper(const homing_layout* layout, int i) { return layout->dimension[i].upper; }

long homing_template_lower(const homing_layout* layout, int i) { return layout->dimension[i].template_lower; }

long homing_template_upper(const homing_layout* layout, int i) { return layout->dimension[i].template_upper; }

void homing_together(const homing_layout* layout, int i, const homing_layout* other, int j) {
    const homing_dimension *a = &layout->dimension[i], *b = &other->dimension[j];
    int same = a->kind == b->kind && a->argument == b->argument && a->parts == b->parts &&
               a->template_lower == b->template_lower && a->template_upper == b->template_upper &&
               layout->grid_stride[i] == other->grid_stride[j];
    if (same && a->kind == HOMING_GEN_BLOCK) /* the sizes may have changed in between */
        same = memcmp(layout->bounds[i], other->bounds[j],
                      (size_t)(a->parts + 1) * sizeof *layout->bounds[i]) == 0;
    if (!same)
        fail("'%s', dimension %d, and '%s', dimension %d, are used together and lie apart: ALIGN them",
             layout->name, i + 1, other->name, j + 1);
}

void homing_same_bounds(const homing_layout* layout, int i, long lower, long upper) {
    const homing_dimension* d = &layout->dimension[i];
    if (d->lower != lower || d->upper != upper)
        fail("'%s', dimension %d, is %ld to %ld and a procedure that gets it declares %ld to %ld",
             layout->name, i + 1, d->lower, d->upper, lower, upper);
}

long homing_low(const homing_layout* layout, int part, int i) { return stored_range(layout, part, i).low; }

long homing_high(const homing_layout* layout, int part, int i) { return stored_range(layout, part, i).high; }

long homing_own_low(const homing_layout* layout, int part, int i) { return own_range(layout, part, i).low; }

long homing_own_high(const homing_layout* layout, int part, int i) { return own_range(layout, part, i).high; }

/* Does the part run the iterations of an array that has no index at all? */
static int first_of_empty(const homing_layout* layout, int part, int i) {
    return layout->dimension[i].lower > layout->dimension[i].upper && part < layout->parts &&
           coordinate(layout, part, i) == 0;
}

long homing_run_low(const homing_layout* layout, int part, int i, long most) {
    const range own = own_range(layout, part, i);
    const homing_dimension* d = &layout->dimension[i];
    const long cut = d->template_lower - d->offset, lower = d->lower > cut ? d->lower : cut,
               least = -most / 2;
    const int first = first_of_empty(layout, part, i) || (own.low <= own.high && own.low == lower);
    return !first ? own.low : lower < least ? lower : least;
}

long homing_run_high(const homing_layout* layout, int part, int i, long most) {
    const range own = own_range(layout, part, i);
    const homing_dimension* d = &layout->dimension[i];
    const long cut = d->template_upper - d->offset, upper = d->upper < cut ? d->upper : cut;
    const int last = first_of_empty(layout, part, i) || (own.low <= own.high && own.high == upper);
    return !last ? own.high : upper > most / 2 ? upper : most / 2;
}

long homing_run_next(const homing_layout* layout, int part, int i, long index, long most) {
    const homing_dimension* d = &layout->dimension[i];
    if (part >= layout->parts) return d->upper > most / 2 ? most : most / 2;
    const long k = d->argument, round = k * d->parts, at = template_position(d, index);
    const long begin = floor_divide(at, round) * round + coordinate(layout, part, i) * k;
    if (at < begin) return index + (begin - at);
    return at < begin + k ? index : index + (begin + round - at);
}

int homing_runs(const homing_layout* layout, int part, int i, long index, long most) {
    if (layout->dimension[i].kind == HOMING_CYCLIC)
        return homing_run_next(layout, part, i, index, most) == index;
    return homing_run_low(layout, part, i, most) <= index && index <= homing_run_high(layout, part, i, most);
}

size_t homing_part_bytes(const homing_layout* layout, int part) {
    size_t bytes = layout->element;
    for (int i = 0; i < layout->rank; i++) {
        const range stored = stored_range(layout, part, i);
        bytes *= stored.high < stored.low ? 0 : (size_t)(stored.high - stored.low + 1);
    }
    return bytes;
}

/* --- copying ------------------------------------------------------------------------------------------ */

/* A walk over the elements that a part owns inside a box, in the order of its memory. */
typedef enum copy_mode { PART_TO_ARRAY, ARRAY_TO_PART, PACKED_TO_ARRAY, ARRAY_TO_PACKED } copy_mode;
typedef struct walk {
    const homing_layout* layout;
    int part;
    range box[HOMING_RANK_MAX];
    long stored_low[HOMING_RANK_MAX];
    size_t stride[HOMING_RANK_MAX]; /* bytes, in the part */
    range array[HOMING_RANK_MAX];   /* bounds of the array on the other side */
    size_t array_stride[HOMING_RANK_MAX];
    char* packed; /* where the next element of contiguous memory is */
    copy_mode mode;
} walk;

static void strides(const homing_layout* layout, const range* ranges, size_t* stride) {
    size_t bytes = layout->element;
    for (int step = 0; step < layout->rank; step++) {
        const int i = layout->language == HOMING_FORTRAN ? step : layout->rank - 1 - step;
        stride[i] = bytes;
        bytes *= ranges[i].high < ranges[i].low ? 0 : (size_t)(ranges[i].high - ranges[i].low + 1);
    }
}

/* The dimension that comes `depth` steps before the contiguous one. */
static int dimension_at(const homing_layout* layout, int depth) {
    return layout->language == HOMING_FORTRAN ? depth : layout->rank - 1 - depth;
}

static void copy_run(walk* w, char* part_at, char* array_at, size_t bytes) {
    switch (w->mode) {
    case PART_TO_ARRAY:
        memcpy(array_at, part_at, bytes);
        return;
    case ARRAY_TO_PART:
        memcpy(part_at, array_at, bytes);
        return;
    case PACKED_TO_ARRAY:
        memcpy(array_at, w->packed, bytes);
        break;
    case ARRAY_TO_PACKED:
        memcpy(w->packed, array_at, bytes);
        break;
    }
    w->packed += bytes;
}

/* part_at is NULL where the mode has no such side. */
static void walk_dimension(walk* w, int depth, char* part_at, char* array_at) {
    const homing_layout* layout = w->layout;
    const int i = dimension_at(layout, depth);
    const homing_dimension* d = &layout->dimension[i];
    const int cyclic = d->kind == HOMING_CYCLIC;
    const range inside = cyclic ? w->box[i] : overlap(w->box[i], own_range(layout, w->part, i));
    long index = cyclic ? homing_next(layout, w->part, i, inside.low) : inside.low;
    const long upper = inside.high < d->upper ? inside.high : d->upper;
    while (index <= upper) {
        /* A run of indices that follow each other in the part's memory. */
        long run = upper - index + 1;
        if (dealt_out(d)) {
            const long block = d->argument - template_position(d, index) % d->argument;
            if (block < run) run = block;
        }
        const long local = cyclic ? local_position(layout, w->part, i, index) : index - w->stored_low[i];
        char* part_run = part_at ? part_at + (size_t)local * w->stride[i] : NULL;
        char* array_run = array_at + (size_t)(index - w->array[i].low) * w->array_stride[i];
        if (depth == 0) {
            copy_run(w, part_run, array_run, (size_t)run * layout->element);
        } else {
            for (long step = 0; step < run; step++)
                walk_dimension(w, depth - 1, part_run ? part_run + (size_t)step * w->stride[i] : NULL,
                               array_run + (size_t)step * w->array_stride[i]);
        }
        index += run;
        if (cyclic && index <= upper) index = homing_next(layout, w->part, i, index);
    }
}

/* What a part owns inside a box to or from an array with the bounds of the box, or to or from `packed`, where
 * the elements follow each other. */
static void copy_array(const homing_layout* layout, int part, void* memory, const range* box, char* array,
                       char* packed, copy_mode mode) {
    walk w;
    memset(&w, 0, sizeof w);
    w.layout = layout;
    w.part = part;
    w.mode = mode;
    w.packed = packed;
    memcpy(w.box, box, (size_t)layout->rank * sizeof *box);
    memcpy(w.array, box, (size_t)layout->rank * sizeof *box);
    strides(layout, w.array, w.array_stride);
    range stored[HOMING_RANK_MAX];
    for (int i = 0; i < layout->rank; i++) {
        stored[i] = stored_range(layout, part, i);
        w.stored_low[i] = stored[i].low;
    }
    strides(layout, stored, w.stride);
    walk_dimension(&w, layout->rank - 1, memory, array);
}

static void whole_box(const homing_layout* layout, range* box) {
    for (int i = 0; i < layout->rank; i++) {
        box[i].low = layout->dimension[i].lower;
        box[i].high = layout->dimension[i].upper;
    }
}

static int owns_nothing(const homing_layout* layout, int part) {
    return part >= layout->parts || homing_part_bytes(layout, part) == 0;
}

/* All ones into the places low..high (from 0) of a dimension of a part that stores `stored`. */
static void ones(const homing_layout* layout, const range* stored, char* memory, int i, long low, long high) {
    if (low > high) return;
    size_t stride[HOMING_RANK_MAX], all = layout->element;
    strides(layout, stored, stride);
    for (int j = 0; j < layout->rank; j++)
        all *= (size_t)(stored[j].high - stored[j].low + 1);
    const size_t step = stride[i] * (size_t)(stored[i].high - stored[i].low + 1);
    for (size_t at = 0; at < all; at += step)
        memset(memory + at + (size_t)low * stride[i], 0xff, (size_t)(high - low + 1) * stride[i]);
}

void homing_clear(const homing_layout* layout, int part, void* memory, int zero) {
    const size_t bytes = homing_part_bytes(layout, part);
    if (bytes == 0) return;
    if (zero) {
        memset(memory, 0, bytes);
    } else {
        for (size_t at = 0; at < bytes; at += 4096) /* a page is the smallest that any machine has */
            ((volatile char*)memory)[at] = 0;
    }
    range stored[HOMING_RANK_MAX] = {{0, 0}};
    for (int i = 0; i < layout->rank; i++)
        stored[i] = stored_range(layout, part, i);
    for (int i = 0; i < layout->rank; i++) {
        const homing_dimension* d = &layout->dimension[i];
        const long places = stored[i].high - stored[i].low + 1;
        if (d->kind != HOMING_CYCLIC) {
            const range own = own_range(layout, part, i);
            ones(layout, stored, memory, i, 0, own.low - stored[i].low - 1);
            ones(layout, stored, memory, i, own.high - stored[i].low + 1, places - 1);
        } else if (dealt_out(d) && (d->shadow_low || d->shadow_high)) {
            const long width = block_width(d);
            for (long at = 0; at < places; at += width) {
                ones(layout, stored, memory, i, at, at + d->shadow_low - 1);
                ones(layout, stored, memory, i, at + width - d->shadow_high, at + width - 1);
            }
        }
    }
}

void homing_collect(const homing_layout* layout, int part, const void* memory, void* whole) {
    range box[HOMING_RANK_MAX];
    if (owns_nothing(layout, part)) return;
    whole_box(layout, box);
    copy_array(layout, part, (void*)(uintptr_t)memory, box, whole, NULL, PART_TO_ARRAY);
}

void homing_scatter(const homing_layout* layout, int part, void* memory, const void* whole) {
    range box[HOMING_RANK_MAX];
    if (owns_nothing(layout, part)) return;
    whole_box(layout, box);
    copy_array(layout, part, memory, box, (char*)(uintptr_t)whole, NULL, ARRAY_TO_PART);
}

/* --- C's parts ----------------------------------------------------------------------------------------- */

void homing_allocate(homing_layout* layout, int part, int zero) {
    const size_t bytes = homing_part_bytes(layout, part);
    layout->memory[part] = need(malloc(bytes ? bytes : 1));
    homing_clear(layout, part, layout->memory[part], zero);
}

size_t homing_width(const homing_layout* layout, int part, int i) {
    const range stored = stored_range(layout, part, i);
    return homing_at_least_one(stored.high - stored.low + 1);
}

/* Where index 0 (in all dimensions) would be, for memory of the shape low..low + width - 1. The address may
 * lie outside of all memory: it is a number until an index brings it back. */
static void* moved(const homing_layout* layout, void* memory, const long* low, const size_t* width) {
    uintptr_t address = (uintptr_t)memory;
    size_t stride = layout->element;
    for (int i = layout->rank - 1; i >= 0; i--) {
        address -= (uintptr_t)low[i] * stride;
        stride *= width[i];
    }
    return (void*)address;
}

void homing_leave(homing_layout* layout, int part, void* base) {
    (void)layout;
    (void)part;
    (void)base;
}

void* homing_enter(homing_layout* layout, int part) {
    long low[HOMING_RANK_MAX];
    size_t width[HOMING_RANK_MAX];
    for (int i = 0; i < layout->rank; i++) {
        low[i] = stored_range(layout, part, i).low;
        width[i] = homing_width(layout, part, i);
    }
    return moved(layout, layout->memory[part], low, width);
}

void* homing_nowhere(void) {
    static char nowhere;
    return &nowhere;
}

static size_t whole_bytes(const homing_layout* layout) {
    size_t bytes = layout->element;
    for (int i = 0; i < layout->rank; i++) {
        const long count = layout->dimension[i].upper - layout->dimension[i].lower + 1;
        bytes *= count < 0 ? 0 : (size_t)count;
    }
    return bytes ? bytes : 1;
}

void* homing_gather(homing_layout* layout) {
    void* whole = need(malloc(whole_bytes(layout)));
    for (int part = homing_first_part(); part <= homing_last_part(); part++)
        homing_collect(layout, part, layout->memory[part], whole);
    homing_share(layout, whole);
    return whole;
}

void* homing_release(homing_layout* layout, void* whole, int changed) {
    for (int part = homing_first_part(); changed && part <= homing_last_part(); part++)
        homing_scatter(layout, part, layout->memory[part], whole);
    free(whole);
    return homing_nowhere();
}

void* homing_gather_inside(homing_layout* layout, int part, const void* base) {
    (void)base;
    if (part == homing_first_part()) layout->whole = need(malloc(whole_bytes(layout)));
    barrier();
    homing_collect(layout, part, layout->memory[part], layout->whole);
    barrier();
    if (part == homing_first_part()) homing_share(layout, layout->whole);
    barrier();
    return layout->whole;
}

void homing_scatter_inside(homing_layout* layout, int part, void* base) {
    (void)base;
    barrier();
    homing_scatter(layout, part, layout->memory[part], layout->whole);
}

void homing_release_inside(homing_layout* layout, int part) {
    barrier();
    if (part == homing_first_part()) free(layout->whole);
}

void* homing_broadcast_copy(homing_layout* layout, int part, const void* memory, const long* low,
                            const long* high, int slot) {
    part_state* state = &process.state[part];
    if (slot > state->slots) {
        state->copies = need(realloc(state->copies, (size_t)slot * sizeof *state->copies));
        memset(state->copies + state->slots, 0, (size_t)(slot - state->slots) * sizeof *state->copies);
        state->slots = slot;
    }
    exchange_buffer* copy = &state->copies[slot - 1];
    size_t bytes = layout->element, width[HOMING_RANK_MAX];
    for (int i = 0; i < layout->rank; i++) {
        width[i] = homing_at_least_one(high[i] - low[i] + 1);
        bytes *= width[i];
    }
    if (copy->bytes < bytes) {
        free(copy->data);
        copy->data = need(malloc(bytes));
        copy->bytes = bytes;
    }
    homing_broadcast(layout, part, memory, low, high, copy->data);
    return moved(layout, copy->data, low, width);
}

/* --- exchange ----------------------------------------------------------------------------------------- */

/* What all parts agree on for one exchange. Which part needs what is computed from it by everyone, so nobody
 * asks anybody. */
typedef struct exchange {
    homing_layout* layout;
    const homing_layout* home;
    int count;
    const homing_extent* boxes; /* fetch and push */
    const range* fixed;         /* broadcast: the same box for all, the owner included */
    const homing_layout* to;    /* REDISTRIBUTE: by what the receivers store, who take their own elements */
    int push;                   /* the sender is the one that wrote, not the owner */
    int only;                   /* broadcast: the one sender, where there is one; else -1 */
} exchange;

/* Indices in ascending order, as ranges with the number of indices before each; nearly always one range. */
typedef struct index_range {
    range indices;
    long before;
} index_range;
typedef struct index_set {
    int count, capacity;
    long elements;
    index_range one;
    index_range* more; /* instead of `one`, when there are several */
} index_set;

static index_range* ranges_of(index_set* set) { return set->more ? set->more : &set->one; }

/* Adds low..high; what the set has of it is left out. Calls come in ascending order of both ends. */
static void add_indices(index_set* set, long low, long high) {
    index_range* last = set->count ? &ranges_of(set)[set->count - 1] : NULL;
    if (last && low <= last->indices.high) low = last->indices.high + 1;
    if (low > high) return;
    if (last && low == last->indices.high + 1) {
        last->indices.high = high;
    } else {
        if (set->count == 1 && !set->more) {
            set->capacity = 16;
            set->more = need(malloc((size_t)set->capacity * sizeof *set->more));
            set->more[0] = set->one;
        } else if (set->count == set->capacity && set->more) {
            set->capacity *= 2;
            set->more = need(realloc(set->more, (size_t)set->capacity * sizeof *set->more));
        }
        const index_range added = {{low, high}, set->elements};
        ranges_of(set)[set->count++] = added;
    }
    set->elements += high - low + 1;
}

/* How many of the set's indices come before one of them. */
static long rank_in(index_set* set, long index) {
    const index_range* ranges = ranges_of(set);
    int low = 0, high = set->count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (ranges[middle].indices.low <= index)
            low = middle;
        else
            high = middle - 1;
    }
    return ranges[low].before + (index - ranges[low].indices.low);
}

static int same_indices(index_set* a, index_set* b) {
    return a->count == b->count && a->elements == b->elements &&
           memcmp(ranges_of(a), ranges_of(b), (size_t)a->count * sizeof(index_range)) == 0;
}

/* Indices that follow each other in memory: the first, where it lies in the part's memory (from 0), where it
 * stands among those that are sent, and how many. */
typedef struct run {
    long index, place, rank, count;
} run;
typedef struct runs {
    int count, capacity;
    run one;   /* nearly always the only one */
    run* more; /* instead of `one`, when there are several */
} runs;

static const runs no_runs = {0, 0, {0, 0, 0, 0}, NULL};

static run* runs_of(runs* all) { return all->more ? all->more : &all->one; }

static void add_run(runs* all, run added) {
    if (all->count == 1 && !all->more) {
        all->capacity = 16;
        all->more = need(malloc((size_t)all->capacity * sizeof *all->more));
        all->more[0] = all->one;
    } else if (all->more && all->count == all->capacity) {
        all->capacity *= 2;
        all->more = need(realloc(all->more, (size_t)all->capacity * sizeof *all->more));
    }
    runs_of(all)[all->count++] = added;
}

/* Which of the indices that a part touches. A part that touches its own elements has them where they are,
 * unless (CYCLIC) they lie in the shadow of another of its blocks, too. */
typedef enum choice { ALL_INDICES, AT_HOME, IN_SHADOW } choice;

/* What one part touches of one dimension of a box, block after block: for a loop over a CYCLIC home the
 * neighbourhood of each of its blocks, otherwise one range. */
typedef struct touch {
    const exchange* x;
    int part, box, i;
    long next;     /* CYCLIC home: where the next block is looked for */
    int done;      /* otherwise: the one range was there */
    range indices; /* the found ones */
    long round;    /* of the array's block in whose neighbourhood they lie */
} touch;

/* Does a part get its own elements, too, because they go elsewhere than where they lie? */
static int owner_receives(const exchange* x) { return x->fixed || x->to; }

static int next_touch(touch* t) {
    const homing_dimension* d = &t->x->layout->dimension[t->i];
    if (t->x->to && t->part >= t->x->to->parts) return 0;
    const range all = {d->lower, d->upper};
    if (t->x->fixed) {
        t->indices = t->x->fixed[t->i];
        return !t->done++ && t->indices.low <= t->indices.high;
    }
    const homing_extent* e = &t->x->boxes[t->box * t->x->layout->rank + t->i];
    range loop = {e->first, e->last};
    const int follow = (int)e->follow - 1;
    const homing_layout* home = t->x->home;
    if (follow < 0 || home->dimension[follow].kind != HOMING_CYCLIC) {
        if (t->done++) return 0;
        if (follow >= 0) {
            range own = own_range(home, t->part, follow);
            own.low -= e->home;
            own.high -= e->home;
            loop = overlap(loop, own);
        }
        if (loop.low > loop.high) return 0;
        const range reached = {loop.low + e->low, loop.high + e->high};
        t->indices = overlap(reached, all);
        return t->indices.low <= t->indices.high;
    }
    const homing_dimension* h = &home->dimension[follow];
    const range inside = {loop.low + e->home > h->lower ? loop.low + e->home : h->lower,
                          loop.high + e->home < h->upper ? loop.high + e->home : h->upper};
    if (!t->done++) t->next = inside.low;
    while (t->next <= inside.high) {
        const long begin = homing_next(home, t->part, follow, t->next);
        if (begin > inside.high) return 0;
        long end = dealt_out(h) ? homing_block_end(home, t->part, follow, begin) : inside.high;
        if (end > inside.high) end = inside.high;
        t->next = end + 1;
        t->round = round_of(h, template_position(h, begin));
        const range reached = {begin - e->home + e->low, end - e->home + e->high};
        t->indices = overlap(reached, all);
        if (t->indices.low <= t->indices.high) return 1;
    }
    return 0;
}

/* The next range of indices from `index` to `high` that `owner` owns and that follow each other in its
 * memory.
 */
static int next_owned(const homing_layout* layout, int owner, int i, long index, long high, range* found) {
    const homing_dimension* d = &layout->dimension[i];
    if (owner >= layout->parts || index > high) return 0;
    if (d->kind != HOMING_CYCLIC) {
        const range wanted = {index, high};
        *found = overlap(wanted, own_range(layout, owner, i));
        return found->low <= found->high;
    }
    found->low = homing_next(layout, owner, i, index);
    if (found->low > high || found->low > d->upper) return 0;
    found->high = dealt_out(d) ? homing_block_end(layout, owner, i, found->low) : d->upper;
    if (found->high > high) found->high = high;
    return 1;
}

/* Is the range in the toucher's memory as its own elements, and not as the shadow of another of its blocks?
 */
static int at_home(const touch* t, int owner, long index) {
    const homing_layout* layout = t->x->layout;
    const homing_dimension* d = &layout->dimension[t->i];
    return t->part == owner && (!dealt_out(d) || t->round == round_of(d, template_position(d, index)));
}

static int chosen(const touch* t, int owner, long index, choice which) {
    return which == ALL_INDICES || at_home(t, owner, index) == (which == AT_HOME);
}

static int by_index(const void* a, const void* b) {
    const run *one = a, *other = b;
    return (one->index > other->index) - (one->index < other->index);
}

/* The indices of a dimension that `toucher` touches and `owner` owns. */
static index_set shared_indices(const exchange* x, int toucher, int owner, int b, int i, choice which) {
    index_set set = {0, 0, 0, {{0, -1}, 0}, NULL};
    touch t = {x, toucher, b, i, 0, 0, {0, -1}, 0};
    range owned;
    const int dealt_anew = x->to && x->to->dimension[i].kind == HOMING_CYCLIC;
    if (x->layout->dimension[i].kind != HOMING_CYCLIC && !dealt_anew) { /* one range of one range */
        if (which != IN_SHADOW && next_touch(&t) &&
            next_owned(x->layout, owner, i, t.indices.low, t.indices.high, &owned))
            add_indices(&set, owned.low, owned.high);
        return set;
    }
    if (which != IN_SHADOW) {
        while (next_touch(&t))
            for (long at = t.indices.low; next_owned(x->layout, owner, i, at, t.indices.high, &owned);
                 at = owned.high + 1)
                if (chosen(&t, owner, owned.low, which)) add_indices(&set, owned.low, owned.high);
        return set;
    }
    /* The shadows of neighbouring blocks reach past each other. */
    runs all = no_runs;
    while (next_touch(&t))
        for (long at = t.indices.low; next_owned(x->layout, owner, i, at, t.indices.high, &owned);
             at = owned.high + 1) {
            const run found = {owned.low, 0, 0, owned.high - owned.low + 1};
            if (chosen(&t, owner, owned.low, which)) add_run(&all, found);
        }
    run* list = runs_of(&all);
    qsort(list, (size_t)all.count, sizeof *list, by_index);
    for (int each = 0; each < all.count; each++)
        add_indices(&set, list[each].index, list[each].index + list[each].count - 1);
    free(all.more);
    return set;
}

/* Where those indices lie in the toucher's memory. Ends the program where they would lie outside. */
static runs toucher_runs(const exchange* x, int toucher, int owner, int b, int i, choice which,
                         index_set* set) {
    const homing_layout* layout = x->to ? x->to : x->layout;
    const homing_dimension* d = &layout->dimension[i];
    runs all = no_runs;
    touch t = {x, toucher, b, i, 0, 0, {0, -1}, 0};
    range owned;
    const range stored = x->fixed ? x->fixed[i] : stored_range(layout, toucher, i);
    while (next_touch(&t))
        for (long at = t.indices.low; next_owned(x->layout, owner, i, at, t.indices.high, &owned);
             at = owned.high + 1) {
            if (!chosen(&t, owner, owned.low, which)) continue;
            run found = {owned.low, owned.low - stored.low, rank_in(set, owned.low),
                         owned.high - owned.low + 1};
            int inside = owned.low >= stored.low && owned.high <= stored.high;
            if (!x->fixed && d->kind == HOMING_CYCLIC) {
                inside = 1;
                found.place = owned.low - d->lower;
                if (dealt_out(d)) {
                    const long begin = block_place(layout, toucher, i, t.round, owned.low);
                    const long in_block = begin - t.round * block_width(d);
                    inside = in_block >= 0 && in_block + found.count <= block_width(d);
                    found.place = begin - first_place(layout, toucher, i);
                }
            }
            if (!inside)
                fail("array '%s', dimension %d: part %d needs %ld to %ld, which its shadow does not reach: "
                     "declare a wider SHADOW",
                     layout->name, i + 1, toucher, owned.low, owned.high);
            add_run(&all, found);
        }
    return all;
}

/* Where they lie in the owner's. */
static runs owner_runs(const homing_layout* layout, int owner, int i, index_set* set) {
    const homing_dimension* d = &layout->dimension[i];
    runs all = no_runs;
    const long low = d->kind == HOMING_CYCLIC ? 0 : stored_range(layout, owner, i).low;
    for (int each = 0; each < set->count; each++) {
        const index_range* r = &ranges_of(set)[each];
        range owned;
        for (long at = r->indices.low; next_owned(layout, owner, i, at, r->indices.high, &owned);
             at = owned.high + 1) {
            const run found = {owned.low,
                               d->kind == HOMING_CYCLIC ? local_position(layout, owner, i, owned.low)
                                                        : owned.low - low,
                               r->before + (owned.low - r->indices.low), owned.high - owned.low + 1};
            add_run(&all, found);
        }
    }
    return all;
}

/* One contiguous piece of a sender's buffer. */
typedef struct piece {
    int box, receiver;
    int shadow_from; /* to the sender itself: the first dimension in which the elements lie in a shadow */
    index_set indices[HOMING_RANK_MAX];
    size_t offset, bytes;
    int again;    /* the same elements as an earlier piece: they are in the buffer once */
    int borrowed; /* its indices are an earlier piece's */
} piece;

typedef struct pieces {
    piece* list;
    int count;
    size_t bytes;
} pieces;

static void free_piece(const homing_layout* layout, piece* p) {
    for (int i = 0; i < layout->rank && !p->borrowed; i++)
        free(p->indices[i].more);
}

static void free_pieces(const exchange* x, pieces* all) {
    for (int at = 0; at < all->count; at++)
        free_piece(x->layout, &all->list[at]);
    free(all->list);
}

static choice choice_of(const piece* p, int sender, int everyone, int i) {
    if (everyone || p->receiver != sender || i > p->shadow_from) return ALL_INDICES;
    return i < p->shadow_from ? AT_HOME : IN_SHADOW;
}

/* The elements of a piece, of which box, receiver and shadow_from are known; 0 when there are none. */
static int fill_piece(const exchange* x, int sender, piece* p) {
    const homing_layout* layout = x->layout;
    const int toucher = x->push ? sender : p->receiver, owner = x->push ? p->receiver : sender;
    p->bytes = layout->element;
    p->borrowed = 0;
    for (int i = 0; i < layout->rank; i++)
        p->indices[i].more = NULL;
    for (int i = 0; i < layout->rank; i++) {
        p->indices[i] =
            shared_indices(x, toucher, owner, p->box, i, choice_of(p, sender, owner_receives(x), i));
        p->bytes *= (size_t)p->indices[i].elements;
        if (p->bytes == 0) {
            free_piece(layout, p);
            return 0;
        }
    }
    return 1;
}

/* Does a loop over a CYCLIC dimension touch this one? Then a part may need its own elements elsewhere. */
static int in_own_shadow(const exchange* x, int b, int i) {
    if (x->fixed) return 0;
    const homing_extent* e = &x->boxes[b * x->layout->rank + i];
    return e->follow && dealt_out(&x->layout->dimension[i]);
}

/* What `sender` puts into its buffer. A box that several receivers need is there once. */
static pieces sender_pieces(const exchange* x, int sender) {
    const homing_layout* layout = x->layout;
    pieces all = {NULL, 0, 0};
    all.list = need(malloc(sizeof(piece) * (size_t)x->count * (size_t)(process.parts + layout->rank)));
    for (int b = 0; b < x->count; b++) {
        const int first_of_box = all.count;
        for (int receiver = 0; receiver < process.parts; receiver++) {
            const int self = receiver == sender && !owner_receives(x);
            for (int i = 0; i < (self ? layout->rank : 1); i++) {
                piece* p = &all.list[all.count];
                if (self && !in_own_shadow(x, b, i)) continue;
                if (x->fixed && all.count > first_of_box) { /* all get the same */
                    *p = all.list[first_of_box];
                    p->receiver = receiver;
                    p->again = p->borrowed = 1;
                    all.count++;
                    continue;
                }
                if (x->fixed && receiver > 0) break; /* the first got nothing */
                p->box = b;
                p->receiver = receiver;
                p->shadow_from = i;
                if (!fill_piece(x, sender, p)) continue;
                p->offset = all.bytes;
                p->again = 0;
                for (int earlier = first_of_box; earlier < all.count && !x->push; earlier++) {
                    piece* e = &all.list[earlier];
                    int same = owner_receives(x) || (e->receiver == sender) == self;
                    for (int j = 0; j < layout->rank && same; j++)
                        same = same_indices(&e->indices[j], &p->indices[j]);
                    if (!same) continue;
                    p->offset = e->offset;
                    p->again = 1;
                    break;
                }
                if (!p->again) all.bytes += (p->bytes + 15) & ~(size_t)15;
                all.count++;
            }
        }
    }
    return all;
}

/* A part's memory and a piece of a buffer, run by run. */
typedef struct transfer {
    const homing_layout* layout;
    int rank;
    runs runs[HOMING_RANK_MAX];
    size_t stride[HOMING_RANK_MAX], packed_stride[HOMING_RANK_MAX];
    int to_buffer;
} transfer;

static void transfer_dimension(transfer* t, int depth, char* memory, char* packed) {
    const int i = dimension_at(t->layout, depth);
    for (int each = 0; each < t->runs[i].count; each++) {
        const run* r = &runs_of(&t->runs[i])[each];
        char* from = memory + (size_t)r->place * t->stride[i];
        char* to = packed + (size_t)r->rank * t->packed_stride[i];
        if (depth == 0) {
            const size_t bytes = (size_t)r->count * t->layout->element;
            memcpy(t->to_buffer ? to : from, t->to_buffer ? from : to, bytes);
            continue;
        }
        for (long step = 0; step < r->count; step++)
            transfer_dimension(t, depth - 1, from + (size_t)step * t->stride[i],
                               to + (size_t)step * t->packed_stride[i]);
    }
}

/* The sender's side (to_buffer) or the receiver's of a piece. */
static transfer transfer_of(const exchange* x, int sender, piece* p, int to_buffer) {
    const homing_layout* layout = x->layout;
    const int toucher = x->push ? sender : p->receiver, owner = x->push ? p->receiver : sender;
    const int touching = x->push == to_buffer; /* is this side the toucher's? */
    const int part = touching ? toucher : owner;
    transfer t;
    t.layout = layout;
    t.rank = layout->rank;
    t.to_buffer = to_buffer;
    range stored[HOMING_RANK_MAX];
    size_t packed_bytes = layout->element;
    for (int depth = 0; depth < layout->rank; depth++) {
        const int i = dimension_at(layout, depth);
        stored[i] = touching && x->fixed ? x->fixed[i]
                    : touching && x->to  ? stored_range(x->to, part, i)
                                         : stored_range(layout, part, i);
        t.packed_stride[i] = packed_bytes;
        packed_bytes *= (size_t)p->indices[i].elements;
        const choice which = choice_of(p, sender, owner_receives(x), i);
        t.runs[i] = touching ? toucher_runs(x, toucher, owner, p->box, i, which, &p->indices[i])
                             : owner_runs(layout, owner, i, &p->indices[i]);
    }
    strides(layout, stored, t.stride);
    return t;
}

static void free_transfer(transfer* t) {
    for (int i = 0; i < t->rank; i++)
        free(t->runs[i].more);
}

static void move_piece(const exchange* x, int sender, piece* p, void* memory, char* packed, int to_buffer) {
    transfer t = transfer_of(x, sender, p, to_buffer);
    transfer_dimension(&t, x->layout->rank - 1, memory, packed);
    free_transfer(&t);
}

static char* buffer_of(int part, int turn, size_t bytes) {
    exchange_buffer* buffer = &process.state[part].buffer[turn];
    if (buffer->bytes < bytes) {
        /* Nobody reads it any more: readers of two exchanges ago have passed the barrier of the last one. */
        free(buffer->data);
        buffer->bytes = bytes + bytes / 2 + 64;
        buffer->data = need(malloc(buffer->bytes));
    }
    return buffer->data;
}

/* What a rank sends to another one or gets from it: pieces of a sender's buffer of so many bytes. */
typedef struct message {
    int sender, peer, out;
    size_t offset, bytes, buffer;
} message;
typedef struct messages {
    message* list;
    int count, capacity;
    int nobody; /* no part of any rank sends anything */
} messages;

#ifdef HOMING_MPI
/* The pieces of other ranks' buffers that parts of this rank need, and the other way round. */
static messages messages_of(const exchange* x) {
    messages found = {NULL, 0, 0, 1};
    for (int sender = 0; sender < process.parts; sender++) {
        const int from = sender / process.threads;
        if (x->only >= 0 && sender != x->only) continue;
        pieces all = sender_pieces(x, sender);
        if (all.count) found.nobody = 0;
        for (int at = 0; at < all.count; at++) {
            const piece* p = &all.list[at];
            const int to = p->receiver / process.threads, out = from == process.rank;
            if (from == to || (from != process.rank && to != process.rank)) continue;
            int had = 0; /* another thread of that rank gets the same elements */
            for (int earlier = 0; earlier < at && p->again; earlier++)
                had |= all.list[earlier].offset == p->offset &&
                       all.list[earlier].receiver / process.threads == to;
            if (had) continue;
            if (p->bytes > INT32_MAX) fail("array '%s': a message of %zu bytes", x->layout->name, p->bytes);
            if (found.count == found.capacity) {
                found.capacity = found.capacity ? 2 * found.capacity : 16;
                found.list = need(realloc(found.list, sizeof *found.list * (size_t)found.capacity));
            }
            const message one = {sender, out ? to : from, out, p->offset, p->bytes, all.bytes};
            found.list[found.count++] = one;
        }
        free_pieces(x, &all);
    }
    return found;
}

static void pass(const messages* all, int turn) {
    MPI_Request* requests = need(malloc(sizeof *requests * (size_t)(all->count + 1)));
    for (int at = 0; at < all->count; at++) {
        const message* one = &all->list[at];
        char* piece = buffer_of(one->sender, turn, one->buffer) + one->offset;
        if (one->out) {
            MPI_Isend(piece, (int)one->bytes, MPI_BYTE, one->peer, one->sender, MPI_COMM_WORLD,
                      &requests[at]);
            process.messages++;
            process.message_bytes += (long)one->bytes;
        } else {
            MPI_Irecv(piece, (int)one->bytes, MPI_BYTE, one->peer, one->sender, MPI_COMM_WORLD,
                      &requests[at]);
        }
    }
    MPI_Waitall(all->count, requests, MPI_STATUSES_IGNORE);
    free(requests);
}

/* Mirrors the pieces of other ranks' buffers that parts of this rank need. */
static void mirror(const exchange* x, int turn) {
    messages all = messages_of(x);
    pass(&all, turn);
    free(all.list);
}
#endif

/* Packs, waits, and leaves the turn whose buffers hold the pieces. */
static int publish(const exchange* x, int part, const void* memory) {
    part_state* state = &process.state[part];
    const int turn = (int)(state->exchanges++ & 1);
    pieces all = {NULL, 0, 0};
    if (x->only < 0 || x->only == part) all = sender_pieces(x, part);
    if (all.count) {
        char* buffer = buffer_of(part, turn, all.bytes);
        for (int at = 0; at < all.count; at++) {
            piece* p = &all.list[at];
            if (p->again) continue;
            move_piece(x, part, p, (void*)(uintptr_t)memory, buffer + p->offset, 1);
            if (p->receiver != part || x->fixed) state->bytes += (long)p->bytes;
        }
    }
    free_pieces(x, &all);
    barrier();
#ifdef HOMING_MPI
    if (process.ranks > 1) {
        if (part == homing_first_part()) mirror(x, turn);
        barrier();
    }
#endif
    return turn;
}

/* Does `part` receive anything from `sender`? */
static int receives(const exchange* x, int sender, int part) {
    const int self = sender == part && !owner_receives(x);
    for (int b = 0; b < x->count; b++)
        for (int i = 0; i < (self ? x->layout->rank : 1); i++) {
            piece p;
            if (self && !in_own_shadow(x, b, i)) continue;
            p.box = b;
            p.receiver = part;
            p.shadow_from = i;
            if (!fill_piece(x, sender, &p)) continue;
            free_piece(x->layout, &p);
            return 1;
        }
    return 0;
}

/* Takes the pieces that `part` receives: into its shadow, its own elements, or (broadcast) the target. */
static void receive(const exchange* x, int part, int turn, void* memory) {
    for (int sender = 0; sender < process.parts; sender++) {
        if (x->only >= 0) {
            if (sender > x->only) break;
            sender = x->only;
        }
        if (!x->fixed && !receives(x, sender, part)) continue; /* of a broadcast there is one piece */
        pieces all = sender_pieces(x, sender);
        for (int at = 0; at < all.count; at++) {
            piece* p = &all.list[at];
            if (p->receiver == part)
                move_piece(x, sender, p, memory, process.state[sender].buffer[turn].data + p->offset, 0);
        }
        free_pieces(x, &all);
    }
}

/* --- exchanges that come again ------------------------------------------------------------------------ */

/* So many a part remembers. A time loop has a few; one whose bounds change has new ones all the time. */
#define KEPT 16

typedef struct move {
    transfer t;
    size_t offset;
    int sender;
} move;
typedef struct moves {
    move* list;
    int count;
} moves;

/* A part's side of a fetch or a push, worked out once: that takes the longer the more parts there are. */
typedef struct kept_exchange {
    const homing_layout *layout, *home;
    unsigned long layout_made, home_made;
    int count, push;
    homing_extent* boxes;
    moves out, in;
    size_t bytes; /* of the buffer */
    long sent;
    int nobody;        /* nobody sends anything, so nobody waits */
    messages messages; /* of the rank, at its first part */
} kept_exchange;

static void add_move(moves* all, const exchange* x, int sender, piece* p, int to_buffer) {
    all->list = need(realloc(all->list, sizeof *all->list * (size_t)(all->count + 1)));
    const move added = {transfer_of(x, sender, p, to_buffer), p->offset, sender};
    all->list[all->count++] = added;
}

static void free_moves(moves* all) {
    for (int at = 0; at < all->count; at++)
        free_transfer(&all->list[at].t);
    free(all->list);
}

static void forget_exchange(kept_exchange* k) {
    /* Their layouts may be gone: what is to be freed is known without. */
    free_moves(&k->out);
    free_moves(&k->in);
    free(k->messages.list);
    free(k->boxes);
    memset(k, 0, sizeof *k);
}

static void forget_exchanges(part_state* state) {
    for (int slot = 0; state->kept && slot < KEPT; slot++)
        forget_exchange(&state->kept[slot]);
    free(state->kept);
    state->kept = NULL;
}

static kept_exchange* find_kept(const part_state* state, const exchange* x) {
    const size_t bytes = (size_t)x->count * (size_t)x->layout->rank * sizeof *x->boxes;
    for (int slot = 0; state->kept && slot < KEPT; slot++) {
        kept_exchange* k = &state->kept[slot];
        if (k->layout == x->layout && k->home == x->home && k->layout_made == x->layout->made &&
            k->home_made == x->home->made && k->count == x->count && k->push == x->push &&
            memcmp(k->boxes, x->boxes, bytes) == 0)
            return k;
    }
    return NULL;
}

/* All parts do this for the same exchanges in the same order, so that they have them at the same slots. */
static kept_exchange* keep(part_state* state, const exchange* x, int part) {
    if (!state->kept) state->kept = need(calloc(KEPT, sizeof *state->kept));
    kept_exchange* k = &state->kept[state->kept_count++ % KEPT];
    forget_exchange(k);
    const size_t bytes = (size_t)x->count * (size_t)x->layout->rank * sizeof *x->boxes;
    k->boxes = memcpy(need(malloc(bytes + 1)), x->boxes, bytes);
    pieces mine = sender_pieces(x, part);
    k->bytes = mine.bytes;
    for (int at = 0; at < mine.count; at++) {
        piece* p = &mine.list[at];
        if (p->again) continue;
        add_move(&k->out, x, part, p, 1);
        if (p->receiver != part) k->sent += (long)p->bytes;
    }
    free_pieces(x, &mine);
    for (int sender = 0; sender < process.parts; sender++) {
        if (!receives(x, sender, part)) continue;
        pieces all = sender_pieces(x, sender);
        for (int at = 0; at < all.count; at++)
            if (all.list[at].receiver == part) add_move(&k->in, x, sender, &all.list[at], 0);
        free_pieces(x, &all);
    }
#ifdef HOMING_MPI
    if (process.ranks > 1 && part == homing_first_part()) k->messages = messages_of(x);
#endif
    k->layout = x->layout, k->home = x->home;
    k->layout_made = x->layout->made, k->home_made = x->home->made;
    k->count = x->count, k->push = x->push;
    return k;
}

/* Behind the barrier of its first time. */
static int nobody_sends(long slot) {
    if (process.ranks > 1) return process.state[homing_first_part()].kept[slot].messages.nobody;
    for (int part = 0; part < process.parts; part++)
        if (process.state[part].kept[slot].out.count > 0) return 0;
    return 1;
}

static void exchange_kept(const exchange* x, int part, void* memory) {
    part_state* state = &process.state[part];
    const int depth = x->layout->rank - 1;
    kept_exchange* k = find_kept(state, x);
    const int anew = k == NULL;
    if (anew) k = keep(state, x, part);
    if (k->nobody) return;
    const int turn = (int)(state->exchanges++ & 1);
    char* buffer = k->out.count ? buffer_of(part, turn, k->bytes) : NULL;
    for (int at = 0; at < k->out.count; at++)
        transfer_dimension(&k->out.list[at].t, depth, memory, buffer + k->out.list[at].offset);
    state->bytes += k->sent;
    barrier();
#ifdef HOMING_MPI
    if (process.ranks > 1) {
        if (part == homing_first_part()) pass(&k->messages, turn);
        barrier();
    }
#endif
    for (int at = 0; at < k->in.count; at++) {
        move* one = &k->in.list[at];
        transfer_dimension(&one->t, depth, memory,
                           process.state[one->sender].buffer[turn].data + one->offset);
    }
    if (anew) k->nobody = nobody_sends(k - state->kept);
}

/* C passes homing_enter's pointer, so that compilers see it used; the memory itself is known here. */
static void* memory_of(const homing_layout* layout, int part, const void* given) {
    return layout->memory ? layout->memory[part] : (void*)(uintptr_t)given;
}

void homing_fetch(homing_layout* layout, const homing_layout* home, int part, void* memory, int count,
                  const homing_extent* boxes) {
    const exchange x = {layout, home, count, boxes, NULL, NULL, 0, -1};
    exchange_kept(&x, part, memory_of(layout, part, memory));
}

void homing_push(homing_layout* layout, const homing_layout* home, int part, void* memory, int count,
                 const homing_extent* boxes) {
    const exchange x = {layout, home, count, boxes, NULL, NULL, 1, -1};
    exchange_kept(&x, part, memory_of(layout, part, memory));
}

void homing_broadcast(homing_layout* layout, int part, const void* memory, const long* low, const long* high,
                      void* target) {
    range box[HOMING_RANK_MAX];
    for (int i = 0; i < layout->rank; i++) {
        const homing_dimension* d = &layout->dimension[i];
        if (low[i] <= high[i] && (low[i] < d->lower || high[i] > d->upper))
            fail("array '%s', dimension %d: %ld to %ld of %ld to %ld", layout->name, i + 1, low[i], high[i],
                 d->lower, d->upper);
        box[i].low = low[i];
        box[i].high = high[i];
    }
    int one_owner = 1;
    for (int i = 0; i < layout->rank; i++)
        one_owner &= !distributed(&layout->dimension[i]) || low[i] == high[i];
    const exchange x = {layout, layout, 1, NULL, box, NULL, 0, one_owner ? homing_owner(layout, low) : -1};
    receive(&x, part, publish(&x, part, memory_of(layout, part, memory)), target);
}

void homing_redistribute(homing_layout* from, homing_layout* to, int part, const void* memory, void* target) {
    homing_extent own[HOMING_RANK_MAX];
    for (int i = 0; i < from->rank; i++) {
        const homing_dimension* d = &to->dimension[i];
        const homing_extent all = {d->lower, d->upper, distributed(d) ? i + 1 : 0, 0, 0, 0};
        own[i] = all;
    }
    const exchange x = {from, to, 1, own, NULL, to, 0, -1};
    receive(&x, part, publish(&x, part, memory_of(from, part, memory)), memory_of(to, part, target));
}

/* --- between ranks, in serial code -------------------------------------------------------------------- */

#ifdef HOMING_MPI
/* Bytes of the elements that a part owns. */
static size_t own_bytes(const homing_layout* layout, int part) {
    size_t bytes = part < layout->parts ? layout->element : 0;
    for (int i = 0; i < layout->rank && bytes > 0; i++) {
        const homing_dimension* d = &layout->dimension[i];
        long count = 0;
        if (d->kind == HOMING_CYCLIC) {
            for (long at = homing_next(layout, part, i, d->lower); at <= d->upper;) {
                const long end = homing_smaller(homing_block_end(layout, part, i, at), d->upper);
                count += end - at + 1;
                at = homing_next(layout, part, i, end + 1);
            }
        } else {
            const range own = own_range(layout, part, i);
            count = own.high - own.low + 1;
        }
        bytes *= (size_t)count;
    }
    return bytes;
}
#endif

void homing_share(const homing_layout* layout, void* whole) {
#ifdef HOMING_MPI
    if (process.ranks == 1) return;
    range box[HOMING_RANK_MAX];
    for (int part = 0; part < process.parts; part++) {
        const int from = part / process.threads;
        whole_box(layout, box);
        const size_t bytes = own_bytes(layout, part);
        if (bytes == 0) continue;
        if (bytes > INT32_MAX)
            fail("array '%s': a part of %zu bytes is too large for one message", layout->name, bytes);
        char* packed = need(malloc(bytes));
        if (from == process.rank) {
            process.messages += process.ranks - 1;
            process.message_bytes += (long)bytes * (process.ranks - 1);
            copy_array(layout, part, NULL, box, whole, packed, ARRAY_TO_PACKED);
        }
        MPI_Bcast(packed, (int)bytes, MPI_BYTE, from, MPI_COMM_WORLD);
        if (from != process.rank) copy_array(layout, part, NULL, box, whole, packed, PACKED_TO_ARRAY);
        free(packed);
    }
#else
    (void)layout;
    (void)whole;
#endif
}

#ifdef HOMING_MPI
static MPI_Datatype type_of(int bits, int kind) {
    const MPI_Datatype integers[] = {MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T};
    const MPI_Datatype naturals[] = {MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T};
    if (kind == HOMING_REALS && bits == 32) return MPI_FLOAT;
    if (kind == HOMING_REALS && bits == 64) return MPI_DOUBLE;
    for (int size = 0; size < 4; size++)
        if (kind != HOMING_REALS && bits == 8 << size)
            return kind == HOMING_UNSIGNED ? naturals[size] : integers[size];
    fail("a REDUCTION of numbers of %d bits over ranks", bits);
}
#endif

void homing_combine(void* values, long count, int bits, int kind, int operation) {
#ifdef HOMING_MPI
    const MPI_Op operations[] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_LAND,
                                 MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
    if (kind == HOMING_COMPLEXES) { /* sums only */
        kind = HOMING_REALS;
        bits /= 2;
        count *= 2;
    }
    if (count > INT32_MAX) fail("a REDUCTION of %ld numbers over ranks", count);
    MPI_Allreduce(MPI_IN_PLACE, values, (int)count, type_of(bits, kind), operations[operation],
                  MPI_COMM_WORLD);
#else
    (void)values;
    (void)count;
    (void)bits;
    (void)kind;
    (void)operation;
#endif
}

void homing_combine_one(void* value, long count, int bits, int kind, int operation) {
    homing_combine(value, count, bits, kind, operation);
}

void homing_share_last(void* value, size_t bytes, int mine) {
#ifdef HOMING_MPI
    int owner = mine ? process.rank : -1;
    MPI_Allreduce(MPI_IN_PLACE, &owner, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (owner >= 0) MPI_Bcast(value, (int)bytes, MPI_BYTE, owner, MPI_COMM_WORLD);
#else
    (void)value;
    (void)bytes;
    (void)mine;
#endif
}

/* --- files of each rank --------------------------------------------------------------------------------- */

#ifdef HOMING_MPI
/* A name that the program gave, and what this rank has instead. */
typedef struct own_file {
    char *name, *path;
    int copied, descriptor; /* a copy of its own; else the file itself, open */
    struct own_file* next;
} own_file;

static struct {
    own_file* all;
    char* folder;
    int count;
} files = {NULL, NULL, 0};

static char* text_of(const char* format, const char* first, long second) {
    char* made = NULL;
    if (asprintf(&made, format, first, second) < 0) fail("out of memory");
    return made;
}

static int copy_file(const char* from, const char* to) {
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0) return 0;
    const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out < 0) fail("%s cannot be written: ranks need copies of files", to);
    static char block[1 << 16];
    for (ssize_t got; (got = read(in, block, sizeof block)) > 0;)
        for (ssize_t done = 0, put; done < got; done += put)
            if ((put = write(out, block + done, (size_t)(got - done))) < 0)
                fail("%s cannot be written: ranks need copies of files", to);
    close(in);
    close(out);
    return 1;
}

static own_file* file_named(const char* name) {
    for (own_file* file = files.all; file; file = file->next)
        if (strcmp(file->name, name) == 0) return file;
    own_file* made = need(calloc(1, sizeof *made));
    made->name = need(strdup(name));
    made->descriptor = -1;
    made->next = files.all;
    files.all = made;
    return made;
}

static void remove_files(void) {
    while (files.all) {
        own_file* file = files.all;
        files.all = file->next;
        if (file->copied) unlink(file->path);
        free(file->name);
        free(file->path);
        free(file);
    }
    if (files.folder) rmdir(files.folder);
    free(files.folder);
    files.folder = NULL;
}

static const char* copy_of(own_file* file) {
    if (!files.folder) {
        const char* where = getenv("TMPDIR");
        files.folder = text_of("%s/homing-rank%ld-XXXXXX", where && *where ? where : "/tmp", process.rank);
        if (!mkdtemp(files.folder)) fail("%s cannot be made: ranks need copies of files", files.folder);
        atexit(remove_files);
    }
    if (!file->copied) {
        free(file->path);
        file->path = text_of("%s/%ld", files.folder, files.count++);
        file->copied = 1;
    }
    if (!copy_file(file->name, file->path)) unlink(file->path);
    return file->path;
}

const char* homing_own_file(const char* name, int use) {
    homing_start();
    if (process.ranks == 1) return name;
    /* What the program did before is done on all ranks, and rank 0 goes on when the others have their copies.
     */
    MPI_Barrier(MPI_COMM_WORLD);
    const char* own = name;
    struct stat status;
    if (process.rank > 0 && (stat(name, &status) != 0 || S_ISREG(status.st_mode))) {
        own_file* file = file_named(name);
        if (use == HOMING_CHANGED) {
            own = copy_of(file);
        } else if (use == HOMING_ASKED_FOR && file->copied) {
            own = file->path;
        } else {
            if (file->copied) unlink(file->path);
            file->copied = 0;
            if (file->descriptor >= 0) close(file->descriptor);
            file->descriptor = open(name, O_RDONLY | O_CLOEXEC);
            free(file->path);
            file->path = file->descriptor >= 0 ? text_of("/proc/self/%sfd/%ld", "", file->descriptor)
                                               : text_of("%s.%ld.missing", name, process.rank);
            own = file->path;
        }
    } else if (process.rank > 0 && use == HOMING_CHANGED && !S_ISDIR(status.st_mode)) {
        own = "/dev/null";
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return own;
}
#else
const char* homing_own_file(const char* name, int use) {
    (void)use;
    return name;
}
#endif

void* homing_fopen(const char* name, const char* mode) {
    const int changes = strpbrk(mode, "wa+") != NULL;
    return fopen(homing_own_file(name, changes ? HOMING_CHANGED : HOMING_ONLY_READ), mode);
}

int homing_remove(const char* name) { return remove(homing_own_file(name, HOMING_CHANGED)); }

void homing_share_bytes(void* value, size_t bytes) {
#ifdef HOMING_MPI
    MPI_Bcast(value, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
#else
    (void)value;
    (void)bytes;
#endif
}

/* --- pages of a shared array ---------------------------------------------------------------------------- */

/* libhoming's; a program that is linked without it keeps its pages where they are. */
extern int homing_place_on_node(const void* start, size_t bytes, int node) __attribute__((weak));

int homing_owner(const homing_layout* layout, const long* indices) {
    int owner = 0;
    for (int i = 0; i < layout->rank; i++) {
        const homing_dimension* d = &layout->dimension[i];
        if (d->kind == HOMING_STAR) continue;
        const long at = indices[i] + d->offset - d->template_lower;
        long coordinate_of = 0;
        if (d->kind == HOMING_CYCLIC) {
            coordinate_of = at / d->argument % d->parts;
        } else if (d->kind == HOMING_BLOCK) {
            const long extent = d->template_upper - d->template_lower + 1;
            coordinate_of = at / ((extent + d->parts - 1) / d->parts);
        } else {
            while (coordinate_of + 1 < d->parts &&
                   layout->bounds[i][coordinate_of + 1] <= at + d->template_lower)
                coordinate_of++;
        }
        owner += (int)coordinate_of * layout->grid_stride[i];
    }
    return owner;
}

/* The owner of the element that lies `element` elements behind the first. */
static int owner_at(const homing_layout* layout, long element) {
    long indices[HOMING_RANK_MAX];
    for (int step = 0; step < layout->rank; step++) {
        const int i = layout->language == HOMING_FORTRAN ? step : layout->rank - 1 - step;
        const long extent = layout->dimension[i].upper - layout->dimension[i].lower + 1;
        indices[i] = layout->dimension[i].lower + element % extent;
        element /= extent;
    }
    return homing_owner(layout, indices);
}

/* The node of each part's thread. In a parallel region, where no other thread can be asked, those of the last
 * time; 0: there are none. */
static int nodes_of_parts(int* nodes) {
    static int* known = NULL;
    int found = 1;
#ifdef _OPENMP
    if (omp_in_parallel()) {
#pragma omp critical(homing_nodes)
        if (known)
            memcpy(nodes, known, (size_t)process.parts * sizeof *nodes);
        else
            found = 0;
        return found;
    }
#pragma omp parallel num_threads(process.threads)
#endif
    {
        unsigned cpu = 0, node = 0;
        if (getcpu(&cpu, &node) == 0) nodes[homing_part()] = (int)node;
    }
#ifdef _OPENMP
#pragma omp critical(homing_nodes)
#endif
    {
        if (!known) known = need(malloc((size_t)process.parts * sizeof *known));
        memcpy(known, nodes, (size_t)process.parts * sizeof *known);
    }
    return found;
}

void homing_place(const homing_layout* layout, const void* memory) {
    const long page = sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)memory;
    long elements = 1;
    for (int i = 0; i < layout->rank; i++) {
        const long extent = layout->dimension[i].upper - layout->dimension[i].lower + 1;
        elements *= extent < 0 ? 0 : extent;
    }
    if (elements == 0) return;
    int* nodes = need(calloc((size_t)process.parts, sizeof *nodes));
    if (!nodes_of_parts(nodes)) {
        free(nodes);
        return;
    }
    const uintptr_t end = begin + (uintptr_t)elements * layout->element;
    const uintptr_t first = (begin + (uintptr_t)page - 1) / (uintptr_t)page * (uintptr_t)page;
    uintptr_t run = first;
    int run_node = -1;
    long seen = 0, elsewhere = 0;
    for (uintptr_t at = first; at + (uintptr_t)page <= end; at += (uintptr_t)page) {
        const long low = (long)((at - begin) / layout->element);
        const long count = page / (long)layout->element;
        const int owner = owner_at(layout, low + count / 2);
        /* A page with several owners: looked at in four places, which is enough to say it. */
        for (long sample = 0; sample < 4 && count > 3; sample++) {
            seen++;
            elsewhere += owner_at(layout, low + sample * (count - 1) / 3) != owner;
        }
        if (nodes[owner] != run_node) {
            if (run_node >= 0 && homing_place_on_node)
                homing_place_on_node((const void*)run, at - run, run_node);
            run = at;
            run_node = nodes[owner];
        }
    }
    const uintptr_t last = end / (uintptr_t)page * (uintptr_t)page;
    if (run_node >= 0 && last > run && homing_place_on_node)
        homing_place_on_node((const void*)run, last - run, run_node);
    const char* wish = getenv("HOMING_PARTS");
    if (first + (uintptr_t)page > end) {
        if (wish && strcmp(wish, "statistics") == 0)
            fprintf(stderr, "homing: array '%s' has no page of its own: it cannot be placed\n", layout->name);
    } else if (elsewhere * 20 > seen) {
        fprintf(stderr, "homing: array '%s': about %ld %% of its elements lie in pages of other owners\n",
                layout->name, 100 * elsewhere / seen);
    }
    if (!homing_place_on_node)
        fprintf(stderr, "homing: linked without libhoming: pages stay where they are\n");
    free(nodes);
}

/* --- copies of an array, one a node --------------------------------------------------------------------- */

enum { MOST_NODES = 1024 }; /* Linux's own limit */

/* An array that was replicated, by its address. Kept until the end of the program: its copies are used
 * again. */
typedef struct replicated {
    const void* array;
    size_t bytes;
    void* copy[MOST_NODES]; /* mapped, not touched before its own threads write */
    struct replicated* next;
} replicated;
static replicated* all_replicated = NULL;

static int node_here(void) {
#ifdef HOMING_NODES_FOR_TESTS /* as if each thread ran on a node of its own */
    return omp_get_thread_num() % (HOMING_NODES_FOR_TESTS);
#else
    unsigned cpu = 0, node = 0;
    return getcpu(&cpu, &node) == 0 && node < MOST_NODES ? (int)node : 0;
#endif
}

static replicated* replicated_of(const void* array) {
    replicated* one = all_replicated;
    while (one && one->array != array)
        one = one->next;
    return one;
}

static void forget_copies(replicated* one) {
    for (int node = 0; node < MOST_NODES; node++) {
        free(one->copy[node]);
        one->copy[node] = NULL;
    }
}

void homing_replicate(const void* array, size_t bytes) {
    replicated* one = replicated_of(array);
    if (!one) {
        one = need(calloc(1, sizeof *one));
        one->array = array;
        one->next = all_replicated;
        all_replicated = one;
    }
    if (one->bytes != bytes) forget_copies(one);
    one->bytes = bytes;
    int threads[MOST_NODES] = {0};
    int nodes = 0;
#ifdef _OPENMP
#pragma omp parallel
#endif
    {
        const int node = node_here();
        int mine = 0;
#ifdef _OPENMP
#pragma omp critical(homing_replicate)
#endif
        {
            mine = threads[node]++;
            nodes += mine == 0;
        }
#ifdef _OPENMP
#pragma omp barrier
#pragma omp single
#endif
        for (int other = 0; other < MOST_NODES; other++)
            if (nodes > 1 && threads[other] && !one->copy[other]) one->copy[other] = need(malloc(bytes + 1));
        if (nodes > 1) {
            const size_t begin = bytes / (size_t)threads[node] * (size_t)mine;
            const size_t end =
                mine + 1 == threads[node] ? bytes : bytes / (size_t)threads[node] * (size_t)(mine + 1);
            memcpy((char*)one->copy[node] + begin, (const char*)array + begin, end - begin);
        }
    }
    /* A node without threads now would have an old copy. */
    for (int node = 0; node < MOST_NODES; node++) {
        if (one->copy[node] && (nodes < 2 || !threads[node])) {
            free(one->copy[node]);
            one->copy[node] = NULL;
        }
    }
}

const void* homing_replica(const void* array) {
    const replicated* one = replicated_of(array);
    const void* copy = one ? one->copy[node_here()] : NULL;
    return copy ? copy : array;
}
