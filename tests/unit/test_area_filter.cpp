// --areas: rules by name and by lines of source.
#include "areas/area_filter.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace homing::area_filter_tests {
namespace {

using Places = std::vector<AreaPlace>;

TEST(AreaFilter, TheLastMatchDecides) {
    AreaFilter filter("include=u*,exclude=u2", "");
    EXPECT_TRUE(filter.accepts("u1", {}));
    EXPECT_FALSE(filter.accepts("u2", {}));
    EXPECT_FALSE(filter.accepts("v", {})) << "an include first means nothing else";
    EXPECT_TRUE(AreaFilter("exclude=u", "").accepts("v", {}));
    EXPECT_TRUE(AreaFilter("", "").accepts("v", {}));
}

TEST(AreaFilter, CommasInBracketsArePartOfAName) {
    AreaFilter filter("exclude=Grid<double, 3>::data,exclude=f(int, int)::x", "");
    ASSERT_EQ(filter.rules().size(), 2u);
    EXPECT_FALSE(filter.accepts("Grid<double, 3>::data", {}));
    EXPECT_FALSE(filter.accepts("f(int, int)::x", {}));
    EXPECT_TRUE(filter.error().empty());
    EXPECT_FALSE(AreaFilter("exclude=a,b", "").error().empty());
}

TEST(AreaFilter, ARuleByLinesMeetsCodeOfItsObjectOnly) {
    AreaFilter filter("include=pressure", "object build-id ab12\n0 0 1180 1190\nobject libx.so\n0 0 10 20\n");
    EXPECT_TRUE(filter.accepts("heap@a+0x1", Places{{"/a", "build-id ab12", 0x1180}}));
    EXPECT_FALSE(filter.accepts("heap@a+0x1", Places{{"/a", "build-id ab12", 0x1190}}))
        << "the end is outside";
    EXPECT_FALSE(filter.accepts("heap@a+0x1", Places{{"/a", "build-id 99", 0x1180}})) << "another build";
    EXPECT_TRUE(filter.accepts("heap@a+0x1", Places{{"/b", "", 0}, {"/lib/libx.so", "file 1 2", 0x1f}}));
    EXPECT_FALSE(filter.accepts("heap@a+0x1", {}));
}

TEST(AreaFilter, EveryConditionOfARuleIsNeeded) {
    AreaFilter filter("include=grid (a.c:4) from main (a.c:7)", "object a\n0 0 100 110\n0 1 200 210\n");
    EXPECT_FALSE(filter.accepts("heap", Places{{"a", "", 0x105}}));
    EXPECT_FALSE(filter.accepts("heap", Places{{"a", "", 0x205}}));
    EXPECT_TRUE(filter.accepts("heap", Places{{"a", "", 0x105}, {"a", "", 0x205}}));
}

TEST(AreaFilter, CountsTheAreasThatARuleHasMet) {
    AreaFilter filter("exclude=u*,exclude=v", "");
    filter.adopts("u1", {});
    filter.adopts("u2", {});
    filter.accepts("u3", {});
    EXPECT_EQ(filter.rules()[0].areas, 2u);
    EXPECT_FALSE(filter.rules()[1].matched);
    EXPECT_EQ(filter.rules()[1].text(), "exclude=v");
}

TEST(AreaFilter, DamagedCodeIsLeftOut) {
    AreaFilter filter("include=u", "object a\n0 0 zz 10\n7 0 0 10\n0 99 0 10\n\n0 0\n0 1 5");
    EXPECT_FALSE(filter.accepts("heap", Places{{"a", "", 5}}));
    EXPECT_TRUE(filter.accepts("u", {}));
}

} // namespace
} // namespace homing::area_filter_tests
