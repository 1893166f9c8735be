// Windows beside the program's own calls: what they use is not armed, and mappings are left to the program.
#include "base/clock.hpp"
#include "base/inside.hpp"
#include "windows_test.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

namespace homing::sources_windows_calls_tests {
namespace {

/// A call of the program that another thread makes, up to the test's end.
class WindowsCallTest : public WindowsTest {
  protected:
    ~WindowsCallTest() override { end(); }
    void begin(const std::vector<Range>& uses) {
        thread = std::thread([this, uses] {
            InFlight call;
            for (const Range& range : uses)
                call.add(range);
            Windows::begin(call);
            begun = true;
            while (!ended)
                std::this_thread::yield();
            call.end();
        });
        while (!begun)
            std::this_thread::yield();
    }
    /// How many of `apart` are armed.
    std::size_t open_from_another_thread() {
        std::size_t armed = 0;
        std::thread([&] { armed = windows.open(apart, there); }).join();
        return armed;
    }
    void end() {
        ended = true;
        if (thread.joinable()) thread.join();
    }

    std::thread thread;
    std::thread other;
    std::atomic<bool> begun{false};
    std::atomic<bool> ended{false};
};

TEST_F(WindowsCallTest, WhatItUsesIsNotArmedWhileItRuns) {
    begin({{apart[0].begin + 100, apart[0].begin + 101}});
    EXPECT_EQ(windows.open(apart, there), 1u);
    windows.close();
    EXPECT_TRUE(kernel.changes_of(apart[0]).empty());
    end();
    EXPECT_EQ(windows.open(apart, there), 2u);
    windows.close();
}

TEST_F(WindowsCallTest, WhatItUsesIsGivenBackWhereItBeginsLater) {
    EXPECT_EQ(windows.open(apart, there), 2u);
    begin({{apart[1].begin - 1, apart[1].begin + 1}});
    EXPECT_EQ(kernel.changes_of(apart[0]), (std::vector{Access::none}));
    EXPECT_EQ(kernel.changes_of(apart[1]), (std::vector{Access::none, Access::read_write}));
    EXPECT_TRUE(windows.is_open());
    windows.close();
}

TEST_F(WindowsCallTest, WhatItUsesIsGivenBackWhereItBeginsInTheMiddleOfArming) {
    in_the_middle_of(apart[0], Access::none, [&] { begin({apart[1]}); });
    EXPECT_EQ(windows.open(apart, there), 1u);
    EXPECT_TRUE(interrupted);
    windows.close();
    EXPECT_TRUE(kernel.changes_of(apart[1]).empty());
}

TEST_F(WindowsCallTest, WhatItUsesIsGivenBackWhereItInterruptsTheVeryChange) {
    in_the_middle_of(apart[0], Access::none, [&] {
        const Inside inside; // a signal's handler in the thread that arms
        InFlight call;
        call.add(apart[0]);
        Windows::begin(call);
        EXPECT_EQ(kernel.changes_of(apart[0]), (std::vector{Access::none, Access::read_write}));
        call.end();
    });
    EXPECT_EQ(windows.open(apart, there), 2u);
    EXPECT_TRUE(interrupted);
    windows.close();
}

TEST_F(WindowsCallTest, EachOfItsRangesIsLeftOut) {
    begin({page(1), {1, 2}, page(5), {page(9).begin, page(9).begin}});
    const std::array<Range, 4> granules{page(1), page(3), page(5), page(9)};
    EXPECT_EQ(windows.open(granules, there), 2u);
    windows.close();
}

TEST_F(WindowsCallTest, OfVeryManyRangesNoneIsArmed) {
    std::vector<Range> uses;
    std::vector<Range> granules;
    for (std::size_t i = 0; i < 60; ++i)
        (i < 40 ? uses : granules).push_back(page(2 * i));
    granules.insert(granules.begin(), uses.begin(), uses.end());
    begin(uses);
    EXPECT_EQ(windows.open(granules, there), 20u);
    windows.close();
}

TEST_F(WindowsCallTest, OneThatMayUseAnythingEndsTheWindowAndLetsNoneOpen) {
    EXPECT_EQ(windows.open(apart, there), 2u);
    begin({all_memory});
    EXPECT_FALSE(windows.is_open());
    EXPECT_EQ(kernel.changes_of(apart[1]), (std::vector{Access::none, Access::read_write}));
    windows.close();
    EXPECT_EQ(windows.open(apart, there), 0u);
    EXPECT_EQ(windows.forbidden(), nullptr);
    end();
    EXPECT_EQ(windows.open(apart, there), 2u);
    windows.close();
}

TEST_F(WindowsCallTest, OneThatWasLeftByAThreadThatHasEndedForbidsNothing) {
    in_flight::prepare();
    std::thread([&] {
        InFlight call;
        call.add(apart[0]);
        Windows::begin(call);
    }).join();
    EXPECT_EQ(windows.open(apart, there), 2u);
    windows.close();
}

TEST_F(WindowsCallTest, OneThatItsThreadHasJumpedOutOfForbidsNothingAfterTheNext) {
    std::thread([&] {
        const auto deep = [&]() __attribute__((noinline)) {
            char frame[256];
            asm volatile("" ::"r"(frame) : "memory");
            InFlight left;
            left.add(all_memory);
            Windows::begin(left);
        };
        deep();
        InFlight next;
        next.add(apart[0]);
        Windows::begin(next);
        EXPECT_EQ(open_from_another_thread(), 1u);
        windows.close();
        next.end();
    }).join();
}

TEST_F(WindowsCallTest, OnesThatItsThreadHasJumpedOutOfAtOnePlaceForbidNothing) {
    std::thread([&] {
        for (std::size_t i = 0; i < 100; ++i) {
            InFlight left;
            left.add(page(100 + i));
            Windows::begin(left);
        }
        std::thread([&] {
            const std::array<Range, 2> granules{page(100), page(199)};
            EXPECT_EQ(windows.open(granules, there), 1u) << "the last one may go on";
        }).join();
        windows.close();
    }).join();
}

TEST_F(WindowsCallTest, OneOfMoreThreadsThanThereIsRoomForLetsNoWindowOpen) {
    for (ThreadCalls& calls : in_flight::threads)
        ++calls.taken;
    std::thread([&] {
        InFlight call;
        call.add(page(500));
        Windows::begin(call);
        EXPECT_EQ(open_from_another_thread(), 0u);
        call.end();
        EXPECT_EQ(open_from_another_thread(), 2u);
        windows.close();
    }).join();
    for (ThreadCalls& calls : in_flight::threads)
        --calls.taken;
}

TEST_F(WindowsCallTest, OneOfASignalsHandlerLeavesTheOneThatItInterrupts) {
    std::thread([&] {
        InFlight interrupted_one;
        interrupted_one.add(apart[0]);
        Windows::begin(interrupted_one);
        const auto handler = [&]() __attribute__((noinline)) {
            char frame[256];
            asm volatile("" ::"r"(frame) : "memory");
            InFlight own;
            own.add(apart[1]);
            Windows::begin(own);
            EXPECT_EQ(open_from_another_thread(), 0u);
            own.end();
        };
        handler();
        EXPECT_EQ(open_from_another_thread(), 1u);
        windows.close();
        interrupted_one.end();
    }).join();
}

TEST_F(WindowsCallTest, OneOfAChildThatIsAnotherProgramByNowForbidsNothingAfterTheNext) {
    std::thread([&] {
        InFlight exec;
        exec.add_for_child(all_memory);
        Windows::begin(exec);
        EXPECT_EQ(open_from_another_thread(), 0u);
        InFlight next;
        next.add(apart[0]);
        Windows::begin(next);
        EXPECT_EQ(open_from_another_thread(), 1u);
        windows.close();
        next.end();
    }).join();
}

TEST_F(WindowsCallTest, OneThatTheDriverHasLeftForbidsNothing) {
    InFlight left;
    left.add(all_memory);
    Windows::begin(left);
    EXPECT_EQ(windows.open(apart, there), 2u);
    windows.close();
}

TEST_F(WindowsCallTest, OneThatTouchesWhatItUsesEndsNoWindowButLetsNoneOpen) {
    EXPECT_EQ(windows.open(apart, there), 2u);
    std::thread([&] {
        InFlight call;
        call.add(all_memory);
        Windows::begin_touching();
        EXPECT_TRUE(windows.is_open());
        std::thread([&] {
            windows.close();
            EXPECT_EQ(windows.open(apart, there), 0u);
        }).join();
        call.end();
    }).join();
}

TEST_F(WindowsCallTest, OneThatTouchesWhatItUsesStopsTheArming) {
    in_the_middle_of(apart[0], Access::none, [&] {
        other = std::thread([&] {
            InFlight call;
            call.add(all_memory);
            begun = true;
            Windows::begin_touching();
            EXPECT_TRUE(kernel.changes_of(apart[1]).empty());
            call.end();
        });
        while (!begun)
            std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
    windows.open(apart, there);
    other.join();
    windows.close();
}

class WindowsMappingsTest : public WindowsTest {
  protected:
    WindowsMappingsTest() {
        the_clock = []() noexcept { return now; };
    }
    ~WindowsMappingsTest() override { the_clock = monotonic_seconds; }
    /// Windows of a process with so many mappings, of 800 that it may have.
    void with(std::size_t mappings) {
        kernel.process = {mappings, 800};
        now += 1000;
        const WatchedRange all{{page(0).begin, page(1024).end}, page_bytes()};
        EXPECT_TRUE(windows.start(std::span(&all, 1)));
    }
    static inline double now = 1e9;
    std::array<Range, 6> granules{page(1), page(3), page(4), page(6), page(8), page(10)};
};

TEST_F(WindowsMappingsTest, AnEighthIsLeftToTheProgram) {
    with(700);
    EXPECT_EQ(windows.open(granules, there), 0u);
    with(695);
    EXPECT_EQ(windows.open(granules, there), 3u) << "one alone costs two, two neighbours three";
    windows.close();
    with(689);
    EXPECT_EQ(windows.open(granules, there), 6u);
    windows.close();
    with(697);
    EXPECT_EQ(windows.open(std::span(granules).subspan(1, 2), there), 2u);
    windows.close();
    with(698);
    EXPECT_EQ(windows.open(std::span(granules).subspan(1, 2), there), 1u) << "a run is cut";
    windows.close();
}

TEST_F(WindowsMappingsTest, WhatFoundNoRoomComesFirstInTheNextWindow) {
    with(695);
    for (int window = 0; window < 2; ++window) {
        EXPECT_GT(windows.open(granules, there), 0u);
        windows.close();
    }
    EXPECT_EQ(kernel.changes_of(page(1)).size(), 2u);
    EXPECT_EQ(kernel.changes_of(page(6)).size(), 2u);
    EXPECT_EQ(kernel.changes_of(page(8)).size(), 2u);
    EXPECT_TRUE(kernel.changes_of(page(10)).empty());
}

TEST_F(WindowsMappingsTest, TheyAreCountedAgainBetweenWindows) {
    with(100);
    EXPECT_EQ(windows.open(granules, there), 6u);
    windows.close();
    kernel.process.now = 760;
    now += 1;
    std::vector<Reference> seen;
    windows.drain(seen);
    EXPECT_EQ(windows.open(granules, there), 0u);
}

TEST_F(WindowsTest, AreasBeyondTheMostAreWatchedToo) {
    std::vector<WatchedRange> many;
    for (std::size_t i = 0; i < 20000; ++i)
        many.push_back({page(2 * i), page_bytes()});
    EXPECT_TRUE(windows.start(many));
    const std::array<Range, 2> granules{page(0), page(2 * 19999)};
    EXPECT_EQ(windows.open(granules, there), 2u);
    std::thread([&] {
        InFlight call;
        call.add(granules[1]);
        Windows::begin(call);
        call.end();
    }).join();
    EXPECT_EQ(kernel.changes_of(granules[1]), (std::vector{Access::none, Access::read_write}));
    windows.close();
}

TEST_F(WindowsTest, WithThreadsThatMakeCallsNothingIsProtectedThatOneUses) {
    constexpr std::size_t pages = 16;
    static std::array<std::atomic<bool>, pages> armed;
    kernel.within = [&](const NotingKernel::Change& change) {
        for (std::size_t i = 0; i < pages; ++i)
            if (change.range.overlaps(page(2 * i))) armed[i] = change.access == Access::none;
    };
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    std::atomic<std::uint64_t> calls{0};
    const auto caller = [&](std::size_t first) {
        for (std::size_t i = first; !stop; i = (i + 1) % pages) {
            InFlight call;
            call.add(page(2 * i));
            call.add(page(2 * ((i + 3) % pages)));
            Windows::begin(call);
            for (int looks = 0; looks < 20; ++looks)
                wrong += armed[i] + armed[(i + 3) % pages];
            call.end();
            ++calls;
        }
    };
    std::array<std::thread, 3> threads{std::thread(caller, 0), std::thread(caller, 5),
                                       std::thread(caller, 9)};
    std::vector<Range> granules;
    for (std::size_t i = 0; i < pages; ++i)
        granules.push_back(page(2 * i));
    std::size_t opened = 0;
    for (int round = 0; round < 2000 || calls < 1000; ++round) {
        opened += windows.open(granules, there);
        if (round % 4 == 0) std::this_thread::yield();
        windows.close();
    }
    stop = true;
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(opened, 0u);
}

std::atomic<int> signals_handled{0};

/// A signal that comes in the middle of a change is handled when the change is over: its handler may make a
/// call that waits for it, or hold the thread until others have changed memory.
TEST_F(WindowsTest, NoHandlerInterruptsAChangeOfTheRightToAccess) {
    struct sigaction action = {}, before = {};
    action.sa_handler = [](int) { ++signals_handled; };
    ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
    signals_handled = 0;
    int raised = 0, early = 0;
    kernel.within = [&](const NotingKernel::Change&) {
        const int handled = signals_handled;
        ::raise(SIGUSR1);
        ++raised;
        early += signals_handled != handled;
    };
    EXPECT_EQ(windows.open(apart, there), 2u);
    const int after_opening = signals_handled;
    EXPECT_GT(after_opening, 0) << "it is handled behind the change";
    windows.release(apart[1]);
    const int after_release = signals_handled;
    EXPECT_GT(after_release, after_opening);
    windows.close();
    EXPECT_GT(signals_handled, after_release);
    EXPECT_EQ(raised, 4) << "each granule is armed and given back";
    EXPECT_EQ(early, 0);
    EXPECT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

} // namespace
} // namespace homing::sources_windows_calls_tests
