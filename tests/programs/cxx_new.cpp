// operator new and delete replaced by the program, plain, aligned and nothrow, over mmap and over malloc; and
// the ordinary ones of the library where REPLACE is not defined.
#include "core.h"
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <sys/mman.h>
#include <vector>

#ifdef REPLACE
static long made;
void* operator new(std::size_t bytes) {
    __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
    if (bytes >= 1 << 20) { // large ones by mmap, with the size in front
        void* block = mmap(nullptr, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED) throw std::bad_alloc();
        *static_cast<std::size_t*>(block) = bytes + 4096;
        return static_cast<char*>(block) + 4096;
    }
    char* block = static_cast<char*>(std::malloc(bytes + 32));
    if (!block) throw std::bad_alloc();
    *reinterpret_cast<std::size_t*>(block) = 0;
    return block + 32;
}
void operator delete(void* pointer) noexcept {
    if (!pointer) return;
    char* block = static_cast<char*>(pointer);
    if ((reinterpret_cast<uintptr_t>(block) & 4095) == 0 &&
        *reinterpret_cast<std::size_t*>(block - 4096) > 1 << 20)
        munmap(block - 4096, *reinterpret_cast<std::size_t*>(block - 4096));
    else
        std::free(block - 32);
}
void operator delete(void* pointer, std::size_t) noexcept { operator delete(pointer); }
#endif

struct alignas(4096) Page {
    uint64_t words[512];
};

int main() {
    auto* a = new uint64_t[CORE_WORDS];
    auto* b = new uint64_t[CORE_WORDS];
    core_start_in(a, b);
    uint64_t total = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
#pragma omp parallel num_threads(3) reduction(+ : total)
        {
            std::vector<uint64_t> mine(CORE_WORDS / 4, 3);
            std::map<int, std::string> names;
            for (int n = 0; n < 100; ++n)
                names[n] = std::string(static_cast<size_t>(n), 'n');
            auto* page = new Page[64]();
            expect(reinterpret_cast<uintptr_t>(page) % 4096 == 0, "aligned new");
            page[63].words[511] = 5;
            total += page[0].words[0] + page[63].words[511] + mine[77] + names[50].size();
            delete[] page;
            auto* maybe = new (std::nothrow) char[300000];
            maybe[299999] = 1;
            total += static_cast<uint64_t>(maybe[299999]);
            delete[] maybe;
        }
    }
    std::printf("total %llu\n", static_cast<unsigned long long>(total));
    const int status = core_end();
    delete[] a;
    delete[] b;
    return status;
}
