// The memory behind it all: each process's copy of the pages, and the arena for what stands for the network.
#ifndef HOMING_APPS_DSM_MEMORY_H
#define HOMING_APPS_DSM_MEMORY_H

#include <stddef.h>

enum memory_access { MEMORY_NONE, MEMORY_READ, MEMORY_WRITE };

// Before the processes are made. pages: of each process's shared memory.
void memory_make(int processes, long pages);
// In each process: its own copy appears where programs use it.
void memory_map_own(int me, enum memory_access first);

// Where programs use the pages; the same address in all processes, protected.
char* memory_base(void);
long memory_pages(void);
// A process's copy of a page, seen from anywhere, never protected.
char* memory_copy(int process, long page);
// The caller's own pages, as programs use them.
void memory_protect(long page, enum memory_access access);

// From the arena, zero; the same address in all processes. Never freed.
void* arena_take(size_t bytes);
// A page from the arena, not zero, and back.
void* arena_page(void);
void arena_page_back(void* page);

#endif
