/* Elements from their owners to those that touch them, through buffers, and back. */

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
    const char *memory, *before; /* a push: only what the sender changed is taken */
} transfer;

/* Elements of a part, of which others have changed some: those that are no more what they were before. */
static void take_changed(const transfer* t, char* to, const char* from, size_t bytes) {
    const size_t element = t->layout->element;
    const char* was = t->before + (to - t->memory);
    for (size_t at = 0; at < bytes; at += element)
        if (memcmp(from + at, was + at, element) != 0) memcpy(to + at, from + at, element);
}

static void transfer_dimension(transfer* t, int depth, char* memory, char* packed) {
    const int i = dimension_at(t->layout, depth);
    for (int each = 0; each < t->runs[i].count; each++) {
        const run* r = &runs_of(&t->runs[i])[each];
        char* from = memory + (size_t)r->place * t->stride[i];
        char* to = packed + (size_t)r->rank * t->packed_stride[i];
        if (depth == 0) {
            const size_t bytes = (size_t)r->count * t->layout->element;
            if (t->before)
                take_changed(t, from, to, bytes);
            else
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
    t.memory = t.before = NULL;
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
    /* Nobody reads it any more: readers of two exchanges ago have passed the barrier of the last one. */
    return with_room(buffer, buffer->bytes < bytes ? bytes + bytes / 2 + 64 : bytes);
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
