// Which of many rows of one kind are written, so that no record grows without bound however long a run is.
#pragma once

#include <bit>
#include <cstdint>

namespace homing::record {

class RowPace {
  public:
    /// Each of so many has a row; of more, eight while their number doubles.
    static constexpr std::uint64_t all = 2000;

    /// Has the next one a row?
    bool next() noexcept {
        ++count_;
        const std::uint64_t step = std::bit_floor(count_) / 8; // a power of two
        return count_ <= all || (count_ & (step - 1)) == 0;
    }

  private:
    std::uint64_t count_ = 0;
};

} // namespace homing::record
