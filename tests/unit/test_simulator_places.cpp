// Where a team's threads are put among places. The tables are what GCC 12's libgomp and LLVM 14's libomp did:
// omp_get_place_num() and omp_get_partition_place_nums() of programs with OMP_PLACES={0},{1},{0},...
#include "places.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace homing::simulator::simulator_places_tests {
namespace {

using Places = std::vector<std::size_t>;

Places placed(Runtime runtime, Binding binding, std::size_t places, std::size_t team) {
    Places found;
    for (const Position& one : positions_of(runtime, binding, {0, places, 0}, places, team))
        found.push_back(one.place);
    return found;
}

Places partitions(Runtime runtime, Binding binding, std::size_t places, std::size_t team) {
    Places found;
    for (const Position& one : positions_of(runtime, binding, {0, places, 0}, places, team))
        found.push_back(one.count);
    return found;
}

TEST(SimulatorPlaces, FewerThreadsThanPlacesAsTheRuntimesPutThem) {
    for (const Runtime runtime : {Runtime::gcc, Runtime::llvm}) {
        EXPECT_EQ(placed(runtime, Binding::close, 8, 3), (Places{0, 1, 2}));
        EXPECT_EQ(partitions(runtime, Binding::close, 8, 3), (Places{8, 8, 8}));
        EXPECT_EQ(placed(runtime, Binding::primary, 8, 3), (Places{0, 0, 0}));
        EXPECT_EQ(placed(runtime, Binding::spread, 8, 3), (Places{0, 3, 6}));
        EXPECT_EQ(partitions(runtime, Binding::spread, 8, 3), (Places{3, 3, 2}));
        EXPECT_EQ(placed(runtime, Binding::spread, 5, 3), (Places{0, 2, 4}));
        EXPECT_EQ(partitions(runtime, Binding::spread, 5, 3), (Places{2, 2, 1}));
        EXPECT_EQ(placed(runtime, Binding::spread, 5, 2), (Places{0, 3}));
        EXPECT_EQ(placed(runtime, Binding::spread, 2, 2), (Places{0, 1}));
    }
    EXPECT_EQ(placed(Runtime::gcc, Binding::spread, 7, 5), (Places{0, 2, 4, 5, 6}));
    EXPECT_EQ(partitions(Runtime::gcc, Binding::spread, 7, 5), (Places{2, 2, 1, 1, 1}));
    EXPECT_EQ(placed(Runtime::llvm, Binding::spread, 7, 5), (Places{0, 1, 3, 4, 6}));
    EXPECT_EQ(partitions(Runtime::llvm, Binding::spread, 7, 5), (Places{1, 2, 1, 2, 1}));
}

TEST(SimulatorPlaces, MoreThreadsThanPlacesAsTheRuntimesPutThem) {
    for (const Binding binding : {Binding::close, Binding::spread}) {
        EXPECT_EQ(placed(Runtime::gcc, binding, 3, 5), (Places{0, 1, 2, 0, 1}));
        EXPECT_EQ(placed(Runtime::gcc, binding, 4, 6), (Places{0, 1, 2, 3, 0, 1}));
        EXPECT_EQ(placed(Runtime::gcc, binding, 3, 7), (Places{0, 0, 1, 1, 2, 2, 0}));
        EXPECT_EQ(placed(Runtime::gcc, binding, 4, 9), (Places{0, 0, 1, 1, 2, 2, 3, 3, 0}));
        EXPECT_EQ(placed(Runtime::llvm, binding, 3, 5), (Places{0, 0, 1, 1, 2}));
        EXPECT_EQ(placed(Runtime::llvm, binding, 4, 6), (Places{0, 0, 1, 2, 2, 3}));
        EXPECT_EQ(placed(Runtime::llvm, binding, 3, 7), (Places{0, 0, 0, 1, 1, 2, 2}));
        EXPECT_EQ(placed(Runtime::llvm, binding, 4, 9), (Places{0, 0, 0, 1, 1, 2, 2, 3, 3}));
    }
    EXPECT_EQ(placed(Runtime::llvm, Binding::turns, 2, 5), (Places{0, 1, 0, 1, 0}));
    EXPECT_EQ(partitions(Runtime::gcc, Binding::spread, 3, 5), (Places{1, 1, 1, 1, 1}));
    EXPECT_EQ(partitions(Runtime::gcc, Binding::close, 3, 5), (Places{3, 3, 3, 3, 3}));
}

TEST(SimulatorPlaces, InnerTeamsStayInThePartitionOfTheirPrimaryThread) {
    for (const Runtime runtime : {Runtime::gcc, Runtime::llvm}) {
        // Thread 1 of two that are spread over eight places, with a team of two of its own.
        const Position outer = positions_of(runtime, Binding::spread, {0, 8, 0}, 8, 2)[1];
        EXPECT_EQ(outer, (Position{4, 4, 4}));
        const auto inner = positions_of(runtime, Binding::close, outer, 8, 2);
        EXPECT_EQ(inner[1], (Position{4, 4, 5}));
        const auto spread = positions_of(runtime, Binding::spread, outer, 8, 2);
        EXPECT_EQ(spread[1], (Position{6, 2, 6}));
    }
}

TEST(SimulatorPlaces, ThreadsThatAreNotBoundAreSpreadEvenly) {
    EXPECT_EQ(placed(Runtime::gcc, Binding::even, 48, 4), (Places{0, 12, 24, 36}));
    EXPECT_EQ(placed(Runtime::llvm, Binding::even, 4, 6), (Places{0, 0, 1, 2, 2, 3}));
}

/// What OpenMP API 5.2, section 10.1.3, asks of every runtime, wherever the primary thread is.
RC_GTEST_PROP(SimulatorPlaces, SpreadDividesThePlaces, ()) {
    const auto runtime = *rc::gen::element(Runtime::gcc, Runtime::llvm);
    const auto places = *rc::gen::inRange<std::size_t>(1, 200);
    const auto team = *rc::gen::inRange<std::size_t>(2, 200);
    RC_PRE(team <= places);
    const Position primary{7, places, 7};
    Places covered(7 + places, 0);
    std::size_t least = places;
    std::size_t most = 0;
    for (const Position& part : positions_of(runtime, Binding::spread, primary, 7 + places, team)) {
        RC_ASSERT(part.place >= part.first && part.place < part.first + part.count);
        for (std::size_t place = part.first; place < part.first + part.count; ++place)
            ++covered.at(place);
        least = std::min(least, part.count);
        most = std::max(most, part.count);
    }
    RC_ASSERT(std::all_of(covered.begin() + 7, covered.end(), [](std::size_t one) { return one == 1; }));
    RC_ASSERT(most - least <= 1u);
}

RC_GTEST_PROP(SimulatorPlaces, EveryThreadHasAPlaceOfThePartitionAndPlacesAreFilledEvenly, ()) {
    const auto runtime = *rc::gen::element(Runtime::gcc, Runtime::llvm);
    const auto binding = *rc::gen::element(Binding::spread, Binding::close, Binding::turns, Binding::even);
    const auto count = *rc::gen::inRange<std::size_t>(1, 50);
    const auto place = *rc::gen::inRange<std::size_t>(0, count);
    const auto team = *rc::gen::inRange<std::size_t>(1, 300);
    Places threads(count, 0);
    const auto positions = positions_of(runtime, binding, {5, count, 5 + place}, 5 + count, team);
    RC_ASSERT(positions.size() == team);
    for (const Position& one : positions) {
        RC_ASSERT(one.place >= 5 && one.place < 5 + count);
        RC_ASSERT(one.count >= 1);
        ++threads[one.place - 5];
    }
    if (team >= count && binding != Binding::even)
        RC_ASSERT(*std::ranges::max_element(threads) - *std::ranges::min_element(threads) <= 1u);
}

} // namespace
} // namespace homing::simulator::simulator_places_tests
