// Traces and the competitive criterion: what is decided, without an engine.
#include "counters/criterion.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

namespace homing::counters::criterion_tests {
namespace {

constexpr int nodes = 4;

Trace drawn_trace() {
    Trace trace(nodes);
    const auto count = *rc::gen::inRange<std::size_t>(0, 200);
    for (std::size_t i = 0; i < count; ++i)
        trace.add({*rc::gen::inRange<std::uint32_t>(0, 3), *rc::gen::inRange<std::uint64_t>(0, 40)},
                  static_cast<policy::Node>(*rc::gen::inRange(-1, nodes + 1)),
                  *rc::gen::inRange<std::uint64_t>(1, 9));
    return trace;
}

policy::Node home_of(PageId page) {
    const auto node = static_cast<int>((page.granule * 7 + page.area) % (nodes + 1));
    return static_cast<policy::Node>(node == nodes ? policy::unknown_node : node);
}

RC_GTEST_PROP(PlanProperty, EveryMoveMeetsTheCriterionAndNoOtherPageDoes, ()) {
    const Trace trace = drawn_trace();
    const double threshold = *rc::gen::element(0.0, 1.0, 1.5, 4.0);
    const std::vector<PlannedMove> moves = eligible_moves(trace, home_of, threshold);
    std::set<PageId> planned;
    for (const PlannedMove& move : moves) {
        RC_ASSERT(planned.insert(move.page).second);
        RC_ASSERT(move.from == home_of(move.page));
        RC_ASSERT(move.to != move.from);
    }
    trace.for_each([&](PageId page, std::span<const std::uint64_t> counts) {
        const policy::Node home = home_of(page);
        std::uint64_t remote = 0;
        for (int node = 0; node < nodes; ++node)
            if (node != home) remote = std::max(remote, counts[static_cast<std::size_t>(node)]);
        const std::uint64_t local = home >= 0 ? counts[static_cast<std::size_t>(home)] : 0;
        const bool meets =
            home >= 0 && remote > 0 && static_cast<double>(remote) > threshold * static_cast<double>(local);
        RC_ASSERT(planned.contains(page) == meets);
    });
}

RC_GTEST_PROP(PlanProperty, TheMostCriticalOnesAreKept, ()) {
    std::vector<PlannedMove> moves = eligible_moves(drawn_trace(), home_of, 1.0);
    const std::vector<PlannedMove> all = moves;
    const auto most = *rc::gen::inRange<std::size_t>(0, 30);
    keep_most_critical(moves, most);
    RC_ASSERT(moves.size() == std::min(most, all.size()));
    for (const PlannedMove& kept : moves)
        for (std::size_t i = moves.size(); i < all.size(); ++i)
            RC_ASSERT(is_more_critical(kept, all[i]));
}

RC_GTEST_PROP(PlanProperty, WithItsPlanAPhaseHasNoMoreRemoteReferences, ()) {
    const Trace trace = drawn_trace();
    std::vector<PlannedMove> moves = eligible_moves(trace, home_of, 1.0);
    keep_most_critical(moves, *rc::gen::inRange<std::size_t>(0, 30));
    const Share share = share_of(trace, home_of, moves);
    std::uint64_t gained = 0;
    for (const PlannedMove& move : moves)
        gained += move.remote - move.local;
    RC_ASSERT(share.remote - gained == share.remote_with_plan);
    RC_ASSERT(share.remote <= share.references);
}

TEST(Plan, APageThatNobodyAtHomeAccessesComesBeforeAnyOther) {
    Trace trace(nodes);
    trace.add({0, 1}, 0, 1);
    trace.add({0, 1}, 2, 1000);
    trace.add({0, 2}, 3, 1);
    const auto at_node_0 = [](PageId) { return policy::Node{0}; };
    const std::vector<PlannedMove> moves = eligible_moves(trace, at_node_0, 1.5);
    ASSERT_EQ(moves.size(), 2u);
    EXPECT_EQ(moves[0].page.granule, 2u);
    EXPECT_EQ(moves[0].to, 3);
    EXPECT_EQ(moves[1].page.granule, 1u);
    EXPECT_EQ(moves[1].to, 2);
}

TEST(Plan, APhaseWithoutAnyAccessHasAnEmptyPlan) {
    EXPECT_TRUE(eligible_moves(Trace(nodes), home_of, 1.0).empty());
}

} // namespace
} // namespace homing::counters::criterion_tests
