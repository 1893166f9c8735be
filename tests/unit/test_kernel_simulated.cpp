#include "failing.hpp"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <numeric>
#include <rapidcheck.h>

namespace homing::kernel_simulated_tests {
namespace {

constexpr Address base = 0x40000000;

Address page_at(std::size_t index) { return base + index * page_bytes(); }
Range pages_at(std::size_t first, std::size_t count) { return {page_at(first), page_at(first + count)}; }

struct Moved {
    int error = 0;
    std::vector<int> status;
};

Moved move(Kernel& kernel, const std::vector<std::size_t>& pages, const std::vector<int>& targets) {
    std::vector<void*> addresses;
    for (const std::size_t page : pages)
        addresses.push_back(reinterpret_cast<void*>(page_at(page)));
    Moved moved{0, std::vector<int>(pages.size())};
    moved.error = kernel.move(addresses, targets, moved.status);
    return moved;
}

std::vector<int> query(Kernel& kernel, const std::vector<std::size_t>& pages) {
    std::vector<void*> addresses;
    for (const std::size_t page : pages)
        addresses.push_back(reinterpret_cast<void*>(page_at(page)));
    std::vector<int> nodes(pages.size());
    EXPECT_EQ(kernel.query(addresses, nodes), 0);
    return nodes;
}

using Statuses = std::vector<int>;

TEST(SimulatedKernel, FirstTouchPlacesAndStays) {
    SimulatedKernel kernel({100, 100});
    kernel.map(pages_at(0, 10));
    EXPECT_EQ(kernel.touch(page_at(0), 1), SimulatedKernel::Touch::done);
    kernel.touch(page_at(0), 0);
    EXPECT_EQ(kernel.where(page_at(0)), 1);
    EXPECT_EQ(query(kernel, {0, 1, 20}), (Statuses{1, -ENOENT, -EFAULT}));
    kernel.set_absent_error(EFAULT);
    EXPECT_EQ(query(kernel, {0, 1, 20}), (Statuses{1, -EFAULT, -EFAULT})) << "as Linux 6.1 has it";
    EXPECT_EQ(kernel.free_pages(1), 99u);
    EXPECT_EQ(kernel.touch(page_at(20), 0), SimulatedKernel::Touch::unmapped);
    kernel.drop(pages_at(0, 10));
    EXPECT_EQ(kernel.free_pages(1), 100u);
}

TEST(SimulatedKernel, PoliciesDirectFirstTouch) {
    SimulatedKernel kernel({100, 100, 100});
    kernel.map(pages_at(0, 12));
    ASSERT_EQ(kernel.bind(pages_at(0, 6), {MPOL_INTERLEAVE, NodeSet{0b110}}), 0);
    ASSERT_EQ(kernel.bind(pages_at(6, 3), {MPOL_BIND, NodeSet{0b100}}), 0);
    kernel.touch_all(pages_at(0, 12), 0);
    EXPECT_EQ(kernel.pages_on(pages_at(0, 6), 1), 3u);
    EXPECT_EQ(kernel.pages_on(pages_at(0, 6), 2), 3u);
    EXPECT_EQ(kernel.pages_on(pages_at(6, 3), 2), 3u);
    EXPECT_EQ(kernel.pages_on(pages_at(9, 3), 0), 3u);
    MemoryPolicy policy;
    EXPECT_EQ(kernel.policy_at(page_at(7), policy), 0);
    EXPECT_EQ(policy, (MemoryPolicy{MPOL_BIND, NodeSet{0b100}}));
    EXPECT_EQ(kernel.bind(pages_at(0, 1), {MPOL_BIND, NodeSet{0b1000}}), EINVAL) << "no such node";
    EXPECT_EQ(kernel.bind(pages_at(50, 1), {MPOL_BIND, NodeSet{1}}), EFAULT);
}

TEST(SimulatedKernel, MappingsSplitAndJoin) {
    SimulatedKernel kernel({100});
    kernel.map(pages_at(0, 10));
    ASSERT_EQ(kernel.protect(pages_at(2, 1), Access::none), 0);
    ASSERT_EQ(kernel.protect(pages_at(5, 1), Access::none), 0);
    EXPECT_EQ(kernel.mappings().now, 5u);
    EXPECT_EQ(kernel.protected_pages(), 2u);
    EXPECT_EQ(kernel.touch(page_at(5), 0), SimulatedKernel::Touch::fault);
    EXPECT_EQ(kernel.touch(page_at(4), 0), SimulatedKernel::Touch::done);
    kernel.set_most_mappings(6);
    EXPECT_EQ(kernel.protect(pages_at(8, 1), Access::none), ENOMEM);
    EXPECT_EQ(kernel.mappings().now, 5u);
    EXPECT_EQ(kernel.protect(pages_at(0, 10), Access::read_write), 0);
    EXPECT_EQ(kernel.mappings().now, 1u);
    EXPECT_EQ(kernel.protect(pages_at(5, 10), Access::none), ENOMEM) << "a hole";
}

TEST(SimulatedKernel, MovesOnePageAndSaysWhyNotTheOthers) {
    SimulatedKernel kernel({100, 100});
    kernel.map(pages_at(0, 10));
    kernel.touch_all(pages_at(0, 8), 0);
    kernel.make_shared(pages_at(1, 1));
    kernel.make_zero(pages_at(2, 1));
    kernel.make_armed(pages_at(3, 1));
    const Moved moved = move(kernel, {0, 1, 2, 3, 9, 20, 4}, Statuses(7, 1));
    EXPECT_EQ(moved.error, 0);
    EXPECT_EQ(moved.status, (Statuses{1, -EACCES, -EFAULT, -ENOENT, -ENOENT, -EFAULT, 1}));
    EXPECT_EQ(kernel.pages_moved(), 2u);
    kernel.touch(page_at(3), 0);
    EXPECT_EQ(move(kernel, {3}, {1}).status, (Statuses{1})) << "no longer armed once touched";
}

TEST(SimulatedKernel, ABusyPageEndsItsRunAndWhatFollowsIsNotAttempted) {
    SimulatedKernel kernel({100, 100, 100});
    kernel.map(pages_at(0, 10));
    kernel.touch_all(pages_at(0, 10), 0);
    kernel.make_busy(pages_at(1, 1), 1);
    const Moved moved = move(kernel, {0, 1, 2, 3, 4}, {1, 1, 1, 2, 2});
    EXPECT_EQ(moved.error, 0);
    EXPECT_EQ(moved.status, (Statuses{1, -EBUSY, 1, -EAGAIN, -EAGAIN}));
    EXPECT_EQ(move(kernel, {1, 3, 4}, {1, 2, 2}).status, (Statuses{1, 2, 2})) << "busy only once";
}

TEST(SimulatedKernel, AFullNodeRefuses) {
    SimulatedKernel kernel({100, 2, 0});
    kernel.map(pages_at(0, 10));
    kernel.touch_all(pages_at(0, 10), 0);
    const Moved moved = move(kernel, {0, 1, 2, 3}, {1, 1, 1, 0});
    EXPECT_EQ(moved.error, ENOMEM);
    EXPECT_EQ(moved.status, (Statuses{1, 1, -ENOMEM, -EAGAIN}));
    EXPECT_EQ(kernel.free_bytes(1), 0u);
    EXPECT_EQ(move(kernel, {4}, {2}).error, ENODEV) << "no memory at all";
    kernel.set_allowed(NodeSet{0b01});
    EXPECT_EQ(move(kernel, {4}, {1}).error, EACCES) << "outside the cpuset";
    kernel.touch_all(pages_at(0, 10), 1);
    EXPECT_EQ(kernel.where(page_at(9)), 0);
}

TEST(SimulatedKernel, HugePagesMoveWhole) {
    SimulatedKernel kernel({10'000, 10'000});
    const std::size_t per_huge = huge_page_bytes / page_bytes();
    kernel.map(pages_at(0, 2 * per_huge), true);
    kernel.touch(page_at(7), 0);
    EXPECT_EQ(kernel.pages_on(pages_at(0, 2 * per_huge), 0), per_huge);
    EXPECT_EQ(move(kernel, {100}, {1}).status, (Statuses{1}));
    EXPECT_EQ(kernel.pages_on(pages_at(0, per_huge), 1), per_huge);
    EXPECT_EQ(kernel.free_pages(1), 10'000 - per_huge);
}

TEST(SimulatedKernel, NoPageIsLostOrDoubled) {
    EXPECT_TRUE(rc::check("pages are conserved", [] {
        const auto capacity =
            *rc::gen::container<std::vector<std::size_t>>(3, rc::gen::inRange<std::size_t>(1, 40));
        SimulatedKernel kernel(capacity);
        kernel.map(pages_at(0, 64));
        const auto steps = *rc::gen::container<std::vector<std::tuple<int, int, int>>>(
            rc::gen::tuple(rc::gen::inRange(0, 4), rc::gen::inRange(0, 64), rc::gen::inRange(0, 3)));
        for (const auto& [what, page, node] : steps) {
            const auto index = static_cast<std::size_t>(page);
            if (what == 0) kernel.touch(page_at(index), node);
            if (what == 1) kernel.drop(pages_at(index, 1));
            if (what == 2) kernel.bind(pages_at(index, 2), {MPOL_PREFERRED, NodeSet{1ull << node}});
            if (what == 3) {
                const Moved moved = move(kernel, {index, (index + 1) % 64}, {node, node});
                for (std::size_t i = 0; i < 2; ++i) {
                    const int where = kernel.where(page_at((index + i) % 64));
                    RC_ASSERT(moved.status[i] < 0 || moved.status[i] == where);
                }
            }
            for (int n = 0; n < 3; ++n) {
                const std::size_t used = kernel.pages_on(pages_at(0, 64), n);
                RC_ASSERT(used + kernel.free_pages(n) == capacity[static_cast<std::size_t>(n)]);
            }
        }
    }));
}

TEST(SimulatedKernel, LargeFootprintsAreQuick) {
    SimulatedKernel kernel({1 << 20, 1 << 20});
    kernel.map(pages_at(0, 1 << 18)); // 1 GiB of 4 KiB pages
    kernel.touch_all(pages_at(0, 1 << 18), 0);
    std::vector<std::size_t> all(1 << 18);
    std::iota(all.begin(), all.end(), 0u);
    EXPECT_EQ(move(kernel, all, std::vector<int>(all.size(), 1)).error, 0);
    EXPECT_EQ(kernel.pages_on(pages_at(0, 1 << 18), 1), std::size_t{1} << 18);
    EXPECT_EQ(kernel.largest_move(), std::size_t{1} << 18);
}

TEST(SimulatedKernel, RemembersWhatItWasAsked) {
    SimulatedKernel kernel({10, 10});
    kernel.map(pages_at(0, 4));
    kernel.touch_all(pages_at(0, 4), 0);
    move(kernel, {0, 1}, {1, 1});
    kernel.bind(pages_at(0, 4), {MPOL_BIND, NodeSet{3}});
    ASSERT_EQ(kernel.log().size(), 2u);
    EXPECT_EQ(kernel.log()[0].call, KernelCall::move);
    EXPECT_EQ(kernel.log()[0].pages, 2u);
    EXPECT_EQ(kernel.log()[1].policy.mode, MPOL_BIND);
    EXPECT_EQ(kernel.calls(KernelCall::move), 1u);
}

TEST(SimulatedKernel, RevealedQueriesKeepWhatWasSeenBetweenScans) {
    SimulatedKernel kernel({64, 64});
    kernel.map(pages_at(0, 32));
    kernel.place(pages_at(0, 16), 0);
    kernel.place(pages_at(16, 16), 1);
    kernel.make_armed(pages_at(0, 32));
    kernel.scan_after(KernelCall::reveal, 1, page_at(8)); // hides three quarters again
    std::vector<void*> pages;
    for (int i = 0; i < 32; ++i)
        pages.push_back(reinterpret_cast<void*>(page_at(i)));
    std::vector<int> nodes(32, -1);
    int prepared = 0;
    ASSERT_EQ(query_revealed(kernel, pages, nodes, [&] { ++prepared; }), 0);
    for (std::size_t i = 0; i < 32; ++i)
        EXPECT_EQ(nodes[i], i < 16 ? 0 : 1) << i;
    EXPECT_EQ(prepared, 1);

    kernel.scan_after(KernelCall::reveal,
                      1 << 20); // a scan that never rests: it ends, and says what it knows
    kernel.make_armed(pages_at(0, 32));
    const std::size_t before = kernel.calls(KernelCall::reveal);
    ASSERT_EQ(query_revealed(kernel, pages, nodes), 0);
    EXPECT_EQ(nodes, Statuses(32, -ENOENT));
    EXPECT_LE(kernel.calls(KernelCall::reveal) - before, 8u);
}

TEST(FailingKernel, FailsTheChosenCallOnly) {
    SimulatedKernel simulated({10, 10});
    simulated.map(pages_at(0, 4));
    simulated.touch_all(pages_at(0, 4), 0);
    simulated.tell_populated();
    FailingKernel kernel(simulated);
    for (const KernelCall call : failing_calls) {
        ASSERT_FALSE(errnos_of(call).empty()) << name_of(call);
        for (const int error : errnos_of(call)) {
            kernel.fail(call, error);
            MemoryPolicy policy;
            NodeSet nodes;
            SamplerRing ring;
            std::vector<void*> page{reinterpret_cast<void*>(page_at(0))};
            std::vector<int> status(1);
            const std::vector<int> target{0};
            const Range range = pages_at(0, 1);
            std::uint8_t found = 0;
            const std::map<KernelCall, int> answers = {
                {KernelCall::query, kernel.query(page, status)},
                {KernelCall::populated, kernel.populated({&range, 1}, {&found, 1})},
                {KernelCall::reveal, kernel.reveal(page)},
                {KernelCall::move, kernel.move(page, target, status)},
                {KernelCall::bind, kernel.bind(pages_at(0, 1), {})},
                {KernelCall::policy_at, kernel.policy_at(page_at(0), policy)},
                {KernelCall::task_policy, kernel.task_policy(policy)},
                {KernelCall::allowed_nodes, kernel.allowed_nodes(nodes)},
                {KernelCall::protect, kernel.protect(pages_at(0, 1), Access::read_write)},
                {KernelCall::open_sampler, kernel.open_sampler({}, 0, 1, ring)},
            };
            for (const auto& [made, answer] : answers) {
                const int expected = made == call ? error : made == KernelCall::open_sampler ? ENOENT : 0;
                EXPECT_EQ(answer, expected) << name_of(made) << " while " << name_of(call) << " fails";
            }
            kernel.heal();
        }
    }
    EXPECT_EQ(kernel.failures(),
              std::accumulate(std::begin(failing_calls), std::end(failing_calls), std::size_t{0},
                              [](std::size_t sum, KernelCall call) { return sum + errnos_of(call).size(); }));
}

TEST(FailingKernel, FailsTheNthCallAndTheNthPage) {
    SimulatedKernel simulated({10, 10});
    simulated.map(pages_at(0, 4));
    simulated.touch_all(pages_at(0, 4), 0);
    FailingKernel kernel(simulated);
    kernel.fail(KernelCall::move, EPERM, 2);
    EXPECT_EQ(move(kernel, {0}, {1}).error, 0);
    EXPECT_EQ(move(kernel, {1}, {1}).error, EPERM);
    EXPECT_EQ(move(kernel, {1}, {1}).error, 0);
    kernel.refuse_pages(EIO, 2);
    EXPECT_EQ(move(kernel, {2, 3}, {1, 1}).status, (Statuses{1, -EIO}));
    EXPECT_EQ(simulated.where(page_at(3)), 0);
}

} // namespace
} // namespace homing::kernel_simulated_tests
