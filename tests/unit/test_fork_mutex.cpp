#include "base/fork_mutex.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace homing::fork_mutex_tests {
namespace {

TEST(ForkMutex, AForkHoldsItUntilItsLastOneIsOver) {
    ForkMutex mutex;
    EXPECT_FALSE(mutex.held_for_fork());
    ASSERT_TRUE(mutex.lock_for_fork());
    ASSERT_TRUE(mutex.lock_for_fork()); // by a signal handler that came within the first
    EXPECT_TRUE(mutex.unlock_after_fork());
    EXPECT_TRUE(mutex.held_for_fork());
    bool elsewhere = true;
    std::thread([&] { elsewhere = mutex.held_for_fork() || mutex.unlock_after_fork(); }).join();
    EXPECT_FALSE(elsewhere);
    EXPECT_TRUE(mutex.unlock_after_fork());
    EXPECT_FALSE(mutex.held_for_fork());
    EXPECT_FALSE(mutex.unlock_after_fork());
}

TEST(ForkMutex, AForkWithinTheGuardedWorkDoesNotWaitForItself) {
    ForkMutex mutex;
    mutex.lock();
    EXPECT_FALSE(mutex.lock_for_fork());
    EXPECT_FALSE(mutex.held_for_fork());
    EXPECT_FALSE(mutex.unlock_after_fork());
    mutex.unlock();
    EXPECT_TRUE(mutex.lock_for_fork());
    EXPECT_TRUE(mutex.unlock_after_fork());
}

TEST(ForkMutex, AForkWaitsForTheWorkOfAnotherThread) {
    ForkMutex mutex;
    int steps = 0;
    mutex.lock();
    std::thread forking([&] {
        ASSERT_TRUE(mutex.lock_for_fork());
        EXPECT_EQ(steps, 1);
        mutex.unlock_after_fork();
    });
    std::this_thread::yield();
    steps = 1;
    mutex.unlock();
    forking.join();
}

TEST(ForkMutex, OneThreadAtATimeHoldsIt) {
    ForkMutex mutex;
    constexpr int threads = 4, rounds = 20000;
    int sum = 0;
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i)
        all.emplace_back([&] {
            for (int k = 0; k < rounds; ++k) {
                const std::lock_guard guard(mutex);
                EXPECT_TRUE(mutex.held_by_this_thread());
                ++sum;
            }
        });
    for (std::thread& one : all)
        one.join();
    EXPECT_EQ(sum, threads * rounds);
    EXPECT_FALSE(mutex.held_by_this_thread());
}

} // namespace
} // namespace homing::fork_mutex_tests
