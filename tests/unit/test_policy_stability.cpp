// When a mechanism observes, rests and looks again.
#include "policy/stability.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "test_policy_truth.hpp"

namespace {

using namespace homing::policy;
using homing::policy::testing::Random;

TEST(Stability, RestsAfterTwoCalmRounds) {
    Stability s;
    EXPECT_EQ(s.begin_iteration(), Activity::observe);
    s.observed(5000, 10000);
    EXPECT_EQ(s.begin_iteration(), Activity::observe);
    s.observed(10, 10000);
    EXPECT_EQ(s.begin_iteration(), Activity::observe);
    s.observed(5000, 10000); // calm must be in a row
    s.begin_iteration();
    s.observed(10, 10000);
    EXPECT_FALSE(s.settled());
    s.begin_iteration();
    s.observed(0, 10000);
    EXPECT_TRUE(s.settled());
    EXPECT_FALSE(s.gave_up());
    EXPECT_EQ(s.iterations_to_settle(), 5u);
    EXPECT_EQ(s.begin_iteration(), Activity::rest);
}

TEST(Stability, LooksAgainAtGrowingIntervals) {
    StabilityOptions options;
    options.least_interval = 4;
    options.most_interval = 20;
    Stability s(options);
    for (int i = 0; i < 2; ++i) {
        s.begin_iteration();
        s.observed(0, 100);
    }
    std::vector<int> checks;
    for (int i = 1; i <= 80; ++i) {
        if (s.begin_iteration() != Activity::check) continue;
        checks.push_back(i);
        s.checked(false);
    }
    EXPECT_EQ(checks, (std::vector<int>{4, 12, 28, 48, 68}));
}

TEST(Stability, LooksAtOnceWhereAChangeIsLikely) {
    Stability s;
    s.look(); // observing anyway
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(s.begin_iteration(), Activity::observe);
        s.observed(0, 100);
    }
    EXPECT_EQ(s.begin_iteration(), Activity::rest);
    s.look();
    EXPECT_EQ(s.begin_iteration(), Activity::check);
    s.checked(false);
    EXPECT_TRUE(s.settled());
    EXPECT_EQ(s.begin_iteration(), Activity::rest);
}

TEST(Stability, WakesWhenOwnersChanged) {
    StabilityOptions options;
    options.least_interval = 2;
    Stability s(options);
    const auto settle = [&] {
        while (!s.settled()) {
            s.begin_iteration();
            s.observed(0, 100);
        }
    };
    const auto next_check = [&] {
        int iterations = 1;
        while (s.begin_iteration() != Activity::check)
            ++iterations;
        return iterations;
    };
    settle();
    EXPECT_EQ(next_check(), 2);
    s.checked(false);
    EXPECT_EQ(next_check(), 4);
    s.checked(true);
    EXPECT_FALSE(s.settled());
    EXPECT_EQ(s.iterations_to_settle(), 0u);
    EXPECT_EQ(s.begin_iteration(), Activity::observe);
    settle();
    EXPECT_EQ(next_check(), 2) << "the interval starts anew";
    s.wake();
    EXPECT_EQ(s.begin_iteration(), Activity::observe);
}

TEST(Stability, AnUnreportedCheckIsMadeAgain) {
    StabilityOptions options;
    options.least_interval = 1;
    Stability s(options);
    for (int i = 0; i < 2; ++i) {
        s.begin_iteration();
        s.observed(0, 100);
    }
    EXPECT_EQ(s.begin_iteration(), Activity::check);
    EXPECT_EQ(s.begin_iteration(), Activity::check);
    s.checked(false);
    EXPECT_EQ(s.begin_iteration(), Activity::rest);
}

TEST(Stability, GivesUpWhereNothingSettlesButLooksAgain) {
    StabilityOptions options;
    options.most_rounds = 10;
    Stability s(options);
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(s.begin_iteration(), Activity::observe);
        s.observed(900, 1000);
    }
    EXPECT_TRUE(s.settled());
    EXPECT_TRUE(s.gave_up());
    bool checked = false;
    for (int i = 0; i < 20; ++i)
        checked |= s.begin_iteration() == Activity::check;
    EXPECT_TRUE(checked);
}

RC_GTEST_PROP(StabilityProperty, ChecksStayWithinTheBudget, ()) {
    Random random(*rc::gen::arbitrary<std::uint32_t>());
    StabilityOptions options;
    options.budget = 0.001 + 0.05 * random.uniform();
    Stability s(options);
    const double iteration = 0.1 + random.uniform(), check = iteration * random.uniform() * 10;
    for (int i = 0; i < 2; ++i) {
        s.begin_iteration();
        s.observed(0, 100);
        s.cost(check, iteration);
    }
    double spent = 0, elapsed = 0;
    for (int i = 0; i < 20000; ++i) {
        elapsed += iteration;
        if (s.begin_iteration() != Activity::check) continue;
        spent += check;
        s.checked(false);
    }
    RC_ASSERT(spent <= options.budget * elapsed + check);
    RC_ASSERT(spent > 0 || check > 0.9 * options.budget * elapsed);
}

} // namespace
