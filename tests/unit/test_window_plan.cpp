// Which granules a window arms: within a budget, where a region uses them, and from every part of an area.
#include "areas/areas.hpp"
#include "kernel/kernel.hpp"
#include "machines.hpp"
#include "sources/window_plan.hpp"

#include <cstdlib>
#include <gtest/gtest.h>
#include <set>
#include <sys/mman.h>

namespace homing::window_plan_tests {
namespace {

class WindowPlanTest : public ::testing::Test {
  protected:
    static constexpr std::size_t pages = 1600;

    WindowPlanTest() : nodes_(machine_of(2).targets()) {
        ::setenv("HOMING_AREAS", "include=heap*", 1);
        memory_ = ::mmap(nullptr, pages * page_bytes(), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        const auto begin = reinterpret_cast<Address>(memory_);
        const Address origin[max_origin_frames] = {0x1234};
        area_registry().note({begin, begin + pages * page_bytes()}, AreaKind::heap_block, origin, 1, nullptr);
        watch_ = std::make_unique<WatchList>(nodes_, 1);
        watch_->synchronise(0);
    }
    ~WindowPlanTest() override {
        area_registry().end(reinterpret_cast<Address>(memory_));
        ::munmap(memory_, pages * page_bytes());
        ::unsetenv("HOMING_AREAS");
    }
    WatchedArea& area() { return *watch_->areas().front(); }
    void want_all(WindowPlan& plan) {
        area().pending.clear();
        for (std::uint64_t page = 0; page < area().granules; ++page)
            area().pending.push_back(page);
        plan.gather(*watch_);
    }
    struct Seen {
        std::size_t armed = 0;
        std::size_t touched = 0;
    };
    /// Runs a region in which only pages from `first` on are touched.
    Seen look(WindowPlan& plan, Site site, double seconds, double elapsed, std::uint64_t first) {
        const std::vector<Range> armed = plan.choose(site, seconds, elapsed);
        std::vector<Reference> references;
        for (const Range& granule : armed)
            if (area().granule_of(granule.begin) >= first) references.push_back({granule.begin, 0, false, 1});
        pay(plan, armed.size(), references.size());
        plan.observed(*watch_, site, references, seconds > 0 ? seconds : 0.01);
        return {armed.size(), references.size()};
    }
    /// So many were armed, which took so long each, and so many touched; the others stand or were given back.
    void pay(WindowPlan& plan, std::size_t armed, std::size_t touched, double arming = 0, double back = 0,
             std::size_t standing = 0) {
        costs_.armed += armed;
        costs_.arm_seconds += arming * static_cast<double>(armed);
        costs_.touches += touched;
        costs_.back_seconds += back;
        plan.paid(costs_, standing);
    }
    /// The same; how many were armed.
    std::size_t run(WindowPlan& plan, Site site, double seconds, double elapsed, std::uint64_t first = 0) {
        return look(plan, site, seconds, elapsed, first).armed;
    }

    NodeMap nodes_;
    void* memory_ = nullptr;
    std::unique_ptr<WatchList> watch_;
    Windows::Costs costs_; ///< of the plan that a test has
};

TEST_F(WindowPlanTest, ObservationStaysWithinItsShare) {
    WindowPlan plan(0.01, 7);
    plan.calibrate(5e-6);
    want_all(plan);
    double elapsed = 0;
    for (int i = 0; i < 20000; ++i) {
        run(plan, {1}, 0.002, elapsed);
        elapsed += 0.002;
    }
    EXPECT_LE(plan.spent(), 0.01 * elapsed + 400 * 15e-6 + 1e-4);
    EXPECT_GE(plan.spent(), 0.005 * elapsed) << "what may be spent is used";
}

TEST_F(WindowPlanTest, WhatMayBeSpentAtOnceIsLimitedInSecondsWhereTimeIsAMeasure) {
    const auto spent_at_once = [&](double slowness) {
        WindowPlan plan(0, 7);
        costs_ = {};
        plan.calibrate(5e-6, 0, 0, slowness);
        want_all(plan);
        for (int i = 0; i < 2000; ++i)
            run(plan, {1}, 0.002, 0.002 * i);
        return plan.spent();
    };
    EXPECT_LE(spent_at_once(1), 3e-3 + 1e-4);
    EXPECT_GE(spent_at_once(1), 2e-3) << "it is used";
    EXPECT_GE(spent_at_once(32), 1.5 * spent_at_once(1)) << "400 references, 6 ms, where all is slower";
}

TEST_F(WindowPlanTest, DearMachinesArmLess) {
    const auto armed = [&](double arm_seconds) {
        WindowPlan plan(0.01, 7);
        costs_ = {};
        plan.calibrate(arm_seconds);
        want_all(plan);
        std::size_t sum = 0;
        for (int i = 0; i < 100; ++i)
            sum += run(plan, {1}, 0.01, 1 + 0.01 * i);
        return sum;
    };
    EXPECT_GT(armed(2e-6), 4 * armed(50e-6));
}

/// Where windows outlast their regions.
class WindowPlanAddTest : public WindowPlanTest {
  protected:
    std::vector<Range> add(WindowPlan& plan, double elapsed) {
        const std::vector<Range> added =
            plan.add(elapsed, standing_.size(), [&](Address granule) { return standing_.contains(granule); });
        for (const Range& granule : added)
            EXPECT_TRUE(standing_.insert(granule.begin).second) << "armed already";
        pay(plan, added.size(), 0, 0, 0, standing_.size());
        plan.observed(*watch_, {1}, {}, 0.001);
        return added;
    }
    /// These are touched, between regions.
    void touch(WindowPlan& plan, const std::vector<Range>& granules) {
        std::vector<Reference> references;
        for (const Range& granule : granules) {
            standing_.erase(granule.begin);
            references.push_back({granule.begin, 0, false, 1});
        }
        pay(plan, 0, granules.size(), 0, 0, standing_.size());
        plan.observed_between(*watch_, references);
    }

    std::set<Address> standing_;
};

TEST_F(WindowPlanAddTest, WhatStandsIsNotAddedAgain) {
    WindowPlan plan(1, 7);
    want_all(plan);
    for (int i = 0; i < 200; ++i)
        touch(plan, add(plan, i));
    std::size_t added = 0;
    for (int i = 200; i < 400; ++i)
        added += add(plan, i).size(); // add() looks that none stands
    EXPECT_GE(added, 128u);
    EXPECT_LE(added, 1024u);
}

TEST_F(WindowPlanAddTest, WhatIsNeverTouchedLeavesLittleRoom) {
    WindowPlan plan(1, 7);
    want_all(plan);
    std::size_t touched = 0;
    std::size_t given_back = 0;
    for (int i = 0; i < 400; ++i) {
        std::vector<Range> added = add(plan, i);
        added.resize(added.size() / 8); // one in eight is used
        touch(plan, added);
        touched += added.size();
        if (i % 4 < 3) continue;
        given_back += standing_.size(); // decided: nothing stands
        standing_.clear();
        pay(plan, 0, 0);
    }
    EXPECT_GT(touched, 60u) << "it goes on all the same";
    EXPECT_LE(given_back, 100u * 16 + 256);
}

TEST_F(WindowPlanAddTest, AnAreaThatIsNotUsedIsSoonAskedForSeldom) {
    void* memory = ::mmap(nullptr, pages * page_bytes(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const auto begin = reinterpret_cast<Address>(memory);
    const Range unused{begin, begin + pages * page_bytes()};
    const Address origin[max_origin_frames] = {0x5678};
    area_registry().note(unused, AreaKind::heap_block, origin, 1, nullptr);
    watch_->synchronise(1);
    ASSERT_EQ(watch_->areas().size(), 2u);
    WindowPlan plan(1, 7);
    for (const auto& one : watch_->areas())
        for (std::uint64_t page = 0; page < one->granules; ++page)
            one->pending.push_back(page);
    plan.gather(*watch_);
    std::size_t of_used = 0, of_unused = 0;
    for (int i = 0; i < 100; ++i) {
        std::vector<Range> added = add(plan, i);
        of_unused += std::erase_if(added, [&](const Range& one) { return unused.contains(one.begin); });
        of_used += added.size();
        touch(plan, added);
        if (i % 4 < 3) continue;
        standing_.clear(); // decided: nothing stands
        pay(plan, 0, 0);
    }
    EXPECT_GT(of_used, 100u);
    EXPECT_LT(of_unused, of_used / 4);
    area_registry().end(begin);
    ::munmap(memory, pages * page_bytes());
}

TEST_F(WindowPlanAddTest, AddingStaysWithinItsShare) {
    WindowPlan plan(0.01, 7);
    plan.calibrate(5e-6, 20e-6, 5e-6);
    want_all(plan);
    double elapsed = 0;
    for (int i = 0; i < 20000; ++i) {
        touch(plan, add(plan, elapsed));
        elapsed += 0.002;
    }
    EXPECT_LE(plan.spent(), 0.01 * elapsed + 400 * 25e-6 + 1e-3);
    EXPECT_GE(plan.spent(), 0.005 * elapsed) << "what may be spent is used";
}

TEST_F(WindowPlanAddTest, AWindowIsOpenedWhenItIsWorthItsOpening) {
    const auto windows = [&](double opening) {
        WindowPlan plan(0.01, 7);
        costs_ = {};
        standing_.clear();
        plan.calibrate(5e-6, 20e-6, 5e-6);
        want_all(plan);
        std::size_t opened = 0;
        std::size_t touched = 0;
        for (int i = 0; i < 2000; ++i) {
            const std::vector<Range> added = add(plan, 0.002 * i);
            if (added.empty()) continue;
            plan.opened(opening);
            ++opened;
            touched += added.size();
            touch(plan, added);
        }
        EXPECT_LE(plan.spent(), 0.01 * 4 + 3e-3 + 1e-3) << "opening is paid for as arming is";
        return std::pair(opened, touched);
    };
    const auto [often, many] = windows(0);
    const auto [seldom, some] = windows(200e-6);
    EXPECT_LT(2 * seldom, often);
    EXPECT_GT(4 * some, many) << "fewer are larger";
}

TEST_F(WindowPlanAddTest, WhatAProgramDoesAnewMayBeObservedAsAtItsBegin) {
    WindowPlan plan(0.001, 7);
    plan.calibrate(5e-6, 20e-6, 5e-6);
    want_all(plan);
    const double allowance = 400 * 25e-6;
    const auto touched_within = [&](double from, double seconds) {
        std::size_t touched = 0;
        for (double elapsed = from; elapsed < from + seconds; elapsed += 0.002) {
            const std::vector<Range> added = add(plan, elapsed);
            touch(plan, added);
            touched += added.size();
        }
        return touched;
    };
    const std::size_t at_begin = touched_within(0, 0.4);
    const std::size_t later = touched_within(0.4, 0.4);
    EXPECT_LT(2 * later, at_begin) << "by then little is left";
    plan.begin_anew(0.45); // too early: 0.01 seconds were allowed
    EXPECT_LE(plan.spent(), allowance + 0.001 * 0.8 + 1e-3);
    plan.begin_anew(0.8);
    EXPECT_GT(touched_within(0.8, 0.4), at_begin / 2);
    for (int i = 0; i < 100; ++i)
        plan.begin_anew(1.2 + 0.01 * i);
    EXPECT_LE(plan.spent(), 3 * allowance);
    touched_within(2.2, 8);
    EXPECT_LE(plan.spent(), (0.001 + 0.02) * 10.2 + allowance + 1e-3);
}

TEST_F(WindowPlanAddTest, NeighboursThatAreAskedForAreArmedTogether) {
    WindowPlan plan(1, 7);
    area().pending.clear();
    for (std::uint64_t page = 0; page < area().granules; page += page % 64 == 3 ? 61 : 1)
        area().pending.push_back(page); // four of every 64
    plan.gather(*watch_);
    const std::vector<Range> added = add(plan, 1);
    ASSERT_GE(added.size(), 16u);
    std::size_t runs = 1;
    for (std::size_t i = 1; i < added.size(); ++i)
        runs += added[i].begin != added[i - 1].end;
    EXPECT_LE(2 * runs, added.size());
}

TEST(PriceTest, WhatIsHeldUpByOthersCountsForTwiceTheLeast) {
    Price price;
    price.set(5e-6);
    for (int i = 0; i < 40; ++i)
        price.saw(i % 4 == 0 ? 700e-6 : 5e-6);
    EXPECT_LE(price.value(), 10e-6);
    for (int i = 0; i < 40; ++i)
        price.saw(40e-6); // it is dearer now
    EXPECT_NEAR(price.value(), 40e-6, 1e-6);
}

TEST_F(WindowPlanTest, ALongFirstRegionDoesNotKeepWindowsFromShortOnesForEver) {
    WindowPlan plan(1, 7);
    want_all(plan);
    run(plan, {1}, 10, 0); // it touches all that is armed
    const auto windows_within = [&](double seconds) {
        int windows = 0;
        for (double passed = 0; passed < seconds; passed += 0.005)
            windows += run(plan, {2}, 0.005, 100) > 0;
        return windows;
    };
    EXPECT_LE(windows_within(2), 2) << "at first the long one may come again";
    windows_within(18);
    EXPECT_GE(windows_within(2), 10);
}

/// What a single thread's calibration did not show: word to other processors with each arming.
TEST_F(WindowPlanTest, ArmingThatIsDearInATeamIsPaidFromTheSameAllowance) {
    constexpr double alone = 5e-6;
    constexpr double in_team = 40e-6;
    WindowPlan plan(0, 7); // the allowance only
    plan.calibrate(alone);
    want_all(plan);
    std::size_t armed = 0;
    for (int i = 0; i < 1000; ++i) {
        const std::vector<Range> chosen = plan.choose({1}, 0.01, 1);
        if (chosen.empty()) break;
        std::vector<Reference> references;
        for (const Range& granule : chosen)
            references.push_back({granule.begin, 0, false, 1});
        const double before = plan.spent();
        pay(plan, chosen.size(), chosen.size(), in_team);
        plan.observed(*watch_, {1}, references, 0.01);
        armed += chosen.size();
        EXPECT_LE(plan.spent() - before, (in_team + 2 * alone) * static_cast<double>(chosen.size()) * 1.001);
    }
    const double allowance = std::min(400 * 3 * alone, 3e-3);
    EXPECT_LE(plan.spent(), allowance + 4 * in_team);
    EXPECT_GE(plan.spent(), 0.5 * allowance);
    EXPECT_GE(armed, 40u);
    EXPECT_LE(armed, 100u) << "400 references would cost several times the allowance";
}

TEST_F(WindowPlanTest, DisarmingWhatWasNotTouchedIsPaidToo) {
    const auto armed = [&](double disarm_seconds) {
        WindowPlan plan(0.01, 7);
        costs_ = {};
        plan.calibrate(5e-6);
        want_all(plan);
        std::size_t sum = 0;
        for (int i = 0; i < 1000; ++i) {
            const std::vector<Range> granules = plan.choose({1}, 0.01, 0.01 * i);
            const auto chosen = static_cast<double>(granules.size());
            std::vector<Reference> references; // of every fourth
            for (std::size_t k = 0; k < granules.size(); k += 4)
                references.push_back({granules[k].begin, 0, false, 1});
            pay(plan, granules.size(), references.size(), 5e-6, disarm_seconds * chosen);
            plan.observed(*watch_, {1}, references, 0.01);
            sum += granules.size();
        }
        return std::pair(sum, plan.spent());
    };
    const auto [many, cheap] = armed(0);
    const auto [few, dear] = armed(20e-6);
    EXPECT_GT(many, 3 * few);
    EXPECT_LE(dear, 0.01 * 10 + 400 * 15e-6 + 1e-3);
    EXPECT_GE(dear, 0.5 * cheap) << "what may be spent is used";
}

TEST_F(WindowPlanTest, ARegionIsAskedForWhatItUses) {
    WindowPlan plan(1, 7); // no limit
    want_all(plan);
    const std::uint64_t tail = pages - 2 * pages / 16;
    for (int i = 0; i < 300; ++i) // until the parts that nobody uses are given up
        run(plan, {5}, 1e-4, 1, tail);
    std::size_t used = 0;
    std::size_t all = 0;
    for (int i = 0; i < 40; ++i) {
        for (const Range& granule : plan.choose({5}, 1e-4, 1)) {
            ++all;
            used += area().granule_of(granule.begin) >= tail;
        }
        run(plan, {5}, 1e-4, 1, tail);
    }
    EXPECT_GT(used * 2, all) << "an eighth of the area, more than half of what is armed";
}

TEST_F(WindowPlanTest, APlaceIsAskedForWhatItUsesThere) {
    // One function, two places: a fine grid, and a coarse one in the last eighth of the same block.
    WindowPlan plan(1, 7);
    want_all(plan);
    const std::uint64_t tail = pages - 2 * pages / 16;
    const Site fine{5, 1};
    const Site coarse{5, 2};
    std::size_t used = 0;
    std::size_t all = 0;
    for (int i = 0; i < 80; ++i) {
        run(plan, fine, 1e-4, 1);
        const Seen seen = look(plan, coarse, 1e-4, 1, tail);
        if (i < 40) continue;
        all += seen.armed;
        used += seen.touched;
    }
    EXPECT_GT(used * 2, all) << "though the function as a whole uses everything";
}

TEST_F(WindowPlanTest, APlaceThatWorksOnAFewPagesIsAskedForLittleElse) {
    WindowPlan plan(1, 7); // no limit
    want_all(plan);
    const Site coarse{5, 77};
    const std::uint64_t tail = pages - pages / 64;
    for (int i = 0; i < 60; ++i)
        run(plan, {5, 76}, 1e-4, 1); // the same function elsewhere uses everything
    std::size_t all = 0;
    std::size_t used = 0;
    for (int i = 0; i < 200; ++i) {
        const Seen seen = look(plan, coarse, 1e-4, 1, tail);
        if (i < 100) continue;
        all += seen.armed;
        used += seen.touched;
    }
    EXPECT_GT(used, 0u) << "what is used there is found";
    EXPECT_GT(4 * used, all) << "a 64th of the area, a quarter of what is armed";
}

TEST_F(WindowPlanTest, TheAllowanceIsNotSpentOnRegionsTooShortToTouchMuch) {
    WindowPlan plan(0.01, 7);
    plan.calibrate(5e-6);
    want_all(plan);
    EXPECT_GE(run(plan, {1}, 0, 0), 64u) << "nothing is known";
    const double after_one = plan.spent();
    for (int i = 0; i < 200; ++i)
        EXPECT_EQ(run(plan, {2}, 1e-6, 0, pages), 0u) << "a long region takes 10 ms for all of it";
    EXPECT_EQ(plan.spent(), after_one);
    EXPECT_GT(run(plan, {3}, 0.005, 0), 0u);
}

TEST_F(WindowPlanTest, ShortRegionsThatTakeLongTogetherHaveTheirTurn) {
    WindowPlan plan(0.01, 7);
    plan.calibrate(5e-6);
    want_all(plan);
    EXPECT_GE(run(plan, {1}, 0, 0), 64u);
    // 1 ms after every 10 ms of the first region's: what a window costs is far less.
    std::size_t windows = 0;
    for (int i = 0; i < 20000; ++i)
        windows += run(plan, {2}, 1e-5, 3 + 1e-5 * i, pages) > 0;
    EXPECT_GE(windows, 100u) << "a program of short regions alone would never be looked at";
    EXPECT_LE(windows, 200u);
}

/// Many short regions work on what is not watched: what may be spent is kept for the one that uses the area.
TEST_F(WindowPlanTest, WhatMayBeSpentIsKeptForRegionsThatUseSomething) {
    for (const bool placed : {false, true}) {
        WindowPlan plan(0.01, 7);
        costs_ = {};
        plan.calibrate(50e-6, 0, 0, 32); // all else is slower there, too
        want_all(plan);
        Seen used;
        std::size_t wasted = 0;
        double elapsed = 0;
        for (int i = 0; i < 400; ++i)
            for (std::uint32_t k = 0; k < 5; ++k) {
                const double seconds = k == 0 ? 0.01 : 0.001;
                const Site site{k, placed ? static_cast<std::uint32_t>(i % 25) * 5 + k : PlaceTable::nowhere};
                const Seen seen = look(plan, site, seconds, elapsed, k == 0 ? 0 : pages);
                elapsed += seconds;
                wasted += seen.armed - seen.touched;
                used.touched += seen.touched;
            }
        EXPECT_GT(used.touched, wasted) << (placed ? "at known places" : "at unknown places");
        EXPECT_GT(wasted, 0u) << "regions may change what they do";
    }
}

/// Where nothing does more, what is left is spent on regions that seldom touch anything.
TEST_F(WindowPlanTest, RegionsThatTouchLittleAreLookedAtWhereNothingElseIs) {
    WindowPlan plan(0.01, 7);
    plan.calibrate(5e-6);
    want_all(plan);
    std::size_t armed = 0;
    for (int i = 0; i < 1000; ++i)
        armed += run(plan, {1}, 0.01, 0.01 * i, pages - 8);
    EXPECT_GT(plan.spent(), 0.5 * 0.01 * 10) << "what may be spent is used";
    EXPECT_GT(armed, 1000u);
}

TEST_F(WindowPlanTest, AFirstEntryIsExpectedToTakeAsLongAsTheRegionBefore) {
    WindowPlan plan(0.01, 7);
    plan.calibrate(5e-6);
    want_all(plan);
    EXPECT_GE(run(plan, {1}, 0, 0), 64u);
    plan.region_ended(1e-6);
    EXPECT_TRUE(plan.choose({2}, 0, 1).empty()) << "a small grid's";
    plan.region_ended(0.01);
    EXPECT_FALSE(plan.choose({3}, 0, 1).empty());
}

TEST_F(WindowPlanTest, OneFunctionOnGridsOfTwoSizesIsKnownByItsTime) {
    // No place is known, but regions that take an eighth work on what lies in the last eighth of the area.
    WindowPlan plan(1, 7); // no limit
    want_all(plan);
    const std::uint64_t tail = pages - 2 * pages / 16;
    Seen coarse;
    for (int i = 0; i < 80; ++i) {
        run(plan, {5}, 8e-3, 1);
        const Seen seen = look(plan, {5}, 1e-3, 1, tail);
        if (i < 40) continue;
        coarse.armed += seen.armed;
        coarse.touched += seen.touched;
    }
    EXPECT_GT(coarse.touched * 2, coarse.armed);
}

TEST_F(WindowPlanTest, ChoosingIsPaidForLikeWindows) {
    WindowPlan plan(0.01, 7);
    want_all(plan);
    ASSERT_FALSE(plan.choose({1}, 0.01, 1).empty());
    for (int i = 0; i < 100; ++i)
        plan.planned(0.01); // a second in all: what may be spent of 100
    EXPECT_TRUE(plan.choose({1}, 0.01, 30).empty());
    EXPECT_FALSE(plan.choose({1}, 0.01, 110).empty());
}

TEST_F(WindowPlanTest, WhatIsFilteredOutIsNotCounted) {
    WindowPlan plan(0.01, 7);
    want_all(plan);
    const std::size_t all = plan.choose({1}, 0, 1).size();
    ASSERT_GT(all, 16u);
    std::size_t kept = 0;
    const auto& left =
        plan.filter([&](const Range& granule) { return granule.begin / page_bytes() % 2 == 0; });
    kept = left.size();
    EXPECT_LT(kept, all);
    plan.observed(*watch_, {1}, {}, 0.01);
    EXPECT_EQ(plan.touch_estimate(1, area().id), 0);
    EXPECT_GT(kept, 0u);
}

TEST(PlaceTable, EachPlaceHasItsOwnTime) {
    PlaceTable places;
    EXPECT_EQ(places.enter(0, ~0u), PlaceTable::nowhere);
    places.timed(7);
    const std::uint32_t first = places.enter(3, 0);
    EXPECT_EQ(places.mean_seconds(), 0) << "not known yet";
    places.timed(2);
    EXPECT_NE(places.enter(3, 1), first);
    places.timed(10);
    EXPECT_EQ(places.enter(3, 0), first);
    EXPECT_EQ(places.mean_seconds(), 2);
    places.timed(4);
    places.timed(100); // not of this place: it has ended
    places.enter(3, 0);
    EXPECT_EQ(places.mean_seconds(), 3);
    const std::uint32_t other = places.enter(4, 0);
    EXPECT_NE(other, first) << "another iteration";
    EXPECT_EQ(places.mean_seconds(), 0);
    places.enter(0, ~0u); // the period broke
    EXPECT_NE(places.enter(4, 0), other);
}

} // namespace
} // namespace homing::window_plan_tests
