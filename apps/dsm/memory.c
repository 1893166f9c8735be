#define _GNU_SOURCE
#include "memory.h"

#include "app.h"
#include "dsm.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

// Address space for diffs and notices, used as far as it is needed. LU of 2,048 columns takes 0.4 GB.
static const size_t ARENA_BYTES = (size_t)8 << 30;
enum { ALIGNMENT = 16 };

struct arena {
    size_t used;
    void* pages; // a list of free ones: each begins with the next one's address
};

static char* base;
static char* copies; // of process 0, then of process 1, ...
static long pages;
static int copies_file = -1;
static struct arena* arena;

static void* map(size_t bytes, int protection, int flags, int file) {
    void* found = mmap(NULL, bytes, protection, flags, file, 0);
    if (found == MAP_FAILED) app_error("not enough address space");
    return found;
}

void memory_make(int processes, long count) {
    if (sysconf(_SC_PAGESIZE) != DSM_PAGE_BYTES) app_error("needs a machine with pages of 4 KiB");
    pages = count;
    const size_t own = (size_t)pages * DSM_PAGE_BYTES, all = own * (size_t)processes;
    copies_file = memfd_create("dsm", MFD_CLOEXEC);
    if (copies_file < 0 || ftruncate(copies_file, (off_t)all) != 0)
        app_error("no memory for the pages of all processes");
    copies = map(all, PROT_READ | PROT_WRITE, MAP_SHARED, copies_file);
    base = map(own, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    arena = map(ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    arena->used = ALIGNMENT;
}

static int protection(enum memory_access access) {
    if (access == MEMORY_NONE) return PROT_NONE;
    return access == MEMORY_READ ? PROT_READ : PROT_READ | PROT_WRITE;
}

void memory_map_own(int me, enum memory_access first) {
    const size_t own = (size_t)pages * DSM_PAGE_BYTES;
    const off_t at = (off_t)own * me;
    if (mmap(base, own, protection(first), MAP_SHARED | MAP_FIXED, copies_file, at) == MAP_FAILED)
        app_error("the shared pages cannot be mapped");
}

char* memory_base(void) { return base; }

long memory_pages(void) { return pages; }

char* memory_copy(int process, long page) {
    return copies + ((size_t)process * (size_t)pages + (size_t)page) * DSM_PAGE_BYTES;
}

void memory_protect(long page, enum memory_access access) {
    if (mprotect(base + page * DSM_PAGE_BYTES, DSM_PAGE_BYTES, protection(access)) != 0)
        app_error("mprotect failed (too many mappings?)");
}

void* arena_take(size_t bytes) {
    const size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (arena->used + rounded > ARENA_BYTES) app_error("the arena for diffs is full");
    void* found = (char*)arena + arena->used;
    arena->used += rounded;
    return found;
}

void* arena_page(void) {
    void** page = arena->pages;
    if (page == NULL) return arena_take(DSM_PAGE_BYTES);
    arena->pages = *page;
    return page;
}

void arena_page_back(void* page) {
    *(void**)page = arena->pages;
    arena->pages = page;
}
