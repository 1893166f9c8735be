// Where an OpenMP runtime puts the threads of a team among its places: OpenMP API 5.2, section 10.1.3, and
// where that leaves a choice, what GCC's libgomp and LLVM's libomp do. What they do was read from
// omp_get_place_num() and omp_get_partition_place_nums(); tests/unit/test_simulator_places.cpp has the
// tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace homing::simulator {

enum class Runtime : std::uint8_t { gcc, llvm };

enum class Binding : std::uint8_t {
    even,    ///< not bound: the model spreads threads evenly, whatever the runtime
    spread,  ///< the places are divided among the threads
    close,   ///< one place after the other
    primary, ///< all where the primary thread is
    turns    ///< thread i on place i, round and round: what libomp makes of GOMP_CPU_AFFINITY
};

/// A place, and the partition of places in which the thread's own inner teams are put.
struct Position {
    std::size_t first = 0;
    std::size_t count = 1;
    std::size_t place = 0;
    friend bool operator==(const Position&, const Position&) = default;
};

/// The positions of all threads of a team, whose primary thread is at `primary`; there are `places` in all.
std::vector<Position> positions_of(Runtime runtime, Binding binding, Position primary, std::size_t places,
                                   std::size_t team);

} // namespace homing::simulator
