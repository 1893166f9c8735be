// Samples of pages and the plan of which to take.
#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "policy/sample_plan.hpp"
#include "policy/samples.hpp"
#include "test_policy_truth.hpp"

namespace {

using namespace homing::policy;
using homing::policy::testing::Random;

TEST(Samples, SettleSortsAndAddsUp) {
    Samples s(3);
    s.add(9, Node{2});
    s.add(4, Node{1}, 5);
    s.add(4, Node{0}, 2); // the same page again: no new entry
    s.add(9, std::vector<std::uint16_t>{1, 2, 3});
    EXPECT_FALSE(s.settled());
    s.settle();
    ASSERT_EQ(s.size(), 2u);
    EXPECT_EQ(s.page(0), 4u);
    EXPECT_EQ(s.dominant(0), 1);
    EXPECT_DOUBLE_EQ(s.share(0), 5.0 / 7);
    EXPECT_EQ(s.touches(1), 7u);
    EXPECT_EQ(s.counts(1)[2], 4);
    EXPECT_EQ(s.find(9), 1u);
    EXPECT_EQ(s.find(5), s.size());
    s.add(9, Node{7}); // no such node
    EXPECT_EQ(s.touches(1), 7u);
}

TEST(Samples, CountsSaturate) {
    Samples s(2);
    for (int i = 0; i < 3; ++i) {
        s.add(1, Node{0}, 40000);
        s.add(0, Node{1}, 1);
    }
    s.settle();
    EXPECT_EQ(s.counts(1)[0], 65535);
    EXPECT_EQ(s.counts(0)[1], 3);
}

RC_GTEST_PROP(SamplesProperty, ReplaceMergeAndForgetAreThoseOfAMap, ()) {
    Random random(*rc::gen::arbitrary<std::uint32_t>());
    const auto draw = [&](std::map<std::uint64_t, std::vector<std::uint16_t>>& map) {
        Samples s(3);
        for (std::uint64_t i = random.below(30); i > 0; --i) {
            const std::uint64_t page = random.below(40);
            const auto node = static_cast<Node>(random.below(3));
            s.add(page, node);
            map.try_emplace(page, 3).first->second[static_cast<std::size_t>(node)]++;
        }
        s.settle();
        return s;
    };
    std::map<std::uint64_t, std::vector<std::uint16_t>> a_map, b_map;
    const Samples a = draw(a_map), b = draw(b_map);
    const auto same = [](const Samples& s, const std::map<std::uint64_t, std::vector<std::uint16_t>>& map) {
        RC_ASSERT(s.size() == map.size());
        std::size_t i = 0;
        for (const auto& [page, counts] : map) {
            RC_ASSERT(s.page(i) == page);
            RC_ASSERT(std::equal(counts.begin(), counts.end(), s.counts(i).begin()));
            ++i;
        }
    };
    same(a, a_map);
    Samples replaced = a, merged = a, rest = a;
    replaced.replace_by(b);
    merged.merge(b);
    auto replaced_map = a_map, merged_map = a_map, rest_map = a_map;
    for (const auto& [page, counts] : b_map) {
        replaced_map[page] = counts;
        auto& sum = merged_map.try_emplace(page, 3).first->second;
        for (std::size_t n = 0; n < 3; ++n)
            sum[n] = static_cast<std::uint16_t>(sum[n] + counts[n]);
    }
    same(replaced, replaced_map);
    same(merged, merged_map);
    const std::uint64_t low = random.below(40), high = low + random.below(20);
    rest.forget({low, high});
    rest_map.erase(rest_map.lower_bound(low), rest_map.lower_bound(high));
    same(rest, rest_map);
}

RC_GTEST_PROP(SamplePlanProperty, FirstAndCheckAreSortedDistinctInsideAndSpread, ()) {
    Random random(*rc::gen::arbitrary<std::uint32_t>());
    const std::uint64_t pages = 1 + random.below(std::uint64_t{1} << random.below(40));
    const std::size_t most = 1 + random.below(3000);
    SamplePlan plan(pages, random.next());
    for (const auto& chosen : {plan.first(most), plan.check(most)}) {
        RC_ASSERT(chosen.size() <= most);
        RC_ASSERT(!chosen.empty());
        RC_ASSERT(chosen.back() < pages);
        RC_ASSERT(std::is_sorted(chosen.begin(), chosen.end()));
        RC_ASSERT(std::adjacent_find(chosen.begin(), chosen.end()) == chosen.end());
        if (pages <= most) RC_ASSERT(chosen.size() == pages);
        // No gap wider than a few strata.
        std::uint64_t last = 0, widest = 0;
        for (const std::uint64_t page : chosen)
            widest = std::max(widest, page - last), last = page;
        widest = std::max(widest, pages - last);
        RC_ASSERT(static_cast<double>(widest) <=
                  4.0 * static_cast<double>(pages) / static_cast<double>(most) + 2);
    }
}

RC_GTEST_PROP(SamplePlanProperty, GapsAreUnsampledPages, ()) {
    Random random(*rc::gen::arbitrary<std::uint32_t>());
    const std::uint64_t pages = 1 + random.below(std::uint64_t{1} << random.below(20));
    const std::size_t most = 1 + random.below(40);
    const auto nodes = static_cast<Node>(1 + random.below(4));
    Samples samples(nodes);
    for (std::uint64_t n = random.below(200); n > 0; --n)
        samples.add(random.below(2 * pages),
                    static_cast<Node>(random.below(static_cast<std::uint64_t>(nodes))));
    samples.settle();
    SamplePlan plan(pages, random.next());
    const auto chosen = plan.gaps(infer_ownership(pages, samples), samples, most);
    RC_ASSERT(chosen.size() <= most);
    RC_ASSERT(std::is_sorted(chosen.begin(), chosen.end()));
    RC_ASSERT(std::adjacent_find(chosen.begin(), chosen.end()) == chosen.end());
    for (const std::uint64_t page : chosen) {
        RC_ASSERT(page < pages);
        RC_ASSERT(samples.find(page) == samples.size());
    }
}

TEST(SamplePlan, IsAFunctionOfItsSeed) {
    SamplePlan a(1'000'000, 7), b(1'000'000, 7), c(1'000'000, 8);
    const auto first = a.first(500);
    EXPECT_EQ(first, b.first(500));
    EXPECT_NE(first, c.first(500));
    EXPECT_NE(a.check(100), a.check(100)) << "another check looks at other pages";
    EXPECT_TRUE(SamplePlan(0, 1).first(10).empty());
    EXPECT_TRUE(SamplePlan(0, 1).check(10).empty());
    EXPECT_TRUE(a.first(0).empty());
}

TEST(SamplePlan, TheFirstRoundHasPagesAtAllDistances) {
    SamplePlan plan(10'000'000, 3);
    const auto pages = plan.first(1500);
    // Some stretch of the area has its pages sampled in a row, for patterns of single pages.
    std::size_t row = 1, longest = 1;
    for (std::size_t i = 1; i < pages.size(); ++i) {
        row = pages[i] == pages[i - 1] + 1 ? row + 1 : 1;
        longest = std::max(longest, row);
    }
    EXPECT_GE(longest, 24u);
    // And gaps of every order of magnitude up to that of the strata.
    for (std::uint64_t distance = 4; distance < 4096; distance *= 4) {
        std::size_t near = 0;
        for (std::size_t i = 1; i < pages.size(); ++i) {
            const std::uint64_t gap = pages[i] - pages[i - 1];
            near += gap >= distance && gap < 4 * distance;
        }
        EXPECT_GE(near, 5u) << distance;
    }
}

} // namespace
