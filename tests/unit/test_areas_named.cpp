// Areas that the program names itself.
#include "areas/named.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace homing::areas_named_tests {
namespace {

std::vector<std::string> names() {
    std::vector<AreaEntry> entries;
    named_areas(entries);
    std::vector<std::string> found;
    for (const AreaEntry& entry : entries)
        found.emplace_back(entry.name);
    return found;
}
using Names = std::vector<std::string>;

class NamedAreas : public ::testing::Test {
  protected:
    ~NamedAreas() override { end_named_areas({1, ~Address{0}}); }
};

TEST_F(NamedAreas, EndWhenAPartOfTheirMemoryGoes) {
    ASSERT_TRUE(name_area({0x10000, 0x20000}, "first"));
    ASSERT_TRUE(name_area({0x20000, 0x30000}, "second"));
    ASSERT_TRUE(name_area({0x30000, 0x40000}, "third"));
    const std::uint64_t before = named_areas_version();
    end_named_areas({0x40000, 0x50000});
    EXPECT_EQ(named_areas_version(), before) << "nobody's memory";
    end_named_areas({0x2f000, 0x31000});
    EXPECT_NE(named_areas_version(), before);
    EXPECT_EQ(names(), Names{"first"});
    EXPECT_FALSE(forget_named_area(0x20000));
    EXPECT_TRUE(forget_named_area(0x10000));
}

TEST_F(NamedAreas, MayBeNamedAgain) {
    ASSERT_TRUE(name_area({0x10000, 0x20000}, "before"));
    end_named_areas({0x10000, 0x20000});
    ASSERT_TRUE(name_area({0x10000, 0x20000}, "after"));
    EXPECT_EQ(names(), Names{"after"});
    ASSERT_TRUE(name_area({0x10000, 0x18000}, "smaller"));
    EXPECT_EQ(names(), Names{"smaller"}) << "the second call for a start replaces the first";
}

TEST_F(NamedAreas, AnEqualOneChangesNothing) {
    ASSERT_TRUE(name_area({0x10000, 0x20000}, "array", true));
    const std::uint64_t before = named_areas_version();
    for (int i = 0; i < 2 * static_cast<int>(most_named_areas); ++i)
        ASSERT_TRUE(name_area({0x10000, 0x20000}, "array", true));
    ASSERT_TRUE(name_area({0x10000, 0x20000}, "array")) << "it is hot all the same";
    ASSERT_TRUE(name_area({0x10000, 0x20000}, "")) << "no name renames nothing";
    EXPECT_EQ(named_areas_version(), before);
    EXPECT_EQ(hot_ranges().size(), 1u);
    EXPECT_TRUE(is_named_so({0x10000, 0x20000}, "array", true));
    EXPECT_TRUE(is_named_so({0x10000, 0x20000}, "", false));
    EXPECT_FALSE(is_named_so({0x10000, 0x20000}, "other", true));
    EXPECT_FALSE(is_named_so({0x10000, 0x1f000}, "array", true));
    end_named_areas({0x10000, 0x20000});
    EXPECT_FALSE(is_named_so({0x10000, 0x20000}, "array", true));
}

TEST_F(NamedAreas, OneThatIsRenamedStaysWhatItWas) {
    ASSERT_TRUE(name_area({0x10000, 0x20000}, "before", true));
    std::vector<AreaEntry> before, after;
    named_areas(before);
    ASSERT_TRUE(name_area({0x10000, 0x20000}, "after"));
    named_areas(after);
    EXPECT_EQ(names(), Names{"after"});
    EXPECT_EQ(after[0].generation, before[0].generation);
    EXPECT_STREQ(before[0].name, "before") << "whoever has the name may read it";
    EXPECT_EQ(hot_ranges().size(), 1u) << "it stays hot";
    EXPECT_TRUE(forget_named_area(0x10000));
    EXPECT_TRUE(hot_ranges().empty());
}

TEST_F(NamedAreas, LessOfWhatIsHotChangesNothing) {
    ASSERT_TRUE(name_area({0x10000, 0x20000}, "all", true));
    const std::uint64_t before = named_areas_version();
    ASSERT_TRUE(name_area({0x10000, 0x18000}, "less", true));
    ASSERT_TRUE(name_area({0x10000, 0x18000}, "less"));
    EXPECT_EQ(named_areas_version(), before);
    ASSERT_TRUE(name_area({0x10000, 0x30000}, "more", true));
    ASSERT_EQ(hot_ranges().size(), 1u);
    EXPECT_EQ(hot_ranges()[0].end, 0x30000u);
    EXPECT_EQ(names(), Names{"more"});
}

TEST_F(NamedAreas, LeaveRoomForOthersWhenTheyEnd) {
    for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < most_named_areas; ++i)
            ASSERT_TRUE(name_area({0x1000 * (i + 1), 0x1000 * (i + 2)}, "one of many"));
        EXPECT_FALSE(name_area({0x1000 * (most_named_areas + 9), 0x1000 * (most_named_areas + 10)}, "more"));
        end_named_areas({0x1000, 0x1000 * (most_named_areas + 2)});
    }
    EXPECT_TRUE(names().empty());
}

} // namespace
} // namespace homing::areas_named_tests
