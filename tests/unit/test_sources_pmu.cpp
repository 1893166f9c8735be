#include "pmu_test.hpp"
#include "sources/data_source.hpp"
#include "sources/pmu_events.hpp"
#include "sources/pmu_period.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <linux/perf_event.h>
#include <random>

namespace homing::sources_pmu_tests {
namespace {

const char* const devices = "bus/event_source/devices/";

TEST(PmuEvents, IceLakeServer) {
    const PmuDescription pmu = RecordedTree("intel_ice_lake_server").describe();
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
    const PmuDescription pmu = RecordedTree("intel_sapphire_rapids").describe();
    ASSERT_EQ(pmu.events.size(), 2u);
    EXPECT_EQ(pmu.events[0].sampler.config, 0x1cdu);
    EXPECT_TRUE(pmu.events[0].sampler.with_leader);
    EXPECT_EQ(pmu.events[0].sampler.leader_config, 0x8203u);
    EXPECT_EQ(pmu.events[1].sampler.config, 0x2cdu);
    EXPECT_FALSE(pmu.events[1].sampler.with_leader);
}

TEST(PmuEvents, HybridMachinesHaveTwoPmus) {
    const PmuDescription pmu = RecordedTree("intel_alder_lake_hybrid").describe();
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
    const PmuDescription pmu = RecordedTree("amd_zen4").describe();
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
    const PmuDescription pmu = RecordedTree("amd_zen3").describe();
    ASSERT_EQ(pmu.kind, PmuKind::ibs);
    EXPECT_EQ(pmu.events[0].sampler.config, std::uint64_t{1} << 19);
    EXPECT_EQ(pmu.events[0].sampler.config2, 0u);
    EXPECT_FALSE(pmu.events[0].sampler.exclude_kernel);
    EXPECT_EQ(pmu.events[0].sampler.period % 16, 0u);
}

TEST(PmuEvents, NeoverseN1) {
    RecordedTree tree("arm_neoverse_n1");
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
    EXPECT_EQ(RecordedTree("virtual_machine").describe().why_not,
              "no PMU in this machine (virtual machine?)");
    EXPECT_EQ(describe_pmu("/nowhere").why_not, "no PMU in this machine (virtual machine?)");
    RecordedTree without_pebs("intel_ice_lake_server"); // what some hypervisors show
    without_pebs.write(std::string(devices) + "cpu/caps/max_precise", "0");
    EXPECT_EQ(without_pebs.describe().why_not, "the PMU takes no precise samples here (virtual machine?)");
}

TEST(PmuEvents, WhatIsNotUnderstoodIsNotGuessed) {
    RecordedTree tree("intel_ice_lake_server");
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

} // namespace
} // namespace homing::sources_pmu_tests
