// Decoder of Arm's Statistical Profiling Extension (Arm Architecture Reference Manual, "The Statistical
// Profiling Extension", sample record format): the hardware writes a record of packets for each sampled
// operation.
//
// A packet is a header byte (two for the extended format) and a payload of 1, 2, 4 or 8 bytes, little endian,
// whose size is in bits 5-4 of the header. A record ends with an end packet or a timestamp.
#pragma once

#include "base/pages.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace homing {

/// What a record tells of a load or store.
struct SpeRecord {
    Address address = 0; ///< virtual, without tag
    bool has_address = false;
    bool memory_operation = false;
    bool store = false;
    std::uint64_t events = 0; ///< bits as in the events packet
    bool has_source = false;
    std::uint16_t source = 0;        ///< data source packet, in the encoding of the implementation
    std::uint16_t total_latency = 0; ///< cycles
};

/// Bits of SpeRecord::events.
inline constexpr std::uint64_t spe_first_level_refill = std::uint64_t{1} << 3;
inline constexpr std::uint64_t spe_last_level_access = std::uint64_t{1} << 8;
inline constexpr std::uint64_t spe_last_level_miss = std::uint64_t{1} << 9;
inline constexpr std::uint64_t spe_remote_access = std::uint64_t{1} << 10;

struct SpeStatistics {
    std::uint64_t records = 0;
    std::uint64_t malformed = 0; ///< bytes that begin no packet, and records cut short
};

/// Append the complete records in `bytes`. A byte that begins no packet spoils the record it stands in;
/// decoding goes on behind it. The kernel never divides a record between two pieces of the AUX buffer.
void decode_spe(std::span<const std::uint8_t> bytes, std::vector<SpeRecord>& records,
                SpeStatistics& statistics);

/// Did this load or store go beyond the caches of its socket, as far as can be told? `neoverse`: the data
/// source is in the encoding of Arm's Neoverse cores; otherwise only the events are known.
bool spe_went_beyond_caches(const SpeRecord& record, bool neoverse) noexcept;

} // namespace homing
