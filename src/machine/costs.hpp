// What accesses and moves cost here, and where that is known from: a stated or measured costs file (TOML),
// else the machine's distance table with assumptions that are said aloud.
#pragma once

#include "base/costs.hpp"
#include "machine/machine.hpp"

#include <cstdint>
#include <string>

namespace homing {

struct StatedCosts {
    policy::Costs costs;
    std::uint64_t cache_bytes = 0; ///< last-level cache of a node, key cache_kib; 0: not stated
    std::string source; ///< in words, for the record: "measured (FILE)", "assumed from distances", ...
};

/// Costs from a TOML file with the keys local_ns, remote_ns, move_call_us, move_page_us and, optionally,
/// cache_kib and touch_us. An empty path, or a file that cannot be read or is wrong (said by
/// record::message), gives costs_from_distances().
StatedCosts find_costs(const std::string& path, const Machine& machine);

/// What is wrong with such a file (which key, and what is expected), or empty: then `stated` has its costs.
std::string read_costs(const std::string& path, StatedCosts& stated);

/// Assumed: local 90 ns, remote 90 ns times distance / 10 (mean over pairs of target nodes), 50 us a
/// call, 1.5 us a page.
StatedCosts costs_from_distances(const Machine& machine);

/// The costs as a costs file has them, on one line: "local_ns = 90, remote_ns = 180, ...". Readers of records
/// show them.
std::string cost_values(const policy::Costs& costs);

} // namespace homing
