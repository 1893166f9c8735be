// homing's own memory, against what every allocator promises.
#include "base/arena.hpp"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace homing::arena_tests {
namespace {

struct Block {
    std::size_t bytes;
    unsigned char fill;
};

bool holds(const void* block, const Block& wanted) {
    const auto* bytes = static_cast<const unsigned char*>(block);
    return std::all_of(bytes, bytes + wanted.bytes, [&](unsigned char byte) { return byte == wanted.fill; });
}

RC_GTEST_PROP(Arena, BlocksKeepWhatIsWrittenAreAlignedAndDoNotOverlap, ()) {
    const auto arena = std::make_unique<Arena>();
    std::map<char*, Block> live;
    const auto steps = *rc::gen::inRange(1, 300);
    for (int step = 0; step < steps; ++step) {
        if (!live.empty() && *rc::gen::inRange(0, 5) < 2) {
            auto one = live.begin();
            std::advance(one, *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(live.size())));
            RC_ASSERT(holds(one->first, one->second));
            arena->free(one->first);
            live.erase(one);
            continue;
        }
        const std::size_t most = std::size_t{1} << *rc::gen::inRange(0, 22);
        const auto bytes = *rc::gen::inRange<std::size_t>(0, most);
        const std::size_t alignment = std::size_t{1} << *rc::gen::inRange(0, 14);
        auto* block = static_cast<char*>(arena->allocate(bytes, alignment));
        RC_ASSERT(block != nullptr);
        RC_ASSERT(reinterpret_cast<std::uintptr_t>(block) % std::max<std::size_t>(alignment, 16) == 0u);
        RC_ASSERT(arena->owns(block));
        RC_ASSERT(Arena::usable_size(block) >= bytes);
        const auto behind = live.lower_bound(block);
        RC_ASSERT(behind == live.end() || block + bytes <= behind->first);
        if (behind != live.begin()) {
            const auto before = std::prev(behind);
            RC_ASSERT(before->first + before->second.bytes <= block);
        }
        // All that may be held is written, not only what was asked for.
        const Block written{Arena::usable_size(block), static_cast<unsigned char>(step)};
        std::memset(block, written.fill, written.bytes);
        live[block] = written;
    }
    for (const auto& [block, wanted] : live)
        RC_ASSERT(holds(block, wanted));
}

RC_GTEST_PROP(Arena, ABlockWastesAtMostAQuarterAndItsHeader, ()) {
    Arena arena;
    const auto bytes = *rc::gen::inRange<std::size_t>(1, std::size_t{1} << *rc::gen::inRange(1, 26));
    const std::size_t usable = Arena::usable_size(arena.allocate(bytes));
    RC_ASSERT(usable >= bytes);
    RC_ASSERT(usable + 16 <= std::max<std::size_t>((bytes + 16) * 5 / 4 + 1, bytes + 31));
}

TEST(Arena, WhatIsFreedIsUsedAgain) {
    Arena arena;
    void* first = arena.allocate(1000);
    arena.free(first);
    EXPECT_EQ(arena.allocate(990), first);
    void* last = nullptr;
    for (int i = 0; i < 1000; ++i) {
        void* large = arena.allocate(std::size_t{8} << 20);
        ASSERT_NE(large, nullptr);
        EXPECT_TRUE(last == nullptr || last == large);
        last = large;
        arena.free(large);
    }
}

TEST(Arena, PagesOfLargeBlocksGoBackWhenTheyAreFreed) {
    Arena arena;
    constexpr std::size_t bytes = std::size_t{4} << 20;
    auto* block = static_cast<char*>(arena.allocate(bytes));
    std::memset(block, 1, bytes);
    arena.free(block);
    ASSERT_EQ(arena.allocate(bytes), block);
    EXPECT_EQ(block[bytes / 2], 0);
}

TEST(Arena, KnowsItsOwn) {
    Arena arena;
    Arena other;
    int on_stack = 0;
    EXPECT_FALSE(arena.owns(nullptr));
    void* block = arena.allocate(10);
    void* elsewhere = other.allocate(10);
    EXPECT_TRUE(arena.owns(block));
    EXPECT_FALSE(arena.owns(elsewhere));
    EXPECT_FALSE(arena.owns(&on_stack));
    EXPECT_FALSE(arena.owns(nullptr));
}

TEST(Arena, AbsurdRequestsAreRefused) {
    Arena arena;
    EXPECT_EQ(arena.allocate(SIZE_MAX), nullptr);
    EXPECT_EQ(arena.allocate(SIZE_MAX - 15, 64), nullptr);
    EXPECT_EQ(arena.allocate(std::size_t{1} << 47), nullptr);
    EXPECT_EQ(arena.allocate(16, std::size_t{1} << 47), nullptr);
    EXPECT_NE(arena.allocate(16), nullptr);
}

TEST(Arena, RefusesWhereTheKernelGivesNothingAndWorksOn) {
    const pid_t child = ::fork();
    if (child == 0) {
        Arena arena;
        void* small = arena.allocate(100);
        const rlimit none{1, 1};
        ::setrlimit(RLIMIT_AS, &none);
        const bool refused = small && arena.allocate(std::size_t{64} << 20) == nullptr;
        const bool works = arena.allocate(100) != nullptr;
        ::_exit(refused && works ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(Arena, ThreadsAllocateAndFreeEachOthersBlocks) {
    Arena arena;
    constexpr int threads = 4;
    constexpr std::size_t each = 3000;
    std::vector<std::vector<std::uint64_t*>> made(threads);
    const auto run = [](const auto& work) {
        std::vector<std::thread> team;
        for (int thread = 0; thread < threads; ++thread)
            team.emplace_back(work, thread);
        for (std::thread& one : team)
            one.join();
    };
    for (int round = 0; round < 3; ++round) {
        run([&](int thread) {
            for (std::size_t i = 0; i < each; ++i) {
                auto* block = static_cast<std::uint64_t*>(arena.allocate(8 + i % 500));
                *block = static_cast<std::uint64_t>(thread) << 32 | i;
                made[static_cast<std::size_t>(thread)].push_back(block);
            }
        });
        run([&](int thread) {
            const auto from = static_cast<std::size_t>((thread + 1) % threads);
            for (std::size_t i = 0; i < each; ++i) {
                EXPECT_EQ(*made[from][i], std::uint64_t{from} << 32 | i);
                arena.free(made[from][i]);
            }
            made[from].clear();
        });
    }
}

} // namespace
} // namespace homing::arena_tests
