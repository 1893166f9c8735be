#include "areas/policies.hpp"
#include "no_kernel.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <linux/mempolicy.h>
#include <random>
#include <sys/mman.h>

namespace homing::areas_policies_tests {
namespace {

constexpr Address base = 0x7f0000000000;
constexpr int pages = 64;
constexpr int numa_balancing_flag = 1 << 13;

NodeSet set_of(std::initializer_list<int> nodes) {
    NodeSet set;
    for (int node : nodes)
        set.add(node);
    return set;
}

Address at(int page) { return base + static_cast<Address>(page) * page_bytes(); }
Range range_of(int first, int end) { return {at(first), at(end)}; }

/// A process of 64 pages: which are mapped, shared, and with which policy. Any call can be made to fail.
class FakeKernel final : public NoKernel {
  public:
    struct Page {
        bool mapped = true;
        bool shared = false;
        int mapping =
            0; ///< different for pages that lie in different mappings for other reasons than the policy
        MemoryPolicy policy;
    };
    std::vector<Page> table = std::vector<Page>(pages);
    MemoryPolicy task;
    int calls = 0;
    int fail_call = -1; ///< number of the call that fails, ...
    int fail_from = -1; ///< ... or the first of all that fail
    int fail_errno = ENOMEM;
    int binds = 0;

    bool fails() {
        const int call = calls++;
        return call == fail_call || (fail_from >= 0 && call >= fail_from);
    }

    int bind(Range range, MemoryPolicy policy) noexcept override {
        ++binds;
        if (fails()) return fail_errno;
        for (Address a = range.begin; a < range.end; a += page_bytes())
            if (!page(a).mapped) return EFAULT;
        for (Address a = range.begin; a < range.end; a += page_bytes())
            page(a).policy = policy;
        return 0;
    }
    int policy_at(Address address, MemoryPolicy& policy) noexcept override {
        if (fails()) return fail_errno;
        if (!page(address).mapped) return EFAULT;
        policy = page(address).policy;
        return 0;
    }
    int task_policy(MemoryPolicy& policy) noexcept override {
        policy = task;
        return 0;
    }

    Page& page(Address address) { return table.at((address - base) / page_bytes()); }

    /// What /proc/self/maps would say: a mapping ends where anything changes.
    void write_maps(const std::string& path) const {
        std::ofstream out(path);
        out << "00400000-00401000 r-xp 00000000 08:01 1 /bin/program\n";
        for (int first = 0; first < pages;) {
            const Page& p = table[static_cast<std::size_t>(first)];
            int end = first + 1;
            while (end < pages) {
                const Page& q = table[static_cast<std::size_t>(end)];
                if (q.mapped != p.mapped || q.shared != p.shared || q.mapping != p.mapping ||
                    q.policy != p.policy)
                    break;
                ++end;
            }
            char line[128];
            std::snprintf(line, sizeof line, "%lx-%lx rw-%c 00000000 00:00 0 \n",
                          static_cast<unsigned long>(at(first)), static_cast<unsigned long>(at(end)),
                          p.shared ? 's' : 'p');
            if (p.mapped) out << line;
            first = end;
        }
        out << "7fff00000000-7fff00021000 rw-p 00000000 00:00 0 [stack]\n";
    }
};

class Policies : public ::testing::Test {
  protected:
    void SetUp() override { // In memory where possible: rewriting a file on a disk waits for the disk.
        const std::string folder = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : ::testing::TempDir();
        path = folder + "homing.maps." + std::to_string(::getpid());
    }
    void TearDown() override { std::remove(path.c_str()); }

    PolicyKeeper::Outcome set(PolicyKeeper::Layer layer, Range range, MemoryPolicy policy) {
        kernel.write_maps(path);
        PolicyKeeper::Request request{range, policy};
        return keeper().set(layer, std::span(&request, 1));
    }
    PolicyKeeper::Outcome own(Range range) {
        kernel.write_maps(path);
        return keeper().own(std::span(&range, 1), set_of({0, 1, 2, 3}));
    }
    PolicyKeeper::Outcome clear(PolicyKeeper::Layer layer, Range range) {
        kernel.write_maps(path);
        return keeper().clear(layer, std::span(&range, 1));
    }
    PolicyKeeper::Outcome clear_all() {
        kernel.write_maps(path);
        return keeper().clear_all();
    }
    PolicyKeeper& keeper() {
        if (!keeper_) keeper_.emplace(kernel, path);
        return *keeper_;
    }
    MemoryPolicy policy(int page) { return kernel.table[static_cast<std::size_t>(page)].policy; }

    using Layer = PolicyKeeper::Layer;
    FakeKernel kernel;
    std::string path;
    std::optional<PolicyKeeper> keeper_;
};

const MemoryPolicy interleaved{MPOL_INTERLEAVE, NodeSet{0b1010}};

TEST_F(Policies, LayersLieOverEachOtherAndComeOffInAnyOrder) {
    for (const bool owned_first : {true, false}) {
        own(range_of(10, 30));
        set(Layer::observed, range_of(20, 40), observed_policy(2));
        EXPECT_EQ(policy(15), owned_policy(set_of({0, 1, 2, 3})));
        EXPECT_EQ(policy(25), observed_policy(2));
        EXPECT_EQ(policy(35), observed_policy(2));
        EXPECT_EQ(keeper().bytes(Layer::owned), 20 * page_bytes());
        clear(owned_first ? Layer::owned : Layer::observed, range_of(0, pages));
        EXPECT_EQ(policy(15), owned_first ? MemoryPolicy{} : owned_policy(set_of({0, 1, 2, 3})));
        EXPECT_EQ(policy(25), owned_first ? observed_policy(2) : owned_policy(set_of({0, 1, 2, 3})));
        EXPECT_EQ(policy(35), owned_first ? observed_policy(2) : MemoryPolicy{});
        clear(owned_first ? Layer::observed : Layer::owned, range_of(0, pages));
        for (int page = 0; page < pages; ++page)
            EXPECT_EQ(policy(page), MemoryPolicy{}) << page;
        EXPECT_EQ(keeper().pieces(), 0u);
    }
}

TEST_F(Policies, TheUsersOwnPoliciesComeBackExactly) {
    for (int page = 20; page < 30; ++page)
        kernel.table[static_cast<std::size_t>(page)].policy = interleaved;
    const auto before = kernel.table;
    const auto outcome = set(Layer::observed, range_of(10, 40), observed_policy(1));
    EXPECT_EQ(outcome.bytes, 30 * page_bytes());
    EXPECT_EQ(keeper().found(at(25)), interleaved);
    EXPECT_EQ(keeper().found(at(15)), MemoryPolicy{});
    EXPECT_EQ(keeper().found(at(45)), std::nullopt);
    clear_all();
    for (int page = 0; page < pages; ++page)
        EXPECT_EQ(policy(page), before[static_cast<std::size_t>(page)].policy);
}

TEST_F(Policies, OwnsOnlyWhereTheBalancerActs) {
    for (int page = 20; page < 30; ++page)
        kernel.table[static_cast<std::size_t>(page)].policy = interleaved;
    for (int page = 30; page < 34; ++page)
        kernel.table[static_cast<std::size_t>(page)].policy = {MPOL_BIND | numa_balancing_flag,
                                                               set_of({0, 1})};
    auto outcome = own(range_of(10, 40));
    EXPECT_EQ(outcome.bytes, 20 * page_bytes());
    EXPECT_EQ(outcome.left_alone, 10 * page_bytes());
    EXPECT_EQ(policy(25), interleaved);
    EXPECT_EQ(policy(31), owned_policy(set_of({0, 1, 2, 3})));
    clear_all();

    kernel.task = {MPOL_BIND, set_of({0})}; // numactl --membind=0
    outcome = own(range_of(0, 10));
    EXPECT_EQ(outcome.bytes, 0u);
    EXPECT_EQ(outcome.left_alone, 10 * page_bytes());
    EXPECT_EQ(policy(5), MemoryPolicy{});
    kernel.task = {MPOL_BIND | numa_balancing_flag, set_of({0})};
    EXPECT_EQ(own(range_of(0, 10)).bytes, 10 * page_bytes());
}

TEST_F(Policies, OwnsBelowAnObservedLayerByWhatLiesUnderIt) {
    for (int page = 20; page < 30; ++page)
        kernel.table[static_cast<std::size_t>(page)].policy = interleaved;
    set(Layer::observed, range_of(10, 40), observed_policy(1)); // now one mapping with one policy
    const auto outcome = own(range_of(10, 40));
    EXPECT_EQ(outcome.bytes, 20 * page_bytes());
    clear(Layer::observed, range_of(0, pages));
    EXPECT_EQ(policy(15), owned_policy(set_of({0, 1, 2, 3})));
    EXPECT_EQ(policy(25), interleaved);
    EXPECT_EQ(policy(35), owned_policy(set_of({0, 1, 2, 3})));
}

TEST_F(Policies, SharedAndMissingMemoryIsLeftAlone) {
    for (int page = 12; page < 14; ++page)
        kernel.table[static_cast<std::size_t>(page)].shared = true;
    for (int page = 14; page < 16; ++page)
        kernel.table[static_cast<std::size_t>(page)].mapped = false;
    const auto outcome = set(Layer::owned, range_of(10, 20), owned_policy(set_of({0, 1})));
    EXPECT_EQ(outcome.bytes, 6 * page_bytes());
    EXPECT_EQ(outcome.left_alone, 4 * page_bytes());
    EXPECT_EQ(outcome.failed, 0u);
    EXPECT_EQ(policy(12), MemoryPolicy{});
}

TEST_F(Policies, WhatTheProgramChangedMeanwhileIsNotOverwritten) {
    for (int page = 10; page < 20; ++page)
        kernel.table[static_cast<std::size_t>(page)].policy = interleaved;
    set(Layer::observed, range_of(10, 20), observed_policy(1));
    kernel.table[12].policy = {MPOL_PREFERRED, set_of({3})}; // mbind by the program
    kernel.table[13] = {.mapping = 9};                       // munmap and mmap
    kernel.table[14].mapped = false;
    const auto outcome = clear_all();
    EXPECT_EQ(outcome.failed, 0u);
    EXPECT_EQ(outcome.left_alone, 3 * page_bytes());
    EXPECT_EQ(policy(11), interleaved);
    EXPECT_EQ(policy(12), (MemoryPolicy{MPOL_PREFERRED, set_of({3})}));
    EXPECT_EQ(policy(13), MemoryPolicy{});
    EXPECT_EQ(policy(19), interleaved);
    EXPECT_EQ(keeper().pieces(), 0u);
}

TEST_F(Policies, ABlockThatMovedWithOurPolicyOnItIsNotTakenForTheUsers) {
    own(range_of(10, 20));
    for (int page = 40; page < 50; ++page) { // mremap 10..19 -> 40..49
        kernel.table[static_cast<std::size_t>(page)] = {.mapping = 3, .policy = policy(10)};
        kernel.table[static_cast<std::size_t>(page - 30)].mapped = false;
    }
    own(range_of(40, 50));
    EXPECT_EQ(keeper().found(at(45)), MemoryPolicy{});
    clear_all();
    for (int page = 40; page < 50; ++page)
        EXPECT_EQ(policy(page), MemoryPolicy{});
}

TEST_F(Policies, ARequestIsDoneWholeOrNotAtAllWhicheverCallFails) {
    for (int page = 20; page < 30; ++page)
        kernel.table[static_cast<std::size_t>(page)].policy = interleaved;
    own(range_of(5, 15));
    const auto before = kernel.table;
    int failing = 0;
    for (;; ++failing) {
        kernel.calls = 0;
        kernel.fail_call = failing;
        const auto outcome = set(Layer::observed, range_of(10, 40), observed_policy(1));
        if (kernel.calls <= failing) break; // no call was left to fail
        if (outcome.failed) {
            EXPECT_EQ(outcome.error, ENOMEM);
            EXPECT_EQ(outcome.bytes, 0u);
            for (int page = 0; page < pages; ++page)
                ASSERT_EQ(policy(page), before[static_cast<std::size_t>(page)].policy)
                    << failing << " page " << page;
        } else { // only reading back failed: the request stands
            kernel.fail_call = -1;
            clear(Layer::observed, range_of(10, 40));
        }
    }
    EXPECT_GE(failing, 6);
}

TEST_F(Policies, WhatCannotBeUndoneIsCountedAndTriedAgain) {
    set(Layer::observed, range_of(10, 20), observed_policy(1));
    kernel.fail_from = kernel.calls;
    kernel.fail_errno = EPERM;
    auto outcome = clear_all();
    EXPECT_EQ(outcome.failed, 1u);
    EXPECT_EQ(outcome.error, EPERM);
    EXPECT_EQ(keeper().stuck_bytes(), 10 * page_bytes());
    kernel.fail_from = -1;
    outcome = clear_all();
    EXPECT_EQ(outcome.failed, 0u);
    EXPECT_EQ(keeper().stuck_bytes(), 0u);
    EXPECT_EQ(policy(15), MemoryPolicy{});
}

TEST_F(Policies, NoMapsNoChange) {
    PolicyKeeper blind(kernel, path + ".absent");
    PolicyKeeper::Request request{range_of(0, 10), owned_policy(set_of({0}))};
    EXPECT_EQ(blind.set(Layer::owned, std::span(&request, 1)).failed, 1u);
    EXPECT_EQ(request.error, EIO);
    EXPECT_EQ(kernel.binds, 0);
}

TEST_F(Policies, NeighboursInOneStateAreOnePiece) {
    for (int page = 0; page < pages; ++page)
        own(range_of(page, page + 1));
    EXPECT_EQ(keeper().pieces(), 1u);
}

TEST_F(Policies, AfterAnyHistoryEverythingIsAsTheProgramLeftIt) {
    // A shadow process sees only what the program does. Whatever homing did in between, and whichever of its
    // calls failed, both are equal after clear_all().
    EXPECT_TRUE(rc::check([this] {
        FakeKernel process;
        FakeKernel shadow;
        PolicyKeeper under_test(process, path);
        const auto seed = *rc::gen::arbitrary<unsigned>();
        const int length = *rc::gen::inRange(1, 40);
        std::mt19937 random(seed);
        const auto pick = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
        for (int step = 0; step < length; ++step) {
            int first = pick(pages);
            int end = first + 1 + pick(pages - first);
            const Range range = range_of(first, end);
            process.write_maps(path);
            process.fail_call = pick(3) == 0 ? process.calls + pick(8) : -1;
            const int what = pick(10);
            if (what < 2) {
                PolicyKeeper::Request request{range, observed_policy(pick(4))};
                under_test.set(PolicyKeeper::Layer::observed, std::span(&request, 1));
            } else if (what < 4) {
                under_test.own(std::span(&range, 1), NodeSet{15});
            } else if (what == 4) {
                under_test.clear(PolicyKeeper::Layer::observed, std::span(&range, 1));
            } else if (what == 5) {
                under_test.clear(PolicyKeeper::Layer::owned, std::span(&range, 1));
            } else if (what == 6) {
                under_test.before_fork();
                under_test.after_fork();
            } else {
                const int choice = pick(3);
                const int mapping = pick(1000);
                const MemoryPolicy policy{MPOL_INTERLEAVE, NodeSet{1 + random() % 15}};
                for (FakeKernel* one : {&process, &shadow})
                    for (int page = first; page < end; ++page) {
                        auto& p = one->table[static_cast<std::size_t>(page)];
                        if (choice == 0)
                            p.mapped = false;
                        else if (choice == 1)
                            p = {.mapping = mapping};
                        else if (p.mapped)
                            p.policy = policy;
                    }
            }
        }
        process.fail_call = -1;
        process.write_maps(path);
        under_test.clear_all();
        for (std::size_t page = 0; page < pages; ++page)
            if (process.table[page].mapped)
                RC_ASSERT(process.table[page].policy == shadow.table[page].policy);
        RC_ASSERT(under_test.pieces() == 0u);
    }));
}

TEST(Mappings, ThisProcess) {
    void* map = ::mmap(nullptr, 4 * page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void* shared = ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ::munmap(static_cast<char*>(map) + page_bytes(), page_bytes());
    const Address here = reinterpret_cast<Address>(map);
    const Address there = reinterpret_cast<Address>(shared);
    std::vector<Range> ranges{{here, here + 4 * page_bytes()}, {there, there + page_bytes()}};
    if (there < here) std::swap(ranges[0], ranges[1]);
    std::vector<MappedRange> mappings;
    ASSERT_TRUE(read_mappings("/proc/self/maps", ranges, mappings));
    const auto covers = [&mappings](Address address) {
        for (const MappedRange& mapping : mappings)
            if (mapping.range.contains(address)) return mapping.shared ? 2 : 1;
        return 0;
    };
    EXPECT_EQ(covers(here), 1);
    EXPECT_EQ(covers(here + page_bytes()), 0);
    EXPECT_EQ(covers(here + 2 * page_bytes()), 1);
    EXPECT_EQ(covers(there), 2);
    ::munmap(map, 4 * page_bytes());
    ::munmap(shared, page_bytes());
}

TEST(Mappings, BrokenFilesAreRefused) {
    const std::string path = ::testing::TempDir() + "broken." + std::to_string(::getpid());
    std::vector<MappedRange> mappings;
    const Range all{0, ~Address{0}};
    for (const char* text : {"", "hello\n", "1000-2000", "1000-2000 rw", "g000-2000 rw-p 0 0 0\n"}) {
        std::ofstream(path) << text;
        EXPECT_FALSE(read_mappings(path.c_str(), std::span(&all, 1), mappings)) << text;
    }
    std::ofstream(path) << "1000-2000 rw-p 0 0 0\n" << std::string(100000, 'x') << "\n";
    EXPECT_FALSE(read_mappings(path.c_str(), std::span(&all, 1), mappings));
    std::remove(path.c_str());
}

TEST(PoliciesOfThisKernel, AreReadBackExactly) {
    Kernel& kernel = linux_kernel();
    NodeSet allowed;
    if (kernel.allowed_nodes(allowed) != 0) GTEST_SKIP() << "get_mempolicy is not allowed here";
    void* map = ::mmap(nullptr, 8 * page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const Address here = reinterpret_cast<Address>(map);
    const MemoryPolicy users{MPOL_INTERLEAVE, allowed};
    ASSERT_EQ(kernel.bind({here + 2 * page_bytes(), here + 4 * page_bytes()}, users), 0);
    PolicyKeeper keeper(kernel);
    PolicyKeeper::Request request{{here, here + 8 * page_bytes()}, observed_policy(allowed.first())};
    auto outcome = keeper.set(PolicyKeeper::Layer::observed, std::span(&request, 1));
    if (outcome.error == EINVAL) { // before Linux 6.9
        request.policy = strictly_observed_policy(allowed.first());
        outcome = keeper.set(PolicyKeeper::Layer::observed, std::span(&request, 1));
    }
    if (outcome.error == EINVAL) GTEST_SKIP() << "Linux before 5.12: no MPOL_F_NUMA_BALANCING";
    EXPECT_EQ(outcome.bytes, 8 * page_bytes());
    MemoryPolicy policy;
    kernel.policy_at(here + 3 * page_bytes(), policy);
    EXPECT_EQ(policy, request.policy);
    EXPECT_EQ(keeper.clear_all().failed, 0u);
    kernel.policy_at(here + 3 * page_bytes(), policy);
    EXPECT_EQ(policy, users);
    kernel.policy_at(here + 5 * page_bytes(), policy);
    EXPECT_EQ(policy, MemoryPolicy{});
    ::munmap(map, 8 * page_bytes());
}

// mremap(2) refuses memory of several policies.
TEST(PoliciesOfThisKernel, MemoryIsMovedAndGrownAsWithoutThem) {
    NodeSet allowed;
    if (linux_kernel().allowed_nodes(allowed) != 0) GTEST_SKIP() << "get_mempolicy is not allowed here";
    const std::size_t bytes = 8 * page_bytes();
    void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(map, 1, bytes);
    const Range range = homing::range_of(map, bytes);
    PolicyKeeper keeper(linux_kernel());
    std::array<PolicyKeeper::Request, 2> requests{{
        {{range.begin, range.begin + 2 * page_bytes()}, strictly_observed_policy(allowed.first())},
        {{range.begin + 4 * page_bytes(), range.end}, strictly_observed_policy(allowed.first())},
    }};
    if (keeper.set(PolicyKeeper::Layer::observed, requests).error == EINVAL)
        GTEST_SKIP() << "Linux before 5.12: no MPOL_F_NUMA_BALANCING";
    EXPECT_TRUE(keeper.holds(PolicyKeeper::Layer::observed, requests[1].range));
    EXPECT_FALSE(keeper.holds(PolicyKeeper::Layer::observed, range));
    ASSERT_TRUE(keeper.before_remap(range));
    void* const moved = ::mremap(map, bytes, 2 * bytes, MREMAP_MAYMOVE);
    keeper.after_remap();
    ASSERT_NE(moved, MAP_FAILED);
    EXPECT_EQ(keeper.remaps(), 1u);
    EXPECT_FALSE(keeper.holds(PolicyKeeper::Layer::observed, requests[1].range));
    for (std::size_t page = 0; page < 16; ++page) {
        MemoryPolicy policy;
        linux_kernel().policy_at(reinterpret_cast<Address>(moved) + page * page_bytes(), policy);
        EXPECT_EQ(policy, MemoryPolicy{});
    }
    EXPECT_EQ(keeper.clear_all().failed, 0u);
    EXPECT_EQ(keeper.pieces(), 0u);
    ::munmap(moved, 2 * bytes);
}

} // namespace
} // namespace homing::areas_policies_tests
