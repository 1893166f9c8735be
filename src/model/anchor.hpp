// The outer iteration of programs whose regions repeat irregularly. Pure, as model/period.hpp.
#pragma once

#include "model/period.hpp"

namespace homing::phases {

// Irregular repetition (adaptive codes: inner loops of varying length). Finds a short sequence of regions (a
// k-gram, k <= 4) that recurs, where the sets of regions between its occurrences are alike (mean Jaccard
// similarity >= 0.85) and each holds most of the regions in use (so that the outermost cycle is taken). An
// iteration begins at the region that completes the k-gram. The search runs at sparse points only: at 128,
// 256, ... window regions, then once every window.
class AnchorFinder {
  public:
    static constexpr std::uint32_t window = 2048;
    static constexpr int longest_gram = 4;

    Step push(std::uint32_t id);

    bool found() const { return gram_length_ > 0; }
    // Position of the newest region in its iteration.
    std::uint32_t since_anchor() const { return since_anchor_; }
    // Regions between two occurrences: the mean over the window in which it was found.
    double mean_gap() const { return mean_gap_; }
    std::uint64_t stable_for() const { return iterations_; }
    void reset();

  private:
    static constexpr int most_evaluated = 48;
    using IdSet = std::array<std::uint64_t, 4>; // ids hashed to 256 bits
    struct Gram {
        std::uint32_t count, first, last; // ends of the first and last occurrence in the window
        std::uint64_t gap_squares;
        int length;
    };
    struct Rating {
        double score, mean_gap;
        std::uint32_t longest_gap;
    };
    bool search();
    void count_grams(int length, std::uint32_t size);
    Rating rate(const Gram& gram, std::uint32_t size, int ids) const;
    bool same_gram(std::uint32_t end, std::uint32_t other_end, int length) const;
    bool at_anchor() const;
    std::uint32_t at(std::uint32_t index) const { return ring_[(oldest_ + index) % window]; }

    std::array<std::uint32_t, window> ring_;
    std::uint32_t oldest_ = 0; // index in ring_ of the oldest id
    std::uint32_t size_ = 0;   // ids in ring_
    std::uint64_t pushed_ = 0; // since the last reset or loss
    std::uint64_t next_search_ = first_search;
    static constexpr std::uint32_t first_search = 128;
    std::array<std::uint32_t, longest_gram> gram_;
    int gram_length_ = 0;
    std::uint32_t since_anchor_ = 0;
    std::uint32_t last_gap_ = 0;
    std::uint32_t longest_gap_ = 0;
    double mean_gap_ = 0;
    std::uint64_t iterations_ = 0;
    int unlike_ = 0;
    IdSet set_{}, previous_{};
    // Scratch of search().
    std::array<std::uint32_t, window> ids_; // the window, oldest first
    std::array<std::uint8_t, window> bit_;  // dense small number of each id
    std::array<std::uint16_t, 2 * window> slots_;
    std::array<Gram, window> grams_;
    std::uint32_t gram_count_ = 0;
};

} // namespace homing::phases
