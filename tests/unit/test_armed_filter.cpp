#include "sources/armed_filter.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace homing::armed_filter_tests {
namespace {

constexpr Address heap = Address{1} << 40;

Range block(std::size_t page, std::size_t bytes) {
    return {heap + page * page_bytes() + 16, heap + page * page_bytes() + 16 + bytes};
}

void publish(ArmedFilter& filter, const std::vector<Range>& granules) {
    filter.publish([&](auto&& visit) {
        for (const Range& granule : granules)
            visit(granule);
    });
}

TEST(ArmedFilter, ABlockWithAPageThatIsArmedIsNeverPassedOver) {
    const auto filter = std::make_unique<ArmedFilter>();
    EXPECT_FALSE(filter->may_hold(block(0, 64 * page_bytes())));
    for (int round = 0; round < 3; ++round) {
        std::vector<Range> granules;
        for (std::size_t i = 0; i < 8192; ++i) {
            const Address begin = heap + (8 * i + static_cast<std::size_t>(round)) * page_bytes();
            granules.push_back({begin, begin + page_bytes()});
        }
        publish(*filter, granules);
        for (std::size_t i = 1; i < 8192; ++i) {
            const std::size_t page = 8 * i + static_cast<std::size_t>(round);
            EXPECT_TRUE(filter->may_hold(block(page - 1, 2 * page_bytes())));
            EXPECT_TRUE(filter->may_hold(block(page - 1, 3 * page_bytes())));
        }
    }
}

TEST(ArmedFilter, MostOthersArePassedOver) {
    const auto filter = std::make_unique<ArmedFilter>();
    std::vector<Range> granules;
    for (std::size_t i = 0; i < 512; ++i)
        granules.push_back({heap + 8 * i * page_bytes(), heap + (8 * i + 1) * page_bytes()});
    publish(*filter, granules);
    std::size_t held = 0;
    for (std::size_t i = 0; i < 512; ++i)
        held += filter->may_hold(block(8 * i + 2, 2 * page_bytes()));
    EXPECT_LE(held, 512u / 20);
    EXPECT_FALSE(filter->may_hold(block(0, page_bytes()))) << "it has no whole page";
    publish(*filter, {});
    EXPECT_FALSE(filter->may_hold(block(7, 2 * page_bytes())));
}

TEST(ArmedFilter, AGranuleOfSeveralPagesIsHeldByEachOfThem) {
    const auto filter = std::make_unique<ArmedFilter>();
    publish(*filter, {{heap, heap + 16 * page_bytes()}});
    for (std::size_t page = 0; page + 2 < 16; ++page)
        EXPECT_TRUE(filter->may_hold(block(page, 2 * page_bytes())));
    EXPECT_FALSE(filter->may_hold(block(20, 4 * page_bytes())));
}

} // namespace
} // namespace homing::armed_filter_tests
