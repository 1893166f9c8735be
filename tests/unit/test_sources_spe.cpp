#include "pmu_test.hpp"
#include "sources/spe.hpp"

#include <random>

#include <gtest/gtest.h>

namespace homing::sources_spe_tests {
namespace {

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

} // namespace
} // namespace homing::sources_spe_tests
