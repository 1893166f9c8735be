// Where an array lies in the pages that are looked at. Arrays seldom begin and end at borders of pages: an
// allocator's header goes before them, and pages that they share with others are left out. Owners have shares
// of the array, not of its pages: taken for each other, borders come out wrong by up to a page.
#pragma once

#include "base/invariant.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace homing::model {

class Extent {
  public:
    /// An array that fills its pages.
    Extent(std::uint64_t pages) : Extent(pages, 0, static_cast<double>(pages)) {}
    /// begin: of the array, in pages from the first one's beginning, negative where it begins before that.
    /// size: of the array, in pages. Each page has a part of it.
    Extent(std::uint64_t pages, double begin, double size) : pages_(pages), begin_(begin), size_(size) {
        invariant(pages > 0, "an area has a page");
        invariant(begin < 1 && begin + size > static_cast<double>(pages) - 1,
                  "the first page and the last one have parts of the array");
    }

    std::uint64_t pages() const noexcept { return pages_; }
    double size() const noexcept { return size_; }

    /// The middle of what a page has of the array, 0..1 of it.
    double position(std::uint64_t page) const noexcept {
        const auto at = static_cast<double>(page);
        const double first = std::max(at, begin_), end = std::min(at + 1, begin_ + size_);
        return std::clamp(((first + end) / 2 - begin_) / size_, 0.0, below_one);
    }
    /// The first page whose middle does not lie before a position.
    std::uint64_t first_behind(double border) const noexcept {
        const double first = std::ceil(border * size_ + begin_ - .5);
        return std::min(pages_, static_cast<std::uint64_t>(std::max(first, 0.0)));
    }

  private:
    static constexpr double below_one = 1 - 1e-12; ///< the end is no block's

    std::uint64_t pages_;
    double begin_, size_;
};

} // namespace homing::model
