// A node for each granule of an area, where it is known: one byte each, in chunks that take memory as they
// come into use.
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
        if (granule / chunk >= chunks_.size() || !chunks_[granule / chunk]) return -1;
        return (*chunks_[granule / chunk])[granule % chunk] - 1;
    }

    /// Of how many granules it is known.
    std::uint64_t known() const noexcept { return known_; }

    /// Nothing is known any more, and there is no room.
    void forget() noexcept {
        chunks_.clear();
        known_ = 0;
    }

  private:
    static constexpr std::uint64_t chunk = 4096;
    using Chunk = std::array<std::uint8_t, chunk>; ///< position + 1, 0: not known

    template <class Replaced>
    void fill(std::uint64_t first, std::uint64_t end, int position, Replaced&& replaced) {
        if (position < 0 || position >= 255) return;
        end = std::min<std::uint64_t>(end, chunks_.size() * chunk);
        for (std::uint64_t next = first; first < end; first = next) {
            next = std::min(end, (first / chunk + 1) * chunk);
            std::unique_ptr<Chunk>& part = chunks_[first / chunk];
            if (!part) part = std::make_unique<Chunk>();
            const auto from = part->begin() + static_cast<std::ptrdiff_t>(first % chunk);
            const auto to = from + static_cast<std::ptrdiff_t>(next - first);
            known_ += static_cast<std::uint64_t>(std::count(from, to, std::uint8_t{0}));
            std::replace_if(from, to, replaced, static_cast<std::uint8_t>(position + 1));
        }
    }

    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::uint64_t known_ = 0;
};

} // namespace homing
