// What rounds of touches make of an area's belief.
#include "engine/learner.hpp"

#include "areas/block_cover.hpp"
#include "base/random.hpp"
#include "kernel/simulated.hpp"
#include "machines.hpp"
#include "model/verdict.hpp"

#include <gtest/gtest.h>

#include <random>

namespace homing::learner_tests {
namespace {

constexpr int owners = 4;

/// Areas of a program whose threads run on one node each.
class LearnerTest : public ::testing::Test {
  protected:
    WatchedArea& add(std::uint64_t pages, Address site) {
        auto area = std::make_unique<WatchedArea>();
        area->id = static_cast<std::uint32_t>(watch_.areas().size());
        area->granules = pages;
        area->granule = page_bytes();
        area->range = area->group.entry.range = {0, pages * page_bytes()};
        area->group.entry.origin[0] = site;
        area->exists = PageSet::whole(pages);
        area->learnt.reset(pages);
        watch_.areas().push_back(std::move(area));
        return *watch_.areas().back();
    }
    void touch(WatchedArea& area, std::uint64_t page, int node, int home = 0) {
        area.learnt.fresh.push_back({page, team_.touched(1 + node, node), false, 1,
                                     static_cast<model::Node>(node), static_cast<model::Node>(home)});
    }
    /// Every n-th page, by the owner of its block.
    void touch_blocks(WatchedArea& area, std::uint64_t distance, std::uint64_t first = 0) {
        for (std::uint64_t page = first; page < area.granules; page += distance)
            touch(area, page, static_cast<int>(page * owners / area.granules));
    }
    bool round(WatchedArea& area) {
        team_.update(kernel_);
        learner_.begin_round(watch_);
        const bool changed = learner_.take(area, ++iteration_) && learner_.follow_change(area, iteration_);
        if (learner_.is_stale(area)) learner_.fit(area, iteration_);
        return changed;
    }
    policy::Node wanted(const WatchedArea& area, std::uint64_t page, int home) {
        model::Prospect prospect;
        area.learnt.belief->prospect(page, static_cast<model::Node>(home), prospect);
        return model::better_home(prospect, static_cast<model::Node>(home));
    }

    explicit LearnerTest(int nodes = owners)
        : machine_(machine_of(nodes, 0)),
          kernel_(std::vector<std::size_t>(static_cast<std::size_t>(nodes), 16)) {}

    Machine machine_;
    NodeMap nodes_{machine_.targets()};
    WatchList watch_{nodes_, 1};
    SimulatedKernel kernel_;
    TeamTable team_{nodes_};
    Learner learner_{team_};
    std::uint32_t iteration_ = 0;
};

TEST_F(LearnerTest, EightTouchesTellBlocks) {
    WatchedArea& area = add(4000, 0x10);
    touch_blocks(area, 500, 250);
    round(area);
    EXPECT_EQ(area.learnt.belief->words(), "BLOCK over 4 threads");
    EXPECT_EQ(wanted(area, 2500, 0), 2);
}

TEST_F(LearnerTest, ForgottenTouchesCountUntilOwnersChange) {
    WatchedArea& area = add(4000, 0x10);
    for (std::uint64_t first = 0; first < 50; first += 10) {
        touch_blocks(area, 50, first);
        round(area);
    }
    EXPECT_EQ(area.learnt.telling(), 400u) << "how little more of them would tell";
    EXPECT_LE(area.learnt.touches.size(), model::tuning::most_touches);
    area.learnt.doubt();
    EXPECT_EQ(area.learnt.telling(), area.learnt.touches.size());
    EXPECT_EQ(area.learnt.ignorance, 1);
    bool changed = false;
    for (std::uint64_t first = 0; first < 500 && !changed; first += 25) {
        for (std::uint64_t page = first; page < 4000; page += 500)
            touch(area, page, owners - 1 - static_cast<int>(page * owners / 4000));
        changed = round(area);
    }
    EXPECT_TRUE(changed);
    EXPECT_EQ(area.learnt.telling(), area.learnt.touches.size());
    EXPECT_GT(area.learnt.taken, 400u);
}

TEST_F(LearnerTest, AnAreaOfAKnownSizeNeedsFewerTouches) {
    WatchedArea& known = add(4000, 0x10);
    touch_blocks(known, 100, 50);
    round(known);
    WatchedArea& alone = add(5000, 0x30);
    touch(alone, 700, 0);
    touch(alone, 4200, 3);
    round(alone);
    WatchedArea& sibling = add(4000, 0x20);
    touch(sibling, 560, 0);
    touch(sibling, 3360, 3);
    round(sibling);
    EXPECT_GT(sibling.learnt.belief->probability(model::Family::block),
              alone.learnt.belief->probability(model::Family::block) + .1);
}

TEST_F(LearnerTest, AnArrayThatTheProgramAlignedWithinItsMemoryHasItsOwnBorders) {
    // Rows of pages, of which the upper half belongs to other threads, from the first whole page on. Touches
    // of unknown bytes, and of each page's first byte: what lies before a malloc's header's end is, if the
    // array begins behind that, of the block before.
    // Where it has taken a page too many, that does not exist.
    struct Case {
        int row;
        float within;
        std::uint64_t more;
    };
    for (const auto& [row, within, more] : {Case{2, -1, 0}, {8, -1, 0}, {8, 0, 0}, {8, 0, 1}}) {
        WatchedArea& area = add(1024 + more, 0x10);
        area.origin = Address{1} << 44;
        area.range = {area.origin, area.origin + area.granules * page_bytes()};
        area.group.entry.range = {area.range.begin - 4080, area.range.end + 16};
        area.exists = PageSet({{0, 1024}});
        const auto owner = [row](std::uint64_t page) {
            return static_cast<int>(page / 512 * 2 + 2 * page / static_cast<unsigned>(row) % 2);
        };
        for (std::uint64_t i = 1; i <= 96; ++i) {
            const std::uint64_t page = (i * 0x9e3779b97f4a7c15u >> 32) * i % 1024; // in no order
            touch(area, page, owner(page));
            area.learnt.fresh.back().within = within;
        }
        round(area);
        std::uint64_t right = 0;
        for (std::uint64_t page = 0; page < 1024; ++page)
            right += wanted(area, page, (owner(page) + 1) % owners) == owner(page);
        EXPECT_GT(right, 1014u) << area.learnt.belief->words() << ", rows of " << row << ", " << within;
    }
}

TEST_F(LearnerTest, AnArrayOfWholeRoundsWasNotAlignedWhoeverComesFirst) {
    // As in a pipelined wavefront, a thread is through with the last words of its part, which lie in the next
    // one's first page (malloc's header goes before them), before the next thread comes to that page.
    constexpr std::uint64_t rounds = 32, of_round = 32, page = 4096, header = 16;
    WatchedArea& area = add(rounds * of_round - 1, 0x10);
    area.origin = Address{1} << 44;
    area.range = {area.origin, area.origin + area.granules * page_bytes()};
    const Address begin = area.range.begin - page + header;
    area.group.entry.range = {begin, begin + rounds * of_round * page};
    const auto owner = [](std::uint64_t byte) { return static_cast<int>(byte / page / 8 % owners); };
    for (std::uint64_t i = 1; i <= 160; ++i) {
        const std::uint64_t at = (i * 0x9e3779b97f4a7c15u >> 32) * i % area.granules; // in no order
        touch(area, at, owner(at * page + page - header));
        area.learnt.fresh.back().within = 0;
        if (i % 20 == 0) round(area);
    }
    std::uint64_t right = 0;
    for (std::uint64_t at = 0; at < area.granules; ++at) {
        const int most = owner(at * page + page); // but for the first words
        right += wanted(area, at, (most + 1) % owners) == most;
    }
    EXPECT_EQ(right, area.granules) << area.learnt.belief->words();
}

TEST_F(LearnerTest, PagesStayUntilItIsKnownWhetherTheirArrayIsAlignedByHand) {
    // Tiles with runs of four pages: behind malloc's header, or from the next page on. One page of four
    // belongs to another tile then.
    constexpr std::uint64_t column = 8, columns = 128, page = 4096, header = 16;
    const auto owner = [](std::uint64_t at) {
        return static_cast<int>(at % column / (column / 2) + 2 * (at / column / (columns / 2)));
    };
    int harmed = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
        WatchedArea& area = add(column * columns, 0x10 + seed);
        area.origin = Address{1} << 44;
        area.range = {area.origin, area.origin + area.granules * page_bytes()};
        const Address begin = area.range.begin - page + header;
        area.group.entry.range = {begin, begin + area.granules * page + page};
        std::mt19937 random(seed);
        for (int i = 0; i < 32; ++i) {
            const std::uint64_t at = random() % area.granules;
            touch(area, at, owner(at));
            area.learnt.fresh.back().within = 0;
            if (i % 8 == 7) round(area);
        }
        std::uint64_t wrong = 0;
        for (std::uint64_t at = 0; at < area.granules; ++at) {
            const policy::Node node = wanted(area, at, owner(at));
            wrong += node >= 0 && node != owner(at);
        }
        harmed += wrong > area.granules / 100;
    }
    EXPECT_LE(harmed, 2); // where the likelier of both is taken for certain: 7
}

TEST_F(LearnerTest, ArraysThatShareTheHeapAreEachDividedByAFewTouches) {
    constexpr std::size_t arrays = 40, bytes = 64000; // with headers some 15.6 pages each
    WatchedArea& area = add(arrays * (bytes + 16) / page_bytes() + 1, 0x10);
    area.group.entry.kind = AreaKind::arena;
    const Address heap = Address{1} << 44;
    area.range = area.group.entry.range = {heap, heap + area.granules * page_bytes()};
    area.origin = heap;
    std::vector<Range> blocks;
    for (std::size_t i = 0; i < arrays; ++i) {
        const Address begin = heap + i * (bytes + 16) + 16;
        blocks.push_back({begin, begin + bytes});
        block_cover().add(blocks.back(), 0);
    }
    const auto owner = [&](std::uint64_t page) { // of the array in its middle
        const std::size_t middle = page * page_bytes() + page_bytes() / 2;
        return static_cast<int>(middle % (bytes + 16) * owners / (bytes + 16));
    };
    for (std::uint64_t i = 0; i < 16; ++i)
        touch(area, i * 239 % area.granules, owner(i * 239 % area.granules));
    round(area);
    EXPECT_EQ(area.learnt.belief->words(), "each BLOCK over 4 threads");
    std::uint64_t right = 0;
    for (std::uint64_t page = 0; page < area.granules; ++page)
        right += wanted(area, page, (owner(page) + 1) % owners) == owner(page);
    EXPECT_GT(right, area.granules * 85 / 100) << "one page of 16 lies at a border, and may go either way";
    for (const Range& block : blocks)
        block_cover().remove(block);
}

TEST_F(LearnerTest, ABeliefDoesNotFeedOnItself) {
    WatchedArea& area = add(4000, 0x10);
    WatchedArea& sibling = add(4000, 0x10);
    for (WatchedArea* each : {&area, &sibling}) {
        touch(*each, 560, 0);
        touch(*each, 3360, 3);
    }
    round(area);
    round(sibling);
    const double first = area.learnt.belief->probability(model::Family::block);
    for (int i = 0; i < 50; ++i) {
        learner_.begin_round(watch_);
        learner_.fit(area, iteration_);
        learner_.fit(sibling, iteration_);
    }
    EXPECT_LT(area.learnt.belief->probability(model::Family::block), std::max(.9, first + .3))
        << "two touches of two areas stay two touches";
}

TEST_F(LearnerTest, PagesThatAlwaysComeFromOneNodeHaveOwnersOfTheirOwn) {
    WatchedArea& area = add(400, 0x10);
    const auto owner = [](std::uint64_t page) { return static_cast<int>(mixed(page) & 3); };
    for (int i = 0; i < 4; ++i) {
        for (std::uint64_t page = 0; page < 400; page += 2)
            touch(area, page, owner(page));
        round(area);
    }
    EXPECT_GT(area.learnt.belief->own_owners(), .8);
    for (std::uint64_t page = 0; page < 400; page += 2)
        EXPECT_EQ(wanted(area, page, 0), owner(page) == 0 ? policy::unknown_node : owner(page)) << page;
    EXPECT_EQ(wanted(area, 11, 0), policy::unknown_node) << "never seen";
}

TEST_F(LearnerTest, PagesThatAllNodesTouchInTurnHaveNone) {
    WatchedArea& area = add(400, 0x10);
    for (int i = 0; i < 8; ++i) {
        for (std::uint64_t page = 0; page < 400; page += 2)
            touch(area, page,
                  static_cast<int>((page * 2654435761u >> 7) + static_cast<std::uint64_t>(i) * 7 / 3) & 3);
        round(area);
    }
    EXPECT_LT(area.learnt.belief->own_owners(), .3);
}

TEST_F(LearnerTest, ANeighbourThatAlwaysComesFirstDoesNotOwnThePageAtTheBorder) {
    WatchedArea& area = add(400, 0x10);
    for (int i = 0; i < 8; ++i) {
        touch_blocks(area, 5, 2);
        for (const std::uint64_t border : {100u, 200u, 300u})
            touch(area, border, static_cast<int>(border / 100) - 1);
        round(area);
    }
    EXPECT_LT(area.learnt.belief->own_owners(), .1) << "one page of 80 says nothing of the others";
    EXPECT_EQ(wanted(area, 99, 3), 0);
    EXPECT_EQ(wanted(area, 102, 3), 1) << "the border may lie on either side of 101";
}

TEST_F(LearnerTest, OwnersThatChangePlacesAreNoticedInOneRound) {
    WatchedArea& area = add(4000, 0x10);
    for (int i = 0; i < 4; ++i) {
        touch_blocks(area, 125, static_cast<std::uint64_t>(i) * 13);
        EXPECT_FALSE(round(area)) << "they stay the same";
    }
    for (std::uint64_t page = 60; page < 4000; page += 125)
        touch(area, page, owners - 1 - static_cast<int>(page * owners / 4000));
    EXPECT_TRUE(round(area));
    EXPECT_EQ(wanted(area, 100, 0), 3);
}

TEST_F(LearnerTest, TwiceTheTouchesMayKnowBetter) {
    WatchedArea& area = add(4000, 0x10);
    touch_blocks(area, 125);
    round(area);
    EXPECT_FALSE(area.learnt.may_know_better()) << "nothing was sent away";
    area.learnt.sent_away(0, 2000, 0);
    EXPECT_TRUE(area.learnt.goes_back(1, 0));
    touch_blocks(area, 250, 60);
    round(area);
    EXPECT_FALSE(area.learnt.may_know_better()) << "48 touches after 32: beliefs waver";
    touch_blocks(area, 250, 130);
    round(area);
    EXPECT_TRUE(area.learnt.may_know_better()) << "64";
    area.learnt.forget_departures(area.granules);
    EXPECT_FALSE(area.learnt.goes_back(1, 0));
}

TEST_F(LearnerTest, WhereLittleIsLeftToLearnFewTouchesMoreMakeNoNewBelief) {
    WatchedArea& area = add(4000, 0x10);
    touch_blocks(area, 100, 50);
    round(area);
    ASSERT_EQ(area.learnt.fits, 1u);
    const auto touched_more = [&](std::uint64_t distance, std::uint64_t first) {
        touch_blocks(area, distance, first);
        learner_.take(area, ++iteration_);
        return learner_.is_stale(area);
    };
    area.learnt.ignorance = 0.01;
    EXPECT_FALSE(touched_more(250, 20)) << "16 beside 40";
    area.learnt.ignorance = 0.2;
    EXPECT_TRUE(learner_.is_stale(area)) << "they may tell";
    area.learnt.ignorance = 0.01;
    EXPECT_TRUE(touched_more(150, 70)) << "27 more";
}

TEST_F(LearnerTest, ABeliefThatThereWasNoTimeForIsMadeLater) {
    WatchedArea& area = add(4000, 0x10);
    touch(area, 500, 0);
    touch(area, 3500, 3);
    round(area);
    ASSERT_EQ(area.learnt.fits, 1u);
    for (int i = 0; i < 5; ++i) { // more than is kept
        touch_blocks(area, 40, 20);
        learner_.take(area, ++iteration_);
    }
    ASSERT_GT(area.learnt.unfitted, area.learnt.touches.size());
    EXPECT_TRUE(learner_.is_stale(area));
}

TEST_F(LearnerTest, TouchesOfAnEarlierPhaseAreThoseThatWereSeenByThen) {
    // Thousands of the first phase, of which a part is kept. Later that place and another use the area in
    // ways of their own.
    WatchedArea& area = add(4000, 0x10);
    const auto touch_from = [&](std::uint32_t place, std::uint64_t distance, std::uint64_t first, int shift) {
        for (std::uint64_t page = first; page < 4000; page += distance) {
            touch(area, page, (static_cast<int>(page * owners / 4000) + shift) % owners);
            area.learnt.fresh.back().place = place;
        }
    };
    touch_from(1, 1, 0, 0);
    area.learnt.begin_phase();
    round(area);
    for (std::uint64_t i = 0; i < 6; ++i) {
        touch_from(1, 500, 30 * i, 0);
        touch_from(2, 500, 30 * i + 17, 2);
        round(area);
    }
    EXPECT_EQ(area.learnt.places.size(), 1u);
}

/// As many nodes as have less than a fifth of what all use.
class LearnerOnEightNodes : public LearnerTest {
  protected:
    LearnerOnEightNodes() : LearnerTest(8) {}
};

TEST_F(LearnerOnEightNodes, WhatAllNodesUseAlikeIsNoSurprise) {
    WatchedArea& area = add(4000, 0x10);
    std::minstd_rand random(1);
    int surprises = 0;
    for (int i = 0; i < 20; ++i) {
        for (int k = 0; k < 16; ++k)
            touch(area, random() >> 4 & 2047, static_cast<int>(random() >> 16 & 7));
        round(area);
        surprises += area.learnt.surprised;
    }
    EXPECT_GT(area.learnt.belief->probability(model::Family::shared), .8);
    EXPECT_LE(surprises, 4);
}

TEST_F(LearnerTest, AnAreaThatGrowsIsNumberedAnew) {
    WatchedArea& area = add(4000, 0x10);
    area.exists = PageSet({{0, 1000}});
    for (std::uint64_t page = 30; page < 1000; page += 61)
        touch(area, page, static_cast<int>(page * owners / 1000));
    round(area);
    EXPECT_EQ(wanted(area, 900, 0), 3);
    area.exists = PageSet::whole(4000);
    EXPECT_TRUE(learner_.is_stale(area));
    EXPECT_FALSE(area.learnt.is_of(area.there().size())) << "nothing is to be judged by the older numbers";
    touch_blocks(area, 100, 50);
    round(area);
    EXPECT_EQ(area.learnt.belief->pages(), 4000u);
}

} // namespace
} // namespace homing::learner_tests
