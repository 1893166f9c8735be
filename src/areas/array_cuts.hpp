// Where one allocation is cut into arrays: programs take a pool and lay several arrays into it, each of which
// the team shares out as BLOCK. The pool as a whole then goes through the threads once for each array. Its
// borders between two owners are many, but a few cuts explain all of them.
//
// Found by the touches alone: a cut lies where the order of the threads begins anew, and the best set of cuts
// is that which least touches contradict, each cut being worth some of them (dynamic programming over the
// places where a touch is followed by one of an earlier thread). Each cut then comes to where the borders on
// both sides of it, which move with it, fit best.
//
// Pure. Whether the arrays explain the touches better than anything else is the belief's question.
#pragma once

#include "model/extent.hpp"
#include "model/touch.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace homing {

/// The arrays of an area of so many pages that a team of so many threads touches, ascending, without gaps
/// between them; empty where a single one explains the touches as well. Cost: cubic in the places where the
/// order of the threads begins anew, in the worst case half of the touches (160 touches: 0.2 ms).
std::vector<model::Block> arrays_by_touches(std::span<const model::Touch> touches, std::uint64_t pages,
                                            int threads);

/// Log of the prior odds of so many arrays against one: each cut may lie at any page.
double log_prior_of_arrays(std::size_t arrays, std::uint64_t pages);

} // namespace homing
