// The areas that are watched, over real memory.
#include "mechanisms/watch.hpp"

#include <gtest/gtest.h>
#include <optional>
#include <sys/mman.h>

namespace homing {
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
        nodes_.emplace(machine);
        watch.emplace(*nodes_, 1);
    }
    WatchedArea* area_of(const Rows& rows) { return watch->find(rows.rows[0].begin + page_bytes()); }

  private:
    std::optional<NodeMap> nodes_;

  protected:
    std::optional<WatchList> watch;
};

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

TEST(LeftOut, WhatTheUserLeavesOutIsNamed) {
    ::setenv("HOMING_AREAS", "exclude=heap@*,include=no_such_array", 1);
    ::setenv("HOMING_AREA_MINIMUM", "2M", 1);
    Machine machine;
    const NodeMap nodes(machine);
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
} // namespace homing
