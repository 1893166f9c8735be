// Some of the granules that a move left where they are, because too little was seen of those on their node,
// or something that contradicts: they are looked at in the next rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace homing {

class LeftBehind {
  public:
    /// Few enough for a few rounds of samples. More are thinned out evenly.
    static constexpr std::size_t most = 32;

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
    const std::vector<std::uint64_t>& granules() const noexcept { return granules_; }

  private:
    std::vector<std::uint64_t> granules_;
    std::uint64_t seen_ = 0;
    std::uint64_t stride_ = 1;
};

} // namespace homing
