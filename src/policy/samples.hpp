// What was seen of an area: for each sampled page, how often each node touched it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "policy/nodes.hpp"

namespace homing::policy {

// What a write weighs (references/windows.cpp): a single one counts so many touches.
inline constexpr std::uint32_t touches_of_write = 3;

class Samples {
  public:
    explicit Samples(int nodes);

    // Room for this many pages, so that adding allocates nothing.
    void reserve(std::size_t pages);
    // Adds touches of a page in any order of pages. A page may be added again: its counts then add up (at the
    // next settle()). counts.size() must be nodes().
    void add(std::uint64_t page, std::span<const std::uint16_t> counts);
    void add(std::uint64_t page, Node node, std::uint16_t touches = 1);

    // Sorts by page and merges the entries of one page. Every reader below needs a settled object. O(S log
    // S).
    void settle();
    bool settled() const { return settled_; }

    int nodes() const { return nodes_; }
    std::size_t size() const { return pages_.size(); }
    bool empty() const { return pages_.empty(); }
    std::uint64_t page(std::size_t index) const { return pages_[index]; }
    std::span<const std::uint16_t> counts(std::size_t index) const {
        return {counts_.data() + index * static_cast<std::size_t>(nodes_), static_cast<std::size_t>(nodes_)};
    }
    // The node with the most touches (the lowest on a tie), and the share of all touches that it has, in (0,
    // 1].
    Node dominant(std::size_t index) const;
    double share(std::size_t index) const;
    std::uint32_t touches(std::size_t index) const;
    // A single look may have shown it all: a read or a write.
    bool seen_once(std::size_t index) const;
    // Index of a page, or size() if it was not sampled. O(log S).
    std::size_t find(std::uint64_t page) const;

    // Takes in newer samples: a page that was sampled again keeps the newer counts only.
    void replace_by(const Samples& newer);
    // Takes in further samples of an unchanged pattern: counts add up.
    void merge(const Samples& further);
    void forget(PageRange range);
    void clear();

  private:
    int nodes_;
    bool settled_ = true;
    std::vector<std::uint64_t> pages_;
    std::vector<std::uint16_t> counts_; // row-major: size() x nodes()
};

} // namespace homing::policy
