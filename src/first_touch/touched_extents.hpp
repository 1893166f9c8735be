// First touches put together: which code and thread touched which pieces of memory first.
#pragma once

#include "kernel/kernel.hpp"

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace homing {

/// Memory that one place in the code and one thread touched first, as far as samples tell: [begin, end) from
/// the first to behind the last page that was seen.
struct TouchedExtent {
    Address code = 0;
    std::int32_t thread = 0;
    std::int32_t node = -1; ///< where the thread ran at the first of them
    Range range;
    std::uint64_t samples = 0;
    std::uint64_t faults = 0; ///< that the samples stand for
    double first = 0;         ///< time of the first sample and of the last one
    double last = 0;
};

/// Feed it in the order of time.
class TouchedExtents {
  public:
    /// Samples of one code and thread this close are of one piece: some four samples of 4 KiB pages or of
    /// huge ones (FaultSamples::period).
    static constexpr std::uint64_t joined_bytes = std::uint64_t{1} << 20;
    static constexpr std::uint64_t joined_bytes_of_huge_pages = std::uint64_t{24} << 20;
    /// Pieces that are kept: 128 bytes of the record each.
    static constexpr std::size_t most = 4096;
    /// The kernel's balancing makes a page fault again, which no sample tells from a first touch. It comes to
    /// a page at the earliest after its scan_period_min (1 s), where the memory around was touched so long
    /// ago.
    static constexpr double seconds_of_one_touch = 1;
    static constexpr std::uint64_t around = std::uint64_t{2} << 20;

    struct Options {
        bool huge = false;        ///< most of the memory comes in huge pages
        bool hint_faults = false; ///< the kernel's balancing is at work
    };
    explicit TouchedExtents(Options options) : options_(options) {}

    /// `code`: the place that is told. stands_for: faults.
    void add(Address address, Address code, std::int32_t thread, std::int32_t node, double time,
             std::uint32_t stands_for);
    /// By code, thread and address.
    std::vector<TouchedExtent> extents() const;
    /// Faults that are in none, because there would have been too many pieces.
    std::uint64_t left_out() const noexcept { return left_out_; }

  private:
    bool is_first(Address address, double time);

    Options options_;
    std::map<std::pair<Address, std::int32_t>, std::map<Address, TouchedExtent>> extents_; ///< by begin
    std::size_t count_ = 0;
    std::uint64_t left_out_ = 0;
    std::unordered_map<Address, double> first_; ///< touch of each stretch (`around`)
};

} // namespace homing
