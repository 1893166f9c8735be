// The trace of a phase: who accessed which page between two snapshots of the reference counters
// (Nikolopoulos et al. 2000, section 2.2). It is kept as the difference that the plan is made from: what was
// counted since the snapshot before. Pages that the phase did not access are not in it.
#pragma once

#include "base/nodes.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace homing::counters {

/// A page: the granule of an area, by numbers.
struct PageId {
    std::uint32_t area = 0;
    std::uint64_t granule = 0;
    friend auto operator<=>(const PageId&, const PageId&) = default;
};

class Trace {
  public:
    explicit Trace(int nodes) : nodes_(static_cast<std::size_t>(nodes)) {}

    /// So many references of the page by a node. Nodes that do not exist are not counted.
    void add(PageId page, policy::Node node, std::uint64_t weight = 1) {
        if (node < 0 || static_cast<std::size_t>(node) >= nodes_) return;
        const auto [at, is_new] = rows_.try_emplace(page, counts_.size());
        if (is_new) counts_.resize(counts_.size() + nodes_, 0);
        counts_[at->second + static_cast<std::size_t>(node)] += weight;
    }

    std::size_t pages() const noexcept { return rows_.size(); }
    bool empty() const noexcept { return rows_.empty(); }

    /// visit(page, counts by node), ascending.
    template <class Visit> void for_each(Visit&& visit) const {
        for (const auto& [page, row] : rows_)
            visit(page, std::span<const std::uint64_t>(counts_.data() + row, nodes_));
    }

  private:
    std::size_t nodes_;
    std::map<PageId, std::size_t> rows_;
    std::vector<std::uint64_t> counts_; ///< row by row
};

} // namespace homing::counters
