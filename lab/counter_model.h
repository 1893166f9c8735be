/* The counter's model: one private cache for each virtual CPU, kept coherent by a directory, and miss counts
 * by page.
 *
 * Caches are set-associative, indexed and tagged by virtual address, with true LRU replacement. A directory
 * word for each line holds the set of CPUs that may have a valid copy: a store leaves only the writer in it,
 * so the next access by another CPU misses. A line that was invalidated keeps its place in LRU order until it
 * is replaced. Instruction fetches, prefetches and write-backs are not modelled. Two processes that use the
 * same virtual addresses would share lines: count one program at a time.
 *
 * Threads: everything in `struct vcpu` is touched by this virtual CPU's thread alone, except in model_reset()
 * and the report, which run while no phase counts. The directory words and the page index are shared and
 * updated with atomic operations. No pointer into freed memory can arise: model_reset() empties the arrays
 * without unmapping them. */
#ifndef HOMING_LAB_COUNTER_MODEL_H
#define HOMING_LAB_COUNTER_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "marks.h"

enum {
    MODEL_MAX_VCPUS = 32, /* bits of a directory word */
    MODEL_MAX_NODES = 16,
    MODEL_UNKNOWN_NODE = MODEL_MAX_NODES, /* column for a miss whose page's home could not be found */
    MODEL_PAGE_SHIFT = 12,
    MODEL_RECENT_PAGES = 256,
};

/* Stands for "this page has no slot": the page index is full. Such pages are cached without coherence and
 * left out of the oracle. */
#define MODEL_NO_SLOT UINT32_MAX

struct model_options {
    unsigned vcpus;
    unsigned nodes;
    unsigned cpus_per_node;
    size_t cache_bytes;
    unsigned ways;
    unsigned line_bytes;
    bool coherent;
    uint32_t max_pages; /* bound of the page index: memory is at most about 270 bytes a page, plus 4 for each
                           CPU and phase */
};

struct vcpu {
    uint64_t accesses[HOMING_PHASES];
    uint64_t misses[HOMING_PHASES][MODEL_MAX_NODES + 1]; /* by home node */
    uint64_t invalidation_misses[HOMING_PHASES]; /* the part of the misses that a remote store caused */
    uint64_t upgrades[HOMING_PHASES];         /* stores that hit and invalidated other copies: not misses */
    uint64_t untracked_misses[HOMING_PHASES]; /* misses on pages without a slot */
    uint32_t* page_misses[HOMING_PHASES];     /* by page slot; mapped when the phase first misses */
    uint64_t* tags;  /* sets x ways line numbers, most recently used first; 0 = empty */
    uint32_t* words; /* the directory word of each of them */
    uint64_t recent_page[MODEL_RECENT_PAGES];
    uint32_t recent_slot[MODEL_RECENT_PAGES];
} __attribute__((aligned(128)));

struct model {
    struct model_options options;
    unsigned line_shift;
    unsigned page_line_shift; /* log2 of the lines in a page */
    size_t set_mask;
    uint32_t* directory;   /* (slot << page_line_shift) + line in page -> set of CPUs */
    uint64_t* index_pages; /* open-addressing hash: virtual page number, 0 = free */
    uint32_t* index_slots; /* slot + 1, 0 while the slot is being given */
    size_t index_mask;
    uint32_t next_slot;
    struct vcpu* vcpus;
};

/* Returns NULL, or one line that says what is wrong with the options or which memory is missing. */
const char* model_create(struct model* model, const struct model_options* options);
void model_reset(struct model* model);

/* Slow paths of model_access(). */
bool model_fill(struct model* model, unsigned cpu, unsigned phase, uint64_t line, bool store);
bool model_regain(struct model* model, unsigned cpu, unsigned phase, uint32_t word, bool store);

/* Accounts a miss of `cpu` on virtual page `page`, whose home node at this moment is `home`. */
void model_record_miss(struct model* model, unsigned cpu, unsigned phase, uint64_t page, unsigned home);

/* One access to line number `line` (virtual address / line size). Returns true on a hit. */
static inline bool model_access(struct model* model, unsigned cpu, unsigned phase, uint64_t line,
                                bool store) {
    struct vcpu* vcpu = &model->vcpus[cpu];
    const unsigned ways = model->options.ways;
    const size_t set = (size_t)(line & model->set_mask) * ways;
    uint64_t* tags = vcpu->tags + set;
    uint32_t* words = vcpu->words + set;
    if (tags[0] != line) {
        unsigned way = 1;
        while (way < ways && tags[way] != line)
            way++;
        if (way == ways) return model_fill(model, cpu, phase, line, store);
        const uint32_t word = words[way];
        for (; way > 0; way--) {
            tags[way] = tags[way - 1];
            words[way] = words[way - 1];
        }
        tags[0] = line;
        words[0] = word;
    }
    if (!model->options.coherent || words[0] == MODEL_NO_SLOT) return true;
    const uint32_t own = 1u << cpu;
    const uint32_t holders = __atomic_load_n(&model->directory[words[0]], __ATOMIC_RELAXED);
    if (store ? holders == own : (holders & own) != 0) return true;
    return model_regain(model, cpu, phase, words[0], store);
}

#endif
