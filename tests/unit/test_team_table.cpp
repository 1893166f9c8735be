// Which threads make up the team, in which order, and where they run.
#include "machine/team_table.hpp"

#include "model/tuning.hpp"

#include "machines.hpp"
#include "no_kernel.hpp"

#include <gtest/gtest.h>

namespace homing::team_table_tests {
namespace {

/// A process whose threads the test lists.
class ListedKernel : public NoKernel {
  public:
    std::vector<Thread> threads() override {
        ++lists;
        return now;
    }
    std::vector<Thread> now;
    int lists = 0;
};

class TeamTableTest : public ::testing::Test {
  protected:
    Machine machine_ = machine_of(4, 0);
    NodeMap nodes_{machine_.targets()};
    ListedKernel kernel_;
    TeamTable table_{nodes_};
};

TEST_F(TeamTableTest, ThreadsStandInTheOrderInWhichTheyWereMade) {
    kernel_.now = {{100, 0}, {101, 1}, {102, 2}, {103, 3}};
    const std::uint32_t last = table_.touched(103, 3);
    const std::uint32_t first = table_.touched(100, 0);
    table_.update(kernel_);
    EXPECT_EQ(table_.team().threads(), 4);
    EXPECT_EQ(table_.position(first), 0u);
    EXPECT_EQ(table_.position(last), 3u) << "threads that have not touched anything yet stand between them";
    EXPECT_EQ(table_.team().node(2), 2);
}

TEST_F(TeamTableTest, ThreadsThatNeverTouchAreNotOfTheTeam) {
    kernel_.now = {{100, 0}, {101, 3}, {102, 1}};
    for (std::uint32_t i = 0; i < model::tuning::chances; ++i) {
        for (int touch = 0; touch < 8; ++touch) {
            table_.touched(100, 0);
            table_.touched(102, 1);
        }
        table_.update(kernel_);
    }
    EXPECT_EQ(table_.team().threads(), 2);
    EXPECT_EQ(table_.team(), model::Team({0, 1}, 4));
}

TEST_F(TeamTableTest, AThreadThatComesLateInTheFirstRoundsIsOfTheTeam) {
    kernel_.now = {{100, 0}, {101, 1}, {102, 2}, {103, 3}};
    for (int round = 0; round < 3; ++round) {
        for (int touch = 0; touch < 100; ++touch)
            for (int other = 1; other < 4; ++other)
                table_.touched(100 + other, other);
        table_.update(kernel_);
        table_.update(kernel_); // in which nobody touched anything: no round
        table_.update(kernel_);
        EXPECT_EQ(table_.team().threads(), 4) << "900 touches in three rounds are three signs, not 900";
    }
}

TEST_F(TeamTableTest, OurOwnThreadIsNotOfTheTeam) {
    kernel_.now = {{100, 0}, {101, 1}, {102, 3}};
    table_.touched(100, 0);
    table_.update(kernel_); // it has not told its number yet
    table_.update(kernel_, 102);
    EXPECT_EQ(table_.team(), model::Team({0, 1}, 4));
    table_.update(kernel_);
    EXPECT_EQ(table_.team(), model::Team({0, 1}, 4)) << "it has ended";
}

TEST_F(TeamTableTest, TheProcessIsListedOnlyWhenAnUnknownThreadCame) {
    kernel_.now = {{100, 0}, {101, 1}};
    table_.touched(100, 0);
    table_.update(kernel_);
    table_.touched(101, 1);
    table_.update(kernel_);
    EXPECT_EQ(kernel_.lists, 1);
    kernel_.now.push_back({102, 2});
    table_.touched(102, 2);
    table_.update(kernel_);
    EXPECT_EQ(kernel_.lists, 2);
}

TEST_F(TeamTableTest, AThreadThatMovesToAnotherNodeKeepsItsPosition) {
    kernel_.now = {{100, 0}, {101, 1}};
    const std::uint32_t slot = table_.touched(101, 1);
    table_.update(kernel_);
    const std::uint32_t before = table_.version();
    table_.touched(101, 3);
    table_.update(kernel_);
    EXPECT_EQ(table_.position(slot), 1u);
    EXPECT_EQ(table_.team().node(1), 3);
    EXPECT_NE(table_.version(), before) << "beliefs are to be made anew";
}

TEST_F(TeamTableTest, WhoHasGoneStandsForTheSameShareOfTheTeam) {
    for (int thread = 0; thread < 8; ++thread)
        kernel_.now.push_back({100 + thread, thread / 2});
    std::vector<std::uint32_t> slots;
    for (const auto& thread : kernel_.now)
        slots.push_back(table_.touched(thread.number, thread.node));
    table_.update(kernel_);
    kernel_.now = {{100, 0}, {200, 1}, {201, 2}, {202, 3}}; // the runtime has made a smaller team
    table_.touched(200, 1);
    table_.update(kernel_);
    EXPECT_EQ(table_.team().threads(), 4);
    EXPECT_EQ(table_.position(slots[2]), 1u);
    EXPECT_EQ(table_.position(slots[7]), 3u);
}

TEST_F(TeamTableTest, WhoHasGoneStandsForAMemberOnItsNode) {
    kernel_.now = {{100, 0}, {101, 1}, {102, 2}, {103, 3}};
    std::uint32_t slot = 0;
    for (int thread = 0; thread < 4; ++thread)
        slot = table_.touched(100 + thread, thread);
    table_.update(kernel_);
    kernel_.now = {{100, 0}, {104, 3}, {105, 1}, {106, 2}};
    for (const auto& [thread, node] : {std::pair{104, 3}, {105, 1}, {106, 2}})
        table_.touched(thread, node);
    table_.update(kernel_);
    EXPECT_EQ(table_.team(), model::Team({0, 3, 1, 2}, 4));
    EXPECT_EQ(table_.position(slot), 1u) << "node 3's";
}

TEST_F(TeamTableTest, WhoHasGoneIsOfTheTeamWhereItsNodeHasNobodyElse) {
    kernel_.now = {{100, 0}, {101, 2}, {102, 1}, {103, 3}};
    std::uint32_t inner = 0;
    for (const auto& [thread, node] : {std::pair{100, 0}, {101, 2}, {102, 1}, {103, 3}})
        inner = table_.touched(thread, node);
    kernel_.now.resize(2); // the inner teams have ended
    table_.update(kernel_);
    EXPECT_EQ(table_.team(), model::Team({0, 2, 1, 3}, 4));
    EXPECT_EQ(table_.position(inner), 3u);
}

TEST_F(TeamTableTest, OfTeamsThatAreMadeAnewTheNodesCount) {
    int number = 200;
    std::vector<std::uint32_t> slots;
    for (int region = 0; region < 1000; ++region) {
        kernel_.now = {{100, 0}, {101, 2}, {number, 1}, {number + 1, 3}};
        table_.touched(100, 0);
        slots.push_back(table_.touched(number++, 1));
        table_.touched(101, 2);
        slots.push_back(table_.touched(number++, 3));
        if (region % 2) kernel_.now.resize(2); // the inner team has ended
        table_.update(kernel_);
        for (std::size_t i = 0; region > 16 && i < slots.size(); ++i) {
            const auto position = static_cast<int>(table_.position(slots[i]));
            EXPECT_EQ(table_.team().node(position), i % 2 ? 3 : 1);
        }
    }
    EXPECT_EQ(table_.team().threads(), 4);
    EXPECT_LT(slots.back(), 64u) << "a slot for each node, not for each thread that there ever was";
    EXPECT_LT(kernel_.lists, 40);
}

TEST_F(TeamTableTest, ManyThreadsStandInGroupsOfOneNode) {
    for (int thread = 0; thread < 96; ++thread)
        kernel_.now.push_back({100 + thread, thread / 24});
    std::vector<std::uint32_t> slots;
    for (const auto& thread : kernel_.now)
        slots.push_back(table_.touched(thread.number, thread.node));
    table_.update(kernel_);
    EXPECT_LE(table_.team().threads(), model::tuning::most_team_threads);
    for (std::size_t i = 0; i < slots.size(); ++i)
        EXPECT_EQ(table_.team().node(static_cast<int>(table_.position(slots[i]))), static_cast<int>(i) / 24);
}

TEST_F(TeamTableTest, ManyThreadsWithoutGroupsStandForTheirNodes) {
    for (int thread = 0; thread < 97; ++thread)
        kernel_.now.push_back({100 + thread, thread % 4});
    std::vector<std::uint32_t> slots;
    for (const auto& thread : kernel_.now)
        slots.push_back(table_.touched(thread.number, thread.node));
    table_.update(kernel_);
    EXPECT_EQ(table_.team().threads(), 4);
    EXPECT_EQ(table_.position(slots[6]), 2u);
}

TEST_F(TeamTableTest, ASourceThatNamesNoThreadHasOneOfEachNode) {
    const std::uint32_t second = table_.touched(0, 1);
    const std::uint32_t first = table_.touched(0, 0);
    EXPECT_EQ(table_.touched(0, 1), second);
    table_.update(kernel_);
    EXPECT_EQ(table_.position(first), 0u);
    EXPECT_EQ(table_.position(second), 1u);
}

} // namespace
} // namespace homing::team_table_tests
