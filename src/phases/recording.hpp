// What is recorded of one phase, and what follows from it for the pages of a plan.
//
// Where misses are counted they are the plan's (Nikolopoulos et al. 2000, section 2.2). Where they are not, a
// page's few touches say little of who accesses it most: a neighbour may have come first. Then the phase's
// touches make a belief of its own (model/belief.hpp), and what the nodes are expected to access of a page,
// by it, stands in place of counts.
#pragma once

#include "counters/trace.hpp"
#include "engine/engine.hpp"
#include "model/touch.hpp"

#include <map>
#include <vector>

namespace homing::replay {

using counters::PageId;
using counters::Trace;

struct Recording {
    explicit Recording(int nodes) : trace(nodes) {}

    /// A reference of the phase, of a granule of an area that is watched.
    void add(Engine& engine, const WatchedArea& area, const Reference& reference);

    /// What was seen.
    Trace trace;
    /// By area, threads by slots of the TeamTable; none where misses are counted.
    std::map<std::uint32_t, std::vector<model::Touch>> touches;
    /// No window had all pages: those that were not seen may have been accessed, too.
    bool is_sample = false;
};

/// Beliefs (of an area in a phase) that are made for the plans of one recording: some tenths of a millisecond
/// each. Phases beyond are planned by what was seen.
inline constexpr std::size_t most_phase_beliefs = 128;

/// The trace that the plan of a phase is made from. Shares of a page are in thousandths there, where they are
/// expected. left: beliefs that may still be made.
Trace expected_trace(Engine& engine, const Recording& recording, std::size_t& left);

} // namespace homing::replay
