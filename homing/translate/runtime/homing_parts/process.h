/* The process: its parts, threads and ranks, and what is counted. */

typedef struct exchange_buffer {
    char* data;
    size_t bytes;
} exchange_buffer;

/* A part's memory of an array as it was before a loop. */
typedef struct before {
    const struct homing_layout* layout; /* NULL: nothing is held here */
    exchange_buffer copy;
} before;

/* One a part, each on cache lines of its own. */
typedef struct part_state {
    exchange_buffer buffer[2];
    unsigned long exchanges;
    long bytes;
    exchange_buffer* copies; /* C: of homing_broadcast_copy, by slot */
    int slots;
    struct kept_exchange* kept; /* KEPT of them */
    unsigned long kept_count;   /* so many were worked out */
    before* before;
    int befores;
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

/* Memory of so many bytes at least; what lay there is lost where it had fewer. */
static char* with_room(exchange_buffer* buffer, size_t bytes) {
    if (buffer->bytes < bytes) {
        free(buffer->data);
        buffer->data = need(malloc(bytes));
        buffer->bytes = bytes;
    }
    return buffer->data;
}

#ifdef HOMING_MPI
/* Seconds that the others have to end, too, where this rank ends with an error. */
enum { PATIENCE = 10 };

/* Waits for all ranks. One that ends with an error (of the run-time library, or of its own) may be the only
 * one: the others may wait for it for ever. */
static void wait_for_all(int status) {
    MPI_Request all;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    if (status == 0) {
        MPI_Wait(&all, MPI_STATUS_IGNORE);
        return;
    }
    const double begin = MPI_Wtime();
    for (int done = 0; !done;) {
        MPI_Test(&all, &done, MPI_STATUS_IGNORE);
        if (!done && MPI_Wtime() > begin + PATIENCE) {
            fprintf(stderr, "homing: rank %d ends with status %d, and others do not: all are ended\n",
                    process.rank, status);
            MPI_Abort(MPI_COMM_WORLD, status);
        }
        usleep(1000);
    }
}
#endif

static void at_end(int status, void* nothing) {
    (void)status, (void)nothing;
    const char* wish = getenv("HOMING_PARTS");
    long exchanges, bytes, messages, message_bytes;
    homing_exchanged(&exchanges, &bytes, &messages, &message_bytes);
#ifdef HOMING_MPI
    int finalized;
    MPI_Finalized(&finalized);
    if (finalized) return;
    wait_for_all(status);
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
        for (int slot = 0; slot < state->befores; slot++)
            free(state->before[slot].copy.data);
        free(state->before);
        forget_exchanges(state);
    }
    free(process.state);
    process.state = NULL;
    process.parts = 0;
}

#ifndef __GLIBC__
static void at_end_unsaid(void) { at_end(0, NULL); } /* with which status is not known */
#endif

/* What homing_start calls, before main begins. */
static struct {
    void (**make)(void);
    int count;
} waiting = {NULL, 0};

void homing_at_start(void (*make)(void)) {
    if (process.started) {
        make();
        return;
    }
    waiting.make = need(realloc(waiting.make, (size_t)(waiting.count + 1) * sizeof *waiting.make));
    waiting.make[waiting.count++] = make;
}

static void make_waiting(void) {
    for (int i = 0; i < waiting.count; i++)
        waiting.make[i]();
    free(waiting.make);
    waiting.make = NULL;
    waiting.count = 0;
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
#ifdef __GLIBC__
    on_exit(at_end, NULL);
#else
    atexit(at_end_unsaid);
#endif
    make_waiting();
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
