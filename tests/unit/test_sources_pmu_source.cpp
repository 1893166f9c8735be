#include "no_kernel.hpp"
#include "pmu_test.hpp"
#include "sources/references.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/perf_event.h>
#include <memory>
#include <set>
#include <sys/mman.h>

namespace homing::sources_pmu_source_tests {
namespace {

/// Stands in for a PMU: every event becomes the page faults of software, so that the whole path from the
/// kernel's ring to references runs here; or each event is refused.
class SoftwarePmu : public NoKernel {
  public:
    std::vector<SamplerEvent> asked;
    int error = 0;
    int refuse_precise_above = 3;
    int node_of_cpu(int cpu) noexcept override { return cpu + 20; }
    int open_sampler(const SamplerEvent& event, int thread, std::size_t pages,
                     SamplerRing& ring) noexcept override {
        asked.push_back(event);
        if (error) return error;
        if (event.precise > refuse_precise_above) return EOPNOTSUPP;
        SamplerEvent faults;
        faults.type = PERF_TYPE_SOFTWARE;
        faults.config = PERF_COUNT_SW_PAGE_FAULTS;
        faults.weight = event.weight;
        return linux_kernel().open_sampler(faults, thread, pages, ring);
    }
    void close_sampler(SamplerRing& ring) noexcept override { linux_kernel().close_sampler(ring); }
};

TEST(PmuSource, SamplesInWatchedMemoryBecomeReferences) {
    RecordedTree tree("intel_ice_lake_server");
    SoftwarePmu kernel;
    std::unique_ptr<ReferenceSource> source(make_pmu_source(kernel, tree.path().c_str()));
    if (const std::string why = source->unavailable(); !why.empty()) GTEST_SKIP() << why;
    const std::size_t count = 200;
    const std::size_t bytes = count * page_bytes();
    void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ::madvise(map, bytes, MADV_NOHUGEPAGE);
    const Address begin = reinterpret_cast<Address>(map);
    const WatchedRange watched[] = {{{begin, begin + bytes / 2}, page_bytes(), 0}};
    ASSERT_TRUE(source->start(watched)) << source->reason();
    for (std::size_t page = 0; page < count; ++page)
        static_cast<volatile char*>(map)[page * page_bytes()] = 1;
    std::vector<Reference> references;
    source->drain(references);
    source->stop();
    std::set<std::pair<Address, bool>> seen; // each fault by both events: loads and stores
    for (const Reference& reference : references) {
        EXPECT_GE(reference.node, 20);
        EXPECT_TRUE(seen.insert({reference.address, reference.write}).second);
        EXPECT_TRUE(watched[0].range.contains(reference.address));
        if (reference.write)
            EXPECT_NEAR(reference.weight, 100, 1); // 1,000,003 stores against 10,007 loads
        else
            EXPECT_EQ(reference.weight, 1u);
    }
    EXPECT_EQ(seen.size(), count);
    EXPECT_EQ(source->unit(), 10007u);
    references.clear();
    source->drain(references);
    EXPECT_TRUE(references.empty());
    ::munmap(map, bytes);
}

TEST(PmuSource, TakesThePrecisionThatIsGranted) {
    RecordedTree tree("intel_ice_lake_server");
    SoftwarePmu kernel;
    kernel.refuse_precise_above = 1;
    std::unique_ptr<ReferenceSource> source(make_pmu_source(kernel, tree.path().c_str()));
    if (const std::string why = source->unavailable();
        !why.empty() && why.find("paranoid") != std::string::npos)
        GTEST_SKIP() << why;
    EXPECT_EQ(source->unavailable(), "");
    EXPECT_EQ(kernel.asked.back().precise, 1);
    kernel.asked.clear();
    kernel.refuse_precise_above = 0; // without any precision the address is not that of the access
    source.reset(make_pmu_source(kernel, tree.path().c_str()));
    EXPECT_EQ(source->unavailable(), "this machine has no such event (virtual machine without a PMU?)");
    for (const SamplerEvent& event : kernel.asked)
        EXPECT_GE(event.precise, 1);
}

TEST(PmuSource, SaysWhyItCannot) {
    SoftwarePmu kernel;
    const auto why = [&kernel](const char* tree) {
        const RecordedTree unpacked(tree);
        std::unique_ptr<ReferenceSource> source(make_pmu_source(kernel, unpacked.path().c_str()));
        const std::string reason = source->unavailable();
        EXPECT_FALSE(source->start({}));
        EXPECT_EQ(source->reason(), reason);
        EXPECT_EQ(source->unavailable(), reason); // asked again
        return reason;
    };
    EXPECT_EQ(why("virtual_machine"), "no PMU in this machine (virtual machine?)");
    kernel.error = EACCES;
    EXPECT_NE(why("intel_sapphire_rapids").find("perf_event_paranoid is"), std::string::npos);
    EXPECT_NE(why("amd_zen3").find("cannot leave out the kernel"), std::string::npos);
    kernel.error = EBUSY;
    EXPECT_EQ(why("arm_neoverse_n1"), "another program uses the PMU");
    kernel.error = EOPNOTSUPP;
    EXPECT_EQ(why("amd_zen4"), "this machine has no such event (virtual machine without a PMU?)");
}

/// A ring with an AUX buffer in plain memory, as the SPE driver would fill it.
class WrittenSpe final : public SoftwarePmu {
  public:
    WrittenSpe() : ring_(2 * page_bytes()), aux_(4096) {}
    int open_sampler(const SamplerEvent& event, int thread, std::size_t,
                     SamplerRing& ring) noexcept override {
        asked.push_back(event);
        if (thread != 0 && thread != ::getpid()) return ESRCH; // one ring is enough
        std::fill(ring_.begin(), ring_.end(), std::uint8_t{0});
        control()->data_offset = page_bytes();
        control()->data_size = page_bytes();
        ring.map = ring_.data();
        ring.bytes = ring_.size();
        ring.aux = aux_.data();
        ring.aux_bytes = aux_.size();
        return 0;
    }
    void close_sampler(SamplerRing& ring) noexcept override { ring = {}; }
    perf_event_mmap_page* control() { return reinterpret_cast<perf_event_mmap_page*>(ring_.data()); }
    /// Bytes that the hardware wrote on a CPU, and the record of them.
    void filled(const std::vector<std::uint8_t>& bytes, std::uint32_t cpu) {
        for (std::size_t i = 0; i < bytes.size(); ++i)
            aux_[(head_ + i) % aux_.size()] = bytes[i];
        struct {
            perf_event_header header{PERF_RECORD_AUX, 0, 56};
            std::uint64_t offset, size, flags = 0;
            std::uint32_t process = 1, thread = 1;
            std::uint64_t time = 0;
            std::uint32_t cpu, reserved = 0;
        } record;
        record.offset = head_;
        record.size = bytes.size();
        record.cpu = cpu;
        static_assert(sizeof record == 56);
        std::memcpy(ring_.data() + page_bytes() + control()->data_head, &record, sizeof record);
        control()->data_head += sizeof record;
        head_ += bytes.size();
    }
    std::uint64_t head_ = 4096 - 64; ///< so that it wraps

  private:
    std::vector<std::uint8_t> ring_;
    std::vector<std::uint8_t> aux_;
};

TEST(PmuSource, SpeRecordsBecomeReferencesOfTheCpuThatWroteThem) {
    const RecordedTree tree("arm_neoverse_n1");
    WrittenSpe kernel;
    std::unique_ptr<ReferenceSource> source(make_pmu_source(kernel, tree.path().c_str()));
    ASSERT_EQ(source->unavailable(), "");
    const WatchedRange watched[] = {{{0x10000, 0x20000}, page_bytes(), 0}};
    ASSERT_TRUE(source->start(watched));
    SpeWriter first;
    first.record(0x10040, false, 0, 14, true);
    first.record(0x10080, false, 0, 11, true); // system cache
    first.record(0x30000, false, 0, 14, true); // not watched
    SpeWriter second;
    second.record(0x11000, true, 0, 13, true);
    kernel.filled(first.bytes, 3);
    kernel.filled(second.bytes, 5);
    std::vector<Reference> references;
    source->drain(references);
    ASSERT_EQ(references.size(), 2u);
    EXPECT_EQ(references[0].address, 0x10040u);
    EXPECT_EQ(references[0].node, 23);
    EXPECT_FALSE(references[0].write);
    EXPECT_EQ(references[1].address, 0x11000u);
    EXPECT_EQ(references[1].node, 25);
    EXPECT_TRUE(references[1].write);
    EXPECT_EQ(kernel.control()->aux_tail, kernel.head_); // given back to the hardware
}

} // namespace
} // namespace homing::sources_pmu_source_tests
