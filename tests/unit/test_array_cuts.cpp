// Arrays that a program lays into one allocation, found by touches alone.
#include "areas/array_cuts.hpp"

#include "belief_test.hpp"

#include <gtest/gtest.h>
#include <random>

namespace homing::array_cuts_tests {
namespace {

using model::Block;
using model::Touch;

constexpr std::uint64_t pages = 4000;

std::vector<Touch> touches_of(const std::vector<Block>& arrays, int threads, std::size_t count, double strays,
                              std::mt19937_64& random) {
    std::uniform_real_distribution<double> unit(0, 1);
    std::vector<Touch> touches;
    while (touches.size() < count) {
        const double at = unit(random) * pages;
        const auto array = std::ranges::find_if(
            arrays, [&](const Block& one) { return at >= one.begin && at < one.begin + one.size; });
        auto thread = static_cast<std::uint32_t>((at - array->begin) / array->size * threads);
        if (unit(random) < strays)
            thread = static_cast<std::uint32_t>(random() % static_cast<std::uint64_t>(threads));
        touches.push_back({.page = static_cast<std::uint64_t>(at), .thread = thread});
    }
    return touches;
}

/// Of random sizes, none below a twentieth of the area.
std::vector<Block> some_arrays(std::size_t count, std::mt19937_64& random) {
    std::vector<double> weights;
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i)
        sum += weights.emplace_back(1 + static_cast<double>(random() % 300) / 100);
    std::vector<Block> arrays;
    double begin = 0;
    for (const double weight : weights) {
        arrays.push_back({begin, pages * weight / sum});
        begin += arrays.back().size;
    }
    return arrays;
}

TEST(ArrayCuts, ArraysOfAPoolAreFoundWithinAPercentOfIt) {
    int right = 0, tries = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        std::mt19937_64 random(seed);
        const std::size_t count = 2 + seed % 4;
        const int threads = seed % 3 == 0 ? 16 : seed % 3 == 1 ? 4 : 8;
        const std::vector<Block> arrays = some_arrays(count, random);
        const std::vector<Block> found =
            arrays_by_touches(touches_of(arrays, threads, 150, .03, random), pages, threads);
        ++tries;
        bool all = found.size() == count;
        for (std::size_t i = 0; all && i < count; ++i)
            all = std::abs(found[i].begin - arrays[i].begin) < pages / 100.;
        right += all;
    }
    EXPECT_GE(right, tries * 8 / 10);
}

TEST(ArrayCuts, OneArrayIsNotCut) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        std::mt19937_64 random(seed);
        const int threads = 2 << seed % 4;
        EXPECT_TRUE(
            arrays_by_touches(touches_of({{0, pages}}, threads, 120, .05, random), pages, threads).empty())
            << seed;
    }
}

TEST(ArrayCuts, OwnersAtRandomAreNotCutIntoArrays) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        std::mt19937_64 random(seed);
        EXPECT_TRUE(
            arrays_by_touches(touches_of({{0, pages}}, 2 << seed % 4, 160, 1, random), pages, 2 << seed % 4)
                .empty())
            << seed;
    }
}

TEST(ArrayCuts, ArraysCoverTheAreaWhateverWasTouched) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        std::mt19937_64 random(seed);
        const std::uint64_t size = 1 + random() % 300;
        const int threads = 1 + static_cast<int>(random() % 20);
        std::vector<Touch> touches;
        for (std::uint64_t i = random() % 160; i > 0; --i)
            touches.push_back(
                {.page = random() % size,
                 .thread = static_cast<std::uint32_t>(random() % static_cast<std::uint64_t>(threads))});
        double at = 0;
        const std::vector<Block> arrays = arrays_by_touches(touches, size, threads);
        for (const Block& one : arrays) {
            EXPECT_DOUBLE_EQ(one.begin, at) << seed;
            EXPECT_GT(one.size, 0) << seed;
            at = one.begin + one.size;
        }
        if (!arrays.empty()) {
            EXPECT_DOUBLE_EQ(at, static_cast<double>(size)) << seed;
            EXPECT_GE(arrays.size(), 2u);
        }
    }
}

} // namespace
} // namespace homing::array_cuts_tests
