#include "kernel/move_rows.hpp"

#include "base/pages.hpp"
#include "record/record.hpp"

#include <utility>

namespace homing {

void MoveRows::add(std::uint32_t area, std::uint64_t wanted, const Moves& moves, std::uint32_t iteration) {
    Untold& untold = areas_[area];
    untold.wanted += wanted;
    untold.moves += moves;
    if (untold.pace.next()) write(area, untold, iteration);
}

bool MoveRows::told(std::uint32_t area) const {
    const auto found = areas_.find(area);
    return found == areas_.end() || found->second.wanted == 0;
}

void MoveRows::write_rest(std::uint32_t iteration) {
    for (auto& [area, untold] : areas_)
        if (untold.wanted > 0) write(area, untold, iteration);
}

void MoveRows::write(std::uint32_t area, Untold& untold, std::uint32_t iteration) {
    const Moves moves = std::exchange(untold.moves, {});
    record::append(record::move_row{.area = area,
                                    .time = record::now(),
                                    .wanted = std::exchange(untold.wanted, 0),
                                    .moved = moves.moved,
                                    .refused = moves.refused,
                                    .bytes = moves.moved * page_bytes(),
                                    .seconds = moves.seconds,
                                    .longest_call_seconds = moves.longest_call,
                                    .calls = moves.calls,
                                    .iteration = iteration});
    for (const auto& [error, pages] : moves.errors)
        record::append(
            record::refusal_row{.area = area, .error = error, .pages = pages, .iteration = iteration});
}

} // namespace homing
