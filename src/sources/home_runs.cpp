#include "sources/home_runs.hpp"

#include "base/invariant.hpp"

#include <algorithm>

namespace homing {
namespace {

/// The node of most of these blocks. They are few, or their nodes are: counted by sorting.
int node_of_most(std::vector<int> nodes) {
    std::sort(nodes.begin(), nodes.end());
    int most = nodes.front();
    std::size_t held = 0;
    for (auto begin = nodes.begin(); begin != nodes.end();) {
        const auto end = std::upper_bound(begin, nodes.end(), *begin);
        if (const auto count = static_cast<std::size_t>(end - begin); count > held) {
            held = count;
            most = *begin;
        }
        begin = end;
    }
    return most;
}

} // namespace

std::vector<HomeRun> runs_by_home(std::span<const int> nodes, std::size_t most) {
    invariant(most >= 1, "a table holds a run at least");
    std::vector<HomeRun> runs;
    const auto known = std::find_if(nodes.begin(), nodes.end(), [](int node) { return node >= 0; });
    if (known == nodes.end()) return runs;
    std::vector<int> filled(nodes.begin(), nodes.end());
    int before = *known;
    for (int& node : filled)
        before = node = node >= 0 ? node : before;
    for (std::size_t group = 1;; group *= 2) {
        runs.clear();
        for (std::size_t first = 0; first < filled.size() && runs.size() <= most; first += group) {
            const std::size_t end = std::min(first + group, filled.size());
            const int node = group == 1 ? filled[first]
                                        : node_of_most({filled.begin() + static_cast<std::ptrdiff_t>(first),
                                                        filled.begin() + static_cast<std::ptrdiff_t>(end)});
            if (!runs.empty() && runs.back().node == node)
                runs.back().end = end;
            else
                runs.push_back({first, end, node});
        }
        if (runs.size() <= most) return runs;
    }
}

} // namespace homing
