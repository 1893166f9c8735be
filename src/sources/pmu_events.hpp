// The precise memory events of this machine's PMU, as perf attributes, read from sysfs
// (/sys/bus/event_source/devices, ABI/testing/sysfs-bus-event_source-devices-*): nothing is known by CPU
// model.
//
//  - Intel PEBS: cpu (or cpu_core and cpu_atom) with events mem-loads and mem-stores; load latency above a
//  threshold.
//    From Sapphire Rapids mem-loads works only in a group led by mem-loads-aux.
//  - AMD IBS: ibs_op tags every n-th micro-op of any kind; with l3missonly (Zen 4) the hardware drops those
//  that hit.
//  - Arm SPE: arm_spe_0 writes packets into an AUX buffer (spe.hpp).
#pragma once

#include "kernel/kernel.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace homing {

enum class PmuKind : std::uint8_t { none, pebs, ibs, spe };

struct PmuEvent {
    std::string name;     ///< "cpu/mem-loads", for messages
    SamplerEvent sampler; ///< with its first period
    bool stores = false;  ///< only stores; otherwise loads, or what the sample itself says
    std::uint64_t least_period = 1;
    std::uint64_t period_unit = 1; ///< the period must be a multiple
};

struct PmuDescription {
    PmuKind kind = PmuKind::none;
    std::vector<PmuEvent> events;
    std::string why_not;           ///< not empty: nothing can be sampled, for this reason
    bool neoverse_sources = false; ///< SPE: data source packets are in the encoding of Arm's Neoverse cores
};

/// Loads faster than this are not sampled where the hardware can leave them out: beyond the second-level
/// caches of today's cores, below the last-level cache. Cycles.
inline constexpr unsigned latency_threshold = 64;

PmuDescription describe_pmu(const std::string& sysfs);

/// Bits of perf_event_attr that a term of an event stands for: "config1:0-15", "config:0-7,32-35".
struct FormatField {
    struct Bits {
        unsigned low, high;
    };
    int word = 0; ///< 0..2: config, config1, config2
    std::vector<Bits> bits;
};
bool parse_format(std::string_view text, FormatField& field);

/// Lay `value` over the field's bits, lowest first. False where it does not fit.
bool put_field(const FormatField& field, std::uint64_t value, SamplerEvent& event);

/// Encode a comma-separated list of terms ("event=0xcd,umask=0x1,ldlat=3") by the format files in
/// `directory`/format; a term without value is 1. False, with the reason in `problem`, where a term is
/// unknown or does not fit.
bool encode_terms(const std::string& directory, std::string_view terms, SamplerEvent& event,
                  std::string& problem);

} // namespace homing
