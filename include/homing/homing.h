/* homing: the C interface.
 *
 * A program needs none of this to be helped: `homing run -- ./a.out` is enough. It is for programs that know
 * more than can be observed: where an iteration ends, which memory matters, where pages should be.
 *
 * All functions may be called from serial code of any thread. While a parallel region runs, whichever thread
 * calls, they return HOMING_IN_REGION and do nothing, but for homing_iteration() on the thread that began the
 * region, and for those that may be called from anywhere: homing_version(), homing_where(),
 * homing_statistics(), and all that has to do with locality domains and queues. Where homing is switched off
 * or stepped aside it does not follow regions: calls in them are as in serial code.
 *
 * Sizes are bytes. Ranges are widened to nothing: only whole pages inside [start, start + bytes) are meant. A
 * range that is empty, wraps around or is not mapped from its first byte to its last is HOMING_INVALID. Nodes
 * are the operating system's NUMA node numbers. Results of type int are 0 or positive for success and a
 * negative HOMING_* code otherwise; HOMING_REFUSED is also that there was no memory for the call. Where only
 * one node can hold pages, calls with valid arguments succeed and do nothing. Where there are several, and
 * homing is switched off (HOMING=off), they are HOMING_ASIDE and do nothing. Those that may be called from
 * anywhere do their work in any case. errno stays as it is.
 */
#ifndef HOMING_HOMING_H
#define HOMING_HOMING_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#error "homing is for Linux"
#endif
#define HOMING_API __attribute__((visibility("default")))

/* The version of this header: HOMING_VERSION is 10000 * major + 100 * minor + patch, a number that #if can
 * compare. homing_version() tells the version of the library that the program runs with. */
#define HOMING_VERSION_MAJOR 0
#define HOMING_VERSION_MINOR 2
#define HOMING_VERSION_PATCH 0
#define HOMING_VERSION (10000 * HOMING_VERSION_MAJOR + 100 * HOMING_VERSION_MINOR + HOMING_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version, as a number like HOMING_VERSION. Since 0.2.0; may be called from anywhere. */
HOMING_API int homing_version(void);

enum {
    HOMING_OK = 0,
    HOMING_IN_REGION = -1, /* called while a parallel region runs */
    HOMING_INVALID = -2,   /* no such memory, node or name */
    HOMING_ASIDE = -3,     /* homing stepped aside in this process (switched off, a sanitizer, ...) */
    HOMING_REFUSED = -4,   /* the kernel, or a full node, refused some pages; statistics tell */
    HOMING_FULL = -5,      /* too many watched areas */
    HOMING_NOT_EMPTY = -6  /* locality queues in which blocks still wait */
};

/* Watch memory under a name of your own (copied): for memory that homing cannot find itself, such as a direct
 * mmap. Static arrays and heap blocks of 128 KiB and more are watched anyway; naming one renames it in the
 * summary (null or "": it keeps its name). The same memory again may get another name, and nothing else
 * changes; another size from the same start takes the place of the first. Of areas that overlap each page is
 * of the one that begins first. Memory without a whole page of its own is HOMING_OK, and has nothing to
 * watch. */
HOMING_API int homing_watch(const void* start, size_t bytes, const char* name);
/* Before memory given to homing_watch is unmapped. What goes with free(), realloc(), munmap() or mremap()
 * ends by itself, but for blocks of less than 128 KiB. HOMING_INVALID: nothing that is watched begins there.
 */
HOMING_API int homing_unwatch(const void* start);

/* The end of an iteration of the outer loop: from the first call on, iterations are counted by these calls
 * and no longer looked for (Nikolopoulos et al. 2000, section 2.1). Where the outer loop lies inside a
 * parallel region, the thread that began the region calls (`#pragma omp master`); pages move when that thread
 * comes to its next barrier, or to the end of the region. */
HOMING_API int homing_iteration(void);

/* Send each granule of this memory to the node of the thread that touches it next, in the parallel regions of
 * the next iteration (Loef, Norden, Holmgren 2004). 8,192 granules are waited for at a time (512 MiB of
 * 64 KiB each): of larger memory the rest has its turn in the iterations that follow. */
HOMING_API int homing_next_touch(const void* start, size_t bytes);

/* Place memory now; pages that are not populated yet will follow when they are first touched (round robin,
 * node). */
HOMING_API int homing_place_on_node(const void* start, size_t bytes, int node);
HOMING_API int homing_place_round_robin(const void* start, size_t bytes);
HOMING_API int homing_place_random(const void* start, size_t bytes, uint64_t seed);

/* The node of each whole page in the range into nodes[0..count-1]; -1 for a page that is not populated.
 * Returns the number of pages in the range, which may exceed count (an empty range has 0), HOMING_INVALID, or
 * HOMING_REFUSED. */
HOMING_API long homing_where(const void* start, size_t bytes, int* nodes, size_t count);

/* What homing has done in this process so far. Set struct_bytes to sizeof before the call. */
/* NOLINTNEXTLINE(modernize-use-using): C has no other way */
typedef struct homing_statistics_data {
    size_t struct_bytes;
    int active;           /* 1: at work; 0: waiting for the first region; -1: stepped aside */
    int nodes;            /* nodes that can hold pages; told before the first region, too */
    uint64_t iterations;  /* that have ended; calls of homing_iteration(), once there was one */
    uint64_t settled_at;  /* iteration at which placement was stable; 0: not yet */
    uint64_t pages_moved; /* verified by a second query; those that homing_place_* moved, too */
    uint64_t pages_refused;
    uint64_t references_seen;
    double seconds_observing; /* homing's own time */
    double seconds_deciding;
    double seconds_moving;
} homing_statistics_t;
HOMING_API int homing_statistics(homing_statistics_t* out);

/* Locality queues (Wittmann and Hager 2010, section 2.2): tasks run on the node where their data lies. C++
 * programs use homing/tasks.hpp, which these functions are made of. They may be called from any thread,
 * inside and outside of parallel regions and tasks.
 *
 * A locality domain is a NUMA node that has CPUs, or a group of CPUs that share a last-level cache. Domains
 * are numbered 0, 1, ... in the order of the nodes (of each group's first CPU). */
enum {
    HOMING_BY_NODE = 0,
    HOMING_BY_CACHE = 1,
    HOMING_ANYWHERE = -1 /* the domain of a block without a home */
};
/* How many locality domains there are: 1 or more. */
HOMING_API int homing_domains(int by);
/* The domain of the CPU that runs the caller now; HOMING_ANYWHERE for a CPU that belongs to none. */
HOMING_API int homing_domain_here(int by);
/* The domain of a NUMA node: for a node without CPUs the nearest one; HOMING_ANYWHERE for a node that is not
 * there. */
HOMING_API int homing_domain_of_node(int node);
/* The domain (by node) that holds most of this memory: up to eight of its pages are looked up, and remembered
 * for a second or two. HOMING_ANYWHERE where none of them is mapped and touched. */
HOMING_API int homing_domain_of(const void* start, size_t bytes);

/* A set of queues, one a domain, and one for blocks without a home. A block is whatever number tells the
 * program what to do: an index, or a pointer converted to intptr_t. */
/* NOLINTNEXTLINE(modernize-use-using): C has no other way */
typedef struct homing_queues homing_queues_t;
/* `name` (copied, may be null) is for messages. `keep`: a thread of another domain may take a block only
 * where more than so many wait: 0 for balance before locality, SIZE_MAX for locality at any price. Null: no
 * memory. */
HOMING_API homing_queues_t* homing_queues_create(const char* name, int by, size_t keep);
/* HOMING_NOT_EMPTY, one line on stderr that tells which blocks are left, and nothing done, where blocks wait.
 */
HOMING_API int homing_queues_destroy(homing_queues_t* queues);
/* Take all blocks away; returns how many there were. */
HOMING_API size_t homing_queues_discard(homing_queues_t* queues);
/* Append a block to a domain's queue: of a domain that was given, or of the domain that holds most of the
 * block's memory (queues by node only). HOMING_INVALID: no such domain, or queues by cache whose domains hold
 * no memory; HOMING_REFUSED: no memory. */
HOMING_API int homing_queues_put(homing_queues_t* queues, intptr_t block, int domain);
HOMING_API int homing_queues_put_at(homing_queues_t* queues, intptr_t block, const void* start, size_t bytes);
/* The oldest block for the caller: of its domain, else one without a home, else of the fullest queue. 1:
 * taken; 0: there is none that it may take. */
HOMING_API int homing_queues_take(homing_queues_t* queues, intptr_t* block);
/* One task's share: take a block and call work(block, data). Submit as many tasks as there are blocks. 1: a
 * block was worked on; 0: `keep` reserved those that wait for other domains' tasks, which will run one more
 * each; HOMING_INVALID: `work` is null. */
/* NOLINTNEXTLINE(modernize-use-using): C has no other way */
typedef void (*homing_work_t)(intptr_t block, void* data);
HOMING_API int homing_queues_run(homing_queues_t* queues, homing_work_t work, void* data);
/* After the tasks: work on what `keep` left over; returns how many blocks that were. */
HOMING_API size_t homing_queues_drain(homing_queues_t* queues, homing_work_t work, void* data);
/* Blocks that wait: of one domain (HOMING_ANYWHERE: those without a home), and all. */
HOMING_API size_t homing_queues_waiting(const homing_queues_t* queues, int domain);
HOMING_API size_t homing_queues_waiting_all(const homing_queues_t* queues);
/* Blocks with a home that were taken at home and elsewhere, so far. */
HOMING_API void homing_queues_taken(const homing_queues_t* queues, uint64_t* at_home, uint64_t* elsewhere);

/* Watch memory as homing_watch() does, and move pages in memory that was registered so only, from the next
 * decision on, as long as some is. It is hot until homing_unwatch(), also under another name, and less of it
 * from the same start changes nothing. Since 0.2.0. */
HOMING_API int homing_watch_hot(const void* start, size_t bytes, const char* name);

/* Phases: a phase of the outer iteration may use some pages from other nodes than the rest of the iteration
 * (Nikolopoulos et al. 2000, section 2.2). Since 0.2.0.
 *
 * In one iteration, call homing_record() at each transition: where a phase begins, and where it ends. In the
 * iterations that follow call homing_replay() or homing_undo() at the same places, as many times in all: the
 * k-th of these calls stands where the k-th record was. Replay moves the most critical pages of the phase
 * that begins there to the nodes that access them most in it. Undo moves all pages that replay has moved
 * since the last undo back to where they were, unless somebody else has moved them meanwhile, or the program
 * has placed them (homing_place_...). Pages that the kernel refuses to move leave the plan. A record after a
 * replay begins anew; after 16,384 records without one they do nothing (HOMING_INVALID).
 *
 * From the first record on pages do not move at iterations, unless the program calls homing_iteration().
 * HOMING_INVALID: nothing was recorded, or no phase begins here. HOMING_REFUSED: of some pages. */
HOMING_API int homing_record(void);
HOMING_API int homing_replay(void);
HOMING_API int homing_undo(void);
/* So many pages at most move for a phase (else --replay-pages, 20), by plans that are made after the call. */
HOMING_API int homing_replay_pages(size_t most);

/* The names of UPMlib (Nikolopoulos et al. 2000, Figures 1 and 2). Fortran programs call them without any
 * interface: the size is a default integer of 4 bytes there, of which an integer(8) gives the lower half, so
 * that sizes from 4 GiB on need the module (`use homing`). What is given to memrefcnt is hot: pages move
 * there only. */
HOMING_API void upmlib_init(void);
HOMING_API void upmlib_memrefcnt(const void* start, size_t bytes);
HOMING_API void upmlib_migrate_memory(void);
HOMING_API void upmlib_record(void);
HOMING_API void upmlib_replay(void);
HOMING_API void upmlib_undo(void);

#ifdef __cplusplus
}
#endif
#endif
