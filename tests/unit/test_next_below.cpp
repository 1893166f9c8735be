#include "base/next_below.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <thread>
#include <vector>

namespace homing {
namespace {

TEST(NextBelow, EachPlaceIsTakenOnceByWhicheverThread) {
    constexpr int limit = 3000, threads = 4;
    std::atomic<int> taken{0};
    std::vector<int> times(limit, 0); // each place is written by who has taken it
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i)
        running.emplace_back([&] {
            for (int at = next_below(taken, limit); at < limit; at = next_below(taken, limit))
                ++times[static_cast<std::size_t>(at)];
        });
    for (std::thread& one : running)
        one.join();
    EXPECT_EQ(std::count(times.begin(), times.end(), 1), limit);
    EXPECT_EQ(taken.load(), limit);
}

TEST(NextBelow, CountsNoFurtherThanTheEnd) {
    std::atomic<int> taken{std::numeric_limits<int>::max()};
    EXPECT_EQ(next_below(taken, std::numeric_limits<int>::max()), std::numeric_limits<int>::max());
    taken = 256;
    for (int i = 0; i < 1000; ++i)
        EXPECT_EQ(next_below(taken, 256), 256);
    EXPECT_EQ(taken.load(), 256);
}

} // namespace
} // namespace homing
