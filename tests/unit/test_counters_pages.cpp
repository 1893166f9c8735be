#include "counters/page_counts.hpp"

#include <gtest/gtest.h>

namespace homing::counters {
namespace {

TEST(PageCounts, CountsAreByPageAndNodeUntilThePageIsScanned) {
    PageCounts counts(4);
    counts.size_area(7, 10);
    EXPECT_TRUE(counts.counts(7, 3).empty());
    counts.add(7, 3, 2, 5);
    counts.add(7, 3, 2, 1);
    counts.add(7, 3, 0, 2);
    counts.add(7, 4, 1, 1);
    ASSERT_EQ(counts.counts(7, 3).size(), 4u);
    EXPECT_EQ(counts.counts(7, 3)[2], 6u);
    EXPECT_EQ(counts.counts(7, 3)[0], 2u);
    counts.scanned(7, 3);
    EXPECT_TRUE(counts.counts(7, 3).empty());
    EXPECT_FALSE(counts.counts(7, 4).empty());
}

TEST(PageCounts, WhatDoesNotExistIsNotCounted) {
    PageCounts counts(2);
    counts.add(1, 0, 0, 1); // an area that nobody told of
    counts.size_area(1, 4);
    counts.add(1, 4, 0, 1); // behind its end
    counts.add(1, 0, 2, 1); // no such node
    counts.add(1, 0, -1, 1);
    for (std::uint64_t granule = 0; granule < 5; ++granule)
        EXPECT_TRUE(counts.counts(1, granule).empty());
    EXPECT_FALSE(counts.moved(2, 0, 0, 1));
    EXPECT_FALSE(counts.is_frozen(2, 0));
}

TEST(PageCounts, AnAreaOfAnotherSizeBeginsAnew) {
    PageCounts counts(2);
    counts.size_area(1, 4);
    counts.add(1, 1, 0, 1);
    counts.size_area(1, 4);
    EXPECT_FALSE(counts.counts(1, 1).empty());
    counts.size_area(1, 5);
    EXPECT_TRUE(counts.counts(1, 1).empty());
    counts.add(1, 1, 0, 1);
    counts.forget_gone([](std::uint32_t) { return false; });
    EXPECT_TRUE(counts.counts(1, 1).empty());
}

TEST(PageCounts, ASecondReturnFreezes) {
    PageCounts counts(3);
    counts.size_area(1, 1);
    EXPECT_FALSE(counts.moved(1, 0, 0, 1));
    EXPECT_FALSE(counts.moved(1, 0, 1, 2)); // on, not back
    EXPECT_FALSE(counts.moved(1, 0, 2, 1)); // back
    EXPECT_FALSE(counts.is_frozen(1, 0));
    EXPECT_TRUE(counts.moved(1, 0, 1, 2)); // and forth
    EXPECT_TRUE(counts.is_frozen(1, 0));
}

TEST(PageCounts, ManyReferencesDoNotWrapAround) {
    PageCounts counts(1);
    counts.size_area(1, 1);
    counts.add(1, 0, 0, 0xffff'ffffu);
    counts.add(1, 0, 0, 10);
    EXPECT_EQ(counts.counts(1, 0)[0], 0xffff'ffffu);
}

} // namespace
} // namespace homing::counters
