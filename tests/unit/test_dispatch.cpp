// Granules on their way to the mover, where a pause ends before all have been sent.
#include "areas/dispatch.hpp"

#include "kernel/simulated.hpp"
#include "machines.hpp"

#include <gtest/gtest.h>

namespace homing::dispatch_tests {
namespace {

constexpr std::uint64_t pages = 60000, at_home = 40000;
constexpr double long_ago = -1e9; ///< seconds of record::now()

/// Pages that belong on node 1: the first of them are known to lie there, the others lie on node 0.
class DispatchTest : public ::testing::Test {
  protected:
    DispatchTest() {
        area_.granules = pages;
        area_.granule = page_bytes();
        area_.range = {Address{1} << 32, (Address{1} << 32) + pages * page_bytes()};
        area_.origin = area_.range.begin;
        area_.learnt.reset(pages);
        area_.seen_homes.begin_round(1, 0, pages);
        area_.seen_homes.saw(0, at_home, 1);
        const Address border = area_.range.begin + at_home * page_bytes();
        kernel_.map(area_.range);
        kernel_.place({area_.range.begin, border}, 1);
        kernel_.place({border, area_.range.end}, 0);
    }
    /// A pause that ends at `deadline`, for what lies from a granule on.
    std::uint64_t pause(std::uint64_t first, double deadline) {
        result_ = {};
        Dispatch dispatch(mover_, area_, 2, 1, deadline, result_);
        dispatch.add({first, pages}, 1, policy::all_nodes(2));
        dispatch.finish();
        return dispatch.first_left();
    }

    Machine machine_ = machine_of(2, 0);
    NodeMap nodes_{machine_.targets()};
    SimulatedKernel kernel_{{2 * pages, 2 * pages}};
    Mover mover_{kernel_, nodes_};
    WatchedArea area_;
    MoveResult result_;
};

TEST_F(DispatchTest, EachPauseGoesOnWhereTheOneBeforeEnded) {
    // Pauses that are over before they begin: each passes over some of what is at home.
    std::uint64_t next = 0;
    for (int pauses = 0; next < at_home; ++pauses) {
        ASSERT_LT(pauses, 10);
        const std::uint64_t left = pause(next, long_ago);
        EXPECT_FALSE(result_.complete);
        ASSERT_GT(left, next);
        next = left;
    }
    EXPECT_EQ(next, at_home) << "what was not sent is to be added again";
    EXPECT_EQ(pause(next, long_ago), next);
    pause(next, record::now() + 1e6);
    EXPECT_TRUE(result_.complete);
    EXPECT_EQ(result_.moved, pages - at_home);
}

} // namespace
} // namespace homing::dispatch_tests
