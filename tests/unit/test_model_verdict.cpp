// Which pages should move, and what to look at next.
#include "model/questions.hpp"
#include "model/verdict.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace homing::model::model_verdict_tests {
namespace {

using homing::policy::PageRange;

constexpr std::uint64_t pages = 1000;

const Formulas& formulas() {
    static const Formulas four(4);
    return four;
}

/// Touches of every 25th page by its owner in BLOCK over four threads, or by whom `thread` says.
template <class Thread> Belief belief_of(Thread&& thread, const std::vector<Node>& homes = {}) {
    std::vector<Touch> touches;
    for (std::uint64_t page = 7; page < pages; page += 25)
        touches.push_back({page, static_cast<std::uint32_t>(thread(page)), 0, false});
    return {formulas(), Team::packed(4, 4), pages, touches, Prior(formulas()), homes};
}
Belief block() {
    return belief_of([](std::uint64_t page) { return page / 250; });
}

/// Pages that lie on one node; unknown_node: that do not exist.
struct HomeRun {
    PageRange pages;
    Node node;
};
struct Move {
    PageRange pages;
    Node from, to;
};

/// What for_each_wish() moves of pages that lie so, ascending.
std::vector<Move> moves_of(const Belief& belief, const std::vector<HomeRun>& homes) {
    std::vector<Move> moves;
    for_each_wish(belief, 0, 0, [&](const Wish& wish) {
        for (const HomeRun& run : homes) {
            const PageRange both{std::max(wish.pages.first, run.pages.first),
                                 std::min(wish.pages.end, run.pages.end)};
            if (both.first < both.end && !wish.spread && homing::policy::contains(wish.from, run.node))
                moves.push_back({both, run.node, wish.to});
        }
        return true;
    });
    std::ranges::sort(moves, {}, [](const Move& move) { return move.pages.first; });
    std::vector<Move> joined;
    for (const Move& move : moves)
        if (!joined.empty() && joined.back().pages.end == move.pages.first &&
            joined.back().from == move.from && joined.back().to == move.to)
            joined.back().pages.end = move.pages.end;
        else
            joined.push_back(move);
    return joined;
}

TEST(VerdictTest, PagesOfABlockOnOneNodeMoveToTheirOwners) {
    const std::vector<Move> moves = moves_of(block(), {{{0, pages}, 0}});
    ASSERT_EQ(moves.size(), 3u);
    for (std::uint64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(moves[i].pages, (PageRange{250 * (i + 1), 250 * (i + 2)}));
        EXPECT_EQ(moves[i].to, static_cast<Node>(i + 1));
    }
}

TEST(VerdictTest, PagesThatLieRightStay) {
    std::vector<HomeRun> homes;
    for (std::uint64_t i = 0; i < 4; ++i)
        homes.push_back({{250 * i, 250 * (i + 1)}, static_cast<Node>(i)});
    EXPECT_TRUE(moves_of(block(), homes).empty());
}

TEST(VerdictTest, PagesThatDoNotExistStay) {
    const std::vector<Move> moves = moves_of(block(), {{{0, 300}, unknown_node}, {{300, 600}, 0}});
    ASSERT_EQ(moves.size(), 2u);
    EXPECT_EQ(moves[0].pages, (PageRange{300, 500}));
    EXPECT_EQ(moves[1].pages, (PageRange{500, 600}));
}

TEST(VerdictTest, PagesOnANodeOutsideTheTeamStay) {
    EXPECT_TRUE(moves_of(block(), {{{0, pages}, 7}}).empty());
}

TEST(VerdictTest, APageMovesWhereOneNodesTouchesExceedThoseOfItsHomeByTheThreshold) {
    Prospect prospect;
    prospect.best = {0, 0, .9, .1};
    prospect.local = {.2, .25, .41, .14};
    EXPECT_EQ(better_home(prospect, 0, 2), 2);
    EXPECT_EQ(better_home(prospect, 1, 2), unknown_node) << "all others together are no node";
    EXPECT_EQ(better_home(prospect, 1, 1.5), 2);
    prospect.local[2] = .4;
    EXPECT_EQ(better_home(prospect, 0, 2), unknown_node) << "twice as many do not exceed";
    EXPECT_EQ(better_home(prospect, unknown_node, 0), unknown_node);
    EXPECT_EQ(better_home(prospect, 7, 0), unknown_node) << "a node outside the team";
}

TEST(VerdictTest, WhatAllNodesUseAlikeIsToBeSpread) {
    std::minstd_rand random(3);
    const Belief belief = belief_of([&](std::uint64_t) { return random() >> 12 & 3; });
    ASSERT_EQ(belief.likeliest(), Family::shared);
    std::uint64_t spread = 0;
    for_each_wish(belief, 0, 0, [&](const Wish& wish) {
        EXPECT_TRUE(wish.spread);
        EXPECT_EQ(wish.pages.first, spread);
        spread = wish.pages.end;
        return true;
    });
    EXPECT_EQ(spread, pages);
}

TEST(VerdictTest, WishesGoOnFromAnyPage) {
    for_each_wish(block(), 600, 0, [&](const Wish& wish) {
        EXPECT_GE(wish.pages.first, 600u);
        EXPECT_EQ(wish.to, wish.pages.first < 750 ? 2 : 3);
        return true;
    });
}

TEST(VerdictTest, NothingMovesBeforeATouch) {
    const Belief belief(formulas(), Team::packed(4, 4), pages, {}, Prior(formulas()));
    EXPECT_TRUE(moves_of(belief, {{{0, pages}, 0}}).empty());
}

RC_GTEST_PROP(VerdictProperty, WishesSayOfEveryStretchWhatIsBetterThanWhereItLies, ()) {
    const auto owner = static_cast<std::uint64_t>(*rc::gen::inRange(1, 200));
    const auto home = static_cast<Node>(*rc::gen::inRange(0, 4));
    const Belief belief = belief_of([&](std::uint64_t page) { return page / owner % 4; });
    std::vector<Node> moved(pages, unknown_node), wished = moved;
    Prospect prospect;
    for (std::uint64_t page = 0; page < pages;) {
        const std::uint64_t end = belief.stretch_end(page);
        belief.prospect(page + (end - page) / 2, home, prospect);
        if (!is_spread(prospect))
            std::fill(moved.begin() + static_cast<std::ptrdiff_t>(page),
                      moved.begin() + static_cast<std::ptrdiff_t>(end), better_home(prospect, home));
        page = end;
    }
    std::uint64_t before = 0;
    for_each_wish(belief, 0, 0, [&](const Wish& wish) {
        RC_ASSERT(wish.pages.first >= before && wish.pages.end <= pages);
        before = wish.pages.first;
        if (!wish.spread && homing::policy::contains(wish.from, home))
            std::fill(wished.begin() + static_cast<std::ptrdiff_t>(wish.pages.first),
                      wished.begin() + static_cast<std::ptrdiff_t>(wish.pages.end), wish.to);
        return true;
    });
    RC_ASSERT(wished == moved);
}

RC_GTEST_PROP(VerdictProperty, MovesAreDisjointAndNeverToTheSameNode, ()) {
    const auto owner = static_cast<std::uint64_t>(*rc::gen::inRange(1, 200));
    const Belief belief = belief_of([&](std::uint64_t page) { return page / owner % 4; });
    std::vector<HomeRun> homes;
    for (std::uint64_t page = 0; page < pages;) {
        const std::uint64_t end =
            std::min(pages, page + static_cast<std::uint64_t>(*rc::gen::inRange(1, 400)));
        homes.push_back({{page, end}, static_cast<Node>(*rc::gen::inRange(-1, 4))});
        page = end;
    }
    std::uint64_t before = 0;
    for (const Move& move : moves_of(belief, homes)) {
        RC_ASSERT(move.pages.first >= before && move.pages.end > move.pages.first && move.pages.end <= pages);
        RC_ASSERT(move.from != move.to && move.to >= 0 && move.to < 4);
        before = move.pages.end;
    }
}

TEST(QuestionsTest, TheMostTrafficOfWhichTheLeastIsKnownIsAskedFirst) {
    const Subject subjects[] = {
        {100, 1000, .5, 4}, {100, 1000, .5, 40}, {100, 10, .5, 4}, {100, 1000, .01, 4}};
    const auto shares = share_out(subjects, 9, 1);
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), 0u), 9u);
    EXPECT_EQ(shares[0], 9u);
}

TEST(QuestionsTest, NothingIsAskedThatBringsNothing) {
    const Subject subjects[] = {{100, 1000, 0, 40}, {100, 0, .5, 4}};
    const auto shares = share_out(subjects, 50, 1);
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), 0u), 0u);
}

TEST(QuestionsTest, WhatIsBelievedToBeKnownIsAskedNowAndThen) {
    const Subject subjects[] = {{100, 1000, .5, 4}, {100, 3000, .0001, 400}};
    const auto shares = share_out(subjects, 200, 5);
    EXPECT_GT(shares[1], 5u);
    EXPECT_LT(shares[1], 30u);
}

TEST(QuestionsTest, AnAreaThatManyTouchesDidNotExplainLeavesTheNextToOthers) {
    const Subject subjects[] = {{500, 1000, .25, 3000}, {500, 1000, .1, 50}};
    const auto shares = share_out(subjects, 200, 5);
    EXPECT_GT(shares[1], 8 * shares[0]);
}

TEST(QuestionsTest, AnAreaWithoutPagesIsNotAsked) {
    const Subject subjects[] = {{0, 1e9, 1, 0}, {10, 1, 1, 0}};
    EXPECT_EQ(share_out(subjects, 5, 1)[0], 0u);
}

TEST(QuestionsTest, FirstPagesLieEvenly) {
    std::vector<std::uint64_t> asked;
    for (std::uint64_t i = 0; i < 4; ++i)
        asked.push_back(pages_to_ask(nullptr, {}, 1000, i, 1, 42).front());
    std::ranges::sort(asked);
    for (std::size_t i = 1; i < asked.size(); ++i)
        EXPECT_GT(asked[i] - asked[i - 1], 100u);
}

TEST(QuestionsTest, BordersThatAreNotKnownAreAskedMost) {
    // Owners change somewhere between pages 400 and 600.
    std::vector<Touch> touches;
    for (std::uint64_t page = 10; page < pages; page += 20)
        if (page < 400 || page >= 600) touches.push_back({page, page < 400 ? 0u : 3u, 0, true});
    const Belief belief(formulas(), Team::packed(4, 4), pages, touches, Prior(formulas()));
    for (const std::uint32_t at_once : {1u, 8u, 40u}) {
        std::ptrdiff_t inside = 0;
        for (std::uint64_t first = 4; first < 204; first += at_once)
            inside += std::ranges::count_if(pages_to_ask(&belief, {}, pages, first, at_once, 9),
                                            [](std::uint64_t page) { return page >= 390 && page < 610; });
        EXPECT_GT(inside, 85) << at_once << " at once"; // 44 of 200 by chance
    }
}

TEST(QuestionsTest, BordersAreFoundByHalves) {
    const std::uint64_t many = 40000;
    std::vector<Touch> touches;
    std::map<std::uint64_t, Node> known;
    const auto gaps = [&] {
        std::vector<std::uint64_t> found;
        for (auto at = known.begin(), before = at++; at != known.end(); before = at++)
            if (at->second != before->second) found.push_back(at->first - before->first);
        return found;
    };
    for (std::uint64_t first = 0; first < 120; first += 4) {
        const Belief belief(formulas(), Team::packed(4, 4), many, touches, Prior(formulas()));
        Users users;
        for (const auto& [page, node] : known)
            users.push_back({page, node});
        for (const std::uint64_t page : pages_to_ask(&belief, users, many, first, 4, 9)) {
            const Node node = (page >= 12345) + (page >= 22222) + (page >= 30012);
            touches.push_back({page, static_cast<std::uint32_t>(node), 0, true});
            known[page] = node;
        }
    }
    ASSERT_EQ(gaps().size(), 3u);
    for (const std::uint64_t gap : gaps())
        EXPECT_LT(gap, 60u) << "120 touches that lie evenly are 333 pages apart";
}

RC_GTEST_PROP(QuestionsProperty, AskedPagesLieInTheArea, (std::uint64_t first, std::uint64_t seed)) {
    const auto size = static_cast<std::uint64_t>(*rc::gen::inRange(1, 100000));
    const auto count = static_cast<std::uint32_t>(*rc::gen::inRange(0, 200));
    const std::vector<Touch> touches{{0, 0, 0, true}, {size - 1, 3, 0, true}};
    const Belief belief(formulas(), Team::packed(4, 4), size, touches, Prior(formulas()));
    for (const Belief* believed : {static_cast<const Belief*>(nullptr), &belief}) {
        const Users users{{0, 0}, {size - 1, 3}};
        const auto asked = pages_to_ask(believed, users, size, first % 100000, count, seed);
        RC_ASSERT(asked.size() == count);
        RC_ASSERT(std::ranges::all_of(asked, [&](std::uint64_t page) { return page < size; }));
    }
}

} // namespace
} // namespace homing::model::model_verdict_tests
