/* Boxes of elements between parts, whole arrays and packed buffers. */

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
    if (zero == 1) {
        memset(memory, 0, bytes);
    } else if (zero == 0) {
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
            const long before = own.low > own.high ? places : own.low - stored[i].low;
            ones(layout, stored, memory, i, 0, before - 1);
            if (before < places) ones(layout, stored, memory, i, own.high - stored[i].low + 1, places - 1);
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
