#include "areas/seen_homes.hpp"

#include <gtest/gtest.h>
#include <map>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace homing::seen_homes_tests {
namespace {

RC_GTEST_PROP(SeenHomes, AreWhatWasSeenLast, ()) {
    const auto granules = *rc::gen::inRange<std::uint64_t>(1, 20000);
    SeenHomes homes;
    homes.begin_round(1, 0, granules);
    std::map<std::uint64_t, int> last;
    for (int i = *rc::gen::inRange(0, 200); i > 0; --i) {
        const auto granule = *rc::gen::inRange<std::uint64_t>(0, granules);
        const auto end = granule + *rc::gen::inRange<std::uint64_t>(0, i % 4 ? 3 : 6000);
        const int position = *rc::gen::inRange(0, 64);
        homes.saw(granule, end, position);
        for (std::uint64_t one = granule; one < std::min(end, granules); ++one)
            last[one] = position;
    }
    for (const auto& [granule, position] : last) {
        RC_ASSERT(homes.home(granule) == position);
        if (granule + 1 < granules && !last.contains(granule + 1)) RC_ASSERT(homes.home(granule + 1) == -1);
    }
}

/// What moved home in runs, as the mover sends them, and what was asked for here and there.
TEST(GranuleHomes, LongRunsAtOneNodeTakeNoMemoryForEachGranule) {
    constexpr std::uint64_t granules = 1 << 20, run = 512;
    GranuleHomes homes;
    homes.reset(granules);
    for (std::uint64_t first = 0; first < granules; first += run)
        homes.set(first, first + run, static_cast<int>(first * 4 / granules));
    EXPECT_EQ(homes.detailed_chunks(), 0u);
    EXPECT_EQ(homes.known(), granules);
    homes.set(1000, 1001, 0); // no news
    homes.set_unknown(1000, 2000, 3);
    EXPECT_EQ(homes.detailed_chunks(), 0u);
    homes.set(1000, 1001, 3);
    EXPECT_EQ(homes.detailed_chunks(), 1u);
    EXPECT_EQ(homes.home(999), 0);
    EXPECT_EQ(homes.home(1000), 3);
    EXPECT_EQ(homes.home(1001), 0);
    EXPECT_EQ(homes.known(), granules);
}

TEST(GranuleHomes, ThoseThatAreKnownAreVisitedInOrder) {
    GranuleHomes homes;
    homes.reset(20000);
    homes.set(4096, 8192, 2); // a whole chunk
    homes.set(5, 7, 1);
    homes.set(19999, 20000, 0);
    std::uint64_t count = 0, last = 0;
    homes.for_each(6, 19000, [&](std::uint64_t granule, int position) {
        EXPECT_EQ(position, homes.home(granule));
        EXPECT_GT(granule, last);
        last = granule;
        ++count;
    });
    EXPECT_EQ(count, 1u + 4096u);
    homes.for_each(0, ~std::uint64_t{0}, [&](std::uint64_t granule, int) { last = granule; });
    EXPECT_EQ(last, 19999u);
}

TEST(SeenHomes, AreBelievedForAWhile) {
    SeenHomes homes;
    homes.saw(5, 6, 1); // no round yet: nothing to keep it in
    EXPECT_EQ(homes.home(5), -1);
    homes.begin_round(10, 0, 100);
    homes.saw(5, 6, 1);
    homes.begin_round(9 + SeenHomes::believed_rounds, 0, 100);
    EXPECT_EQ(homes.home(5), 1);
    homes.begin_round(10 + SeenHomes::believed_rounds, 0, 100);
    EXPECT_EQ(homes.home(5), -1);
}

TEST(SeenHomes, AreForgottenWhereTheProgramPlacesPages) {
    SeenHomes homes;
    homes.begin_round(10, 0, 100);
    homes.saw(5, 6, 0);
    EXPECT_EQ(homes.home(5), 0);
    homes.begin_round(11, 1, 100);
    EXPECT_EQ(homes.home(5), -1);
    homes.saw(6, 7, 3);
    homes.forget();
    EXPECT_EQ(homes.home(6), -1);
}

TEST(SeenHomes, OfGranulesThatAreNotThereNothingIsKept) {
    SeenHomes homes;
    homes.begin_round(1, 0, 10);
    homes.saw(1 << 20, (1 << 20) + 1, 1);
    EXPECT_EQ(homes.home(1 << 20), -1);
    homes.saw(3, 4, -1);
    EXPECT_EQ(homes.home(3), -1);
}

} // namespace
} // namespace homing::seen_homes_tests
