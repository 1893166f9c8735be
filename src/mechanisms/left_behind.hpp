// Some of the granules that a move left where they are, because too little was seen of those on their node,
// or something that contradicts: they are looked at in the next rounds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace homing {

class LeftBehind {
  public:
    /// Few enough for a few rounds of samples. More are thinned out evenly.
    static constexpr std::size_t most = 32;
    /// Rounds in which they are looked at.
    static constexpr int rounds = 4;

    void add(std::uint64_t granule) {
        if (seen_++ % stride_ != 0) return;
        if (granules_.size() == most) {
            for (std::size_t i = 0; i < most / 2; ++i)
                granules_[i] = granules_[2 * i];
            granules_.resize(most / 2);
            stride_ *= 2;
            if ((seen_ - 1) % stride_ != 0) return;
        }
        granules_.push_back(granule);
    }

    /// Those that are to be looked at in the round that begins: is_known(granule) says which were seen.
    template <class Known> const std::vector<std::uint64_t>& begin_round(Known&& is_known) {
        if (rounds_left_ > 0)
            --rounds_left_;
        else
            granules_.clear();
        std::erase_if(granules_, is_known);
        return granules_;
    }
    bool contains(std::uint64_t granule) const noexcept {
        return std::ranges::find(granules_, granule) != granules_.end();
    }

  private:
    std::vector<std::uint64_t> granules_;
    std::uint64_t seen_ = 0;
    std::uint64_t stride_ = 1;
    int rounds_left_ = rounds;
};

} // namespace homing
