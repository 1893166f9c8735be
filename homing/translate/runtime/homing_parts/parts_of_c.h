/* C's parts: their memory, and whole arrays in serial code. */

void homing_allocate(homing_layout* layout, int part, int zero) {
    const size_t bytes = homing_part_bytes(layout, part);
    layout->memory[part] = need(malloc(bytes ? bytes : 1));
    homing_clear(layout, part, layout->memory[part], zero);
}

void homing_allocate_all(homing_layout* layout, int zero) {
#ifdef _OPENMP
#pragma omp parallel num_threads(process.threads)
#endif
    homing_allocate(layout, homing_part(), zero);
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

/* Before a gathered array lie zeros: a function that frees it, though it is not the function's to free, ends
 * the program there ("invalid pointer"), and no other memory is taken for it. */
enum { HOMING_LEAD = 64 };

static void* take_whole(const homing_layout* layout) {
    char* memory = need(malloc(HOMING_LEAD + whole_bytes(layout)));
    memset(memory, 0, HOMING_LEAD);
    return memory + HOMING_LEAD;
}

static void give_whole(void* whole) { free((char*)whole - HOMING_LEAD); }

void* homing_gather(homing_layout* layout) {
    void* whole = take_whole(layout);
    for (int part = homing_first_part(); part <= homing_last_part(); part++)
        homing_collect(layout, part, layout->memory[part], whole);
    homing_share(layout, whole);
    return whole;
}

void* homing_release(homing_layout* layout, void* whole, int changed) {
    for (int part = homing_first_part(); changed && part <= homing_last_part(); part++)
        homing_scatter(layout, part, layout->memory[part], whole);
    give_whole(whole);
    return homing_nowhere();
}

void* homing_gather_inside(homing_layout* layout, int part, const void* base) {
    (void)base;
    if (part == homing_first_part()) layout->whole = take_whole(layout);
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
    if (part == homing_first_part()) give_whole(layout->whole);
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
    char* data = with_room(copy, bytes);
    homing_broadcast(layout, part, memory, low, high, data);
    return moved(layout, data, low, width);
}
