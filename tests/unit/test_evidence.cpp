// Which pages of a run should leave their nodes, by the samples on these very nodes.
#include "mechanisms/evidence.hpp"

#include <gtest/gtest.h>

namespace homing {
namespace {

constexpr int nodes = 4;

/// An area of four blocks; every `distance`th page was sampled.
struct Sampled {
    WatchedArea area;
    std::vector<int> homes; ///< of the samples

    /// user(page), home(page): nodes. Samples are at `first`, `first` + `distance`, ...
    template <class User, class Home>
    Sampled(std::uint64_t pages, std::uint64_t first, std::uint64_t distance, User&& user, Home&& home) {
        area.granules = pages;
        area.granule = page_bytes();
        area.plan = policy::SamplePlan(pages, 1);
        area.samples = policy::Samples(nodes);
        for (std::uint64_t page = first; page < pages; page += distance) {
            area.samples.add(page, user(page));
            homes.push_back(home(page));
        }
        area.samples.settle();
        area.telling = area.samples;
        area.ownership = policy::infer_ownership(pages, area.samples);
    }
};

constexpr std::uint64_t pages = 480;

/// Blocks of 80, 120, 160 and 120 pages.
policy::Node by_block(std::uint64_t page) { return page < 80 ? 0 : page < 200 ? 1 : page < 360 ? 2 : 3; }

/// In turn nodes 0 to 3, except for samples: none of them lies on node 1 in the last block.
int scattered(std::uint64_t page) {
    const int home = static_cast<int>(page / 8 % nodes);
    return by_block(page) == 3 && home == 1 ? 2 : home;
}

TEST(Evidence, WhatLiesOnANodeThatNoSampleLiesOnGoesHomeWithTheOthers) {
    const Sampled sampled(pages, 4, 8, by_block, scattered);
    ASSERT_EQ(sampled.area.ownership.runs().size(), 4u);
    const Evidence evidence(sampled.area, sampled.homes);
    for (std::size_t run = 0; run < nodes; ++run)
        for (policy::Node home = 0; home < nodes; ++home)
            EXPECT_TRUE(static_cast<std::size_t>(home) == run || policy::contains(evidence.likely(run), home))
                << "run " << run << ", home " << home;
}

TEST(Evidence, SoDoesWhatSpeaksAgainstAtABorderAlone) {
    // The last page of the third block is taken for one of the fourth: it lies where it is used.
    constexpr std::uint64_t last = 356;
    Sampled sampled(pages, 4, 8, by_block, [](std::uint64_t page) {
        return page == last ? 2 : scattered(page) == 2 ? 0 : scattered(page);
    });
    policy::Samples others(nodes);
    for (std::uint64_t page = 4; page < pages; page += 8)
        if (page != last && page != last - 8) others.add(page, by_block(page));
    others.settle();
    sampled.area.ownership = policy::infer_ownership(pages, others);
    ASSERT_EQ(sampled.area.ownership.owner(last), 3);
    const Evidence evidence(sampled.area, sampled.homes);
    EXPECT_TRUE(policy::contains(evidence.likely(3), 2));
}

TEST(Evidence, AFewPagesThatAreMisplacedSayNothingOfNodesWithoutSamples) {
    // All at home, but for two samples of the last block.
    const Sampled sampled(pages, 4, 8, by_block, [](std::uint64_t page) {
        return page / 8 == 50 || page / 8 == 54 ? 0 : static_cast<int>(by_block(page));
    });
    const Evidence evidence(sampled.area, sampled.homes);
    EXPECT_TRUE(policy::contains(evidence.likely(3), 0));
    EXPECT_FALSE(policy::contains(evidence.likely(3), 1));
    EXPECT_FALSE(policy::contains(evidence.likely(3), 2));
    EXPECT_EQ(evidence.likely(1), 0u);
}

TEST(Evidence, NorDoThoseThatAreUsedWhereTheyLie) {
    // A half of the last block's pages is used from where it lies.
    const auto user = [](std::uint64_t page) {
        const bool other = by_block(page) == 3 && page / 8 % 2 == 1;
        return other ? policy::Node{0} : by_block(page);
    };
    const Sampled sampled(pages, 4, 8, user, [&](std::uint64_t page) {
        return by_block(page) == 3 && page / 8 % 2 == 0 ? 2 : static_cast<int>(user(page));
    });
    const Evidence evidence(sampled.area, sampled.homes);
    for (std::size_t run = 0; run < sampled.area.ownership.runs().size(); ++run)
        EXPECT_FALSE(policy::contains(evidence.likely(run), 1)) << run;
}

TEST(Evidence, NorDoTwoSamples) {
    const Sampled sampled(pages, 30, 60, by_block, [](std::uint64_t page) { return page / 60 % 2 ? 2 : 3; });
    const Evidence evidence(sampled.area, sampled.homes);
    EXPECT_TRUE(policy::contains(evidence.likely(3), 2));
    EXPECT_FALSE(policy::contains(evidence.likely(3), 1));
}

} // namespace
} // namespace homing
