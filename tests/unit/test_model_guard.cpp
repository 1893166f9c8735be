// The guard against harm (ski rental) against the offline optimum, and the model of costs behind it.
#include "model/guard.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/tuning.hpp"
#include "random_numbers.hpp"

namespace homing::policy::model_guard_tests {
namespace {

bool permits(const Guard& guard, AreaId area, std::uint64_t pages, std::uint64_t calls = 1,
             std::uint64_t pages_of_area = 0) {
    return guard.lacking_ns(area, pages, calls, pages_of_area) <= 0;
}

using homing::testing::Random;

constexpr Costs costs{90, 150, 45, 1};

/// A run whose owners stay the same. Where first moves are made in advance a run that ends early costs more,
/// and a long one less.
void check_stable_owners(Random random, bool in_advance) {
    const std::uint64_t pages = 1 + random.below(100000);
    const double move = costs.move_ns(pages);
    const double largest = move * random.uniform() * 1.5;
    const auto steps = static_cast<int>(random.below(200));
    Guard guard(costs);
    double paid = 0, stay = 0;
    bool moved = false;
    for (int i = 0; i < steps; ++i) {
        const double step = largest * random.uniform();
        stay += step;
        if (moved) continue;
        paid += step;
        guard.accumulate(7, step);
        if (permits(guard, 7, pages, 1, in_advance ? pages : 0)) {
            guard.moved(7, pages);
            paid += move;
            moved = true;
        }
    }
    const double best = std::min(stay, move);
    const double advance = in_advance ? homing::model::tuning::advance : 1;
    RC_ASSERT(paid <= (1 + advance) * best + largest + 1e-6);
    if (stay >= move) RC_ASSERT(paid <= (1 + 1 / advance) * best + largest + 1e-6);
}

RC_GTEST_PROP(GuardProperty, StableOwnersCostAtMostTwiceTheBestChoiceInHindsight, ()) {
    check_stable_owners(Random(*rc::gen::arbitrary<std::uint32_t>()), false);
}

RC_GTEST_PROP(GuardProperty, AFirstMoveInAdvanceCostsAtMostAQuarterOfItselfMoreInALongRun, ()) {
    check_stable_owners(Random(*rc::gen::arbitrary<std::uint32_t>()), true);
}

// Least cost of a clairvoyant who knows all steps and may move before each one. owner[i] pays nothing for
// step i.
double offline(const std::vector<int>& owner, const std::vector<double>& step, double move) {
    double at[2] = {0, move};
    for (std::size_t i = 0; i < owner.size(); ++i) {
        const double best[2] = {std::min(at[0], at[1] + move), std::min(at[1], at[0] + move)};
        for (int n = 0; n < 2; ++n)
            at[n] = best[n] + (owner[i] == n ? 0 : step[i]);
    }
    return std::min(at[0], at[1]);
}

RC_GTEST_PROP(GuardProperty, ChangingOwnersCostAtMostFourTimesAClairvoyant, ()) {
    Random random(*rc::gen::arbitrary<std::uint32_t>());
    const std::uint64_t pages = 1 + random.below(100000);
    const double move = costs.move_ns(pages);
    const double largest = move * (0.01 + 0.3 * random.uniform());
    const bool adversary = random.below(2) != 0;
    const std::uint64_t patience = 1 + random.below(60);
    Guard guard(costs);
    std::vector<int> owners;
    std::vector<double> steps;
    int home = 0, owner = 1;
    double paid = 0;
    for (int i = 0; i < 400; ++i) {
        if (adversary ? owner == home : random.below(patience) == 0) owner = 1 - owner;
        const double step = largest * (adversary ? 1 : random.uniform());
        owners.push_back(owner);
        steps.push_back(step);
        // What the other placement would have saved, or cost more.
        guard.accumulate(0, owner == home ? -step : step);
        if (owner == home) continue;
        paid += step;
        if (permits(guard, 0, pages)) {
            guard.moved(0, pages);
            paid += move;
            home = 1 - home;
        }
    }
    const double overshoot = 1 + largest / move; // the last step before a move is only known once it was paid
    RC_ASSERT(paid <= 4 * overshoot * offline(owners, steps, move) + 2 * move + 2 * largest);
}

TEST(Guard, PermitsWhatIsPaidForOnly) {
    Guard guard(costs);
    EXPECT_TRUE(permits(guard, 0, 0));
    EXPECT_FALSE(permits(guard, 0, 1));
    guard.accumulate(0, 1e3 * (45 + 10));
    EXPECT_TRUE(permits(guard, 0, 10));
    EXPECT_FALSE(permits(guard, 0, 11));
    EXPECT_FALSE(permits(guard, 0, 10, 2));
    // In advance only while no page need move twice.
    EXPECT_TRUE(permits(guard, 0, 40, 1, 40));
    EXPECT_FALSE(permits(guard, 0, 40, 1, 39));
    // A part of the move: the rest of the account stays.
    guard.moved(0, 4, 1, false);
    EXPECT_DOUBLE_EQ(guard.accumulated_ns(0), 6e3);
    guard.accumulate(0, 1e9);
    guard.moved(0, 6);
    EXPECT_EQ(guard.accumulated_ns(0), 0);
    guard.accumulate(0, 1e3 * (45 + 10));
    EXPECT_TRUE(permits(guard, 0, 40, 1, 50));
    EXPECT_FALSE(permits(guard, 0, 40, 1, 49)); // ten have moved
    // Accounts are separate, and never negative.
    guard.accumulate(3, 5e6);
    guard.accumulate(3, -1e12);
    EXPECT_EQ(guard.accumulated_ns(3), 0);
    guard.accumulate(3, 5e6);
    guard.accumulate(3, std::numeric_limits<double>::quiet_NaN());
    EXPECT_EQ(guard.accumulated_ns(2), 0);
    EXPECT_EQ(guard.accumulated_ns(3), 5e6);
}

TEST(TouchModel, MissesFollowTheFootprint) {
    TouchModel model;
    model.cache_bytes = 32u << 20;
    model.footprint_bytes = 8u << 20;
    EXPECT_EQ(model.misses_per_touch(), 0);
    model.footprint_bytes = 32u << 20;
    EXPECT_DOUBLE_EQ(model.misses_per_touch(), 32);
    model.footprint_bytes = 1u << 30;
    EXPECT_DOUBLE_EQ(model.misses_per_touch(), 64);
    model.page_size = 2u << 20;
    EXPECT_DOUBLE_EQ(model.misses_per_touch(), 32768);
    model.cache_bytes = 0;
    EXPECT_DOUBLE_EQ(model.miss_share(), 1);
}

TEST(TouchModel, PagesOfAllThreadsOnOneNodeWaitForItsMemory) {
    TouchModel model;
    model.cache_bytes = 1;
    model.threads = 4;
    model.nodes = 4;
    Costs doubled;
    doubled.local_ns = 100;
    doubled.remote_ns = 200;
    const double forever = 1e18;
    // A thread with 4 misses in flight takes 64 x 100 / 4 ns for a page, and so does its node for any thread:
    // 1,000 pages on one node wait 1,000 times, spread over four 250 times.
    EXPECT_NEAR(model.contention_ns(1000, 250, doubled, forever), 750 * 1600.0, 1);
    EXPECT_GT(model.contention_ns(1000, 250, doubled, forever), model.excess_ns(750, doubled, forever));
    EXPECT_EQ(model.contention_ns(250, 250, doubled, forever), 0);
    EXPECT_EQ(model.contention_ns(250, 1000, doubled, forever), 0);
    EXPECT_EQ(model.contention_ns(1000, 250, doubled, 500.0), 500);
    model.threads = 16; // a node with four threads has memory for four
    EXPECT_NEAR(model.contention_ns(1000, 250, doubled, forever), 750 * 400.0, 1);
}

TEST(TouchModel, ExcessIsBoundedByTheTimeOfTheRegions) {
    TouchModel model;
    model.threads = 4;
    model.overlap = 2;
    // 1000 pages x 64 lines x 60 ns, eight misses at a time.
    EXPECT_DOUBLE_EQ(model.excess_ns(1000, costs, 1e12), 1000 * 64 * 60 / 8.0);
    EXPECT_DOUBLE_EQ(model.excess_ns(1000, costs, 1234), 1234);
    EXPECT_EQ(model.excess_ns(1000, costs, -1), 0);
    EXPECT_EQ(model.excess_ns(0, costs, 1e12), 0);
    EXPECT_EQ(model.excess_ns(1000, Costs{100, 100, 1, 1}, 1e12), 0);
}

} // namespace
} // namespace homing::policy::model_guard_tests
