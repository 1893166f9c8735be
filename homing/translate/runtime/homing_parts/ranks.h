/* Between ranks, in serial code: whole arrays, reductions, last values. */

#ifdef HOMING_MPI
/* Bytes of the elements that a part owns. */
static size_t own_bytes(const homing_layout* layout, int part) {
    size_t bytes = part < layout->parts ? layout->element : 0;
    for (int i = 0; i < layout->rank && bytes > 0; i++) {
        const homing_dimension* d = &layout->dimension[i];
        long count = 0;
        if (d->kind == HOMING_CYCLIC) {
            for (long at = homing_next(layout, part, i, d->lower); at <= d->upper;) {
                const long end = homing_smaller(homing_block_end(layout, part, i, at), d->upper);
                count += end - at + 1;
                at = homing_next(layout, part, i, end + 1);
            }
        } else {
            const range own = own_range(layout, part, i);
            count = own.high - own.low + 1;
        }
        bytes *= (size_t)count;
    }
    return bytes;
}
#endif

void homing_share(const homing_layout* layout, void* whole) {
#ifdef HOMING_MPI
    if (process.ranks == 1) return;
    range box[HOMING_RANK_MAX];
    for (int part = 0; part < process.parts; part++) {
        const int from = part / process.threads;
        whole_box(layout, box);
        const size_t bytes = own_bytes(layout, part);
        if (bytes == 0) continue;
        if (bytes > INT32_MAX)
            fail("array '%s': a part of %zu bytes is too large for one message", layout->name, bytes);
        char* packed = need(malloc(bytes));
        if (from == process.rank) {
            process.messages += process.ranks - 1;
            process.message_bytes += (long)bytes * (process.ranks - 1);
            copy_array(layout, part, NULL, box, whole, packed, ARRAY_TO_PACKED);
        }
        MPI_Bcast(packed, (int)bytes, MPI_BYTE, from, MPI_COMM_WORLD);
        if (from != process.rank) copy_array(layout, part, NULL, box, whole, packed, PACKED_TO_ARRAY);
        free(packed);
    }
#else
    (void)layout;
    (void)whole;
#endif
}

#ifdef HOMING_MPI
static MPI_Datatype type_of(int bits, int kind) {
    const MPI_Datatype integers[] = {MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T};
    const MPI_Datatype naturals[] = {MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T};
    if (kind == HOMING_REALS && bits == 32) return MPI_FLOAT;
    if (kind == HOMING_REALS && bits == 64) return MPI_DOUBLE;
    if (kind == HOMING_COMPLEXES && bits == 64) return MPI_C_FLOAT_COMPLEX;
    if (kind == HOMING_COMPLEXES && bits == 128) return MPI_C_DOUBLE_COMPLEX;
    for (int size = 0; size < 4; size++)
        if (kind != HOMING_REALS && kind != HOMING_COMPLEXES && bits == 8 << size)
            return kind == HOMING_UNSIGNED ? naturals[size] : integers[size];
    fail("a REDUCTION of numbers of %d bits over ranks", bits);
}
#endif

void homing_combine(void* values, long count, int bits, int kind, int operation) {
#ifdef HOMING_MPI
    const MPI_Op operations[] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_LAND,
                                 MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
    if (count > INT32_MAX) fail("a REDUCTION of %ld numbers over ranks", count);
    MPI_Allreduce(MPI_IN_PLACE, values, (int)count, type_of(bits, kind), operations[operation],
                  MPI_COMM_WORLD);
#else
    (void)values;
    (void)count;
    (void)bits;
    (void)kind;
    (void)operation;
#endif
}

void homing_combine_one(void* value, long count, int bits, int kind, int operation) {
    homing_combine(value, count, bits, kind, operation);
}

#ifdef HOMING_MPI
/* Of the ranks that still stand in homing_elect. */
static int stands_in_election;
#endif

void homing_elect(const void* value, int bits, int kind, int operation, int begins) {
#ifdef HOMING_MPI
    union {
        float f;
        double d;
        char bytes[8];
    } mine, best;
    if (begins) stands_in_election = 1;
    if (bits > 64) fail("an extremum of numbers of %d bits over ranks", bits);
    const size_t bytes = (size_t)bits / 8;
    memcpy(mine.bytes, value, bytes);
    /* -0 and 0 are equal, and have other bits. */
    if (kind == HOMING_REALS && bits == 32) mine.f += 0.0F;
    if (kind == HOMING_REALS && bits == 64) mine.d += 0.0;
    memcpy(best.bytes, mine.bytes, bytes);
    homing_share_last(best.bytes, bytes, stands_in_election); /* who does not stand changes nothing */
    if (stands_in_election) memcpy(best.bytes, mine.bytes, bytes);
    homing_combine(best.bytes, 1, bits, kind, operation);
    stands_in_election = stands_in_election && memcmp(best.bytes, mine.bytes, bytes) == 0;
#else
    (void)value;
    (void)bits;
    (void)kind;
    (void)operation;
    (void)begins;
#endif
}

void homing_share_elected(void* value, size_t bytes) {
#ifdef HOMING_MPI
    int first = stands_in_election ? process.rank : process.ranks;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first < process.ranks) MPI_Bcast(value, (int)bytes, MPI_BYTE, first, MPI_COMM_WORLD);
#else
    (void)value;
    (void)bytes;
#endif
}

void homing_share_last(void* value, size_t bytes, int mine) {
#ifdef HOMING_MPI
    int owner = mine ? process.rank : -1;
    MPI_Allreduce(MPI_IN_PLACE, &owner, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (owner >= 0) MPI_Bcast(value, (int)bytes, MPI_BYTE, owner, MPI_COMM_WORLD);
#else
    (void)value;
    (void)bytes;
    (void)mine;
#endif
}
