/* homing_parts: what a program that `homing translate --to spmd` or `--to mpi` wrote needs at run time.
 *
 * A distributed array is cut into parts, one a thread (with MPI: one a thread of every rank; parts are
 * counted through all ranks). A part holds the elements that it owns and a shadow of its neighbours'. Parts
 * exchange elements through small shared buffers, two for each part in turn, so that one barrier an exchange
 * is enough (Chapman, Patil, Prabhakar 2001, section 5; their programs 4 and 5 write a buffer again while
 * others may still read it). With MPI, buffers of parts of other ranks are mirrored before they are read.
 *
 * Indices are the program's own (global) ones unless a function says local. Dimensions count from 0 in the
 * program's own order. All bounds are inclusive. The functions marked "all" must be called by all parts, in
 * the same order, from a parallel region with homing_threads() threads.
 */
#ifndef HOMING_PARTS_H
#define HOMING_PARTS_H

#include <limits.h>
#include <stddef.h>

#ifdef __cplusplus
#include <initializer_list>
#include <type_traits>
#endif

/* Memory that nothing else reaches. */
#if defined(__GNUC__)
#define HOMING_ALONE __attribute__((malloc))
#else
#define HOMING_ALONE
#endif

enum { HOMING_STAR = 0, HOMING_BLOCK = 1, HOMING_CYCLIC = 2, HOMING_GEN_BLOCK = 3 };
enum { HOMING_RANK_MAX = 7 };
enum { HOMING_FORTRAN = 0, HOMING_C = 1 };
enum {
    HOMING_SUM,
    HOMING_PRODUCT,
    HOMING_MINIMUM,
    HOMING_MAXIMUM,
    HOMING_AND,
    HOMING_OR,
    HOMING_OTHER, /* of two truths one */
    HOMING_BITS_AND,
    HOMING_BITS_OR,
    HOMING_BITS_OTHER
};
enum { HOMING_INTEGERS, HOMING_UNSIGNED, HOMING_REALS, HOMING_COMPLEXES, HOMING_LOGICALS };
/* Which of them an expression is. */
#ifdef __cplusplus
#define HOMING_CLASS(x) homing_class(x)
#else
#define HOMING_CLASS(x)                                                                                      \
    _Generic((x),                                                                                            \
        _Bool: HOMING_LOGICALS,                                                                              \
        float: HOMING_REALS,                                                                                 \
        double: HOMING_REALS,                                                                                \
        float _Complex: HOMING_COMPLEXES,                                                                    \
        double _Complex: HOMING_COMPLEXES,                                                                   \
        unsigned char: HOMING_UNSIGNED,                                                                      \
        unsigned short: HOMING_UNSIGNED,                                                                     \
        unsigned int: HOMING_UNSIGNED,                                                                       \
        unsigned long: HOMING_UNSIGNED,                                                                      \
        unsigned long long: HOMING_UNSIGNED,                                                                 \
        default: HOMING_INTEGERS)
#endif

#ifdef __cplusplus
template <typename T> constexpr int homing_class(const T&) {
    return std::is_same<T, bool>::value       ? HOMING_LOGICALS
           : std::is_floating_point<T>::value ? HOMING_REALS
           : std::is_unsigned<T>::value       ? HOMING_UNSIGNED
           : std::is_integral<T>::value       ? HOMING_INTEGERS
                                              : HOMING_COMPLEXES;
}

extern "C" {
#endif

/* One dimension of a layout. The index i of the array lies where index i + offset of the template lies; the
 * template's bounds are what is cut into parts. argument: k of CYCLIC(k). */
typedef struct homing_dimension {
    long lower, upper;
    long kind, argument;
    long shadow_low, shadow_high;
    long template_lower, template_upper, offset;
    long parts; /* extent of the grid of parts in this dimension; 0: whatever is left */
} homing_dimension;

typedef struct homing_layout homing_layout;

/* One dimension of a box: what a reference in a loop touches. follow = 0: first..last as they are. follow =
 * d + 1: first..last are the bounds of a loop whose iteration i runs where index i + home lies in dimension d
 * of the loop's home array; the iterations of one part touch low below to high above their own indices. */
typedef struct homing_extent {
    long first, last, follow, home, low, high;
} homing_extent;

/* MPI_Init where the program is made of ranks; output of ranks other than 0 is dropped. Call it first. */
void homing_start(void);
/* homing_start calls `make`, of a file that main is not in: it makes the layouts of the file's own arrays. At
 * once where the program has started. Several files' in the order in which they are linked. */
void homing_at_start(void (*make)(void));
int homing_rank(void);       /* 0 without MPI */
int homing_threads(void);    /* parts of this rank: omp_get_max_threads() at the first call */
int homing_part_count(void); /* parts of all ranks */
int homing_first_part(void); /* of this rank */
int homing_last_part(void);
/* The calling thread's part. Ends the program when the team is smaller than homing_threads(). */
int homing_part(void);
/* Threads of the team that the calling thread works in. */
int homing_team(void);

/* A layout for an array of `rank` dimensions. language: which dimension is contiguous. sizes: for GEN_BLOCK
 * dimensions, in their order, the number of elements of each part, one after the other; else NULL. name: for
 * messages. */
homing_layout* homing_layout_create(const char* name, int language, int rank, size_t element,
                                    const homing_dimension* dimensions, const long* sizes);
/* Integers of so many bytes each as longs, for `sizes`: the next call takes their memory. */
const long* homing_longs(const void* integers, long count, size_t bytes);
/* Makes a layout unless *layout is one with these dimensions already. Any number of threads may ask at once.
 * Is it a new one? */
int homing_layout_fit(homing_layout** layout, const char* name, int language, int rank, size_t element,
                      const homing_dimension* dimensions, const long* sizes);
/* Frees the parts that homing_allocate made, too. Returns NULL. */
homing_layout* homing_layout_free(homing_layout* layout);
/* Two arrays change places: C's parts go with the layouts. */
void homing_layout_swap(homing_layout** a, homing_layout** b);

/* Bounds of the array, and of the template that it is aligned with. */
long homing_lower(const homing_layout* layout, int dimension);
long homing_upper(const homing_layout* layout, int dimension);
long homing_template_lower(const homing_layout* layout, int dimension);
long homing_template_upper(const homing_layout* layout, int dimension);
/* Ends the program unless the dimensions are cut at the same places: the translation took it for granted. */
void homing_together(const homing_layout* layout, int dimension, const homing_layout* other,
                     int other_dimension);
/* Ends the program unless the array's first and last index are those that a procedure declares for it. */
void homing_begins_at(const homing_layout* layout, int dimension, long lower, const char* where);
void homing_ends_at(const homing_layout* layout, int dimension, long upper, const char* where);

/* Bounds of what a part stores in a dimension (shadow included); local ones, from 1 (Fortran) or 0 (C), where
 * the dimension is CYCLIC. */
long homing_low(const homing_layout* layout, int part, int dimension);
long homing_high(const homing_layout* layout, int part, int dimension);
/* Bounds of what a part owns in a dimension that is not CYCLIC; low > high: nothing. */
long homing_own_low(const homing_layout* layout, int part, int dimension);
long homing_own_high(const homing_layout* layout, int part, int dimension);
/* The same for the iterations of a loop that runs where its array lies, which may reach beyond the array: the
 * parts that own its first and last index run those, too. most: the largest value of the loop's counter. */
long homing_run_low(const homing_layout* layout, int part, int dimension, long most);
long homing_run_high(const homing_layout* layout, int part, int dimension, long most);
long homing_run_next(const homing_layout* layout, int part, int dimension, long index, long most);
/* Does the part run this one of them? */
int homing_runs(const homing_layout* layout, int part, int dimension, long index, long most);
/* CYCLIC: the part's first index that is not below `index`; the distance of its next index is the stride. */
long homing_next(const homing_layout* layout, int part, int dimension, long index);
long homing_stride(const homing_layout* layout, int dimension);
/* The last index of the block of k that the part owns and `index` lies in. */
long homing_block_end(const homing_layout* layout, int part, int dimension, long index);
/* CYCLIC: the local position of an index that the part owns. Elsewhere the index itself. */
long homing_local(const homing_layout* layout, int part, int dimension, long index);
/* CYCLIC(1): from one of a part's indices to its next one, in local positions: between them lie shadows. A
 * neighbour's local position is the index's own plus their distance. */
long homing_local_stride(const homing_layout* layout, int dimension);
/* Does the part own this index? dimension by dimension: an element is owned where all of them are. */
int homing_owns(const homing_layout* layout, int part, int dimension, long index);

/* Bytes of a part with its shadow. */
size_t homing_part_bytes(const homing_layout* layout, int part);
/* The shadow all ones (a NaN in every floating-point format): a missing exchange shows. Own elements zero where
 * `zero` is 1; where it is 0 each page is touched, so that it lies near the calling thread; 2: they have values. */
void homing_clear(const homing_layout* layout, int part, void* memory, int zero);

/* `memory` of a part in the functions below: Fortran's array, or what homing_enter returned. */
/* All: fill the shadow of `memory` from the owners, as far as the boxes (count times rank extents) say. home:
 * the layout that the loop follows. */
void homing_fetch(homing_layout* layout, const homing_layout* home, int part, void* memory, int count,
                  const homing_extent* boxes);
/* Before a loop behind which the part's next push of the array may send elements as they came: their owners
 * take those only that differ from what they were now. */
void homing_before(const homing_layout* layout, int part, const void* memory);
/* All: send what was written into the shadow to the owners. */
void homing_push(homing_layout* layout, const homing_layout* home, int part, void* memory, int count,
                 const homing_extent* boxes);
/* All: every part gets the elements low..high (one a dimension) into `target`, contiguous. */
void homing_broadcast(homing_layout* layout, int part, const void* memory, const long* low, const long* high,
                      void* target);

/* All: the elements of `memory`, a part of `from`, to the parts of `to` that own them there. `target` is the
 * calling part's memory for `to`. The array's bounds are the same in both. */
void homing_redistribute(homing_layout* from, homing_layout* to, int part, const void* memory, void* target);

/* C: the runtime keeps the parts' memory. */
void homing_allocate(homing_layout* layout, int part,
                     int zero); /* by the part's own thread, which touches it first */
/* Serial code: the same for all parts of this process. */
void homing_allocate_all(homing_layout* layout, int zero);
/* The memory, moved so that the program's own indices (local ones where CYCLIC) reach the elements. Between
 * homing_enter and homing_leave nothing else reaches them but what gets this pointer, which compilers may
 * know.
 */
#if defined(__GNUC__)
__attribute__((malloc))
#endif
void *homing_enter(homing_layout *layout, int part);
void homing_leave(homing_layout* layout, int part, void* base);
/* Elements of a part in a dimension, at least 1, so that it can be an array's extent. */
size_t homing_width(const homing_layout* layout, int part, int dimension);
/* The whole array, gathered in serial code; homing_release scatters it if `changed`, frees it and returns
 * homing_nowhere(): not NULL, and nothing to be read or written. */
void* homing_gather(homing_layout* layout);
void* homing_release(homing_layout* layout, void* whole, int changed);
void* homing_nowhere(void);
/* All: the same inside a region; the whole array is shared, and belongs to the layout. */
void* homing_gather_inside(homing_layout* layout, int part, const void* base);
void homing_scatter_inside(homing_layout* layout, int part, void* base);
void homing_release_inside(homing_layout* layout, int part);
/* All: homing_broadcast into memory of the part's own, moved so that low..high are its indices. It stays
 * until the same part asks for the same slot (1 and up) again. */
HOMING_ALONE void* homing_broadcast_copy(homing_layout* layout, int part, const void* memory, const long* low,
                                         const long* high, int slot);

static inline long homing_larger(long a, long b) { return a > b ? a : b; }
static inline long homing_smaller(long a, long b) { return a < b ? a : b; }
static inline long homing_modulo(long a, long b) { return (a % b + b) % b; }
static inline size_t homing_at_least_one(long count) { return count < 1 ? 1 : (size_t)count; }

/* One part's own elements into the whole array, and back. */
void homing_collect(const homing_layout* layout, int part, const void* memory, void* whole);
void homing_scatter(const homing_layout* layout, int part, void* memory, const void* whole);
/* Serial code, all ranks: the whole array gets the elements of the parts of other ranks. */
void homing_share(const homing_layout* layout, void* whole);

/* The part that owns an element. */
int homing_owner(const homing_layout* layout, const long* indices);
/* Each page of a shared array goes to the node of the thread that owns the element in the middle
 * of the page. Says on stderr when many elements lie in pages of other owners. In a parallel region: as far
 * as the threads' nodes are known. */
void homing_place(const homing_layout* layout, const void* memory);

/* REPLICATE: serial code, before a parallel region: each node on which threads run gets a copy of the array
 * as it is now, written by its own threads. Where all run on one node, there is none. */
void homing_replicate(const void* array, size_t bytes);
/* In the region: the copy of the caller's node, or the array itself. */
const void* homing_replica(const void* array);

/* Serial code, all ranks: combine values of so many bits over the ranks; and rank 0's bytes for all. */
void homing_combine(void* values, long count, int bits, int kind, int operation);
void homing_combine_one(void* value, long count, int bits, int kind, int operation);
void homing_share_bytes(void* value, size_t bytes);
/* Which ranks have the extremum, of all (begins) or of those that had the last one; and the bytes of the
 * first of these. */
void homing_elect(const void* value, int bits, int kind, int operation, int begins);
void homing_share_elected(void* value, size_t bytes);
/* The bytes of the rank that says that they are its; unchanged where none says it. */
void homing_share_last(void* value, size_t bytes, int mine);

/* Serial code, all ranks: where a file is opened. Rank 0 gets the name that it gives. Every other rank gets
 * the name of a copy of its own, made now if the file exists, so that all ranks can do what the program does,
 * and none sees another's writes; it is removed at the end of the program. only_read: the file itself, as it
 * is now, even if rank 0 removes it at once. The text belongs to the runtime until the next call for the same
 * name. */
enum { HOMING_CHANGED, HOMING_ONLY_READ, HOMING_ASKED_FOR };
const char* homing_own_file(const char* name, int use);
void* homing_fopen(const char* name, const char* mode);
int homing_remove(const char* name);

/* What was written into exchange buffers so far, by all parts of this rank, and the messages between ranks.
 * HOMING_PARTS=statistics prints it at the end of the program. */
void homing_exchanged(long* exchanges, long* bytes, long* messages, long* message_bytes);

#ifdef __cplusplus
}
#endif

#endif
