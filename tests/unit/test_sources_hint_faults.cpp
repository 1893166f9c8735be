#include "areas/policies.hpp"
#include "base/clock.hpp"
#include "sources/references.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <linux/mempolicy.h>
#include <map>
#include <memory>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>

namespace homing::sources_hint_faults_tests {
namespace {

/// The real kernel of this machine, with what a test wants to be different.
class AlteredKernel : public Kernel {
  public:
    int bind_error = 0;
    int refused_mode = -1; ///< MPOL_*: an older kernel does not know it together with balancing
    int sampler_error = 0;
    std::uint64_t free = 0;
    int binds = 0;
    /// Four nodes, pretended: where a page lies, and policies kept in a table instead of the kernel.
    bool pretend_nodes = false;
    std::map<Address, int> node_of_page;
    std::map<Address, MemoryPolicy> policies; ///< by page; absent: default

    int query(std::span<void* const> pages, std::span<int> nodes) noexcept override {
        const int error = linux_kernel().query(pages, nodes);
        if (!pretend_nodes) return error;
        for (std::size_t i = 0; i < pages.size(); ++i) {
            const auto known = node_of_page.find(reinterpret_cast<Address>(pages[i]));
            nodes[i] = known == node_of_page.end() ? -ENOENT : known->second;
        }
        return 0;
    }
    int bind(Range range, MemoryPolicy policy) noexcept override {
        ++binds;
        if (bind_error) return bind_error;
        if ((policy.mode & (1 << 13)) != 0 && (policy.mode & 0xff) == refused_mode) return EINVAL;
        if (!pretend_nodes) return linux_kernel().bind(range, policy);
        for (Address a = range.begin; a < range.end; a += page_bytes())
            policies[a] = policy;
        return 0;
    }
    int policy_at(Address address, MemoryPolicy& policy) noexcept override {
        if (!pretend_nodes) return linux_kernel().policy_at(address, policy);
        const auto known = policies.find(align_down(address, page_bytes()));
        policy = known == policies.end() ? MemoryPolicy{} : known->second;
        return 0;
    }
    int open_sampler(const SamplerEvent& event, int thread, std::size_t pages,
                     SamplerRing& ring) noexcept override {
        return sampler_error ? sampler_error : linux_kernel().open_sampler(event, thread, pages, ring);
    }
    int full_node = -1;
    std::uint64_t free_bytes(int node) noexcept override {
        return node == full_node ? std::uint64_t{511} << 20 : free;
    }
    int move(std::span<void* const> p, std::span<const int> t, std::span<int> s) noexcept override {
        return linux_kernel().move(p, t, s);
    }
    int task_policy(MemoryPolicy& policy) noexcept override { return linux_kernel().task_policy(policy); }
    int allowed_nodes(NodeSet& nodes) noexcept override { return linux_kernel().allowed_nodes(nodes); }
    int protect(Range range, Access access) noexcept override {
        return linux_kernel().protect(range, access);
    }
    int current_node() noexcept override { return linux_kernel().current_node(); }
    void close_sampler(SamplerRing& ring) noexcept override { linux_kernel().close_sampler(ring); }
    int node_of_cpu(int cpu) noexcept override { return linux_kernel().node_of_cpu(cpu); }
};

/// The policy that this machine's kernel observes with.
MemoryPolicy observing(int node) {
    void* const page =
        ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NodeSet allowed;
    linux_kernel().allowed_nodes(allowed);
    const bool knows =
        linux_kernel().bind(range_of(page, page_bytes()), observed_policy(allowed.first())) == 0;
    ::munmap(page, page_bytes());
    return knows ? observed_policy(node) : strictly_observed_policy(node);
}

class HintFaults : public ::testing::Test {
  protected:
    void SetUp() override {
        proc = std::filesystem::path(::testing::TempDir()) / ("proc." + std::to_string(::getpid()));
        std::filesystem::create_directories(proc / "sys/kernel");
        std::filesystem::create_directory_symlink("/proc/self", proc / "self");
        balancing("1");
        std::ofstream(proc / "sys/kernel/perf_event_paranoid") << "3\n";
        machine.nodes.push_back({.index = 0, .cpus = 1, .memory_bytes = 1});
    }
    void TearDown() override {
        source.reset();
        std::filesystem::remove_all(proc);
    }
    void balancing(const char* text) { std::ofstream(proc / "sys/kernel/numa_balancing") << text << "\n"; }
    ReferenceSource& make(Kernel& on) {
        source.reset(make_hint_fault_source(on, machine, proc.c_str()));
        return *source;
    }

    /// Iterations end until the memory is as expected, or enough have: memory is looked at in a share of the
    /// time.
    template <class Condition> bool comes_true(Condition&& condition) {
        std::vector<Reference> references;
        for (const double end = clock_seconds() + 20; clock_seconds() < end && !condition();)
            source->drain(references);
        return condition();
    }

    std::filesystem::path proc;
    Machine machine;
    AlteredKernel kernel;
    PolicyKeeper keeper{linux_kernel()};
    std::unique_ptr<ReferenceSource> source;
};

class Memory {
  public:
    explicit Memory(std::size_t bytes) : bytes_(bytes) {
        // Aligned to huge pages, so that tests know where pieces begin.
        const std::size_t whole = bytes + huge_page_bytes;
        map_ = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                      0);
        whole_ = whole;
        begin = align_up(reinterpret_cast<Address>(map_), huge_page_bytes);
        ::madvise(map_, whole, MADV_NOHUGEPAGE);
    }
    ~Memory() { ::munmap(map_, whole_); }
    void touch(std::size_t first, std::size_t end) {
        for (std::size_t page = first; page < end; ++page)
            *reinterpret_cast<volatile char*>(begin + page * page_bytes()) = 1;
    }
    void drop(std::size_t first, std::size_t end) {
        ::madvise(reinterpret_cast<void*>(begin + first * page_bytes()), (end - first) * page_bytes(),
                  MADV_DONTNEED);
    }
    Range range() const { return {begin, begin + bytes_}; }
    WatchedRange watched() const { return {range(), page_bytes(), 0}; }
    std::size_t pages() const { return bytes_ / page_bytes(); }
    MemoryPolicy policy(std::size_t page) const {
        MemoryPolicy policy;
        EXPECT_EQ(linux_kernel().policy_at(begin + page * page_bytes(), policy), 0);
        return policy;
    }

    Address begin;

  private:
    std::size_t bytes_;
    void* map_;
    std::size_t whole_;
};

TEST_F(HintFaults, SayWhyTheyCannotBeHad) {
    balancing("0");
    EXPECT_EQ(make(kernel).unavailable(), "kernel.numa_balancing is 0");
    balancing("2"); // memory tiering only
    EXPECT_EQ(make(kernel).unavailable(), "kernel.numa_balancing is 2");
    std::filesystem::remove(proc / "sys/kernel/numa_balancing");
    EXPECT_EQ(make(kernel).unavailable(), "the kernel has no NUMA balancing");
    balancing("3");
    kernel.sampler_error = EACCES;
    EXPECT_EQ(make(kernel).unavailable(), "perf_event_paranoid is 3");
    kernel.sampler_error = ENOSYS;
    EXPECT_EQ(make(kernel).unavailable(), "the kernel has no perf events");
}

TEST_F(HintFaults, NeedAKernelThatKnowsThePolicy) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    kernel.bind_error = EINVAL;
    EXPECT_EQ(source->unavailable(), "Linux 5.12 or later is needed");
    kernel.bind_error = EPERM;
    EXPECT_NE(source->unavailable().find("memory policies cannot be set here"), std::string::npos);
}

TEST_F(HintFaults, FaultsOfOtherThreadsInWatchedMemoryBecomeReferences) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    Memory watched(8 << 20);
    Memory other(1 << 20);
    watched.touch(0, watched.pages());
    const WatchedRange ranges[] = {watched.watched()};
    ASSERT_TRUE(source->start(ranges)) << source->reason();
    watched.drop(100, 200);
    std::thread toucher;
    std::vector<Reference> references;
    source->drain(references);
    references.clear();
    toucher = std::thread([&] {
        // The source has to notice this thread first.
        while (!std::filesystem::exists(proc / "go"))
            std::this_thread::yield();
        watched.touch(100, 200);
        other.touch(0, other.pages());
    });
    source->drain(references);
    std::ofstream(proc / "go") << "1";
    toucher.join();
    source->drain(references);
    std::map<Address, int> times;
    for (const Reference& reference : references) {
        EXPECT_TRUE(watched.range().contains(reference.address));
        EXPECT_GE(reference.node, 0);
        EXPECT_GE(reference.weight, 1u);
        ++times[align_down(reference.address, page_bytes())];
    }
    EXPECT_EQ(times.size(), 100u);
    EXPECT_EQ(references.size(), 100u);
    EXPECT_EQ(source->lost(), 0u);
}

TEST_F(HintFaults, ThePolicyIsOnWhileObservingAndOffAfterwards) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    Memory memory(4 << 20);
    memory.touch(0, memory.pages());
    NodeSet allowed;
    linux_kernel().allowed_nodes(allowed);
    const MemoryPolicy users{MPOL_INTERLEAVE, allowed};
    ASSERT_EQ(linux_kernel().bind({memory.begin, memory.begin + (1 << 20)}, users), 0);
    const WatchedRange ranges[] = {memory.watched()};
    ASSERT_TRUE(source->start(ranges));
    EXPECT_EQ(memory.policy(0), observing(allowed.first()));
    EXPECT_EQ(memory.policy(memory.pages() - 1), observing(allowed.first()));
    source->stop();
    EXPECT_EQ(memory.policy(0), users);
    EXPECT_EQ(memory.policy(memory.pages() - 1), MemoryPolicy{});
}

TEST_F(HintFaults, OnlyPopulatedMemoryIsBoundAndTheRestOnceItIs) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    Memory memory(8 << 20);
    const std::size_t piece = huge_page_bytes / page_bytes();
    memory.touch(0, piece);
    const WatchedRange ranges[] = {memory.watched()};
    ASSERT_TRUE(source->start(ranges));
    EXPECT_NE(memory.policy(0), MemoryPolicy{});
    EXPECT_EQ(memory.policy(piece), MemoryPolicy{});
    memory.touch(piece, memory.pages());
    EXPECT_TRUE(comes_true([&] { return memory.policy(piece) != MemoryPolicy{}; }));
    EXPECT_TRUE(comes_true([&] { return memory.policy(memory.pages() - 1) != MemoryPolicy{}; }));
    source->stop();
    EXPECT_EQ(memory.policy(0), MemoryPolicy{});
}

TEST_F(HintFaults, AChangedSetTouchesOnlyWhatChanged) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    Memory a(2 << 20);
    Memory b(2 << 20);
    a.touch(0, a.pages());
    b.touch(0, b.pages());
    std::vector<WatchedRange> both{a.watched(), b.watched()};
    if (b.begin < a.begin) std::swap(both[0], both[1]);
    ASSERT_TRUE(source->start(both));
    const int before = kernel.binds;
    ASSERT_TRUE(source->start(std::span(both).first(1)));
    EXPECT_EQ(kernel.binds, before + 1);
    const Memory& kept = both[0].range.begin == a.begin ? a : b;
    const Memory& gone = both[0].range.begin == a.begin ? b : a;
    EXPECT_NE(kept.policy(0), MemoryPolicy{});
    EXPECT_EQ(gone.policy(0), MemoryPolicy{});
}

TEST_F(HintFaults, EachPageIsBoundToTheNodeWhereItLies) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    kernel.pretend_nodes = true;
    Memory memory(16 << 20);
    memory.touch(0, memory.pages());
    for (std::size_t page = 0; page < memory.pages();
         ++page) // quarters on nodes 0..3, every 64th page astray
        kernel.node_of_page[memory.begin + page * page_bytes()] =
            static_cast<int>((page * 4 / memory.pages() + (page % 64 == 63 ? 1 : 0)) % 4);
    const WatchedRange ranges[] = {memory.watched()};
    kernel.binds = 0;
    ASSERT_TRUE(source->start(ranges));
    for (std::size_t page = 0; page < memory.pages(); ++page)
        ASSERT_EQ(kernel.policies[memory.begin + page * page_bytes()],
                  observing(kernel.node_of_page[memory.begin + page * page_bytes()]));
    // Runs of pages, and not pages: two a page astray, but for those at the borders of quarters.
    EXPECT_LE(kernel.binds, 2 * static_cast<int>(memory.pages() / 64) + 1);
}

TEST_F(HintFaults, PagesInMoreRunsThanMappingsMayBeAreBoundInGroupsToTheNodeThatHasMost) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    kernel.pretend_nodes = true;
    Memory memory(64 << 20); // each second page astray: 16,384 runs, and 4,096 are allowed
    memory.touch(0, memory.pages());
    for (std::size_t page = 0; page < memory.pages(); ++page)
        kernel.node_of_page[memory.begin + page * page_bytes()] =
            page % 4 == 3 ? static_cast<int>(page / 4 % 2) : 2 + static_cast<int>(page * 2 / memory.pages());
    const WatchedRange ranges[] = {memory.watched()};
    kernel.binds = 0;
    ASSERT_TRUE(source->start(ranges));
    for (std::size_t page = 0; page < memory.pages(); ++page)
        ASSERT_EQ(kernel.policies[memory.begin + page * page_bytes()],
                  observing(2 + static_cast<int>(page * 2 / memory.pages())));
    EXPECT_EQ(kernel.binds, 2);
}

TEST_F(HintFaults, OfMoreRangesThanMappingsMayBeTheLargestAreBound) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    kernel.pretend_nodes = true; // no page is told: all lie on one node
    constexpr std::size_t count = 5000, step = 8;
    Memory memory(count * step * page_bytes());
    memory.touch(0, memory.pages());
    std::vector<WatchedRange> ranges; // of three pages, but for each fifth one: of four
    for (std::size_t i = 0; i < count; ++i) {
        const Address begin = memory.begin + i * step * page_bytes();
        ranges.push_back({{begin, begin + (i % 5 == 0 ? 4 : 3) * page_bytes()}, page_bytes(), 0});
    }
    static double seconds = clock_seconds();
    the_clock = []() noexcept { return seconds; };
    ASSERT_TRUE(source->start(ranges));
    seconds += 1; // of which looking takes no time: all is looked at
    std::vector<Reference> references;
    source->drain(references);
    the_clock = monotonic_seconds;
    const MemoryPolicy ours = observing(0);
    std::size_t bound = 0, large = 0;
    for (const WatchedRange& one : ranges)
        if (kernel.policies[one.range.begin] == ours) {
            ++bound;
            large += one.range.bytes() == 4 * page_bytes();
        }
    EXPECT_LE(2 * bound, 4096u) << "mappings, two a range";
    EXPECT_EQ(large, count / 5);
}

TEST_F(HintFaults, ArmedPagesThatOldKernelsDenyCountAsPopulated) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    kernel.pretend_nodes = true; // and no page is told: ENOENT everywhere
    Memory memory(2 << 20);
    memory.touch(0, memory.pages());
    const WatchedRange ranges[] = {memory.watched()};
    ASSERT_TRUE(source->start(ranges));
    EXPECT_EQ(kernel.policies[memory.begin], observing(0));
}

TEST_F(HintFaults, AKernelBefore6_9GetsTheOlderFormOfThePolicy) {
    constexpr int preferred_many = 5;
    kernel.refused_mode = preferred_many;
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    NodeSet allowed;
    linux_kernel().allowed_nodes(allowed);
    Memory memory(2 << 20);
    memory.touch(0, memory.pages());
    const WatchedRange ranges[] = {memory.watched()};
    ASSERT_TRUE(source->start(ranges)) << source->reason();
    EXPECT_EQ(memory.policy(0), strictly_observed_policy(allowed.first()));
    source->stop();
    EXPECT_EQ(memory.policy(0), MemoryPolicy{});
}

// A page that is first touched under our policy would land where that says; where it says one node and that
// is full, the program is killed.
TEST_F(HintFaults, WhereAPageIsMissingNothingIsBound) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    Memory memory(4 << 20);
    for (std::size_t page = 0; page < memory.pages(); ++page)
        if (page % 10 < 6) memory.touch(page, page + 1);
    const WatchedRange ranges[] = {memory.watched()};
    ASSERT_TRUE(source->start(ranges));
    for (int i = 0; i < 20; ++i) {
        std::vector<Reference> references;
        source->drain(references);
    }
    for (std::size_t page = 0; page < memory.pages(); ++page)
        ASSERT_EQ(memory.policy(page), MemoryPolicy{}) << page;
}

TEST_F(HintFaults, OfAPieceThatIsPopulatedInPartThatPartIsBound) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    Memory memory(2 << 20);
    memory.touch(0, 100);
    memory.touch(101, 400);
    const WatchedRange ranges[] = {memory.watched()};
    ASSERT_TRUE(source->start(ranges));
    for (std::size_t page = 0; page < memory.pages(); ++page)
        ASSERT_EQ(memory.policy(page) == MemoryPolicy{}, page < 101 || page >= 400) << page;
}

TEST_F(HintFaults, WhatIsGivenBackToTheKernelIsLetGo) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    Memory memory(8 << 20);
    memory.touch(0, memory.pages());
    const WatchedRange ranges[] = {memory.watched()};
    ASSERT_TRUE(source->start(ranges));
    ASSERT_NE(memory.policy(1300), MemoryPolicy{});
    memory.drop(1300, 1301);
    EXPECT_TRUE(comes_true([&] { return memory.policy(1300) == MemoryPolicy{}; }));
    EXPECT_NE(memory.policy(0), MemoryPolicy{});
    memory.touch(1300, 1301);
    EXPECT_TRUE(comes_true([&] { return memory.policy(1300) != MemoryPolicy{}; }));
}

TEST_F(HintFaults, WhatIsBoundToANodeThatRunsShortOfMemoryIsLetGo) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    kernel.pretend_nodes = true;
    machine.nodes.clear();
    for (const int node : {0, 1})
        machine.nodes.push_back({.index = node, .cpus = 1, .memory_bytes = std::uint64_t{64} << 30});
    make(kernel);
    kernel.free = std::uint64_t{32} << 30;
    Memory memory(4 << 20);
    memory.touch(0, memory.pages());
    for (std::size_t page = 0; page < memory.pages(); ++page)
        kernel.node_of_page[memory.begin + page * page_bytes()] = 2 * page < memory.pages() ? 0 : 1;
    const WatchedRange ranges[] = {memory.watched()};
    ASSERT_TRUE(source->start(ranges));
    const auto bound = [&](std::size_t page) {
        return kernel.policies[memory.begin + page * page_bytes()] != MemoryPolicy{};
    };
    ASSERT_TRUE(bound(0) && bound(memory.pages() - 1));
    kernel.full_node = 1; // 511 MiB of 64 GiB
    EXPECT_TRUE(comes_true([&] { return !bound(memory.pages() - 1); }));
    EXPECT_TRUE(bound(0));
    kernel.full_node = -1;
    EXPECT_TRUE(comes_true([&] { return bound(memory.pages() - 1); }));
}

TEST_F(HintFaults, PiecesFollowThePagesThatWereMoved) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    kernel.pretend_nodes = true;
    Memory memory(2 << 20);
    memory.touch(0, memory.pages());
    const auto lies_on = [&](int node) {
        for (std::size_t page = 0; page < memory.pages(); ++page)
            kernel.node_of_page[memory.begin + page * page_bytes()] = node;
    };
    lies_on(1);
    const WatchedRange ranges[] = {memory.watched()};
    ASSERT_TRUE(source->start(ranges));
    ASSERT_EQ(kernel.policies[memory.begin], observing(1));
    lies_on(3);
    EXPECT_TRUE(comes_true([&] { return kernel.policies[memory.begin] == observing(3); }));
}

TEST_F(HintFaults, AfterAForkOnlyPagesThatTheChildDoesNotShareAreBound) {
    source.reset(make_hint_fault_source(kernel, machine, proc.c_str(), &keeper));
    if (!source->unavailable().empty()) GTEST_SKIP() << source->unavailable();
    Memory memory(4 << 20);
    memory.touch(0, memory.pages());
    const WatchedRange ranges[] = {memory.watched()};
    ASSERT_TRUE(source->start(ranges));
    ASSERT_NE(memory.policy(0), MemoryPolicy{});
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    keeper.before_fork();
    const pid_t child = ::fork();
    if (child == 0) {
        char byte;
        ::_exit(::close(ends[1]) == 0 && ::read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    keeper.after_fork();
    EXPECT_EQ(memory.policy(0), MemoryPolicy{});
    std::vector<Reference> references;
    for (const double until = clock_seconds() + 0.2; clock_seconds() < until;)
        source->drain(references);
    EXPECT_EQ(memory.policy(0), MemoryPolicy{});
    EXPECT_EQ(memory.policy(memory.pages() - 1), MemoryPolicy{});
    memory.touch(0, memory.pages() / 2); // copies of our own
    EXPECT_TRUE(comes_true([&] { return memory.policy(0) != MemoryPolicy{}; }));
    EXPECT_EQ(memory.policy(memory.pages() - 1), MemoryPolicy{});
    ::close(ends[1]);
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(comes_true([&] { return memory.policy(memory.pages() - 1) != MemoryPolicy{}; }));
}

TEST_F(HintFaults, WhatTheProgramMovesIsLetGoAndBoundAgain) {
    source.reset(make_hint_fault_source(kernel, machine, proc.c_str(), &keeper));
    if (!source->unavailable().empty()) GTEST_SKIP() << source->unavailable();
    Memory memory(8 << 20);
    memory.touch(0, memory.pages());
    const WatchedRange ranges[] = {memory.watched()};
    ASSERT_TRUE(source->start(ranges));
    ASSERT_NE(memory.policy(0), MemoryPolicy{});
    ASSERT_TRUE(keeper.before_remap({memory.begin, memory.begin + page_bytes()}));
    EXPECT_EQ(memory.policy(0), MemoryPolicy{});
    keeper.after_remap(); // it has grown where it was
    EXPECT_TRUE(comes_true([&] { return memory.policy(0) != MemoryPolicy{}; }));
}

TEST_F(HintFaults, ANodeWithoutFreeMemoryIsNotBoundTo) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    kernel.free = 1 << 20;
    Memory memory(4 << 20);
    memory.touch(0, memory.pages());
    const WatchedRange ranges[] = {memory.watched()};
    ASSERT_TRUE(source->start(ranges));
    EXPECT_EQ(memory.policy(0), MemoryPolicy{});
}

TEST_F(HintFaults, WholeGranulesOnly) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    Memory memory(8 << 20);
    memory.touch(0, memory.pages());
    const WatchedRange ranges[] = {
        {{memory.begin + page_bytes(), memory.begin + (6 << 20) + 16}, huge_page_bytes, 0}};
    ASSERT_TRUE(source->start(ranges));
    EXPECT_EQ(memory.policy(1), MemoryPolicy{});
    EXPECT_NE(memory.policy(huge_page_bytes / page_bytes()), MemoryPolicy{});
    EXPECT_EQ(memory.policy(3 * huge_page_bytes / page_bytes()), MemoryPolicy{});
}

TEST_F(HintFaults, WhenNothingCanBeBoundStartSaysSo) {
    if (!make(kernel).unavailable().empty()) GTEST_SKIP() << source->unavailable();
    kernel.bind_error = ENOMEM;
    Memory memory(4 << 20);
    memory.touch(0, memory.pages());
    const WatchedRange ranges[] = {memory.watched()};
    EXPECT_FALSE(source->start(ranges));
    EXPECT_NE(source->reason().find("cannot be observed"), std::string::npos);
    std::vector<Reference> references;
    source->drain(references);
    EXPECT_TRUE(references.empty());
}

} // namespace
} // namespace homing::sources_hint_faults_tests
