// The rows of moves and refusals in the record. Where pages move for as long as the program runs, rows are
// sums after a while: together they tell all that was moved.
#pragma once

#include "kernel/mover.hpp"
#include "record/row_pace.hpp"

#include <cstdint>
#include <map>

namespace homing {

class MoveRows {
  public:
    /// What became of so many base pages that were to move, of an area (its id).
    void add(std::uint32_t area, std::uint64_t wanted, const Moves& moves, std::uint32_t iteration);
    /// Is the newest move of this area in a row?
    bool told(std::uint32_t area) const;
    /// At the end: rows of what has none yet.
    void write_rest(std::uint32_t iteration);

  private:
    struct Untold {
        record::RowPace pace;
        std::uint64_t wanted = 0;
        Moves moves;
    };
    static void write(std::uint32_t area, Untold& untold, std::uint32_t iteration);

    std::map<std::uint32_t, Untold> areas_;
};

} // namespace homing
