// Where an array lies in the pages that are looked at. Arrays seldom begin and end at borders of pages: an
// allocator's header goes before them, and pages that they share with others are left out. Owners have shares
// of the array, not of its pages: taken for each other, borders come out wrong by up to a page.
#pragma once

#include "base/invariant.hpp"
#include "model/touch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace homing::model {

/// Where one of several arrays in an area begins, in pages from the area's first one, and its size in pages.
struct Block {
    double begin = 0, size = 0;
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

    /// Of an array that the program aligned to pages within what it has allocated: it begins and ends with
    /// the first and the last whole page. (The pages at the ends then have nothing of it, or all but
    /// nothing.)
    Extent aligned() const {
        const double rounding = 4 * std::numeric_limits<double>::epsilon() * static_cast<double>(pages_);
        const double nearly_one = 1 - std::max(1e-9, rounding);
        const double begin = std::min(std::ceil(begin_), nearly_one);
        const double least = static_cast<double>(pages_) - nearly_one;
        return {pages_, begin, std::max(std::floor(begin_ + size_), least) - begin};
    }

    /// The same with the arrays that lie in it, ascending and disjoint: as far as they are known.
    Extent with_blocks(std::vector<Block> blocks) && {
        blocks_ = std::move(blocks);
        for (const Block& block : blocks_)
            invariant(block.begin >= 0 && block.size > 0 && block.begin < static_cast<double>(pages_),
                      "an array of the area has pages of it");
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
    /// The place of any byte, 0..1 of the array. at: in pages from the area's first one.
    double place(double at) const noexcept { return std::clamp((at - begin_) / size_, 0.0, below_one); }
    /// The place of a touch, 0..1 of the array: of its byte where that is known, else of its page.
    double position(const Touch& touch) const noexcept {
        if (touch.within < 0) return position(touch.page);
        return place(touch.at());
    }
    std::size_t blocks() const noexcept { return blocks_.size(); }
    /// Which of the arrays in the area a place (in pages) lies in; blocks() more than a page behind one.
    std::size_t block_at(double at) const noexcept {
        const auto next = behind(at);
        if (next == blocks_.begin() || at >= (next - 1)->begin + (next - 1)->size + 1) return blocks_.size();
        return static_cast<std::size_t>(next - blocks_.begin()) - 1;
    }
    /// The first page behind `page` whose middle does not lie before a position.
    std::uint64_t first_behind(std::uint64_t page, double border) const noexcept {
        return std::max(page + 1, page_of_middle(border * size_ + begin_));
    }
    /// The place of a page's middle in that of the arrays in the area that it lies in, 0..1 of that; the same
    /// of a touch. What lies between two is the former's end.
    double position_in_block(std::uint64_t page) const noexcept {
        return position_in_block(static_cast<double>(page) + .5);
    }
    double position_in_block(const Touch& touch) const noexcept { return position_in_block(touch.at()); }
    /// The first page behind `page` whose middle does not lie before a position in the same array, or lies in
    /// the next one.
    std::uint64_t first_behind_in_block(std::uint64_t page, double border) const noexcept {
        const auto next = behind(static_cast<double>(page) + .5);
        const std::uint64_t end = next == blocks_.end() ? pages_ : page_of_middle(next->begin);
        if (next == blocks_.begin()) return end;
        const Block& block = *(next - 1);
        return std::clamp(page_of_middle(block.begin + border * block.size), page + 1, end);
    }

  private:
    std::vector<Block>::const_iterator behind(double at) const noexcept {
        return std::ranges::upper_bound(blocks_, at, {}, &Block::begin);
    }
    double position_in_block(double at) const noexcept {
        const auto next = behind(at);
        if (next == blocks_.begin()) return 0;
        return std::min((at - (next - 1)->begin) / (next - 1)->size, below_one);
    }
    /// The first page whose middle is not before a place.
    std::uint64_t page_of_middle(double at) const noexcept {
        return std::min(pages_, static_cast<std::uint64_t>(std::max(std::ceil(at - .5), 0.0)));
    }

    static constexpr double below_one = 1 - 1e-12; ///< the end is no block's

    std::uint64_t pages_;
    double begin_, size_;
    std::vector<Block> blocks_;
};

} // namespace homing::model
