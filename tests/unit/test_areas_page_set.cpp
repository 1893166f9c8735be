// The set of an area's pages that exist.
#include "areas/page_set.hpp"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "random_numbers.hpp"

namespace homing::areas_page_set_tests {
namespace {

using homing::testing::Random;

PageSet arbitrary_set(Random& random, std::uint64_t pages) {
    std::vector<policy::PageRange> ranges;
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
    pages.for_each({0, most}, [&](policy::PageRange part) {
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
    pages.for_each({first, end}, [&](policy::PageRange part) {
        RC_ASSERT(first <= part.first && part.end <= end);
        within += part.size();
    });
    RC_ASSERT(within == pages.count({first, end}));
}

} // namespace
} // namespace homing::areas_page_set_tests
