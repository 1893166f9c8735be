// Reference counters of one area: granule x node, over a bounded sample of the granules. The page reference
// counters of UPMlib (Nikolopoulos et al. 2000) were hardware's and complete; here a row exists only for
// granules that were seen, and when the rows run out a uniform sub-sample of the granules is kept, so that
// the memory does not grow with the area. Nor does an area have any rows before something of it was seen:
// programs have thousands of arrays, most of them seldom used.
//
// The sub-sample is chosen by a hash of the granule's index: a granule is kept while hash < threshold, and
// each time the rows are full the threshold is halved. Whether a granule stays depends on nothing that was
// observed, so the kept granules are an unbiased sample of those seen, however often each was referenced.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace homing {

class ReferenceCounters {
  public:
    static constexpr std::size_t default_rows = 1u << 16;
    static constexpr std::uint32_t saturation = std::numeric_limits<std::uint32_t>::max();

    /// Begin anew: an area of `granules` granules, counts for nodes 0..nodes-1, at most `rows` rows (never
    /// more than granules), which take memory as they come into use. `seed` chooses the sub-sample.
    void reset(std::uint64_t granules, int nodes, std::size_t rows = default_rows, std::uint64_t seed = 0);

    /// std::uint32_t `weight` references of a granule by a node. Counts stop at `saturation`. False: nothing
    /// was counted, because the granule or node does not exist, or the granule is not in the sub-sample
    /// (totals count it even so). May allocate, and throw where there is no memory: not for signal handlers.
    bool add(std::uint64_t granule, int node, std::uint32_t weight = 1);

    /// Forget granules [first, end): their memory moved or went away. Totals keep them.
    void forget(std::uint64_t first, std::uint64_t end) noexcept;

    int nodes() const noexcept { return nodes_; }
    std::uint64_t granules() const noexcept { return granules_; }
    /// Rows in use: granules of the sub-sample that were seen.
    std::size_t size() const noexcept { return used_; }
    bool empty() const noexcept { return used_ == 0; }
    std::size_t capacity() const noexcept { return capacity_; }
    /// References by each node, those of granules outside the sub-sample included.
    std::span<const std::uint64_t> totals() const noexcept { return totals_; }
    /// 0 for a granule without a row.
    std::uint32_t count(std::uint64_t granule, int node) const noexcept;
    std::size_t memory_bytes() const noexcept;

    /// Visit the rows in ascending order of granule: visit(granule, span of nodes() counts).
    template <class Visit> void for_each_sorted(Visit&& visit) {
        sort_rows();
        for (std::size_t i = 0; i < used_; ++i)
            visit(keys_[order_[i]], std::span<const std::uint32_t>(row(order_[i]), width()));
    }

  private:
    static constexpr std::uint32_t no_row = ~std::uint32_t{0};

    std::size_t width() const noexcept { return static_cast<std::size_t>(nodes_); }
    const std::uint32_t* row(std::size_t index) const noexcept { return counts_.data() + index * width(); }
    std::uint32_t* row(std::size_t index) noexcept { return counts_.data() + index * width(); }
    std::uint64_t hash(std::uint64_t granule) const noexcept;
    bool kept(std::uint64_t hash) const noexcept { return halvings_ == 0 || hash >> (64 - halvings_) == 0; }
    /// The slot that holds the granule, or the empty one where it belongs.
    std::size_t slot_of(std::uint64_t granule, std::uint64_t hash) const noexcept;
    template <class Keep> void compact(Keep&& keep) noexcept;
    void sort_rows();
    void grow();
    void fill_slots() noexcept;

    std::uint64_t granules_ = 0;
    int nodes_ = 0;
    std::size_t capacity_ = 0;
    std::size_t used_ = 0;
    int halvings_ = 0; ///< threshold = 2^64 / 2^halvings
    std::uint64_t seed_ = 0;
    std::vector<std::uint32_t> slots_;  ///< open addressing, a power of two, at most half full
    std::vector<std::uint64_t> keys_;   ///< granule of each row there is room for
    std::vector<std::uint32_t> counts_; ///< row-major: as many rows x nodes
    std::vector<std::uint32_t> order_;  ///< room for sorting
    std::vector<std::uint64_t> totals_;
};

} // namespace homing
