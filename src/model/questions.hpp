// What to look at next: areas and pages by what a touch of them is expected to bring.
//
// A touch of an area with n touches so far brings some 1/(n + 1) of what knowing all its owners would bring:
// its traffic times the share of it that would become local (engine/judgement). The best are asked; where
// none brings more than it costs, there is nothing to ask, and the engine rests. A few touches go to areas
// that are believed to be known, for a confident error is never asked about again.
#pragma once

#include "model/belief.hpp"
#include "model/verdict.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace homing::model {

/// An area, as far as it matters for what to ask.
struct Subject {
    std::uint64_t pages = 0;
    double traffic_ns = 0; ///< what all touches of an iteration cost more as remote ones: elapsed nanoseconds
    double ignorance = 1;  ///< share of its touches that knowing the owners would make local
    double touches = 0;    ///< that tell of its owners so far
};

/// Expected nanoseconds an iteration that one more touch of the area brings.
double worth_of_touch(const Subject& subject);

/// How many touches each area should get of `budget`: the most worth first, none where they bring nothing.
/// One in tuning::check_interval goes by traffic, whatever is believed.
std::vector<std::uint32_t> share_out(std::span<const Subject> subjects, std::uint32_t budget,
                                     std::uint64_t seed);

/// Pages of an area to ask for, `count` of them, of which `first` were asked for before: those of an even
/// sequence at first; then mostly where owners are least known, of even parts of the area and of the gaps
/// between pages that different nodes used, which the belief need not know yet. A page may come twice. belief
/// may be null. Deterministic in (first, count, seed). Cost: some more than tuning::most_looks prospects.
std::vector<std::uint64_t> pages_to_ask(const Belief* belief, const Users& users, std::uint64_t pages,
                                        std::uint64_t first, std::uint32_t count, std::uint64_t seed);

} // namespace homing::model
