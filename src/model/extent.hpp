// Where an array lies in the pages that are looked at. Arrays seldom begin and end at borders of pages: an
// allocator's header goes before them, and pages that they share with others are left out. Owners have shares
// of the array, not of its pages: taken for each other, borders come out wrong by up to a page.
#pragma once

#include "base/invariant.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace homing::model {

/// Pages of one of several arrays in an area: its first page, which it may share with the one before, up to
/// the page in which it ends.
struct BlockPages {
    std::uint64_t first = 0, end = 0;
};

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

    /// The same with the arrays that lie in it, ascending and disjoint: as far as they are known.
    Extent with_blocks(std::vector<BlockPages> blocks) && {
        blocks_ = std::move(blocks);
        for (const BlockPages& block : blocks_)
            invariant(block.first < block.end && block.end <= pages_, "an array of the area has pages of it");
        return std::move(*this);
    }

    std::uint64_t pages() const noexcept { return pages_; }
    /// Does the array not begin and end with its pages?
    bool is_offset() const noexcept { return begin_ != 0 || size_ != static_cast<double>(pages_); }
    bool has_blocks() const noexcept { return !blocks_.empty(); }
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
    /// The middle of what a page has of the array in the area that it lies in, 0..1 of that. Where arrays
    /// begin within their pages is not known: in the middle. What lies between two is the former's end.
    double position_in_block(std::uint64_t page) const noexcept {
        const BlockPages* block = block_of(page);
        if (!block) return 0;
        const auto size = static_cast<double>(block->end - block->first);
        return std::min(static_cast<double>(page - block->first) / size, below_one);
    }
    /// The first page behind `page` whose middle does not lie before a position in the same array; where the
    /// next array begins at the latest.
    std::uint64_t first_behind_in_block(std::uint64_t page, double border) const noexcept {
        const auto next = std::ranges::upper_bound(blocks_, page, {}, &BlockPages::first);
        const std::uint64_t end = next == blocks_.end() ? pages_ : next->first; // behind `page`
        if (next == blocks_.begin()) return end;
        const BlockPages& block = *(next - 1);
        const double behind = std::ceil(border * static_cast<double>(block.end - block.first));
        return std::clamp(block.first + static_cast<std::uint64_t>(behind), page + 1, end);
    }

  private:
    const BlockPages* block_of(std::uint64_t page) const noexcept {
        const auto next = std::ranges::upper_bound(blocks_, page, {}, &BlockPages::first);
        return next == blocks_.begin() ? nullptr : &*(next - 1);
    }

    static constexpr double below_one = 1 - 1e-12; ///< the end is no block's

    std::uint64_t pages_;
    double begin_, size_;
    std::vector<BlockPages> blocks_;
};

} // namespace homing::model
