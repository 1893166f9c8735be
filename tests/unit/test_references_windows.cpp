// Windows while memory goes away in other threads: what is no longer the program's array must keep the
// protection that its next owner gives it.
#include "references/windows.hpp"

#include "base/clock.hpp"
#include "base/inside.hpp"
#include "kernel/kernel.hpp"

#include <array>
#include <chrono>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>

namespace homing {
namespace {

constexpr Address first_page = 0x10000000;

Range page(std::size_t number) {
    const Address begin = first_page + number * page_bytes();
    return {begin, begin + page_bytes()};
}

/// Notes who changes the right to access what, and lets a test act in the middle of it.
class NotingKernel final : public Kernel {
  public:
    struct Change {
        Range range;
        Access access;
    };
    std::function<void(const Change&)> within;

    int protect(Range range, Access access) noexcept override {
        const Change change{range, access};
        {
            const std::lock_guard lock(mutex_);
            changes_.push_back(change);
        }
        if (within) within(change);
        return 0;
    }
    Mappings mappings() noexcept override {
        ++counted;
        return process;
    }
    Mappings process;
    int counted = 0;
    std::vector<Access> changes_of(Range range) const {
        const std::lock_guard lock(mutex_);
        std::vector<Access> found;
        for (const Change& change : changes_)
            if (change.range.overlaps(range)) found.push_back(change.access);
        return found;
    }

    int query(std::span<void* const>, std::span<int>) noexcept override { return ENOSYS; }
    int move(std::span<void* const>, std::span<const int>, std::span<int>) noexcept override {
        return ENOSYS;
    }
    int bind(Range, MemoryPolicy) noexcept override { return ENOSYS; }
    int policy_at(Address, MemoryPolicy&) noexcept override { return ENOSYS; }
    int task_policy(MemoryPolicy&) noexcept override { return ENOSYS; }
    int allowed_nodes(NodeSet&) noexcept override { return ENOSYS; }
    int current_node() noexcept override { return 0; }
    std::uint64_t free_bytes(int) noexcept override { return 0; }
    int open_sampler(const SamplerEvent&, int, std::size_t, SamplerRing&) noexcept override { return ENOSYS; }
    void close_sampler(SamplerRing&) noexcept override {}
    int node_of_cpu(int) noexcept override { return 0; }

  private:
    mutable std::mutex mutex_;
    std::vector<Change> changes_;
};

bool there() { return true; }

class WindowsTest : public testing::Test {
  protected:
    WindowsTest() {
        const WatchedRange all{{page(0).begin, page(1024).end}, page_bytes()};
        EXPECT_TRUE(windows.start(std::span(&all, 1)));
    }
    /// The first change of `at` to `access` is interrupted by what another thread does.
    void in_the_middle_of(Range at, Access access, const std::function<void()>& act) {
        kernel.within = [this, at, access, act](const NotingKernel::Change& change) {
            if (interrupted || change.access != access || !change.range.overlaps(at)) return;
            interrupted = true;
            act();
        };
    }

    NotingKernel kernel;
    Windows windows{kernel, 64};
    std::array<Range, 2> apart{page(1), page(3)};
    bool interrupted = false;
};

TEST_F(WindowsTest, WhatIsNotTouchedIsArmedAndGivenBack) {
    EXPECT_EQ(windows.open(apart, there), 2u);
    windows.close();
    for (const Range& granule : apart)
        EXPECT_EQ(kernel.changes_of(granule), (std::vector{Access::none, Access::read_write}));
}

TEST_F(WindowsTest, NothingIsArmedWhereMemoryMayHaveGoneBefore) {
    EXPECT_EQ(windows.open(apart, [] { return false; }), 0u);
    EXPECT_FALSE(windows.is_open());
    for (const Range& granule : apart)
        EXPECT_TRUE(kernel.changes_of(granule).empty());
}

TEST_F(WindowsTest, MemoryThatGoesWhileItsNeighboursAreArmedIsNotTouched) {
    in_the_middle_of(apart[0], Access::none, [&] { std::thread([&] { windows.release(apart[1]); }).join(); });
    EXPECT_EQ(windows.open(apart, there), 1u);
    EXPECT_TRUE(interrupted);
    windows.close();
    EXPECT_TRUE(kernel.changes_of(apart[1]).empty());
}

TEST_F(WindowsTest, MemoryThatTheProgramProtectsWhileItsNeighboursAreArmedIsNotTouched) {
    in_the_middle_of(apart[0], Access::none, [&] { std::thread([&] { windows.exclude(apart[1]); }).join(); });
    EXPECT_EQ(windows.open(apart, there), 1u);
    EXPECT_TRUE(interrupted);
    windows.close();
    EXPECT_TRUE(kernel.changes_of(apart[1]).empty());
}

TEST_F(WindowsTest, MemoryThatGoesWhileItsNeighboursAreGivenBackIsNotTouchedLater) {
    std::vector<Access> when_gone;
    in_the_middle_of(apart[0], Access::read_write, [&] {
        std::thread([&] { windows.release(apart[1]); }).join();
        when_gone = kernel.changes_of(apart[1]);
    });
    EXPECT_EQ(windows.open(apart, there), 2u);
    windows.close();
    EXPECT_TRUE(interrupted);
    EXPECT_EQ(when_gone, (std::vector{Access::none, Access::read_write})) << "given back before it went";
    EXPECT_EQ(kernel.changes_of(apart[1]), when_gone) << "touched by the one who closes the window";
}

/// In the middle of a change another thread wants the memory to go: it waits until the change is over.
class WindowsWaitTest : public WindowsTest {
  protected:
    void release_in_the_middle_of(Access access) {
        in_the_middle_of(apart[1], access, [&] {
            other = std::thread([&] {
                begun = true;
                windows.release(apart[1]);
                when_gone = kernel.changes_of(apart[1]);
                gone = true;
            });
            while (!begun)
                std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            EXPECT_FALSE(gone) << "the memory goes while its protection changes";
        });
    }
    void expect_gone_unchanged() {
        other.join();
        EXPECT_EQ(when_gone.back(), Access::read_write);
        EXPECT_EQ(kernel.changes_of(apart[1]), when_gone);
    }

    std::thread other;
    std::atomic<bool> begun{false};
    std::atomic<bool> gone{false};
    std::vector<Access> when_gone;
};

TEST_F(WindowsWaitTest, UntilItIsArmed) {
    release_in_the_middle_of(Access::none);
    windows.open(apart, there);
    windows.close();
    expect_gone_unchanged();
}

TEST_F(WindowsWaitTest, UntilItIsGivenBackAtTheEnd) {
    release_in_the_middle_of(Access::read_write);
    windows.open(apart, there);
    windows.close();
    expect_gone_unchanged();
}

TEST_F(WindowsWaitTest, UntilATouchIsAnswered) {
    release_in_the_middle_of(Access::read_write);
    windows.open(apart, there);
    EXPECT_EQ(windows.fault(apart[1].begin, true), Windows::Verdict::counted);
    windows.close();
    expect_gone_unchanged();
}

TEST_F(WindowsWaitTest, UntilAnotherThreadHasGivenUpTheWindow) {
    release_in_the_middle_of(Access::read_write);
    windows.open(apart, there);
    std::thread([&] { windows.abandon_and_wait(); }).join();
    expect_gone_unchanged();
}

/// In the middle of giving up the window by one thread, the driver goes on, and a third still meets an armed
/// page.
class WindowsGivenUpTest : public WindowsTest {
  protected:
    /// What apart[1] is to the one who touches it meanwhile.
    Windows::Verdict touched_while(const std::function<void()>& driver) {
        Windows::Verdict verdict{};
        in_the_middle_of(apart[0], Access::read_write, [&] {
            other = std::thread([&] {
                begun = true;
                driver();
                gone_on = true;
            });
            while (!begun)
                std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            EXPECT_FALSE(gone_on) << "the window's slots are forgotten while a page is armed";
            verdict = windows.fault(apart[1].begin, true);
        });
        EXPECT_EQ(windows.open(apart, there), 2u);
        std::thread([&] { windows.abandon(); }).join();
        EXPECT_TRUE(interrupted);
        other.join();
        return verdict;
    }

    std::thread other;
    std::atomic<bool> begun{false};
    std::atomic<bool> gone_on{false};
};

TEST_F(WindowsGivenUpTest, ATouchIsAnsweredBeforeTheWindowIsClosed) {
    EXPECT_EQ(touched_while([&] { windows.close(); }), Windows::Verdict::counted);
    for (const Range& granule : apart)
        EXPECT_EQ(kernel.changes_of(granule), (std::vector{Access::none, Access::read_write}));
}

TEST_F(WindowsGivenUpTest, ATouchIsAnsweredBeforeTheNextOneIsOpen) {
    const Range next = page(5);
    EXPECT_EQ(touched_while([&] { EXPECT_EQ(windows.open(std::span(&next, 1), there), 1u); }),
              Windows::Verdict::counted);
    windows.close();
    for (const Range& granule : {apart[0], apart[1], next})
        EXPECT_EQ(kernel.changes_of(granule), (std::vector{Access::none, Access::read_write}));
}

TEST_F(WindowsTest, AFaultOnWhatWasNeverArmedIsTheProgramsOwn) {
    windows.exclude(apart[0]);
    EXPECT_EQ(windows.open(apart, there), 1u);
    EXPECT_EQ(windows.fault(apart[0].begin, true), Windows::Verdict::foreign);
    EXPECT_EQ(windows.fault(apart[1].begin, true), Windows::Verdict::counted);
    EXPECT_EQ(windows.fault(apart[1].begin, true), Windows::Verdict::foreign) << "it is open already";
}

TEST_F(WindowsTest, ATouchOfWhatAnotherThreadIsOpeningIsTriedAgain) {
    auto verdict = Windows::Verdict::counted;
    in_the_middle_of(apart[0], Access::read_write, [&] {
        std::thread([&] {
            verdict = windows.fault(apart[0].begin, false);
            EXPECT_TRUE(windows.open_again(apart[0].begin));
        }).join();
    });
    windows.open(apart, there);
    EXPECT_EQ(windows.fault(apart[0].begin, true), Windows::Verdict::counted);
    EXPECT_EQ(verdict, Windows::Verdict::retry);
}

TEST_F(WindowsTest, WhatIsTouchedBeforeTheRestIsArmedCounts) {
    in_the_middle_of(apart[1], Access::none, [&] { windows.fault(apart[0].begin, true); });
    EXPECT_EQ(windows.open(apart, there), 2u);
    EXPECT_TRUE(windows.is_open());
    windows.close();
    std::vector<Reference> seen;
    windows.drain(seen);
    EXPECT_EQ(seen.size(), 1u);
}

TEST_F(WindowsTest, AWindowInWhichNothingCouldBeArmedIsNotOpen) {
    windows.exclude({page(0).begin, page(8).end});
    EXPECT_EQ(windows.open(apart, there), 0u);
    EXPECT_FALSE(windows.is_open());
}

TEST_F(WindowsTest, AFaultOfTheLastWindowIsNotTakenForOneOfTheNext) {
    EXPECT_EQ(windows.open(std::span(apart.data(), 1), there), 1u);
    windows.close();
    EXPECT_EQ(windows.fault(apart[0].begin, true), Windows::Verdict::foreign);
    std::vector<Reference> seen;
    windows.drain(seen);
    EXPECT_TRUE(seen.empty());
    EXPECT_EQ(windows.fault(apart[0].begin, true), Windows::Verdict::foreign);
    EXPECT_FALSE(windows.open_again(apart[0].begin)) << "it is whoever's it is now";
}

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
        std::thread([&] { EXPECT_EQ(windows.open(apart, there), 1u); }).join();
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
        std::thread([&] { EXPECT_EQ(windows.open(apart, there), 0u); }).join();
        call.end();
        std::thread([&] { EXPECT_EQ(windows.open(apart, there), 2u); }).join();
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
            std::thread([&] { EXPECT_EQ(windows.open(apart, there), 0u); }).join();
            own.end();
        };
        handler();
        std::thread([&] { EXPECT_EQ(windows.open(apart, there), 1u); }).join();
        windows.close();
        interrupted_one.end();
    }).join();
}

TEST_F(WindowsCallTest, OneOfAChildThatIsAnotherProgramByNowForbidsNothingAfterTheNext) {
    std::thread([&] {
        InFlight exec;
        exec.add_for_child(all_memory);
        Windows::begin(exec);
        std::thread([&] { EXPECT_EQ(windows.open(apart, there), 0u); }).join();
        InFlight next;
        next.add(apart[0]);
        Windows::begin(next);
        std::thread([&] { EXPECT_EQ(windows.open(apart, there), 1u); }).join();
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

TEST_F(WindowsCallTest, OneThatTouchesWhatItUsesEndsAWindowThatIsBeingArmed) {
    in_the_middle_of(apart[0], Access::none, [&] {
        other = std::thread([&] {
            InFlight call;
            call.add(all_memory);
            begun = true;
            Windows::begin_touching();
            call.end();
        });
        while (!begun || windows.is_open())
            std::this_thread::yield();
    });
    EXPECT_EQ(windows.open(apart, there), 0u);
    other.join();
    EXPECT_TRUE(kernel.changes_of(apart[1]).empty());
}

TEST_F(WindowsCallTest, OneOfWhichOnlyArgumentsAreKnownEndsTheWindowWhereOneIsWatched) {
    const std::array<long, 2> elsewhere{3, static_cast<long>(page(2000).begin)};
    const std::array<long, 2> watched{3, static_cast<long>(page(7).begin)};
    EXPECT_EQ(windows.open(apart, there), 2u);
    Windows::begin_with(elsewhere);
    EXPECT_TRUE(windows.is_open());
    Windows::begin_with(watched);
    EXPECT_FALSE(windows.is_open());
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

TEST_F(WindowsTest, WithThreadsThatFreeAndFaultNothingIsChangedThatIsGone) {
    constexpr std::size_t blocks = 32;
    struct Block {
        std::atomic<bool> live{true};
        std::atomic<bool> gone{false};
        std::atomic<bool> armed{false};
    };
    static std::array<Block, blocks> block;
    std::atomic<std::uint64_t> changes{0};
    std::atomic<int> wrong{0};
    std::atomic<int> armed{0};
    kernel.within = [&](const NotingKernel::Change& change) {
        for (std::size_t i = 0; i < blocks; ++i)
            if (change.range.overlaps(page(2 * i))) {
                wrong += block[i].gone;
                armed += change.access == Access::none;
                block[i].armed = change.access == Access::none;
            }
    };
    std::atomic<bool> stop{false};
    auto frees = [&](std::size_t of) {
        for (std::size_t i = of; !stop; i = (i + 5) % blocks) {
            bool expected = true;
            if (!block[i].live.compare_exchange_strong(expected, false)) continue;
            ++changes;
            windows.release(page(2 * i));
            wrong += block[i].armed; // its next owner could not use it
            block[i].gone = true;
            std::this_thread::yield();
            block[i].gone = false;
            block[i].live = true;
            ++changes;
            std::this_thread::yield();
        }
    };
    auto touches = [&] {
        for (std::size_t i = 0; !stop; i = (i + 1) % blocks)
            if (block[i].armed && block[i].live) windows.fault(page(2 * i).begin, false);
    };
    std::array<std::thread, 3> threads{std::thread(frees, 0), std::thread(frees, 1), std::thread(touches)};
    std::vector<Reference> seen;
    for (int round = 0; round < 2000; ++round) {
        const std::uint64_t known = changes;
        std::vector<Range> granules;
        for (std::size_t i = 0; i < blocks; ++i)
            if (block[i].live) granules.push_back(page(2 * i));
        if (windows.open(granules, [&] { return changes == known; }) > 0) std::this_thread::yield();
        windows.close();
        windows.drain(seen);
    }
    stop = true;
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(armed, 0);
    EXPECT_GT(seen.size(), 0u);
    EXPECT_EQ(windows.forbidden(), nullptr);
}

} // namespace
} // namespace homing
