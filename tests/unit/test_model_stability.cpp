// When a mechanism observes, rests and looks again.
#include "model/stability.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "random_numbers.hpp"

namespace homing::policy::model_stability_tests {
namespace {

using namespace model::tuning;
using homing::testing::Random;

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
    EXPECT_EQ(s.begin_iteration(), Activity::rest);
}

TEST(Stability, LooksAgainAtGrowingIntervals) {
    Stability s;
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
    EXPECT_EQ(checks, (std::vector<int>{4, 12, 28, 60}));
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
    Stability s;
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
    EXPECT_EQ(next_check(), 4);
    s.checked(false);
    EXPECT_EQ(next_check(), 8);
    s.checked(true);
    EXPECT_FALSE(s.settled());
    EXPECT_EQ(s.begin_iteration(), Activity::observe);
    settle();
    EXPECT_EQ(next_check(), 4) << "the interval starts anew";
    s.wake();
    EXPECT_EQ(s.begin_iteration(), Activity::observe);
}

TEST(Stability, AnUnreportedCheckIsMadeAgain) {
    Stability s;
    for (int i = 0; i < 2; ++i) {
        s.begin_iteration();
        s.observed(0, 100);
    }
    s.look();
    EXPECT_EQ(s.begin_iteration(), Activity::check);
    EXPECT_EQ(s.begin_iteration(), Activity::check);
    s.checked(false);
    EXPECT_EQ(s.begin_iteration(), Activity::rest);
}

TEST(Stability, GivesUpWhereNothingSettlesButLooksAgain) {
    Stability s;
    for (int i = 0; i < model::tuning::most_rounds; ++i) {
        EXPECT_EQ(s.begin_iteration(), Activity::observe);
        s.observed(900, 1000);
    }
    EXPECT_TRUE(s.settled());
    bool checked = false;
    for (int i = 0; i < 20; ++i)
        checked |= s.begin_iteration() == Activity::check;
    EXPECT_TRUE(checked);
}

void settle(Stability& s) {
    while (!s.settled()) {
        s.begin_iteration();
        s.observed(0, 100);
    }
}

TEST(Stability, ALookWaitsUntilTheBudgetPermitsIt) {
    Stability s;
    settle(s);
    s.cost(0.5); // 50 seconds
    double now = 0;
    int checks = 0;
    for (; now < 200; now += 1) {
        if (s.begin_iteration(now) == Activity::check) {
            s.checked(false);
            s.cost(0.5);
            ++checks;
        }
        s.look(); // a program whose period breaks all the time
    }
    EXPECT_EQ(checks, 3);
}

TEST(Stability, LongIterationsAreCheckedByTime) {
    Stability s;
    settle(s);
    s.cost(1e-3);
    int rested = 0;
    double now = 0;
    for (; s.begin_iteration(now) != Activity::check; now += 6)
        ++rested;
    EXPECT_EQ(rested, 2) << "12 seconds, not 4 iterations";
}

TEST(Stability, RestsAsLongAfterALongRunAsAfterAShortOne) {
    const auto longest_rest = [](int iterations) {
        Stability s;
        settle(s);
        s.cost(1e-4); // 10 ms
        int longest = 0;
        int rested = 0;
        for (int i = 0; i < iterations; ++i) {
            longest = std::max(longest, ++rested);
            if (s.begin_iteration(i * 1e-3) != Activity::check) continue;
            s.checked(false);
            s.cost(1e-4);
            rested = 0;
        }
        return longest;
    };
    EXPECT_LE(longest_rest(300000), 41);
    EXPECT_EQ(longest_rest(300000), longest_rest(3000));
}

/// A run at rest: iterations and checks that take as long as they like, and looks at any time.
struct RandomRun {
    explicit RandomRun(std::uint32_t seed) : random(seed) {
        budget = 0.001 + 0.05 * random.uniform();
        iteration = std::pow(10, -5 + 6 * random.uniform()); // 10 us to 10 s
        check = std::pow(10, -6 + 5 * random.uniform());     // 1 us to 0.1 s
        looks = random.uniform() < 0.3;
    }
    double iteration_time() { return iteration * (0.5 + random.uniform()); }
    double check_cost() { return check * 2 * random.uniform(); }

    Random random;
    double budget;
    double iteration;
    double check;
    bool looks;
};

RC_GTEST_PROP(StabilityProperty, ChecksStayWithinTheBudget, ()) {
    RandomRun run(*rc::gen::arbitrary<std::uint32_t>());
    Stability s(run.budget);
    settle(s);
    double newest = run.check_cost();
    s.cost(newest);
    double spent = newest;
    double now = 0;
    for (int i = 0; i < 20000; ++i) {
        if (s.begin_iteration(now) == Activity::check) {
            newest = run.check_cost();
            spent += newest;
            s.checked(false);
            s.cost(newest);
        }
        if (run.looks) s.look();
        now += run.iteration_time();
        RC_ASSERT(spent - newest <= run.budget * now + 1e-12);
    }
    RC_ASSERT(spent > newest || newest > 0.99 * run.budget * now); // it does check
}

RC_GTEST_PROP(StabilityProperty, AChangeIsNoticedWithinASmallMultipleOfWhatTheBudgetForces, ()) {
    RandomRun run(*rc::gen::arbitrary<std::uint32_t>());
    Stability s(run.budget);
    settle(s);
    double now = 0;
    double newest = run.check_cost();
    s.cost(newest);
    const std::uint64_t calm = run.random.below(5000); // then owners change
    std::uint64_t iteration = 0;
    double since_check = 0;
    std::uint64_t iterations_since_check = 0;
    double bound = 0;
    for (;; ++iteration) {
        const Activity activity = s.begin_iteration(now);
        // Never later than this, whenever owners change.
        const double forced = newest / run.budget;
        const double wanted = std::min(slack * forced, longest_wait);
        bound = std::max(forced, wanted);
        const bool late = since_check > bound + 1e-9 &&
                          (iterations_since_check > few_iterations || since_check > longest_wait + 1e-9);
        if (activity == Activity::check) {
            s.checked(iteration >= calm);
            if (iteration >= calm) break;
            newest = run.check_cost();
            s.cost(newest);
            since_check = 0;
            iterations_since_check = 0;
        } else {
            RC_ASSERT(!late);
        }
        const double time = run.iteration_time();
        now += time;
        since_check += time;
        ++iterations_since_check;
    }
    RC_ASSERT(!s.settled());
}

} // namespace
} // namespace homing::policy::model_stability_tests
