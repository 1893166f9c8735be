// What the engine takes where the machine is large: 64 nodes, 1,024 threads, 10 TiB, none of which has to be
// there. The engine that ships observes, decides and moves; the kernel below answers from a map of runs of
// pages, the program's sweeps take pretended time, and of its accesses those happen that meet a page that was
// protected.
//
//     scale BYTES AREAS PAGE found|spilled ITERATIONS
//
// PAGE: base or huge. spilled: the program's first thread has filled node after node; found: every page lies
// with its owner. Prints one JSON object: seconds of processor time that homing's own code took in each
// iteration (without what the kernel took), and the memory that it has at the end.
#include "areas/areas.hpp"
#include "base/clock.hpp"
#include "engine/engine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using homing::Address;
using homing::page_bytes;
using homing::Range;

constexpr int nodes = 64, threads = 1024;
constexpr std::size_t huge_bytes = std::size_t{2} << 20;
constexpr int regions_in_iteration = 3;
/// A node's memory is read at so many bytes a second: what a sweep takes.
constexpr double bytes_a_second = 100e9;

/// What the program's sweeps take is pretended; what homing takes is real.
double pretended_seconds = 0;
double clock_seconds() noexcept { return homing::monotonic_seconds() + pretended_seconds; }
double processor_seconds() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int thread_of(std::uint64_t page, std::uint64_t pages) { return static_cast<int>(page * threads / pages); }
int node_of_thread(int thread) { return thread / (threads / nodes); }

/// Where memory lies, as runs of addresses; homing's calls change it.
class LargeKernel final : public homing::Kernel {
  public:
    double seconds = 0; ///< that its calls took
    std::uint64_t queried = 0, moved = 0, calls = 0;
    int thread = 0;

    explicit LargeKernel(std::size_t page) : page_(page) {}

    void place(Range range, int node) {
        split(range.begin);
        split(range.end);
        homes_.erase(homes_.lower_bound(range.begin), homes_.lower_bound(range.end));
        homes_[range.begin] = node;
    }
    int home(Address address) const { return std::prev(homes_.upper_bound(address))->second; }
    const std::map<Address, Address>& protected_ranges() const { return protected_; }

    int query(std::span<void* const> pages, std::span<int> found) noexcept override {
        const Timed timed(*this);
        queried += pages.size();
        for (std::size_t i = 0; i < pages.size(); ++i)
            found[i] = home(reinterpret_cast<Address>(pages[i]));
        return 0;
    }
    int populated(std::span<const Range>, std::span<std::uint8_t> found) noexcept override {
        const Timed timed(*this);
        std::ranges::fill(found, std::uint8_t{1});
        return 0;
    }
    int move(std::span<void* const> pages, std::span<const int> targets,
             std::span<int> status) noexcept override {
        const Timed timed(*this);
        moved += pages.size();
        for (std::size_t first = 0, end = 0; first < pages.size(); first = end) {
            const auto begin = reinterpret_cast<Address>(pages[first]) / page_ * page_;
            for (end = first + 1;
                 end < pages.size() && targets[end] == targets[first] &&
                 reinterpret_cast<Address>(pages[end]) / page_ * page_ - begin <= (end - first) * page_;)
                ++end;
            const auto last = reinterpret_cast<Address>(pages[end - 1]) / page_ * page_;
            place({begin, last + page_}, targets[first]);
        }
        std::ranges::copy(targets, status.begin());
        return 0;
    }
    int bind(Range, homing::MemoryPolicy) noexcept override { return 0; }
    int policy_at(Address, homing::MemoryPolicy& policy) noexcept override {
        policy = {};
        return 0;
    }
    int task_policy(homing::MemoryPolicy& policy) noexcept override {
        policy = {};
        return 0;
    }
    int allowed_nodes(homing::NodeSet& allowed) noexcept override {
        for (int node = 0; node < nodes; ++node)
            allowed.add(node);
        return 0;
    }
    int protect(Range range, homing::Access access) noexcept override {
        const Timed timed(*this);
        const auto cut = [this](Address at) {
            auto run = protected_.lower_bound(at);
            if (run == protected_.begin() || (--run)->second <= at) return;
            protected_.emplace(at, run->second);
            run->second = at;
        };
        cut(range.begin);
        cut(range.end);
        protected_.erase(protected_.lower_bound(range.begin), protected_.lower_bound(range.end));
        if (access == homing::Access::none) protected_[range.begin] = range.end;
        return 0;
    }
    int current_node() noexcept override { return node_of_thread(thread); }
    int current_thread() noexcept override { return thread + 1; }
    std::vector<Thread> threads() override {
        std::vector<Thread> all;
        for (int i = 0; i < ::threads; ++i)
            all.push_back({i + 1, node_of_thread(i)});
        return all;
    }
    std::uint64_t free_bytes(int) noexcept override { return std::uint64_t{1} << 50; }
    int open_sampler(const homing::SamplerEvent&, int, std::size_t, homing::SamplerRing&) noexcept override {
        return ENOSYS;
    }
    void close_sampler(homing::SamplerRing&) noexcept override {}
    int node_of_cpu(int cpu) noexcept override { return node_of_thread(cpu); }

  private:
    struct Timed {
        // The processor's time: what homing takes is what is left, and a machine that others use, too, would
        // make that negative. Reading the clock is charged to homing in part, 0.3 us a call.
        explicit Timed(LargeKernel& of) : kernel(of), before(processor_seconds()) {}
        ~Timed() {
            kernel.seconds += processor_seconds() - before;
            ++kernel.calls;
        }
        LargeKernel& kernel;
        double before;
    };
    void split(Address at) {
        const auto behind = homes_.upper_bound(at);
        if (behind == homes_.begin()) return;
        const auto run = std::prev(behind);
        if (run->first != at) homes_.emplace(at, run->second);
    }

    std::size_t page_;
    std::map<Address, int> homes_;         ///< begin of a run, node
    std::map<Address, Address> protected_; ///< begin, end
};

std::size_t resident_bytes() {
    std::size_t all = 0, resident = 0;
    if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%zu %zu", &all, &resident) != 2) resident = 0;
        std::fclose(file);
    }
    return resident * page_bytes();
}

homing::Machine machine() {
    homing::Machine machine;
    for (int i = 0; i < nodes; ++i) {
        homing::Node node;
        node.index = i;
        node.cpus = threads / nodes;
        node.memory_bytes = std::uint64_t{1} << 40;
        machine.nodes.push_back(node);
    }
    machine.last_level_cache_bytes = std::uint64_t{256} << 20;
    machine.source = "benchmarks/scale.cpp";
    return machine;
}

struct Program {
    std::vector<Range> arrays;
    LargeKernel kernel;
    std::size_t page;

    Program(std::size_t bytes, std::size_t count, std::size_t page_size, bool spilled)
        : kernel(page_size), page(page_size) {
        const std::size_t each = bytes / count / huge_bytes * huge_bytes;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t gap = 16 * huge_bytes; // blocks side by side would be one area
            void* memory = ::mmap(nullptr, each + gap, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (memory == MAP_FAILED) {
                std::perror("scale: mmap");
                std::exit(1);
            }
            const Address begin = homing::align_up(reinterpret_cast<Address>(memory), huge_bytes);
            arrays.push_back({begin, begin + each});
            ::mprotect(reinterpret_cast<void*>(begin + each), page_size, PROT_NONE); // not one mapping
            if (page_size == huge_bytes) { // one is there, by which it is seen what they are
                ::madvise(reinterpret_cast<void*>(begin), huge_bytes, MADV_HUGEPAGE);
                *reinterpret_cast<volatile char*>(begin) = 1;
            }
        }
        for (std::size_t i = 0; i < count; ++i) {
            const Range array = arrays[i];
            if (spilled)
                for (std::size_t part = 0; part < parts_; ++part)
                    kernel.place(part_of(array, part),
                                 static_cast<int>((i * parts_ + part) * nodes / (count * parts_)));
            else
                for (int thread = 0; thread < threads; ++thread) {
                    const std::uint64_t pages = array.bytes() / page;
                    kernel.place({array.begin + first_of(thread, pages) * page,
                                  array.begin + first_of(thread + 1, pages) * page},
                                 node_of_thread(thread));
                }
            // Four arrays are allocated by one line each.
            const Address origin[homing::max_origin_frames] = {0x1000 + i / 4};
            homing::area_registry().note(array, homing::AreaKind::heap_block, origin, 1, nullptr);
        }
    }
    static constexpr std::size_t parts_ = 64;
    static std::uint64_t first_of(int thread, std::uint64_t pages) {
        return (static_cast<std::uint64_t>(thread) * pages + threads - 1) / threads;
    }
    Range part_of(Range array, std::size_t part) const {
        const std::size_t pages = array.bytes() / page;
        return {array.begin + part * pages / parts_ * page, array.begin + (part + 1) * pages / parts_ * page};
    }
    /// The accesses of a sweep that meet protected pages, each by who owns its page.
    void sweep(homing::Engine& engine) {
        const std::map<Address, Address> armed = kernel.protected_ranges();
        homing::Windows* windows = engine.windows();
        for (const auto& [begin, end] : armed) {
            const auto array = std::prev(
                std::upper_bound(arrays.begin(), arrays.end(), begin,
                                 [](Address address, const Range& range) { return address < range.begin; }));
            const std::uint64_t pages = array->bytes() / page;
            for (Address at = begin; at < end; at += page) {
                kernel.thread = thread_of((at - array->begin) / page, pages);
                windows->fault(at + 64 * (at / page % 8), true, 0x4000);
            }
        }
        kernel.thread = 0;
    }
    /// Share of the pages that lie with their owners, of some thousand.
    double right() const {
        std::uint64_t good = 0, looked = 0;
        for (const Range& array : arrays) {
            const std::uint64_t pages = array.bytes() / page, looks = 64;
            for (std::uint64_t i = 0; i < looks; ++i, ++looked) {
                const std::uint64_t at = (2 * i + 1) * pages / (2 * looks);
                good += kernel.home(array.begin + at * page) == node_of_thread(thread_of(at, pages));
            }
        }
        return static_cast<double>(good) / static_cast<double>(looked);
    }
};

} // namespace

int main(int count, char** words) {
    if (count != 6) {
        std::fprintf(stderr, "usage: scale BYTES AREAS base|huge found|spilled ITERATIONS\n");
        return 2;
    }
    const std::size_t bytes = std::strtoull(words[1], nullptr, 10);
    const bool huge = std::strcmp(words[3], "huge") == 0;
    const int iterations = std::atoi(words[5]);
    ::setenv("HOMING_REFERENCES", "windows", 1);
    ::setenv("HOMING_AREAS", "include=heap*", 1);
    homing::the_clock = clock_seconds;
    Program program(bytes, std::strtoull(words[2], nullptr, 10), huge ? huge_bytes : page_bytes(),
                    std::strcmp(words[4], "spilled") == 0);
    std::ranges::sort(program.arrays, {}, &Range::begin);
    const double right_before = program.right();
    const std::size_t resident = resident_bytes();
    homing::Engine engine(program.kernel, machine(), homing::HookServices{});
    if (!engine.start()) return 1;

    const double sweep = static_cast<double>(bytes) / (nodes * bytes_a_second);
    std::vector<double> own(static_cast<std::size_t>(iterations));
    for (double& seconds : own) {
        const double before = processor_seconds() - program.kernel.seconds;
        double sweeping = 0;
        for (int region = 0; region < regions_in_iteration; ++region) {
            engine.region_begin(0x1000 + static_cast<Address>(region) * 0x100);
            const double swept = processor_seconds();
            const double in_kernel = program.kernel.seconds;
            program.sweep(engine);
            sweeping += processor_seconds() - swept - (program.kernel.seconds - in_kernel);
            pretended_seconds += sweep / regions_in_iteration;
            engine.region_end();
        }
        seconds = processor_seconds() - program.kernel.seconds - before - sweeping;
    }
    const homing::Statistics& statistics = engine.statistics();
    const auto& watched = engine.watch().areas();
    const std::size_t grown = resident_bytes();
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf("{\"bytes\": %zu, \"areas\": %zu, \"nodes\": %d, \"threads\": %d, \"granule\": %zu,\n", bytes,
                watched.size(), nodes, threads, watched.empty() ? 0 : watched.front()->granule);
    std::printf(
        " \"sweep_seconds\": %.4f, \"resident_bytes\": %zu, \"right_before\": %.4f, \"right\": %.4f,\n",
        sweep, grown - std::min(resident, grown), right_before, program.right());
    std::printf(" \"references\": %llu, \"moved\": %llu, \"queried\": %llu, \"settled_at\": %llu,\n",
                number(statistics.references), number(program.kernel.moved), number(program.kernel.queried),
                number(statistics.settled_at));
    std::printf(" \"kernel_calls\": %llu, \"kernel_seconds\": %.4f,\n \"own_seconds\": [",
                number(program.kernel.calls), program.kernel.seconds);
    for (std::size_t i = 0; i < own.size(); ++i)
        std::printf("%s%.6f", i ? ", " : "", own[i]);
    std::printf("]}\n");
    std::fflush(stdout);
    std::_Exit(0); // what is left has nothing to say
}
