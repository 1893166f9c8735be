// Which phase a call of record, replay or undo stands for.
#include "phases/positions.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace homing::replay::phases_positions_tests {
namespace {

TEST(Positions, Figure2HasOnePhaseBetweenItsTwoRecords) {
    Positions calls;
    EXPECT_FALSE(calls.record());
    EXPECT_FALSE(calls.record());
    EXPECT_EQ(calls.phases(), 1u);
    for (int iteration = 2; iteration <= 20; ++iteration) {
        EXPECT_EQ(calls.replay(), 0u);
        calls.undo();
        EXPECT_EQ(calls.next(), 0u) << "the next iteration begins with the first position";
    }
}

TEST(Positions, TwoPhasesInARowHaveThreeRecords) {
    Positions calls;
    for (int i = 0; i < 3; ++i)
        calls.record();
    for (int iteration = 0; iteration < 5; ++iteration) {
        EXPECT_EQ(calls.replay(), 0u);
        EXPECT_EQ(calls.replay(), 1u);
        calls.undo();
    }
}

TEST(Positions, ReplayWithoutTwoRecordsHasNoPhase) {
    Positions calls;
    EXPECT_EQ(calls.replay(), Positions::no_phase);
    calls.undo();
    calls.record();
    EXPECT_EQ(calls.replay(), Positions::no_phase);
    EXPECT_FALSE(calls.replays());
    EXPECT_FALSE(calls.record()) << "nothing was replayed: the recorded iteration goes on";
    EXPECT_EQ(calls.replay(), 0u);
}

TEST(Positions, UndoInTheRecordedIterationHasNoPosition) {
    Positions calls;
    calls.record();
    calls.record();
    calls.undo();
    EXPECT_EQ(calls.replay(), 0u);
}

TEST(Positions, ReplayBehindTheLastPhaseHasNone) {
    Positions calls;
    calls.record();
    calls.record();
    EXPECT_EQ(calls.replay(), 0u);
    EXPECT_EQ(calls.replay(), Positions::no_phase);
    EXPECT_EQ(calls.replay(), 0u);
}

TEST(Positions, ARecordAfterAReplayBeginsAnew) {
    Positions calls;
    calls.record();
    calls.record();
    calls.replay();
    EXPECT_TRUE(calls.record());
    EXPECT_EQ(calls.records(), 1u);
    EXPECT_EQ(calls.phases(), 0u);
}

TEST(Positions, TheEndOfAnIterationSetsThemBack) {
    Positions calls;
    for (int i = 0; i < 4; ++i)
        calls.record();
    EXPECT_EQ(calls.replay(), 0u);
    calls.iteration_ended(); // it left its loop early
    EXPECT_EQ(calls.replay(), 0u);
}

TEST(Positions, WhateverIsCalledThePhaseIsOneOfThose) {
    rc::check([](const std::vector<std::uint8_t>& calls) {
        Positions positions;
        for (const std::uint8_t call : calls) {
            if (call % 4 == 0) positions.record();
            if (call % 4 == 1)
                if (const std::size_t phase = positions.replay(); phase != Positions::no_phase)
                    RC_ASSERT(phase < positions.phases());
            if (call % 4 == 2) positions.undo();
            if (call % 4 == 3) positions.iteration_ended();
            RC_ASSERT(positions.next() <= positions.phases());
        }
    });
}

} // namespace
} // namespace homing::replay::phases_positions_tests
