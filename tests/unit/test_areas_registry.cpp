#include "areas/areas.hpp"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <map>
#include <rapidcheck.h>
#include <thread>

namespace homing::areas_registry_tests {
namespace {

/// The registry is one for the process: each test leaves it empty.
class Registry : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(registry.live(), 0u); }
    void TearDown() override {
        std::vector<AreaEntry> rest;
        do {
            registry.snapshot(rest);
            for (const AreaEntry& entry : rest)
                registry.end(entry.range.begin);
        } while (!rest.empty());
        EXPECT_EQ(registry.live(), 0u);
    }
    std::vector<AreaEntry> snapshot() const {
        std::vector<AreaEntry> entries;
        registry.snapshot(entries);
        return entries;
    }
    AreaRegistry& registry = area_registry();
};

TEST_F(Registry, RemembersABlockUntilItsEnd) {
    const Address origin[] = {0x401000, 0x402000};
    const auto changes = registry.changes();
    EXPECT_TRUE(registry.note({0x100010, 0x200010}, AreaKind::heap_block, origin, 2, nullptr));
    EXPECT_TRUE(registry.note({0x300000, 0x310000}, AreaKind::named, nullptr, 0, "x"));
    EXPECT_NE(registry.changes(), changes);
    EXPECT_TRUE(registry.knows(0x100010));
    EXPECT_FALSE(registry.knows(0x100020));

    const auto entries = snapshot();
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].range.begin, 0x100010u);
    EXPECT_EQ(entries[0].range.end, 0x200010u);
    EXPECT_EQ(entries[0].origin[1], 0x402000u);
    EXPECT_EQ(entries[0].origin[2], 0u);
    EXPECT_EQ(entries[1].kind, AreaKind::named);
    EXPECT_STREQ(entries[1].name, "x");

    EXPECT_EQ(registry.end(0x100010).bytes(), 0x100000u);
    EXPECT_FALSE(registry.knows(0x100010));
    EXPECT_TRUE(registry.end(0x100010).empty()) << "a second end knows nothing";
    EXPECT_EQ(registry.live(), 1u);
}

TEST_F(Registry, AnAddressUsedAgainHasANewGeneration) {
    registry.note({0x10000, 0x20000}, AreaKind::heap_block, nullptr, 0, nullptr);
    const auto first = snapshot().at(0).generation;
    registry.end(0x10000);
    registry.note({0x10000, 0x20000}, AreaKind::heap_block, nullptr, 0, nullptr);
    EXPECT_NE(snapshot().at(0).generation, first);
    // And so does one whose end was missed.
    const auto second = snapshot().at(0).generation;
    registry.note({0x10000, 0x18000}, AreaKind::heap_block, nullptr, 0, nullptr);
    ASSERT_EQ(snapshot().size(), 1u);
    EXPECT_NE(snapshot().at(0).generation, second);
    EXPECT_EQ(snapshot().at(0).range.end, 0x18000u);
    EXPECT_EQ(registry.live(), 1u);
}

TEST_F(Registry, OfOverlappingEntriesTheNewerCounts) {
    registry.note({0x10000, 0x20000}, AreaKind::heap_block, nullptr, 0, "old");
    registry.note({0x18000, 0x28000}, AreaKind::heap_block, nullptr, 0, "new");
    registry.note({0x40000, 0x50000}, AreaKind::heap_block, nullptr, 0, "other");
    registry.note({0x3f000, 0x48000}, AreaKind::heap_block, nullptr, 0, "newest");
    const auto entries = snapshot();
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_STREQ(entries[0].name, "new");
    EXPECT_STREQ(entries[1].name, "newest");
}

TEST_F(Registry, RefusesWhatIsNoBlock) {
    EXPECT_FALSE(registry.note({0, 0x1000}, AreaKind::heap_block, nullptr, 0, nullptr));
    EXPECT_FALSE(registry.note({0x2000, 0x2000}, AreaKind::heap_block, nullptr, 0, nullptr));
    for (Address address : {0, 1, 2}) {
        EXPECT_TRUE(registry.end(address).empty());
        EXPECT_FALSE(registry.knows(address));
    }
}

TEST_F(Registry, CountsWhatDoesNotFit) {
    const auto dropped = registry.dropped();
    std::size_t noted = 0;
    for (std::size_t i = 0; i < AreaRegistry::capacity + 1000; ++i) {
        const Address begin = 0x7f0000000010 + i * 0x40000;
        noted += registry.note({begin, begin + 0x20000}, AreaKind::heap_block, nullptr, 0, nullptr);
    }
    EXPECT_LE(noted, AreaRegistry::capacity);
    EXPECT_GT(noted, AreaRegistry::capacity / 2);
    EXPECT_EQ(registry.dropped() - dropped, AreaRegistry::capacity + 1000 - noted);
    EXPECT_EQ(registry.live(), noted);
    EXPECT_EQ(snapshot().size(), noted);
}

TEST_F(Registry, BehavesAsAMap) {
    EXPECT_TRUE(rc::check("note and end against std::map", [this] {
        std::map<Address, Address> model;
        const auto steps = *rc::gen::container<std::vector<std::pair<int, bool>>>(
            rc::gen::pair(rc::gen::inRange(1, 60), rc::gen::arbitrary<bool>()));
        for (const auto& [block, begins] : steps) {
            const Address start = 0x100000 + static_cast<Address>(block) * 0x40000;
            if (begins) {
                const Address end = start + 0x1000 + model.size();
                RC_ASSERT(registry.note({start, end}, AreaKind::heap_block, nullptr, 0, nullptr));
                model[start] = end;
            } else {
                const Range ended = registry.end(start);
                const auto known = model.find(start);
                RC_ASSERT(ended.end == (known == model.end() ? 0 : known->second));
                model.erase(start);
            }
        }
        const auto entries = snapshot();
        RC_ASSERT(entries.size() == model.size());
        RC_ASSERT(registry.live() == model.size());
        auto expected = model.begin();
        for (const AreaEntry& entry : entries) {
            RC_ASSERT(entry.range.begin == expected->first);
            RC_ASSERT(entry.range.end == expected->second);
            ++expected;
        }
        for (const auto& [start, end] : model)
            registry.end(start);
    }));
}

/// Long churn over many addresses must not fill the table with tombstones.
TEST_F(Registry, ChurnDoesNotFillTheTable) {
    const auto dropped = registry.dropped();
    for (std::size_t i = 0; i < 4 * AreaRegistry::capacity; ++i) {
        const Address begin = 0x10000 + i * 0x21000;
        ASSERT_TRUE(registry.note({begin, begin + 0x20000}, AreaKind::heap_block, nullptr, 0, nullptr));
        ASSERT_FALSE(registry.end(begin).empty());
    }
    EXPECT_EQ(registry.dropped(), dropped);
    EXPECT_EQ(registry.live(), 0u);
}

/// Many threads add and remove; a reader must never see a mixture of two blocks.
TEST_F(Registry, SurvivesManyThreads) {
    constexpr int writers = 6;
    constexpr int rounds = 4000;
    std::atomic<int> running{writers};
    std::atomic<int> lost{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < writers; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < rounds; ++i) {
                // Threads share the neighbourhood, not the blocks. All of a block's fields tell one story.
                const Address start =
                    0x1000000 + static_cast<Address>(i % 97) * 0x1000000 + static_cast<Address>(t) * 0x100000;
                const Address bytes = 0x1000 + static_cast<Address>(i % 13) * 16;
                const Address origin[] = {start + bytes, start ^ bytes};
                if (!registry.note({start, start + bytes}, AreaKind::heap_block, origin, 2, nullptr)) ++lost;
                if (i % 3 != 0 && registry.end(start).bytes() != bytes) ++lost;
            }
            --running;
        });
    }
    int snapshots = 0;
    do {
        for (const AreaEntry& entry : snapshot()) {
            ASSERT_EQ(entry.origin[0], entry.range.end);
            ASSERT_EQ(entry.origin[1], entry.range.begin ^ entry.range.bytes());
        }
        ++snapshots;
    } while (running > 0);
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_GT(snapshots, 0);
    EXPECT_EQ(lost, 0);
    EXPECT_EQ(snapshot().size(), registry.live());
}

} // namespace
} // namespace homing::areas_registry_tests
