// What tells a border where neighbours read a halo: writes, and arrays of the same size.
#include "policy/ownership.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "test_policy_truth.hpp"

namespace {

using namespace homing::policy;
using namespace homing::policy::testing;

// Four blocks of 1,000 pages; and the same with each block on the next node.
std::uint64_t in_blocks(std::uint64_t page) { return page / 1000; }
std::uint64_t rotated(std::uint64_t page) { return (page / 1000 + 1) % 4; }

// Four blocks of 1,000 pages whose last 50 are read first by the next block's owner, every time.
Samples with_halos(bool with_writes, Samples& writes) {
    Samples samples(4);
    Random random(31);
    for (std::uint64_t page = 0; page < 4000; page += 5) {
        const auto owner = static_cast<Node>(page / 1000);
        const bool halo = page % 1000 >= 950 && owner < 3;
        if (halo) samples.add(page, owner + 1, 4);
        if (with_writes && random.below(2)) {
            samples.add(page, owner, 3);
            writes.add(page, owner, 3);
        } else if (!halo) {
            samples.add(page, owner);
        }
    }
    samples.settle();
    writes.settle();
    return samples;
}

std::uint64_t wrong_pages(const Ownership& ownership) {
    std::uint64_t count = 0;
    for (std::uint64_t page = 0; page < 4000; ++page)
        count += ownership.owner(page) != static_cast<Node>(page / 1000);
    return count;
}

// Blocks that begin at these pages, every `distance`th page sampled from `first` on.
Ownership sampled_blocks(const std::vector<std::uint64_t>& begins, std::uint64_t pages, std::uint64_t first,
                         std::uint64_t distance) {
    Samples samples(static_cast<int>(begins.size()));
    for (std::uint64_t page = first; page < pages; page += distance) {
        const auto above = std::ranges::upper_bound(begins, page);
        samples.add(page, static_cast<Node>(above - begins.begin() - 1));
    }
    samples.settle();
    return infer_ownership(pages, samples);
}

std::vector<std::uint64_t> begins_of(const Ownership& ownership) {
    std::vector<std::uint64_t> begins;
    for (const auto& run : ownership.runs())
        begins.push_back(run.first);
    return begins;
}

TEST(Ownership, AnEvenDivisionHasItsBordersWhereItShould) {
    const std::vector<std::uint64_t> begins{0, 250, 500, 750};
    for (const std::uint64_t first : {3, 11, 17, 25}) {
        const Ownership ownership = sampled_blocks(begins, 1000, first, 29);
        EXPECT_EQ(begins_of(ownership), begins) << first;
        EXPECT_EQ(ownership.doubtful().size(), 3u) << "until more is known";
    }
}

TEST(Ownership, OneThatIsNearlyEvenHasThemThereWhereThatMayBe) {
    // Rows of about one length: the second border is known better than to lie where an even division has it.
    const Ownership ownership = sampled_blocks({0, 251, 518, 752}, 1000, 11, 29);
    EXPECT_EQ(begins_of(ownership), (std::vector<std::uint64_t>{0, 250, 519, 750}));
}

TEST(Ownership, AnyOtherHasThemInTheMiddleOfWhatIsNotKnown) {
    const Ownership ownership = sampled_blocks({0, 100, 500, 750}, 1000, 11, 29);
    ASSERT_EQ(ownership.runs().size(), 4u);
    for (std::size_t k = 1; k < 4; ++k) {
        const PageRange border = ownership.runs()[k].border;
        EXPECT_EQ(ownership.runs()[k].first, border.first + border.size() / 2);
    }
}

TEST(Ownership, WritesTellTheBorderWhereNeighboursReadAgainAndAgain) {
    Samples writes(4);
    const Samples samples = with_halos(true, writes);
    const Ownership first = infer_ownership(4000, samples);
    const Samples sure = without_halo_reads(first, samples, writes);
    EXPECT_LT(sure.size(), samples.size());
    EXPECT_GT(sure.size(), samples.size() * 3 / 4);
    EXPECT_EQ(sure.page(0), samples.page(0));
    const Ownership second = infer_ownership(4000, sure);
    EXPECT_LE(wrong_pages(second), 60u); // between two writes the border is in the middle
    EXPECT_GE(wrong_pages(first), 100u) << "reads pull the border into the halo";
}

TEST(Ownership, AWrittenArrayOfTheSameSizeTellsTheBordersOfOneThatIsReadFirst) {
    Samples none(4);
    const Samples samples = with_halos(false, none);
    const Ownership first = infer_ownership(4000, samples);
    EXPECT_GE(wrong_pages(first), 130u);
    const Ownership sibling = infer_ownership(4000, sampled(4, 0, 4000, 2, in_blocks));
    const Ownership second = infer_ownership(4000, with_borders_of(sibling, first, samples));
    EXPECT_LE(wrong_pages(second), 6u);
    EXPECT_EQ(second.runs().size(), 4u);
    // What the next owner reads below a border is no sign of a change then, what another reads is.
    const auto by = [](Node node) {
        return sampled(4, 955, 1000, 5, [=](std::uint64_t) { return node; }, 4);
    };
    EXPECT_TRUE(without_upper_reads(second, by(1)).empty());
    const Samples other = by(3);
    EXPECT_EQ(without_upper_reads(second, other).size(), other.size());
}

TEST(Ownership, AnArrayOfTheSameSizeWithOtherOwnersOrFarBordersTellsNothing) {
    Samples none(4);
    const Samples samples = with_halos(false, none);
    const Ownership first = infer_ownership(4000, samples);
    const auto unchanged = [&](const Ownership& sibling) {
        const Samples with = with_borders_of(sibling, first, samples);
        return with.size() == samples.size();
    };
    const auto shifted = [](std::uint64_t page) { return std::min<std::uint64_t>(3, page / 1300); };
    EXPECT_TRUE(unchanged(infer_ownership(4000, sampled(4, 0, 4000, 2, rotated))));
    EXPECT_TRUE(unchanged(infer_ownership(4000, sampled(4, 0, 4000, 2, shifted))));
    EXPECT_TRUE(unchanged(Ownership(4000, 4)));
}

TEST(Ownership, ArraysAreAlikeWhoseSamplesAgreeAtTheirBordersToo) {
    const auto lower = [](std::uint64_t page) { return (page + 100) % 4000 / 1000; };
    const Ownership believed = infer_ownership(4000, sampled(4, 0, 4000, 5, in_blocks));
    EXPECT_TRUE(alike(believed, sampled(4, 3, 4000, 50, in_blocks)));
    EXPECT_FALSE(alike(believed, sampled(4, 3, 4000, 50, rotated)));
    EXPECT_FALSE(alike(believed, sampled(4, 3, 4000, 50, lower)))
        << "borders 100 pages lower: nine samples of ten agree, those near the borders do not";
    EXPECT_FALSE(alike(believed, sampled(4, 3, 4000, 500, in_blocks))) << "eight samples";
    EXPECT_FALSE(alike(Ownership(4000, 4), sampled(4, 3, 4000, 50, in_blocks))) << "nothing is known of it";
}

// A large grid, and behind it small ones of which nothing was seen: the last block reaches over them.
TEST(Changed, WhatLiesWhereNothingWasSeenIsNoContradiction) {
    const Samples known = sampled(4, 0, 4000, 60, in_blocks);
    const Ownership believed = infer_ownership(4600, known);
    ASSERT_EQ(believed.owner(4500), 3);
    const Samples behind =
        sampled(4, 4100, 4600, 250, [](std::uint64_t page) { return page < 4300 ? 0 : 1; });
    ASSERT_TRUE(changed(believed, behind).significant) << "two of two";
    EXPECT_TRUE(where_known(believed, known, behind).empty());
    const Samples inside = sampled(4, 30, 4000, 100, in_blocks);
    EXPECT_EQ(where_known(believed, known, inside).size(), inside.size());
    const Samples moved = sampled(4, 30, 4000, 100, rotated);
    EXPECT_TRUE(changed(believed, where_known(believed, known, moved)).significant);
    EXPECT_EQ(where_known(believed, Samples(4), inside).size(), 0u) << "nothing was known";
}

} // namespace
