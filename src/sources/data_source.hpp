// Where a sampled access was served, from perf's data source (union perf_mem_data_src in linux/perf_event.h).
#pragma once

#include <cstdint>
#include <linux/perf_event.h>

namespace homing {

enum class Served : std::uint8_t {
    unknown,
    cache,  ///< caches of the own socket: the page's home had no part in it
    beyond, ///< memory, or another socket's cache
};

namespace data_source {

constexpr std::uint64_t field(std::uint64_t value, unsigned low, unsigned bits) noexcept {
    return value >> low & ((std::uint64_t{1} << bits) - 1);
}
constexpr std::uint64_t operation(std::uint64_t value) noexcept { return field(value, 0, 5); }
constexpr std::uint64_t level(std::uint64_t value) noexcept { return field(value, 5, 14); }
constexpr std::uint64_t level_number(std::uint64_t value) noexcept { return field(value, 33, 4); }
constexpr bool remote(std::uint64_t value) noexcept { return field(value, 37, 1) != 0; }
constexpr std::uint64_t hops(std::uint64_t value) noexcept { return field(value, 43, 3); }

} // namespace data_source

/// A line fill buffer holds a miss on its way, and stores tell no more than a miss of the first level:
/// unknown.
constexpr Served served(std::uint64_t value) noexcept {
    constexpr std::uint64_t cxl = 0x09, any_cache = 0x0b, ram = 0x0d, persistent = 0x0e; // PERF_MEM_LVLNUM_*
    constexpr std::uint64_t own_socket_hops = 1;                                         // PERF_MEM_HOPS_0
    constexpr std::uint64_t memory =
        PERF_MEM_LVL_LOC_RAM | PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2 | PERF_MEM_LVL_REM_CCE2;
    constexpr std::uint64_t caches =
        PERF_MEM_LVL_L1 | PERF_MEM_LVL_L2 | PERF_MEM_LVL_L3 | PERF_MEM_LVL_REM_CCE1;
    const std::uint64_t level = data_source::level(value);
    const std::uint64_t number = data_source::level_number(value);
    if ((level & memory) != 0 || number == ram || number == persistent || number == cxl)
        return Served::beyond;
    if (data_source::remote(value)) {
        // AMD calls the neighbouring core complex of the same socket remote, zero hops away.
        return number == any_cache && data_source::hops(value) == own_socket_hops ? Served::cache
                                                                                  : Served::beyond;
    }
    const bool hit = (level & PERF_MEM_LVL_HIT) != 0;
    const bool miss = (level & PERF_MEM_LVL_MISS) != 0;
    if (miss)
        return (level & PERF_MEM_LVL_L3) != 0 || number == PERF_MEM_LVLNUM_L3 ? Served::beyond
                                                                              : Served::unknown;
    if (hit && (level & caches) != 0) return Served::cache;
    if (number >= PERF_MEM_LVLNUM_L1 && number <= PERF_MEM_LVLNUM_L4) return Served::cache;
    return Served::unknown;
}

constexpr bool is_store(std::uint64_t value) noexcept {
    return (data_source::operation(value) & PERF_MEM_OP_STORE) != 0;
}

} // namespace homing
