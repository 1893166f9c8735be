// Finds a periodic pattern of owners in scattered samples: a periodogram over windows that grow around the
// densest samples, folding, and tracking of the period while the window is doubled. Used by ownership.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "policy/nodes.hpp"
#include "policy/ownership.hpp"

namespace homing::policy {

// A sampled page and the node that touched it most.
struct Sighting {
    std::uint64_t page;
    Node node;
};

struct FoundCycle {
    Cycle cycle;
    PageRange sampled;         // first and one after the last sampled page that it explains
    std::uint32_t samples = 0; // inside `sampled`
    std::uint32_t matches = 0; // of those
};

// Sightings by page. `accept` says whether a cycle explains its samples better than what is known without it;
// the search goes on where it does not. Deterministic. A few milliseconds where there is no period.
std::optional<FoundCycle> find_cycle(std::span<const Sighting> sightings, int nodes, double noise,
                                     double least_agreement,
                                     const std::function<bool(const FoundCycle&)>& accept, double hint = 0);

} // namespace homing::policy
