// homing-costs: what remote memory and moves of pages cost on this machine, printed as a costs file (TOML)
// for `homing run --costs FILE`. Under three seconds; needs a machine with several NUMA nodes.
#include "machine/machine.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <linux/mempolicy.h>
#include <numeric>
#include <optional>
#include <random>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace homing;

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto time_limit = std::chrono::milliseconds(2500);
constexpr std::size_t most_nodes = 8; // of a larger machine: spread over all of it
constexpr std::size_t spacing = 256;  // no prefetcher takes the next element for a neighbour
constexpr std::size_t smallest_buffer = 32u << 20;
constexpr std::size_t largest_buffer =
    256u << 20; // caches that are larger are emptied by hand where that is possible
constexpr int steps = 40'000;
constexpr std::size_t batch = 512; // pages in the larger of the two calls compared

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

double nanoseconds(Clock::duration duration) {
    return std::chrono::duration<double, std::nano>(duration).count();
}

[[noreturn]] void give_up(const std::string& reason) {
    std::fprintf(stderr, "homing-costs: %s\n", reason.c_str());
    std::exit(1);
}

/// Write back and drop a line from all caches of all nodes.
void flush([[maybe_unused]] const void* line) {
#if defined(__x86_64__)
    _mm_clflush(line);
#elif defined(__aarch64__)
    asm volatile("dc civac, %0" : : "r"(line) : "memory");
#endif
}

void flush_done() {
#if defined(__x86_64__)
    _mm_mfence();
#elif defined(__aarch64__)
    asm volatile("dsb sy" : : : "memory");
#endif
}

/// Run on one CPU of a node.
bool run_on(const Machine& machine, int node) {
    for (std::size_t cpu = 0; cpu < machine.cpu_nodes.size() && cpu < CPU_SETSIZE; ++cpu) {
        if (machine.cpu_nodes[cpu] != node) continue;
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (::sched_setaffinity(0, sizeof set, &set) == 0) return true; // not all CPUs of a node may be ours
    }
    return false;
}

class Buffer {
  public:
    Buffer(std::size_t bytes, bool huge)
        : bytes_(bytes),
          memory_(static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
        if (memory_ == MAP_FAILED) give_up("no memory: " + std::string(std::strerror(errno)));
        ::madvise(memory_, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    }
    ~Buffer() { ::munmap(memory_, bytes_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    char* data() const { return memory_; }
    Range range() const {
        const auto begin = reinterpret_cast<Address>(memory_);
        return {begin, begin + bytes_};
    }
    // Preferred, not bound: a full node must not bring the out-of-memory killer.
    void on_node(int node) const {
        NodeSet only;
        only.add(node);
        if (const int error = linux_kernel().bind(range(), {MPOL_PREFERRED, only})) {
            give_up("memory cannot be asked for on node " + std::to_string(node) +
                    " (mbind: " + std::strerror(error) + ")");
        }
    }

  private:
    std::size_t bytes_;
    char* memory_;
};

/// Every element holds the index of the next: one cycle through all of them in random order (Sattolo).
std::vector<std::uint32_t> random_cycle(std::size_t count) {
    std::vector<std::uint32_t> next(count);
    std::iota(next.begin(), next.end(), 0u);
    std::minstd_rand random(1);
    for (std::size_t i = count - 1; i > 0; --i)
        std::swap(next[i], next[random() % i]);
    return next;
}

/// Nanoseconds of a load whose address depends on the load before it. Every line is visited once.
double chase(const char* memory) {
    std::uint32_t at = 0;
    const auto begin = Clock::now();
    for (int step = 0; step < steps; ++step)
        at = *reinterpret_cast<const volatile std::uint32_t*>(memory + at * spacing);
    return nanoseconds(Clock::now() - begin) / steps;
}

struct Latencies {
    std::vector<double> local;
    std::vector<double> remote;
};

Latencies measure_loads(const Machine& machine, const std::vector<int>& nodes, Clock::time_point deadline) {
    const std::uint64_t caches = machine.last_level_cache_bytes *
                                 static_cast<unsigned>(std::max(machine.last_level_caches_per_node, 1));
    const std::size_t bytes = std::clamp<std::size_t>(4 * caches, smallest_buffer, largest_buffer);
    const std::vector<std::uint32_t> cycle = random_cycle(bytes / spacing);
    Latencies found;
    for (const int home : nodes) {
        // At least one node's memory from everywhere, whatever time that takes.
        if (!found.remote.empty() && Clock::now() > deadline) break;
        if (linux_kernel().free_bytes(home) < 2 * bytes) continue; // the buffer would lie elsewhere
        const Buffer buffer(bytes, true);
        buffer.on_node(home);
        run_on(machine, home);
        for (std::size_t i = 0; i < cycle.size(); ++i) {
            *reinterpret_cast<std::uint32_t*>(buffer.data() + i * spacing) = cycle[i];
        }
        for (const int from : nodes) {
            if (!run_on(machine, from)) continue;
            for (std::size_t i = 0, at = 0; i < static_cast<std::size_t>(steps); ++i, at = cycle[at]) {
                flush(buffer.data() + at * spacing);
            }
            flush_done();
            (from == home ? found.local : found.remote).push_back(chase(buffer.data()));
        }
    }
    return found;
}

struct MoveCosts {
    double call_us;
    double page_us;
};

/// Two sizes of call tell the fixed part from the part for each page.
MoveCosts measure_moves(const Machine& machine, int from, int to, Clock::time_point deadline) {
    run_on(machine, from);
    const Buffer buffer(batch * page_bytes(), false);
    buffer.on_node(from);
    std::memset(buffer.data(), 1, batch * page_bytes());
    // The policy would not hinder a move, but a page that comes anew must not fail for it either.
    linux_kernel().bind(buffer.range(), {});
    std::vector<void*> pages;
    for (std::size_t i = 0; i < batch; ++i)
        pages.push_back(buffer.data() + i * page_bytes());

    std::array<std::vector<double>, 2> times;
    constexpr std::array<std::size_t, 2> sizes{1, batch};
    for (int round = 0; round < 21 && (round < 4 || Clock::now() < deadline); ++round) {
        const int target = round % 2 == 0 ? to : from;
        for (std::size_t which = 0; which < 2; ++which) {
            // The first page goes alone, the others together: all are on the other node afterwards.
            const std::size_t first = which == 0 ? 0 : 1;
            const std::size_t count = which == 0 ? 1 : sizes[1] - 1;
            const std::vector<int> targets(count, target);
            std::vector<int> status(count);
            const auto begin = Clock::now();
            const int error = linux_kernel().move(std::span(pages).subspan(first, count), targets, status);
            times[which].push_back(nanoseconds(Clock::now() - begin) / 1000);
            if (error)
                give_up("pages cannot be moved (move_pages: " + std::string(std::strerror(error)) + ")");
            if (std::count(status.begin(), status.end(), target) * 10 <
                static_cast<std::ptrdiff_t>(count) * 9) {
                give_up("the kernel moved less than nine tenths of the pages to node " +
                        std::to_string(target));
            }
        }
    }
    const double one = median(times[0]);
    const double page = std::max((median(times[1]) - one) / static_cast<double>(batch - 2), 0.0);
    return {std::max(one - page, 0.0), page};
}

std::vector<int> chosen_nodes(const Machine& machine) {
    std::vector<int> targets;
    for (const Node& node : machine.nodes) {
        if (node.target()) targets.push_back(node.index);
    }
    std::vector<int> chosen;
    const std::size_t count = std::min(targets.size(), most_nodes);
    for (std::size_t i = 0; i < count; ++i)
        chosen.push_back(targets[i * targets.size() / count]);
    return chosen;
}

constexpr const char* usage =
    "usage: homing-costs > FILE\n"
    "Measures what remote memory and moves of pages cost on this machine (under 3 s) and prints a costs file "
    "for\n"
    "homing run --costs FILE. Status 1: nothing to measure, or not permitted here.\n";

} // namespace

int main(int count, char** arguments) {
    if (count == 2 && (std::strcmp(arguments[1], "--help") == 0 || std::strcmp(arguments[1], "-h") == 0)) {
        std::fputs(usage, stdout);
        return 0;
    }
    if (count > 1) {
        std::fprintf(stderr, "homing-costs: unexpected argument \"%s\"\n%s", arguments[1], usage);
        return 2;
    }
    const auto deadline = Clock::now() + time_limit;
    const Machine machine = discover_machine(linux_kernel());
    if (machine.nodes.empty()) {
        give_up(machine.remarks.empty() ? "the machine's nodes are not known" : machine.remarks.front());
    }
    const std::vector<int> nodes = chosen_nodes(machine);
    if (nodes.size() < 2)
        give_up("one NUMA node here that threads and pages can be on: nothing is remote, nothing to measure");

    const MoveCosts moves = measure_moves(machine, nodes.front(), nodes.back(), deadline);
    const Latencies loads = measure_loads(machine, nodes, deadline);
    if (loads.local.empty() || loads.remote.empty()) {
        give_up("no two nodes with free memory and CPUs that this process may run on");
    }
    const double local = median(loads.local);
    utsname system{};
    ::uname(&system);
    std::printf("# Measured by homing-costs on %s (Linux %s, %s): %zu nodes, of which %zu were used, %zu "
                "remote pairs.\n",
                system.nodename, system.release, system.machine, machine.nodes.size(), nodes.size(),
                loads.remote.size());
    std::printf("local_ns = %.1f      # a load from the own node's memory, median\n", local);
    // Noise must not make remote memory the faster one.
    std::printf("remote_ns = %.1f     # a load from another node's\n", std::max(median(loads.remote), local));
    std::printf("move_call_us = %.2f  # a call that moves pages\n", moves.call_us);
    std::printf("move_page_us = %.3f  # and each page of %zu bytes in it\n", moves.page_us, page_bytes());
    return 0;
}
