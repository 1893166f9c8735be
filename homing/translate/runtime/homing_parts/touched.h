/* Which elements the iterations of a part touch, as sets of indices and as runs in memory. */

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
