// Windows while memory goes away in other threads: what is no longer the program's array must keep the
// protection that its next owner gives it.
#include "windows_test.hpp"

#include <array>
#include <chrono>
#include <thread>

namespace homing {
namespace {

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
    EXPECT_NE(windows.fault(apart[0].begin, true), Windows::Verdict::counted);
    EXPECT_EQ(windows.fault(apart[1].begin, true), Windows::Verdict::counted);
    EXPECT_EQ(windows.fault(apart[1].begin, true), Windows::Verdict::late) << "it is open already";
    EXPECT_EQ(windows.fault(apart[1].end + page_bytes(), true), Windows::Verdict::foreign);
}

TEST_F(WindowsTest, NothingIsTakenAwayAfterAFaultOfTheProgramsOwnUntilTheNextWindow) {
    EXPECT_TRUE(windows.is_quiet());
    EXPECT_EQ(windows.open(apart, there), 2u);
    EXPECT_FALSE(windows.is_quiet());
    const std::uint32_t window = windows.sequence();
    windows.cut_short();
    EXPECT_TRUE(windows.is_quiet());
    EXPECT_EQ(windows.sequence(), window);
    windows.close();
    EXPECT_EQ(windows.open(apart, there), 2u);
    EXPECT_NE(windows.sequence(), window);
}

TEST_F(WindowsTest, AProgramWhoseFaultsEndEveryWindowHasNoMore) {
    for (int i = 0; i < 32; ++i) {
        EXPECT_EQ(windows.open(apart, there), 2u) << i;
        windows.cut_short();
        windows.cut_short(); // the same window
        windows.close();
    }
    EXPECT_EQ(windows.open(apart, there), 0u);
    EXPECT_NE(windows.forbidden(), nullptr);
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
    EXPECT_EQ(windows.fault(apart[0].begin, true), Windows::Verdict::late);
    std::vector<Reference> seen;
    windows.drain(seen);
    EXPECT_TRUE(seen.empty());
    EXPECT_EQ(windows.fault(apart[0].begin, true), Windows::Verdict::foreign);
    EXPECT_FALSE(windows.open_again(apart[0].begin)) << "it is whoever's it is now";
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
