/* Copies of an array, one a node. */

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
