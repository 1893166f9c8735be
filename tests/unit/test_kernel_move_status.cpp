// What became of pages behind a run that could not be moved.
#include "kernel/move_status.hpp"
#include "kernel/simulated.hpp"

#include <gtest/gtest.h>

namespace homing {
namespace {

struct MoveStatus : ::testing::Test {
    static constexpr Address base = Address{1} << 40;
    static constexpr std::size_t count = 6;

    MoveStatus() {
        kernel.map({base, base + count * page_bytes()});
        kernel.touch_all({base, base + count * page_bytes()}, 0);
        for (std::size_t i = 0; i < count; ++i)
            pages.push_back(reinterpret_cast<void*>(base + i * page_bytes()));
    }

    SimulatedKernel kernel{{64, 64}};
    std::vector<void*> pages;
    std::vector<int> targets = std::vector<int>(count, 1);
    std::vector<int> status = std::vector<int>(count, not_attempted);
};

TEST_F(MoveStatus, ARunEndsWhereItsTargetDoes) {
    targets[4] = targets[5] = 0;
    status[0] = 1; // of an earlier run
    explain_moves(kernel, pages, targets, status, ENOMEM);
    EXPECT_EQ(status, (std::vector<int>{1, -ENOMEM, -ENOMEM, -ENOMEM, 0, 0}));
}

TEST_F(MoveStatus, ARunEndsAtAPageThatHasAReasonOfItsOwn) {
    status[2] = -EACCES;
    explain_moves(kernel, pages, targets, status, 0);
    EXPECT_EQ(status,
              (std::vector<int>{-EBUSY, -EBUSY, -EACCES, not_attempted, not_attempted, not_attempted}));
}

TEST_F(MoveStatus, WhatMovedAllTheSameIsToldSo) {
    kernel.place({base + page_bytes(), base + 2 * page_bytes()}, 1);
    explain_moves(kernel, pages, targets, status, 0);
    EXPECT_EQ(status[0], -EBUSY);
    EXPECT_EQ(status[1], 1);
}

TEST_F(MoveStatus, TheSimulatedKernelCutsItsRunsAlike) {
    kernel.make_busy({base + page_bytes(), base + 2 * page_bytes()});
    kernel.make_shared({base + 3 * page_bytes(), base + 4 * page_bytes()});
    EXPECT_EQ(kernel.move(pages, targets, status), 0);
    EXPECT_EQ(status, (std::vector<int>{1, -EBUSY, 1, -EACCES, not_attempted, not_attempted}));
}

} // namespace
} // namespace homing
