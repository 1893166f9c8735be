// The belief where arrays do not begin and end with pages, or several lie in one area.
#include "base/random.hpp"
#include "belief_test.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace homing::model::model_extent_tests {
namespace {

/// 16 planes of 4 blocks of 16 pages, behind an allocator's header of 16 bytes: the first page is shared.
class PlanesTest : public ::testing::Test {
  protected:
    static constexpr std::uint64_t pages = 1023;
    static std::uint32_t owner(std::uint64_t page) { return static_cast<std::uint32_t>((page + 1) / 16 % 4); }
    Belief believe(const Extent& of, const std::vector<Touch>& touches) const {
        return {formulas, Team::packed(4, 4), of, touches, Prior(formulas)};
    }

    const Formulas formulas{4};
    const Extent extent{pages, 16.0 / 4096 - 1, 1024};
};

TEST_F(PlanesTest, BordersAreThoseOfTheArrayNotOfItsPages) {
    std::vector<Touch> touches;
    for (std::uint64_t i = 0; i < 40; ++i) {
        const std::uint64_t page = i * 633 % pages;
        touches.push_back({page, owner(page), 0, false});
    }
    const Belief belief = believe(extent, touches);
    std::vector<std::uint64_t> wrong;
    for (std::uint64_t page = 0; page < pages; ++page)
        if (likeliest_node(belief, page) != static_cast<Node>(owner(page))) wrong.push_back(page);
    EXPECT_EQ(wrong, std::vector<std::uint64_t>());
}

TEST_F(PlanesTest, AByteOfAPageTellsWhichOfTwoBlocksInItWasTouched) {
    // A pipeline: whoever owns the block before comes first to the page that two share, for the 16 bytes of
    // it that are its own.
    std::vector<Touch> touches;
    for (std::uint64_t i = 0; i < 60; ++i) {
        const std::uint64_t page = i * 633 % pages;
        const bool is_shared = (page + 1) % 16 == 0;
        touches.push_back({page, is_shared ? owner(page - 1) : owner(page), 0, false, 8.0f / 4096});
    }
    const Belief belief = believe(extent, touches);
    for (std::uint64_t page = 0; page < pages; ++page)
        ASSERT_EQ(likeliest_node(belief, page), static_cast<Node>(owner(page))) << page;
    EXPECT_GT(belief.log_evidence(), believe(Extent(pages), touches).log_evidence());
    std::vector<Touch> again = touches; // of other bytes, before those that came first
    for (Touch& touch : again)
        touch.within = 4.0f / 4096;
    again.insert(again.begin(), touches.begin(), touches.end());
    EXPECT_EQ(likeliest_node(believe(extent, again), 15), 1);
}

TEST(ExtentTest, TilesOfAnArrayThatWasAlignedByHandAreNotTakenForRowsOfBrokenPages) {
    // 128 columns of 8 pages, each thread's tile with 4 of them, behind an allocator's header and what
    // aligning them has left over. Each thread begins its pages with the first line; every second time the
    // next one has read the last line of a tile's last page before.
    const Team team = Team::packed(4, 4);
    const Formulas formulas(4);
    const Extent extent(1025, 16.0 / 4096, 1025);
    const auto owner = [](std::uint64_t page) {
        return static_cast<int>((page - 1) % 8 / 4 + 2 * ((page - 1) / 512));
    };
    std::vector<Touch> touches;
    for (std::uint64_t i = 0; i < 160; ++i) {
        const std::uint64_t page = 1 + i * 633 % 1024;
        const bool is_halo = (page - 1) % 8 == 3 && i % 2 == 0;
        touches.push_back(
            {page, static_cast<std::uint32_t>(owner(page) + is_halo), 0, false, is_halo ? .998f : 0});
    }
    const Prior prior(formulas);
    for (const std::size_t count : {touches.size() / 2, touches.size()}) {
        const std::span<const Touch> some = std::span(touches).first(count);
        const auto evidence = [&](const Extent& of) {
            return Belief(formulas, team, of, some, prior).log_evidence();
        };
        EXPECT_GT(evidence(extent.aligned()) + tuning::aligned_log_prior, evidence(extent)) << count;
    }
    // Where pages were sent to their owners, HOME explains what comes after that; so do tiles, and all else.
    std::vector<Node> homes(touches.size(), 0);
    for (std::size_t i = 40; i < touches.size(); ++i)
        homes[i] = team.node(owner(touches[i].page));
    const Belief belief(formulas, team, extent.aligned(), touches, prior, homes);
    EXPECT_EQ(belief.likeliest(), Family::tiles) << belief.words();
}

TEST(ExtentTest, AnAlignedArrayBeginsAndEndsWithWholePages) {
    const Extent behind_a_header = Extent(1025, 16 / 4096., 1025 - 16 / 4096.).aligned();
    EXPECT_EQ(behind_a_header.pages(), 1025u);
    EXPECT_NEAR(behind_a_header.size(), 1024, 1e-6);
    EXPECT_NEAR(behind_a_header.position(1), .5 / 1024, 1e-6) << "the first page that it has";
    EXPECT_NEAR(behind_a_header.position(1024), 1023.5 / 1024, 1e-6);
    const Extent of_pages = Extent(8).aligned();
    EXPECT_EQ(of_pages.size(), 8);
    EXPECT_EQ(of_pages.position(0), .5 / 8);
    const Extent within = Extent(10, -.4, 10.1).aligned(); // its last page is not whole
    EXPECT_NEAR(within.position(0), .5 / 9, 1e-6);
    EXPECT_LT(within.position(9), 1);
}

TEST(ExtentTest, ArraysOfAnySizeMayBeAligned) {
    for (std::uint64_t pages = 2; pages <= std::uint64_t{1} << 36; pages = 2 * pages + pages % 3)
        for (const double header : {16. / 4096, .5, 4080. / 4096}) {
            const auto size = static_cast<double>(pages);
            for (const Extent& aligned :
                 {Extent(pages, header, size - header).aligned(), Extent(pages, header - 1, size).aligned()})
                EXPECT_NEAR(aligned.size(), size - 1, 1e-3) << pages << " pages, " << header;
        }
}

TEST(ExtentTest, FewTouchesTellThatEachArrayOfAnAreaIsABlock) {
    // 40 arrays of 15 to 21 pages: no row of the area is like another.
    const Team team = Team::packed(4, 4);
    const Formulas formulas(4);
    std::vector<Block> blocks;
    std::uint64_t pages = 0;
    std::vector<int> owner;
    for (std::uint64_t i = 0; i < 40; ++i) {
        const std::uint64_t size = 15 + i * 5 % 7;
        for (std::uint64_t page = 0; page < size; ++page)
            owner.push_back(static_cast<int>((2 * page + 1) * 4 / (2 * size)));
        blocks.push_back({static_cast<double>(pages), static_cast<double>(size)});
        pages += size;
    }
    std::vector<Touch> touches;
    for (std::uint64_t i = 0; i < 12; ++i) {
        const std::uint64_t page = i * 619 % pages;
        touches.push_back({page, static_cast<std::uint32_t>(owner[page]), 0, false});
    }
    const Belief belief(formulas, team, Extent(pages).with_blocks(blocks), touches, Prior(formulas));
    EXPECT_EQ(belief.words(), "each BLOCK over 4 threads");
    std::uint64_t right = 0;
    for (std::uint64_t page = 0; page < pages; ++page)
        right += likeliest_node(belief, page) == owner[page];
    EXPECT_GT(static_cast<double>(right), .99 * static_cast<double>(pages));
    std::uint64_t begin = 0, wrong = 0; // and a stretch has one owner
    for (std::uint64_t end; begin < pages; begin = end) {
        end = belief.stretch_end(begin);
        for (std::uint64_t page = begin; page < end; ++page)
            wrong += owner[page] != owner[begin];
    }
    EXPECT_EQ(wrong, 0u);
}

TEST(ExtentTest, ArraysThatAnyThreadTouchesLeaveThoseBesideThemBlock) {
    // As in the allocator's memory of LULESH: arrays that are shared out, and behind them temporaries of
    // which any thread touches any page. Most of what is asked for are the latter, for they stay unknown.
    constexpr std::uint64_t arrays = 20, size = 16, pages = 2 * arrays * size;
    const Team team = Team::packed(4, 4);
    const Formulas formulas(4);
    std::vector<Block> blocks;
    for (std::uint64_t i = 0; i < 2 * arrays; ++i)
        blocks.push_back({static_cast<double>(i * size), static_cast<double>(size)});
    const auto owner = [](std::uint64_t page) { return static_cast<std::uint32_t>(page % size * 4 / size); };
    std::vector<Touch> touches;
    for (std::uint64_t i = 0; i < 40; ++i) {
        const std::uint64_t page = i * 619 % (pages / 2);
        touches.push_back({page, owner(page), 0, false});
    }
    for (std::uint64_t i = 0; i < 160; ++i)
        touches.push_back(
            {pages / 2 + i * 619 % (pages / 2), static_cast<std::uint32_t>(mixed(i) % 4), 0, false});
    const Belief belief(formulas, team, Extent(pages).with_blocks(blocks), touches, Prior(formulas));
    Prospect prospect;
    std::uint64_t known = 0, spread = 0;
    for (std::uint64_t page = 0; page < pages; ++page) {
        belief.prospect(page, unknown_node, prospect);
        if (page < pages / 2)
            known += prospect.best[owner(page)] >= tuning::least_lead;
        else
            spread += prospect.spread > .5;
    }
    EXPECT_GE(known, pages / 2 * 95 / 100);
    EXPECT_GE(spread, pages / 4); // of some, eight touches look like BLOCK by chance
}

} // namespace
} // namespace homing::model::model_extent_tests
