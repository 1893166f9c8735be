// homing's own floating-point environment, and the program's.
#include "base/floating_point.hpp"

#include <cfenv>
#include <gtest/gtest.h>

namespace homing::floating_point_tests {
namespace {

TEST(FloatingPoint, WhatHomingComputesLeavesTheProgramsFlagsTrapsAndRounding) {
    std::fenv_t before;
    std::fegetenv(&before);
    std::feclearexcept(FE_ALL_EXCEPT);
    std::fesetround(FE_UPWARD);
    const bool traps = ::feenableexcept(FE_DIVBYZERO | FE_INVALID) != -1; // not every processor has them
    volatile double zero = 0;
    volatile double one = 1;
    volatile double three = 3;
    const double up = one / three;
    std::feclearexcept(FE_ALL_EXCEPT);
    double nearest = 0;
    bool infinite = false;
    {
        const OwnFloatingPoint own;
        infinite = one / zero > 1; // would trap
        nearest = one / three;
    }
    EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0);
    if (traps) {
        EXPECT_EQ(::fegetexcept() & (FE_DIVBYZERO | FE_INVALID), FE_DIVBYZERO | FE_INVALID);
    }
    const double again = one / three;
    std::fesetenv(&before);
    EXPECT_TRUE(infinite);
    EXPECT_LT(nearest, up);
    EXPECT_EQ(again, up);
}

} // namespace
} // namespace homing::floating_point_tests
