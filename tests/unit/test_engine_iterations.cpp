// The engine where an iteration is not a sequence of parallel regions: barriers and calls within one, loops
// around loops, regions without any event (simulated_program.hpp).
#include "simulated_program.hpp"

#include <map>

namespace homing::engine_iterations_tests {
namespace {

TEST_F(EngineTest, OneGiantRegionIsFollowedByItsBarriers) {
    Program program(2048);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.engine->region_begin(0x1000);
    for (int i = 0; i < 120; ++i)
        for (Address site : {0x10, 0x20, 0x30}) {
            for (std::size_t page = 0; page < program.pages(); ++page)
                program.touch(page, program.block()(page));
            program.engine->barrier(site);
        }
    program.engine->region_end();
    EXPECT_GE(program.right(program.block()), program.pages() * 97 / 100);
    EXPECT_EQ(program.stuck, 0u);
}

/// The driving thread arrives at the barrier first; what the others touch on their way there is of the loop
/// that they are in.
TEST_F(EngineTest, TouchesOfThreadsThatAreLateAtABarrierAreOfThePartBeforeIt) {
    Program program(2048);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    const std::size_t half = program.pages() / 2, late = program.pages() / 8;
    program.engine->region_begin(0x1000);
    std::map<std::uint32_t, std::size_t> of_first, of_second; // touches by the part that they count for
    for (int i = 0; i < 40; ++i)
        for (const bool first : {true, false}) {
            const std::size_t begin = first ? 0 : half, end = begin + half;
            for (std::size_t page = begin; page + late < end; ++page)
                program.touch(page, program.block()(page));
            const bool tells = program.engine->barrier(first ? 0x10 : 0x20);
            for (std::size_t page = end - late; page < end; ++page)
                program.touch(page, program.block()(page));
            if (tells) program.engine->barrier_passed();
            WatchedArea* const area = program.engine->watch().find(program.range.begin);
            ASSERT_TRUE(area);
            if (i == 0) area->learnt.fresh.clear(); // its first part begins with the region
            for (const FreshTouch& touch : area->learnt.fresh)
                if (touch.place != ~std::uint32_t{0}) // it is not known where an engine at rest has been
                    ++(touch.granule < half ? of_first : of_second)[touch.place];
        }
    program.engine->region_end();
    EXPECT_EQ(of_first.size(), 1u);
    EXPECT_EQ(of_second.size(), 1u);
    EXPECT_GT(of_first.begin()->second, 20u);
    EXPECT_NE(of_first.begin()->first, of_second.begin()->first);
    EXPECT_EQ(program.stuck, 0u);
}

TEST_F(EngineTest, RegionWithManyBarriersIsPartOfTheStepAroundIt) {
    Program program(2048);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    constexpr std::uint64_t steps = 60;
    constexpr std::size_t barriers = 95;
    for (std::uint64_t step = 0; step < steps; ++step) {
        program.region(0x1000, program.block());
        program.engine->region_begin(0x2000);
        for (std::size_t i = 0; i < barriers; ++i) {
            for (std::size_t page = i; page < program.pages(); page += barriers)
                program.touch(page, program.block()(page));
            program.engine->barrier(0x10);
        }
        program.engine->region_end();
        program.region(0x3000, program.block());
    }
    EXPECT_LE(program.engine->statistics().iterations, steps + 3 * (barriers + 3)) << "two steps to learn";
    EXPECT_GE(program.right(program.block()), program.pages() * 97 / 100);
    EXPECT_EQ(program.stuck, 0u);
    EXPECT_EQ(program.simulated.protected_pages(), 0u);
}

TEST_F(EngineTest, LongerIterationWakesTheEngineThatRestsInAnInnerLoop) {
    Program program(4096);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    std::uint64_t rested = 0;
    for (int step = 0; step < 60; ++step) {
        for (int i = 0; i < 600; ++i) // a solver on the coarsest grid
            program.region(0x1000, 0, 64);
        if (step == 0) rested = program.engine->statistics().settled_at;
        for (Address function : {0x2000, 0x3000, 0x4000})
            program.region(function, program.block());
    }
    EXPECT_GT(rested, 0u);
    EXPECT_NE(program.engine->statistics().settled_at, rested) << "it woke";
    EXPECT_GE(program.right(program.block()), (program.pages() - 64) * 90 / 100);
    EXPECT_EQ(program.stuck, 0u);
}

TEST_F(EngineTest, RegionWithoutEventsIsObservedByTime) {
    Program program(2048);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.engine->region_begin(0x1000);
    for (int sweep = 0; sweep < 400; ++sweep) {
        for (std::size_t page = 0; page < program.pages(); ++page)
            program.touch(page, program.block()(page));
        EXPECT_GE(program.engine->time_passes(), 0) << "the helper goes on";
    }
    EXPECT_GE(program.right(program.block()), program.pages() * 97 / 100);
    program.engine->region_end();
    EXPECT_EQ(program.simulated.protected_pages(), 0u) << "serial code follows";
    int looks = 0;
    while (program.engine->time_passes() >= 0 && looks < 100)
        ++looks;
    EXPECT_LT(looks, 10) << "outside of regions it goes";
    EXPECT_EQ(program.simulated.protected_pages(), 0u);
    EXPECT_EQ(program.stuck, 0u);
}

TEST_F(EngineTest, HelperGoesWhereAnIterationIsKnown) {
    Program program(2048);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.iterate(60, program.block());
    const std::size_t moved = program.simulated.pages_moved();
    program.engine->region_begin(0x1000);
    EXPECT_LT(program.engine->time_passes(), 0);
    program.engine->region_end();
    EXPECT_EQ(program.simulated.pages_moved(), moved);
}

TEST_F(EngineTest, IterationsThatAreToldWithinARegionEndAtItsNextBarrier) {
    Program program(2048);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    const auto sweep = [&] {
        for (std::size_t page = 0; page < program.pages(); ++page)
            program.touch(page, program.block()(page));
    };
    program.engine->region_begin(0x1000);
    sweep();
    program.engine->barrier(0x10);
    EXPECT_EQ(program.engine->statistics().iterations, 0u) << "barriers of an ordinary region tell nothing";
    constexpr std::uint64_t told = 40;
    for (std::uint64_t i = 0; i < told; ++i) {
        sweep();
        program.engine->barrier(0x20);
        program.engine->iteration_called_in_region();
        EXPECT_EQ(program.engine->statistics().iterations, i) << "the team may be at work";
        sweep();
        program.engine->barrier(0x30);
        EXPECT_EQ(program.engine->statistics().iterations, i + 1);
    }
    program.engine->iteration_called_in_region();
    program.engine->region_end();
    EXPECT_EQ(program.engine->statistics().iterations, told + 1) << "the region's end is the last resort";
    program.engine->region_begin(0x2000);
    program.engine->region_end();
    EXPECT_EQ(program.engine->statistics().iterations, told + 1);
    EXPECT_GE(program.right(program.block()), program.pages() * 97 / 100);
    EXPECT_EQ(program.stuck, 0u);
    EXPECT_EQ(program.simulated.protected_pages(), 0u);
}

/// What is found before the first call are loops within the iteration that it ends, such as a region for each
/// of many arrays, or a solver's steps.
TEST_F(EngineTest, IterationsThatAreToldAreCountedByTheCallsAlone) {
    Program program(2048);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    constexpr std::uint64_t told = 5;
    for (std::uint64_t i = 1; i <= told; ++i) {
        program.iterate(16, program.block());
        if (i == 1) {
            EXPECT_GT(program.engine->statistics().iterations, 1u);
        }
        program.engine->iteration_called();
        EXPECT_EQ(program.engine->statistics().iterations, i);
        EXPECT_LE(program.engine->statistics().settled_at, i);
    }
    EXPECT_GE(program.right(program.block()), program.pages() * 97 / 100);
    EXPECT_EQ(program.stuck, 0u);
}

TEST_F(EngineTest, AnEngineAtRestHearsAnIterationWithinARegion) {
    Program program(2048);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.iterate(60, program.block());
    program.engine->region_begin(0x1000);
    EXPECT_GT(program.engine->statistics().iterations, 1u);
    program.engine->iteration_called_in_region();
    program.engine->region_end();
    EXPECT_EQ(program.engine->statistics().iterations, 1u);
    program.iterate(2, program.block());
    EXPECT_EQ(program.engine->statistics().iterations, 1u) << "from then on only calls count";
}

} // namespace
} // namespace homing::engine_iterations_tests
