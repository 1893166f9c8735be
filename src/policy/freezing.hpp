// Freezing of pages that ping-pong (page-level false sharing): a page that was sent back to the node it came
// from `most_returns` times stays where it is. Kept as ranges in one sorted table of fixed capacity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/nodes.hpp"

namespace homing::policy {

struct FreezingOptions {
    int most_returns = 2;      // moves back to the node left by the move before (A->B, B->A is one)
    std::uint32_t memory = 16; // rounds after which an old move no longer makes a return
    std::uint32_t thaw_after =
        8; // rounds in a row that a frozen page is wanted on one and the same other node
    std::size_t capacity = 1024; // ranges remembered; the oldest unfrozen ones are forgotten first
};

class Freezer {
  public:
    explicit Freezer(const FreezingOptions& options = {});

    // Pages moved in this round (a counter of the caller that never falls). O(ranges) at worst, O(log ranges)
    // when the pages are known or lie after all known ones. Allocates only in the constructor.
    void moved(PageRange pages, Node from, Node to, std::uint32_t round);

    bool frozen(std::uint64_t page) const;
    std::uint64_t frozen_pages() const;
    // The first stretch of pages in `range` that is not frozen; empty (first == end) if all are.
    PageRange first_movable(PageRange range) const;

    // A frozen range is wanted on `node` in this round (call once a round): after thaw_after rounds in a row
    // with one and the same node it thaws, since then the owner changed for good. A round without the call,
    // or with another node, starts the count again.
    void wanted(PageRange pages, Node node, std::uint32_t round);

    // History of pages that no longer exist, or were placed anew.
    void forget(PageRange pages);

    std::size_t ranges() const { return entries_.size(); }

  private:
    struct Entry {
        std::uint64_t first, end;
        std::uint32_t round;      // of the last move
        std::uint32_t want_round; // of the last wanted()
        Node from, to, want;
        std::uint16_t returns, want_streak;
        bool frozen;
        bool same_history(const Entry& other) const;
    };
    std::size_t lower(std::uint64_t page) const; // first entry that ends after page
    void split_at(std::uint64_t page);
    void insert(std::size_t index, const Entry& entry);
    void join_around(std::uint64_t first, std::uint64_t end);
    void make_room();

    FreezingOptions options_;
    std::vector<Entry> entries_; // by page, disjoint
};

} // namespace homing::policy
