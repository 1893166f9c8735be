// What is no memory, or no longer: ranges that calls of homing.h refuse, and blocks that end by themselves.
// Arguments: "several" nodes or "one"; "off" where homing is switched off.
#define _GNU_SOURCE // mremap
#include <homing/homing.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES = 256, PAGE = 4096, BYTES = PAGES * PAGE };

static int failures;

static void expect(int holds, const char* what) {
    if (!holds) {
        printf("failed: %s\n", what);
        ++failures;
    }
}

static void sweep(char* memory) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < BYTES; ++i)
        memory[i] += 1;
}

static char* map(void) {
    char* memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, BYTES);
    return memory;
}

/// Every call that takes memory.
static void refused(const void* start, size_t bytes, const char* what) {
    static int nodes[4];
    expect(homing_watch(start, bytes, "x") == HOMING_INVALID, what);
    expect(homing_next_touch(start, bytes) == HOMING_INVALID, what);
    expect(homing_place_on_node(start, bytes, 0) == HOMING_INVALID, what);
    expect(homing_place_round_robin(start, bytes) == HOMING_INVALID, what);
    expect(homing_place_random(start, bytes, 1) == HOMING_INVALID, what);
    if (bytes) expect(homing_where(start, bytes, nodes, 4) == HOMING_INVALID, what);
}

int main(int argc, char** argv) {
    const int several = argc > 1 && strcmp(argv[1], "several") == 0;
    const int off = argc > 2;
    char* memory = map();
    // Where nobody maps anything by himself: a page, and nothing behind it.
    char* page = mmap((void*)((uintptr_t)1 << 32), PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page == MAP_FAILED) return 2;
    sweep(memory);

    refused(NULL, BYTES, "no address");
    refused(memory, 0, "no bytes");
    refused(memory, SIZE_MAX, "a size that wraps around");
    refused(memory, SIZE_MAX - (size_t)memory, "a size up to the end of all addresses");
    refused(memory, (size_t)1 << 38, "more than is mapped");
    refused((void*)UINTPTR_MAX, 1, "the last address");
    refused(page + PAGE, BYTES, "what is not mapped");
    refused(page, PAGE + 1, "memory that ends in a hole");
    const int nothing_to_do = off && several ? HOMING_ASIDE : HOMING_OK;
    expect(homing_place_on_node(memory + 1, 10, 0) == nothing_to_do, "no whole page: nothing to place");
    expect(homing_place_on_node(memory, BYTES, 99) == HOMING_INVALID, "no node 99");
    expect(homing_place_on_node(memory, BYTES, -1) == HOMING_INVALID, "no node -1");
    if (off && several) {
        static int before[PAGES], after[PAGES];
        homing_where(memory, BYTES, before, PAGES);
        expect(homing_place_on_node(memory, BYTES, before[0] == 2 ? 1 : 2) == HOMING_ASIDE, "place");
        expect(homing_place_round_robin(memory, BYTES) == HOMING_ASIDE, "place round robin");
        expect(homing_place_random(memory, BYTES, 1) == HOMING_ASIDE, "place at random");
        homing_where(memory, BYTES, after, PAGES);
        expect(memcmp(before, after, sizeof before) == 0, "nothing moves");
        expect(homing_watch(memory, BYTES, "x") == HOMING_ASIDE, "watch");
        expect(homing_watch_hot(memory, BYTES, "x") == HOMING_ASIDE, "watch what is hot");
        expect(homing_record() == HOMING_ASIDE, "record");
    }
    if (off) {
        expect(homing_unwatch(memory) == nothing_to_do, "unwatch");
        expect(homing_replay_pages(5) == nothing_to_do, "pages of a phase");
        expect(homing_replay() == nothing_to_do && homing_undo() == nothing_to_do, "replay, undo");
    }
    expect(homing_iteration() == nothing_to_do, "iteration");
    expect(homing_next_touch(memory, BYTES) == nothing_to_do, "next touch");
    homing_statistics_t statistics = {.struct_bytes = sizeof statistics};
    homing_statistics(&statistics);
    expect(statistics.active == (several && !off ? 1 : -1), "active");

    if (several && !off) {
        const uint64_t before = statistics.pages_moved;
        homing_place_on_node(memory, BYTES, 1);
        homing_place_on_node(memory, BYTES, 2);
        homing_statistics(&statistics);
        expect(statistics.pages_moved - before >= PAGES, "what was placed counts as moved");
        homing_place_on_node(memory, BYTES, 2);
        const uint64_t after = statistics.pages_moved;
        homing_statistics(&statistics);
        expect(statistics.pages_moved == after, "what is there is not moved");
    }

    // Watched memory that goes without a word to homing.
    char* block = malloc(BYTES);
    char* grown = malloc(BYTES);
    char* mapped = map();
    char* remapped = map();
    char* kept = map();
    expect(homing_watch(block, BYTES, "freed") == nothing_to_do, "watch a block");
    expect(homing_watch(grown, BYTES, "grown") == nothing_to_do, "watch another block");
    expect(homing_watch(mapped, BYTES, "unmapped") == nothing_to_do, "watch a mapping");
    expect(homing_watch(remapped, BYTES, "remapped") == nothing_to_do, "watch another mapping");
    expect(homing_watch(kept, BYTES, "kept") == nothing_to_do, "watch what stays");
    sweep(block);
    homing_iteration();
    sweep(kept);
    homing_iteration();
    free(block);
    grown = realloc(grown, 8 * (size_t)BYTES);
    munmap(mapped, BYTES);
    char* elsewhere = mmap(NULL, 2 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    remapped = mremap(remapped, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere);
    if (several && !off)
        expect(homing_unwatch(block) == HOMING_INVALID, "what was freed is not watched any more");
    expect(homing_unwatch(mapped) == HOMING_INVALID, "what was unmapped is not watched any more");
    for (int i = 0; i < 4; ++i) {
        sweep(kept);
        homing_iteration();
    }
    free(grown);
    printf("%s\n", failures ? "failed" : "passed");
    return failures != 0;
}
