// Which heap blocks are one area.
#include "areas/block_groups.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace homing::block_groups_tests {
namespace {

constexpr std::size_t row = 128 * 1024;

struct Blocks {
    std::vector<AreaEntry> entries;
    Address at = Address{1} << 40;
    std::uint64_t generation = 0;

    Blocks& add(std::size_t count, std::size_t bytes = row, std::size_t gap = 4096 + 16,
                Address origin = 0x10) {
        for (std::size_t i = 0; i < count; ++i) {
            AreaEntry entry;
            entry.range = {at, at + bytes};
            entry.generation = ++generation;
            entry.origin[0] = origin;
            entry.origin[1] = 0x99;
            entries.push_back(entry);
            at += bytes + gap;
        }
        return *this;
    }
    std::vector<BlockGroup> groups(const std::vector<BlockGroup>& known = {}) const {
        std::vector<const BlockGroup*> pointers;
        for (const BlockGroup& group : known)
            pointers.push_back(&group);
        return group_blocks(entries, pointers);
    }
};

std::vector<std::size_t> sizes(const std::vector<BlockGroup>& groups) {
    std::vector<std::size_t> counts;
    for (const BlockGroup& group : groups)
        counts.push_back(group.blocks.size());
    return counts;
}

using Counts = std::vector<std::size_t>;

TEST(BlockGroups, TheRowsOfAMatrixAreOneArea) {
    const Blocks rows = std::move(Blocks().add(100));
    const auto groups = rows.groups();
    ASSERT_EQ(sizes(groups), Counts{100});
    EXPECT_EQ(groups[0].entry.range.begin, rows.entries.front().range.begin);
    EXPECT_EQ(groups[0].entry.range.end, rows.entries.back().range.end);
    EXPECT_EQ(groups[0].entry.generation, 100u);
    EXPECT_EQ(groups[0].entry.origin[1], 0x99u);
}

TEST(BlockGroups, NotWhatIsFarAwayOfAnotherSizeOrFromElsewhere) {
    EXPECT_EQ(sizes(Blocks().add(40).add(40, row, 16, 0x20).groups()), (Counts{40, 40}));
    EXPECT_EQ(sizes(Blocks().add(40).add(40, row + 4096, 16).groups()), (Counts{40, 40}));
    EXPECT_EQ(sizes(Blocks().add(39).add(1, row, 16 * 4096).add(40).groups()), (Counts{40, 40}));
    EXPECT_EQ(sizes(Blocks().add(40).add(40, row + 8, 16).groups()), Counts{80})
        << "what an allocator rounds";
    EXPECT_EQ(Blocks().add(100, row, 3 * 4096).groups().size(), 100u);
}

TEST(BlockGroups, NotAFewNorLargeOnesNorWhatTheProgramNamed) {
    EXPECT_EQ(sizes(Blocks().add(31).groups()), Counts(31, 0));
    EXPECT_EQ(Blocks().add(64, std::size_t{64} << 20).groups().size(), 64u);
    Blocks named;
    named.add(80);
    named.entries[40].name = "centre";
    EXPECT_EQ(sizes(named.groups()), (Counts{40, 0, 39}));
    Blocks array;
    array.add(80);
    array.entries[40].kind = AreaKind::static_array;
    EXPECT_EQ(sizes(array.groups()), (Counts{40, 0, 39}));
}

TEST(BlockGroups, AGroupThatIsKnownStaysWhenMoreBlocksCome) {
    Blocks rows;
    const auto known = rows.add(50).groups();
    auto more = rows.add(5).groups(known);
    ASSERT_EQ(more.size(), 6u);
    EXPECT_TRUE(same_blocks(more[0], known[0]));
    more = rows.add(30).groups(known);
    EXPECT_EQ(sizes(more), (Counts{50, 35}));
    EXPECT_EQ(sizes(rows.groups(more)), (Counts{50, 35}));
    EXPECT_EQ(sizes(rows.groups()), Counts{85}) << "had all been there at once";
}

TEST(BlockGroups, ABlockThatWentOrCameAgainMakesAnotherGroup) {
    Blocks rows;
    const auto known = rows.add(80).groups();
    Blocks again = rows;
    again.entries[40].generation = 81; // freed, and allocated again at the same place
    const auto changed = again.groups(known);
    ASSERT_EQ(sizes(changed), Counts{80});
    EXPECT_FALSE(same_blocks(changed[0], known[0]));
    Blocks fewer = rows;
    fewer.entries.erase(fewer.entries.begin() + 40);
    EXPECT_EQ(sizes(fewer.groups(known)), (Counts{40, 39}));
    fewer.entries.pop_back(); // the last one
    EXPECT_EQ(sizes(fewer.groups(known)), (Counts{40, 38}));
}

TEST(BlockGroups, NothingIsLostAndNothingOverlaps) {
    EXPECT_TRUE(rc::check([] {
        Blocks blocks;
        std::vector<BlockGroup> known;
        for (int step = 0; step < 3; ++step) {
            for (int i = *rc::gen::inRange(0, 6); i > 0; --i)
                blocks.add(*rc::gen::inRange<std::size_t>(0, 50), *rc::gen::element(row, row + 16, 2 * row),
                           *rc::gen::element<std::size_t>(16, 4096, 3 * 4096), *rc::gen::element(0x10, 0x20));
            std::erase_if(blocks.entries, [](const AreaEntry&) { return *rc::gen::inRange(0, 50) == 0; });
            known = blocks.groups(known);
            std::size_t at = 0;
            for (const BlockGroup& group : known) {
                RC_ASSERT(group.entry.range.begin == blocks.entries[at].range.begin);
                for (const Range& block : group.blocks)
                    RC_ASSERT(block.begin == blocks.entries[at++].range.begin);
                at += group.blocks.empty();
                RC_ASSERT(group.entry.range.end == blocks.entries[at - 1].range.end);
            }
            RC_ASSERT(at == blocks.entries.size());
        }
    }));
}

TEST(BlockGroups, RowsOfSeveralCallersAreOneAreaThatComesFromWhatTheyShare) {
    Blocks blocks;
    blocks.add(80);
    for (std::size_t i = 0; i < blocks.entries.size(); ++i) {
        Address* origin = blocks.entries[i].origin;
        for (int frame = 0; frame < max_origin_frames; ++frame)
            origin[frame] =
                frame < kind_frames + 2 || i % 2 == 0 ? 0x100u + static_cast<Address>(frame) : 0x900u;
    }
    const std::vector<BlockGroup> groups = blocks.groups();
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].entry.origin[kind_frames + 1], 0x100u + kind_frames + 1);
    EXPECT_EQ(groups[0].entry.origin[kind_frames + 2], 0u) << "not every row comes from there";
}

} // namespace
} // namespace homing::block_groups_tests
