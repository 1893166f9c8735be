#include "no_kernel.hpp"
#include "references/data_source.hpp"
#include "references/pmu_events.hpp"
#include "references/pmu_period.hpp"
#include "references/references.hpp"
#include "references/spe.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <linux/perf_event.h>
#include <memory>
#include <random>
#include <set>
#include <sys/mman.h>

using namespace homing;

namespace {

/// A recorded tree, unpacked.
class Tree {
  public:
    explicit Tree(const std::string& name) {
        root_ = std::filesystem::path(::testing::TempDir()) /
                ("sysfs." + name + "." + std::to_string(::getpid()));
        std::filesystem::remove_all(root_);
        std::ifstream in(std::string(HOMING_TEST_DATA) + "/sysfs/" + name + ".txt");
        EXPECT_TRUE(in) << name;
        for (std::string line; std::getline(in, line);) {
            if (line.empty() || line[0] == '#') continue;
            const std::size_t colon = line.find(": ");
            write(line.substr(0, colon), line.substr(colon + 2));
        }
    }
    ~Tree() { std::filesystem::remove_all(root_); }
    void write(const std::string& path, const std::string& content) {
        std::filesystem::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << content << "\n";
    }
    void remove(const std::string& path) { std::filesystem::remove_all(root_ / path); }
    std::string path() const { return root_; }
    PmuDescription describe() const { return describe_pmu(root_); }

  private:
    std::filesystem::path root_;
};

const char* const devices = "bus/event_source/devices/";

} // namespace

TEST(PmuEvents, IceLakeServer) {
    const PmuDescription pmu = Tree("intel_ice_lake_server").describe();
    ASSERT_EQ(pmu.kind, PmuKind::pebs);
    ASSERT_EQ(pmu.events.size(), 2u);
    const SamplerEvent& loads = pmu.events[0].sampler;
    EXPECT_EQ(loads.type, 4u);
    EXPECT_EQ(loads.config, 0x1cdu);
    EXPECT_EQ(loads.config1, latency_threshold);
    EXPECT_EQ(loads.config2, 0u);
    EXPECT_EQ(loads.precise, 3);
    EXPECT_TRUE(loads.weight);
    EXPECT_TRUE(loads.exclude_kernel);
    EXPECT_FALSE(loads.with_leader);
    EXPECT_EQ(loads.aux_pages, 0u);
    EXPECT_FALSE(pmu.events[0].stores);
    const SamplerEvent& stores = pmu.events[1].sampler;
    EXPECT_EQ(stores.config, 0x82d0u);
    EXPECT_EQ(stores.config1, 0u);
    EXPECT_TRUE(pmu.events[1].stores);
    EXPECT_GT(stores.period, loads.period);
}

TEST(PmuEvents, SapphireRapidsNeedsALeader) {
    const PmuDescription pmu = Tree("intel_sapphire_rapids").describe();
    ASSERT_EQ(pmu.events.size(), 2u);
    EXPECT_EQ(pmu.events[0].sampler.config, 0x1cdu);
    EXPECT_TRUE(pmu.events[0].sampler.with_leader);
    EXPECT_EQ(pmu.events[0].sampler.leader_config, 0x8203u);
    EXPECT_EQ(pmu.events[1].sampler.config, 0x2cdu);
    EXPECT_FALSE(pmu.events[1].sampler.with_leader);
}

TEST(PmuEvents, HybridMachinesHaveTwoPmus) {
    const PmuDescription pmu = Tree("intel_alder_lake_hybrid").describe();
    ASSERT_EQ(pmu.kind, PmuKind::pebs);
    ASSERT_EQ(pmu.events.size(), 4u);
    EXPECT_EQ(pmu.events[0].name, "cpu_core/mem-loads");
    EXPECT_EQ(pmu.events[0].sampler.type, 4u);
    EXPECT_EQ(pmu.events[0].sampler.config, 0x1cdu);
    EXPECT_TRUE(pmu.events[0].sampler.with_leader);
    EXPECT_EQ(pmu.events[1].sampler.config, 0x2cdu);
    EXPECT_EQ(pmu.events[2].name, "cpu_atom/mem-loads");
    EXPECT_EQ(pmu.events[2].sampler.type, 10u);
    EXPECT_EQ(pmu.events[2].sampler.config, 0x5d0u);
    EXPECT_EQ(pmu.events[2].sampler.config1, latency_threshold);
    EXPECT_FALSE(pmu.events[2].sampler.with_leader);
    EXPECT_EQ(pmu.events[3].sampler.config, 0x6d0u);
}

TEST(PmuEvents, Zen4SamplesMissesOnly) {
    const PmuDescription pmu = Tree("amd_zen4").describe();
    ASSERT_EQ(pmu.kind, PmuKind::ibs);
    ASSERT_EQ(pmu.events.size(), 1u);
    const SamplerEvent& ops = pmu.events[0].sampler;
    EXPECT_EQ(ops.type, 11u);
    EXPECT_EQ(ops.config, std::uint64_t{1} << 19 | std::uint64_t{1} << 16);
    EXPECT_EQ(ops.config1, 0u);
    EXPECT_EQ(ops.config2, 1u);
    EXPECT_TRUE(ops.exclude_kernel);
    EXPECT_EQ(ops.precise, 0);
    EXPECT_EQ(ops.period % 16, 0u);
    EXPECT_TRUE(ops.weight);
}

TEST(PmuEvents, Zen3CannotLeaveTheKernelOut) {
    const PmuDescription pmu = Tree("amd_zen3").describe();
    ASSERT_EQ(pmu.kind, PmuKind::ibs);
    EXPECT_EQ(pmu.events[0].sampler.config, std::uint64_t{1} << 19);
    EXPECT_EQ(pmu.events[0].sampler.config2, 0u);
    EXPECT_FALSE(pmu.events[0].sampler.exclude_kernel);
    EXPECT_EQ(pmu.events[0].sampler.period % 16, 0u);
}

TEST(PmuEvents, NeoverseN1) {
    Tree tree("arm_neoverse_n1");
    const PmuDescription pmu = tree.describe();
    ASSERT_EQ(pmu.kind, PmuKind::spe);
    const SamplerEvent& records = pmu.events.at(0).sampler;
    EXPECT_EQ(records.type, 9u);
    EXPECT_EQ(records.config, std::uint64_t{1} << 33 | std::uint64_t{1} << 34 | std::uint64_t{1} << 16);
    EXPECT_EQ(records.config1, 0u);
    EXPECT_EQ(records.config2, latency_threshold);
    EXPECT_GE(records.period, 1024u);
    EXPECT_EQ(records.period % 256, 0u);
    EXPECT_EQ(records.aux_pages & (records.aux_pages - 1), 0u);
    EXPECT_GT(records.aux_pages, 0u);
    EXPECT_FALSE(records.weight);
    EXPECT_TRUE(pmu.neoverse_sources);
    EXPECT_EQ(pmu.events[0].least_period, 1024u);

    tree.write("devices/system/cpu/cpu0/regs/identification/midr_el1",
               "0x00000000480fd010"); // another implementer
    EXPECT_FALSE(tree.describe().neoverse_sources);
    tree.remove(std::string(devices) + "arm_spe_0");
    EXPECT_EQ(tree.describe().why_not, "the PMU has no memory samples (PEBS, IBS or SPE)");
}

TEST(PmuEvents, NoPmuIsSaidInWords) {
    EXPECT_EQ(Tree("virtual_machine").describe().why_not, "no PMU in this machine (virtual machine?)");
    EXPECT_EQ(describe_pmu("/nowhere").why_not, "no PMU in this machine (virtual machine?)");
    Tree without_pebs("intel_ice_lake_server"); // what some hypervisors show
    without_pebs.write(std::string(devices) + "cpu/caps/max_precise", "0");
    EXPECT_EQ(without_pebs.describe().why_not, "the PMU takes no precise samples here (virtual machine?)");
}

TEST(PmuEvents, WhatIsNotUnderstoodIsNotGuessed) {
    Tree tree("intel_ice_lake_server");
    tree.write(std::string(devices) + "cpu/events/mem-loads", "event=0xcd,umask=0x1,secret=3");
    EXPECT_EQ(tree.describe().why_not, "cpu/mem-loads: the kernel tells no format of \"secret\"");
    tree.write(std::string(devices) + "cpu/events/mem-loads", "event=0x1cd");
    EXPECT_EQ(tree.describe().why_not, "cpu/mem-loads: \"event=0x1cd\" does not fit config:0-7");
    tree.write(std::string(devices) + "cpu/events/mem-loads", "event=");
    EXPECT_EQ(tree.describe().why_not, "cpu/mem-loads: \"event=\" has no number");
    tree.write(std::string(devices) + "cpu/events/mem-loads", "event=1");
    tree.write(std::string(devices) + "cpu/format/event", "config9:0-7");
    EXPECT_EQ(tree.describe().why_not, "cpu/mem-loads: format \"config9:0-7\" is not understood");
}

TEST(PmuFormat, FieldsInPieces) {
    FormatField field;
    ASSERT_TRUE(parse_format("config:0-7,32-35", field));
    SamplerEvent event;
    event.config = 0xff00;
    ASSERT_TRUE(put_field(field, 0xabc, event));
    EXPECT_EQ(event.config, 0xa0000ffbcu);
    EXPECT_FALSE(put_field(field, 0x1000, event));
    EXPECT_EQ(event.config, 0xa0000ffbcu);
    ASSERT_TRUE(parse_format("config2:0-63", field));
    ASSERT_TRUE(put_field(field, ~std::uint64_t{0}, event));
    EXPECT_EQ(event.config2, ~std::uint64_t{0});
    for (const char* broken :
         {"", "config", "config:", "config:a", "config:5-2", "config:0-64", "config:1,", "x:1"})
        EXPECT_FALSE(parse_format(broken, field)) << broken;
}

TEST(PmuFormat, WhatIsPutInComesOut) {
    EXPECT_TRUE(rc::check([] {
        // Disjoint pieces of a word in any order.
        std::mt19937_64 random(*rc::gen::arbitrary<unsigned>());
        FormatField field;
        std::string text = "config1:";
        unsigned at = 0;
        unsigned bits = 0;
        while (at < 60 && (field.bits.empty() || random() % 3)) {
            const unsigned low = at + static_cast<unsigned>(random() % 4);
            const unsigned high = std::min(63u, low + static_cast<unsigned>(random() % 16));
            text += (field.bits.empty() ? "" : ",") + std::to_string(low) +
                    (low == high ? "" : "-" + std::to_string(high));
            field.bits.push_back({low, high});
            bits += high - low + 1;
            at = high + 1;
        }
        FormatField parsed;
        RC_ASSERT(parse_format(text, parsed));
        const std::uint64_t value = bits >= 64 ? random() : random() & ((std::uint64_t{1} << bits) - 1);
        SamplerEvent event;
        event.config1 = random();
        const std::uint64_t before = event.config1;
        RC_ASSERT(put_field(parsed, value, event));
        std::uint64_t back = 0;
        std::uint64_t covered = 0;
        unsigned shift = 0;
        for (const auto& b : field.bits)
            for (unsigned bit = b.low; bit <= b.high; ++bit) {
                back |= (event.config1 >> bit & 1) << shift++;
                covered |= std::uint64_t{1} << bit;
            }
        RC_ASSERT(back == value);
        RC_ASSERT((event.config1 & ~covered) == (before & ~covered));
    }));
}

TEST(DataSource, OnlyWhatLeftTheSocketsCachesCounts) {
    const auto source = [](std::uint64_t level, std::uint64_t number, bool remote = false,
                           std::uint64_t hops = 0) {
        return std::uint64_t{PERF_MEM_OP_LOAD} | level << PERF_MEM_LVL_SHIFT |
               number << PERF_MEM_LVLNUM_SHIFT | std::uint64_t{remote} << PERF_MEM_REMOTE_SHIFT | hops << 43;
    };
    const std::uint64_t hit = PERF_MEM_LVL_HIT;
    // Intel (arch/x86/events/intel/ds.c): pebs_data_source and its Skylake values
    EXPECT_EQ(served(source(PERF_MEM_LVL_L1 | hit, PERF_MEM_LVLNUM_L1)), Served::cache);
    EXPECT_EQ(served(source(PERF_MEM_LVL_L2 | hit, PERF_MEM_LVLNUM_L2)), Served::cache);
    EXPECT_EQ(served(source(PERF_MEM_LVL_L3 | hit, PERF_MEM_LVLNUM_L3)), Served::cache);
    EXPECT_EQ(served(source(PERF_MEM_LVL_LFB | hit, PERF_MEM_LVLNUM_LFB)), Served::unknown);
    EXPECT_EQ(served(source(PERF_MEM_LVL_MISS, PERF_MEM_LVLNUM_L3)), Served::beyond);
    EXPECT_EQ(served(source(PERF_MEM_LVL_LOC_RAM | hit, PERF_MEM_LVLNUM_RAM)), Served::beyond);
    EXPECT_EQ(served(source(PERF_MEM_LVL_REM_RAM1 | hit, PERF_MEM_LVLNUM_RAM, true)), Served::beyond);
    EXPECT_EQ(served(source(PERF_MEM_LVL_REM_CCE1 | hit, PERF_MEM_LVLNUM_L3, true)), Served::beyond);
    EXPECT_EQ(served(source(0, PERF_MEM_LVLNUM_PMEM, true)), Served::beyond);
    // stores: hit or miss of the first level
    EXPECT_EQ(served(source(PERF_MEM_LVL_L1 | hit, 0)), Served::cache);
    EXPECT_EQ(served(source(PERF_MEM_LVL_L1 | PERF_MEM_LVL_MISS, 0)), Served::unknown);
    // AMD (arch/x86/events/amd/ibs.c): g_data_src, g_zen4_data_src
    EXPECT_EQ(
        served(source(PERF_MEM_LVL_L3 | PERF_MEM_LVL_REM_CCE1 | hit, PERF_MEM_LVLNUM_ANY_CACHE, false, 1)),
        Served::cache);
    EXPECT_EQ(served(source(PERF_MEM_LVL_REM_CCE1 | hit, PERF_MEM_LVLNUM_ANY_CACHE, true, 1)), Served::cache);
    EXPECT_EQ(served(source(PERF_MEM_LVL_REM_CCE2 | hit, PERF_MEM_LVLNUM_ANY_CACHE, true, 2)),
              Served::beyond);
    EXPECT_EQ(served(source(0, 0x09 /* CXL */)), Served::beyond);
    // nothing known
    EXPECT_EQ(served(source(PERF_MEM_LVL_NA, PERF_MEM_LVLNUM_NA)), Served::unknown);
    EXPECT_EQ(served(0), Served::unknown);
    EXPECT_TRUE(is_store(PERF_MEM_OP_STORE));
    EXPECT_FALSE(is_store(PERF_MEM_OP_LOAD));
}

TEST(PmuPeriod, SettlesUnderTheLimitFromAnywhere) {
    EXPECT_TRUE(rc::check([] {
        const double events_per_second = std::pow(10.0, *rc::gen::inRange(3, 11));
        const auto unit = std::uint64_t{1} << *rc::gen::inRange(0, 9);
        const PeriodLimits limits{.least = unit,
                                  .unit = unit,
                                  .most_rate = most_rate(*rc::gen::inRange<std::size_t>(1, 500), 4096, 0.5)};
        std::uint64_t period = (*rc::gen::inRange<std::uint64_t>(1, 1 << 20) * unit);
        int changes = 0;
        for (int i = 0; i < 20; ++i) {
            const double rate = events_per_second / static_cast<double>(period);
            const std::uint64_t next = adapted_period(period, static_cast<std::uint64_t>(rate), 1.0, limits);
            RC_ASSERT(unit == 1u || next % unit == 0u);
            RC_ASSERT(next >= limits.least);
            changes += next != period;
            period = next;
        }
        RC_ASSERT(events_per_second / static_cast<double>(period) <= limits.most_rate + 1);
        RC_ASSERT(changes <= 6); // it does not swing
    }));
}

TEST(PmuPeriod, LimitsAreWhatTheyClaim) {
    EXPECT_DOUBLE_EQ(most_rate(1, 100000, 0.1), 1000);
    EXPECT_DOUBLE_EQ(most_rate(4, 100000, 0.1), 4000);
    EXPECT_DOUBLE_EQ(most_rate(200, 100000, 0.1), 20000);
    EXPECT_DOUBLE_EQ(most_rate(4, 4000, 10), 800); // iterations of ten seconds: half a ring each
    EXPECT_EQ(adapted_period(10007, 100, 0, {}), 10007u);
    EXPECT_EQ(adapted_period(10007, 900, 1, {}), 10007u);
    EXPECT_GT(adapted_period(10007, 5000, 1, {}), 10007u * 5);
    EXPECT_LT(adapted_period(10007, 10, 1, {}), 10007u);
    EXPECT_EQ(adapted_period(1000, 0, 1, {.least = 500}), 501u);
}

namespace {

/// Writes SPE packets as the hardware does.
struct SpeWriter {
    std::vector<std::uint8_t> bytes;
    void put(std::initializer_list<unsigned> header, std::uint64_t payload, std::size_t size) {
        for (unsigned h : header)
            bytes.push_back(static_cast<std::uint8_t>(h));
        for (std::size_t i = 0; i < size; ++i)
            bytes.push_back(static_cast<std::uint8_t>(payload >> 8 * i));
    }
    void record(std::uint64_t address, bool store, std::uint64_t events, int source, bool timestamp) {
        put({0xb0}, 0x8000000000401234, 8);                  // address 0: the instruction
        put({0x65}, 77, 4);                                  // context
        put({0x49}, store ? 1 : 0, 1);                       // operation: load or store
        put({0x52}, events, 2);                              // events, two bytes
        put({0x99}, 10, 2);                                  // counter 1: issue latency
        put({0x98}, 222, 2);                                 // counter 0: total latency
        put({0xb2}, address | std::uint64_t{0x2a} << 56, 8); // address 2: data, with a tag
        if (source >= 0) put({0x43}, static_cast<std::uint64_t>(source), 1);
        if (timestamp)
            put({0x71}, 123456789, 8);
        else
            put({0x01}, 0, 0);
        while (bytes.size() % 64)
            bytes.push_back(0); // records are padded
    }
};

} // namespace

TEST(Spe, RecordsAreDecoded) {
    SpeWriter w;
    w.record(0x00007f1234567890, false, 0x2 | 1u << 3 | 1u << 9, 0x0e, true);
    w.record(0x00007f1234000008, true, 0x2, 0x00, false);
    w.put({0x48}, 0, 1); // another operation: no memory
    w.put({0x01}, 0, 0);
    std::vector<SpeRecord> records;
    SpeStatistics statistics;
    decode_spe(w.bytes, records, statistics);
    ASSERT_EQ(records.size(), 3u);
    EXPECT_EQ(statistics.malformed, 0u);
    EXPECT_EQ(records[0].address, 0x00007f1234567890u);
    EXPECT_TRUE(records[0].memory_operation);
    EXPECT_FALSE(records[0].store);
    EXPECT_EQ(records[0].total_latency, 222);
    EXPECT_TRUE(records[0].has_source);
    EXPECT_EQ(records[0].source, 0x0e);
    EXPECT_EQ(records[0].events, 0x2u | 1u << 3 | 1u << 9);
    EXPECT_TRUE(records[1].store);
    EXPECT_FALSE(records[2].memory_operation);
    EXPECT_FALSE(records[2].has_address);
}

TEST(Spe, ExtendedHeadersAndAlignment) {
    SpeWriter w;
    w.put({0x20, 0xb2}, 0x7000, 8); // extended, index 2: the same as the short form
    w.put({0x21, 0xb2}, 0x9000, 8); // index 10: something else
    w.put({0x49}, 0, 1);
    w.put({0x01}, 0, 0);
    w.put({0x23, 0x00}, 0, 0); // align to 16 bytes
    while (w.bytes.size() % 16)
        w.bytes.push_back(0xff);
    w.record(0x5000, false, 0, -1, true);
    std::vector<SpeRecord> records;
    SpeStatistics statistics;
    decode_spe(w.bytes, records, statistics);
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0].address, 0x7000u);
    EXPECT_EQ(records[1].address, 0x5000u);
    EXPECT_EQ(statistics.malformed, 0u);
}

TEST(Spe, WhatIsBrokenSpoilsItsRecordOnly) {
    SpeWriter w;
    w.record(0x1000, false, 0, -1, true);
    w.put({0xff}, 0, 0); // begins no packet
    w.record(0x2000, false, 0, -1, true);
    w.record(0x3000, false, 0, -1, true);
    const std::size_t whole = w.bytes.size();
    w.put({0xb2}, 0x4000, 8);
    w.put({0xb2}, 0x4000, 3); // cut off
    for (const std::size_t cut : {w.bytes.size(), whole + 9, whole + 3}) {
        std::vector<SpeRecord> records;
        SpeStatistics statistics;
        decode_spe(std::span(w.bytes).first(cut), records, statistics);
        ASSERT_EQ(records.size(), 2u) << cut;
        EXPECT_EQ(records[0].address, 0x1000u);
        EXPECT_EQ(records[1].address, 0x3000u);
        EXPECT_EQ(statistics.malformed, 2u);
    }
}

TEST(Spe, NoBytesMakeItReadOutside) {
    std::mt19937 random(99);
    for (int round = 0; round < 5000; ++round) {
        std::vector<std::uint8_t> bytes(random() % 200);
        for (auto& byte : bytes)
            byte = static_cast<std::uint8_t>(random() % 4 ? random() : 0x20 + random() % 4);
        std::vector<SpeRecord> records;
        SpeStatistics statistics;
        decode_spe(bytes, records, statistics);
        EXPECT_LE(records.size(), bytes.size());
    }
}

TEST(Spe, WhichRecordsWentBeyondTheCaches) {
    SpeRecord r;
    r.has_source = true;
    for (const auto& [source, beyond] : std::initializer_list<std::pair<int, bool>>{{0, false},
                                                                                    {8, false},
                                                                                    {9, false},
                                                                                    {10, false},
                                                                                    {11, false},
                                                                                    {12, false},
                                                                                    {13, true},
                                                                                    {14, true}}) {
        r.source = static_cast<std::uint16_t>(source);
        r.events = beyond ? 0 : spe_first_level_refill; // the source knows better
        EXPECT_EQ(spe_went_beyond_caches(r, true), beyond) << source;
    }
    r.source = 14;
    r.events = 0;
    EXPECT_FALSE(spe_went_beyond_caches(r, false)); // another implementation's 14 means nothing
    r.events = spe_first_level_refill;
    EXPECT_TRUE(spe_went_beyond_caches(r, false)); // no more is known
    r.events = spe_first_level_refill | spe_last_level_access;
    EXPECT_FALSE(spe_went_beyond_caches(r, false));
    r.events |= spe_last_level_miss;
    EXPECT_TRUE(spe_went_beyond_caches(r, false));
}

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

} // namespace

TEST(PmuSource, SamplesInWatchedMemoryBecomeReferences) {
    Tree tree("intel_ice_lake_server");
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
    Tree tree("intel_ice_lake_server");
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
        const Tree unpacked(tree);
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

namespace {

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

} // namespace

TEST(PmuSource, SpeRecordsBecomeReferencesOfTheCpuThatWroteThem) {
    const Tree tree("arm_neoverse_n1");
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
