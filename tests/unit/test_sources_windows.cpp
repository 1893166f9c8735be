// Windows while memory goes away in other threads: what is no longer the program's array must keep the
// protection that its next owner gives it.
#include "test_all.hpp"
#include "windows_test.hpp"

#include <array>
#include <chrono>
#include <thread>

namespace homing::sources_windows_tests {
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

/// A window that outlasts its region: more is armed beside what waits for a touch already.
class WindowsStayTest : public WindowsTest {
  protected:
    std::size_t open(const Range& granule) { return windows.open(std::span(&granule, 1), there); }
    std::vector<Address> drained() {
        std::vector<Reference> seen;
        windows.drain(seen);
        std::vector<Address> begins;
        for (const Reference& reference : seen)
            begins.push_back(reference.address);
        return begins;
    }
};

TEST_F(WindowsStayTest, WhatIsArmedStaysSoWhenMoreIs) {
    EXPECT_EQ(windows.open(apart, there), 2u);
    EXPECT_EQ(open(page(2)), 1u);
    EXPECT_EQ(windows.armed(), 3u);
    EXPECT_EQ(kernel.changes_of(apart[0]), (std::vector{Access::none}));
    EXPECT_EQ(windows.open(apart, there), 0u) << "they are armed";
    EXPECT_TRUE(windows.is_open());
    windows.close();
    for (const Range& granule : {apart[0], page(2), apart[1]})
        EXPECT_EQ(kernel.changes_of(granule), (std::vector{Access::none, Access::read_write}));
}

TEST_F(WindowsStayTest, ATouchIsDrainedOnceAndTheOthersStayArmed) {
    EXPECT_EQ(windows.open(apart, there), 2u);
    EXPECT_EQ(windows.fault(apart[0].begin, true), Windows::Verdict::counted);
    EXPECT_EQ(drained(), (std::vector{apart[0].begin}));
    EXPECT_TRUE(drained().empty());
    EXPECT_TRUE(windows.is_armed(apart[1].begin));
    EXPECT_EQ(open(page(5)), 1u);
    EXPECT_EQ(windows.fault(apart[1].begin, false), Windows::Verdict::counted);
    EXPECT_EQ(drained(), (std::vector{apart[1].begin}));
    windows.close();
}

TEST_F(WindowsStayTest, ATouchThatNobodyHasDrainedOutlastsTheNextOpening) {
    EXPECT_EQ(windows.open(apart, there), 2u);
    windows.fault(apart[0].begin, true);
    EXPECT_EQ(open(page(5)), 1u);
    EXPECT_EQ(drained(), (std::vector{apart[0].begin}));
    windows.close();
}

TEST_F(WindowsStayTest, WhatWasTouchedCanBeArmedAgain) {
    for (int i = 0; i < 1000; ++i) { // slots are used anew
        EXPECT_EQ(windows.open(apart, there), i == 0 ? 2u : 1u);
        EXPECT_EQ(windows.fault(apart[0].begin, true), Windows::Verdict::counted);
        EXPECT_EQ(drained().size(), 1u);
    }
    EXPECT_EQ(kernel.changes_of(apart[1]), (std::vector{Access::none}));
    windows.close();
}

TEST_F(WindowsStayTest, NoMoreIsArmedThanThereIsRoomFor) {
    std::vector<Range> granules;
    for (std::size_t i = 0; i < 100; ++i)
        granules.push_back(page(2 * i));
    EXPECT_EQ(windows.open(std::span(granules).subspan(50), there), 50u);
    EXPECT_EQ(windows.open(granules, there), 14u) << "64 in all";
    windows.close();
    drained();
    EXPECT_EQ(windows.open(granules, there), 64u);
    windows.close();
}

TEST_F(WindowsStayTest, MemoryThatGoesLeavesTheOthersArmed) {
    EXPECT_EQ(windows.open(apart, there), 2u);
    EXPECT_EQ(open(page(5)), 1u);
    std::thread([&] { windows.release({apart[0].begin, apart[1].begin}); }).join();
    EXPECT_EQ(kernel.changes_of(apart[0]), (std::vector{Access::none, Access::read_write}));
    EXPECT_EQ(windows.armed(), 2u);
    EXPECT_EQ(windows.open(std::span(apart.data(), 1), [] { return false; }), 0u) << "it has gone";
    EXPECT_TRUE(windows.is_open()) << "the others are there";
    windows.close();
}

TEST_F(WindowsStayTest, ACallThatMayUseAnythingLetsNothingStand) {
    EXPECT_EQ(windows.open(apart, there), 2u);
    std::thread([&] {
        InFlight call;
        call.add(all_memory);
        Windows::begin(call);
        EXPECT_FALSE(windows.is_open());
        call.end();
    }).join();
    EXPECT_EQ(open(page(5)), 1u) << "it is over";
    EXPECT_EQ(windows.armed(), 1u);
    windows.close();
}

/// printf: what it is given it has looked at before it writes it.
TEST_F(WindowsStayTest, ACallThatTouchesItsMemoryLeavesWhatIsArmed) {
    EXPECT_EQ(open(page(9)), 1u);
    std::thread([&] {
        InFlight call;
        call.add(all_memory);
        Windows::begin_touching();
        std::thread([&] { EXPECT_EQ(windows.open(apart, there), 0u) << "no more while it runs"; }).join();
        call.end();
    }).join();
    EXPECT_TRUE(windows.is_armed(page(9).begin));
    EXPECT_EQ(windows.open(apart, there), 2u);
    windows.close();
}

TEST_F(WindowsStayTest, AnAccessOfHomingsOwnIsNoTouch) {
    EXPECT_EQ(windows.open(apart, there), 2u);
    EXPECT_EQ(windows.fault(apart[0].begin, true, 0, true), Windows::Verdict::counted);
    EXPECT_TRUE(drained().empty());
    EXPECT_EQ(windows.costs().touches, 0u);
    EXPECT_EQ(windows.armed(), 1u);
    windows.close();
}

TEST_F(WindowsStayTest, CallsAndFaultsAreCounted) {
    const std::array<Range, 4> granules{page(1), page(2), page(3), page(7)};
    EXPECT_EQ(windows.open(granules, there), 4u);
    windows.fault(page(2).begin, true);
    windows.fault(page(2).begin, true); // late
    windows.close();
    const Windows::Costs costs = windows.costs();
    EXPECT_EQ(costs.armed, 4u);
    EXPECT_EQ(costs.arm_calls, 2u) << "neighbours together";
    EXPECT_EQ(costs.touches, 1u);
    EXPECT_EQ(costs.faults, 2u);
    EXPECT_EQ(costs.back_calls, 3u);
}

/// Blocks of a page each that threads free and allocate again, and touch, while windows change them.
class LivingBlocks {
  public:
    static constexpr std::size_t count = 32;

    LivingBlocks(NotingKernel& kernel, Windows& windows) : kernel_(kernel), windows_(windows) {
        kernel.within = [this](const NotingKernel::Change& change) {
            for (std::size_t i = 0; i < count; ++i)
                if (change.range.overlaps(page(2 * i))) {
                    wrong += block[i].gone;
                    armed += change.access == Access::none;
                    block[i].armed = change.access == Access::none;
                }
        };
    }
    ~LivingBlocks() { kernel_.within = {}; }
    LivingBlocks(const LivingBlocks&) = delete;
    LivingBlocks& operator=(const LivingBlocks&) = delete;

    /// [thread] Frees every fifth one, and takes it again.
    void free_some(std::size_t first) {
        for (std::size_t i = first; !stop; i = (i + 5) % count) {
            bool expected = true;
            if (!block[i].live.compare_exchange_strong(expected, false)) continue;
            ++changes;
            windows_.release(page(2 * i));
            wrong += block[i].armed; // its next owner could not use it
            block[i].gone = true;
            std::this_thread::yield();
            block[i].gone = false;
            block[i].live = true;
            ++changes;
            std::this_thread::yield();
        }
    }
    /// [thread]
    void touch_all() {
        for (std::size_t i = 0; !stop; i = (i + 1) % count)
            if (block[i].armed && block[i].live) windows_.fault(page(2 * i).begin, false);
    }

    struct Block {
        std::atomic<bool> live{true};
        std::atomic<bool> gone{false};
        std::atomic<bool> armed{false};
    };
    std::array<Block, count> block;
    std::atomic<std::uint64_t> changes{0};
    std::atomic<int> wrong{0};
    std::atomic<int> armed{0};
    std::atomic<bool> stop{false};

  private:
    NotingKernel& kernel_;
    Windows& windows_;
};

/// The same as below, by a window that is never closed.
TEST_F(WindowsStayTest, WithThreadsThatFreeAndFaultNothingStandsThatIsGone) {
    LivingBlocks alive(kernel, windows);
    constexpr std::size_t blocks = LivingBlocks::count;
    auto& block = alive.block;
    auto& changes = alive.changes;
    auto& wrong = alive.wrong;
    const auto calls = [&] {
        for (std::size_t i = 0; !alive.stop; i = (i + 3) % blocks) {
            InFlight call;
            call.add(i % 16 ? page(2 * i) : all_memory);
            Windows::begin(call);
            for (int looks = 0; looks < 20; ++looks)
                wrong += block[i].armed;
            call.end();
            std::this_thread::yield();
        }
    };
    std::array<std::thread, 4> threads{std::thread([&] { alive.free_some(0); }),
                                       std::thread([&] { alive.free_some(1); }),
                                       std::thread([&] { alive.touch_all(); }), std::thread(calls)};
    std::vector<Reference> seen;
    // On a busy machine the threads may come late.
    const int rounds = test_rounds(600, 2000);
    for (int round = 0; round < rounds || (seen.empty() && round < 2'000'000); ++round) {
        const std::uint64_t known = changes;
        std::vector<Range> granules;
        for (std::size_t i = round % 3; i < blocks; i += 3)
            if (block[i].live) granules.push_back(page(2 * i));
        if (windows.open(granules, [&] { return changes == known; }) > 0) std::this_thread::yield();
        if (round % 2 == 0) windows.drain(seen);
    }
    alive.stop = true;
    for (std::thread& thread : threads)
        thread.join();
    windows.close();
    windows.drain(seen);
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(seen.size(), 0u);
    for (std::size_t i = 0; i < blocks; ++i)
        EXPECT_FALSE(block[i].armed);
    EXPECT_EQ(windows.forbidden(), nullptr);
}

TEST_F(WindowsTest, WithThreadsThatFreeAndFaultNothingIsChangedThatIsGone) {
    LivingBlocks alive(kernel, windows);
    constexpr std::size_t blocks = LivingBlocks::count;
    auto& block = alive.block;
    auto& changes = alive.changes;
    auto& wrong = alive.wrong;
    std::array<std::thread, 3> threads{std::thread([&] { alive.free_some(0); }),
                                       std::thread([&] { alive.free_some(1); }),
                                       std::thread([&] { alive.touch_all(); })};
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
    alive.stop = true;
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(alive.armed, 0);
    EXPECT_GT(seen.size(), 0u);
    EXPECT_EQ(windows.forbidden(), nullptr);
}

} // namespace
} // namespace homing::sources_windows_tests
