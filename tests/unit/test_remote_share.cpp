#include "areas/remote_share.hpp"

#include <gtest/gtest.h>
#include <map>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <tuple>

namespace homing::remote_share_tests {
namespace {

PageSet whole(std::uint64_t granules) { return PageSet::whole(granules); }

struct Touch {
    std::uint64_t granule;
    int node;
};

RemoteShare share_of(std::uint64_t granules, const std::vector<Touch>& touches) {
    RemoteShare share;
    share.reset(granules, 4, 7);
    for (const Touch& touch : touches)
        share.touched(touch.granule, touch.node, 1);
    return share;
}

auto fields(const RemoteSums& sums) {
    return std::tuple(sums.granules, sums.touches, sums.weight, sums.weight2, sums.before.share,
                      sums.before.share1, sums.before.share2, sums.after.share, sums.after.share1,
                      sums.after.share2);
}

rc::Gen<std::vector<Touch>> touches_below(std::uint64_t granules) {
    return rc::gen::container<std::vector<Touch>>(
        rc::gen::build<Touch>(rc::gen::set(&Touch::granule, rc::gen::inRange<std::uint64_t>(0, granules)),
                              rc::gen::set(&Touch::node, rc::gen::inRange(0, 4))));
}

RC_GTEST_PROP(RemoteShare, BothEndsAreOneWhereNothingMoved, ()) {
    const auto granules = *rc::gen::inRange<std::uint64_t>(1, 3000);
    RemoteShare share = share_of(granules, *touches_below(granules));
    std::vector<int> homes;
    for (std::size_t i = 0; i < share.granules().size(); ++i)
        homes.push_back(*rc::gen::inRange(-1, 4));
    const RemoteSums sums = share.sums(homes, whole(granules), *rc::gen::arbitrary<bool>());
    RC_ASSERT(sums.before.share == sums.after.share);
    RC_ASSERT(sums.before.share1 == sums.after.share1);
    RC_ASSERT(sums.before.share2 == sums.after.share2);
}

RC_GTEST_PROP(RemoteShare, TheOrderOfTouchesAndMovesDoesNotMatter, ()) {
    const auto granules = *rc::gen::inRange<std::uint64_t>(1, 500);
    std::vector<Touch> touches = *touches_below(granules);
    const auto from = *rc::gen::inRange<std::uint64_t>(0, granules);
    const auto end = *rc::gen::inRange<std::uint64_t>(from, granules + 1);
    const auto sums = [&](bool move_first) {
        RemoteShare share;
        share.reset(granules, 4, 7);
        if (move_first) share.moved_from(from, end, 0);
        for (const Touch& touch : touches)
            share.touched(touch.granule, touch.node, 1);
        if (!move_first) share.moved_from(from, end, 0);
        std::vector<int> homes;
        for (const std::uint64_t granule : share.granules())
            homes.push_back(granule >= from && granule < end ? 2 : 0);
        return share.sums(homes, whole(granules), false);
    };
    const RemoteSums first = sums(false);
    std::reverse(touches.begin(), touches.end());
    RC_ASSERT(fields(first) == fields(sums(true)));
}

RC_GTEST_PROP(RemoteShare, TheWeightsAreTheGranulesThatExist, ()) {
    const auto granules = *rc::gen::inRange<std::uint64_t>(1, 3000);
    RemoteShare share = share_of(granules, *touches_below(granules));
    const std::vector<int> homes(share.granules().size(), 1);
    const RemoteSums sums = share.sums(homes, whole(granules), false);
    RC_ASSERT(sums.granules == homes.size());
    if (!homes.empty()) RC_ASSERT(sums.weight == static_cast<double>(granules));
    RC_ASSERT(sums.weight2 <= sums.weight * sums.weight * (1 + 1e-12));
}

TEST(RemoteShare, GranulesAreHeldAgainstTheFirstHomeAndTheLast) {
    // Granules 10 and 90 of 100 lay on node 0; 90 was sent to node 1, and on to node 3, whose threads use it.
    RemoteShare share = share_of(100, {{10, 0}, {90, 3}, {90, 3}, {90, 1}, {90, 3}});
    share.moved_from(80, 100, 0);
    share.moved_from(80, 100, 1);
    EXPECT_EQ(share.granules(), (std::vector<std::uint64_t>{10, 90}));
    const RemoteSums sums = share.sums(std::vector<int>{0, 3}, whole(100), false);
    EXPECT_EQ(sums.touches, 5);
    EXPECT_EQ(sums.weight, 100); // 50 granules each
    EXPECT_EQ(sums.before.share, 50);
    EXPECT_EQ(sums.after.share, 12.5);
    EXPECT_EQ(sums.after.share2, 12.5 * 12.5);
}

TEST(RemoteShare, ABorderThatIsSampledDenselyWeighsNoMore) {
    // A hundred samples next to one border, all remote, and one everywhere else each hundred granules.
    std::vector<Touch> touches;
    for (std::uint64_t granule = 5000; granule < 5100; ++granule)
        touches.push_back({granule, 1});
    for (std::uint64_t granule = 50; granule < 10000; granule += 100)
        touches.push_back({granule, 0});
    RemoteShare share = share_of(10000, touches);
    const std::vector<int> homes(share.granules().size(), 0);
    const RemoteSums sums = share.sums(homes, whole(10000), false);
    EXPECT_NEAR(sums.after.share / sums.weight, 0.015, 0.01);
}

TEST(RemoteShare, EachAccessCountsWhereAccessesAreSampled) {
    RemoteShare share;
    share.reset(1000, 4, 7);
    share.touched(1, 0, 70'000); // more than 16 bits
    share.touched(999, 1, 30'000);
    const RemoteSums sums = share.sums(std::vector<int>{0, 0}, whole(1000), true);
    EXPECT_EQ(sums.after.share / sums.weight, 0.3);
    EXPECT_EQ(share.accesses(), 100'000u);
}

TEST(RemoteShare, WhatWentAwayIsLeftOut) {
    RemoteShare share = share_of(10, {{1, 0}, {2, 1}});
    const RemoteSums sums = share.sums(std::vector<int>{-1, 0}, whole(10), false);
    EXPECT_EQ(sums.granules, 1u);
    EXPECT_EQ(sums.weight, 10);
    EXPECT_EQ(sums.after.share, 10);
}

TEST(RemoteShare, IsToldAgainWhereTouchesDoubleOrPagesMove) {
    RemoteShare share = share_of(10, {});
    EXPECT_FALSE(share.has_news());
    share.touched(1, 0, 1);
    share.touched(2, 0, 1);
    EXPECT_TRUE(share.has_news());
    (void)share.sums(std::vector<int>{0, 0}, whole(10), false);
    EXPECT_FALSE(share.has_news());
    share.touched(3, 0, 1);
    EXPECT_FALSE(share.has_news());
    share.touched(4, 0, 1);
    EXPECT_TRUE(share.has_news());
    (void)share.sums(std::vector<int>{0, 0, 0, 0}, whole(10), false);
    share.moved_from(1, 2, 0);
    EXPECT_TRUE(share.has_news());
}

} // namespace
} // namespace homing::remote_share_tests
