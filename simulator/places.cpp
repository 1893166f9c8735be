#include "places.hpp"

#include <algorithm>

namespace homing::simulator {
namespace {

/// The place so many steps behind another one, round and round in the partition.
std::size_t step(const Position& partition, std::size_t from, std::size_t steps) noexcept {
    return partition.first + (from - partition.first + steps) % partition.count;
}

/// More threads than places. libgomp: equal shares first, then the rest one by one from the first place on.
/// libomp: places with one thread more lie evenly between the others. (The place of each thread, counted from
/// the primary's.)
std::size_t shared_place_gcc(std::size_t places, std::size_t team, std::size_t number) noexcept {
    const std::size_t share = team / places;
    return number < share * places ? number / share : number - share * places;
}

std::vector<std::size_t> shared_places_llvm(std::size_t places, std::size_t team) {
    const std::size_t share = team / places;
    std::size_t rest = team % places;
    const std::size_t gap = rest > 0 ? places / rest : places;
    std::vector<std::size_t> found;
    std::size_t since = gap;
    for (std::size_t place = 0; found.size() < team; ++place) {
        const bool more = rest > 0 && since == gap;
        found.insert(found.end(), share + (more ? 1 : 0), place % places);
        since = more ? 1 : since + 1;
        rest -= more ? 1 : 0;
    }
    found.resize(team);
    return found;
}

void spread_gcc(Position primary, std::vector<Position>& team) noexcept {
    const std::size_t each = primary.count / team.size();
    const std::size_t longer = primary.count % team.size(); // the first ones have a place more
    const std::size_t offset = primary.place - primary.first;
    const std::size_t own =
        offset < longer * (each + 1) ? offset / (each + 1) : longer + (offset - longer * (each + 1)) / each;
    for (std::size_t number = 0; number < team.size(); ++number) {
        const std::size_t part = (own + number) % team.size();
        const std::size_t first = primary.first + part * each + std::min(part, longer);
        team[number] = {first, each + (part < longer ? 1 : 0), number == 0 ? primary.place : first};
    }
}

/// All places of the machine: parts of (places + 1) / threads, rounded down at both ends.
void spread_all_llvm(Position primary, std::vector<Position>& team) noexcept {
    const double each = static_cast<double>(primary.count + 1) / static_cast<double>(team.size());
    double at = static_cast<double>(primary.place);
    for (Position& one : team) {
        auto first = static_cast<std::size_t>(at);
        auto end = static_cast<std::size_t>(at + each);
        if (first >= primary.count) {
            first -= primary.count;
            end -= primary.count;
        }
        first = std::min(first, primary.count - 1);
        end = std::clamp(end, first + 1, primary.count);
        one = {first, end - first, first};
        at += each;
    }
}

/// A part of them (an inner team): longer parts lie evenly between the others.
void spread_part_llvm(Position primary, std::vector<Position>& team) noexcept {
    const std::size_t each = primary.count / team.size();
    std::size_t rest = primary.count % team.size();
    const std::size_t gap = rest > 0 ? team.size() / rest : 1;
    std::size_t since = gap;
    std::size_t place = primary.place;
    for (Position& one : team) {
        const bool more = rest > 0 && since == gap;
        // A part that would go round ends with the partition.
        const std::size_t room = primary.first + primary.count - place;
        one = {place, std::min(each + (more ? 1 : 0), room), place};
        place = step(primary, place, each + (more ? 1 : 0));
        since = more ? 1 : since + 1;
        rest -= more ? 1 : 0;
    }
}

} // namespace

std::vector<Position> positions_of(Runtime runtime, Binding binding, Position primary, std::size_t places,
                                   std::size_t team) {
    std::vector<Position> found(std::max<std::size_t>(team, 1), primary);
    if (team <= 1 || binding == Binding::primary) return found;
    if (binding == Binding::even) {
        for (std::size_t number = 0; number < team; ++number) {
            const std::size_t first = number * primary.count / team;
            const std::size_t end = team > primary.count ? first + 1 : (number + 1) * primary.count / team;
            found[number] = {primary.first + first, end - first, primary.first + first};
        }
        return found;
    }
    if (binding == Binding::turns) {
        for (std::size_t number = 0; number < team; ++number)
            found[number].place = step(primary, primary.place, number);
        return found;
    }
    if (team <= primary.count && binding == Binding::spread) {
        if (runtime == Runtime::gcc)
            spread_gcc(primary, found);
        else if (primary.count == places)
            spread_all_llvm(primary, found);
        else
            spread_part_llvm(primary, found);
        return found;
    }
    const std::vector<std::size_t> shared = team > primary.count && runtime == Runtime::llvm
                                                ? shared_places_llvm(primary.count, team)
                                                : std::vector<std::size_t>{};
    for (std::size_t number = 0; number < team; ++number) {
        const std::size_t steps = team <= primary.count     ? number
                                  : runtime == Runtime::gcc ? shared_place_gcc(primary.count, team, number)
                                                            : shared[number];
        found[number].place = step(primary, primary.place, steps);
        if (binding == Binding::spread) {
            found[number].first = found[number].place;
            found[number].count = 1;
        }
    }
    return found;
}

} // namespace homing::simulator
