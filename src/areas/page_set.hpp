// A set of pages of an area: those that exist, as far as is known. Kept as ranges, and counted, so that the
// pages can be numbered through without the holes between them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/nodes.hpp"

namespace homing {

class PageSet {
  public:
    PageSet() = default;
    // All pages of an area.
    static PageSet whole(std::uint64_t pages) { return PageSet({{0, pages}}); }
    // Ascending ranges that do not overlap; empty ones are left out, neighbours joined.
    explicit PageSet(const std::vector<policy::PageRange>& ranges);

    std::uint64_t size() const { return pieces_.empty() ? 0 : pieces_.back().before + pieces_.back().size(); }
    bool empty() const { return pieces_.empty(); }
    bool contains(std::uint64_t page) const;
    // The pages of the set that lie before this page. O(log ranges).
    std::uint64_t below(std::uint64_t page) const;
    std::uint64_t count(policy::PageRange within) const { return below(within.end) - below(within.first); }
    // The page that so many of the set lie before; index < size(). O(log ranges).
    std::uint64_t at(std::uint64_t index) const;
    // From first to last, holes included.
    policy::PageRange span() const {
        return pieces_.empty() ? policy::PageRange{}
                               : policy::PageRange{pieces_.front().first, pieces_.back().end};
    }

    // Calls visit(policy::PageRange) for the parts of the set that lie within a range, in page order.
    template <typename Visit> void for_each(policy::PageRange within, Visit&& visit) const {
        for (auto piece = first_beyond(within.first); piece != pieces_.end() && piece->first < within.end;
             ++piece)
            visit(policy::PageRange{std::max(piece->first, within.first), std::min(piece->end, within.end)});
    }

  private:
    struct Piece : policy::PageRange {
        std::uint64_t before = 0; // pages of the set
    };
    // The first piece that does not end before the page or with it.
    std::vector<Piece>::const_iterator first_beyond(std::uint64_t page) const {
        return std::upper_bound(pieces_.begin(), pieces_.end(), page,
                                [](std::uint64_t value, const Piece& piece) { return value < piece.end; });
    }

    std::vector<Piece> pieces_;
};

} // namespace homing
