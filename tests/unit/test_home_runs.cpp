#include "sources/home_runs.hpp"

#include "random_numbers.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace homing::home_runs_tests {
namespace {

using Runs = std::vector<HomeRun>;

TEST(HomeRuns, NeighboursOnOneNodeAreARun) {
    EXPECT_EQ(runs_by_home(std::vector{2, 2, 2, 0, 1, 1}, 8), (Runs{{0, 3, 2}, {3, 4, 0}, {4, 6, 1}}));
}

TEST(HomeRuns, ABlockThatIsNotKnownGoesWithTheOneBefore) {
    EXPECT_EQ(runs_by_home(std::vector{-1, -1, 3, -2, 0, -1}, 8), (Runs{{0, 4, 3}, {4, 6, 0}}));
    EXPECT_EQ(runs_by_home(std::vector{-1, -1}, 8), Runs{});
    EXPECT_EQ(runs_by_home(std::span<const int>{}, 8), Runs{});
}

TEST(HomeRuns, TooManyRunsBecomeGroupsOnTheNodeThatHasMost) {
    EXPECT_EQ(runs_by_home(std::vector{0, 1, 0, 0, 2, 2, 1, 2}, 2), (Runs{{0, 4, 0}, {4, 8, 2}}));
    EXPECT_EQ(runs_by_home(std::vector{0, 1, 0, 1, 0}, 1), (Runs{{0, 5, 0}}));
    EXPECT_EQ(runs_by_home(std::vector{1, 1, 0, 0}, 1), (Runs{{0, 4, 0}})); // as many: the lowest
}

TEST(HomeRuns, CoverAllBlocksInOrderAndAreNoMoreThanAllowed) {
    testing::Random random(7);
    for (int round = 0; round < 300; ++round) {
        std::vector<int> nodes(1 + random.below(600));
        const std::uint64_t kinds = 1 + random.below(8);
        for (int& node : nodes)
            node = static_cast<int>(random.below(kinds + 1)) - 1;
        nodes[random.below(nodes.size())] = 0;
        const std::size_t most = 1 + random.below(64);
        const Runs runs = runs_by_home(nodes, most);
        ASSERT_LE(runs.size(), most);
        std::size_t at = 0;
        for (const HomeRun& run : runs) {
            ASSERT_EQ(run.first, at);
            ASSERT_LT(run.first, run.end);
            ASSERT_TRUE(run.node >= 0 && run.node < static_cast<int>(kinds));
            at = run.end;
        }
        ASSERT_EQ(at, nodes.size());
    }
}

} // namespace
} // namespace homing::home_runs_tests
