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
static constexpr std::size_t header = 32;
void* operator new(std::size_t bytes) {
    __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
    // in front of each block: how long its mapping is, or 0 for one that came from malloc
    std::size_t mapped = 0;
    char* base = nullptr;
    if (bytes >= 1 << 20) {
        mapped = bytes + header;
        void* map = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        base = map == MAP_FAILED ? nullptr : static_cast<char*>(map);
    } else {
        base = static_cast<char*>(std::malloc(bytes + header));
    }
    if (!base) throw std::bad_alloc();
    *reinterpret_cast<std::size_t*>(base) = mapped;
    return base + header;
}
void operator delete(void* pointer) noexcept {
    if (!pointer) return;
    char* base = static_cast<char*>(pointer) - header;
    if (const std::size_t mapped = *reinterpret_cast<std::size_t*>(base))
        munmap(base, mapped);
    else
        std::free(base);
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
