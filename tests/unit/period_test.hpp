// Sequences of region ids, and what a finder makes of them: for the tests of the outer iteration.
#pragma once

#include "model/iteration.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace homing::phases::testing {

using Sequence = std::vector<std::uint32_t>;

inline void append(Sequence& to, const Sequence& part, int times = 1) {
    for (int i = 0; i < times; ++i)
        to.insert(to.end(), part.begin(), part.end());
}

inline Sequence range(std::uint32_t first, std::uint32_t count) {
    Sequence ids(count);
    for (std::uint32_t i = 0; i < count; ++i)
        ids[i] = first + i;
    return ids;
}

struct Trace {
    std::vector<std::size_t> begins;                       // indices of regions that begin an iteration
    std::vector<std::pair<std::size_t, Step>> transitions; // found, upgraded, broken
};

template <typename Finder> Trace follow(Finder& finder, const Sequence& ids) {
    Trace trace;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const Step step = finder.push(ids[i]);
        if (step.iteration_begins) trace.begins.push_back(i);
        if (step.event != PeriodEvent::none && step.event != PeriodEvent::iteration_boundary)
            trace.transitions.emplace_back(i, step);
    }
    return trace;
}

} // namespace homing::phases::testing
