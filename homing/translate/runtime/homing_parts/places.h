/* Where the elements of a part lie in its memory, and which iterations it runs. */

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
    range own = own_range(layout, part, i);
    if (d->kind == HOMING_STAR) return own;
    /* Aligned with a larger array, a part may own nothing, and run the iterations at the border. */
    if (own.low > own.high) own = cut_range(layout, part, i);
    if (own.low > own.high) return nothing;
    const range wide = {own.low - d->shadow_low, own.high + d->shadow_high}, all = {d->lower, d->upper};
    const range stored = overlap(wide, all);
    return stored.low > stored.high ? nothing : stored;
}

long homing_lower(const homing_layout* layout, int i) { return layout->dimension[i].lower; }

long homing_upper(const homing_layout* layout, int i) { return layout->dimension[i].upper; }

long homing_template_lower(const homing_layout* layout, int i) {
    if (!layout) fail("an array is aligned with one that is not allocated yet: allocate that one before");
    return layout->dimension[i].template_lower;
}

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
        fail("'%s', dimension %d, and '%s', dimension %d, are used together and lie apart: ALIGN them, or "
             "REDISTRIBUTE both",
             layout->name, i + 1, other->name, j + 1);
}

static const char declare_alike[] = "declare it with the bounds of what is passed";

void homing_begins_at(const homing_layout* layout, int i, long lower, const char* where) {
    const homing_dimension* d = &layout->dimension[i];
    if (d->lower != lower)
        fail("%s: '%s', dimension %d, begins at %ld, and at %ld in the procedure that gets it: %s", where,
             layout->name, i + 1, d->lower, lower, declare_alike);
}

void homing_ends_at(const homing_layout* layout, int i, long upper, const char* where) {
    const homing_dimension* d = &layout->dimension[i];
    if (d->upper != upper)
        fail("%s: '%s', dimension %d, ends at %ld, and at %ld in the procedure that gets it: %s", where,
             layout->name, i + 1, d->upper, upper, declare_alike);
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
