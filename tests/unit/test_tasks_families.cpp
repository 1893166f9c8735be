// Delayed submission of tasks, against a runtime that is a list: every task is submitted once, and a family
// never waits without a courier.
#include "tasks/families.hpp"

#include <atomic>
#include <deque>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <thread>
#include <vector>

namespace homing::tasks_families_tests {
namespace {

thread_local int here = 0;

/// A runtime with one deque for all threads. Tasks of the program are numbers from 1 on; all others are
/// couriers.
struct Runtime {
    struct Header {
        void* shared;
        TaskEntry* entry;
    };
    std::mutex lock;
    std::deque<void*> waiting;
    std::map<void*, std::vector<std::byte>> couriers;
    std::vector<int> ran; ///< by number
    std::vector<int> domains;
    std::size_t waiting_couriers = 0;
    std::size_t most_waiting_couriers = 0;

    static Runtime* current;
    static void* allocate(void*, std::int32_t, std::int32_t flags, std::size_t bytes, std::size_t shared,
                          TaskEntry* entry) {
        EXPECT_EQ(flags, 1) << "couriers are tied: they run where their siblings may run";
        EXPECT_EQ(shared, 0u);
        std::vector<std::byte> memory(bytes);
        reinterpret_cast<Header*>(memory.data())->entry = entry;
        void* task = memory.data();
        const std::lock_guard hold(current->lock);
        current->couriers.emplace(task, std::move(memory));
        return task;
    }
    static std::int32_t submit(void*, std::int32_t, void* task) {
        const std::lock_guard hold(current->lock);
        current->waiting.push_back(task);
        current->waiting_couriers += current->couriers.contains(task);
        current->most_waiting_couriers = std::max(current->most_waiting_couriers, current->waiting_couriers);
        return 0;
    }
    /// Run the newest (as the thread's own deque has it) or the oldest task (as thieves do). False: there is
    /// none.
    bool step(bool newest) {
        void* task = nullptr;
        TaskEntry* entry = nullptr;
        {
            const std::lock_guard hold(lock);
            if (waiting.empty()) return false;
            task = newest ? waiting.back() : waiting.front();
            newest ? waiting.pop_back() : waiting.pop_front();
            if (const auto found = couriers.find(task); found != couriers.end()) {
                entry = reinterpret_cast<Header*>(found->second.data())->entry;
                --waiting_couriers;
            }
        }
        if (entry) {
            entry(0, task);
            const std::lock_guard hold(lock);
            couriers.erase(task);
        } else {
            const auto number = reinterpret_cast<std::uintptr_t>(task);
            const std::lock_guard hold(lock);
            ++ran.at(number);
            domains.push_back(here);
        }
        return true;
    }
};
Runtime* Runtime::current = nullptr;

class FamiliesTest : public ::testing::Test {
  protected:
    FamiliesTest() { Runtime::current = &runtime; }
    Runtime runtime;
    Families families{{Runtime::allocate, Runtime::submit}, {2, [](const void*) { return here; }, nullptr}};

    void give(std::uintptr_t parent, std::size_t number, int domain, int threads = 2) {
        ASSERT_TRUE(families.submit(parent, threads, nullptr, 0, reinterpret_cast<void*>(number), domain));
    }
};

TEST_F(FamiliesTest, AThreadGetsTheTasksOfItsDomain) {
    runtime.ran.resize(41);
    for (std::size_t number = 1; number <= 40; ++number)
        give(1, number, number % 2);
    here = 1;
    for (int n = 0; n < 40; ++n) // a courier and its task, twenty times
        ASSERT_TRUE(runtime.step(true));
    for (std::size_t number = 1; number <= 40; ++number)
        EXPECT_EQ(runtime.ran[number], number % 2) << number;
    here = 0;
    while (runtime.step(true)) {
    }
    EXPECT_EQ(families.counts().at_home, 40u);
    EXPECT_EQ(families.counts().elsewhere, 0u);
    EXPECT_TRUE(runtime.couriers.empty());
}

TEST_F(FamiliesTest, OnlyAFewCouriersWaitInTheRuntime) {
    constexpr std::size_t count = 5000;
    runtime.ran.resize(count + 1);
    for (std::size_t number = 1; number <= count; ++number)
        give(1, number, 0, 3);
    EXPECT_LE(runtime.most_waiting_couriers, 6u);
    here = 0;
    while (runtime.step(true)) {
    }
    for (std::size_t number = 1; number <= count; ++number)
        ASSERT_EQ(runtime.ran[number], 1);
}

TEST_F(FamiliesTest, AFullFamilySubmitsOneTaskForEachThatComes) {
    constexpr std::size_t count = Families::most_waiting + 1000;
    runtime.ran.resize(count + 1);
    here = 1;
    for (std::size_t number = 1; number <= count; ++number)
        give(1, number, number % 2);
    std::size_t tasks = 0;
    for (void* task : runtime.waiting)
        tasks += !runtime.couriers.contains(task);
    EXPECT_EQ(tasks, 1000u);
    EXPECT_EQ(families.counts().at_home, 1000u) << "of the producer's own domain";
    while (runtime.step(false)) {
    }
    for (std::size_t number = 1; number <= count; ++number)
        ASSERT_EQ(runtime.ran[number], 1);
}

RC_GTEST_PROP(FamiliesProperty, EveryTaskIsSubmittedOnceInAnyOrder, ()) {
    Runtime runtime;
    Runtime::current = &runtime;
    Families families({Runtime::allocate, Runtime::submit}, {3, [](const void*) { return here; }, nullptr});
    const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 100));
    runtime.ran.resize(steps.size() + 1);
    std::size_t number = 0;
    for (const int step : steps) {
        if (step < 50) {
            RC_ASSERT(families.submit(static_cast<std::uintptr_t>(step % 3 + 1), step % 7 + 2, nullptr, 0,
                                      reinterpret_cast<void*>(++number), step % 4 - 1));
        } else {
            here = step % 3;
            runtime.step(step % 2);
        }
        // Nothing is ever queued without a courier on its way.
        if (runtime.waiting.empty()) RC_ASSERT(runtime.couriers.empty());
    }
    while (runtime.step(number % 2)) {
    }
    for (std::size_t n = 1; n <= number; ++n)
        RC_ASSERT(runtime.ran[n] == 1);
    RC_ASSERT(runtime.couriers.empty());
}

TEST_F(FamiliesTest, ThreadsThatProduceAndRunAtOnce) {
    constexpr std::size_t threads = 4, each = 1500;
    runtime.ran.resize(threads * each + 1);
    std::atomic<std::size_t> producing{threads};
    std::vector<std::thread> team;
    for (std::size_t thread = 0; thread < threads; ++thread)
        team.emplace_back([&, thread] {
            here = static_cast<int>(thread % 2);
            for (std::size_t n = 1; n <= each; ++n) {
                families.submit(1 + n % 3, 4, nullptr, 0, reinterpret_cast<void*>(thread * each + n),
                                static_cast<int>(n % 2));
                if (n % 4 == 0) runtime.step(n % 8 == 0);
            }
            --producing;
            while (runtime.step(true) || producing > 0)
                std::this_thread::yield();
        });
    for (std::thread& thread : team)
        thread.join();
    while (runtime.step(true)) {
    }
    for (std::size_t number = 1; number <= threads * each; ++number)
        ASSERT_EQ(runtime.ran[number], 1);
    EXPECT_EQ(families.counts().at_home + families.counts().elsewhere, threads * each);
}

} // namespace
} // namespace homing::tasks_families_tests
