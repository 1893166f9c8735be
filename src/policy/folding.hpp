// The circle of a folded period: which node owns which part of it, and the period that fits the samples best.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "policy/nodes.hpp"
#include "policy/ownership.hpp"

namespace homing::policy {

// A sampled page and the node that touched it most.
struct Sighting {
    std::uint64_t page;
    Node node;
    double surprise; // what it takes to tell the node where there is no pattern (nats)
};

inline double middle(const Sighting& sighting) { return static_cast<double>(sighting.page) + 0.5; }

// Position on the circle, in [0, period).
double phase_of(double position, double origin, double period);
Node node_at(const Cycle& cycle, double phase);
// Within a tenth of the mean piece of a border.
bool near_border(const Cycle& cycle, double phase);

// Fits cycles to chosen sightings (by index).
class Folding {
  public:
    using Chosen = std::vector<std::size_t>;

    Folding(std::span<const Sighting> sightings, int nodes, double noise)
        : all_(sightings), nodes_(nodes), noise_(noise) {}

    // Cuts the circle of cycle.period into pieces of one owner. False: there is one owner only.
    bool fold(Cycle& cycle, const Chosen& chosen) const;
    // The same, if the new table explains no fewer sightings. The seam of the circle goes near the anchor, so
    // that differences of the period shift far sightings, not near ones.
    void refold(Cycle& cycle, const Chosen& chosen, double anchor) const;
    // How many sightings the cycle explains with another period.
    std::size_t matches(const Cycle& cycle, double period, const Chosen& chosen) const;
    void refit(Cycle& cycle, const Chosen& chosen, double radius, double slack, double resolution) const;
    void climb(Cycle& cycle, const Chosen& chosen, double reach) const;
    void simplify(Cycle& cycle, const Chosen& chosen) const;

  private:
    std::size_t adjust_borders(Cycle& cycle, const Chosen& chosen) const;

    std::span<const Sighting> all_;
    int nodes_;
    double noise_;
};

} // namespace homing::policy
