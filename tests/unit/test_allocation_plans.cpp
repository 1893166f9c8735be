// Blocks whose pages come into being where they belong, and whose memory keeps nothing of that.
#include "areas/allocation_plans.hpp"
#include "failing.hpp"
#include "kernel/simulated.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <memory>
#include <thread>
#include <vector>

namespace homing::allocation_plans_tests {
namespace {

using NodeRun = AllocationPlans::Run;

constexpr Address memory = Address{1} << 40;
constexpr std::size_t pages = 64;
constexpr std::array<NodeRun, 3> thirds{{{16, 1}, {32, -1}, {64, 2}}};

class AllocationPlansTest : public ::testing::Test {
  protected:
    AllocationPlansTest() { simulated.map({memory, memory + 1024 * page_bytes()}); }

    /// As glibc does it: a header of two words stands before a block.
    static Range block(std::size_t first = 0) {
        const Address begin = memory + first * page_bytes() + 16;
        return {begin, begin + pages * page_bytes()};
    }
    int node_of(std::size_t page) const { return simulated.where(memory + page * page_bytes()); }
    int mode_at(std::size_t page) {
        MemoryPolicy policy;
        EXPECT_EQ(simulated.policy_at(memory + page * page_bytes(), policy), 0);
        return policy.plain_mode();
    }

    SimulatedKernel simulated{{4096, 4096, 4096, 4096}};
    FailingKernel kernel{simulated};
    std::unique_ptr<AllocationPlans> plans = std::make_unique<AllocationPlans>();
};

TEST_F(AllocationPlansTest, PagesComeIntoBeingWhereTheyBelongWhoeverTouchesThem) {
    plans->publish(7, thirds, kernel);
    EXPECT_TRUE(plans->any());
    plans->begins(block(), 7);
    simulated.touch_all({memory, memory + (pages + 1) * page_bytes()}, 3);
    EXPECT_EQ(node_of(0), 3) << "the page that others have a part of";
    EXPECT_EQ(node_of(1), 1);
    EXPECT_EQ(node_of(16), 1);
    EXPECT_EQ(node_of(17), 3) << "first touch decides";
    EXPECT_EQ(node_of(33), 2);
    EXPECT_EQ(node_of(63), 2);
    EXPECT_EQ(node_of(64), 3) << "the last page is others' too";
    EXPECT_EQ(plans->placed(), 1u);
}

TEST_F(AllocationPlansTest, MemoryOfABlockThatEndedHasNoPolicy) {
    plans->publish(7, thirds, kernel);
    plans->begins(block(), 7);
    EXPECT_EQ(mode_at(5), MPOL_PREFERRED);
    plans->ends(block(100)); // another one
    EXPECT_EQ(mode_at(5), MPOL_PREFERRED);
    plans->ends(block());
    for (std::size_t page = 0; page < pages; ++page)
        EXPECT_EQ(mode_at(page), MPOL_DEFAULT) << page;
    const std::size_t calls = simulated.calls(KernelCall::bind);
    plans->ends(block());
    EXPECT_EQ(simulated.calls(KernelCall::bind), calls);
}

TEST_F(AllocationPlansTest, BlocksOfOtherPlacesAreLeftAlone) {
    plans->publish(7, thirds, kernel);
    plans->begins(block(), 8);
    EXPECT_EQ(simulated.calls(KernelCall::bind), 0u);
    plans->publish(7, {}, kernel);
    EXPECT_FALSE(plans->any());
    plans->begins(block(), 7);
    EXPECT_EQ(simulated.calls(KernelCall::bind), 0u);
    plans->publish(7, thirds, kernel);
    plans->publish(9, thirds, kernel);
    plans->withdraw();
    EXPECT_FALSE(plans->any());
}

TEST_F(AllocationPlansTest, ABlockThatCannotBeRememberedIsNotPlaced) {
    plans->publish(7, thirds, kernel);
    for (std::size_t i = 0; i <= AllocationPlans::most_placed; ++i)
        plans->begins({memory + 16 + i, memory + 16 + i + pages * page_bytes()}, 7);
    EXPECT_EQ(plans->placed(), AllocationPlans::most_placed);
    for (std::size_t i = 0; i <= AllocationPlans::most_placed; ++i)
        plans->ends({memory + 16 + i, memory + 16 + i + pages * page_bytes()});
    EXPECT_EQ(mode_at(5), MPOL_DEFAULT);
}

TEST_F(AllocationPlansTest, ABlockInThePlaceOfOneWhoseEndWasMissedIsRememberedOnce) {
    plans->publish(7, thirds, kernel);
    for (std::size_t i = 0; i < 2 * AllocationPlans::most_placed; ++i)
        plans->begins(block(), 7);
    EXPECT_EQ(plans->placed(), 2 * AllocationPlans::most_placed);
    plans->ends(block());
    const std::size_t calls = simulated.calls(KernelCall::bind);
    plans->ends(block());
    EXPECT_EQ(simulated.calls(KernelCall::bind), calls);
}

TEST_F(AllocationPlansTest, TheOldestPlanGoesWhereThereIsNoRoom) {
    for (std::uint64_t key = 1; key <= AllocationPlans::most_plans + 1; ++key)
        plans->publish(key, thirds, kernel);
    plans->begins(block(), 1);
    EXPECT_EQ(plans->placed(), 0u);
    plans->begins(block(), 2);
    EXPECT_EQ(plans->placed(), 1u);
}

TEST_F(AllocationPlansTest, APolicyThatTheKernelRefusesCostsNothing) {
    plans->publish(7, thirds, kernel);
    kernel.fail(KernelCall::bind, ENOMEM);
    plans->begins(block(), 7);
    simulated.touch_all(block(), 0);
    EXPECT_EQ(node_of(5), 0);
    EXPECT_EQ(plans->placed(), 0u);
    plans->ends(block());
}

/// Plans change while blocks begin and end: what is placed is placed by one plan or the other, never by a mix
/// of them, and nothing of it stays.
TEST_F(AllocationPlansTest, WithThreadsABlockIsPlacedByOnePlan) {
    /// Counts runs by node; only what a thread does itself.
    struct Counting final : FailingKernel {
        using FailingKernel::FailingKernel;
        int bind(Range range, MemoryPolicy policy) noexcept override {
            static thread_local int first = -1;
            if (policy.plain_mode() == MPOL_DEFAULT) {
                first = -1;
            } else {
                const int node = policy.nodes.first();
                if (first >= 0 && first != node) mixed.fetch_add(1);
                first = node;
            }
            return range.empty() ? EINVAL : 0;
        }
        std::atomic<int> mixed{0};
    };
    Counting counting(simulated);
    const auto all_on = [](int node) {
        std::array<NodeRun, 16> runs{};
        for (std::uint32_t i = 0; i < runs.size(); ++i)
            runs[i] = {4 * (i + 1), node};
        return runs;
    };
    plans->publish(7, all_on(0), counting);
    std::atomic<bool> ended{false};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 3000; ++i) {
                plans->begins(block(100 * t), 7);
                plans->ends(block(100 * t));
            }
        });
    std::thread publisher([&] {
        for (int node = 0; !ended; node = (node + 1) % 4)
            plans->publish(7, all_on(node), counting);
    });
    for (std::thread& thread : threads)
        thread.join();
    ended = true;
    publisher.join();
    EXPECT_GT(plans->placed(), 0u);
    EXPECT_EQ(counting.mixed, 0);
}

} // namespace
} // namespace homing::allocation_plans_tests
