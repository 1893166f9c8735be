/* Pages of a shared array, to the nodes of those that own its elements. */

/* libhoming's; a program that is linked without it keeps its pages where they are. */
extern int homing_place_on_node(const void* start, size_t bytes, int node) __attribute__((weak));

int homing_owner(const homing_layout* layout, const long* indices) {
    int owner = 0;
    for (int i = 0; i < layout->rank; i++) {
        const homing_dimension* d = &layout->dimension[i];
        if (d->kind == HOMING_STAR) continue;
        const long at = indices[i] + d->offset - d->template_lower;
        long coordinate_of = 0;
        if (d->kind == HOMING_CYCLIC) {
            coordinate_of = at / d->argument % d->parts;
        } else if (d->kind == HOMING_BLOCK) {
            const long extent = d->template_upper - d->template_lower + 1;
            coordinate_of = at / ((extent + d->parts - 1) / d->parts);
        } else {
            while (coordinate_of + 1 < d->parts &&
                   layout->bounds[i][coordinate_of + 1] <= at + d->template_lower)
                coordinate_of++;
        }
        owner += (int)coordinate_of * layout->grid_stride[i];
    }
    return owner;
}

/* The owner of the element that lies `element` elements behind the first. */
static int owner_at(const homing_layout* layout, long element) {
    long indices[HOMING_RANK_MAX];
    for (int step = 0; step < layout->rank; step++) {
        const int i = layout->language == HOMING_FORTRAN ? step : layout->rank - 1 - step;
        const long extent = layout->dimension[i].upper - layout->dimension[i].lower + 1;
        indices[i] = layout->dimension[i].lower + element % extent;
        element /= extent;
    }
    return homing_owner(layout, indices);
}

/* The node of each part's thread. In a parallel region, where no other thread can be asked, those of the last
 * time; 0: there are none. */
static int nodes_of_parts(int* nodes) {
    static int* known = NULL;
    int found = 1;
#ifdef _OPENMP
    if (omp_in_parallel()) {
#pragma omp critical(homing_nodes)
        if (known)
            memcpy(nodes, known, (size_t)process.parts * sizeof *nodes);
        else
            found = 0;
        return found;
    }
#pragma omp parallel num_threads(process.threads)
#endif
    {
        unsigned cpu = 0, node = 0;
        if (getcpu(&cpu, &node) == 0) nodes[homing_part()] = (int)node;
    }
#ifdef _OPENMP
#pragma omp critical(homing_nodes)
#endif
    {
        if (!known) known = need(malloc((size_t)process.parts * sizeof *known));
        memcpy(known, nodes, (size_t)process.parts * sizeof *known);
    }
    return found;
}

void homing_place(const homing_layout* layout, const void* memory) {
    const long page = sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)memory;
    long elements = 1;
    for (int i = 0; i < layout->rank; i++) {
        const long extent = layout->dimension[i].upper - layout->dimension[i].lower + 1;
        elements *= extent < 0 ? 0 : extent;
    }
    if (elements == 0 || !memory) return;
    int* nodes = need(calloc((size_t)process.parts, sizeof *nodes));
    if (!nodes_of_parts(nodes)) {
        free(nodes);
        return;
    }
    const uintptr_t end = begin + (uintptr_t)elements * layout->element;
    const uintptr_t first = (begin + (uintptr_t)page - 1) / (uintptr_t)page * (uintptr_t)page;
    uintptr_t run = first;
    int run_node = -1;
    long seen = 0, elsewhere = 0;
    for (uintptr_t at = first; at + (uintptr_t)page <= end; at += (uintptr_t)page) {
        const long low = (long)((at - begin) / layout->element);
        const long count = page / (long)layout->element;
        const int owner = owner_at(layout, low + count / 2);
        /* A page with several owners: looked at in four places, which is enough to say it. */
        for (long sample = 0; sample < 4 && count > 3; sample++) {
            seen++;
            elsewhere += owner_at(layout, low + sample * (count - 1) / 3) != owner;
        }
        if (nodes[owner] != run_node) {
            if (run_node >= 0 && homing_place_on_node)
                homing_place_on_node((const void*)run, at - run, run_node);
            run = at;
            run_node = nodes[owner];
        }
    }
    const uintptr_t last = end / (uintptr_t)page * (uintptr_t)page;
    if (run_node >= 0 && last > run && homing_place_on_node)
        homing_place_on_node((const void*)run, last - run, run_node);
    const char* wish = getenv("HOMING_PARTS");
    if (first + (uintptr_t)page > end) {
        if (wish && strcmp(wish, "statistics") == 0)
            fprintf(stderr, "homing: array '%s' has no page of its own: it cannot be placed\n", layout->name);
    } else if (elsewhere * 20 > seen) {
        fprintf(stderr, "homing: array '%s': about %ld %% of its elements lie in pages of other owners\n",
                layout->name, 100 * elsewhere / seen);
    }
    static int said = 0; /* a procedure's own arrays are placed at each call */
    if (!homing_place_on_node && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        fprintf(stderr, "homing: linked without libhoming: pages stay where they are\n");
    free(nodes);
}
