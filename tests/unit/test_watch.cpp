// The areas that are watched, over real memory.
#include "areas/watch.hpp"

#include "areas/named.hpp"
#include "machine/machine.hpp"

#include <gtest/gtest.h>
#include <optional>
#include <sys/mman.h>

namespace homing::watch_tests {
namespace {

/// A matrix of rows as malloc gives them: each with a header before it, in a mapping of its own or not.
class Rows {
  public:
    Rows(std::size_t count, std::size_t bytes, std::size_t distance) : bytes_(count * distance) {
        memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (std::size_t i = 0; i < count; ++i) {
            const Address begin = reinterpret_cast<Address>(memory_) + i * distance + 16;
            rows.push_back({begin, begin + bytes});
            note(rows.back());
        }
    }
    ~Rows() {
        for (const Range& row : rows)
            area_registry().end(row.begin);
        ::munmap(memory_, bytes_);
    }
    Rows(const Rows&) = delete;
    Rows& operator=(const Rows&) = delete;
    static void note(Range row) {
        const Address origin[max_origin_frames] = {0x77};
        area_registry().note(row, AreaKind::heap_block, origin, 1, nullptr);
    }

    std::vector<Range> rows;

  private:
    std::size_t bytes_;
    void* memory_;
};

class WatchTest : public ::testing::Test {
  protected:
    WatchTest() {
        Machine machine;
        machine.nodes.resize(2);
        for (int i = 0; i < 2; ++i) {
            machine.nodes[static_cast<std::size_t>(i)].index = i;
            machine.nodes[static_cast<std::size_t>(i)].cpus = 1;
            machine.nodes[static_cast<std::size_t>(i)].memory_bytes = std::uint64_t{1} << 30;
        }
        nodes_.emplace(machine.targets());
        watch.emplace(*nodes_, 1);
    }
    WatchedArea* area_of(const Rows& rows) { return watch->find(rows.rows[0].begin + page_bytes()); }

  private:
    std::optional<NodeMap> nodes_;

  protected:
    std::optional<WatchList> watch;
};

TEST_F(WatchTest, WhereMemoryIsNamedHotAllOtherStays) {
    const Rows one(1, std::size_t{1} << 20, std::size_t{1} << 20);
    const Rows other(1, std::size_t{1} << 20, std::size_t{1} << 20);
    watch->synchronise(0);
    ASSERT_TRUE(area_of(one) && area_of(other));
    EXPECT_FALSE(area_of(one)->left_alone() || area_of(other)->left_alone());
    ASSERT_TRUE(name_area(one.rows[0], "hot", true));
    watch->synchronise(1);
    EXPECT_FALSE(area_of(one)->left_alone());
    EXPECT_TRUE(area_of(other)->left_alone());
    const Rows later(1, std::size_t{1} << 20, std::size_t{1} << 20);
    watch->synchronise(2);
    ASSERT_TRUE(area_of(later));
    EXPECT_TRUE(area_of(later)->left_alone());
    ASSERT_TRUE(name_area(later.rows[0], "hot, too", true));
    watch->synchronise(3);
    EXPECT_FALSE(area_of(later)->left_alone());
    EXPECT_TRUE(area_of(later)->waiting) << "for a decision by what was learnt while it was cold";
    EXPECT_TRUE(area_of(other)->left_alone());
    area_of(one)->bound = true;
    EXPECT_TRUE(forget_named_area(one.rows[0].begin));
    EXPECT_TRUE(forget_named_area(later.rows[0].begin));
    watch->synchronise(4);
    EXPECT_FALSE(area_of(other)->left_alone()) << "none is hot any more";
    EXPECT_TRUE(area_of(one)->left_alone()) << "the program has bound it";
}

/// Memory that no hook saw.
class Unseen {
  public:
    explicit Unseen(std::size_t pages) : bytes_(pages * page_bytes()) {
        memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    ~Unseen() {
        end_named_areas(part(0, bytes_ / page_bytes()));
        ::munmap(memory_, bytes_);
    }
    Unseen(const Unseen&) = delete;
    Unseen& operator=(const Unseen&) = delete;
    Range part(std::size_t first, std::size_t end) const {
        const Address begin = reinterpret_cast<Address>(memory_);
        return {begin + first * page_bytes(), begin + end * page_bytes()};
    }

  private:
    std::size_t bytes_;
    void* memory_;
};

TEST_F(WatchTest, WhatIsRegisteredAgainIsTheSameArea) {
    const Unseen memory(256);
    ASSERT_TRUE(name_area(memory.part(0, 256), "u"));
    watch->synchronise(0);
    WatchedArea* area = watch->find(memory.part(0, 1).begin);
    ASSERT_NE(area, nullptr);
    const std::uint32_t id = area->id;
    ASSERT_TRUE(name_area(memory.part(0, 256), "u"));
    EXPECT_TRUE(watch->synchronised());
    ASSERT_TRUE(name_area(memory.part(0, 256), "velocity"));
    EXPECT_FALSE(watch->synchronise(1)) << "no area came or went";
    area = watch->find(memory.part(0, 1).begin);
    EXPECT_EQ(area->id, id);
    EXPECT_EQ(area->name, "velocity");
}

TEST_F(WatchTest, ABlockMayBeNamedAtAnyTime) {
    const Rows block(1, std::size_t{1} << 20, std::size_t{1} << 20);
    watch->synchronise(0);
    const std::string before = area_of(block)->name;
    ASSERT_TRUE(name_area(block.rows[0], ""));
    watch->synchronise(1);
    EXPECT_EQ(area_of(block)->name, before);
    ASSERT_TRUE(name_area(block.rows[0], "velocity"));
    watch->synchronise(2);
    EXPECT_EQ(area_of(block)->name, "velocity");
    EXPECT_TRUE(forget_named_area(block.rows[0].begin));
}

TEST_F(WatchTest, OfAreasThatOverlapEachPageIsOnes) {
    for (const bool turned : {false, true}) {
        const Unseen memory(400);
        const auto register_one = [&](bool second) {
            ASSERT_TRUE(name_area(second ? memory.part(100, 400) : memory.part(0, 200), second ? "b" : "a"));
        };
        register_one(turned);
        register_one(!turned);
        ASSERT_TRUE(name_area(memory.part(150, 300), "in both"));
        watch->synchronise(turned);
        for (const std::size_t page : {0u, 150u, 199u})
            EXPECT_EQ(watch->find(memory.part(page, page + 1).begin)->name, "a") << page;
        for (const std::size_t page : {200u, 299u, 300u, 399u}) {
            ASSERT_NE(watch->find(memory.part(page, page + 1).begin), nullptr) << page;
            EXPECT_EQ(watch->find(memory.part(page, page + 1).begin)->name, "b") << page;
        }
    }
}

TEST_F(WatchTest, WhatGoesBeyondABlockIsAnAreaOfItsOwn) {
    const Unseen memory(400);
    const Range block = memory.part(0, 200);
    Rows::note(block);
    ASSERT_TRUE(name_area(memory.part(100, 400), "over the end"));
    watch->synchronise(0);
    ASSERT_NE(watch->find(memory.part(199, 200).begin), nullptr);
    EXPECT_EQ(watch->find(memory.part(199, 200).begin)->group.entry.kind, AreaKind::heap_block);
    ASSERT_NE(watch->find(memory.part(200, 201).begin), nullptr);
    EXPECT_EQ(watch->find(memory.part(200, 201).begin)->name, "over the end");
    area_registry().end(block.begin);
}

TEST_F(WatchTest, TemporariesOfAnIterationCountOnceForEachAddress) {
    constexpr std::size_t bytes = std::size_t{1} << 20;
    const auto comes_and_goes = [&](Range range, double time) {
        Rows::note(range);
        watch->synchronise(time);
        WatchedArea* area = watch->find(range.begin + page_bytes());
        ASSERT_NE(area, nullptr);
        area->exists = PageSet::whole(area->granules); // its pages were touched
        area_registry().end(range.begin);
        watch->synchronise(time + .5);
    };
    const Rows memory(2, bytes, bytes);
    for (const Range& row : memory.rows)
        area_registry().end(row.begin);
    comes_and_goes(memory.rows[0], 1);
    EXPECT_EQ(watch->bytes_gone_since(1), bytes);
    EXPECT_EQ(watch->bytes_gone_since(2), 0u) << "of an iteration before";
    comes_and_goes({memory.rows[0].begin, memory.rows[0].end - bytes / 2}, 3);
    EXPECT_EQ(watch->bytes_gone_since(1), bytes) << "another array in the memory of the first";
    comes_and_goes({memory.rows[1].begin, memory.rows[1].end - bytes / 4}, 5);
    EXPECT_EQ(watch->bytes_gone_since(1), bytes + bytes * 3 / 4);
}

TEST_F(WatchTest, OfTheRowsOfAMatrixOnlyPagesThatAreOneRowsAreArmed) {
    const std::size_t page = page_bytes();
    const Rows matrix(40, 32 * page, 33 * page);
    watch->synchronise(0);
    const WatchedArea* area = area_of(matrix);
    ASSERT_NE(area, nullptr);
    ASSERT_EQ(area->group.blocks.size(), 40u);
    EXPECT_TRUE(area->range.contains(matrix.rows[39].begin + page));
    for (std::uint64_t granule = 0; granule < area->granules; ++granule) {
        const Range range = area->granule_range(granule);
        const bool whole = std::ranges::any_of(
            matrix.rows, [&](Range row) { return row.begin <= range.begin && range.end <= row.end; });
        const bool part = std::ranges::any_of(matrix.rows, [&](Range row) { return row.overlaps(range); });
        EXPECT_EQ(area->is_armable(granule), whole) << granule;
        EXPECT_EQ(area->own.contains(granule), part) << granule;
    }
}

TEST_F(WatchTest, PagesBetweenRowsAreNotTheMatrixs) {
    const std::size_t page = page_bytes();
    const Rows matrix(40, 32 * page, 34 * page); // a page of something else behind each
    watch->synchronise(0);
    const WatchedArea* area = area_of(matrix);
    ASSERT_NE(area, nullptr);
    EXPECT_EQ(area->there().size() + 39, area->granules);
}

TEST_F(WatchTest, AMatrixOfWhichARowIsFreedIsAnotherOne) {
    const std::size_t page = page_bytes();
    const Rows matrix(80, 32 * page, 33 * page);
    watch->synchronise(0);
    const std::uint32_t before = area_of(matrix)->id;
    EXPECT_FALSE(watch->synchronise(1));
    area_registry().end(matrix.rows[40].begin);
    EXPECT_FALSE(watch->synchronised()) << "no window opens on what may have gone";
    EXPECT_TRUE(watch->synchronise(2));
    EXPECT_NE(area_of(matrix)->id, before);
    EXPECT_EQ(area_of(matrix)->group.blocks.size(), 40u);
    EXPECT_EQ(watch->find(matrix.rows[40].begin + page), nullptr);
    Rows::note(matrix.rows[40]);
    EXPECT_TRUE(watch->synchronise(3));
    EXPECT_NE(watch->find(matrix.rows[40].begin + page), nullptr);
}

TEST_F(WatchTest, RowsThatAreAllocatedLaterLeaveWhatIsKnownAlone) {
    const std::size_t page = page_bytes();
    const Rows matrix(64, 32 * page, 33 * page);
    for (std::size_t i = 50; i < 64; ++i)
        area_registry().end(matrix.rows[i].begin);
    watch->synchronise(0);
    WatchedArea* area = area_of(matrix);
    area->references = 7;
    for (std::size_t i = 50; i < 64; ++i) {
        Rows::note(matrix.rows[i]);
        watch->synchronise(static_cast<double>(i));
    }
    EXPECT_EQ(area_of(matrix), area);
    EXPECT_EQ(area->references, 7u);
}

/// Seconds after which the memory of small blocks is looked at again, whatever the last look took (a
/// sanitizer's takes long).
constexpr double later = 1e6;

/// Small blocks as malloc gives them, known to the cover and not to the registry.
class SmallRows {
  public:
    SmallRows(std::size_t count, std::size_t bytes)
        : bytes_(align_up(count * (bytes + 16) + page_bytes(), page_bytes())) {
        memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        const Address origin[] = {0x4711};
        const BlockSites::Site site = block_cover().sites().intern(origin, 1);
        for (std::size_t i = 0; i < count; ++i) {
            const Address begin = reinterpret_cast<Address>(memory_) + i * (bytes + 16) + 16;
            rows.push_back({begin, begin + bytes});
            block_cover().add(rows.back(), site);
        }
    }
    ~SmallRows() {
        for (const Range& row : rows)
            block_cover().remove(row);
        ::munmap(memory_, bytes_);
    }
    SmallRows(const SmallRows&) = delete;
    SmallRows& operator=(const SmallRows&) = delete;
    void free(std::size_t row) {
        block_cover().remove(rows[row]);
        block_cover().count_churn(rows[row].bytes());
        rows[row].end = rows[row].begin;
    }

    std::vector<Range> rows;

  private:
    std::size_t bytes_;
    void* memory_;
};

TEST_F(WatchTest, SmallBlocksAreOneAreaOfPagesNamedAfterTheirPlace) {
    const SmallRows rows(4096, 8192);
    EXPECT_TRUE(watch->synchronise(0));
    WatchedArea* area = watch->find(rows.rows[2000].begin);
    ASSERT_NE(area, nullptr);
    EXPECT_EQ(area->group.entry.kind, AreaKind::arena);
    EXPECT_EQ(area->group.entry.origin[0], 0x4711u);
    EXPECT_EQ(watch->find(rows.rows[10].begin), area);
    EXPECT_EQ(watch->find(rows.rows[4090].begin), area);
    for (std::size_t i = 1000; i < 1100; ++i) {
        const Address inside = align_up(rows.rows[i].begin, page_bytes());
        EXPECT_TRUE(area->is_armable(area->granule_of(inside))) << i;
        EXPECT_FALSE(area->is_armable(area->granule_of(rows.rows[i].begin - 1))) << "the header of " << i;
    }
    EXPECT_FALSE(watch->synchronise(1));
}

TEST_F(WatchTest, WhereASmallBlockWasFreedNoPageIsArmed) {
    SmallRows rows(4096, 8192);
    watch->synchronise(0);
    const Address page = align_up(rows.rows[2000].begin, page_bytes());
    std::vector<Range> granules{{align_up(rows.rows[1000].begin, page_bytes()),
                                 align_up(rows.rows[1000].begin, page_bytes()) + page_bytes()},
                                {page, page + page_bytes()}};
    EXPECT_TRUE(watch->all_covered(granules));
    rows.free(2000);
    EXPECT_TRUE(watch->synchronised()) << "one block is not worth a look at everything";
    EXPECT_FALSE(watch->all_covered(granules));
    watch->keep_covered(granules);
    ASSERT_EQ(granules.size(), 1u);
    EXPECT_NE(granules[0].begin, page);
    EXPECT_TRUE(watch->all_covered(granules));
}

TEST_F(WatchTest, WhatIsLearntOfPagesIsKeptWhereTheirAreaGetsOtherBorders) {
    SmallRows rows(4096, 8192);
    watch->synchronise(0);
    WatchedArea* area = watch->find(rows.rows[3000].begin);
    const std::uint32_t before = area->id;
    for (const std::size_t row : {500u, 3000u, 3500u}) {
        const std::uint64_t granule = area->granule_of(rows.rows[row].begin);
        area->learnt.touches.add({{granule, 2, 0, true}, 9, 0}, area->granules);
        area->learnt.users.set(granule, granule + 1, 1);
    }
    area->learnt.taken = 3;
    for (std::size_t i = 0; i < 2000; ++i)
        rows.free(i);
    EXPECT_TRUE(watch->synchronise(later));
    area = watch->find(rows.rows[3000].begin);
    ASSERT_NE(area, nullptr);
    EXPECT_NE(area->id, before);
    ASSERT_EQ(area->learnt.touches.size(), 2u) << "the page of row 500 has gone";
    EXPECT_EQ(area->learnt.touches.at(9)[0].page, area->granule_of(rows.rows[3000].begin));
    EXPECT_EQ(area->learnt.touches.at(9)[1].page, area->granule_of(rows.rows[3500].begin));
    EXPECT_EQ(area->learnt.users.known(), 2u);
    EXPECT_EQ(area->learnt.users.home(area->granule_of(rows.rows[3500].begin)), 1);
    EXPECT_EQ(area->learnt.taken, 3u);
    EXPECT_FALSE(area->learnt.belief) << "it is made anew";
}

TEST_F(WatchTest, WhatIsLearntOfSmallBlocksOutlivesSomeThatComeAndGo) {
    SmallRows rows(4096, 8192);
    watch->synchronise(0);
    WatchedArea* area = watch->find(rows.rows[2000].begin);
    area->references = 7;
    for (std::size_t i = 100; i < 4000; i += 10)
        rows.free(i);
    watch->synchronise(later);
    EXPECT_EQ(watch->find(rows.rows[2000].begin), area);
    EXPECT_FALSE(area->is_armable(area->granule_of(align_up(rows.rows[2300].begin, page_bytes()))));
    for (std::size_t i = 500; i < 3500; ++i)
        if (!rows.rows[i].empty()) rows.free(i);
    EXPECT_TRUE(watch->synchronise(2 * later));
    EXPECT_EQ(watch->find(rows.rows[2000].begin), nullptr);
    EXPECT_NE(watch->find(rows.rows[4000].begin), nullptr);
}

TEST_F(WatchTest, AHundredThousandSmallBlocksAreWorkForTheirMemoryOnly) {
    const SmallRows rows(100'000, 8192);
    const std::uint64_t before = block_cover().looked_at();
    watch->synchronise(0);
    const std::uint64_t cells = 100'000 * (8192 + 16) / BlockCover::cell_bytes;
    EXPECT_LE(block_cover().looked_at() - before, 2 * cells) << "at 1 ns or so a cell";
    const std::uint64_t known = block_cover().looked_at();
    for (int iteration = 0; iteration < 100; ++iteration)
        watch->synchronise(iteration);
    EXPECT_EQ(block_cover().looked_at(), known);
}

/// A temporary of one place, at an address of the test's choice.
class Temporaries {
  public:
    Temporaries() {
        memory_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    ~Temporaries() { ::munmap(memory_, bytes); }
    Temporaries(const Temporaries&) = delete;
    Temporaries& operator=(const Temporaries&) = delete;
    Address allocate(std::size_t page, std::size_t size, Address place) const {
        const Address begin = reinterpret_cast<Address>(memory_) + page * page_bytes() + 16;
        const Address origin[max_origin_frames] = {place};
        area_registry().note({begin, begin + size}, AreaKind::heap_block, origin, 1, nullptr);
        return begin;
    }

  private:
    static constexpr std::size_t bytes = std::size_t{16} << 20;
    void* memory_;
};

TEST_F(WatchTest, ATemporaryThatIsAllocatedAnewIsTheSameArea) {
    constexpr std::size_t size = std::size_t{1} << 20;
    const Temporaries memory;
    const Address first = memory.allocate(0, size, 0x51);
    watch->synchronise(0);
    WatchedArea* area = watch->find(first + page_bytes());
    ASSERT_NE(area, nullptr);
    const std::uint32_t id = area->id;
    area->references = 7;
    area->seen = true;
    area_registry().end(first);
    watch->synchronise(1);
    EXPECT_EQ(watch->find(first + page_bytes()), nullptr);

    const Address second = memory.allocate(1000, size, 0x51);
    const Address other = memory.allocate(2000, size, 0x52);
    const Address longer = memory.allocate(3000, size + 16, 0x51);
    watch->synchronise(2);
    area = watch->find(second + page_bytes());
    ASSERT_NE(area, nullptr);
    EXPECT_EQ(area->id, id);
    EXPECT_EQ(area->references, 7u);
    EXPECT_FALSE(area->seen) << "its pages are others";
    EXPECT_TRUE(area->is_armable(10));
    ASSERT_EQ(watch->returned().size(), 1u);
    EXPECT_EQ(watch->returned()[0], area);
    EXPECT_NE(watch->find(other + page_bytes())->id, id);
    EXPECT_NE(watch->find(longer + page_bytes())->id, id);
    EXPECT_FALSE(watch->synchronise(3));
    EXPECT_TRUE(watch->returned().empty());
    for (const Address block : {second, other, longer})
        area_registry().end(block);
}

TEST_F(WatchTest, TemporariesOfOnePlaceComeBackInTheirOrder) {
    constexpr std::size_t size = std::size_t{1} << 20;
    const Temporaries memory;
    std::vector<Address> blocks;
    for (std::size_t i = 0; i < 4; ++i)
        blocks.push_back(memory.allocate(300 * i, size, 0x51));
    watch->synchronise(0);
    std::vector<std::uint32_t> ids;
    for (const Address block : blocks)
        ids.push_back(watch->find(block + page_bytes())->id);
    for (int step = 1; step < 10; ++step) {
        // Freed and allocated anew between two looks, or freed before one; and from the last address on.
        for (const Address block : blocks)
            area_registry().end(block);
        if (step % 2) watch->synchronise(step);
        for (std::size_t i = 0; i < 4; ++i)
            blocks[i] = memory.allocate(300 * (3 - i), size, 0x51);
        watch->synchronise(step);
        for (std::size_t i = 0; i < 4; ++i)
            EXPECT_EQ(watch->find(blocks[i] + page_bytes())->id, ids[i]) << step;
        EXPECT_EQ(watch->returned().size(), 4u);
    }
    for (const Address block : blocks)
        area_registry().end(block);
}

TEST(LeftOut, WhatTheUserLeavesOutIsNamed) {
    ::setenv("HOMING_AREAS", "exclude=heap@*,include=no_such_array", 1);
    ::setenv("HOMING_AREA_MINIMUM", "2M", 1);
    Machine machine;
    const NodeMap nodes(machine.targets());
    WatchList watch(nodes, 1);
    ::unsetenv("HOMING_AREAS");
    ::unsetenv("HOMING_AREA_MINIMUM");
    const std::size_t mib = std::size_t{1} << 20;
    const Rows small(3, 1 * mib, 2 * mib);
    const Rows large(2, 4 * mib, 5 * mib);
    watch.synchronise(0);
    EXPECT_EQ(watch.find(large.rows[0].begin + page_bytes()), nullptr);
    std::size_t below = 0, excluded = 0;
    for (const LeftOut& left : watch.left_out()) {
        if (left.reason.starts_with("below --area-minimum: heap@")) below += left.range.bytes();
        if (left.reason.starts_with("left out by --areas: heap@")) excluded += left.range.bytes();
    }
    EXPECT_EQ(below, 3 * mib);
    EXPECT_EQ(excluded, 8 * mib);
    ASSERT_EQ(watch.rules().size(), 2u);
    EXPECT_TRUE(watch.rules()[0].matched);
    EXPECT_FALSE(watch.rules()[1].matched);
    EXPECT_EQ(watch.rules()[1].text(), "include=no_such_array");
}

} // namespace
} // namespace homing::watch_tests
