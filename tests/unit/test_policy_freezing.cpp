// Freezing of pages that ping-pong.
#include "policy/freezing.hpp"

#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "test_policy_truth.hpp"

namespace {

using namespace homing::policy;
using homing::policy::testing::Random;

TEST(Freezer, FreezesAfterReturnsOnly) {
    Freezer freezer; // two returns
    freezer.moved({10, 20}, 0, 1, 1);
    EXPECT_FALSE(freezer.frozen(10));
    freezer.moved({12, 15}, 1, 0, 2); // first return
    EXPECT_FALSE(freezer.frozen(12));
    freezer.moved({12, 13}, 0, 1, 3); // second
    EXPECT_TRUE(freezer.frozen(12));
    EXPECT_FALSE(freezer.frozen(13));
    EXPECT_FALSE(freezer.frozen(11));
    EXPECT_EQ(freezer.frozen_pages(), 1u);
}

TEST(Freezer, OwnersThatMoveOnAreNoPingPong) {
    Freezer freezer;
    for (std::uint32_t round = 1; round < 40; ++round)
        freezer.moved({0, 100}, static_cast<Node>((round - 1) % 4), static_cast<Node>(round % 4), round);
    EXPECT_EQ(freezer.frozen_pages(), 0u);
}

TEST(Freezer, OldMovesAreForgiven) {
    FreezingOptions options;
    options.memory = 10;
    Freezer freezer(options);
    for (std::uint32_t k = 0; k < 20; ++k)
        freezer.moved({0, 4}, static_cast<Node>(k % 2), static_cast<Node>(1 - k % 2), k * 11 + 1);
    EXPECT_EQ(freezer.frozen_pages(), 0u);
}

TEST(Freezer, MovableStretches) {
    FreezingOptions options;
    options.most_returns = 1;
    Freezer freezer(options);
    freezer.moved({0, 100}, 0, 1, 1);
    freezer.moved({20, 30}, 1, 0, 2);
    freezer.moved({50, 60}, 1, 0, 2);
    EXPECT_EQ(freezer.first_movable({0, 100}), (PageRange{0, 20}));
    EXPECT_EQ(freezer.first_movable({20, 100}), (PageRange{30, 50}));
    EXPECT_EQ(freezer.first_movable({25, 28}), (PageRange{28, 28}));
    EXPECT_EQ(freezer.first_movable({55, 500}), (PageRange{60, 500}));
    EXPECT_EQ(freezer.first_movable({200, 210}), (PageRange{200, 210}));
}

TEST(Freezer, ThawsWhenOneNodeWantsThePageForGood) {
    FreezingOptions options;
    options.most_returns = 1;
    options.thaw_after = 3;
    Freezer freezer(options);
    freezer.moved({0, 10}, 0, 1, 1);
    freezer.moved({0, 10}, 1, 0, 2);
    ASSERT_EQ(freezer.frozen_pages(), 10u);
    // Wanted by turns: stays.
    for (std::uint32_t round = 3; round < 20; ++round)
        freezer.wanted({0, 10}, static_cast<Node>(1 + round % 2), round);
    EXPECT_EQ(freezer.frozen_pages(), 10u);
    // With a round missing: the count starts again.
    freezer.wanted({0, 5}, 3, 30);
    freezer.wanted({0, 5}, 3, 31);
    freezer.wanted({0, 5}, 3, 33);
    freezer.wanted({0, 5}, 3, 34);
    EXPECT_EQ(freezer.frozen_pages(), 10u);
    freezer.wanted({0, 5}, 3, 35);
    EXPECT_EQ(freezer.frozen_pages(), 5u);
    EXPECT_FALSE(freezer.frozen(4));
    EXPECT_TRUE(freezer.frozen(5));
    // Thawed pages may move, and freeze again only after new returns.
    freezer.moved({0, 5}, 0, 3, 36);
    EXPECT_FALSE(freezer.frozen(0));
    freezer.moved({0, 5}, 3, 0, 37);
    EXPECT_TRUE(freezer.frozen(0));
}

TEST(Freezer, MemoryIsBounded) {
    FreezingOptions options;
    options.capacity = 64;
    options.most_returns = 1;
    Freezer freezer(options);
    freezer.moved({1'000'000, 1'000'001}, 0, 1, 1);
    freezer.moved({1'000'000, 1'000'001}, 1, 0, 2);
    Random random(1);
    for (std::uint32_t round = 3; round < 2000; ++round) {
        freezer.moved({random.below(100000), random.below(100000) + 2}, 0, 1, round);
        const std::uint64_t page = random.below(100000);
        freezer.moved({page, page + 1}, 0, 1, round);
        EXPECT_LE(freezer.ranges(), 64u);
    }
    EXPECT_TRUE(freezer.frozen(1'000'000)) << "frozen ranges are forgotten last";
}

RC_GTEST_PROP(FreezerProperty, RangesBehaveLikeSinglePages, ()) {
    Random random(*rc::gen::arbitrary<std::uint32_t>());
    struct Page {
        Node from = unknown_node, to = unknown_node;
        std::uint32_t round = 0;
        int returns = 0;
        bool known = false, frozen = false;
    };
    FreezingOptions options;
    options.memory = 6;
    Freezer freezer(options);
    std::map<std::uint64_t, Page> pages;
    for (std::uint32_t round = 1; round < 60; ++round) {
        const std::uint64_t first = random.below(40), end = first + 1 + random.below(15);
        const auto from = static_cast<Node>(random.below(2)), to = static_cast<Node>(random.below(3));
        if (random.below(12) == 0) {
            freezer.forget({first, end});
            for (std::uint64_t p = first; p < end; ++p)
                pages.erase(p);
            continue;
        }
        freezer.moved({first, end}, from, to, round);
        for (std::uint64_t p = first; p < end && from != to; ++p) {
            Page& page = pages[p];
            const bool recent = page.known && round - page.round <= options.memory;
            if (recent && page.from == to && page.to == from)
                page.frozen |= ++page.returns >= options.most_returns;
            else if (!recent)
                page.returns = 0;
            page.from = from;
            page.to = to;
            page.round = round;
            page.known = true;
        }
        std::uint64_t frozen = 0;
        for (std::uint64_t p = 0; p < 60; ++p) {
            const bool expected = pages.count(p) != 0 && pages[p].frozen;
            RC_ASSERT(freezer.frozen(p) == expected);
            frozen += expected;
        }
        RC_ASSERT(freezer.frozen_pages() == frozen);
        std::uint64_t at = 0;
        for (PageRange free = freezer.first_movable({0, 60}); free.first < free.end;
             free = freezer.first_movable({at, 60})) {
            for (std::uint64_t p = at; p < free.first; ++p)
                RC_ASSERT(freezer.frozen(p));
            for (std::uint64_t p = free.first; p < free.end; ++p)
                RC_ASSERT(!freezer.frozen(p));
            at = free.end;
            if (at >= 60) break;
        }
    }
}

} // namespace
