// Looks that cost time: how often, and how many in a row.
#include "hooks/look_pace.hpp"

#include <gtest/gtest.h>

namespace homing::hooks::look_pace_tests {
namespace {

constexpr double cost = 1e-3;

/// How many looks are made of something that has changed at every one of so many times, a step apart.
int looks(LookPace& pace, double begin, int times, double step) {
    int made = 0;
    for (int i = 0; i < times; ++i) {
        const double now = begin + i * step;
        if (!pace.due(now, cost, true)) continue;
        pace.looked(now, cost);
        ++made;
    }
    return made;
}

TEST(LookPace, TheFirstLookIsDue) {
    const LookPace pace;
    EXPECT_TRUE(pace.due(0, 0, false));
    EXPECT_TRUE(pace.due(5, cost, true));
}

TEST(LookPace, WhatDoesNotChangeIsLookedAtNowAndThen) {
    LookPace pace;
    pace.looked(1, cost);
    EXPECT_FALSE(pace.due(1 + cost * (LookPace::usual_share - 1), cost, false));
    EXPECT_TRUE(pace.due(1 + cost * (LookPace::usual_share + 1), cost, false));
}

TEST(LookPace, SomeChangesInARowAreLookedAtWhenTheyCome) {
    LookPace pace;
    pace.looked(1, 0); // what a look costs is known by the first one only
    EXPECT_GE(looks(pace, 1 + cost, 3, cost), 3);
}

/// However long it goes on, and after any calm.
TEST(LookPace, ChangesWithoutEndTakeASmallShareOfTheTime) {
    LookPace pace;
    const int times = 100000;
    const double seconds = times * cost;
    const double most = LookPace::most_ahead + 1 + seconds / (cost * LookPace::share_of_changes);
    EXPECT_LE(looks(pace, 0, times, cost), most);
    EXPECT_LE(looks(pace, 1e6, times, cost), most);
    EXPECT_GE(looks(pace, 2e6, times, cost), most * 0.9);
}

} // namespace
} // namespace homing::hooks::look_pace_tests
