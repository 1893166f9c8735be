// The standard distributions of data-parallel languages over elements or pages: block, cyclic, cyclic(k),
// gen_block and * (Chapman, Patil, Prabhakar 2001, section 2; HPF), and the four initial placements of the
// UPMlib paper.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/nodes.hpp"

namespace homing::policy {

enum class DistributionKind : std::uint8_t { block, cyclic, gen_block, star };

// A one-dimensional distribution of indices 0..extent-1 over owners 0..owners-1 (threads or nodes).
class Distribution {
  public:
    // block: ceil(extent / owners) consecutive indices each; the last owners may get fewer or none.
    static Distribution block(std::uint64_t extent, int owners);
    // cyclic(k): blocks of k >= 1 indices dealt out in turn.
    static Distribution cyclic(std::uint64_t extent, int owners, std::uint64_t k = 1);
    // gen_block: sizes[o] consecutive indices for owner o; they must add up to at least extent (extra is cut
    // off).
    static Distribution gen_block(std::uint64_t extent, std::span<const std::uint64_t> sizes);
    // *: not distributed; every owner has all of it, owner() is 0.
    static Distribution star(std::uint64_t extent, int owners);

    DistributionKind kind() const { return kind_; }
    std::uint64_t extent() const { return extent_; }
    int owners() const { return owners_; }

    // index < extent().
    int owner(std::uint64_t index) const;
    // The end of the stretch of indices with the same owner that index lies in.
    std::uint64_t stretch_end(std::uint64_t index) const;
    // Number of indices that an owner has.
    std::uint64_t local_size(int owner) const;
    // Position of an index among those of its owner, counted from 0.
    std::uint64_t local_index(std::uint64_t index) const;
    // Inverse: the index at a position of an owner. position < local_size(owner).
    std::uint64_t global_index(int owner, std::uint64_t position) const;
    // The owner's indices as ranges in ascending order.
    std::vector<PageRange> local_ranges(int owner) const;

    // The page-granular distribution that a distribution of elements means: the owner of the element in the
    // middle of the page. element_size and page_size in bytes, page counted from the page in which element 0
    // lies at offset.
    int page_owner(std::uint64_t page, std::uint64_t element_size, std::uint64_t page_size,
                   std::uint64_t offset = 0) const;

  private:
    Distribution(DistributionKind kind, std::uint64_t extent, int owners, std::uint64_t width)
        : kind_(kind), extent_(extent), owners_(owners), width_(width) {}

    DistributionKind kind_;
    std::uint64_t extent_;
    int owners_;
    std::uint64_t width_;               // block, cyclic: indices in a block
    std::vector<std::uint64_t> bounds_; // gen_block: owners + 1 ascending bounds
};

// Initial placements (Nikolopoulos et al. 2000, section 3.1); first touch needs no function. `targets` must
// not be empty.
Node round_robin_node(std::uint64_t page, NodeSet targets);
// Uniform, and a function of seed and page only.
Node random_node(std::uint64_t page, NodeSet targets, std::uint64_t seed);

} // namespace homing::policy
