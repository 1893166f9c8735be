// The memory of an area's touches: bounded, and without what came before a change of owners.
#include "base/invariant.hpp"
#include "model/touches.hpp"
#include "test_all.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace homing::model::model_touches_tests {
namespace {

constexpr std::uint64_t pages = 4000;
using Owner = std::function<int(double y, std::mt19937_64& random)>;

Owner block(int threads, int rotated = 0) {
    return [=](double y, std::mt19937_64&) { return (static_cast<int>(y * threads) + rotated) % threads; };
}
Owner shared(int threads) {
    return [=](double, std::mt19937_64& random) {
        return static_cast<int>(random() % static_cast<std::uint64_t>(threads));
    };
}
Owner irregular(int threads) {
    return [=](double y, std::mt19937_64&) {
        std::mt19937_64 page(static_cast<std::uint64_t>(y * pages));
        return static_cast<int>(page() % static_cast<std::uint64_t>(threads));
    };
}
Owner halo(int threads) {
    return [=](double y, std::mt19937_64& random) {
        const double moved = y + (random() % 3 == 0 ? .3 / threads : 0);
        return std::min(threads - 1, static_cast<int>(moved * threads));
    };
}

void touch(Touches& touches, const Owner& owner, int count, std::uint32_t iteration, std::mt19937_64& random,
           std::uint32_t place = 0) {
    for (int i = 0; i < count; ++i) {
        const std::uint64_t page = random() % pages;
        const int thread = owner((static_cast<double>(page) + .5) / pages, random);
        touches.add({{page, static_cast<std::uint32_t>(thread)}, iteration, 0, place}, pages);
    }
}

/// As the belief is to see them.
std::vector<Touch> seen_at(Touches& touches, std::uint32_t iteration) {
    const auto seen = touches.at(iteration);
    return {seen.begin(), seen.end()};
}

struct Setting {
    Team team = Team::packed(8, 4);
    Formulas formulas{8};
    Prior prior{formulas};
    bool follow(Touches& touches) const {
        return touches.follow_change(formulas, team, pages, prior, seen_at(touches, touches.newest()));
    }
};

TEST(TouchesTest, OwnersThatChangePlacesAreNoticedAfterSixteenTouches) {
    const Setting setting;
    int noticed = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        std::mt19937_64 random(seed);
        Touches touches;
        touch(touches, block(8), 60, 1, random);
        touch(touches, block(8, 2), 16, 2, random);
        if (!setting.follow(touches)) continue;
        ++noticed;
        EXPECT_LE(touches.size(), 40u);
    }
    EXPECT_GE(noticed, 19);
}

TEST(TouchesTest, StableOwnersAreHardlyEverTakenForChanged) {
    const Setting setting;
    int alarms = 0, questions = 0;
    for (const Owner& owner : {block(8), shared(8), irregular(8), halo(8)})
        for (std::uint64_t seed = 1; seed <= test_rounds(2u, 4u); ++seed) {
            std::mt19937_64 random(seed);
            Touches touches;
            for (std::uint32_t iteration = 1; iteration <= 10; ++iteration) {
                touch(touches, owner, 8, iteration, random);
                alarms += setting.follow(touches);
                ++questions;
            }
        }
    EXPECT_LE(alarms, questions / 100) << "of " << questions;
}

TEST(TouchesTest, AnAreaThatBecomesSharedIsNoticed) {
    const Setting setting;
    std::mt19937_64 random(4);
    Touches touches;
    touch(touches, block(8), 60, 1, random);
    bool noticed = false;
    for (std::uint32_t iteration = 2; iteration < 8; ++iteration) {
        touch(touches, shared(8), 8, iteration, random);
        noticed |= setting.follow(touches);
    }
    EXPECT_TRUE(noticed);
    const Belief belief(setting.formulas, setting.team, pages, seen_at(touches, 8), setting.prior);
    EXPECT_GT(belief.probability(Family::shared), .8);
}

/// As the passes of a Fourier transform along two dimensions do; of an iteration now the one, now the other
/// shows most.
TEST(TouchesTest, PlacesThatUseAnAreaInWaysOfTheirOwnAreNoChange) {
    const Setting setting;
    int alarms = 0, alarms_without_places = 0;
    const int seeds = test_rounds(4, 8);
    for (int seed = 1; seed <= seeds; ++seed) {
        std::mt19937_64 random(static_cast<std::uint64_t>(seed));
        Touches touches, without_places;
        for (std::uint32_t iteration = 1; iteration <= 10; ++iteration) {
            const bool first = random() % 2 == 0;
            std::mt19937_64 same = random;
            touch(touches, block(8), first ? 10 : 2, iteration, random, 1);
            touch(touches, block(8, 3), first ? 2 : 10, iteration, random, 2);
            touch(without_places, block(8), first ? 10 : 2, iteration, same);
            touch(without_places, block(8, 3), first ? 2 : 10, iteration, same);
            alarms += setting.follow(touches);
            alarms_without_places += setting.follow(without_places);
        }
    }
    EXPECT_LE(alarms, 1);
    EXPECT_GT(alarms_without_places, seeds) << "the touches tell nothing of places";
}

/// As short loops on the begin of an array do, beside sweeps over all of it: scans of the kernel show now the
/// one, now the other. What a place shows of a few pages again and again is no change of the others' owners.
TEST(TouchesTest, AFewPagesThatOnePlaceUsesInItsWayAreNoChangeOfOwners) {
    constexpr std::uint64_t few_pages = 50;
    const Team team = Team::packed(4, 4);
    const Formulas formulas(4);
    const Prior prior(formulas);
    int alarms = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        std::mt19937_64 random(seed);
        Touches touches;
        const auto sweep = [&](std::uint32_t iteration, std::uint32_t place, std::uint64_t end) {
            for (std::uint64_t page = 0; page < end; ++page)
                touches.add({{page, static_cast<std::uint32_t>(4 * page / few_pages)}, iteration, 0, place},
                            few_pages);
        };
        const auto begin = [&](std::uint32_t iteration) { // each thread a page and a bit
            for (std::uint32_t page = 0; page < 5; ++page)
                touches.add({{page, std::min(page - (page > 0 && random() % 4 == 0), 3u)}, iteration, 0, 3},
                            few_pages);
        };
        const auto follow = [&](std::uint32_t iteration) {
            alarms += touches.follow_change(formulas, team, few_pages, prior, seen_at(touches, iteration));
        };
        sweep(0, 0, 11); // of the program's begin
        touches.begin_phase();
        sweep(34, 1, 50);
        begin(34);
        follow(34);
        begin(38);
        follow(38);
        sweep(41, 2, 40);
        follow(41);
        for (const std::uint32_t iteration : {42, 44}) {
            begin(iteration);
            follow(iteration);
        }
    }
    EXPECT_EQ(alarms, 0);
}

/// No tiles are made of them.
TEST(TouchesTest, OfPlacesThatUseAnAreaInWaysOfTheirOwnOneLeads) {
    const Setting setting;
    using Places = std::vector<std::uint32_t>;
    const auto leading = [&](Touches& touches, const Places& before = {}) {
        return touches.leading_places(setting.formulas, setting.team, pages, setting.prior,
                                      seen_at(touches, 1), before);
    };
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        std::mt19937_64 random(seed);
        Touches differ, alike;
        touch(differ, block(8), 30, 1, random, 1);
        touch(differ, block(8, 3), 25, 1, random, 2);
        EXPECT_EQ(leading(differ), Places{1});
        EXPECT_EQ(leading(differ, {2}), Places{2}) << "it tells nearly as much";
        touch(differ, block(8), 30, 1, random, 1);
        EXPECT_EQ(leading(differ, {2}), Places{1});
        touch(alike, block(8), 30, 1, random, 1);
        touch(alike, halo(8), 20, 1, random, 2);
        EXPECT_EQ(leading(alike), Places{}) << seed;
    }
}

/// As in a Fourier transform: the passes along two dimensions and the update share out the same planes, the
/// pass along the third one, which alone has more touches than each of them, does it otherwise.
TEST(TouchesTest, PlacesThatUseAnAreaInOneWayLeadTogether) {
    const Setting setting;
    int together = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        std::mt19937_64 random(seed);
        Touches touches;
        touch(touches, block(8), 24, 1, random, 1);
        touch(touches, block(8), 20, 1, random, 2);
        touch(touches, block(8), 20, 1, random, 4);
        touch(touches, block(8, 3), 40, 1, random, 3);
        together += touches.leading_places(setting.formulas, setting.team, pages, setting.prior,
                                           seen_at(touches, 1), {}) == std::vector<std::uint32_t>{1, 2, 4};
    }
    EXPECT_GE(together, 9);
}

/// As in a transpose: one pass goes by rows, the other one by columns, of which each page has a bit of all.
TEST(TouchesTest, APlaceThatNoPlacementHelpsDoesNotLead) {
    const Setting setting;
    int by_rows = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        std::mt19937_64 random(seed);
        Touches touches;
        touch(touches, block(8), 20, 1, random, 1);
        touch(touches, shared(8), 80, 1, random, 2);
        by_rows += touches.leading_places(setting.formulas, setting.team, pages, setting.prior,
                                          seen_at(touches, 1), {}) == std::vector<std::uint32_t>{1};
    }
    EXPECT_EQ(by_rows, 10);
}

TEST(TouchesTest, OwnersThatChangeAtEachPlaceAreNoticed) {
    const Setting setting;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        std::mt19937_64 random(seed);
        Touches touches;
        for (const std::uint32_t place : {1, 2, 3})
            touch(touches, block(8), 20, 1, random, place);
        for (const std::uint32_t place : {1, 2, 3})
            touch(touches, block(8, 2), 10, 2, random, place);
        EXPECT_TRUE(setting.follow(touches)) << seed;
    }
}

TEST(TouchesTest, AnotherPhaseOfTheProgramIsNoticedAlthoughItsPlacesAreOthers) {
    const Setting setting;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        std::mt19937_64 random(seed);
        Touches touches;
        touch(touches, block(8), 60, 1, random, 1);
        touch(touches, block(8, 2), 16, 2, random, 2);
        EXPECT_FALSE(setting.follow(touches)) << "both places may be of one iteration: " << seed;
        touches = Touches();
        touch(touches, block(8), 60, 1, random, 1);
        touches.begin_phase();
        for (const std::uint32_t iteration : {2, 3, 4})
            touch(touches, block(8, 2), 8, iteration, random, 2);
        EXPECT_TRUE(setting.follow(touches)) << seed;
        EXPECT_EQ(touches.size(), 24u) << "all of the phase, and nothing else";
    }
}

TEST(TouchesTest, TheOldestGoWhereThereIsNoRoom) {
    Touches touches(40);
    for (std::uint32_t i = 0; i < 200; ++i) {
        touches.add({{i, 0}, i, 0}, 200);
        ASSERT_LE(touches.size(), 40u);
    }
    EXPECT_GE(touches.size(), 30u);
    EXPECT_EQ(touches.at(199).back().page, 199u);
}

TEST(TouchesTest, TouchThatAloneTellsOfItsPartOfTheAreaStays) {
    Touches touches(40);
    for (std::uint64_t part = 0; part < 10; ++part)
        touches.add({{part * 100 + 50, 1}, 0, 0}, 1000);
    for (std::uint32_t i = 0; i < 200; ++i) // of one part
        touches.add({{700 + i % 100, 0}, 1 + i, 0}, 1000);
    ASSERT_LE(touches.size(), 40u);
    for (const std::uint64_t part : {0, 1, 2, 3, 4, 5, 6, 8, 9})
        EXPECT_GE(std::ranges::count(touches.at(200), part * 100 + 50, &SeenTouch::page), 1) << part;
    EXPECT_EQ(touches.at(200).back().iteration, 200u);
}

TEST(TouchesTest, AgesAreCountedFromTheIterationThatAsks) {
    Touches touches;
    touches.add({{1, 0}, 3, 0}, pages);
    touches.add({{2, 1, 0, true}, 5, unknown_node}, pages);
    const auto seen = touches.at(7);
    EXPECT_EQ(seen[0].age, 4u);
    EXPECT_EQ(seen[1].age, 2u);
    EXPECT_THROW(touches.add({{3, 0}, 4, 0}, pages), homing::InvariantBroken);
}

} // namespace
} // namespace homing::model::model_touches_tests
