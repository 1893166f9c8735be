// Reference counters by software: who accessed which page since it was scanned last, and how often it has
// been moved to and fro. Pure.
#pragma once

#include "base/nodes.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace homing::counters {

class PageCounts {
  public:
    /// A page that was to go back to where it came from so often, or that was refused so often, stays.
    static constexpr std::uint8_t most_returns = 2;

    explicit PageCounts(int nodes) : nodes_(static_cast<std::size_t>(std::max(1, nodes))) {}

    /// The area has so many granules now. Where that is another number, what was known is of other pages.
    void size_area(std::uint32_t area, std::uint64_t granules) {
        Area& one = areas_[area];
        if (one.granules == granules) return;
        one = {granules, {}, {}};
    }
    template <class IsThere> void forget_gone(IsThere&& is_there) {
        std::erase_if(areas_, [&](const auto& one) { return !is_there(one.first); });
    }

    /// Of an area whose size is known; others are not counted.
    void add(std::uint32_t area, std::uint64_t granule, policy::Node node, std::uint64_t weight) {
        const auto at = areas_.find(area);
        if (at == areas_.end() || granule >= at->second.granules) return;
        if (node < 0 || static_cast<std::size_t>(node) >= nodes_) return;
        Area& one = at->second;
        if (one.counts.empty()) one.counts.resize(one.granules * nodes_);
        std::uint32_t& count = one.counts[granule * nodes_ + static_cast<std::size_t>(node)];
        count = static_cast<std::uint32_t>(std::min<std::uint64_t>(count + weight, ~std::uint32_t{0}));
    }
    /// Counts by node; empty where the page was not accessed.
    std::span<const std::uint32_t> counts(std::uint32_t area, std::uint64_t granule) const {
        const auto at = areas_.find(area);
        if (at == areas_.end() || at->second.counts.empty() || granule >= at->second.granules) return {};
        const std::span<const std::uint32_t> found(at->second.counts.data() + granule * nodes_, nodes_);
        return std::ranges::all_of(found, [](std::uint32_t one) { return one == 0; })
                   ? std::span<const std::uint32_t>()
                   : found;
    }
    /// It was scanned: counting begins anew.
    void scanned(std::uint32_t area, std::uint64_t granule) {
        const auto at = areas_.find(area);
        if (at == areas_.end() || at->second.counts.empty() || granule >= at->second.granules) return;
        std::fill_n(at->second.counts.begin() + static_cast<std::ptrdiff_t>(granule * nodes_), nodes_, 0u);
    }

    bool is_frozen(std::uint32_t area, std::uint64_t granule) const {
        const auto at = areas_.find(area);
        return at != areas_.end() && granule < at->second.past.size() &&
               at->second.past[granule].returns >= most_returns;
    }
    /// It has moved from one node to another. Returns whether it has just frozen.
    bool moved(std::uint32_t area, std::uint64_t granule, policy::Node from, policy::Node to) {
        Past* past = past_of(area, granule);
        if (!past) return false;
        const bool returned = past->from == to;
        past->from = from;
        return returned && ++past->returns == most_returns;
    }
    /// The kernel would not move it.
    bool refused(std::uint32_t area, std::uint64_t granule) {
        Past* past = past_of(area, granule);
        return past && past->returns < most_returns && ++past->returns == most_returns;
    }

  private:
    struct Past {
        policy::Node from = policy::unknown_node; ///< where it was before its newest move
        std::uint8_t returns = 0;
    };
    struct Area {
        std::uint64_t granules = 0;
        std::vector<std::uint32_t> counts; ///< page by page; nothing where none was accessed yet
        std::vector<Past> past;            ///< nothing where none was moved yet
    };
    Past* past_of(std::uint32_t area, std::uint64_t granule) {
        const auto at = areas_.find(area);
        if (at == areas_.end() || granule >= at->second.granules) return nullptr;
        if (at->second.past.empty()) at->second.past.resize(at->second.granules);
        return &at->second.past[granule];
    }

    std::size_t nodes_;
    std::map<std::uint32_t, Area> areas_;
};

} // namespace homing::counters
