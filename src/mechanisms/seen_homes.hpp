// Where the granules of an area were when the kernel was last asked, so that those already sent home are not
// asked about again at each move.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace homing {

class SeenHomes {
  public:
    /// What was seen is believed for so many rounds: others may move pages, too.
    static constexpr std::uint32_t believed_rounds = 32;

    /// A new round (a counter that never falls), in an area of so many granules. `placements`: how often the
    /// program had pages placed otherwise so far (Engine::placements).
    void begin_round(std::uint32_t round, std::uint32_t placements, std::uint64_t granules) {
        if (!chunks_.empty() && round - since_ < believed_rounds && placements == placements_) return;
        forget();
        since_ = round;
        placements_ = placements;
        chunks_.resize((granules + chunk - 1) / chunk);
    }

    /// The granules from `first` to before `end` were at this position.
    void saw(std::uint64_t first, std::uint64_t end, int position) {
        if (position < 0 || position >= 255) return;
        end = std::min<std::uint64_t>(end, chunks_.size() * chunk);
        for (std::uint64_t next = first; first < end; first = next) {
            next = std::min(end, (first / chunk + 1) * chunk);
            std::unique_ptr<Chunk>& part = chunks_[first / chunk];
            if (!part) part = std::make_unique<Chunk>();
            const auto from = part->begin() + first % chunk;
            const auto to = from + static_cast<std::ptrdiff_t>(next - first);
            known_ += static_cast<std::uint64_t>(std::count(from, to, std::uint8_t{0}));
            std::fill(from, to, static_cast<std::uint8_t>(position + 1));
        }
    }

    /// Position of the node, or -1: not known.
    int home(std::uint64_t granule) const noexcept {
        if (granule / chunk >= chunks_.size() || !chunks_[granule / chunk]) return -1;
        return (*chunks_[granule / chunk])[granule % chunk] - 1;
    }

    /// Of how many granules it is known.
    std::uint64_t known() const noexcept { return known_; }

    /// Pages were moved by somebody else.
    void forget() noexcept {
        chunks_.clear();
        known_ = 0;
    }

  private:
    static constexpr std::uint64_t chunk = 4096;
    using Chunk = std::array<std::uint8_t, chunk>; ///< position + 1, 0: not known
    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::uint64_t known_ = 0;
    std::uint32_t since_ = 0;
    std::uint32_t placements_ = 0;
};

} // namespace homing
