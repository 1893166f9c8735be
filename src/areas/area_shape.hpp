// What an area is to the model: which areas are alike, where its arrays lie in its pages, and who used which
// page.
#pragma once

#include "areas/watched_area.hpp"
#include "model/belief.hpp"
#include "model/extent.hpp"

#include <cstdint>

namespace homing {

/// Areas of one size: arrays of one grid, whoever allocated them.
std::uint64_t size_kind(const WatchedArea& area);
/// Areas of one allocation site, whatever their size.
std::uint64_t site_kind(const WatchedArea& area);

/// Where the array lies in those of its granules that exist, or the arrays, for a team of so many threads;
/// where they have holes, or small blocks share them, that is not known.
model::Extent extent_of(const WatchedArea& area, int threads);

/// Who touched which existing granule last, as pages of the belief.
model::Users users_of(const AreaBelief& learnt, const PageSet& there);

SparsePrior sparse(const model::Prior& prior, const model::Formulas& formulas);

} // namespace homing
