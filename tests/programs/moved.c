// mremap and munmap applied to the pages of a watched heap block itself, as allocators in user code and
// language runtimes do: a page-aligned part of the block is moved away, or replaced by a hole that is filled
// again.
//
// away (mremap) | hole (munmap, then mmap fixed) | file (a read-only file over a part, and back) | dontneed |
// hugepage | free (MADV_FREE) | nohugepage | fork (MADV_DONTFORK and back) | emptied (the pages are moved to
// an address that is asked for, and the mapping stays)
#include "core.h"
#include <sys/mman.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

enum { part_bytes = 256 * 1024 };

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "away";
    const size_t bytes = CORE_WORDS * sizeof(uint64_t);
    uint64_t* a = (uint64_t*)aligned_alloc(2 << 20, bytes);
    uint64_t* b = (uint64_t*)aligned_alloc(2 << 20, bytes);
    core_start_in(a, b);
    char name[] = "/tmp/moved-XXXXXX";
    const int file = mkstemp(name);
    unlink(name);
    for (int i = 0; i < part_bytes; i += 4096)
        expect(pwrite(file, &i, sizeof i, i) == sizeof i, "write the file");
    expect(ftruncate(file, part_bytes) == 0, "size of the file");
    uint64_t seen = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        char* part = (char*)core_b + (i % 8) * part_bytes; // b is written by the next step before it is read
#pragma omp parallel num_threads(3) reduction(+ : seen)
        {
            if (omp_get_thread_num() == i % 3) {
                const uint64_t first = *(uint64_t*)part;
                if (strcmp(how, "away") == 0) {
                    char* moved =
                        (char*)mremap(part, part_bytes, part_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                                      mmap(NULL, part_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
                    expect(moved != MAP_FAILED, "mremap");
                    expect(*(uint64_t*)moved == first, "contents moved along");
                    memset(moved, 1, part_bytes); // every page must be accessible there
                    expect(mremap(moved, part_bytes, part_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, part) == part,
                           "back");
                    expect(part[part_bytes - 1] == 1, "contents came back");
                } else if (strcmp(how, "emptied") == 0) {
                    char* free_place =
                        (char*)mmap(NULL, 4 * part_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                    munmap(free_place, 4 * part_bytes); // the kernel would choose the end of it
                    char* moved = (char*)mremap(part, part_bytes, part_bytes,
                                                MREMAP_MAYMOVE | MREMAP_DONTUNMAP, free_place);
                    expect(moved == free_place, "moved to where it was asked for");
                    if (moved != MAP_FAILED) {
                        expect(*(uint64_t*)moved == first, "contents moved along");
                        munmap(moved, part_bytes);
                    }
                    for (int at = 0; at < part_bytes; at += 4096)
                        expect(part[at] == 0, "zeros where they were");
                } else if (strcmp(how, "hole") == 0) {
                    munmap(part, part_bytes);
                    expect(mmap(part, part_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == part,
                           "fill the hole");
                    for (int at = 0; at < part_bytes; at += 4096)
                        expect(part[at] == 0, "zeros");
                } else if (strcmp(how, "file") == 0) {
                    expect(mmap(part, part_bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == part,
                           "a file over it");
                    for (int at = 0; at < part_bytes; at += 4096)
                        expect(*(int*)(part + at) == at, "contents of the file");
                    expect(mmap(part, part_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) == part,
                           "memory again");
                } else if (strcmp(how, "dontneed") == 0) {
                    expect(madvise(part, part_bytes, MADV_DONTNEED) == 0, "madvise");
                    for (int at = 0; at < part_bytes; at += 4096)
                        expect(part[at] == 0, "zeros after MADV_DONTNEED");
                } else if (strcmp(how, "free") == 0) {
                    expect(madvise(part, part_bytes, MADV_FREE) == 0, "madvise");
                    memset(part, 3, part_bytes);
                } else if (strcmp(how, "hugepage") == 0) {
                    (void)madvise(core_b, bytes, MADV_HUGEPAGE); // EINVAL where the kernel has none
                    memset(part, 4, part_bytes);
                } else if (strcmp(how, "nohugepage") == 0) {
                    (void)madvise(core_b, bytes, i % 2 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
                } else {
                    expect(madvise(part, part_bytes, MADV_DONTFORK) == 0, "madvise");
                    expect(madvise(part, part_bytes, MADV_DOFORK) == 0, "madvise");
                }
            }
            seen += core_read_share();
        }
    }
    printf("seen %llx\n", (unsigned long long)seen);
    return core_end();
}
