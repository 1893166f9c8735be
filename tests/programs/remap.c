// A watched block that grows, moves, shrinks or goes away in the middle of a region, by one thread, while the
// others work. What follows at the same address must be untouched by what was there before.
//
// realloc | free | calloc (freed and allocated again: zeros) | align (posix_memalign) | mmap (fixed, over a
// part of a block) | mremap (direct mappings) | munmap | churn (every thread allocates and frees all the
// time)
#include "core.h"
#include <sys/mman.h>

enum { megabyte = 1 << 20 };

static void fill(char* block, long bytes, int salt) {
    for (long i = 0; i < bytes; ++i)
        block[i] = (char)(i / 61 + salt);
}

static void check(const char* block, long bytes, int salt, const char* what) {
    for (long i = 0; i < bytes; ++i)
        if (block[i] != (char)(i / 61 + salt)) {
            expect(0, what);
            return;
        }
}

static char* fresh(long bytes) {
    return (char*)mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "realloc";
    core_start();
    const int direct = strcmp(how, "mremap") == 0 || strcmp(how, "munmap") == 0;
    const long bytes = 2 * megabyte;
    char* block = direct ? fresh(bytes) : (char*)aligned_alloc(4096, bytes);
    if (strcmp(how, "realloc") == 0) {
        free(block);
        block = (char*)malloc(bytes);
    }
    uint64_t seen = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
#pragma omp parallel for
        for (int part = 0; part < 64; ++part) // owners as in the core
            fill(block + part * (bytes / 64), bytes / 64, part);
        fill(block, bytes, i);
#pragma omp parallel num_threads(3) reduction(+ : seen)
        {
            if (strcmp(how, "churn") == 0) {
                for (int n = 0; n < 4; ++n) {
                    char* mine = (char*)malloc(256 * 1024);
                    fill(mine, 256 * 1024, n);
                    mine = (char*)realloc(mine, 512 * 1024);
                    check(mine, 256 * 1024, n, "moved while others do the same");
                    free(mine);
                }
            } else if (omp_get_thread_num() == i % 3) {
                if (strcmp(how, "realloc") == 0) {
                    block = (char*)realloc(block, 3 * bytes);
                    check(block, bytes, i, "grown");
                    fill(block, 3 * bytes, i);
                    block = (char*)realloc(block, bytes);
                    check(block, bytes, i, "shrunk");
                } else if (strcmp(how, "free") == 0 || strcmp(how, "calloc") == 0 ||
                           strcmp(how, "align") == 0) {
                    check(block, bytes, i, "before it is freed");
                    free(block);
                    void* next = NULL;
                    if (strcmp(how, "free") == 0)
                        next = malloc(bytes);
                    else if (strcmp(how, "calloc") == 0)
                        next = calloc(1, bytes);
                    else if (posix_memalign(&next, 8192, bytes) != 0)
                        next = NULL;
                    block = (char*)next;
                    if (strcmp(how, "calloc") == 0)
                        for (long at = 0; at < bytes; at += 8)
                            if (*(uint64_t*)(block + at) != 0) {
                                expect(0, "calloc gives zeros");
                                break;
                            }
                    fill(block, bytes, i);
                } else if (strcmp(how, "mmap") == 0) {
                    char* part = block + bytes / 4;
                    expect(mmap(part, megabyte, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == part,
                           "a fixed mapping over a part");
                    for (long at = 0; at < megabyte; ++at)
                        if (part[at] != 0) {
                            expect(0, "the new mapping holds zeros");
                            break;
                        }
                    fill(block, bytes, i);
                } else if (strcmp(how, "mremap") == 0) {
                    block = (char*)mremap(block, bytes, 2 * bytes, MREMAP_MAYMOVE);
                    check(block, bytes, i, "after mremap");
                    char* target = fresh(bytes);
                    char* moved = (char*)mremap(block, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, target);
                    expect(moved == target, "mremap to a fixed address");
                    munmap(block + bytes, bytes);
                    block = moved;
                } else {
                    munmap(block, bytes);
                    block = fresh(bytes);
                    fill(block, bytes, i);
                }
                check(block, bytes, i, "at the end of the deed");
            }
            seen += core_read_share();
        }
        check(block, bytes, strcmp(how, "churn") == 0 ? i : i, "in serial code");
    }
    printf("seen %llx\n", (unsigned long long)seen);
    return core_end();
}
