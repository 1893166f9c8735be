/* Exchanges that come again are worked out once. */

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

/* The part's memory of the array before the loop, if it is held; it is given up. */
static const char* taken_before(part_state* state, const exchange* x) {
    for (int slot = 0; x->push && slot < state->befores; slot++)
        if (state->before[slot].layout == x->layout) {
            state->before[slot].layout = NULL;
            return state->before[slot].copy.data;
        }
    return NULL;
}

static void exchange_kept(const exchange* x, int part, void* memory) {
    part_state* state = &process.state[part];
    const int depth = x->layout->rank - 1;
    kept_exchange* k = find_kept(state, x);
    const char* was = taken_before(state, x);
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
        one->t.memory = memory, one->t.before = was;
        transfer_dimension(&one->t, depth, memory,
                           process.state[one->sender].buffer[turn].data + one->offset);
    }
    if (anew) k->nobody = nobody_sends(k - state->kept);
}

/* C passes homing_enter's pointer, so that compilers see it used; the memory itself is known here. */
static void* memory_of(const homing_layout* layout, int part, const void* given) {
    return layout->memory ? layout->memory[part] : (void*)(uintptr_t)given;
}

void homing_before(const homing_layout* layout, int part, const void* memory) {
    part_state* state = &process.state[part];
    int slot = 0;
    while (slot < state->befores && state->before[slot].layout && state->before[slot].layout != layout)
        slot++;
    if (slot == state->befores) {
        state->before = need(realloc(state->before, sizeof(before) * (size_t)(slot + 1)));
        memset(&state->before[state->befores++], 0, sizeof(before));
    }
    before* held = &state->before[slot];
    const size_t bytes = homing_part_bytes(layout, part);
    char* data = with_room(&held->copy, bytes);
    held->layout = layout;
    if (bytes) memcpy(data, memory_of(layout, part, memory), bytes);
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
