// Every way the C library gives memory out, large and small: alignment, contents, usable size, and failure.
#include "core.h"
#include <errno.h>
#include <malloc.h>
#include <unistd.h>

static void use(void* block, size_t bytes, size_t alignment, const char* what) {
    expect(block != NULL && (uintptr_t)block % alignment == 0, what);
    if (block) {
        expect(malloc_usable_size(block) >= bytes, what);
        memset(block, 5, malloc_usable_size(block));
    }
    free(block);
}

int main(void) {
    core_start();
    const size_t sizes[] = {0, 1, 100, 4096, 128 * 1024, 128 * 1024 + 1, 1 << 20, (4 << 20) + 5};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        const size_t bytes = sizes[(unsigned)i % (sizeof sizes / sizeof *sizes)];
#pragma omp parallel num_threads(3)
        {
            use(malloc(bytes), bytes, 16, "malloc");
            void* zeros = calloc(bytes / 8 + 1, 8);
            for (size_t at = 0; at < bytes / 8; ++at)
                if (((uint64_t*)zeros)[at]) {
                    expect(0, "calloc gives zeros");
                    break;
                }
            use(zeros, bytes, 16, "calloc");
            use(realloc(NULL, bytes), bytes, 16, "realloc of nothing");
            use(reallocarray(malloc(1000), bytes / 8 + 1, 8), bytes, 16, "reallocarray");
            use(aligned_alloc(4096, (bytes + 4095) & ~4095UL), bytes, 4096, "aligned_alloc");
            use(memalign(1 << 16, bytes), bytes, 1 << 16, "memalign");
            use(valloc(bytes), bytes, page, "valloc");
            use(pvalloc(bytes), bytes, page, "pvalloc");
            void* aligned = NULL;
            expect(posix_memalign(&aligned, 64, bytes) == 0, "posix_memalign");
            use(aligned, bytes, 64, "posix_memalign");
            expect(posix_memalign(&aligned, 3, 100) == EINVAL, "a bad alignment");
            char* text = strdup("text");
            expect(strcmp(text, "text") == 0, "strdup");
            text = (char*)realloc(text, bytes + 5);
            expect(strcmp(text, "text") == 0, "realloc keeps it");
            free(text);
            errno = 0;
            void* volatile huge = malloc((size_t)1 << 62);
            expect(huge == NULL && errno == ENOMEM, "too much");
            size_t volatile many = (size_t)1 << 40;
            void* volatile first = calloc(many, many), * volatile second = reallocarray(NULL, many, many);
            expect(first == NULL && second == NULL, "overflow of a product");
            free(NULL);
        }
        if (i % 8 == 0) malloc_trim(0);
        const struct mallinfo2 info = mallinfo2();
        expect(info.uordblks + info.hblkhd >= 2 * CORE_WORDS * sizeof(uint64_t),
               "mallinfo2 knows the arrays");
    }
    return core_end();
}
