// The set of an area's pages that exist, and samples drawn from it.
#include "policy/page_set.hpp"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "policy/sample_plan.hpp"
#include "test_policy_truth.hpp"

namespace {

using namespace homing::policy;
using homing::policy::testing::Random;

PageSet arbitrary_set(Random& random, std::uint64_t pages) {
    std::vector<PageRange> ranges;
    for (std::uint64_t at = random.below(8); at < pages;) {
        const std::uint64_t end = std::min(pages, at + random.below(9)); // empty ones and neighbours, too
        ranges.push_back({at, end});
        at = end + random.below(5) * random.below(5);
    }
    return PageSet(ranges);
}

RC_GTEST_PROP(PageSetProperty, CountsAndNumbersAreThoseOfASet, ()) {
    Random random(*rc::gen::arbitrary<std::uint32_t>());
    constexpr std::uint64_t most = 120;
    const PageSet pages = arbitrary_set(random, most);
    std::set<std::uint64_t> expected;
    pages.for_each({0, most}, [&](PageRange part) {
        RC_ASSERT(part.first < part.end);
        for (std::uint64_t page = part.first; page < part.end; ++page)
            RC_ASSERT(expected.insert(page).second);
    });
    RC_ASSERT(pages.size() == expected.size());
    std::uint64_t below = 0;
    for (std::uint64_t page = 0; page < most; ++page) {
        RC_ASSERT(pages.below(page) == below);
        RC_ASSERT(pages.contains(page) == expected.contains(page));
        if (expected.contains(page)) RC_ASSERT(pages.at(below++) == page);
    }
    const std::uint64_t first = random.below(most), end = first + random.below(most - first + 1);
    std::uint64_t within = 0;
    pages.for_each({first, end}, [&](PageRange part) {
        RC_ASSERT(first <= part.first && part.end <= end);
        within += part.size();
    });
    RC_ASSERT(within == pages.count({first, end}));
}

RC_GTEST_PROP(PageSetProperty, WhatIsCommonIsInBoth, ()) {
    Random random(*rc::gen::arbitrary<std::uint32_t>());
    const PageSet one = arbitrary_set(random, 90), other = arbitrary_set(random, 90);
    const PageSet common = one.common(other);
    for (std::uint64_t page = 0; page < 100; ++page)
        RC_ASSERT(common.contains(page) == (one.contains(page) && other.contains(page)));
    RC_ASSERT(one.common(PageSet::whole(90)) == one);
    RC_ASSERT(one.common(PageSet()).empty());
}

/// Whatever a plan is asked for, it draws from pages that exist only, and evenly from these.
TEST(SamplePlan, DrawsFromPagesThatExistOnly) {
    constexpr std::uint64_t pages = std::uint64_t{1} << 28;                // a terabyte, ...
    const PageSet used({{1000, 21'000}, {1u << 27, (1u << 27) + 20'000}}); // ... of which 160 MiB are used
    SamplePlan plan(pages, 5);
    plan.exist(used);
    const auto all_exist = [&](const std::vector<std::uint64_t>& drawn) {
        return std::ranges::all_of(drawn, [&](std::uint64_t page) { return used.contains(page); });
    };
    const auto in_first_half = [](const std::vector<std::uint64_t>& drawn) {
        return std::ranges::count_if(drawn, [](std::uint64_t page) { return page < 21'000; });
    };
    const auto owner = [](std::uint64_t page) { return static_cast<Node>(page > 21'000); };
    const auto first = plan.first(384);
    EXPECT_GE(first.size(), 300u);
    EXPECT_TRUE(all_exist(first));
    EXPECT_NEAR(static_cast<double>(in_first_half(first)) / static_cast<double>(first.size()), 0.5, 0.25);
    const auto check = plan.check(48);
    EXPECT_EQ(check.size(), 48u);
    EXPECT_TRUE(all_exist(check));
    EXPECT_EQ(in_first_half(check), 24);
    EXPECT_EQ(plan.within({0, 1000}, 16).size(), 0u);
    EXPECT_EQ(plan.within({0, 1008}, 16),
              (std::vector<std::uint64_t>{1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007}));
    Samples seen(2);
    for (const std::uint64_t page : {1000u, 20'000u, 1u << 27})
        seen.add(page, owner(page), 3);
    for (int round = 0; round < 12; ++round) {
        seen.settle();
        const Ownership ownership = infer_ownership(pages, seen);
        const auto next = plan.next(ownership, seen, 64);
        EXPECT_TRUE(all_exist(next)) << round;
        const auto gaps = plan.gaps(ownership, seen, 16);
        EXPECT_TRUE(all_exist(gaps)) << round;
        for (const auto* drawn : {&next, &gaps})
            for (const std::uint64_t page : *drawn)
                seen.add(page, owner(page), 1);
    }
    // The hole between the two owners is no reason to go on.
    seen.settle();
    const Ownership ownership = infer_ownership(pages, seen);
    EXPECT_EQ(plan.next(ownership, seen, 64).size(), 0u);
    plan.gaps(ownership, seen, 16);
    EXPECT_FALSE(plan.wide_gap());
    EXPECT_EQ(ownership.owner(20'999), 0);
    EXPECT_EQ(ownership.owner(1u << 27), 1);
}

} // namespace
