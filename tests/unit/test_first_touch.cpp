// Who touched memory first: pieces of memory from samples, and samples from rings of perf.
#include "failing.hpp"
#include "first_touch/fault_samples.hpp"
#include "first_touch/touched_extents.hpp"
#include "kernel/simulated.hpp"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

namespace homing {
namespace {

constexpr Address base = Address{1} << 40;
constexpr Address mib = Address{1} << 20;

TEST(TouchedExtents, SamplesOfOneLoopAndThreadAreOnePiece) {
    TouchedExtents touched({});
    for (Address at = 0; at < 8 * mib; at += 61 * page_bytes())
        touched.add(base + at, 100, 7, 2, 1e-3 * static_cast<double>(at), 61);
    const auto pieces = touched.extents();
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].range.begin, base);
    EXPECT_EQ(pieces[0].samples, (8 * mib / page_bytes() + 60) / 61);
    EXPECT_EQ(pieces[0].faults, 61 * pieces[0].samples);
    EXPECT_EQ(pieces[0].thread, 7);
    EXPECT_EQ(pieces[0].node, 2);
    EXPECT_EQ(pieces[0].first, 0);
}

TEST(TouchedExtents, OtherCodeOtherThreadsAndFarMemoryArePiecesOfTheirOwn) {
    TouchedExtents touched({});
    touched.add(base, 100, 7, 0, 0, 61);
    touched.add(base, 200, 7, 0, 0, 61);
    touched.add(base, 100, 8, 0, 0, 61);
    touched.add(base + 64 * mib, 100, 7, 0, 0, 61);
    EXPECT_EQ(touched.extents().size(), 4u);
}

TEST(TouchedExtents, AnyOrderGivesTheSamePieces) {
    EXPECT_TRUE(rc::check([] {
        std::vector<int> order(40);
        for (int i = 0; i < 40; ++i)
            order[static_cast<std::size_t>(i)] = i;
        const auto keys = *rc::gen::container<std::vector<int>>(order.size(), rc::gen::arbitrary<int>());
        std::ranges::stable_sort(order, {}, [&](int i) { return keys[static_cast<std::size_t>(i)]; });
        TouchedExtents touched({});
        for (const int i : order)
            touched.add(base + static_cast<Address>(i) * mib / 2, 1, 1, 0, 0, 1);
        const auto pieces = touched.extents();
        RC_ASSERT(pieces.size() == 1u);
        RC_ASSERT(pieces[0].samples == 40u);
        RC_ASSERT(pieces[0].range.begin == base);
        RC_ASSERT(pieces[0].range.end == base + 39 * mib / 2 + page_bytes());
    }));
}

TEST(TouchedExtents, AFaultLongAfterTheFirstOneIsTheBalancers) {
    TouchedExtents balanced({.huge = false, .hint_faults = true});
    balanced.add(base, 100, 7, 0, 1, 61);
    balanced.add(base + page_bytes(), 200, 8, 0, 3, 61); // a hint fault
    balanced.add(base + 8 * mib, 300, 7, 0, 4, 61);      // memory of its own
    EXPECT_EQ(balanced.extents().size(), 2u);
    TouchedExtents quiet({});
    quiet.add(base, 100, 7, 0, 1, 61);
    quiet.add(base + page_bytes(), 200, 8, 0, 3, 61);
    EXPECT_EQ(quiet.extents().size(), 2u);
}

TEST(TouchedExtents, TooManyPiecesAreCountedOnly) {
    TouchedExtents touched({});
    for (Address i = 0; i < TouchedExtents::most + 10; ++i)
        touched.add(base + 4 * mib * i, 100, 7, 0, 0, 61);
    EXPECT_EQ(touched.extents().size(), TouchedExtents::most);
    EXPECT_EQ(touched.left_out(), 610u);
}

/// A kernel whose rings are plain memory that the test writes.
class WrittenRings final : public FailingKernel {
  public:
    using FailingKernel::FailingKernel;
    ~WrittenRings() override { EXPECT_EQ(open, 0); }

    int open_sampler(const SamplerEvent& event, int, std::size_t pages, SamplerRing& ring) noexcept override {
        ring = {};
        SamplerRing unused;
        if (const int error = FailingKernel::open_sampler(event, 0, pages, unused); error && error != ENOENT)
            return error;
        ring.bytes = (1 + pages) * page_bytes();
        ring.map = ::mmap(nullptr, ring.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        auto* control = static_cast<perf_event_mmap_page*>(ring.map);
        control->data_offset = page_bytes();
        control->data_size = pages * page_bytes();
        events.push_back(event);
        rings.push_back(ring);
        ++open;
        return 0;
    }
    void close_sampler(SamplerRing& ring) noexcept override {
        --open;
        ::munmap(ring.map, ring.bytes);
        ring = {};
    }
    void put(std::size_t ring, const void* record, std::size_t bytes) {
        auto* control = static_cast<perf_event_mmap_page*>(rings[ring].map);
        std::memcpy(static_cast<char*>(rings[ring].map) + control->data_offset + control->data_head, record,
                    bytes);
        control->data_head += bytes;
    }
    void fault(std::size_t ring, Address address, std::uint64_t time, Address top = 0) {
        const std::uint64_t id = static_cast<std::uint32_t>(::getpid()) | 5ull << 32;
        const std::uint64_t words[] = {
            PERF_RECORD_SAMPLE | std::uint64_t{72} << 48, 4711, id, time, address, 1, 8, top, top ? 8u : 0u};
        static_assert(sizeof words == 72);
        put(ring, words, sizeof words);
    }
    void lost(std::size_t ring, std::uint64_t count) {
        const std::uint64_t words[] = {PERF_RECORD_LOST | std::uint64_t{24} << 48, 0, count};
        put(ring, words, sizeof words);
    }

    int open = 0;
    std::vector<SamplerEvent> events;
    std::vector<SamplerRing> rings;
};

struct FaultSamplesTest : ::testing::Test {
    SimulatedKernel simulated{{1024, 1024}};
    WrittenRings kernel{simulated};
    FaultSamples samples{kernel};
    static constexpr auto no_limit = ~std::uint64_t{0};

    std::vector<FaultSample> drained() {
        std::vector<FaultSample> seen;
        samples.drain(seen);
        return seen;
    }
};

TEST_F(FaultSamplesTest, AThreadHasAFineAndACoarseEventWhateverTheNumberOfOthers) {
    ASSERT_EQ(samples.open(false, no_limit, 0), 0);
    std::vector<FaultSamples::RingsOfThread*> threads;
    for (std::size_t i = 1; i <= 128; ++i) {
        EXPECT_EQ(kernel.events.size(), 2 * i);
        threads.push_back(samples.begin_thread(0));
        ASSERT_TRUE(threads.back());
    }
    EXPECT_EQ(kernel.events[2].period, FaultSamples::period);
    EXPECT_EQ(kernel.events[3].period, FaultSamples::period * FaultSamples::coarse);
    EXPECT_TRUE(kernel.events[3].exclude_kernel);
    for (FaultSamples::RingsOfThread* thread : threads)
        samples.end_thread(thread);
    EXPECT_EQ(kernel.open, 2) << "those of the first thread";
    EXPECT_EQ(samples.refused(), 0u);
}

TEST_F(FaultSamplesTest, SamplesOfAllThreadsComeInTheOrderOfTime) {
    ASSERT_EQ(samples.open(false, no_limit, 0), 0);
    ASSERT_TRUE(samples.begin_thread(0));
    kernel.fault(0, base, 300, 99);
    kernel.fault(2, base + mib, 200);
    kernel.fault(1, base, 300); // the coarse event saw it, too
    const std::vector<FaultSample> seen = drained();
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0].address, base + mib);
    EXPECT_EQ(seen[0].stack_top, 0u);
    EXPECT_EQ(seen[1].stack_top, 99u);
    EXPECT_EQ(seen[1].instruction, 4711u);
    EXPECT_EQ(seen[1].thread, 5);
    EXPECT_EQ(seen[1].stands_for, FaultSamples::period);
}

TEST_F(FaultSamplesTest, WhatAThreadTouchedIsKnownAfterItsEnd) {
    ASSERT_EQ(samples.open(false, no_limit, 0), 0);
    FaultSamples::RingsOfThread* const thread = samples.begin_thread(0);
    kernel.fault(2, base + mib, 200);
    kernel.fault(0, base, 100);
    samples.end_thread(thread);
    const std::vector<FaultSample> seen = drained();
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[1].address, base + mib);
    EXPECT_TRUE(drained().empty());
}

TEST_F(FaultSamplesTest, AThreadThatEndsAfterAllWasClosedOrAbandonedDoesNothing) {
    ASSERT_EQ(samples.open(false, no_limit, 0), 0);
    FaultSamples::RingsOfThread* const thread = samples.begin_thread(0);
    samples.close();
    samples.end_thread(thread);
    EXPECT_EQ(kernel.open, 0);
    ASSERT_EQ(samples.open(false, no_limit, 0), 0);
    FaultSamples::RingsOfThread* const other = samples.begin_thread(0);
    samples.abandon();
    samples.end_thread(other);
    EXPECT_EQ(kernel.open, 4) << "no system call";
    EXPECT_FALSE(samples.begin_thread(0));
}

TEST_F(FaultSamplesTest, RingsGetSmallerUntilTheBudgetIsUsedUp) {
    const std::uint64_t budget = 64 * page_bytes();
    ASSERT_EQ(samples.open(false, budget, 0), 0);
    const auto bytes = [this] {
        std::uint64_t sum = 0;
        for (const SamplerRing& ring : kernel.rings)
            sum += ring.bytes;
        return sum;
    };
    EXPECT_GE(bytes(), budget / 4);
    while (samples.refused() == 0 && kernel.open < 200)
        samples.begin_thread(0);
    EXPECT_LE(bytes(), budget);
    EXPECT_GT(bytes() + 4 * page_bytes(), budget) << "a page each, at last";
    EXPECT_EQ(samples.refused(), 1u);
}

TEST_F(FaultSamplesTest, WhereTheFineRingIsFullTheCoarseOneGoesOn) {
    ASSERT_EQ(samples.open(false, no_limit, 0), 0);
    kernel.fault(0, base, 100);
    kernel.lost(0, 64);
    kernel.fault(1, base, 90);
    kernel.fault(1, base + mib, 200);
    std::vector<FaultSample> seen;
    samples.drain(seen);
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[1].address, base + mib);
    EXPECT_EQ(seen[1].stands_for, FaultSamples::period * FaultSamples::coarse);
    EXPECT_EQ(samples.lost(), 0u);
}

TEST_F(FaultSamplesTest, WhereAnEventIsRefusedNothingStaysOpen) {
    for (const int error : errnos_of(KernelCall::open_sampler)) {
        if (error == ENOENT) continue; // what the simulated kernel says of itself
        const bool smaller_may_do = error == EPERM || error == ENOMEM;
        for (std::size_t nth = 1; nth <= 2; ++nth) {
            kernel.fail(KernelCall::open_sampler, error, nth);
            EXPECT_EQ(samples.open(true, no_limit, 0), smaller_may_do ? 0 : error) << nth;
            EXPECT_EQ(samples.is_open(), smaller_may_do);
            EXPECT_EQ(kernel.open, smaller_may_do ? 2 : 0);
            samples.close();
            kernel.heal();
        }
        kernel.fail(KernelCall::open_sampler, error);
        EXPECT_EQ(samples.open(true, no_limit, 0), error);
        EXPECT_EQ(kernel.open, 0);
        kernel.heal();
    }
}

TEST_F(FaultSamplesTest, OfThreadsThatBeginAllTheTimeFewAreSampled) {
    ASSERT_EQ(samples.open(false, no_limit, 100), 0);
    const int sampled_at_once = static_cast<int>(FaultSamples::threads_at_once);
    for (int i = 0; i < sampled_at_once + 50; ++i)
        samples.end_thread(samples.begin_thread(100));
    EXPECT_EQ(kernel.events.size(), 2u * (1 + FaultSamples::threads_at_once));
    EXPECT_EQ(samples.refused(), 50u);
    EXPECT_TRUE(samples.begin_thread(100 + 0.5 * FaultSamples::seconds_each));
    EXPECT_FALSE(samples.begin_thread(100 + 0.5 * FaultSamples::seconds_each + 1e-3));
}

TEST_F(FaultSamplesTest, ThreadsThatAreRefusedAreCounted) {
    ASSERT_EQ(samples.open(false, no_limit, 0), 0);
    for (const int error : {EMFILE, EPERM}) {
        kernel.fail(KernelCall::open_sampler, error);
        EXPECT_FALSE(samples.begin_thread(0));
        kernel.heal();
    }
    EXPECT_EQ(samples.refused(), 2u);
    EXPECT_EQ(kernel.open, 2);
    EXPECT_TRUE(samples.begin_thread(0));
}

} // namespace
} // namespace homing
