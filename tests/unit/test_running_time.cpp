#include "base/running_time.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace homing::running_time_tests {
namespace {

TEST(RunningTime, ComputingCounts) {
    RunningTime time;
    const double begin = monotonic_seconds();
    time.start(begin);
    double used = process_seconds();
    const double enough = used + 0.05;
    while (used < enough)
        used = process_seconds();
    EXPECT_GE(time.seconds(monotonic_seconds()), 0.045);
}

TEST(RunningTime, BeingStoppedDoesNotCount) {
    RunningTime time;
    const double begin = monotonic_seconds();
    time.start(begin);
    ::usleep(100'000); // without a processor, as when it is stopped
    const double now = monotonic_seconds();
    ASSERT_GE(now - begin, 0.1);
    EXPECT_LT(time.seconds(now), 0.05);
    EXPECT_GE(time.seconds(now), 0);
}

TEST(RunningTime, SimulatedTimeCountsAsItIs) {
    static double simulated = 100;
    the_clock = +[]() noexcept { return simulated; };
    RunningTime time;
    time.start(clock_seconds());
    simulated += 7;
    EXPECT_DOUBLE_EQ(time.seconds(clock_seconds()), 7);
    the_clock = monotonic_seconds;
}

} // namespace
} // namespace homing::running_time_tests
