/* How arrays are cut into parts: the grid of parts, and what each part owns. */

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

const long* homing_longs(const void* integers, long count, size_t bytes) {
    static long* kept;
    kept = need(realloc(kept, (size_t)(count > 0 ? count : 1) * sizeof *kept));
    for (long i = 0; i < count; i++) {
        const char* at = (const char*)integers + (size_t)i * bytes;
        kept[i] = bytes == sizeof(signed char) ? *(const signed char*)at
                  : bytes == sizeof(short)     ? *(const short*)at
                  : bytes == sizeof(int)       ? *(const int*)at
                                               : (long)*(const long long*)at;
    }
    return kept;
}

static void enlist(homing_layout* layout) {
#ifdef _OPENMP
#pragma omp critical(homing_layouts)
#endif
    {
        layout->next = all_layouts;
        if (all_layouts) all_layouts->previous = layout;
        all_layouts = layout;
        layout->made = ++layouts_made;
    }
}

static void strike_out(homing_layout* layout) {
#ifdef _OPENMP
#pragma omp critical(homing_layouts)
#endif
    {
        if (layout->previous)
            layout->previous->next = layout->next;
        else
            all_layouts = layout->next;
        if (layout->next) layout->next->previous = layout->previous;
    }
}

homing_layout* homing_layout_create(const char* name, int language, int rank, size_t element,
                                    const homing_dimension* dimensions, const long* sizes) {
    homing_layout* layout = need(calloc(1, sizeof *layout));
    enlist(layout);
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
    return layout;
}

homing_layout* homing_layout_free(homing_layout* layout) {
    if (!layout) return NULL;
    strike_out(layout);
    for (int i = 0; i < layout->rank; i++)
        free(layout->bounds[i]);
    for (int part = 0; layout->memory && part < process.parts; part++)
        free(layout->memory[part]);
    free(layout->memory);
    free(layout);
    return NULL;
}

void homing_layout_swap(homing_layout** a, homing_layout** b) {
    homing_layout* first = *a;
    *a = *b;
    *b = first;
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

/* What a part has of the template in a dimension that is cut, but not CYCLIC, in indices of the array, which
 * may have none of them. */
static range cut_range(const homing_layout* layout, int part, int i) {
    const homing_dimension* d = &layout->dimension[i];
    if (part >= layout->parts) return nothing;
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
        if (own.high > d->template_upper) own.high = d->template_upper;
    }
    own.low -= d->offset;
    own.high -= d->offset;
    return own;
}

/* What a part owns in a dimension that is not CYCLIC. */
static range own_range(const homing_layout* layout, int part, int i) {
    const homing_dimension* d = &layout->dimension[i];
    const range all = {d->lower, d->upper};
    if (part >= layout->parts) return nothing;
    if (d->kind == HOMING_STAR) return all;
    const range own = overlap(cut_range(layout, part, i), all);
    return own.low > own.high ? nothing : own;
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
