// What small blocks cover of the allocator's memory.
#include "areas/block_cover.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <rapidcheck.h>
#include <thread>

namespace homing::areas_block_cover_tests {
namespace {

constexpr Address heap = Address{1} << 40;
constexpr std::size_t cell = BlockCover::cell_bytes;
constexpr std::size_t mib = std::size_t{1} << 20;

std::unique_ptr<BlockCover> empty_cover() { return std::make_unique<BlockCover>(); }

BlockSites::Site site_at(BlockCover& cover, Address caller) {
    const Address origin[] = {caller, 0x99};
    return cover.sites().intern(origin, 2);
}

/// `count` blocks side by side, each with a header of 16 bytes before it; the address behind the last.
Address add_rows(BlockCover& cover, Address at, std::size_t count, std::size_t bytes,
                 std::vector<BlockSites::Site> sites) {
    for (std::size_t i = 0; i < count; ++i) {
        cover.add({at + 16, at + 16 + bytes}, sites[i % sites.size()]);
        at += 16 + bytes;
    }
    return at;
}

std::vector<CoveredRun> runs_of(const BlockCover& cover, std::size_t smallest = 4 * cell) {
    std::vector<CoveredRun> runs;
    cover.runs(smallest, 4 * cell, runs);
    return runs;
}

TEST(BlockCover, TheRowsOfTwoMatricesThatWereAllocatedInTurnAreOneRun) {
    const auto cover = empty_cover();
    const auto a = site_at(*cover, 0x10), b = site_at(*cover, 0x20);
    const Address end = add_rows(*cover, heap, 8192, 8192, {a, b});
    const auto runs = runs_of(*cover);
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_EQ(runs[0].range.begin, heap);
    EXPECT_EQ(runs[0].range.end, align_up(end, cell));
    EXPECT_EQ(runs[0].sites, 2);
    EXPECT_TRUE(runs[0].site == a || runs[0].site == b);
}

TEST(BlockCover, OneMatrixBehindAnotherIsARunOfItsOwn) {
    const auto cover = empty_cover();
    const auto a = site_at(*cover, 0x10), b = site_at(*cover, 0x20);
    const Address middle = add_rows(*cover, heap, 2048, 8192, {a});
    add_rows(*cover, middle, 2048, 8192, {b});
    const auto runs = runs_of(*cover);
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_EQ(runs[0].site, a);
    EXPECT_EQ(runs[1].site, b);
    EXPECT_EQ(runs[0].range.end, runs[1].range.begin);
    EXPECT_LE(runs[0].range.end - std::min(middle, runs[0].range.end), 2 * mib);
}

TEST(BlockCover, AHoleWiderThanTheGapEndsARun) {
    const auto cover = empty_cover();
    add_rows(*cover, heap, 128, 8192, {0});
    add_rows(*cover, heap + 2 * mib, 128, 8192, {0});
    EXPECT_EQ(runs_of(*cover).size(), 2u);
    EXPECT_TRUE(runs_of(*cover, 4 * mib).empty());
}

TEST(BlockCover, WhatEndsWithoutHavingBegunTakesNothingFromOthersThatComeLater) {
    const auto cover = empty_cover();
    add_rows(*cover, heap, 1, 4096, {0});
    for (int i = 0; i < 3; ++i)
        cover->remove({heap, heap + cell});
    add_rows(*cover, heap, 16, 8192, {0});
    EXPECT_EQ(runs_of(*cover).size(), 1u);
    EXPECT_TRUE(cover->is_within({heap + 4096, heap + 8192}));
}

TEST(BlockCover, OfForgottenMemoryNoPageIsToBeProtected) {
    const auto cover = empty_cover();
    cover->add({heap, heap + 4 * cell}, 0);
    cover->add({heap + 4 * cell, heap + 6 * cell}, 0);
    cover->forget({heap + cell + 8, heap + 5 * cell});
    EXPECT_TRUE(cover->is_within({heap, heap + cell})) << "what lies before stays";
    EXPECT_FALSE(cover->is_within({heap + cell + 4096, heap + cell + 8192}));
    EXPECT_FALSE(cover->is_within({heap + 3 * cell, heap + 3 * cell + 4096}));
    EXPECT_FALSE(cover->is_within({heap + 4 * cell, heap + 4 * cell + 4096}));
    EXPECT_TRUE(cover->begins_in_page_of(heap + 4 * cell)) << "so that its end finds what is known of it";
    cover->remove({heap + 4 * cell, heap + 6 * cell});
    cover->remove({heap, heap + 4 * cell});
    EXPECT_TRUE(runs_of(*cover, 1).empty());
}

TEST(BlockCover, OfABlockOfManyPagesThoseThatCanBeCountedAreKnown) {
    constexpr std::size_t page = 4096;
    const auto cover = empty_cover();
    cover->add({heap + 16, heap + mib + 16}, 0);
    EXPECT_FALSE(cover->is_within({heap, heap + page}));
    EXPECT_TRUE(cover->is_within({heap + page, heap + 100 * page}));
    EXPECT_FALSE(cover->is_within({heap + 200 * page, heap + 201 * page})) << "not known is not within";
    EXPECT_FALSE(cover->is_within({heap + mib, heap + mib + page}));
    cover->remove({heap + 16, heap + mib + 16});
    EXPECT_FALSE(cover->is_within({heap + page, heap + 2 * page}));
}

TEST(BlockCover, WhatIsFoundAtOnceIsWhatASearchFinds) {
    constexpr std::size_t page = 4096;
    const auto cover = empty_cover();
    EXPECT_TRUE(cover->at_once(heap).is_unknown());
    cover->add({heap + 16, heap + 3 * page});
    BlockCover::Page first = cover->at_once(heap + 100);
    ASSERT_FALSE(first.is_unknown());
    EXPECT_TRUE(first.block_begins());
    BlockCover::Page next = cover->at_once(heap + 3 * page);
    EXPECT_FALSE(next.block_begins());
    next.add({heap + 3 * page + 16, heap + 6 * page + 32});
    EXPECT_TRUE(cover->is_within({heap + 4 * page, heap + 6 * page}));
    EXPECT_FALSE(cover->is_within({heap + 6 * page, heap + 7 * page}));
    first.remove();
    EXPECT_FALSE(cover->begins_in_page_of(heap + 16));
    EXPECT_FALSE(cover->is_within({heap + page, heap + 2 * page}));
    // Two chunks that share a place: the second one is found by a search only.
    const Address far = heap + (Address{4096} * 64 << 20);
    EXPECT_TRUE(cover->at_once(far).is_elsewhere());
    cover->add({far + 16, far + 3 * page});
    EXPECT_TRUE(cover->at_once(far).is_elsewhere());
    EXPECT_TRUE(cover->begins_in_page_of(far));
    EXPECT_TRUE(cover->is_within({far + page, far + 3 * page}));
    EXPECT_FALSE(cover->begins_in_page_of(heap + 16)) << "they are told apart";
}

TEST(BlockCover, TheLowestMemoryHasAChunkOfItsOwn) { // of a program that is not position-independent
    const auto cover = empty_cover();
    cover->add({0x500010, 0x504010});
    EXPECT_TRUE(cover->is_within({0x501000, 0x504000}));
    cover->add({heap + 16, heap + 8192});
    EXPECT_TRUE(cover->begins_in_page_of(0x500010));
    EXPECT_FALSE(cover->begins_in_page_of(heap + 0x500010));
    EXPECT_FALSE(cover->begins_in_page_of(0x500010 + (Address{1} << 32)));
}

TEST(BlockCover, ItIsKnownByThePageWhereBlocksBegin) {
    const auto cover = empty_cover();
    EXPECT_FALSE(cover->begins_in_page_of(heap)) << "nothing was ever counted";
    cover->add({heap + 16, heap + 3 * 4096}, 0);
    cover->add({heap + 3 * 4096 + 16, heap + 8 * 4096}, 0);
    EXPECT_TRUE(cover->begins_in_page_of(heap + 16));
    EXPECT_FALSE(cover->begins_in_page_of(heap + 4096));
    EXPECT_TRUE(cover->begins_in_page_of(heap + 3 * 4096 + 16));
    EXPECT_FALSE(cover->begins_in_page_of(heap + 256 * mib)) << "no block was ever counted near it";
    cover->remove({heap + 16, heap + 3 * 4096});
    EXPECT_FALSE(cover->begins_in_page_of(heap + 16));
    cover->forget({heap + 3 * 4096 + 16, heap + 64 * 4096});
    EXPECT_FALSE(cover->begins_in_page_of(heap + 3 * 4096 + 16));
}

TEST(BlockCover, BlocksWithWholePagesAreFoundFromTheirFirstPageToTheirLast) {
    constexpr std::size_t page = 4096;
    const auto cover = empty_cover();
    const auto found = [&] {
        std::vector<Range> blocks;
        cover->blocks_within({heap, heap + 64 * page}, blocks);
        for (Range& block : blocks)
            block = {(block.begin - heap) / page, (block.end - heap) / page};
        return blocks;
    };
    const auto equal = [](const std::vector<Range>& blocks, const std::vector<Range>& expected) {
        return std::ranges::equal(blocks, expected, [](const Range& a, const Range& b) {
            return a.begin == b.begin && a.end == b.end;
        });
    };
    EXPECT_TRUE(found().empty());
    cover->add({heap + 16, heap + 16 * page - 32}, 0);               // ends within page 15
    cover->add({heap + 16 * page - 16, heap + 16 * page + 5000}, 0); // has no whole page but one
    cover->add({heap + 20 * page, heap + 28 * page}, 0);             // exactly eight pages ...
    cover->add({heap + 28 * page, heap + 30 * page}, 0);             // ... and two behind them
    cover->add({heap + 40 * page + 100, heap + 41 * page + 200}, 0); // no whole page
    EXPECT_TRUE(equal(found(), {{0, 15}, {15, 17}, {20, 28}, {28, 30}}));
    cover->remove({heap + 20 * page, heap + 28 * page});
    EXPECT_TRUE(equal(found(), {{0, 15}, {15, 17}, {28, 30}}));
}

/// Against blocks one by one: pages within a live block, and no others; whatever comes and goes.
TEST(BlockCoverProperty, APageThatMayBeProtectedLiesWithinALiveBlock) {
    EXPECT_TRUE(rc::check("blocks at random", [] {
        constexpr std::size_t page = 4096;
        const auto cover = empty_cover();
        std::map<Address, Address> live;
        Address at = heap + 64 * mib - 40 * page; // across the border of two chunks
        const auto steps = *rc::gen::inRange<int>(20, 200);
        for (int step = 0; step < steps; ++step) {
            if (!live.empty() && *rc::gen::inRange(0, 3) == 0) {
                auto one = live.begin();
                std::advance(one, *rc::gen::inRange<std::size_t>(0, live.size()));
                cover->remove({one->first, one->second});
                live.erase(one);
                continue;
            }
            const std::size_t bytes = 16 * *rc::gen::inRange<std::size_t>(256, 2000);
            const std::size_t gap = 16 * *rc::gen::inRange<std::size_t>(0, 3);
            cover->add({at + gap, at + gap + bytes}, 0);
            live.emplace(at + gap, at + gap + bytes);
            at += gap + bytes;
        }
        std::vector<Range> parts;
        const Range all{align_down(heap + 64 * mib - 64 * page, page), align_up(at, page) + page};
        cover->parts_within(all, parts);
        std::size_t found = 0, expected = 0;
        for (const Range& part : parts)
            found += part.bytes();
        for (Address here = all.begin; here < all.end; here += page) {
            auto block = live.upper_bound(here);
            const bool within = block != live.begin() && here + page <= std::prev(block)->second;
            RC_ASSERT(cover->is_within({here, here + page}) == within);
            expected += within ? page : 0;
        }
        RC_ASSERT(found == expected);
        for (const auto& [first, last] : live)
            cover->remove({first, last});
        RC_ASSERT(runs_of(*cover, 1).empty());
        parts.clear();
        cover->parts_within(all, parts);
        RC_ASSERT(parts.empty());
    }));
}

TEST(BlockCover, AHundredThousandBlocksAreLookedAtByTheCell) {
    const auto cover = empty_cover();
    const auto site = site_at(*cover, 0x10);
    const Address end = add_rows(*cover, heap, 100'000, 8192, {site});
    const std::uint64_t before = cover->looked_at();
    EXPECT_EQ(cover->churn() / 8192, 100'000u) << "what is looked at where nothing changed: no cell";
    EXPECT_EQ(cover->looked_at(), before);
    EXPECT_EQ(runs_of(*cover).size(), 1u);
    EXPECT_LE(cover->looked_at() - before, (end - heap) / cell + 2 * 64 * mib / cell);
}

TEST(BlockCover, ThreadsThatAllocateAndFreeLeaveNothingBehind) {
    const auto cover = empty_cover();
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            const auto site = site_at(*cover, 0x10 + t);
            for (int round = 0; round < 50; ++round)
                for (const bool begins : {true, false})
                    for (std::size_t i = 0; i < 200; ++i) {
                        const Address at = heap + (i * 4 + t) * 5008; // cells are shared by all four
                        if (begins)
                            cover->add({at, at + 4992}, site);
                        else
                            cover->remove({at, at + 4992});
                    }
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_TRUE(runs_of(*cover, 1).empty());
    EXPECT_EQ(cover->dropped(), 0u);
}

TEST(BlockSites, ThePlacesThatThereIsNoRoomForHaveNoNumber) {
    const auto cover = empty_cover();
    for (std::size_t i = 0; i < BlockSites::capacity; ++i) {
        const auto site = site_at(*cover, 0x1000 + i);
        ASSERT_NE(site, 0);
        EXPECT_EQ(cover->sites().origin(site)[0], 0x1000 + i);
        EXPECT_EQ(site_at(*cover, 0x1000 + i), site);
    }
    EXPECT_EQ(site_at(*cover, 0x9000), 0);
    EXPECT_EQ(cover->sites().intern(nullptr, 0), 0);
}

} // namespace
} // namespace homing::areas_block_cover_tests
