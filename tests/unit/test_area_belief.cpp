#include "areas/area_belief.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace homing::area_belief_tests {
namespace {

AreaBelief belief_of(std::uint64_t granules) {
    AreaBelief belief;
    belief.reset(granules);
    return belief;
}

TEST(AreaBelief, AGranuleTouchedOnceByEachOfTwoNodesIsTheLastOnes) {
    AreaBelief belief = belief_of(10);
    belief.count_user(3, 1);
    belief.count_user(3, 2);
    EXPECT_EQ(belief.users.home(3), 2);
    EXPECT_EQ(belief.lead(3), 1);
    EXPECT_EQ(belief.users.home(4), -1);
    EXPECT_EQ(belief.repeats.same, 0);
    EXPECT_EQ(belief.repeats.other, 1);
}

TEST(AreaBelief, ALeadIsLostAsItWasWonAndGoesNoFurtherThanTouchesThatTell) {
    AreaBelief belief = belief_of(10);
    const auto most = static_cast<int>(model::tuning::telling_touches);
    for (int i = 0; i < 1000; ++i)
        belief.count_user(0, 5);
    EXPECT_EQ(belief.lead(0), most);
    for (int i = 1; i < most; ++i) {
        belief.count_user(0, 6);
        EXPECT_EQ(belief.users.home(0), 5);
        EXPECT_EQ(belief.lead(0), most - i);
    }
    belief.count_user(0, 6); // owners that change are followed
    EXPECT_EQ(belief.users.home(0), 6);
    belief.follow_owners(10);
    EXPECT_EQ(belief.users.home(0), -1);
    EXPECT_EQ(belief.lead(0), 1);
}

/// As long as the limit of leads is not reached, a node with more touches than all others together leads.
RC_GTEST_PROP(AreaBeliefProperty, ANodeWithMostTouchesOfAGranuleLeads, ()) {
    const auto nodes = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 3));
    AreaBelief belief = belief_of(5000);
    std::array<int, 3> counts{};
    int highest = 1;
    for (const int node : nodes) {
        belief.count_user(4096, static_cast<model::Node>(node));
        ++counts[static_cast<std::size_t>(node)];
        highest = std::max(highest, belief.lead(4096));
        RC_ASSERT(belief.lead(4096) >= 1);
    }
    if (highest == static_cast<int>(model::tuning::telling_touches)) return;
    for (std::size_t node = 0; node < counts.size(); ++node)
        if (2 * counts[node] > static_cast<int>(nodes.size()) + 1)
            RC_ASSERT(belief.users.home(4096) == static_cast<int>(node));
}

TEST(AreaBelief, WhatIsInheritedHasItsLeads) {
    AreaBelief old = belief_of(100);
    for (int i = 0; i < 4; ++i)
        old.count_user(50, 3);
    AreaBelief belief;
    belief.inherit(old, 10, 200);
    EXPECT_EQ(belief.users.home(60), 3);
    EXPECT_EQ(belief.lead(60), 4);
    EXPECT_EQ(belief.lead(50), 1);
}

} // namespace
} // namespace homing::area_belief_tests
