// Where blocks of memory lie, as few runs of neighbours: what a table of limited length can say of it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace homing {

/// Neighbouring blocks [first, end) on one node.
struct HomeRun {
    std::size_t first;
    std::size_t end;
    int node;

    bool operator==(const HomeRun&) const = default;
};

/// The runs of blocks on these nodes, in order and without a gap; none where no node is known. A block whose
/// node is not known (negative) goes with the one before it, at the begin with the first that is known. Where
/// that makes more than `most` (>= 1) runs, groups of 2, 4, 8, ... blocks go to the node that has most of
/// them, the lowest of those that have as many.
std::vector<HomeRun> runs_by_home(std::span<const int> nodes, std::size_t most);

} // namespace homing
