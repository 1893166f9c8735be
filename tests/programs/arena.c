// A program with its own malloc, defined in the executable (as with a linked jemalloc or tcmalloc): no hook
// of ours sees these blocks. A bump allocator with size headers over reserved address space; freed blocks of
// the same size are reused.
#include "core.h"
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

struct header {
    size_t bytes;
    struct header* next;
};

static char *arena, *arena_end;
static struct header* unused[64];
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static long served;

void* aligned_alloc(size_t alignment, size_t bytes) {
    pthread_mutex_lock(&guard);
    ++served;
    if (!arena) {
        const size_t reserve = 1UL << 36;
        arena = (char*)mmap(NULL, reserve, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        arena_end = arena + reserve;
    }
    if (alignment < 16) alignment = 16;
    const size_t rounded = (bytes + 63) & ~63UL;
    const int kind = rounded ? 64 - __builtin_clzl(rounded) : 0;
    struct header** link = &unused[kind];
    while (*link && ((*link)->bytes < rounded || ((uintptr_t)(*link + 1) & (alignment - 1))))
        link = &(*link)->next;
    struct header* block = *link;
    if (block) {
        *link = block->next;
    } else {
        uintptr_t at = ((uintptr_t)arena + sizeof(struct header) + alignment - 1) & ~(alignment - 1);
        block = (struct header*)at - 1;
        block->bytes = rounded;
        arena = (char*)at + rounded;
    }
    pthread_mutex_unlock(&guard);
    return block + 1;
}

void* malloc(size_t bytes) { return aligned_alloc(16, bytes); }

void free(void* pointer) {
    if (!pointer) return;
    pthread_mutex_lock(&guard);
    struct header* block = (struct header*)pointer - 1;
    const int kind = block->bytes ? 64 - __builtin_clzl(block->bytes) : 0;
    block->next = unused[kind];
    unused[kind] = block;
    pthread_mutex_unlock(&guard);
}

void* calloc(size_t count, size_t bytes) {
    void* block = aligned_alloc(16, count * bytes);
    return memset(block, 0, count * bytes);
}

void* realloc(void* pointer, size_t bytes) {
    void* block = aligned_alloc(16, bytes);
    if (pointer) {
        const size_t before = ((struct header*)pointer - 1)->bytes;
        memcpy(block, pointer, before < bytes ? before : bytes);
        free(pointer);
    }
    return block;
}

int posix_memalign(void** pointer, size_t alignment, size_t bytes) {
    *pointer = aligned_alloc(alignment, bytes);
    return 0;
}

void* memalign(size_t alignment, size_t bytes) { return aligned_alloc(alignment, bytes); }

int main(void) {
    core_start();
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
#pragma omp parallel
        {
            char* mine = (char*)malloc(300000);
            memset(mine, omp_get_thread_num(), 300000);
            mine = (char*)realloc(mine, 600000);
            expect(mine[299999] == (char)omp_get_thread_num(), "realloc of my own");
            free(mine);
        }
    }
    expect(served > 2 + 2 * CORE_ITERATIONS, "blocks came from here");
    return core_end();
}
