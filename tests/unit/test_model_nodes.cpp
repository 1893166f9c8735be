// Sets of nodes, and the initial placements.
#include "kernel/initial_nodes.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace homing::policy::model_nodes_tests {
namespace {

TEST(InitialPlacement, RoundRobinAndRandomUseTheTargetsEvenly) {
    const NodeSet targets = node_bit(1) | node_bit(4) | node_bit(63);
    std::vector<int> round(64, 0), random(64, 0);
    int differs = 0;
    for (std::uint64_t page = 0; page < 30000; ++page) {
        ++round[static_cast<std::size_t>(round_robin_node(page, targets))];
        const Node node = random_node(page, targets, 42);
        ++random[static_cast<std::size_t>(node)];
        EXPECT_EQ(node, random_node(page, targets, 42));
        differs += node != random_node(page, targets, 43);
    }
    for (const std::size_t node : {1u, 4u, 63u}) {
        EXPECT_EQ(round[node], 10000);
        EXPECT_NEAR(random[node], 10000, 400);
    }
    EXPECT_NEAR(differs, 20000, 600) << "another seed is another placement";
    EXPECT_EQ(round_robin_node(3, 0), unknown_node);
    EXPECT_EQ(random_node(3, 0, 1), unknown_node);
}

TEST(NodeSets, NthNode) {
    EXPECT_EQ(nth_node(0b10110, 0), 1);
    EXPECT_EQ(nth_node(0b10110, 2), 4);
    EXPECT_EQ(nth_node(0b10110, 4), 2);
    EXPECT_EQ(all_nodes(64), ~NodeSet{0});
    EXPECT_EQ(size_of(all_nodes(5)), 5);
    EXPECT_FALSE(contains(~NodeSet{0}, unknown_node));
}

} // namespace
} // namespace homing::policy::model_nodes_tests
