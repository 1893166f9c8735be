// What the survey finds out about real memory: which parts of it exist, and whether it lies on huge pages.
#include "areas/survey.hpp"

#include "base/running_time.hpp"

#include "failing.hpp"
#include "machines.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace homing::survey_tests {
namespace {

/// Memory that is a heap block to the engine.
class Block {
  public:
    explicit Block(std::size_t bytes)
        : bytes_(bytes), memory_(static_cast<char*>(std::aligned_alloc(huge_page_bytes, bytes))) {
        ::madvise(memory_, bytes, MADV_DONTNEED);
        const Address origin[max_origin_frames] = {0x4321};
        area_registry().note(range_of(memory_, bytes), AreaKind::heap_block, origin, 1, nullptr);
    }
    ~Block() {
        area_registry().end(reinterpret_cast<Address>(memory_));
        std::free(memory_);
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    void use(std::size_t first, std::size_t end) {
        for (std::size_t at = first; at < end; at += page_bytes())
            static_cast<volatile char*>(memory_)[at] = 1;
    }
    char* memory() const { return memory_; }
    std::size_t bytes() const { return bytes_; }

  private:
    std::size_t bytes_;
    char* memory_;
};

class SurveyTest : public ::testing::Test {
  protected:
    WatchedArea& area_of(const Block& block) {
        watch.synchronise(0);
        return *watch.find(reinterpret_cast<Address>(block.memory() + block.bytes() / 2));
    }

  private:
    NodeMap nodes_{machine_of(2).targets()};

  protected:
    WatchList watch{nodes_, 1};
    Survey survey{linux_kernel(), 7};
};

TEST_F(SurveyTest, AnAreaIsSeenOnceSomethingOfItExists) {
    Block block(std::size_t{64} << 20);
    ::madvise(block.memory(), block.bytes(), MADV_NOHUGEPAGE);
    WatchedArea& area = area_of(block);
    survey.look_at_all(watch);
    EXPECT_FALSE(area.seen);
    block.use(0, 256 * page_bytes());
    survey.look_at_all(watch);
    ASSERT_TRUE(area.seen);
    EXPECT_TRUE(area.in_part);
    EXPECT_NEAR(static_cast<double>(area.there().size()), 256, 32);
    EXPECT_TRUE(area.there().contains(128));
    EXPECT_NEAR(static_cast<double>(area.used_bytes()), 256.0 * page_bytes(), 32.0 * page_bytes());
    std::vector<std::uint64_t> granules = {3, 200, 5000, 9000};
    survey.keep_existing(area, granules);
    EXPECT_EQ(granules, (std::vector<std::uint64_t>{3, 200}));
}

TEST_F(SurveyTest, GranulesAreChosenAnewWhereMoreOfAnAreaHasComeToExist) {
    Block block(std::size_t{64} << 20);
    ::madvise(block.memory(), block.bytes(), MADV_NOHUGEPAGE);
    WatchedArea& area = area_of(block);
    block.use(0, page_bytes());
    survey.look_at_all(watch);
    ASSERT_TRUE(area.seen && area.in_part);
    area.chosen = true;
    const auto looks_until_more = [&] {
        for (int i = 0; i < 1000; ++i) {
            if (survey.look(watch)) return true;
            ::usleep(10'000);
        }
        return false;
    };
    block.use(0, block.bytes());
    ASSERT_TRUE(looks_until_more());
    EXPECT_FALSE(area.chosen);
}

TEST_F(SurveyTest, OfAnAreaOfWhichEverySixteenthPageExistsOnlyThoseAreKept) {
    Block block(std::size_t{256} << 20);
    ::madvise(block.memory(), block.bytes(), MADV_NOHUGEPAGE);
    const std::size_t apart = 16 * page_bytes();
    for (std::size_t at = 0; at < block.bytes(); at += apart)
        block.use(at, at + page_bytes());
    WatchedArea& area = area_of(block);
    survey.look_at_all(watch);
    ASSERT_TRUE(area.seen);
    EXPECT_TRUE(area.in_part);
    EXPECT_NEAR(static_cast<double>(area.used_bytes()), static_cast<double>(block.bytes()) / 16,
                static_cast<double>(block.bytes()) / 8);
    std::vector<std::uint64_t> granules = {0, 7, 1600, 1601, 40000, 40008};
    survey.keep_existing(area, granules);
    EXPECT_EQ(granules, (std::vector<std::uint64_t>{0, 1600, 40000}));
}

TEST_F(SurveyTest, WhatExistsAsAWholeIsNotLookedAtInParts) {
    Block block(std::size_t{8} << 20);
    ::madvise(block.memory(), block.bytes(), MADV_NOHUGEPAGE);
    block.use(0, block.bytes());
    WatchedArea& area = area_of(block);
    survey.look_at_all(watch);
    EXPECT_TRUE(area.seen);
    EXPECT_FALSE(area.in_part);
    EXPECT_EQ(area.there().size(), area.granules);
}

TEST_F(SurveyTest, MemoryThatCameToLieOnHugePagesHasTheirGranule) {
    Block block(std::size_t{16} << 20);
    if (::madvise(block.memory(), block.bytes(), MADV_HUGEPAGE) != 0) GTEST_SKIP() << "no huge pages here";
    WatchedArea& area = area_of(block); // found before the program initialises it, in parallel
    EXPECT_EQ(area.granule, page_bytes());
    survey.look_at_all(watch);
    EXPECT_EQ(area.granule, page_bytes());
    area.learnt.fresh.push_back({1000, 0});
    block.use(0, block.bytes());
    if (!holds_huge_pages(area.range)) GTEST_SKIP() << "the kernel gave no huge pages";
    survey.look_at_all(watch);
    EXPECT_EQ(area.granule, huge_page_bytes);
    EXPECT_EQ(area.granules, 8u);
    EXPECT_TRUE(area.is_armable(0));
    EXPECT_TRUE(area.learnt.fresh.empty()) << "what was counted by small pages means nothing now";
    EXPECT_EQ(area.there().size(), 8u);
}

/// A program initialises its arrays one after the other: each exists in part when it is looked at first.
TEST_F(SurveyTest, PageFaultsAskForAnotherLookAtAreasThatExistInPart) {
    std::vector<std::unique_ptr<Block>> blocks;
    for (int i = 0; i < 6; ++i) {
        blocks.push_back(std::make_unique<Block>(std::size_t{8} << 20));
        ::madvise(blocks.back()->memory(), blocks.back()->bytes(), MADV_NOHUGEPAGE);
        blocks.back()->use(0, 2 * page_bytes());
        area_of(*blocks.back());
    }
    FailingKernel kernel(linux_kernel());
    bool is_slow = false;
    kernel.before([&](KernelCall call) {
        const double begin = thread_seconds();
        while (is_slow && call == KernelCall::query && thread_seconds() < begin + 0.2) {
        }
    });
    Survey late(kernel, 7);
    late.look_at_all(watch);
    for (const auto& area : watch.areas())
        area->seen = true; // static arrays of this program
    is_slow = true;
    late.look(watch); // in vain, and it took long: by time alone the next one is after a minute
    is_slow = false;
    for (const auto& block : blocks)
        block->use(0, block->bytes());
    const auto whole = [&] {
        return std::ranges::all_of(blocks, [&](const auto& block) { return !area_of(*block).in_part; });
    };
    const auto begin = std::chrono::steady_clock::now();
    while (!whole() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        late.look(watch);
    }
    EXPECT_TRUE(whole());
    for (const auto& block : blocks)
        EXPECT_EQ(area_of(*block).there().size(), area_of(*block).granules);
}

TEST_F(SurveyTest, AThreadThatWasPutAsideWhileItLookedLooksAgainSoon) {
    Block block(std::size_t{4} << 20);
    area_of(block);
    FailingKernel kernel(linux_kernel());
    int looks = 0;
    kernel.before([&](KernelCall) {
        ++looks;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    });
    Survey slow(kernel, 7);
    slow.look(watch);
    const int first = looks;
    ASSERT_GT(first, 0);
    for (int tries = 0; looks == first && tries < 50; ++tries) { // by the time that it took: 40 seconds
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        slow.look(watch);
    }
    EXPECT_GT(looks, first);
}

} // namespace
} // namespace homing::survey_tests
