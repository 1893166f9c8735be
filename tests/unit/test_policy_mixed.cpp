// Stretches of memory whose pages belong to several nodes: where there is a pattern (tiles of arrays of two
// and three dimensions) it is found, where there is none no page is guessed that was not seen.
#include "policy/ownership.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "test_policy_truth.hpp"

namespace {

using namespace homing::policy;
using namespace homing::policy::testing;

constexpr std::uint64_t gibibyte = 262144; // pages of 4 KiB

/// Blocks, one a node, of whose pages every one is with probability `share` the block's node's, else one of
/// the `strangers` nodes' after it.
Truth mixed_blocks(std::uint64_t pages, int nodes, double share, int strangers, std::uint64_t seed) {
    return {pages, nodes, [=](std::uint64_t page) {
                const auto count = static_cast<std::uint64_t>(nodes);
                const auto block = page * count / pages;
                Random random(seed + page * 0x9e3779b97f4a7c15u);
                if (random.uniform() < share) return node_bit(static_cast<Node>(block));
                const auto other = 1 + random.below(static_cast<std::uint64_t>(strangers));
                return node_bit(static_cast<Node>((block + other) % count));
            }};
}

/// An array of extents[0] * extents[1] * extents[2] doubles, the first index running fastest, each dimension
/// in so many equal blocks: node = i + blocks[0] * (j + blocks[1] * k). A page is the node's of its middle.
Truth tiles(std::array<std::uint64_t, 3> extents, std::array<std::uint64_t, 3> blocks) {
    const std::uint64_t elements = extents[0] * extents[1] * extents[2];
    const auto nodes = static_cast<int>(blocks[0] * blocks[1] * blocks[2]);
    return {(elements + 511) / 512, nodes, [=](std::uint64_t page) {
                const std::uint64_t element = std::min(page * 512 + 256, elements - 1);
                const std::uint64_t i = element % extents[0] * blocks[0] / extents[0];
                const std::uint64_t j = element / extents[0] % extents[1] * blocks[1] / extents[1];
                const std::uint64_t k = element / extents[0] / extents[1] * blocks[2] / extents[2];
                return node_bit(static_cast<Node>(i + blocks[0] * (j + blocks[1] * k)));
            }};
}

TEST(OwnershipOfMixedPages, IsNotGuessed) {
    for (const int nodes : {2, 4, 8, 16})
        for (const double share : {0.5, 0.6, 0.7})
            for (const int strangers : {1, nodes - 1})
                for (const std::uint64_t seed : {1u, 2u, 3u}) {
                    SCOPED_TRACE(std::to_string(nodes) + " nodes, share " + std::to_string(share) + ", of " +
                                 std::to_string(strangers) + " others, seed " + std::to_string(seed));
                    const Truth truth = mixed_blocks(gibibyte, nodes, share, strangers, seed);
                    const Campaign result = campaign(truth, 384, 384, 12, 0.02, 1, seed);
                    const Score s = score(truth, result.ownership);
                    EXPECT_LE(s.wrong, 0.2);
                    EXPECT_NEAR(result.ownership.confidence(), s.right, 0.08);
                }
}

TEST(OwnershipOfMixedPages, WhereOneNodeHasMostOfThemTheConfidenceSaysHowMany) {
    for (const int nodes : {2, 4, 8, 16})
        for (const double share : {0.8, 0.9, 0.95})
            for (const std::uint64_t seed : {1u, 2u, 3u}) {
                SCOPED_TRACE(std::to_string(nodes) + " nodes, share " + std::to_string(share) + ", seed " +
                             std::to_string(seed));
                const Truth truth = mixed_blocks(gibibyte, nodes, share, 1, seed);
                const Campaign result = campaign(truth, 384, 384, 12, 0.02, 1, seed);
                EXPECT_NEAR(result.ownership.confidence(), score(truth, result.ownership).right, 0.08);
            }
}

// A node's own pages, then pages of it and others: the block ends where they begin.
TEST(OwnershipOfMixedPages, BesideABlockLeavesTheBlockAlone) {
    for (const int nodes : {4, 8, 16})
        for (const std::uint64_t seed : {1u, 2u, 3u}) {
            const Truth truth =
                joined({block(150'000, nodes, {0}), {100'000, nodes, [=](std::uint64_t page) {
                                                         Random random(seed + page * 0x9e3779b97f4a7c15u);
                                                         return node_bit(static_cast<Node>(random.below(2)));
                                                     }}});
            const Campaign result = campaign(truth, 384, 384, 12, 0.02, 1, seed);
            const Score s = score(truth, result.ownership);
            EXPECT_GE(s.right, 0.59) << nodes << " nodes, seed " << seed;
            EXPECT_LE(s.wrong, 0.02) << nodes << " nodes, seed " << seed;
        }
}

TEST(OwnershipOfTiles, IsFoundAsCycles) {
    struct Case {
        std::array<std::uint64_t, 3> extents, blocks;
    };
    for (const Case& c : {Case{{11585, 11585, 1}, {2, 2, 1}}, Case{{11585, 11585, 1}, {2, 4, 1}},
                          Case{{11585, 11585, 1}, {4, 2, 1}}, Case{{11585, 11585, 1}, {4, 4, 1}},
                          Case{{4096, 4096, 1}, {2, 2, 1}}, Case{{1500, 1500, 1}, {2, 2, 1}},
                          Case{{6000, 6000, 1}, {2, 4, 1}}, Case{{32768, 32768, 1}, {2, 4, 1}},
                          Case{{512, 512, 512}, {2, 2, 2}}, Case{{256, 256, 256}, {1, 4, 4}}})
        for (const std::uint64_t seed : {1u, 2u, 3u}) {
            SCOPED_TRACE(std::to_string(c.extents[0]) + " in " + std::to_string(c.blocks[0]) + " x " +
                         std::to_string(c.blocks[1]) + " x " + std::to_string(c.blocks[2]) + ", seed " +
                         std::to_string(seed));
            const Truth truth = tiles(c.extents, c.blocks);
            const Campaign result = campaign(truth, 384, 384, 16, 0.02, 1, seed);
            const Score s = score(truth, result.ownership);
            EXPECT_GE(s.right, 0.97);
            EXPECT_NEAR(result.ownership.confidence(), s.right, 0.03);
            EXPECT_GE(result.ownership.cycles().size(),
                      c.blocks[2] * (c.blocks[0] > 1 ? c.blocks[1] : 1) / 2);
        }
}

TEST(OwnershipOfSharedPages, OfManyNodesIsRecognised) {
    for (const int nodes : {32, 64})
        for (const std::uint64_t pages : {4096u, 65536u, 4'000'000u})
            for (const int touches : {1, 3})
                for (const std::uint64_t seed : {1u, 2u, 3u}) {
                    SCOPED_TRACE(std::to_string(nodes) + " nodes, " + std::to_string(pages) + " pages, " +
                                 std::to_string(touches) + " touches, seed " + std::to_string(seed));
                    const Truth truth = shared(pages, nodes, all_nodes(nodes));
                    const Campaign result = campaign(truth, 384, 384, 12, 0.02, touches, seed);
                    EXPECT_EQ(result.ownership.kind(), OwnershipKind::shared)
                        << name(result.ownership.kind());
                    EXPECT_GE(score(truth, result.ownership).right, 0.95);
                }
}

// Whoever writes a page first in a window is seen with the weight of a write, which is no sign that nobody
// else comes.
TEST(OwnershipOfSharedPages, ThatAreWrittenAreRecognised) {
    for (const int nodes : {32, 64})
        for (const std::uint64_t pages : {4096u, 65536u, 4'000'000u})
            for (const std::uint64_t seed : {1u, 2u, 3u}) {
                SCOPED_TRACE(std::to_string(nodes) + " nodes, " + std::to_string(pages) + " pages, seed " +
                             std::to_string(seed));
                Random random(seed);
                SamplePlan plan(pages, seed);
                Samples samples(nodes);
                Ownership ownership(pages, nodes);
                std::vector<std::uint64_t> wanted = plan.first(384);
                for (int round = 0; round < 12 && !wanted.empty(); ++round) {
                    for (const std::uint64_t page : wanted)
                        samples.add(page, static_cast<Node>(random.below(static_cast<std::uint64_t>(nodes))),
                                    touches_of_write);
                    samples.settle();
                    ownership = infer_ownership(pages, samples);
                    wanted = plan.next(ownership, samples, 384);
                }
                EXPECT_EQ(ownership.kind(), OwnershipKind::shared) << name(ownership.kind());
            }
}

// A thread that was not bound for a moment, a neighbour's read: once seen again, the page is its owner's.
TEST(SamplePlan, LooksAgainAtPagesThatContradictWhatIsBelieved) {
    const Truth truth = block(gibibyte, 4, {0, 1, 2, 3});
    Random random(3);
    SamplePlan plan(truth.pages, 3);
    Samples samples(4);
    samples.merge(observe(truth, plan.first(384), 0.1, 1, random));
    const auto contradicting = [&](const Ownership& ownership) {
        std::vector<std::uint64_t> pages;
        for (std::size_t i = 0; i < samples.size(); ++i)
            if (const Node owner = ownership.owner(samples.page(i));
                owner >= 0 && samples.counts(i)[static_cast<std::size_t>(owner)] == 0)
                pages.push_back(samples.page(i));
        return pages;
    };
    Ownership ownership = infer_ownership(truth.pages, samples);
    const std::vector<std::uint64_t> doubted = contradicting(ownership);
    ASSERT_GE(doubted.size(), 10u);
    for (int round = 0; round < 6; ++round) {
        samples.merge(observe(truth, plan.next(ownership, samples, 384), 0, 1, random));
        ownership = infer_ownership(truth.pages, samples);
    }
    EXPECT_TRUE(contradicting(ownership).empty());
    for (const std::uint64_t page : doubted)
        EXPECT_GE(samples.touches(samples.find(page)), 2u) << page;
    EXPECT_GE(score(truth, ownership).right, 0.99);

    // One that shows another node again and again is that node's, and not asked for for ever.
    const std::uint64_t stray = doubted.front();
    const auto other = static_cast<Node>((ownership.owner(stray) + 1) % 4);
    Samples with_stray(4);
    for (std::size_t i = 0; i < samples.size(); ++i)
        if (samples.page(i) != stray) with_stray.add(samples.page(i), samples.counts(i));
    with_stray.add(stray, other);
    with_stray.settle();
    int asked = 0;
    for (int round = 0; round < 50; ++round) {
        ownership = infer_ownership(truth.pages, with_stray);
        const auto pages = plan.next(ownership, with_stray, 64);
        if (!std::ranges::binary_search(pages, stray)) continue;
        ++asked;
        with_stray.add(stray, other);
        with_stray.settle();
    }
    EXPECT_GE(asked, 1);
    EXPECT_LE(asked, SamplePlan::hopeless);
}

// All pages were seen once, and at the end of a block many say other owners: by chance, or as they are.
TEST(SamplePlan, LooksAgainAtAFewPagesAmidBlocksThatNobodyExplains) {
    constexpr std::uint64_t pages = 120;
    const std::map<std::uint64_t, Node> others{{52, 3}, {53, 0}, {55, 3}, {56, 0}, {57, 2}, {59, 3}};
    const Truth blocks = block(pages, 4, {0, 1, 2, 3});
    const Truth as_seen{pages, 4, [&](std::uint64_t page) {
                            const auto other = others.find(page);
                            return other == others.end() ? blocks.owners(page) : node_bit(other->second);
                        }};
    std::vector<std::uint64_t> all(pages);
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    for (const Truth& truth : {blocks, as_seen}) {
        Random random(1);
        Samples samples = observe(as_seen, all, 0, 1, random);
        SamplePlan plan(pages, 1);
        Ownership ownership = infer_ownership(pages, samples);
        ASSERT_EQ(score(as_seen, ownership).right, 1);
        int rounds = 0;
        for (; rounds < 20; ++rounds) {
            const auto next = plan.next(ownership, samples, 64);
            if (next.empty()) break;
            EXPECT_LE(next.size(), 10u);
            samples.merge(observe(truth, next, 0, 1, random));
            ownership = infer_ownership(pages, samples);
        }
        EXPECT_GE(rounds, 1);
        EXPECT_LE(rounds, SamplePlan::islet_looks + 1);
        EXPECT_EQ(score(truth, ownership).right, 1);
    }
}

TEST(SamplePlan, LetsAlmostAllSmallAreasBeToldDespiteNoise) {
    int missed = 0;
    for (std::uint32_t seed = 1; seed <= 2000; ++seed) {
        Random random(seed);
        const int nodes = 1 + static_cast<int>(random.below(16));
        const int threads = nodes * (1 + static_cast<int>(random.below(2)));
        const std::uint64_t pages = 16 * static_cast<std::uint64_t>(threads) + random.below(150);
        const Truth truth = block(pages, nodes, threads_on_nodes(threads, nodes, random));
        const double noise = 0.1 * random.uniform();
        const int touches = 1 + static_cast<int>(random.below(4));
        const Campaign result = campaign(truth, 1536, 768, 4, noise, touches, random.next());
        missed += score(truth, result.ownership).right < 0.96 - 2.0 / static_cast<double>(pages);
        EXPECT_LE(result.faults, 2 * pages) << "seed " << seed;
    }
    EXPECT_LE(missed, 2) << "of 2,000";
}

// ------------------------------------------------------------------------------------------------ properties

RC_GTEST_PROP(OwnershipOfMixedPagesProperty, ConfidenceIsHonest, ()) {
    const int nodes = *rc::gen::inRange(2, 33);
    Random random(*rc::gen::arbitrary<std::uint32_t>());
    const std::uint64_t pages = 20'000 + random.below(2'000'000);
    const double share = 0.4 + 0.6 * random.uniform();
    const int strangers = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(nodes) - 1));
    const double noise = random.uniform() * 0.05;
    const std::size_t rate = 256 + random.below(1024);
    const Truth truth = mixed_blocks(pages, nodes, share, strangers, random.next());
    const Campaign result =
        campaign(truth, rate, rate, 8, noise, 1 + static_cast<int>(random.below(3)), random.next());
    const Score s = score(truth, result.ownership);
    RC_ASSERT(std::abs(result.ownership.confidence() - s.right) <= 0.15);
    RC_ASSERT(s.wrong <= 0.3);
}

RC_GTEST_PROP(OwnershipOfTilesProperty, AreFoundOrLeftAlone, ()) {
    Random random(*rc::gen::arbitrary<std::uint32_t>());
    const std::array<std::uint64_t, 3> blocks{2 + random.below(3), 1 + random.below(4), 1};
    const std::array<std::uint64_t, 3> extents{1500 + random.below(15'000), 1500 + random.below(15'000), 1};
    const Truth truth = tiles(extents, blocks);
    const Campaign result =
        campaign(truth, 256 + random.below(512), 384, 12, random.uniform() * 0.05, 1, random.next());
    const Score s = score(truth, result.ownership);
    RC_ASSERT(s.wrong <= 0.2);
    RC_ASSERT(std::abs(result.ownership.confidence() - s.right) <= 0.2);
}

} // namespace
