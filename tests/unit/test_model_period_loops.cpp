// The outer iteration around loops of varying counts, and around the barriers of its regions.
#include "period_test.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace homing::model_period_loops_tests {
namespace {

using homing::phases::IterationFinder;
using homing::phases::LoopFilter;
using homing::phases::PeriodEvent;
using homing::phases::Step;
using homing::phases::testing::append;
using homing::phases::testing::follow;
using homing::phases::testing::range;
using homing::phases::testing::Sequence;
using homing::phases::testing::Trace;

/// Numbers that differ from call to call.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint32_t below(std::uint32_t limit) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::uint32_t>(state_ >> 33) % limit;
    }

  private:
    std::uint64_t state_;
};

/// What became of steps whose first ids are at `starts`.
struct Followed {
    std::size_t known = 0;      ///< steps until the outer iteration was followed for good
    std::size_t boundaries = 0; ///< since then
    std::size_t steps = 0;      ///< since then
};

/// Steps are followed for good after the last transition.
Followed follow_steps(IterationFinder& finder, const Sequence& ids, const std::vector<std::size_t>& starts) {
    const Trace trace = follow(finder, ids);
    const std::size_t last = trace.transitions.empty() ? 0 : trace.transitions.back().first;
    Followed result;
    for (const std::size_t start : starts)
        ++(start <= last ? result.known : result.steps);
    for (const std::size_t begin : trace.begins)
        result.boundaries += begin > last;
    return result;
}

constexpr std::uint32_t barrier(std::uint32_t number) { return homing::phases::within_region | number; }

/// Steps of some regions with solvers between them that converge after varying counts.
struct Solvers {
    Sequence ids;
    std::vector<std::size_t> starts;

    void step(std::initializer_list<std::pair<Sequence, std::uint32_t>> loops) {
        starts.push_back(ids.size());
        std::uint32_t region = 1;
        append(ids, {region++, region++});
        for (const auto& [turn, count] : loops) {
            append(ids, turn, static_cast<int>(count));
            append(ids, {region++});
        }
    }
};

TEST(LoopFilter, LeavesTwoTurnsOfEachLoop) {
    LoopFilter filter;
    Sequence ids = {1, 2};
    append(ids, {7, 8, 9}, 100);
    append(ids, {3});
    append(ids, {5}, 4);
    append(ids, {7, 8, 9}, 3);
    Sequence left;
    for (const std::uint32_t id : ids)
        if (filter.push(id)) left.push_back(id);
    EXPECT_EQ(left, (Sequence{1, 2, 7, 8, 9, 7, 8, 3, 5, 7, 8, 9, 7, 8}));
}

RC_GTEST_PROP(LoopFilterProperty, NumberOfTurnsDoesNotMatter, ()) {
    Random random(*rc::gen::arbitrary<std::uint32_t>());
    const auto made = [&](std::uint64_t counts) {
        Random shape(17);
        Random count(counts);
        LoopFilter filter;
        Sequence left;
        for (int part = 0; part < 30; ++part) {
            const Sequence turn = range(100 * static_cast<std::uint32_t>(part), 1 + shape.below(40));
            for (std::uint32_t i = 0, turns = 2 + count.below(50); i < turns; ++i)
                for (const std::uint32_t id : turn)
                    if (filter.push(id)) left.push_back(id);
        }
        return left;
    };
    RC_ASSERT(made(random.below(1u << 30)) == made(random.below(1u << 30)));
}

TEST(LoopFilter, LoopThatItWasNotToldOfIsALoop) {
    LoopFilter told;
    LoopFilter skipped;
    const Sequence turn = range(0, 7);
    for (int i = 0; i < 400; ++i)
        for (const std::uint32_t id : turn)
            told.push(id);
    for (const std::uint32_t id : {0u, 1u, 2u})
        told.push(id);
    skipped.turned(turn, 3);
    Sequence after = {3, 4, 50, 51, 0, 1, 2, 3};
    append(after, turn, 5);
    for (const std::uint32_t id : after)
        EXPECT_EQ(told.push(id), skipped.push(id)) << id;
}

TEST(IterationFinder, StepAroundLongSolversIsFound) {
    // Some 6,000 regions a step, of which an inner loop alone settles.
    Solvers program;
    Random random(3);
    for (int step = 0; step < 30; ++step)
        program.step({{range(10, 4), 1000 + random.below(300)}, {range(20, 3), 500 + random.below(90)}});
    IterationFinder finder;
    const Followed result = follow_steps(finder, program.ids, program.starts);
    EXPECT_TRUE(finder.by_anchor());
    EXPECT_LE(result.known, 4u);
    EXPECT_NEAR(static_cast<double>(result.boundaries), static_cast<double>(result.steps), 1);
}

TEST(IterationFinder, StepAroundSolversWithinSolversIsFound) {
    Solvers program;
    Random random(4);
    for (int step = 0; step < 60; ++step) {
        program.starts.push_back(program.ids.size());
        append(program.ids, {1, 2, 3});
        for (int outer = 0; outer < 5; ++outer) {
            append(program.ids, range(10, 5), 40 + static_cast<int>(random.below(60)));
            append(program.ids, {4, 5});
        }
        append(program.ids, {6});
    }
    IterationFinder finder;
    const Followed result = follow_steps(finder, program.ids, program.starts);
    EXPECT_TRUE(finder.by_anchor());
    EXPECT_LE(result.known, 5u);
    EXPECT_NEAR(static_cast<double>(result.boundaries), static_cast<double>(result.steps), 2);
}

TEST(IterationFinder, RegionWithManyBarriersIsPartOfTheStep) {
    // A line sweep in one region: 95 barriers, as in BT and SP in C; then of a size beyond any exact period.
    for (const int barriers : {1, 31, 95, 5000}) {
        Sequence ids;
        std::vector<std::size_t> starts;
        for (int step = 0; step < 40; ++step) {
            starts.push_back(ids.size());
            append(ids, {1, 2});
            append(ids, {barrier(7)}, barriers);
            append(ids, {3});
        }
        IterationFinder finder;
        const Followed result = follow_steps(finder, ids, starts);
        EXPECT_LE(result.known, 5u) << barriers;
        EXPECT_NEAR(static_cast<double>(result.boundaries), static_cast<double>(result.steps), 1) << barriers;
    }
}

TEST(IterationFinder, RegionOfManyEqualBarriersIsTheIteration) {
    for (const int barriers : {2, 9, 19, 100, 700}) {
        SCOPED_TRACE(barriers);
        homing::phases::IterationFinder finder;
        int begun = 0;
        homing::phases::Step step;
        for (int iteration = 0; iteration < 240; ++iteration) {
            step = finder.push(1);
            begun += step.iteration_begins && iteration >= 120;
            for (int i = 0; i < barriers; ++i) {
                step = finder.push(barrier(2));
                EXPECT_TRUE(iteration < 120 || !step.iteration_begins);
            }
        }
        EXPECT_EQ(begun, 120);
        EXPECT_EQ(step.period, static_cast<std::uint32_t>(barriers) + 1);
    }
}

TEST(IterationFinder, IterationBeginsWithARegionWhereItHasOne) {
    Sequence ids = {barrier(7), barrier(8)};
    for (int step = 0; step < 400; ++step) {
        append(ids, {barrier(9)}, 3);
        append(ids, {1, barrier(7), 2, barrier(7), barrier(8)});
    }
    IterationFinder finder;
    const Trace trace = follow(finder, ids);
    const std::size_t known = trace.transitions.back().first;
    std::size_t begins = 0;
    for (const std::size_t begin : trace.begins) {
        if (begin <= known) continue;
        ++begins;
        EXPECT_FALSE(homing::phases::is_within_region(ids[begin]));
    }
    EXPECT_GE(begins, 390u);
}

TEST(IterationFinder, BarriersOfOneRegionAreAllThereIs) {
    Sequence ids = {1};
    append(ids, {barrier(7), barrier(8), barrier(9)}, 2000);
    IterationFinder finder;
    follow(finder, ids);
    EXPECT_EQ(finder.exact_period(), 3u);
    EXPECT_GE(finder.stable_for(), 1990u);
}

TEST(IterationFinder, LongerIterationReplacesTheInnerLoopOnce) {
    // As cases/engine/many_arrays: two functions, a loop of 39 and one of 132.
    Sequence ids;
    for (int step = 0; step < 60; ++step) {
        append(ids, {1}, 39);
        append(ids, {2}, 132);
    }
    IterationFinder finder;
    const Trace trace = follow(finder, ids);
    EXPECT_EQ(finder.exact_period(), 171u);
    const auto& [last, step] = trace.transitions.back();
    EXPECT_EQ(step.event, PeriodEvent::upgraded);
    EXPECT_LE(last, 3u * 171u);
}

TEST(IterationFinder, ProgramThatLeavesItsStepsForALoopIsFollowedThere) {
    Solvers program;
    Random random(5);
    for (int step = 0; step < 20; ++step)
        program.step({{range(10, 4), 300 + random.below(100)}});
    IterationFinder finder;
    follow(finder, program.ids);
    ASSERT_TRUE(finder.by_anchor());
    Sequence ids;
    append(ids, range(40, 6), 3000);
    follow(finder, ids);
    EXPECT_FALSE(finder.by_anchor());
    EXPECT_EQ(finder.exact_period(), 6u);
    follow(finder, program.ids);
    EXPECT_TRUE(finder.by_anchor());
}

RC_GTEST_PROP(IterationFinderProperty, StepAroundVaryingLoopsIsFollowed, ()) {
    Random random(*rc::gen::arbitrary<std::uint32_t>());
    const std::uint32_t loops = 1 + random.below(3);
    std::vector<std::uint32_t> turn, least, varying;
    std::vector<bool> within;
    for (std::uint32_t i = 0; i < loops; ++i) {
        turn.push_back(1 + random.below(30));
        least.push_back(600 / turn.back() + 2);
        // Of fewer counts, some sequences repeat for many steps by chance: an iteration of several steps,
        // then.
        varying.push_back(random.below(2) ? 8 + random.below(93) : 1);
        within.push_back(random.below(2) != 0);
    }
    Solvers program;
    for (int step = 0; step < 25; ++step) {
        program.starts.push_back(program.ids.size());
        append(program.ids, range(1, 3));
        for (std::uint32_t i = 0; i < loops; ++i) {
            const std::uint32_t first = 100 + 50 * i;
            append(program.ids, range(within[i] ? barrier(first) : first, turn[i]),
                   static_cast<int>(least[i] + random.below(varying[i])));
            append(program.ids, {10 + i});
        }
    }
    IterationFinder finder;
    const Followed result = follow_steps(finder, program.ids, program.starts);
    RC_ASSERT(result.known <= 16u);
    RC_ASSERT(result.boundaries + 1 >= result.steps);
    RC_ASSERT(result.boundaries <= result.steps + 1);
}

} // namespace
} // namespace homing::model_period_loops_tests
