// A node for each granule of an area, where it is known: one byte each, in chunks that take memory as they
// come into use, and give it back where all of a chunk is at one node. An area that went to its owners is a
// few long runs: 16 bytes for 4,096 granules.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace homing {

class GranuleHomes {
  public:
    /// Begin anew, in an area of so many granules: nothing is known.
    void reset(std::uint64_t granules) {
        forget();
        chunks_.resize((granules + chunk - 1) / chunk);
    }
    bool has_room() const noexcept { return !chunks_.empty(); }

    /// The granules from `first` to before `end` are at this position.
    void set(std::uint64_t first, std::uint64_t end, int position) {
        fill(first, end, position, [](std::uint8_t) { return true; });
    }
    /// The same of those of which nothing is known.
    void set_unknown(std::uint64_t first, std::uint64_t end, int position) {
        fill(first, end, position, [](std::uint8_t known) { return known == 0; });
    }

    /// Position of the node, or -1: not known.
    int home(std::uint64_t granule) const noexcept {
        if (granule / chunk >= chunks_.size()) return -1;
        const Chunk& part = chunks_[granule / chunk];
        return (part.each ? (*part.each)[granule % chunk] : part.all) - 1;
    }

    /// Of how many granules it is known.
    std::uint64_t known() const noexcept { return known_; }

    /// Nothing is known any more, and there is no room.
    void forget() noexcept {
        chunks_.clear();
        known_ = 0;
    }

    /// Calls visit(granule, position) for those from `first` to before `end` of which it is known, ascending.
    template <class Visit> void for_each(std::uint64_t first, std::uint64_t end, Visit&& visit) const {
        end = std::min<std::uint64_t>(end, chunks_.size() * chunk);
        for (std::uint64_t next = first; first < end; first = next) {
            next = std::min(end, (first / chunk + 1) * chunk);
            const Chunk& part = chunks_[first / chunk];
            if (!part.each && part.all == 0) continue;
            for (std::uint64_t granule = first; granule < next; ++granule)
                if (const int position = home(granule); position >= 0) visit(granule, position);
        }
    }

    /// Chunks that have a byte for each granule: the memory, for tests.
    std::size_t detailed_chunks() const noexcept {
        return static_cast<std::size_t>(
            std::ranges::count_if(chunks_, [](const Chunk& part) { return part.each != nullptr; }));
    }

  private:
    static constexpr std::uint64_t chunk = 4096;
    using Each = std::array<std::uint8_t, chunk>; ///< position + 1, 0: not known
    struct Chunk {
        std::unique_ptr<Each> each; ///< null: all are the same
        std::uint8_t all = 0;
    };

    template <class Replaced>
    void fill(std::uint64_t first, std::uint64_t end, int position, Replaced&& replaced) {
        if (position < 0 || position >= 255) return;
        const auto value = static_cast<std::uint8_t>(position + 1);
        end = std::min<std::uint64_t>(end, chunks_.size() * chunk);
        for (std::uint64_t next = first; first < end; first = next) {
            next = std::min(end, (first / chunk + 1) * chunk);
            Chunk& part = chunks_[first / chunk];
            if (!part.each) {
                if (part.all == value || !replaced(part.all)) continue;
                if (next - first == chunk) {
                    known_ += part.all == 0 ? chunk : 0;
                    part.all = value;
                    continue;
                }
                part.each = std::make_unique<Each>();
                part.each->fill(part.all);
            }
            const auto from = part.each->begin() + static_cast<std::ptrdiff_t>(first % chunk);
            const auto to = from + static_cast<std::ptrdiff_t>(next - first);
            known_ += static_cast<std::uint64_t>(std::count(from, to, std::uint8_t{0}));
            std::replace_if(from, to, replaced, value);
            // Runs come ascending: the last part of a chunk tells whether all of it is one.
            if (next % chunk == 0 &&
                std::ranges::all_of(*part.each, [&](auto one) { return one == value; })) {
                part.each.reset();
                part.all = value;
            }
        }
    }

    std::vector<Chunk> chunks_;
    std::uint64_t known_ = 0;
};

} // namespace homing
