#include "../dsm.h"
#include "app.h"
#include "mpi.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_PENDING = 4096, CAPACITY = 128 * DSM_PAGE_BYTES };

struct pending {
    void* buffer;
    int bytes, other, tag;
    bool sends;
};

// What a rank sends in an exchange: a list of messages, then their bytes. What goes to several ranks lies
// there once.
struct envelope {
    int32_t to, tag, begin, bytes;
};

static struct {
    bool started, ended, measured;
    struct pending pending[MOST_PENDING];
    int count;
    int exchange_turn, broadcast_turn, reduction_turn;
    char* exchange;  // of rank r in exchanges of turn t at 2 r + t
    char* broadcast; // of turn t
    char* reduction; // as exchange, a page each
} ranks;

static size_t size_of(MPI_Datatype type) {
    switch (type) {
    case MPI_BYTE:
    case MPI_INT8_T:
    case MPI_UINT8_T:
        return 1;
    case MPI_INT16_T:
    case MPI_UINT16_T:
        return 2;
    case MPI_INT:
    case MPI_INT32_T:
    case MPI_UINT32_T:
    case MPI_FLOAT:
        return 4;
    case MPI_C_DOUBLE_COMPLEX:
        return 16;
    default:
        return 8;
    }
}

int MPI_Initialized(int* flag) {
    *flag = ranks.started;
    return MPI_SUCCESS;
}

int MPI_Finalized(int* flag) {
    *flag = ranks.ended;
    return MPI_SUCCESS;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    (void)argc;
    (void)argv;
    (void)required;
    const char* wish = getenv("DSM_PROCESSES");
    const char* measure = getenv("DSM_MEASURE");
    const long processes = wish != NULL ? strtol(wish, NULL, 10) : 1;
    if (processes < 1 || processes > DSM_MOST_PROCESSES) app_error("DSM_PROCESSES is not from 1 to 32");
    const size_t each = 2 * (size_t)CAPACITY + 2L * DSM_PAGE_BYTES;
    const struct dsm_options options = {.processes = (int)processes, .costs = getenv("DSM_COSTS")};
    dsm_start(&options, (size_t)processes * each + 2 * (size_t)CAPACITY);
    ranks.exchange = dsm_allocate(2 * (size_t)processes * CAPACITY);
    ranks.broadcast = dsm_allocate(2 * (size_t)CAPACITY);
    ranks.reduction = dsm_allocate(2 * (size_t)processes * DSM_PAGE_BYTES);
    ranks.started = true;
    ranks.measured = measure != NULL && strcmp(measure, "1") == 0;
    if (ranks.measured) dsm_measure_begin();
    return MPI_Query_thread(provided);
}

int MPI_Query_thread(int* provided) {
    *provided = MPI_THREAD_SINGLE;
    return MPI_SUCCESS;
}

int MPI_Comm_rank(MPI_Comm comm, int* rank) {
    (void)comm;
    *rank = dsm_me();
    return MPI_SUCCESS;
}

int MPI_Comm_size(MPI_Comm comm, int* size) {
    (void)comm;
    *size = dsm_processes();
    return MPI_SUCCESS;
}

int MPI_Finalize(void) {
    dsm_measure_end();
    ranks.ended = true;
    dsm_end(ranks.measured);
    return MPI_SUCCESS;
}

int MPI_Abort(MPI_Comm comm, int status) {
    (void)comm;
    _Exit(status);
}

static int note(struct pending pending, MPI_Request* request) {
    if (ranks.count == MOST_PENDING) app_error("too many messages at once");
    *request = ranks.count;
    ranks.pending[ranks.count++] = pending;
    return MPI_SUCCESS;
}

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
    (void)comm;
    const int bytes = count * (int)size_of(type);
    return note((struct pending){(void*)(uintptr_t)buffer, bytes, to, tag, true}, request);
}

int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
    (void)comm;
    const int bytes = count * (int)size_of(type);
    return note((struct pending){buffer, bytes, from, tag, false}, request);
}

static char* outbox(int rank) {
    return ranks.exchange + ((size_t)rank * 2 + (size_t)ranks.exchange_turn) * CAPACITY;
}

// A buffer that is sent to several ranks is copied once: where an earlier message of it begins; 0: nowhere.
static int32_t copied_at(const struct envelope* envelopes, int message, int before) {
    int at = -1;
    for (int earlier = 0; earlier < before; earlier++) {
        if (!ranks.pending[earlier].sends) continue;
        at++;
        if (ranks.pending[earlier].buffer == ranks.pending[message].buffer &&
            ranks.pending[earlier].bytes == ranks.pending[message].bytes)
            return envelopes[at].begin;
    }
    return 0;
}

static void post(void) {
    int sends = 0;
    for (int message = 0; message < ranks.count; message++)
        sends += ranks.pending[message].sends;
    if (sends == 0) return;
    char* box = outbox(dsm_me());
    struct envelope* envelopes = (struct envelope*)box + 1;
    ((struct envelope*)box)->to = sends;
    size_t end = (size_t)(sends + 1) * sizeof *envelopes;
    int next = 0;
    for (int message = 0; message < ranks.count; message++) {
        const struct pending* pending = &ranks.pending[message];
        if (!pending->sends) continue;
        int32_t begin = copied_at(envelopes, message, message);
        if (begin == 0) {
            begin = (int32_t)end;
            if (end + (size_t)pending->bytes > CAPACITY) app_error("an exchange is larger than its buffer");
            memcpy(box + end, pending->buffer, (size_t)pending->bytes);
            end += (size_t)pending->bytes;
        }
        envelopes[next++] = (struct envelope){pending->other, pending->tag, begin, pending->bytes};
    }
}

static void collect(void) {
    static int seen[DSM_MOST_PROCESSES]; // messages of each rank up to here are received
    memset(seen, 0, sizeof seen);
    for (int message = 0; message < ranks.count; message++) {
        const struct pending* pending = &ranks.pending[message];
        if (pending->sends) continue;
        const char* box = outbox(pending->other);
        const struct envelope* envelopes = (const struct envelope*)box + 1;
        const int sends = ((const struct envelope*)box)->to;
        int at = seen[pending->other];
        while (at < sends && (envelopes[at].to != dsm_me() || envelopes[at].tag != pending->tag))
            at++;
        if (at == sends || envelopes[at].bytes != pending->bytes) app_error("a message was never sent");
        seen[pending->other] = at + 1;
        memcpy(pending->buffer, box + envelopes[at].begin, (size_t)pending->bytes);
    }
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
    (void)requests;
    (void)statuses;
    if (count != ranks.count) app_error("MPI_Waitall does not wait for all");
    post();
    dsm_barrier();
    collect();
    ranks.exchange_turn = 1 - ranks.exchange_turn;
    ranks.count = 0;
    return MPI_SUCCESS;
}

int MPI_Barrier(MPI_Comm comm) {
    (void)comm;
    dsm_barrier();
    return MPI_SUCCESS;
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
    (void)comm;
    *request = -1;
    return MPI_SUCCESS;
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    (void)request, (void)status;
    return MPI_SUCCESS;
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
    *flag = 1;
    return MPI_Wait(request, status);
}

double MPI_Wtime(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    (void)comm;
    const size_t bytes = (size_t)count * size_of(type);
    for (size_t done = 0; done < bytes; done += CAPACITY) {
        const size_t part = bytes - done < CAPACITY ? bytes - done : CAPACITY;
        char* shared = ranks.broadcast + (size_t)ranks.broadcast_turn * CAPACITY;
        if (dsm_me() == root) memcpy(shared, (char*)buffer + done, part);
        dsm_barrier();
        if (dsm_me() != root) memcpy((char*)buffer + done, shared, part);
        ranks.broadcast_turn = 1 - ranks.broadcast_turn;
    }
    return MPI_SUCCESS;
}

#define COMBINE(type)                                                                                        \
    static void combine_##type(type* into, const type* from, int count, MPI_Op operation) {                  \
        for (int at = 0; at < count; at++) {                                                                 \
            const type other = from[at];                                                                     \
            if (operation == MPI_SUM)                                                                        \
                into[at] += other;                                                                           \
            else if (operation == MPI_PROD)                                                                  \
                into[at] *= other;                                                                           \
            else if (operation == MPI_MIN ? other < into[at] : other > into[at])                             \
                into[at] = other;                                                                            \
        }                                                                                                    \
    }
COMBINE(int32_t)
COMBINE(int64_t)
COMBINE(float)
COMBINE(double)

static void combine(void* into, const void* from, int count, MPI_Datatype type, MPI_Op operation) {
    if (operation > MPI_MAX) app_error("this reduction is not there");
    if (type == MPI_INT || type == MPI_INT32_T)
        combine_int32_t(into, from, count, operation);
    else if (type == MPI_LONG || type == MPI_INT64_T)
        combine_int64_t(into, from, count, operation);
    else if (type == MPI_FLOAT)
        combine_float(into, from, count, operation);
    else if (type == MPI_DOUBLE)
        combine_double(into, from, count, operation);
    else
        app_error("a reduction of this type is not there");
}

int MPI_Allreduce(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op operation,
                  MPI_Comm comm) {
    (void)comm;
    const size_t bytes = (size_t)count * size_of(type);
    if (bytes > DSM_PAGE_BYTES) app_error("a reduction of more than a page");
    char* boxes = ranks.reduction;
    const size_t turn = (size_t)ranks.reduction_turn;
    memcpy(boxes + ((size_t)dsm_me() * 2 + turn) * DSM_PAGE_BYTES, mine == MPI_IN_PLACE ? all : mine, bytes);
    dsm_barrier();
    memcpy(all, boxes + turn * DSM_PAGE_BYTES, bytes);
    for (size_t rank = 1; rank < (size_t)dsm_processes(); rank++)
        combine(all, boxes + (rank * 2 + turn) * DSM_PAGE_BYTES, count, type, operation);
    ranks.reduction_turn = 1 - ranks.reduction_turn;
    return MPI_SUCCESS;
}

int MPI_Reduce(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op operation, int root,
               MPI_Comm comm) {
    (void)root;
    return MPI_Allreduce(mine, all, count, type, operation, comm);
}
