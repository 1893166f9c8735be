// Memory that is reserved and never touched, and many areas.
//
// map (1 TB by mmap) | malloc (as much as malloc gives, untouched) | static (1 GB of .bss, 2 MB used) |
// sparse (a page here and there of 64 GB) | areas (10,000 blocks) | touched (10,000 blocks, one page of each
// used all the time) | hole (PROT_NONE)
#include "core.h"
#include <sys/mman.h>

static char zeros[1 << 30];

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "map";
    core_start();
    enum { blocks = 10000, block_bytes = 128 * 1024 };
    static char* block[blocks];
    char* big = NULL;
    const size_t terabyte = (size_t)1 << 40;
    if (strcmp(how, "map") == 0 || strcmp(how, "hole") == 0) {
        big = (char*)mmap(NULL, terabyte, strcmp(how, "hole") == 0 ? PROT_NONE : PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        expect(big != MAP_FAILED, "reserve");
    } else if (strcmp(how, "malloc") == 0) {
        for (size_t bytes = terabyte; bytes >= 1 << 20 && !big; bytes /= 2)
            big = (char*)malloc(bytes);
        expect(big != NULL, "a large block");
    } else if (strcmp(how, "sparse") == 0) {
        big = (char*)mmap(NULL, terabyte / 16, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        expect(big != MAP_FAILED, "reserve");
    } else if (strcmp(how, "static") == 0) {
        memset(zeros + (1 << 29), 1, 2 << 20);
    } else {
        for (int i = 0; i < blocks; ++i) {
            block[i] = (char*)malloc(block_bytes);
            if (!block[i]) return 3;
        }
    }
    uint64_t seen = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (strcmp(how, "touched") == 0) {
#pragma omp parallel for schedule(static)
            for (int n = 0; n < blocks; ++n)
                block[n][4096] = (char)(n + i);
        }
        if (strcmp(how, "sparse") == 0) {
#pragma omp parallel for schedule(static)
            for (int n = 0; n < 1024; ++n)
                big[(terabyte / 16 / 1024) * (size_t)n] = (char)(n + i);
        }
        if (strcmp(how, "static") == 0) {
#pragma omp parallel for schedule(static) reduction(+ : seen)
            for (int n = 0; n < 2 << 20; n += 8)
                seen += (uint64_t)zeros[(1 << 29) + n];
        }
        if (strcmp(how, "areas") == 0) // they come and go
            for (int n = i; n < blocks; n += CORE_ITERATIONS) {
                free(block[n]);
                block[n] = (char*)malloc(block_bytes + (size_t)i * 4096);
            }
    }
    if (strcmp(how, "touched") == 0)
        for (int n = 0; n < blocks; ++n)
            seen += (uint64_t)(unsigned char)block[n][4096];
    printf("seen %llx\n", (unsigned long long)seen);
    return core_end();
}
