// Granules that the kernel would not move: which are tried again, and when.
#include "areas/refused_pages.hpp"

#include <gtest/gtest.h>

namespace homing {
namespace {

constexpr double long_after = 1e9; // seconds

TEST(RefusedPages, WhatIsRefusedTwiceForALastingReasonIsLeft) {
    RefusedPages refused;
    EXPECT_FALSE(refused.refused(7, 1, EBUSY));
    EXPECT_FALSE(refused.may_try(7, 1));
    EXPECT_TRUE(refused.may_try(7, 2));
    EXPECT_TRUE(refused.refused(7, 2, EBUSY));
    for (const double now : {0.0, long_after, 2 * long_after})
        refused.time_passes(now);
    EXPECT_TRUE(refused.left(7));
    EXPECT_FALSE(refused.may_try(7, 3));
}

TEST(RefusedPages, WhatThereWasNoRoomForIsTriedAgainLaterAndLater) {
    for (const int error : {ENOMEM, EAGAIN}) {
        RefusedPages refused;
        refused.refused(7, 1, error);
        EXPECT_TRUE(refused.refused(7, 2, error));
        double now = 100;
        for (double pause : {10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 320.0}) {
            EXPECT_TRUE(refused.left(7));
            EXPECT_FALSE(refused.may_try(7, 3));
            refused.time_passes(now);
            refused.time_passes(now + pause - 1);
            EXPECT_TRUE(refused.left(7)) << pause;
            refused.time_passes(now += pause);
            EXPECT_FALSE(refused.left(7)) << pause;
            EXPECT_TRUE(refused.may_try(7, 3));
            EXPECT_EQ(refused.waiting(), 0u) << "it is not waited for";
            EXPECT_FALSE(refused.refused(7, 3, error)) << "told once";
        }
        refused.forget(7);
        EXPECT_TRUE(refused.may_try(7, 4));
        EXPECT_FALSE(refused.left(7));
    }
}

TEST(RefusedPages, ALaterReasonMayLast) {
    RefusedPages refused;
    refused.refused(7, 1, ENOMEM);
    refused.refused(7, 2, ENOMEM);
    refused.time_passes(0.5);
    refused.time_passes(long_after);
    EXPECT_FALSE(refused.refused(7, 3, EACCES));
    refused.time_passes(2 * long_after);
    refused.time_passes(3 * long_after);
    EXPECT_TRUE(refused.left(7));
}

} // namespace
} // namespace homing
