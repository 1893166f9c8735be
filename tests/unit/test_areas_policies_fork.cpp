// The keeper of policies around a fork: what the parent goes on with, and what the child is left with.
#include "areas/policies.hpp"
#include "failing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>

namespace homing::areas_policies_fork_tests {
namespace {

constexpr Address base = Address{1} << 40;
const NodeSet all{15};
const MemoryPolicy users{MPOL_INTERLEAVE, NodeSet{6}};

/// A hundred pages, of which the user bound the middle twenty: owned all, observed from page 30.
class ForkedPolicies : public ::testing::Test {
  protected:
    ForkedPolicies() : simulated({1000, 1000, 1000, 1000}), kernel(simulated), keeper(kernel, path()) {
        simulated.map(pages(0, 100));
        simulated.bind(pages(40, 60), users);
        std::ofstream maps(path());
        for (const Range range : {pages(0, 40), pages(40, 60), pages(60, 100)}) {
            char line[80];
            std::snprintf(line, sizeof line, "%lx-%lx rw-p 00000000 00:00 0\n",
                          static_cast<unsigned long>(range.begin), static_cast<unsigned long>(range.end));
            maps << line;
        }
    }
    ~ForkedPolicies() override { std::remove(path().c_str()); }

    void observe() {
        const Range whole[] = {pages(0, 100)};
        ASSERT_EQ(keeper.own(whole, all).failed, 0u);
        PolicyKeeper::Request request{pages(30, 100), observed_policy(2)};
        ASSERT_EQ(keeper.set(PolicyKeeper::Layer::observed, std::span(&request, 1)).failed, 0u);
    }
    static std::string path() { return ::testing::TempDir() + "forked_maps." + std::to_string(::getpid()); }
    static Range pages(Address first, Address end) {
        return {base + first * page_bytes(), base + end * page_bytes()};
    }
    MemoryPolicy policy(Address page) const { return simulated.policy_of(base + page * page_bytes()); }
    void expect_as_found() {
        for (Address page = 0; page < 100; ++page)
            ASSERT_EQ(policy(page), page >= 40 && page < 60 ? users : MemoryPolicy{}) << page;
    }

    SimulatedKernel simulated;
    FailingKernel kernel;
    PolicyKeeper keeper;
};

TEST_F(ForkedPolicies, InTheParentOnlyTheObservedLayerComesOff) {
    observe();
    keeper.before_fork();
    keeper.after_fork();
    EXPECT_EQ(policy(10), owned_policy(all));
    EXPECT_EQ(policy(35), owned_policy(all));
    EXPECT_EQ(policy(50), users);
    EXPECT_EQ(policy(99), owned_policy(all));
    EXPECT_EQ(keeper.bytes(PolicyKeeper::Layer::observed), 0u);
    EXPECT_EQ(keeper.forks(), 1u);
    EXPECT_EQ(keeper.stuck_bytes(), 0u);
    observe();
    EXPECT_EQ(policy(50), observed_policy(2));
    EXPECT_EQ(keeper.clear_all().failed, 0u);
    expect_as_found();
    EXPECT_EQ(keeper.pieces(), 0u);
}

TEST_F(ForkedPolicies, InTheChildEverythingIsAsItWasFound) {
    observe();
    keeper.before_fork();
    keeper.after_fork_in_child();
    expect_as_found();
}

TEST_F(ForkedPolicies, WhatTheProgramChangedIsLeftAlone) {
    observe();
    const MemoryPolicy own{MPOL_PREFERRED, NodeSet{8}};
    simulated.bind(pages(60, 100), own);
    keeper.before_fork();
    EXPECT_EQ(policy(50), users);
    EXPECT_EQ(policy(80), own);
    keeper.after_fork_in_child();
    EXPECT_EQ(policy(20), MemoryPolicy{});
    EXPECT_EQ(policy(80), own);
}

TEST_F(ForkedPolicies, NothingIsLostWhicheverCallFails) {
    for (const KernelCall call : {KernelCall::bind, KernelCall::policy_at})
        for (const int error : errnos_of(call))
            for (std::size_t nth = 0; nth <= 8; ++nth) {
                observe();
                kernel.fail(call, error, nth);
                keeper.before_fork();
                keeper.after_fork();
                kernel.heal();
                keeper.clear_all();
                EXPECT_EQ(keeper.stuck_bytes(), 0u);
                EXPECT_EQ(keeper.pieces(), 0u);
                expect_as_found();
            }
}

/// Each bind is interrupted by a signal handler that forks.
class InterruptedKernel final : public Kernel {
  public:
    explicit InterruptedKernel(SimulatedKernel& inner) : inner_(inner) {}
    PolicyKeeper* keeper = nullptr;
    int interruptions = 0;

    int bind(Range range, MemoryPolicy policy) noexcept override {
        if (keeper) {
            ++interruptions;
            keeper->before_fork();
            keeper->after_fork();
        }
        return inner_.bind(range, policy);
    }
    int query(std::span<void* const> pages, std::span<int> nodes) noexcept override {
        return inner_.query(pages, nodes);
    }
    int move(std::span<void* const> p, std::span<const int> t, std::span<int> s) noexcept override {
        return inner_.move(p, t, s);
    }
    int policy_at(Address address, MemoryPolicy& policy) noexcept override {
        return inner_.policy_at(address, policy);
    }
    int task_policy(MemoryPolicy& policy) noexcept override { return inner_.task_policy(policy); }
    int allowed_nodes(NodeSet& nodes) noexcept override { return inner_.allowed_nodes(nodes); }
    int protect(Range range, Access access) noexcept override { return inner_.protect(range, access); }
    int current_node() noexcept override { return 0; }
    std::uint64_t free_bytes(int) noexcept override { return 0; }
    int open_sampler(const SamplerEvent&, int, std::size_t, SamplerRing&) noexcept override { return ENOSYS; }
    void close_sampler(SamplerRing&) noexcept override {}
    int node_of_cpu(int) noexcept override { return 0; }

  private:
    SimulatedKernel& inner_;
};

TEST_F(ForkedPolicies, AForkWithinTheDriversWorkDoesNotWaitForItself) {
    InterruptedKernel interrupted(simulated);
    PolicyKeeper under_test(interrupted, path());
    interrupted.keeper = &under_test;
    const Range whole[] = {pages(0, 100)};
    under_test.own(whole, all);
    PolicyKeeper::Request request{pages(30, 100), observed_policy(2)};
    under_test.set(PolicyKeeper::Layer::observed, std::span(&request, 1));
    EXPECT_GT(interrupted.interruptions, 0);
    EXPECT_EQ(under_test.forks(), 0u);
    under_test.clear_all();
    expect_as_found();
}

TEST(PoliciesAcrossForks, ChildrenHaveNoneOfOursWhateverAnotherThreadIsDoing) {
    Kernel& kernel = linux_kernel();
    NodeSet allowed;
    if (kernel.allowed_nodes(allowed) != 0) GTEST_SKIP() << "get_mempolicy is not allowed here";
    constexpr std::size_t pages = 64;
    void* map =
        ::mmap(nullptr, pages * page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const Range range = range_of(map, pages * page_bytes());
    const MemoryPolicy ours{MPOL_PREFERRED | MPOL_F_STATIC_NODES, NodeSet{allowed.bits & -allowed.bits}};
    PolicyKeeper keeper(kernel);
    std::atomic<bool> ends{false};
    std::thread driver([&] {
        while (!ends) {
            const Range half{range.begin, range.begin + pages / 2 * page_bytes()};
            keeper.own(std::span(&half, 1), allowed);
            PolicyKeeper::Request requests[4];
            for (std::size_t i = 0; i < 4; ++i)
                requests[i] = {
                    {range.begin + (16 * i + 2) * page_bytes(), range.begin + (16 * i + 12) * page_bytes()},
                    ours};
            keeper.set(PolicyKeeper::Layer::observed, requests);
            keeper.clear(PolicyKeeper::Layer::observed, std::span(&range, 1));
        }
    });
    int wrong = 0;
    for (int i = 0; i < 50; ++i) {
        keeper.before_fork();
        const pid_t child = ::fork();
        if (child == 0) {
            keeper.after_fork_in_child();
            for (std::size_t page = 0; page < pages; ++page) {
                MemoryPolicy policy;
                if (kernel.policy_at(range.begin + page * page_bytes(), policy) != 0 ||
                    policy != MemoryPolicy{})
                    ::_exit(1);
            }
            ::_exit(0);
        }
        keeper.after_fork();
        int status = 0;
        ::waitpid(child, &status, 0);
        wrong += status != 0;
    }
    ends = true;
    driver.join();
    EXPECT_EQ(wrong, 0);
    keeper.clear_all();
    MemoryPolicy policy;
    EXPECT_EQ(kernel.policy_at(range.begin, policy), 0);
    EXPECT_EQ(policy, MemoryPolicy{});
    ::munmap(map, pages * page_bytes());
}

} // namespace
} // namespace homing::areas_policies_fork_tests
