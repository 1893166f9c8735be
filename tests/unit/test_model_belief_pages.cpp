// What a belief says of single pages: those that were touched themselves, those between them, and those that
// no touch tells of.
#include "belief_test.hpp"
#include "model/verdict.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

namespace homing::model::model_belief_pages_tests {
namespace {

/// Most pages of an area lie with their users, who use runs of them without any order; others were never seen
/// and lie elsewhere, between pages that one node uses. Such that were seen tell whether they are its.
TEST(BeliefTest, PagesBetweenThoseOfANodeAreItsWhereSuchThatWereSeenWere) {
    constexpr std::uint64_t pages = 2000, run = 125;
    const Team team = Team::packed(4, 4);
    const auto owner = [](std::uint64_t page) { return static_cast<int>(page / run * 7 % 16 % 5 % 4); };
    // Every third page was touched, and lies right; so do all others but for one in twenty.
    const auto lies_wrong = [](std::uint64_t page) { return page % 3 != 0 && page % 20 == 7; };
    const Formulas formulas(4);
    for (const bool as_neighbours : {true, false}) {
        std::vector<Touch> touches;
        std::vector<Node> homes;
        Users users;
        for (std::uint64_t page = 0; page < pages; page += 3) {
            users.emplace_back(page, static_cast<Node>(owner(page)));
            if (page % 15 != 0) continue;
            touches.push_back({page, static_cast<std::uint32_t>(owner(page)), 0, false});
            // Seven of those lay elsewhere than their neighbours: wrong, too, or right.
            const bool elsewhere = page % 300 == 15;
            if (!as_neighbours && elsewhere)
                touches.back().thread = static_cast<std::uint32_t>((owner(page) + 1) % 4);
            homes.push_back(static_cast<Node>((owner(page) + elsewhere) % 4));
        }
        Belief belief(formulas, team, Extent(pages), touches, Prior(formulas), homes);
        belief.know_users(users, {});
        ASSERT_GT(belief.probability(Family::home), .5) << as_neighbours;
        std::uint64_t moved = 0, wrong = 0, harmed = 0;
        Prospect prospect;
        for (std::uint64_t page = 0; page < pages; ++page) {
            const auto home = static_cast<Node>(lies_wrong(page) ? (owner(page) + 1) % 4 : owner(page));
            belief.prospect(page, home, prospect);
            const Node to = better_home(prospect, home);
            wrong += lies_wrong(page);
            moved += lies_wrong(page) && to == owner(page);
            harmed += !lies_wrong(page) && to != unknown_node;
        }
        EXPECT_EQ(harmed, 0u) << as_neighbours;
        if (as_neighbours) {
            EXPECT_GE(moved * 10, wrong * 8) << moved << " of " << wrong;
        } else {
            EXPECT_EQ(moved, 0u);
        }
    }
}

/// BLOCK by the touches; a few pages came from another node by so many touches more (a source that shows each
/// page again and again).
TEST(BeliefTest, APageWhoseTouchesComeFromAnotherNodeAgainAndAgainIsThatNodes) {
    constexpr std::uint64_t pages = 1000;
    const Team team = Team::packed(4, 4);
    const Formulas formulas(4);
    std::vector<Touch> touches;
    for (std::uint64_t page = 5; page < pages; page += 20)
        touches.push_back({page, static_cast<std::uint32_t>(page * 4 / pages), 0, false});
    const auto believe = [&](int lead, Repeats repeats) {
        Users users;
        for (std::uint64_t page = 0; page < pages; ++page) {
            const auto owner = static_cast<Node>(page * 4 / pages);
            users.push_back(page == 100 ? User{page, 2, lead} : User{page, owner, 8});
        }
        auto belief = std::make_unique<Belief>(formulas, team, Extent(pages), touches, Prior(formulas));
        belief->know_users(users, repeats);
        return belief;
    };
    const auto nodes_of = [&](const Belief& belief) {
        return std::array{likeliest_node(belief, 99), likeliest_node(belief, 100),
                          likeliest_node(belief, 101), likeliest_node(belief, 900)};
    };
    using Nodes = std::array<Node, 4>;
    for (const int lead : {1, 2}) // strays
        EXPECT_EQ(nodes_of(*believe(lead, {900, 100})), (Nodes{0, 0, 0, 3})) << lead;
    const auto belief = believe(6, {900, 100});
    EXPECT_EQ(nodes_of(*belief), (Nodes{0, 2, 0, 3}));
    EXPECT_EQ(belief->stretch_end(100), 101u);
    EXPECT_LE(belief->stretch_end(90), 100u);
    // Where any node touches a page again, a lead is a chance.
    EXPECT_EQ(nodes_of(*believe(8, {250, 750})), (Nodes{0, 0, 0, 3}));
}

/// The allocator's header shifts an array by 16 bytes, which the thread before has of each block's first
/// page: in a pipeline it comes first, whenever the page is looked at.
TEST(BeliefTest, APageIsNotItsFirstTouchersBecauseThatHasAFewBytesOfIt) {
    constexpr std::uint64_t pages = 1001;
    constexpr float header = 16.0F / 4096;
    const Team team = Team::packed(4, 4);
    const Formulas formulas(4);
    std::vector<Touch> touches;
    Users users;
    for (std::uint64_t page = 0; page < pages; ++page) {
        const auto owner = static_cast<std::uint32_t>(std::min(page * 4 / (pages - 1), std::uint64_t{3}));
        const bool is_cut = page > 0 && page % 250 == 0 && page < pages - 1;
        const std::uint32_t first = owner - is_cut;
        if (page % 16 == 0 || is_cut) touches.push_back({page, first, 0, false, 0});
        if (is_cut) touches.push_back({page, owner, 0, false, header});
        users.push_back({page, static_cast<Node>(page == 252 ? 0 : first), 8});
    }
    Belief belief(formulas, team, Extent(pages, header, pages - 1), touches, Prior(formulas));
    belief.know_users(std::move(users), {900, 10});
    EXPECT_EQ(likeliest_node(belief, 249), 0);
    EXPECT_EQ(likeliest_node(belief, 250), 1);
    EXPECT_EQ(likeliest_node(belief, 251), 1);
    EXPECT_EQ(likeliest_node(belief, 252), 0) << "nobody expects it there: it is that node's own";
    EXPECT_EQ(likeliest_node(belief, 500), 2);
    EXPECT_EQ(likeliest_node(belief, 750), 3);
}

/// A short loop goes over the array's begin, a page a thread; nothing was seen of the rest yet.
TEST(BeliefTest, TouchesOfASmallPartOfAnAreaTellOfThatPartAlone) {
    constexpr std::uint64_t pages = 50;
    const Team team = Team::packed(4, 4);
    const Formulas formulas(4);
    std::vector<Touch> touches;
    const auto moved = [&](bool by_wishes) {
        const Belief belief(formulas, team, pages, touches, Prior(formulas));
        std::size_t beyond = 0;
        Prospect prospect;
        for (std::uint64_t page = 7; page < pages; ++page) {
            belief.prospect(page, 0, prospect);
            beyond += better_home(prospect, 0) != unknown_node;
        }
        if (!by_wishes) return beyond;
        beyond = 0;
        for_each_wish(belief, 0, 0, [&](const Wish& wish) {
            beyond += wish.pages.end > 7 ? wish.pages.end - std::max(wish.pages.first, std::uint64_t{7}) : 0;
            return true;
        });
        return beyond;
    };
    for (const int round : {0, 1})
        for (std::uint64_t page = 0; page < 5; ++page)
            touches.push_back(
                {page, static_cast<std::uint32_t>(page % 4), static_cast<std::uint32_t>(round)});
    EXPECT_EQ(moved(false), 0u);
    EXPECT_EQ(moved(true), 0u);
    touches.push_back({29, 1, 0}); // the same touches, and some of all of it
    touches.push_back({49, 1, 0});
    EXPECT_GT(moved(false), 20u);
    EXPECT_GT(moved(true), 20u);
}

TEST(BeliefTest, EachPageOfNoPatternIsKnownAloneOnly) {
    const Team team = Team::packed(4, 4);
    const Formulas formulas(4);
    std::vector<Touch> touches;
    for (std::uint64_t i = 0; i < 60; ++i)
        for (int again = 0; again < 2; ++again)
            touches.push_back(
                {i * 53 % 2000, static_cast<std::uint32_t>((i * i * 31 + i * 7) % 4), 0, false});
    const Belief belief(formulas, team, 2000, touches, Prior(formulas));
    EXPECT_EQ(belief.likeliest(), Family::none);
    Prospect prospect;
    belief.prospect(touches[10].page, unknown_node, prospect);
    EXPECT_GT(prospect.best[static_cast<std::size_t>(touches[10].thread)], .8);
    belief.prospect(1, unknown_node, prospect);
    EXPECT_LT(*std::ranges::max_element(prospect.best), .5);
}

} // namespace
} // namespace homing::model::model_belief_pages_tests
