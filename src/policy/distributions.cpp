#include "policy/distributions.hpp"

#include "base/random.hpp"

#include <algorithm>
#include <cassert>

namespace homing::policy {

Distribution Distribution::block(std::uint64_t extent, int owners) {
    owners = std::max(owners, 1);
    const auto count = static_cast<std::uint64_t>(owners);
    const std::uint64_t width = std::max<std::uint64_t>(extent / count + (extent % count != 0), 1);
    return {DistributionKind::block, extent, owners, width};
}

Distribution Distribution::cyclic(std::uint64_t extent, int owners, std::uint64_t k) {
    return {DistributionKind::cyclic, extent, std::max(owners, 1), std::max<std::uint64_t>(k, 1)};
}

Distribution Distribution::gen_block(std::uint64_t extent, std::span<const std::uint64_t> sizes) {
    Distribution result{DistributionKind::gen_block, extent,
                        static_cast<int>(std::max<std::size_t>(sizes.size(), 1)), 1};
    result.bounds_.reserve(sizes.size() + 1);
    result.bounds_.push_back(0);
    for (const std::uint64_t size : sizes)
        result.bounds_.push_back(std::min(extent, result.bounds_.back() + std::min(size, extent)));
    assert(result.bounds_.back() == extent && "gen_block sizes must cover the extent");
    // In a release build the last owner takes what is missing, so that owner() stays total.
    if (result.bounds_.size() == 1) result.bounds_.push_back(extent);
    result.bounds_.back() = extent;
    return result;
}

Distribution Distribution::star(std::uint64_t extent, int owners) {
    return {DistributionKind::star, extent, std::max(owners, 1), std::max<std::uint64_t>(extent, 1)};
}

int Distribution::owner(std::uint64_t index) const {
    switch (kind_) {
    case DistributionKind::block:
        return static_cast<int>(index / width_);
    case DistributionKind::cyclic:
        return static_cast<int>(index / width_ % static_cast<std::uint64_t>(owners_));
    case DistributionKind::gen_block: {
        // Empty owners share a bound with their neighbour: the last bound not above the index belongs to the
        // owner.
        const auto after = std::upper_bound(bounds_.begin(), bounds_.end() - 1, index);
        return static_cast<int>(after - bounds_.begin()) - 1;
    }
    case DistributionKind::star:
        break;
    }
    return 0;
}

std::uint64_t Distribution::stretch_end(std::uint64_t index) const {
    switch (kind_) {
    case DistributionKind::block:
        return std::min(extent_, (index / width_ + 1) * width_);
    case DistributionKind::cyclic:
        return owners_ == 1 ? extent_ : std::min(extent_, (index / width_ + 1) * width_);
    case DistributionKind::gen_block:
        return bounds_[static_cast<std::size_t>(owner(index)) + 1];
    case DistributionKind::star:
        break;
    }
    return extent_;
}

std::uint64_t Distribution::local_size(int owner) const {
    const auto o = static_cast<std::uint64_t>(owner);
    switch (kind_) {
    case DistributionKind::block: {
        const std::uint64_t begin = std::min(extent_, o * width_);
        return std::min(extent_ - begin, width_);
    }
    case DistributionKind::cyclic: {
        const std::uint64_t round = width_ * static_cast<std::uint64_t>(owners_);
        const std::uint64_t rest = extent_ % round;
        const std::uint64_t before = std::min(rest, o * width_);
        return extent_ / round * width_ + std::min(rest - before, width_);
    }
    case DistributionKind::gen_block:
        return bounds_[static_cast<std::size_t>(owner) + 1] - bounds_[static_cast<std::size_t>(owner)];
    case DistributionKind::star:
        break;
    }
    return extent_;
}

std::uint64_t Distribution::local_index(std::uint64_t index) const {
    switch (kind_) {
    case DistributionKind::block:
        return index % width_;
    case DistributionKind::cyclic:
        return index / (width_ * static_cast<std::uint64_t>(owners_)) * width_ + index % width_;
    case DistributionKind::gen_block:
        return index - bounds_[static_cast<std::size_t>(owner(index))];
    case DistributionKind::star:
        break;
    }
    return index;
}

std::uint64_t Distribution::global_index(int owner, std::uint64_t position) const {
    const auto o = static_cast<std::uint64_t>(owner);
    switch (kind_) {
    case DistributionKind::block:
        return o * width_ + position;
    case DistributionKind::cyclic:
        return (position / width_ * static_cast<std::uint64_t>(owners_) + o) * width_ + position % width_;
    case DistributionKind::gen_block:
        return bounds_[static_cast<std::size_t>(owner)] + position;
    case DistributionKind::star:
        break;
    }
    return position;
}

std::vector<PageRange> Distribution::local_ranges(int owner) const {
    std::vector<PageRange> ranges;
    const std::uint64_t size = local_size(owner);
    for (std::uint64_t position = 0; position < size;) {
        const std::uint64_t first = global_index(owner, position);
        const std::uint64_t end = kind_ == DistributionKind::star ? extent_ : stretch_end(first);
        ranges.push_back({first, end});
        position += end - first;
    }
    return ranges;
}

int Distribution::page_owner(std::uint64_t page, std::uint64_t element_size, std::uint64_t page_size,
                             std::uint64_t offset) const {
    if (extent_ == 0 || element_size == 0) return 0;
    const std::uint64_t middle = page * page_size + page_size / 2;
    const std::uint64_t element = middle > offset ? (middle - offset) / element_size : 0;
    return owner(std::min(element, extent_ - 1));
}

Node round_robin_node(std::uint64_t page, NodeSet targets) { return nth_node(targets, page); }

Node random_node(std::uint64_t page, NodeSet targets, std::uint64_t seed) {
    const std::uint64_t z = mixed(seed + (page + 1) * splitmix_step); // a hash of (seed, page)
    const auto count = static_cast<std::uint64_t>(size_of(targets));
    if (count == 0) return unknown_node;
    return nth_node(targets, ((z >> 32) * count) >> 32);
}

} // namespace homing::policy
