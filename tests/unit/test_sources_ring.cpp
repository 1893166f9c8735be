#include "no_kernel.hpp"
#include "sources/ring.hpp"
#include "sources/samplers.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <linux/perf_event.h>
#include <mutex>
#include <random>
#include <sys/mman.h>
#include <thread>

namespace homing::sources_ring_tests {
namespace {

/// A ring as the kernel lays it out, written by hand.
class WrittenRing {
  public:
    explicit WrittenRing(std::size_t data_bytes, bool says_geometry = true)
        : storage_(page_bytes() + data_bytes), size_(data_bytes) {
        control()->data_offset = says_geometry ? page_bytes() : 0;
        control()->data_size = says_geometry ? data_bytes : 0;
        ring.map = storage_.data();
        ring.bytes = storage_.size();
    }
    perf_event_mmap_page* control() { return reinterpret_cast<perf_event_mmap_page*>(storage_.data()); }
    void start_at(std::uint64_t position) { control()->data_head = control()->data_tail = position; }
    std::uint64_t room() { return size_ - (control()->data_head - control()->data_tail); }

    void write(const void* bytes, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            storage_[page_bytes() + ((control()->data_head + i) & (size_ - 1))] =
                static_cast<const std::uint8_t*>(bytes)[i];
        control()->data_head += count;
    }
    void record(std::uint32_t type, std::vector<std::uint64_t> words) {
        perf_event_header header{type, 0, static_cast<std::uint16_t>(8 + 8 * words.size())};
        std::vector<std::uint8_t> bytes(header.size);
        std::memcpy(bytes.data(), &header, 8);
        if (!words.empty()) std::memcpy(bytes.data() + 8, words.data(), 8 * words.size());
        write(bytes.data(), bytes.size());
    }
    std::span<std::uint8_t> data() { return std::span(storage_).subspan(page_bytes()); }

    SamplerRing ring;

  private:
    std::vector<std::uint8_t> storage_;
    std::size_t size_;
};

std::vector<std::uint64_t> words_of(const Sample& s, bool weight) {
    std::vector<std::uint64_t> words{s.instruction, s.process | std::uint64_t{s.thread} << 32, s.time,
                                     s.address, s.cpu};
    if (weight) words.insert(words.end(), {s.weight, s.data_source});
    return words;
}

struct Collected final : RingVisitor {
    std::vector<Sample> samples;
    std::vector<AuxChunk> chunks;
    void sample(const Sample& sample) override { samples.push_back(sample); }
    void aux(const AuxChunk& chunk) override { chunks.push_back(chunk); }
};

bool same(const Sample& a, const Sample& b) {
    return a.process == b.process && a.thread == b.thread && a.time == b.time && a.address == b.address &&
           a.cpu == b.cpu && a.weight == b.weight && a.data_source == b.data_source;
}

std::uint64_t any_word() { return *rc::gen::arbitrary<std::uint64_t>(); }

TEST(Ring, WhereNothingCameNothingIsWritten) {
    const std::size_t bytes = 3 * page_bytes();
    void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* control = static_cast<perf_event_mmap_page*>(map);
    control->data_offset = page_bytes();
    control->data_size = 2 * page_bytes();
    control->data_head = control->data_tail = 4711 * 8;
    ASSERT_EQ(::mprotect(map, bytes, PROT_READ), 0); // a write would be a signal
    SamplerRing ring;
    ring.map = map;
    ring.bytes = bytes;
    Collected collected;
    RingStatistics statistics;
    drain_ring(ring, false, collected, statistics);
    EXPECT_TRUE(collected.samples.empty());
    EXPECT_EQ(statistics.malformed, 0u);
    ::munmap(map, bytes);
}

TEST(Ring, EveryRecordComesOutOnceInOrderWhereverItWraps) {
    EXPECT_TRUE(rc::check([] {
        const bool weight = *rc::gen::arbitrary<bool>();
        WrittenRing written(std::size_t{1} << *rc::gen::inRange(9, 13), *rc::gen::arbitrary<bool>());
        // Positions grow for ever and wrap at the buffer's size, and after 2^64.
        written.start_at((any_word() & ~std::uint64_t{7}));
        std::deque<Sample> expected;
        std::uint64_t lost = 0;
        std::uint64_t unknown = 0;
        RingStatistics statistics;
        const auto drain = [&] {
            Collected got;
            drain_ring(written.ring, weight, got, statistics);
            RC_ASSERT(got.samples.size() == expected.size());
            for (const Sample& sample : got.samples) {
                RC_ASSERT(same(sample, expected.front()));
                expected.pop_front();
            }
            RC_ASSERT(written.control()->data_tail == written.control()->data_head);
        };
        const int records = *rc::gen::inRange(0, 200);
        for (int i = 0; i < records; ++i) {
            const auto kind = *rc::gen::inRange(0, 8);
            const auto extra =
                *rc::gen::inRange<std::size_t>(0, 12); // fields that a later kernel adds at the end
            if (written.room() < 8 * (8 + extra) + 64) drain();
            if (kind < 5) {
                Sample s{static_cast<std::uint32_t>(any_word()),
                         static_cast<std::uint32_t>(any_word()),
                         any_word(),
                         any_word(),
                         static_cast<std::uint32_t>(any_word()),
                         0,
                         0};
                if (weight) s.weight = any_word(), s.data_source = any_word();
                expected.push_back(s);
                auto words = words_of(s, weight);
                words.insert(words.end(), extra, 0);
                written.record(PERF_RECORD_SAMPLE, words);
            } else if (kind == 5) {
                const auto count = *rc::gen::inRange<std::uint64_t>(0, 1000);
                lost += count;
                written.record(PERF_RECORD_LOST, {7, count});
            } else {
                ++unknown;
                written.record(kind == 6 ? 3u : 4711u, std::vector<std::uint64_t>(extra, 1));
            }
        }
        drain();
        RC_ASSERT(statistics.lost == lost);
        RC_ASSERT(statistics.unknown == unknown);
        RC_ASSERT(statistics.malformed == 0u);
    }));
}

TEST(Ring, NoContentMakesItReadOutside) {
    // Under AddressSanitizer a read outside the mapping ends the test.
    std::mt19937_64 random(4711);
    for (int round = 0; round < 3000; ++round) {
        WrittenRing written(std::size_t{64} << random() % 8, random() % 2);
        for (std::uint8_t& byte : written.data())
            byte = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : random() % 16);
        written.control()->data_tail = random();
        written.control()->data_head =
            random() % 4 ? written.control()->data_tail + random() % 70000 : random();
        if (random() % 4 == 0) written.control()->data_size = random();
        if (random() % 4 == 0) written.control()->data_offset = random() % 3 ? random() : random() % 20000;
        if (random() % 8 == 0) written.ring.bytes = random() % written.ring.bytes;
        Collected got;
        RingStatistics statistics;
        drain_ring(written.ring, random() % 2, got, statistics);
        EXPECT_LE(got.samples.size(), written.data().size() / 8);
    }
}

TEST(Ring, AfterARecordThatCannotBeTheRestIsGivenUpAndTheNextStartsClean) {
    for (const std::uint16_t size : {0, 4, 7, 12, 4000}) {
        WrittenRing written(4096);
        written.record(PERF_RECORD_SAMPLE, words_of({1, 2, 3, 4, 5, 0, 0}, false));
        perf_event_header broken{PERF_RECORD_SAMPLE, 0, size};
        written.write(&broken, sizeof broken);
        written.record(PERF_RECORD_SAMPLE, words_of({1, 2, 3, 5, 5, 0, 0}, false));
        Collected got;
        RingStatistics statistics;
        drain_ring(written.ring, false, got, statistics);
        EXPECT_EQ(got.samples.size(), 1u);
        EXPECT_EQ(statistics.malformed, 1u);
        written.record(PERF_RECORD_SAMPLE, words_of({1, 2, 3, 6, 5, 0, 0}, false));
        drain_ring(written.ring, false, got, statistics);
        ASSERT_EQ(got.samples.size(), 2u);
        EXPECT_EQ(got.samples[1].address, 6u);
        EXPECT_EQ(statistics.malformed, 1u);
    }
}

TEST(Ring, ShortRecordsOfKnownTypesAreSkipped) {
    WrittenRing written(4096);
    for (const std::uint32_t type :
         {PERF_RECORD_SAMPLE, PERF_RECORD_LOST, PERF_RECORD_LOST_SAMPLES, PERF_RECORD_AUX})
        written.record(type, {});
    written.record(PERF_RECORD_SAMPLE,
                   words_of({1, 2, 3, 4, 5, 0, 0}, false)); // without the weight that was asked for
    written.record(PERF_RECORD_LOST_SAMPLES, {5});
    written.record(PERF_RECORD_AUX, {100, 200, PERF_AUX_FLAG_TRUNCATED, 1, 2, 3});
    written.record(PERF_RECORD_THROTTLE, {1, 2, 3});
    Collected got;
    RingStatistics statistics;
    drain_ring(written.ring, true, got, statistics);
    EXPECT_EQ(statistics.malformed, 5u);
    EXPECT_EQ(statistics.lost, 6u);
    EXPECT_EQ(statistics.throttled, 1u);
    EXPECT_TRUE(got.samples.empty());
    ASSERT_EQ(got.chunks.size(), 1u);
    EXPECT_EQ(got.chunks[0].offset, 100u);
    EXPECT_EQ(got.chunks[0].size, 200u);
    EXPECT_EQ(got.chunks[0].cpu, 3u);
}

TEST(Ring, ClearThrowsAway) {
    WrittenRing written(4096);
    written.record(PERF_RECORD_COMM, {1, 2});
    EXPECT_EQ(clear_ring(written.ring), 24u);
    EXPECT_EQ(clear_ring(written.ring), 0u);
    EXPECT_EQ(clear_ring(SamplerRing{}), 0u);
}

SamplerEvent page_faults() {
    SamplerEvent event;
    event.type = PERF_TYPE_SOFTWARE;
    event.config = PERF_COUNT_SW_PAGE_FAULTS;
    return event;
}

/// Memory that is not there yet.
class FreshPages {
  public:
    explicit FreshPages(std::size_t count)
        : bytes_(count * page_bytes()), at_(static_cast<char*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        ::madvise(at_, bytes_, MADV_NOHUGEPAGE);
    }
    ~FreshPages() { ::munmap(at_, bytes_); }
    void touch(std::size_t first, std::size_t end) {
        for (std::size_t i = first; i < end; ++i)
            static_cast<volatile char*>(at_)[i * page_bytes() + 100] = 1;
    }
    bool contains(Address a) const {
        return a >= reinterpret_cast<Address>(at_) && a < reinterpret_cast<Address>(at_) + bytes_;
    }
    std::size_t page_of(Address a) const { return (a - reinterpret_cast<Address>(at_)) / page_bytes(); }

  private:
    std::size_t bytes_;
    char* at_;
};

std::string why_not() {
    SamplerRing ring;
    const int error = linux_kernel().open_sampler(page_faults(), 0, 1, ring);
    if (!error) linux_kernel().close_sampler(ring);
    return error ? explain_sampler_error(error, "/proc") : std::string();
}

struct ByThread final : SampleVisitor {
    std::vector<Sample> samples;
    void sample(std::size_t event, const Sample& sample) override {
        EXPECT_EQ(event, 0u);
        samples.push_back(sample);
    }
};

TEST(RealRing, EveryPageFaultIsSeenWithItsAddressThreadAndCpu) {
    if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
    SamplerRing ring;
    ASSERT_EQ(linux_kernel().open_sampler(page_faults(), 0, 64, ring), 0);
    FreshPages pages(1000);
    pages.touch(0, 1000);
    Collected got;
    RingStatistics statistics;
    drain_ring(ring, false, got, statistics);
    linux_kernel().close_sampler(ring);
    std::vector<int> times(1000);
    for (const Sample& sample : got.samples) {
        EXPECT_EQ(sample.thread, static_cast<std::uint32_t>(::gettid()));
        EXPECT_EQ(sample.process, static_cast<std::uint32_t>(::getpid()));
        EXPECT_LT(sample.cpu, static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_CONF)));
        if (pages.contains(sample.address)) ++times[pages.page_of(sample.address)];
    }
    EXPECT_EQ(times, std::vector<int>(1000, 1));
    EXPECT_EQ(statistics.lost, 0u);
    EXPECT_EQ(statistics.malformed, 0u);
}

TEST(RealRing, WhatDoesNotFitIsCountedAsLost) {
    if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
    SamplerRing ring;
    ASSERT_EQ(linux_kernel().open_sampler(page_faults(), 0, 1, ring), 0);
    FreshPages pages(2 * page_bytes() / 40 + 1);
    const std::size_t count = 2 * page_bytes() / 40;
    pages.touch(0, count);
    Collected got;
    RingStatistics statistics;
    drain_ring(ring, false, got, statistics);
    pages.touch(count, count + 1); // the record of the loss comes with the next sample
    drain_ring(ring, false, got, statistics);
    linux_kernel().close_sampler(ring);
    EXPECT_GT(statistics.lost, 0u);
    EXPECT_GE(statistics.lost + statistics.samples, count + 1);
}

TEST(ThreadSamplers, ThreadsThatBeginAndEndAreFollowed) {
    if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
    ThreadSamplers samplers(linux_kernel());
    const SamplerEvent event = page_faults();
    ASSERT_EQ(samplers.open(std::span(&event, 1)), 0);
    const std::size_t before = samplers.threads();
    FreshPages pages(100);

    std::mutex mutex;
    std::condition_variable changed;
    int step = 0;
    const auto reach = [&](int wanted) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return step >= wanted; });
    };
    const auto go = [&](int next) {
        const std::lock_guard lock(mutex);
        step = next;
        changed.notify_all();
    };
    pid_t worker_id = 0;
    std::thread worker([&] {
        worker_id = ::gettid();
        go(1);
        reach(2);
        pages.touch(0, 60);
        go(3);
        reach(4);
        pages.touch(60, 100);
    });
    ByThread got;
    reach(1);
    samplers.drain(got);                           // notices the thread
    const std::size_t during = samplers.threads(); // a sanitizer may have started a thread of its own, too
    EXPECT_GT(during, before);
    go(2);
    reach(3);
    samplers.drain(got);
    go(4);
    worker.join();
    // join() may return before the thread has left the list.
    for (int i = 0; i < 1000 && samplers.threads() >= during; ++i) {
        samplers.drain(got);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(samplers.threads(), during - 1);
    std::vector<int> times(100);
    for (const Sample& sample : got.samples)
        if (pages.contains(sample.address)) {
            EXPECT_EQ(sample.thread, static_cast<std::uint32_t>(worker_id));
            ++times[pages.page_of(sample.address)];
        }
    EXPECT_EQ(times, std::vector<int>(100, 1));
    samplers.close();
    EXPECT_FALSE(samplers.is_open());
}

TEST(ThreadSamplers, RingsFitTheBudget) {
    EXPECT_TRUE(rc::check([] {
        const auto rings = *rc::gen::inRange<std::size_t>(1, 5000);
        const auto page = std::size_t{4096} << *rc::gen::inRange(0, 5);
        const auto budget = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 30);
        const auto pages = ring_pages_within(rings, page, budget);
        RC_ASSERT(pages >= 1u);
        RC_ASSERT((pages & (pages - 1)) == 0u);
        RC_ASSERT(pages * page <= std::max(page, ThreadSamplers::ring_data_bytes));
        RC_ASSERT(pages == 1u || rings * (1 + pages) * page <= budget / 2);
        // and are not smaller than they must be
        if (2 * pages * page <= ThreadSamplers::ring_data_bytes)
            RC_ASSERT(rings * (1 + 2 * pages) * page > budget / 2);
    }));
}

/// Refuses rings above a size, or everything with one errno.
class RefusingKernel final : public NoKernel {
  public:
    std::size_t largest = 64;
    int error = 0;
    int opens = 0;
    int open_now = 0;
    int open_sampler(const SamplerEvent&, int, std::size_t pages, SamplerRing& ring) noexcept override {
        ++opens;
        if (error) return error;
        if (pages > largest) return EPERM;
        ++open_now;
        ring.map = this;
        return 0;
    }
    void close_sampler(SamplerRing& ring) noexcept override {
        --open_now;
        ring = {};
    }
};

TEST(ThreadSamplers, RingsShrinkUntilTheKernelAgrees) {
    RefusingKernel kernel;
    kernel.largest = 4;
    ThreadSamplers samplers(kernel);
    const SamplerEvent events[2] = {page_faults(), page_faults()};
    ASSERT_EQ(samplers.open(events), 0);
    EXPECT_LE(samplers.ring_pages(), 4u);
    EXPECT_GE(kernel.open_now, 2);
    samplers.close();
    EXPECT_EQ(kernel.open_now, 0);
}

TEST(ThreadSamplers, ARefusalIsExplained) {
    for (const int error : {EACCES, EPERM, ENOSYS, ENOENT, EMFILE, EBUSY, ENOMEM, EOPNOTSUPP, E2BIG}) {
        RefusingKernel kernel;
        kernel.error = error;
        ThreadSamplers samplers(kernel);
        const SamplerEvent event = page_faults();
        EXPECT_EQ(samplers.open(std::span(&event, 1)), error);
        EXPECT_FALSE(samplers.is_open());
        EXPECT_EQ(kernel.open_now, 0);
        EXPECT_LE(kernel.opens, 10);
        EXPECT_FALSE(explain_sampler_error(error, "/proc").empty());
    }
    EXPECT_NE(explain_sampler_error(EACCES, "/proc").find("perf_event_paranoid is"), std::string::npos);
}

} // namespace
} // namespace homing::sources_ring_tests
