// A handler of SIGSEGV that throws, as the run-time systems of Ada and Java make exceptions of faults: in
// serial code and in every thread of a region, again and again.
#include "core.h"
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <sys/mman.h>

namespace {

struct Fault {};
volatile std::uint64_t* hole;

void on_fault(int) { throw Fault(); }

int caught(const volatile std::uint64_t* address, std::uint64_t& value) {
    try {
        value += *address;
    } catch (const Fault&) {
        return 1;
    }
    return 0;
}

} // namespace

int main() {
    struct sigaction action = {};
    action.sa_handler = on_fault;
    action.sa_flags = SA_NODEFER; // it never returns
    sigaction(SIGSEGV, &action, nullptr);
    hole = static_cast<volatile std::uint64_t*>(
        mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    core_start();
    std::uint64_t seen = 0;
    int faults = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        faults += caught(hole, seen) + caught(core_b + i * 997, seen);
#pragma omp parallel num_threads(3) reduction(+ : seen, faults)
        {
            for (long at = omp_get_thread_num(); at < CORE_WORDS; at += 4096 * 3)
                faults += caught(core_a + at, seen) + caught(hole, seen);
        }
    }
    std::printf("faults %d seen %llx\n", faults, static_cast<unsigned long long>(seen));
    return core_end();
}
