// Hint faults for what the kernel scans, windows for what is asked.
#include "scanned_program.hpp"
#include "sources/region_log.hpp"

#include <gtest/gtest.h>

namespace homing::two_sources_tests {
namespace {

constexpr bool asks = true; ///< windows beside the scans

TEST_F(EngineTest, WhatNoScanShowsIsAskedForByWindows) {
    ScannedProgram program(1024);
    ASSERT_TRUE(program.start_scanned(asks));
    for (int i = 0; i < 40; ++i)
        program.iterate_scanned(0.1, {program.first()});
    EXPECT_TRUE(program.is_home(program.first()));
    EXPECT_TRUE(program.is_home(program.second())) << "no scan has ever shown it";
    EXPECT_GT(program.engine->statistics().settled_at, 0u);
    EXPECT_EQ(program.stuck, 0u);
}

/// The kernel scans more and more rarely where its scans find nothing to move: here not at all any more.
TEST_F(EngineTest, ACheckDoesNotWaitForTheNextScan) {
    ScannedProgram program(1024);
    ASSERT_TRUE(program.start_scanned(asks));
    for (int i = 0; i < 60; ++i)
        program.iterate_scanned(0.1, {program.first(), program.second()});
    ASSERT_GT(program.engine->statistics().settled_at, 0u);
    program.turn_owners();
    int iterations = 0;
    while (!program.is_home(program.first()) && iterations < 400) {
        program.iterate_scanned(0.1, {});
        ++iterations;
    }
    EXPECT_LT(iterations, 400) << "owners changed at rest, and no scan came";
    EXPECT_TRUE(program.is_home(program.second()));
}

/// The fault of an armed granule is a page fault, of which the kernel tells as of any other.
TEST_F(EngineTest, ATouchThatBothSourcesSeeCountsOnce) {
    ScannedProgram program(1024);
    ASSERT_TRUE(program.start_scanned(asks));
    for (int i = 0; i < 30; ++i)
        program.iterate_scanned(0.1, {});
    ASSERT_GT(program.faults, 0u);
    EXPECT_EQ(program.engine->statistics().references, program.faults);
}

TEST(RegionLog, TellsWhichRegionRanWhen) {
    RegionLog log;
    EXPECT_EQ(log.at(1), RegionLog::nowhere);
    log.enter(7, 1);
    log.enter(RegionLog::nowhere, 2);
    log.enter(8, 3);
    EXPECT_EQ(log.at(0.5), RegionLog::nowhere) << "before the first one";
    EXPECT_EQ(log.at(1), 7u);
    EXPECT_EQ(log.at(1.9), 7u);
    EXPECT_EQ(log.at(2.5), RegionLog::nowhere) << "serial code";
    EXPECT_EQ(log.at(100), 8u);
}

TEST(RegionLog, ForgetsTheOldest) {
    RegionLog log;
    const auto most = static_cast<std::uint32_t>(RegionLog::capacity);
    for (std::uint32_t region = 0; region < 3 * most; ++region)
        log.enter(region, region);
    EXPECT_EQ(log.at(2 * most - 0.5), RegionLog::nowhere);
    for (std::uint32_t region = 2 * most; region < 3 * most; ++region)
        EXPECT_EQ(log.at(region + 0.5), region);
}

} // namespace
} // namespace homing::two_sources_tests
