// The outer iteration found in sequences of region ids: recorded ones of real programs, and made ones.
#include "period_test.hpp"

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace homing::model_period_tests {
namespace {

using homing::phases::AnchorFinder;
using homing::phases::IterationFinder;
using homing::phases::PeriodEvent;
using homing::phases::PeriodFinder;
using homing::phases::Step;

using homing::phases::testing::append;
using homing::phases::testing::follow;
using homing::phases::testing::range;
using homing::phases::testing::Sequence;
using homing::phases::testing::Trace;

#ifndef HOMING_TEST_DATA
#define HOMING_TEST_DATA "tests"
#endif

// The last hexadecimal or the first decimal word of each line, numbered in order of appearance.
Sequence recorded(const std::string& name) {
    std::ifstream file(std::string(HOMING_TEST_DATA "/sequences/") + name + ".seq");
    EXPECT_TRUE(file) << name;
    Sequence ids;
    std::map<std::string, std::uint32_t> numbers;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string word;
        words >> word;
        if (word == "P" || word == "W") words >> word;
        ids.push_back(numbers.emplace(word, static_cast<std::uint32_t>(numbers.size())).first->second);
    }
    return ids;
}

struct Expected {
    const char* name;
    std::uint32_t period;
    std::uint64_t iterations;
    std::size_t known_by; // index by which the period must be followed
};

class RecordedSequence : public ::testing::TestWithParam<Expected> {};

TEST_P(RecordedSequence, OuterIterationIsFoundAndFollowed) {
    const Expected expected = GetParam();
    const Sequence ids = recorded(expected.name);
    PeriodFinder finder;
    std::uint64_t most = 0;
    std::size_t known = 0;
    std::uint32_t last_period = 0;
    std::vector<std::size_t> begins;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const Step step = finder.push(ids[i]);
        if (finder.period() != 0) last_period = finder.period();
        if (finder.period() != expected.period) continue;
        if (known == 0) known = i;
        most = std::max(most, finder.stable_for());
        if (step.iteration_begins) begins.push_back(i);
    }
    EXPECT_EQ(last_period, expected.period);
    EXPECT_EQ(most, expected.iterations);
    EXPECT_LE(known, expected.known_by);
    ASSERT_GE(begins.size(), 2u);
    for (std::size_t i = 1; i < begins.size(); ++i) {
        // The last iterations of bt and sp are followed by a foreign region and the first of the next
        // iteration.
        const bool last = i + 1 == begins.size();
        const std::size_t gap = begins[i] - begins[i - 1];
        EXPECT_TRUE(gap == expected.period || (last && gap == expected.period + 1)) << gap;
        EXPECT_EQ(ids[begins[i]], ids[begins[0]]);
    }
    // Recorded programs are regular: the anchor must not take over.
    IterationFinder both;
    const Trace trace = follow(both, ids);
    EXPECT_FALSE(both.by_anchor());
    std::size_t last_found = 0;
    for (const auto& [index, step] : trace.transitions)
        if (step.event == PeriodEvent::found || step.event == PeriodEvent::upgraded) last_found = step.period;
    EXPECT_EQ(last_found, expected.period);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, RecordedSequence,
    ::testing::Values(Expected{"cg-c-S", 29, 15, 35 + 58}, Expected{"cg-fortran-S", 3, 15, 13},
                      Expected{"mg-c-S", 36, 4, 125}, Expected{"bt-fortran-S", 5, 61, 18},
                      Expected{"sp-fortran-S", 9, 101, 31}, Expected{"ft-c-S", 5, 6, 18},
                      Expected{"ft-c-clang-S", 5, 6, 18}, Expected{"giant-region", 2, 20, 9}),
    [](const auto& test) {
        std::string name = test.param.name;
        for (char& c : name)
            if (c == '-') c = '_';
        return name;
    });

TEST(PeriodFinder, SaysBeforeTheRegionRunsThatTheIterationBegins) {
    PeriodFinder finder;
    Sequence ids = range(100, 7); // prologue
    append(ids, range(0, 6), 10);
    const Trace trace = follow(finder, ids);
    ASSERT_FALSE(trace.begins.empty());
    for (const std::size_t i : trace.begins)
        EXPECT_EQ(ids[i], 0u) << "the first region after the prologue";
    EXPECT_EQ(trace.begins.size(), 8u); // two iterations to learn
    EXPECT_EQ(finder.stable_for(), 10u);
}

TEST(PeriodFinder, InnerLoopIsUpgradedWhileItIsFollowed) {
    // The inner loop starts before the outer run reaches two iterations inside it.
    PeriodFinder finder;
    Sequence outer;
    append(outer, {1}, 100);
    append(outer, {2, 3, 4, 5});
    Sequence ids(50, 1); // a prologue that looks like the inner loop
    append(ids, {2, 3, 4, 5});
    append(ids, outer, 6);
    const Trace trace = follow(finder, ids);
    EXPECT_EQ(finder.period(), outer.size());
    bool upgraded = false;
    for (const auto& [index, step] : trace.transitions)
        upgraded |= step.event == PeriodEvent::upgraded;
    EXPECT_TRUE(upgraded);
}

TEST(PeriodFinder, InnerLoopOfConstantLengthIsNotReportedInEveryIteration) {
    // 1,130 regions an iteration: beyond the longest period, so the outer iteration cannot be found.
    PeriodFinder finder;
    Sequence outer;
    append(outer, {1}, 30);
    append(outer, range(10, 1100));
    Sequence ids;
    append(ids, outer, 12);
    const Trace trace = follow(finder, ids);
    int found = 0;
    for (const auto& [index, step] : trace.transitions)
        found += step.event == PeriodEvent::found;
    EXPECT_LE(found, 6) << "its record holds for two longest periods";
    EXPECT_EQ(finder.period(), 0u);
}

TEST(PeriodFinder, LongIterationIsFollowedWhereverItsHistoryLies) {
    // Two iterations are more than the ids that are surely remembered.
    for (const std::uint32_t period : {520u, 700u, 900u, 1024u})
        for (std::uint32_t before = 0; before < 1100; before += 61) {
            PeriodFinder finder;
            Sequence ids = range(10000, before);
            append(ids, range(0, period), 5);
            const Trace trace = follow(finder, ids);
            ASSERT_EQ(trace.transitions.size(), 1u) << period << " after " << before;
            EXPECT_EQ(finder.period(), period);
            EXPECT_EQ(finder.newest(), period - 1);
            EXPECT_EQ(finder.stable_for(), 5u);
            for (const std::size_t i : trace.begins)
                EXPECT_EQ(ids[i], 0u);
        }
}

TEST(PeriodFinder, OneForeignRegionNowAndThenIsTolerated) {
    PeriodFinder finder;
    Sequence ids;
    append(ids, range(0, 6), 10);
    for (int i = 0; i < 20; ++i) {
        ids.push_back(77); // output every few iterations
        append(ids, range(0, 6), 5 + i % 3);
    }
    const Trace trace = follow(finder, ids);
    ASSERT_EQ(trace.transitions.size(), 1u);
    EXPECT_EQ(finder.period(), 6u);
    for (const std::size_t i : trace.begins)
        EXPECT_EQ(ids[i], 0u);
    EXPECT_EQ(finder.stable_for(), 10u + 20u * 5u + 19u);
}

TEST(PeriodFinder, ForeignRegionIsToleratedAfterSettling) {
    PeriodFinder finder;
    Sequence ids;
    append(ids, range(0, 6), 1000);
    follow(finder, ids);
    ASSERT_TRUE(finder.settled());
    EXPECT_EQ(finder.push(77).event, PeriodEvent::none);
    const Step step = finder.push(0);
    EXPECT_EQ(step.event, PeriodEvent::iteration_boundary);
    EXPECT_EQ(finder.period(), 6u);
    // Two foreign regions in a row are not.
    for (std::uint32_t id = 1; id < 6; ++id)
        finder.push(id);
    Sequence again;
    append(again, range(0, 6), 2);
    follow(finder, again);
    EXPECT_EQ(finder.push(77).event, PeriodEvent::none);
    EXPECT_EQ(finder.push(78).event, PeriodEvent::broken);
    EXPECT_EQ(finder.period(), 0u);
}

TEST(PeriodFinder, NewPhaseIsFoundAfterALongOne) {
    PeriodFinder finder;
    Sequence ids;
    append(ids, range(0, 13), 1000);
    append(ids, range(50, 31), 4);
    const Trace trace = follow(finder, ids);
    ASSERT_EQ(trace.transitions.size(), 3u);
    EXPECT_EQ(trace.transitions[0].second.event, PeriodEvent::found);
    EXPECT_EQ(trace.transitions[1].second.event, PeriodEvent::broken);
    EXPECT_EQ(trace.transitions[2].second.event, PeriodEvent::found);
    EXPECT_EQ(trace.transitions[2].second.period, 31u);
    EXPECT_LE(trace.transitions[2].first, 13u * 1000u + 2u * 31u);
}

TEST(PeriodFinder, RestartOfTheSameIterationIsFoundAgain) {
    PeriodFinder finder;
    Sequence ids;
    append(ids, range(0, 9), 50);
    append(ids, range(40, 5));
    append(ids, range(0, 9), 50);
    const Trace trace = follow(finder, ids);
    EXPECT_EQ(finder.period(), 9u);
    ASSERT_EQ(trace.transitions.size(), 3u);
    EXPECT_LE(trace.transitions[2].first, 50u * 9u + 5u + 2u * 9u + PeriodFinder::handicap);
}

TEST(PeriodFinder, NothingInARandomSequence) {
    PeriodFinder finder;
    std::uint64_t state = 42;
    int found = 0;
    for (int i = 0; i < 20000; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        found += finder.push(static_cast<std::uint32_t>(state >> 60)).event == PeriodEvent::found;
    }
    EXPECT_EQ(found, 0);
}

TEST(PeriodFinder, ResetForgets) {
    PeriodFinder finder;
    Sequence ids;
    append(ids, range(0, 5), 10);
    follow(finder, ids);
    finder.reset();
    EXPECT_EQ(finder.period(), 0u);
    EXPECT_EQ(finder.stable_for(), 0u);
    EXPECT_EQ(finder.push(0).event, PeriodEvent::none);
}

RC_GTEST_PROP(PeriodFinderProperty, ExactRepetitionIsFoundAfterTwoIterations, ()) {
    const auto period = *rc::gen::inRange<std::uint32_t>(1, 1025);
    const auto alphabet = *rc::gen::inRange<std::uint32_t>(1, 40);
    const auto prologue = *rc::gen::inRange<std::uint32_t>(0, 50);
    std::uint64_t state = *rc::gen::arbitrary<std::uint32_t>();
    const auto random = [&] {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::uint32_t>(state >> 33);
    };
    Sequence iteration(period);
    for (auto& id : iteration)
        id = random() % alphabet;
    Sequence ids;
    for (std::uint32_t i = 0; i < prologue; ++i)
        ids.push_back(1000 + random() % 5);
    append(ids, iteration, 3 + static_cast<int>(40 / period));
    PeriodFinder finder;
    follow(finder, ids);
    RC_ASSERT(finder.period() > 0u);
    // The smallest period of the iteration (a divisor of its length), or one whose run is nearly as long.
    const std::uint32_t p = finder.period();
    std::size_t agreeing = 0;
    for (std::size_t i = ids.size() - 2 * period; i < ids.size(); ++i)
        agreeing += ids[i] == ids[i - p];
    RC_ASSERT(10 * agreeing >= 8 * 2 * std::size_t{period});
    RC_ASSERT(p <= period);
}

RC_GTEST_PROP(PeriodFinderProperty, NestedLoopsGiveTheOuterPeriod, ()) {
    const auto inner = *rc::gen::inRange<std::uint32_t>(1, 6);
    const auto repeats = *rc::gen::inRange(2, 30);
    const auto others = *rc::gen::inRange<std::uint32_t>(2, 30);
    Sequence iteration;
    append(iteration, range(0, inner), repeats);
    append(iteration, range(100, others));
    append(iteration, range(0, inner), repeats);
    append(iteration, range(200, others));
    Sequence ids;
    append(ids, range(500, 5));
    append(ids, iteration, 4);
    PeriodFinder finder;
    const Trace trace = follow(finder, ids);
    RC_ASSERT(finder.period() == iteration.size());
    // Known at the latest when the second iteration has ended.
    RC_ASSERT(trace.transitions.back().first < 5 + 2 * iteration.size());
}

// One time step of an adaptive program: inner solves of varying length between fixed regions.
Sequence adaptive(std::uint64_t seed, int steps, std::vector<std::size_t>* starts = nullptr) {
    Sequence ids;
    std::uint64_t state = seed;
    const auto random = [&](std::uint32_t below) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::uint32_t>(state >> 33) % below;
    };
    for (int step = 0; step < steps; ++step) {
        if (starts) starts->push_back(ids.size());
        append(ids, {1, 2, 3});
        append(ids, {10, 11}, 4 + static_cast<int>(random(9)));
        append(ids, {4});
        append(ids, {20, 21, 22}, 2 + static_cast<int>(random(4)));
        append(ids, {5, 6});
    }
    return ids;
}

TEST(AnchorFinder, FindsTheCycleOfAnAdaptiveProgram) {
    for (const std::uint64_t seed : {1u, 2u, 3u, 4u, 5u}) {
        AnchorFinder finder;
        std::vector<std::size_t> starts;
        const Sequence ids = adaptive(seed, 100, &starts);
        const Trace trace = follow(finder, ids);
        ASSERT_TRUE(finder.found()) << seed;
        // One boundary a step, always at the same region.
        const std::size_t first = trace.begins.front();
        for (const std::size_t i : trace.begins)
            EXPECT_EQ(ids[i], ids[first]);
        std::size_t steps_left = 0;
        for (const std::size_t start : starts)
            steps_left += start > first;
        EXPECT_NEAR(static_cast<double>(trace.begins.size()), static_cast<double>(steps_left), 2) << seed;
        EXPECT_LE(trace.transitions.front().first, 260u);
    }
}

TEST(AnchorFinder, NothingInARandomSequenceAndLossOfAnEndedOne) {
    AnchorFinder finder;
    std::uint64_t state = 7;
    const auto random = [&] {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::uint32_t>(state >> 33);
    };
    for (int i = 0; i < 10000; ++i)
        finder.push(random() % 50);
    EXPECT_FALSE(finder.found());
    finder.reset();
    follow(finder, adaptive(3, 50));
    ASSERT_TRUE(finder.found());
    bool broken = false;
    for (int i = 0; i < 1000; ++i)
        broken |= finder.push(500 + random() % 100).event == PeriodEvent::broken;
    EXPECT_TRUE(broken);
    EXPECT_FALSE(finder.found());
}

TEST(IterationFinder, UsesAnAnchorWhereTheExactPeriodDoesNotLast) {
    IterationFinder finder;
    std::vector<std::size_t> starts;
    const Sequence ids = adaptive(11, 200, &starts);
    const Trace trace = follow(finder, ids);
    EXPECT_TRUE(finder.by_anchor());
    std::size_t late = 0;
    for (const std::size_t i : trace.begins)
        late += i > ids.size() / 2;
    std::size_t steps = 0;
    for (const std::size_t start : starts)
        steps += start > ids.size() / 2;
    EXPECT_NEAR(static_cast<double>(late), static_cast<double>(steps), 2);
}

TEST(IterationFinder, ReturnsToAnExactPeriod) {
    IterationFinder finder;
    Sequence ids = adaptive(12, 100);
    append(ids, range(50, 17), 400);
    follow(finder, ids);
    EXPECT_FALSE(finder.by_anchor());
    EXPECT_EQ(finder.exact_period(), 17u);
    EXPECT_TRUE(finder.direct().period().settled());
    // And the other way round.
    follow(finder, adaptive(13, 200));
    EXPECT_TRUE(finder.by_anchor());
}

TEST(IterationFinder, EveryIterationOfARegularProgramBeginsOnce) {
    IterationFinder finder;
    Sequence iteration;
    append(iteration, range(0, 3));
    append(iteration, {9, 8}, 7);
    Sequence ids;
    append(ids, iteration, 500);
    const Trace trace = follow(finder, ids);
    std::vector<std::size_t> outer;
    const std::size_t known = trace.transitions.back().first;
    for (const std::size_t i : trace.begins)
        if (i > known) outer.push_back(i);
    for (std::size_t i = 1; i < outer.size(); ++i)
        EXPECT_EQ(outer[i] - outer[i - 1], iteration.size());
    EXPECT_GE(outer.size(), 490u);
}

} // namespace
} // namespace homing::model_period_tests
