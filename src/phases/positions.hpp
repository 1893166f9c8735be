// Which phase a call of record, replay or undo stands for: by its ordinal in the iteration. The recorded
// iteration has records 0..K-1, between which phases 0..K-2 lie; later iterations make as many calls of
// replay and undo, and the k-th of them stands where record k stood. Pure.
#pragma once

#include <cstddef>

namespace homing::replay {

class Positions {
  public:
    /// The program records; after a replay it begins anew. Returns whether it does.
    bool record() noexcept {
        const bool anew = replays_;
        if (anew) *this = {};
        ++records_;
        return anew;
    }
    std::size_t records() const noexcept { return records_; }
    /// Phases that were recorded: each between a record and the next.
    std::size_t phases() const noexcept { return records_ > 0 ? records_ - 1 : 0; }
    /// The recorded iteration is over: positions are those of its records.
    bool replays() const noexcept { return replays_; }

    static constexpr std::size_t no_phase = ~std::size_t{0};
    /// The phase that a call of replay moves pages for. no_phase: fewer than two records were made, or it
    /// stands behind the last phase.
    std::size_t replay() noexcept {
        if (phases() == 0) return no_phase;
        replays_ = true;
        const std::size_t position = step();
        return position < phases() ? position : no_phase;
    }
    /// A call of undo. It has a position where the iteration replays.
    void undo() noexcept {
        if (replays_) step();
    }
    /// The program says that the iteration has ended: whatever calls it had, the next one begins with the
    /// first position.
    void iteration_ended() noexcept { next_ = 0; }
    /// Position of the next call of replay or undo.
    std::size_t next() const noexcept { return next_; }

  private:
    std::size_t step() noexcept {
        const std::size_t position = next_;
        next_ = (next_ + 1) % records_;
        return position;
    }

    std::size_t records_ = 0;
    std::size_t next_ = 0;
    bool replays_ = false;
};

} // namespace homing::replay
