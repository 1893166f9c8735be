// Finds a periodic pattern of owners in scattered samples: a periodogram over windows that grow around the
// densest samples, folding, and tracking of the period while the window is doubled. Used by ownership.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "policy/folding.hpp"
#include "policy/nodes.hpp"
#include "policy/ownership.hpp"

namespace homing::policy {

struct FoundCycle {
    Cycle cycle;
    PageRange sampled;         // first and one after the last sampled page that it explains
    std::uint32_t samples = 0; // inside `sampled`
    std::uint32_t matches = 0; // of those
};

// How much better a cycle explains its samples than what is known without it (nats); at most 0: not at all.
using Gain = std::function<double(const FoundCycle&)>;

// Sightings by page. The search goes on where a cycle gains nothing. hint: a period to track instead of
// searching for one (0: none); beside: it is that of a cycle beside these sightings. Deterministic. A few
// milliseconds where there is no period.
std::optional<FoundCycle> find_cycle(std::span<const Sighting> sightings, int nodes, double noise,
                                     double least_agreement, const Gain& gain, double hint = 0,
                                     bool beside = false);

} // namespace homing::policy
