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
