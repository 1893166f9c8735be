// Locality queues against a model, and under threads that come and go.
#include "homing/tasks.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <gtest/gtest.h>
#include <map>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace homing::tasks_queues_tests {
namespace {

/// Where the calling thread says that it is.
thread_local int pretended = 0;

Domains domains(int count) {
    return {count, [](const void*) { return pretended; }, nullptr};
}

template <class Block = int> using Queues = LocalityQueues<Block>;

template <class Block = int> typename Queues<Block>::Options options(int count, std::size_t keep = 0) {
    return {domains(count), "test", keep};
}

TEST(LocalityQueues, TheOldestOfTheOwnDomainComesFirst) {
    Queues<> queues(options(3));
    for (int block = 0; block < 9; ++block)
        queues.put(block, block % 3);
    pretended = 1;
    EXPECT_EQ(queues.take(), 1);
    EXPECT_EQ(queues.take(), 4);
    pretended = 2; // the thread moved: its domain is read at each take
    EXPECT_EQ(queues.take(), 2);
    EXPECT_EQ(queues.taken_at_home(), 3u);
    EXPECT_EQ(queues.taken_elsewhere(), 0u);
    EXPECT_EQ(queues.discard(), 6u);
}

TEST(LocalityQueues, ThenOnesWithoutAHomeThenTheFullestQueue) {
    Queues<> queues(options(4));
    for (const int block : {10, 11})
        queues.put(block, 1);
    for (const int block : {20, 21, 22})
        queues.put(block, 2);
    queues.put(99, anywhere);
    pretended = 0;
    std::vector<int> order;
    while (const std::optional<int> block = queues.take())
        order.push_back(*block);
    ASSERT_EQ(order.size(), 6u);
    EXPECT_EQ(order[0], 99);
    EXPECT_EQ(order[1], 20) << "the fullest queue is stolen from";
    EXPECT_TRUE(std::is_sorted(order.begin() + 1, order.end(),
                               [](int a, int b) { return a / 10 == b / 10 && a < b; }));
    EXPECT_EQ(queues.taken_at_home(), 0u);
    EXPECT_EQ(queues.taken_elsewhere(), 5u) << "a block without a home is nowhere away";
}

TEST(LocalityQueues, AThreadOnAnUnknownCpuTakesWhatThereIs) {
    Queues<> queues(options(2));
    queues.put(1, 0);
    queues.put(2, anywhere);
    pretended = -1;
    EXPECT_EQ(queues.take(), 2);
    pretended = 7;
    EXPECT_EQ(queues.take(), 1);
    EXPECT_EQ(queues.take(), std::nullopt);
    pretended = 0;
}

RC_GTEST_PROP(LocalityQueues, BehaveLikeAListOfQueues, ()) {
    const int count = *rc::gen::inRange(1, 6);
    const auto keep = static_cast<std::size_t>(*rc::gen::inRange(0, 4));
    Queues<> queues(options(count, keep));
    std::map<int, std::deque<int>> model;
    int next = 0;
    const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-6, 12));
    for (const int step : steps) {
        if (step >= 0) {
            const int domain = step % (count + 1) - 1;
            for (int copies = *rc::gen::inRange(1, 400); copies > 0; --copies) {
                queues.put(next, domain);
                model[domain].push_back(next++);
            }
            continue;
        }
        pretended = -step % (count + 1) - 1;
        for (int takes = *rc::gen::inRange(1, 500); takes > 0; --takes) {
            std::deque<int>* from = nullptr;
            if (pretended >= 0 && !model[pretended].empty())
                from = &model[pretended];
            else if (!model[anywhere].empty())
                from = &model[anywhere];
            else
                for (int domain = 0; domain < count; ++domain)
                    if (model[domain].size() > (from ? from->size() : keep)) from = &model[domain];
            const std::optional<int> block = queues.take();
            RC_ASSERT(block.has_value() == (from != nullptr));
            if (!from) break;
            RC_ASSERT(*block == from->front());
            from->pop_front();
        }
    }
    std::size_t left = 0;
    for (int domain = anywhere; domain < count; ++domain) {
        RC_ASSERT(queues.waiting(domain) == model[domain].size());
        left += model[domain].size();
    }
    RC_ASSERT(queues.waiting() == left);
    RC_ASSERT(queues.discard() == left);
    pretended = 0;
}

TEST(LocalityQueues, NoBlockIsLostOrTakenTwice) {
    constexpr int threads = 4;
    constexpr int each = 20'000;
    Queues<> queues(options(3));
    std::vector<std::atomic<int>> seen(threads * each);
    std::vector<std::thread> team;
    for (int thread = 0; thread < threads; ++thread)
        team.emplace_back([&, thread] {
            pretended = thread % 3;
            for (int i = 0; i < each; ++i) {
                const int block = thread * each + i;
                queues.put(block, block % 4 - 1);
                if (i % 3 == 0) pretended = (pretended + 1) % 3;
                if (i % 2 == 0) // as many tasks as blocks: one here, the rest below
                    if (const std::optional<int> taken = queues.take())
                        seen[static_cast<std::size_t>(*taken)]++;
            }
            while (const std::optional<int> taken = queues.take())
                seen[static_cast<std::size_t>(*taken)]++;
        });
    for (std::thread& thread : team)
        thread.join();
    EXPECT_EQ(queues.waiting(), 0u);
    EXPECT_TRUE(
        std::all_of(seen.begin(), seen.end(), [](const std::atomic<int>& count) { return count == 1; }));
}

TEST(LocalityQueues, ATaskThatSubmittedItsBlockAlwaysFindsOne) {
    // The paper's variant: each task queues its block and then takes one. take() must not miss what is there.
    constexpr int threads = 4;
    constexpr int each = 20'000;
    Queues<> queues(options(4));
    std::atomic<int> missed{0};
    std::vector<std::thread> team;
    for (int thread = 0; thread < threads; ++thread)
        team.emplace_back([&, thread] {
            pretended = thread;
            for (int i = 0; i < each; ++i) {
                queues.put(i, (thread + i) % 4);
                missed += !queues.take().has_value();
            }
        });
    for (std::thread& thread : team)
        thread.join();
    EXPECT_EQ(missed, 0);
    EXPECT_EQ(queues.waiting(), 0u);
}

TEST(LocalityQueues, TenMillionBlocks) {
    constexpr int count = 10'000'000;
    Queues<> queues(options(2));
    std::int64_t sum = 0;
    pretended = 0;
    for (int block = 0; block < count; ++block) {
        queues.put(block, block & 1);
        if (block & 1) sum += *queues.take();
    }
    while (const std::optional<int> block = queues.take())
        sum += *block;
    EXPECT_EQ(sum, std::int64_t{count} * (count - 1) / 2);
    EXPECT_EQ(queues.taken_at_home(), count / 2u);
}

TEST(LocalityQueues, KeepReservesBlocksUntilDrained) {
    Queues<> queues(options(2, keep_all));
    for (int block = 0; block < 4; ++block)
        queues.put(block, 1);
    std::vector<int> ran;
    const auto work = [&](int block) { ran.push_back(block); };
    pretended = 0;
    EXPECT_FALSE(queues.run_one(work));
    EXPECT_FALSE(queues.run_one(work));
    pretended = 1;
    EXPECT_TRUE(queues.run_one(work)) << "runs its own and those of the two that had to leave theirs";
    EXPECT_EQ(ran, (std::vector{0, 1, 2}));
    pretended = 0;
    EXPECT_FALSE(queues.run_one(work));
    EXPECT_EQ(queues.drain(work), 1u) << "nobody of that domain came any more";
    EXPECT_EQ(ran.back(), 3);
}

TEST(LocalityQueues, WhatABlockThrowsComesOutAndTheBlockIsDone) {
    Queues<> queues(options(2));
    for (int block = 0; block < 3; ++block)
        queues.put(block, 0);
    pretended = 0;
    const auto work = [](int block) {
        if (block == 0) throw std::runtime_error("block 0");
    };
    EXPECT_THROW(queues.run_one(work), std::runtime_error);
    EXPECT_EQ(queues.waiting(0), 2u);
    EXPECT_TRUE(queues.run_one(work));
    EXPECT_TRUE(queues.run_one(work));
}

TEST(LocalityQueues, OnlyDomainsThatAreThere) {
    Queues<> queues(options(2));
    EXPECT_THROW(queues.put(1, 2), std::out_of_range);
    EXPECT_THROW(queues.put(1, -2), std::out_of_range);
    EXPECT_EQ(queues.waiting(7), 0u);
    EXPECT_THROW(Queues<>({Domains{0, nullptr, nullptr}, {}, 0}), std::invalid_argument);
}

TEST(LocalityQueues, BlocksThatCanOnlyMove) {
    Queues<std::unique_ptr<int>> queues(options<std::unique_ptr<int>>(2));
    for (int block = 0; block < 1000; ++block)
        queues.put(std::make_unique<int>(block), block % 2);
    pretended = 1;
    EXPECT_EQ(**queues.take(), 1);
    EXPECT_EQ(queues.discard(), 999u); // and none leaks (LeakSanitizer)
}

TEST(LocalityQueuesDeathTest, DestroyedWhileNotEmptySaysWhich) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            Queues<> queues(options(3));
            queues.put(1, 2);
            queues.put(1, 2);
            queues.put(1, anywhere);
        },
        "locality queues \"test\": blocks that nobody took: 1 without a home, 2 of domain 2");
}

TEST(LocalityQueues, AnExceptionMayPassThroughTheirScope) {
    ::testing::internal::CaptureStderr();
    try {
        Queues<> queues(options(1));
        queues.put(1, 0);
        throw 1;
    } catch (int) {
    }
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("1 of domain 0"), std::string::npos);
}

TEST(LocalityQueues, AChildOfForkGoesOn) {
    Queues<> queues(options(2));
    queues.put(1, 0);
    queues.put(2, 1);
    pretended = 0;
    const pid_t child = ::fork();
    if (child == 0) {
        queues.put(3, 0);
        const bool right = queues.take() == 1 && queues.take() == 3 && queues.take() == 2 && !queues.take();
        ::_exit(right ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(queues.discard(), 2u);
}

/// Ranges as oneTBB's algorithms pass them.
struct Axis {
    std::size_t extent;
    std::size_t size() const { return extent; }
    bool is_divisible() const { return extent > 1; }
};
struct Range3 {
    Axis pages_, rows_, cols_;
    Axis pages() const { return pages_; }
    Axis rows() const { return rows_; }
    Axis cols() const { return cols_; }
};

TEST(QueueBody, RunsAsManyBlocksAsItIsHandedIndices) {
    Queues<> queues(options(1));
    for (int block = 0; block < 40; ++block)
        queues.put(block, 0);
    int ran = 0;
    const auto work = [&](int) { ++ran; };
    const QueueBody body(queues, work);
    body(Axis{5});
    EXPECT_EQ(ran, 5);
    body(Range3{{2}, {3}, {4}});
    EXPECT_EQ(ran, 29);
    body(17); // parallel_for over an index, parallel_for_each over items
    body(std::string("item"));
    EXPECT_EQ(ran, 31);
    EXPECT_EQ(queues.drain(work), 9u);
}

} // namespace
} // namespace homing::tasks_queues_tests
