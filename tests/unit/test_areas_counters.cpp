#include "areas/counters.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <map>

namespace homing::areas_counters_tests {
namespace {

using homing::ReferenceCounters;

struct Touch {
    std::uint64_t granule;
    int node;
    std::uint32_t weight;
};

std::vector<Touch> arbitrary_touches(std::uint64_t granules, int nodes) {
    return *rc::gen::container<std::vector<Touch>>(
        rc::gen::map(rc::gen::tuple(rc::gen::inRange<std::uint64_t>(0, granules), rc::gen::inRange(0, nodes),
                                    rc::gen::inRange<std::uint32_t>(1, 50000)),
                     [](const std::tuple<std::uint64_t, int, std::uint32_t>& t) {
                         return Touch{std::get<0>(t), std::get<1>(t), std::get<2>(t)};
                     }));
}

std::map<std::uint64_t, std::vector<std::uint32_t>> exact(const std::vector<Touch>& touches, int nodes) {
    std::map<std::uint64_t, std::vector<std::uint32_t>> table;
    for (const Touch& t : touches) {
        auto& row = table[t.granule];
        row.resize(static_cast<std::size_t>(nodes));
        auto& count = row[static_cast<std::size_t>(t.node)];
        count = std::min<std::uint32_t>(count + t.weight, ReferenceCounters::saturation);
    }
    return table;
}

TEST(ReferenceCounters, WithRoomForAllTheyAreExactAndSorted) {
    EXPECT_TRUE(rc::check([] {
        const auto granules = *rc::gen::inRange<std::uint64_t>(1, 300);
        const int nodes = *rc::gen::inRange(1, 65);
        const auto touches = arbitrary_touches(granules, nodes);
        ReferenceCounters counters;
        counters.reset(granules, nodes);
        for (const Touch& t : touches)
            RC_ASSERT(counters.add(t.granule, t.node, t.weight));
        auto expected = exact(touches, nodes);
        RC_ASSERT(counters.size() == expected.size());
        auto at = expected.begin();
        counters.for_each_sorted([&](std::uint64_t granule, std::span<const std::uint32_t> counts) {
            RC_ASSERT(granule == at->first);
            RC_ASSERT(std::equal(counts.begin(), counts.end(), at->second.begin(), at->second.end()));
            ++at;
        });
        RC_ASSERT(at == expected.end());
    }));
}

TEST(ReferenceCounters, WhatIsKeptWhenFullIsStillExact) {
    // Once a granule is in the final sub-sample it was in every earlier (larger) one, so nothing of it was
    // ever lost.
    EXPECT_TRUE(rc::check([] {
        const std::uint64_t granules = 5000;
        const int nodes = *rc::gen::inRange(1, 9);
        const auto rows = *rc::gen::inRange<std::size_t>(1, 64);
        const auto touches = arbitrary_touches(granules, nodes);
        ReferenceCounters counters;
        counters.reset(granules, nodes, rows, *rc::gen::arbitrary<std::uint64_t>());
        std::uint64_t references = 0;
        for (const Touch& t : touches) {
            counters.add(t.granule, t.node, t.weight);
            references += t.weight;
        }
        auto expected = exact(touches, nodes);
        RC_ASSERT(counters.size() <= rows);
        counters.for_each_sorted([&](std::uint64_t granule, std::span<const std::uint32_t> counts) {
            const auto& row = expected.at(granule);
            RC_ASSERT(std::equal(counts.begin(), counts.end(), row.begin(), row.end()));
        });
        std::uint64_t total = 0;
        for (std::uint64_t t : counters.totals())
            total += t;
        RC_ASSERT(total == references);
    }));
}

TEST(ReferenceCounters, TheSubSampleDoesNotFavourBusyGranules) {
    // Every tenth granule is referenced a hundred times as often; its share of the kept granules must stay a
    // tenth.
    const std::uint64_t granules = 200000;
    ReferenceCounters counters;
    counters.reset(granules, 4, 4096, 7);
    for (int round = 0; round < 3; ++round)
        for (std::uint64_t g = 0; g < granules; ++g)
            counters.add(g, static_cast<int>(g % 4), g % 10 == 0 ? 100 : 1);
    std::size_t busy = 0;
    std::size_t first_half = 0;
    counters.for_each_sorted([&](std::uint64_t granule, std::span<const std::uint32_t> counts) {
        busy += granule % 10 == 0;
        first_half += granule < granules / 2;
        EXPECT_EQ(counts[granule % 4], granule % 10 == 0 ? 300u : 3u);
    });
    const double n = static_cast<double>(counters.size());
    EXPECT_GE(counters.size(), 4096u / 4);
    EXPECT_NEAR(static_cast<double>(busy) / n, 0.1, 4 * std::sqrt(0.1 * 0.9 / n));
    EXPECT_NEAR(static_cast<double>(first_half) / n, 0.5, 4 * std::sqrt(0.25 / n));
}

TEST(ReferenceCounters, MemoryIsBoundedHoweverLargeTheAreaIs) {
    ReferenceCounters counters;
    const std::uint64_t hundred_gib = (std::uint64_t{100} << 30) / 4096;
    counters.reset(hundred_gib, 64);
    const auto add = [&](std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t g = from; g < to; ++g)
            counters.add(g * 97 % hundred_gib, static_cast<int>(g % 64));
    };
    add(0, 2 * ReferenceCounters::default_rows);
    const std::size_t full = counters.memory_bytes();
    EXPECT_LT(full, std::size_t{32} << 20);
    add(2 * ReferenceCounters::default_rows, 4 * ReferenceCounters::default_rows);
    EXPECT_EQ(counters.memory_bytes(), full);
    EXPECT_LE(counters.size(), ReferenceCounters::default_rows);

    ReferenceCounters small;
    small.reset(8, 4);
    EXPECT_LT(small.memory_bytes(), 1024u);
}

TEST(ReferenceCounters, MemoryIsTakenForWhatWasSeenOnly) {
    // A thousand large arrays of which most are never touched are no reason to take a gigabyte.
    ReferenceCounters counters;
    counters.reset(std::uint64_t{1} << 28, 64, 8192);
    EXPECT_LE(counters.memory_bytes(), 64 * sizeof(std::uint64_t));
    std::size_t rows = 0;
    for (const std::size_t upto : {1u, 100u, 1000u, 8192u}) {
        for (; rows < upto; ++rows)
            ASSERT_TRUE(counters.add(rows, static_cast<int>(rows % 64)));
        counters.for_each_sorted([](std::uint64_t, std::span<const std::uint32_t>) {});
        // Twice what the rows and their index need, and a little.
        EXPECT_LE(counters.memory_bytes(), 2 * rows * (64 * 4 + 8 + 4 + 4 * 4) + 16384) << rows;
        EXPECT_EQ(counters.size(), rows);
    }
    counters.reset(std::uint64_t{1} << 28, 64, 8192); // begins anew without what the last area had
    EXPECT_LE(counters.memory_bytes(), 64 * sizeof(std::uint64_t));
    EXPECT_EQ(counters.count(7, 7), 0u);
}

TEST(ReferenceCounters, NothingGrowsOnceTheRowsAreInUse) {
    ReferenceCounters counters;
    counters.reset(1000, 3, 100);
    const auto use = [&] {
        for (std::uint64_t g = 0; g < 1000; ++g)
            counters.add(g, 1, 9);
        counters.for_each_sorted([](std::uint64_t, std::span<const std::uint32_t>) {});
    };
    use();
    const std::size_t before = counters.memory_bytes();
    use();
    counters.forget(0, 500);
    use();
    EXPECT_EQ(counters.memory_bytes(), before);
}

TEST(ReferenceCounters, SaturateAndRefuseWhatDoesNotExist) {
    ReferenceCounters counters;
    counters.reset(2, 2);
    EXPECT_TRUE(counters.add(1, 0, 0xffffffffu));
    EXPECT_TRUE(counters.add(1, 0, 0xffffffffu));
    EXPECT_EQ(counters.count(1, 0), ReferenceCounters::saturation);
    EXPECT_EQ(counters.totals()[0], 2 * std::uint64_t{0xffffffffu});
    EXPECT_FALSE(counters.add(2, 0));
    EXPECT_FALSE(counters.add(0, 2));
    EXPECT_FALSE(counters.add(0, -1));
    EXPECT_EQ(counters.count(0, 0), 0u);
    ReferenceCounters nothing;
    EXPECT_FALSE(nothing.add(0, 0));
    EXPECT_EQ(nothing.count(0, 0), 0u);
}

TEST(ReferenceCounters, ForgetRemovesExactlyTheRange) {
    EXPECT_TRUE(rc::check([] {
        const auto touches = arbitrary_touches(200, 2);
        const auto first = *rc::gen::inRange<std::uint64_t>(0, 200);
        const auto end = *rc::gen::inRange<std::uint64_t>(first, 201);
        ReferenceCounters counters;
        counters.reset(200, 2);
        for (const Touch& t : touches)
            counters.add(t.granule, t.node, t.weight);
        counters.forget(first, end);
        for (auto& [granule, row] : exact(touches, 2))
            for (int node = 0; node < 2; ++node)
                RC_ASSERT(counters.count(granule, node) ==
                          (granule >= first && granule < end ? 0 : row[static_cast<std::size_t>(node)]));
    }));
}

} // namespace
} // namespace homing::areas_counters_tests
