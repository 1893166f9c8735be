// Memory that the program maps itself, as hooks log it.
#include "areas/mapped.hpp"

#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <rapidcheck.h>
#include <sys/mman.h>
#include <thread>

namespace homing::areas_mapped_tests {
namespace {

using Event = MappingLog::Event;
using Owner = MappingLog::Owner;

constexpr Address base = Address{1} << 40;
constexpr std::size_t mib = std::size_t{1} << 20;

class Mapped : public ::testing::Test {
  protected:
    void log(Event event, Range range, Address from = 0, Owner owner = Owner::program) {
        MappingLog::Entry entry;
        entry.range = range;
        entry.event = event;
        entry.from = from;
        entry.owner = owner;
        entry.origin[0] = event == Event::mapped ? range.begin + 1 : 0;
        ASSERT_TRUE(events->add(entry));
    }
    std::vector<AreaEntry> areas(const std::vector<AreaEntry>& others = {}) {
        memory.follow();
        return memory.areas(others, mib);
    }
    std::unique_ptr<MappingLog> events = std::make_unique<MappingLog>();
    MappedMemory memory{*events};
};

TEST_F(Mapped, AHoleThatIsUnmappedLeavesTwoPiecesOfOneMapping) {
    log(Event::mapped, {base, base + 8 * mib});
    EXPECT_TRUE(memory.has_changed());
    log(Event::gone, {base + 2 * mib, base + 3 * mib});
    const auto pieces = areas();
    EXPECT_FALSE(memory.has_changed());
    ASSERT_EQ(pieces.size(), 2u);
    EXPECT_EQ(pieces[0].range.end, base + 2 * mib);
    EXPECT_EQ(pieces[1].range.begin, base + 3 * mib);
    EXPECT_EQ(pieces[0].generation, pieces[1].generation);
    EXPECT_EQ(pieces[1].origin[0], base + 1);
    EXPECT_EQ(pieces[0].kind, AreaKind::mapping);
}

TEST_F(Mapped, WhatMovesKeepsThePlaceThatMappedIt) {
    log(Event::mapped, {base, base + 2 * mib});
    log(Event::gone, {base, base + 2 * mib});
    EXPECT_TRUE(areas().empty());
    log(Event::moved, {base + 16 * mib, base + 20 * mib}, base);
    const auto pieces = areas();
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].range.bytes(), 4 * mib);
    EXPECT_EQ(pieces[0].origin[0], base + 1);
    log(Event::moved, {base + 32 * mib, base + 36 * mib}, base + 64 * mib);
    EXPECT_EQ(areas().size(), 1u) << "of what was never mapped nothing is known";
}

TEST_F(Mapped, BlocksOfTheHeapAreNotTheMappings) {
    log(Event::mapped, {base, base + 8 * mib}, 0, Owner::hooked);
    AreaEntry block;
    block.range = {base + 2 * mib + 16, base + 4 * mib - 16};
    AreaEntry next = block;
    next.range = {base + 4 * mib + 16, base + 9 * mib};
    const auto pieces = areas({block, next});
    ASSERT_EQ(pieces.size(), 1u) << "what lies between the two is too small";
    EXPECT_EQ(pieces[0].range.end, base + 2 * mib);
    EXPECT_EQ(memory.owner(base), Owner::hooked);
    EXPECT_FALSE(memory.owner(base + 8 * mib));
}

TEST_F(Mapped, WhatWentByAnEntryThatHadNoRoomIsForgottenEvenWhereSomethingIsMapped) {
    // As if a thread's stack, which no hook sees mapped, were there by now.
    void* const real = ::mmap(nullptr, 4 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const Range kept = range_of(real, 2 * mib);
    const Range gone = {kept.end, kept.end + 2 * mib};
    MappingLog::Entry entry;
    for (int time = 0; time < 2; ++time) {
        log(Event::mapped, kept);
        entry.event = Event::gone;
        entry.range = {base + 64 * mib, base + 65 * mib};
        for (std::size_t i = 2; i < MappingLog::capacity; ++i)
            ASSERT_TRUE(events->add(entry));
        log(Event::mapped, gone);
        entry.range = gone;
        EXPECT_FALSE(events->add(entry)) << "it has no room";
        entry.event = Event::mapped;
        entry.range = kept;
        EXPECT_FALSE(events->add(entry)) << "what comes there does not make what is there doubtful";
        EXPECT_TRUE(memory.has_changed());
        const auto pieces = areas();
        ASSERT_EQ(pieces.size(), 1u);
        EXPECT_EQ(pieces[0].range.begin, kept.begin);
        EXPECT_EQ(pieces[0].range.end, kept.end);
        EXPECT_FALSE(memory.has_changed());
        EXPECT_FALSE(memory.owner(gone.begin));
    }
    log(Event::mapped, gone);
    EXPECT_EQ(areas().size(), 2u) << "what is mapped since is known again";
    ::munmap(real, 4 * mib);
}

TEST_F(Mapped, TheLogTellsThatItFillsBeforeItIsFull) {
    MappingLog::Entry entry;
    entry.range = {base, base + mib};
    std::size_t added = 0;
    for (; !events->is_filling(); ++added)
        ASSERT_TRUE(events->add(entry));
    EXPECT_LE(added, MappingLog::capacity / 2);
    memory.follow();
    EXPECT_FALSE(events->is_filling());
}

TEST_F(Mapped, EntriesOfAllThreadsAreTaken) {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            MappingLog::Entry entry;
            entry.event = Event::mapped;
            for (std::size_t i = 0; i < 100; ++i) {
                const Address at = base + (4 * i + t) * 2 * mib;
                entry.range = {at, at + mib};
                events->add(entry);
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(areas().size(), 400u);
}

/// Against pages one by one.
TEST(MappedProperty, AreasAreThePagesThatAreMapped) {
    EXPECT_TRUE(rc::check("maps and unmaps at random", [] {
        auto events = std::make_unique<MappingLog>();
        MappedMemory memory(*events);
        std::map<Address, std::uint64_t> pages;
        const auto steps = *rc::gen::inRange(1, 60);
        for (int step = 0; step < steps; ++step) {
            const Address first = base + *rc::gen::inRange<std::size_t>(0, 64) * page_bytes();
            const Address end = first + *rc::gen::inRange<std::size_t>(1, 32) * page_bytes();
            MappingLog::Entry entry;
            entry.range = {first, end};
            entry.event = *rc::gen::arbitrary<bool>() ? Event::mapped : Event::gone;
            RC_ASSERT(events->add(entry));
            for (Address page = first; page < end; page += page_bytes())
                entry.event == Event::mapped ? void(pages[page] = 1) : void(pages.erase(page));
            if (*rc::gen::inRange(0, 4) == 0) memory.follow();
        }
        memory.follow();
        std::size_t bytes = 0;
        Address behind = 0;
        for (const AreaEntry& area : memory.areas({}, page_bytes())) {
            RC_ASSERT(area.range.begin >= behind);
            behind = area.range.end;
            bytes += area.range.bytes();
            for (Address page = area.range.begin; page < area.range.end; page += page_bytes())
                RC_ASSERT(pages.contains(page));
        }
        RC_ASSERT(bytes == pages.size() * page_bytes());
    }));
}

} // namespace
} // namespace homing::areas_mapped_tests
