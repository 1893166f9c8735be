// Block, cyclic, cyclic(k), gen_block and *, and the initial placements.
#include "policy/distributions.hpp"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace {

using namespace homing::policy;

TEST(Distribution, CeilBlockLeavesTheLastOwnersEmpty) {
    const Distribution d = Distribution::block(5, 4); // two each
    EXPECT_EQ(d.local_size(0), 2u);
    EXPECT_EQ(d.local_size(2), 1u);
    EXPECT_EQ(d.local_size(3), 0u);
    EXPECT_TRUE(d.local_ranges(3).empty());
    EXPECT_EQ(d.owner(4), 2);
}

TEST(Distribution, CyclicOfBlocks) {
    const Distribution d = Distribution::cyclic(11, 2, 3); // 000111000 11
    EXPECT_EQ(d.owner(2), 0);
    EXPECT_EQ(d.owner(3), 1);
    EXPECT_EQ(d.owner(8), 0);
    EXPECT_EQ(d.owner(10), 1);
    EXPECT_EQ(d.local_ranges(1), (std::vector<PageRange>{{3, 6}, {9, 11}}));
    EXPECT_EQ(d.local_index(10), 4u);
}

TEST(Distribution, GenBlockWithEmptyOwners) {
    const std::vector<std::uint64_t> sizes{0, 3, 0, 4, 0};
    const Distribution d = Distribution::gen_block(7, sizes);
    EXPECT_EQ(d.owner(0), 1);
    EXPECT_EQ(d.owner(3), 3);
    EXPECT_EQ(d.local_size(2), 0u);
    EXPECT_EQ(d.local_ranges(3), (std::vector<PageRange>{{3, 7}}));
}

TEST(Distribution, PageOwnerIsThatOfTheMiddle) {
    // Rows of 1000 doubles by block on 4: borders at 250 x 8 = 2000 bytes.
    const Distribution d = Distribution::block(1000, 4);
    EXPECT_EQ(d.page_owner(0, 8, 4096), 1); // byte 2048 is element 256
    EXPECT_EQ(d.page_owner(1, 8, 4096), 3); // byte 6144: element 768
    EXPECT_EQ(d.page_owner(5, 8, 4096), 3) << "beyond the end: the last owner";
    EXPECT_EQ(d.page_owner(0, 8, 4096, 3000), 0) << "before element 0: its owner";
}

RC_GTEST_PROP(DistributionProperty, EveryIndexHasOneOwnerAndOnePlace, ()) {
    const auto extent = *rc::gen::inRange<std::uint64_t>(0, 400);
    const auto owners = *rc::gen::inRange(1, 20);
    const auto k = *rc::gen::inRange<std::uint64_t>(1, 30);
    std::vector<std::uint64_t> sizes = *rc::gen::container<std::vector<std::uint64_t>>(
        static_cast<std::size_t>(owners), rc::gen::inRange<std::uint64_t>(0, 40));
    sizes.back() += extent; // covers the extent for certain
    for (const Distribution& d :
         {Distribution::block(extent, owners), Distribution::cyclic(extent, owners, k),
          Distribution::gen_block(extent, sizes)}) {
        std::vector<int> seen(extent, 0);
        std::uint64_t total = 0;
        for (int o = 0; o < owners; ++o) {
            total += d.local_size(o);
            std::uint64_t position = 0;
            for (const PageRange& range : d.local_ranges(o)) {
                RC_ASSERT(range.first < range.end && range.end <= extent);
                for (std::uint64_t i = range.first; i < range.end; ++i, ++position) {
                    ++seen[i];
                    RC_ASSERT(d.owner(i) == o);
                    RC_ASSERT(d.local_index(i) == position);
                    RC_ASSERT(d.global_index(o, position) == i);
                    RC_ASSERT(d.stretch_end(i) > i && d.stretch_end(i) <= extent);
                }
            }
            RC_ASSERT(position == d.local_size(o));
        }
        RC_ASSERT(total == extent);
        for (const int count : seen)
            RC_ASSERT(count == 1);
    }
    const Distribution all = Distribution::star(extent, owners);
    for (int o = 0; o < owners; ++o)
        RC_ASSERT(all.local_size(o) == extent);
}

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
