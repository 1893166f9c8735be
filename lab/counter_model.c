#define _GNU_SOURCE
#include "counter_model.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    INDEX_CLUSTER = 64
}; /* neighbouring pages lie together in the index: a sequential sweep stays in the host's caches */

/* Zero-filled memory that costs nothing until touched. */
static void* reserve(size_t bytes) {
    void* memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Back to zeros. The mapping stays, so a late reader in another thread sees zeros instead of a fault. */
static void empty(void* memory, size_t bytes) {
    if (memory) madvise(memory, bytes, MADV_DONTNEED);
}

static bool power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

static unsigned log2_of(size_t n) { return (unsigned)__builtin_ctzll(n); }

static size_t directory_bytes(const struct model* model) {
    return ((size_t)model->options.max_pages << model->page_line_shift) * sizeof *model->directory;
}

static size_t cache_lines(const struct model* model) { return (model->set_mask + 1) * model->options.ways; }

const char* model_create(struct model* model, const struct model_options* options) {
    if (options->nodes < 1 || options->nodes > MODEL_MAX_NODES) return "nodes must be 1 to 16";
    if (options->cpus_per_node < 1) return "cpus_per_node must be at least 1";
    if (options->vcpus < 1 || options->vcpus > MODEL_MAX_VCPUS)
        return "the counter handles 1 to 32 virtual CPUs";
    if (!power_of_two(options->line_bytes) || options->line_bytes < 16 || options->line_bytes > 4096)
        return "line must be a power of two from 16 to 4096 bytes";
    if (options->ways < 1 || options->ways > 64) return "ways must be 1 to 64";
    const size_t set_bytes = (size_t)options->ways * options->line_bytes;
    if (options->cache_bytes < set_bytes || options->cache_bytes % set_bytes ||
        !power_of_two(options->cache_bytes / set_bytes))
        return "cache / (ways * line) must be a power of two";
    if (options->max_pages < 1024 || options->max_pages > (1u << 24)) return "pages must be 1024 to 16777216";

    memset(model, 0, sizeof *model);
    model->options = *options;
    model->line_shift = log2_of(options->line_bytes);
    model->page_line_shift = MODEL_PAGE_SHIFT - model->line_shift;
    model->set_mask = options->cache_bytes / set_bytes - 1;
    size_t entries = INDEX_CLUSTER;
    while (entries < 2 * (size_t)options->max_pages)
        entries *= 2;
    model->index_mask = entries - 1;
    model->directory = reserve(directory_bytes(model));
    model->index_pages = reserve(entries * sizeof *model->index_pages);
    model->index_slots = reserve(entries * sizeof *model->index_slots);
    model->vcpus = reserve(options->vcpus * sizeof *model->vcpus);
    if (!model->directory || !model->index_pages || !model->index_slots || !model->vcpus)
        return "cannot reserve memory for the page index";
    for (unsigned cpu = 0; cpu < options->vcpus; cpu++) {
        model->vcpus[cpu].tags = reserve(cache_lines(model) * sizeof *model->vcpus->tags);
        model->vcpus[cpu].words = reserve(cache_lines(model) * sizeof *model->vcpus->words);
        if (!model->vcpus[cpu].tags || !model->vcpus[cpu].words)
            return "cannot reserve memory for the caches";
    }
    return NULL;
}

void model_reset(struct model* model) {
    const size_t entries = model->index_mask + 1;
    for (unsigned cpu = 0; cpu < model->options.vcpus; cpu++) {
        struct vcpu* vcpu = &model->vcpus[cpu];
        memset(vcpu->accesses, 0, sizeof vcpu->accesses);
        memset(vcpu->misses, 0, sizeof vcpu->misses);
        memset(vcpu->invalidation_misses, 0, sizeof vcpu->invalidation_misses);
        memset(vcpu->upgrades, 0, sizeof vcpu->upgrades);
        memset(vcpu->untracked_misses, 0, sizeof vcpu->untracked_misses);
        memset(vcpu->recent_page, 0, sizeof vcpu->recent_page);
        for (unsigned phase = 0; phase < HOMING_PHASES; phase++)
            empty(vcpu->page_misses[phase], model->options.max_pages * sizeof **vcpu->page_misses);
        empty(vcpu->tags, cache_lines(model) * sizeof *vcpu->tags);
        empty(vcpu->words, cache_lines(model) * sizeof *vcpu->words);
    }
    empty(model->index_pages, entries * sizeof *model->index_pages);
    empty(model->index_slots, entries * sizeof *model->index_slots);
    empty(model->directory, directory_bytes(model));
    __atomic_store_n(&model->next_slot, 0, __ATOMIC_RELEASE);
}

static uint32_t give_slot(struct model* model) {
    /* Past the bound the counter stands still, so that it cannot wrap around. */
    if (__atomic_load_n(&model->next_slot, __ATOMIC_RELAXED) >= model->options.max_pages)
        return MODEL_NO_SLOT;
    const uint32_t slot = __atomic_fetch_add(&model->next_slot, 1, __ATOMIC_RELAXED);
    return slot < model->options.max_pages ? slot : MODEL_NO_SLOT;
}

static uint32_t find_slot(struct model* model, uint64_t page) {
    const uint64_t cluster = (page / INDEX_CLUSTER) * 0x9e3779b97f4a7c15ull >> 20;
    size_t entry = (cluster * INDEX_CLUSTER + page % INDEX_CLUSTER) & model->index_mask;
    for (size_t probes = 0; probes <= model->index_mask; probes++, entry = (entry + 1) & model->index_mask) {
        uint64_t found = __atomic_load_n(&model->index_pages[entry], __ATOMIC_ACQUIRE);
        if (found == 0) {
            if (__atomic_load_n(&model->next_slot, __ATOMIC_RELAXED) >= model->options.max_pages)
                return MODEL_NO_SLOT;
            if (__atomic_compare_exchange_n(&model->index_pages[entry], &found, page, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
                const uint32_t slot = give_slot(model);
                /* MODEL_NO_SLOT + 1 would be 0 = "being given": the all-ones value itself is stored instead.
                 */
                __atomic_store_n(&model->index_slots[entry], slot == MODEL_NO_SLOT ? slot : slot + 1,
                                 __ATOMIC_RELEASE);
                return slot;
            }
        }
        if (found == page) {
            uint32_t slot;
            while ((slot = __atomic_load_n(&model->index_slots[entry], __ATOMIC_ACQUIRE)) == 0)
                __builtin_ia32_pause(); /* another thread is a few instructions away from storing it */
            return slot == MODEL_NO_SLOT ? slot : slot - 1;
        }
    }
    return MODEL_NO_SLOT;
}

static uint32_t slot_of(struct model* model, struct vcpu* vcpu, uint64_t page) {
    const unsigned recent = page % MODEL_RECENT_PAGES;
    if (vcpu->recent_page[recent] != page) {
        vcpu->recent_slot[recent] = find_slot(model, page);
        vcpu->recent_page[recent] = page;
    }
    return vcpu->recent_slot[recent];
}

bool model_fill(struct model* model, unsigned cpu, unsigned phase, uint64_t line, bool store) {
    (void)phase;
    struct vcpu* vcpu = &model->vcpus[cpu];
    const unsigned ways = model->options.ways;
    const size_t set = (size_t)(line & model->set_mask) * ways;
    memmove(vcpu->tags + set + 1, vcpu->tags + set, (ways - 1) * sizeof *vcpu->tags);
    memmove(vcpu->words + set + 1, vcpu->words + set, (ways - 1) * sizeof *vcpu->words);
    const uint32_t slot = slot_of(model, vcpu, line >> model->page_line_shift);
    const uint32_t line_in_page = (uint32_t)line & ((1u << model->page_line_shift) - 1);
    vcpu->tags[set] = line;
    vcpu->words[set] = slot == MODEL_NO_SLOT ? slot : (slot << model->page_line_shift) + line_in_page;
    if (slot != MODEL_NO_SLOT && model->options.coherent) {
        uint32_t* holders = &model->directory[vcpu->words[set]];
        if (store)
            __atomic_store_n(holders, 1u << cpu, __ATOMIC_RELAXED);
        else
            __atomic_fetch_or(holders, 1u << cpu, __ATOMIC_RELAXED);
    }
    return false;
}

bool model_regain(struct model* model, unsigned cpu, unsigned phase, uint32_t word, bool store) {
    const uint32_t own = 1u << cpu;
    uint32_t* holders = &model->directory[word];
    const uint32_t before = store ? __atomic_exchange_n(holders, own, __ATOMIC_RELAXED)
                                  : __atomic_fetch_or(holders, own, __ATOMIC_RELAXED);
    const bool hit = (before & own) != 0;
    if (!hit)
        model->vcpus[cpu].invalidation_misses[phase]++;
    else if (store && before != own)
        model->vcpus[cpu].upgrades[phase]++;
    return hit;
}

void model_record_miss(struct model* model, unsigned cpu, unsigned phase, uint64_t page, unsigned home) {
    struct vcpu* vcpu = &model->vcpus[cpu];
    vcpu->misses[phase][home]++;
    if (home == MODEL_UNKNOWN_NODE) return;
    const uint32_t slot = slot_of(model, vcpu, page);
    if (!vcpu->page_misses[phase])
        vcpu->page_misses[phase] = reserve(model->options.max_pages * sizeof **vcpu->page_misses);
    if (slot == MODEL_NO_SLOT || !vcpu->page_misses[phase])
        vcpu->untracked_misses[phase]++;
    else if (vcpu->page_misses[phase][slot] != UINT32_MAX)
        vcpu->page_misses[phase][slot]++;
}
