// The competitive criterion and the n most critical pages.
#include "policy/competitive.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace {

using namespace homing::policy;
using Counts = std::vector<std::uint16_t>;

// The candidate, or one that equals none that is expected.
Candidate eligible(std::uint64_t page, Node home, const Counts& counts,
                   const CompetitiveOptions& options = {}) {
    const auto candidate = competitive(page, home, counts, options);
    EXPECT_TRUE(candidate.has_value());
    return candidate.value_or(Candidate{~std::uint64_t{0}, unknown_node, unknown_node, 0, 0});
}

TEST(Competitive, ComparesTheLargestRemoteCountWithTheLocalOne) {
    const Candidate candidate = eligible(5, 0, Counts{10, 15, 21, 20});
    EXPECT_EQ(candidate.page, 5u);
    EXPECT_EQ(candidate.from, 0);
    EXPECT_EQ(candidate.to, 2);
    EXPECT_EQ(candidate.local, 10u);
    EXPECT_EQ(candidate.remote, 21u);
    EXPECT_DOUBLE_EQ(candidate.ratio(), 2.1);
    // Strictly above the threshold; the sum of the others does not count.
    EXPECT_FALSE(competitive(5, 0, Counts{10, 20, 20, 20}));
    CompetitiveOptions options;
    options.threshold = 1;
    EXPECT_TRUE(competitive(5, 0, Counts{10, 11, 0, 0}, options));
    EXPECT_FALSE(competitive(5, 0, Counts{10, 10, 0, 0}, options));
}

TEST(Competitive, UnknownHomesForbiddenTargetsAndFewReferences) {
    const Candidate unknown = eligible(1, unknown_node, Counts{0, 3});
    EXPECT_EQ(unknown.to, 1);
    EXPECT_TRUE(std::isinf(unknown.ratio()));
    CompetitiveOptions options;
    options.targets = node_bit(2);
    const Candidate other = eligible(1, 0, Counts{1, 100, 50}, options);
    EXPECT_EQ(other.to, 2);
    options.targets = 0;
    EXPECT_FALSE(competitive(1, 0, Counts{1, 100, 50}, options));
    options = {};
    options.least_remote = 4;
    EXPECT_FALSE(competitive(1, 0, Counts{0, 3}, options));
    EXPECT_FALSE(competitive(1, 0, Counts{5, 0, 0}));
    EXPECT_FALSE(competitive(1, 0, Counts{}));
    EXPECT_EQ(eligible(1, 0, Counts{0, 7, 7}).to, 1) << "ties go to the lowest node";
}

RC_GTEST_PROP(CompetitiveProperty, MostCriticalPagesAreTheHeadOfTheSortedList, ()) {
    const auto pairs = *rc::gen::container<std::vector<std::pair<unsigned, unsigned>>>(
        rc::gen::pair(rc::gen::inRange(0u, 6u), rc::gen::inRange(0u, 6u)));
    const auto n = *rc::gen::inRange<std::size_t>(0, 20);
    std::vector<Candidate> all;
    all.reserve(pairs.size());
    for (const auto& [local, remote] : pairs)
        all.push_back({all.size(), 0, 1, local, remote});
    std::vector<Candidate> kept = all;
    keep_most_critical(kept, n);
    RC_ASSERT(kept.size() == std::min(n, all.size()));
    const auto key = [](const Candidate& c) {
        return std::tuple(c.local == 0 ? -1e9 : -c.ratio(), -static_cast<int>(c.remote), c.page);
    };
    std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    for (std::size_t i = 0; i < kept.size(); ++i)
        RC_ASSERT(kept[i].page == all[i].page);
}

} // namespace
