#include "sources/arming_ceiling.hpp"

#include <gtest/gtest.h>

namespace homing::arming_ceiling_tests {
namespace {

TEST(ArmingCeiling, ARegionIsArmedOnceToKnowWhatThatCosts) {
    ArmingCeiling ceiling;
    EXPECT_TRUE(ceiling.allows(3, 100));
    ceiling.took(3, 20e-6); // its first entry, which nothing is armed in
    EXPECT_TRUE(ceiling.allows(3, 100));
    ceiling.cost(3, 30e-6, 100, 1e-3);
    EXPECT_FALSE(ceiling.allows(3, 100));
    EXPECT_FALSE(ceiling.allows(3, 100));
    EXPECT_EQ(ceiling.left_out(), 2u);
    EXPECT_DOUBLE_EQ(ceiling.left_price(), 1e-3);
    EXPECT_DOUBLE_EQ(ceiling.left_seconds(), 20e-6) << "the lesser of both";
    EXPECT_TRUE(ceiling.allows(4, 100)) << "another one";
}

TEST(ArmingCeiling, FewerGranulesCostLess) {
    ArmingCeiling ceiling;
    ceiling.took(0, 20e-6);
    ceiling.cost(0, 20e-6, 100, 1e-3);
    EXPECT_FALSE(ceiling.allows(0, 3));
    EXPECT_TRUE(ceiling.allows(0, 2));
}

TEST(ArmingCeiling, ARegionThatBecomesLongIsArmedAgain) {
    ArmingCeiling ceiling;
    ceiling.took(0, 1e-4);
    ceiling.cost(0, 1e-4, 10, 1e-3);
    EXPECT_FALSE(ceiling.allows(0, 10));
    ceiling.took(0, 2e-3);
    EXPECT_FALSE(ceiling.allows(0, 10)) << "once: it may have been held up";
    ceiling.took(0, 2e-3);
    EXPECT_TRUE(ceiling.allows(0, 10));
    ceiling.cost(0, 1e-4, 10, 1e-3);
    EXPECT_FALSE(ceiling.allows(0, 10));
}

TEST(ArmingCeiling, InitialisationThatTookLongIsForgotten) {
    ArmingCeiling ceiling;
    ceiling.took(0, 1);
    ceiling.cost(0, 2e-5, 10, 1e-3);
    EXPECT_FALSE(ceiling.allows(0, 10));
}

} // namespace
} // namespace homing::arming_ceiling_tests
