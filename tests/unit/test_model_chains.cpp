#include "model/chains.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace homing::model {
namespace {

TEST(Chain, BordersOfAnOrderedOneAreUniformWhereNothingWasSeen) {
    Chain chain({{}, {}, 3}, {});
    chain.look_back();
    std::array<double, 3> states{}, scratch{};
    chain.at(.5, states, scratch);
    EXPECT_NEAR(states[0], .25, 1e-12);
    EXPECT_NEAR(states[1], .5, 1e-12);
    EXPECT_NEAR(states[2], .25, 1e-12);
}

TEST(Chain, NearlyEvenBordersAreUniformAroundTheEvenOnes) {
    Chain chain({{}, {}, 4}, {.window = .2});
    chain.look_back();
    const auto first = [&](double position) {
        std::array<double, 4> states{}, scratch{};
        chain.at(position, states, scratch);
        EXPECT_NEAR(states[2] + states[3], 0, 1e-12) << position;
        return states[0];
    };
    EXPECT_NEAR(first(.19), 1, 1e-12);
    EXPECT_NEAR(first(.25), .5, 1e-12);
    EXPECT_NEAR(first(.275), .25, 1e-12);
    EXPECT_NEAR(first(.31), 0, 1e-12);
}

/// Two borders of three states, each on a fine grid in its window: what they are is summed up by hand.
TEST(Chain, NearlyEvenBordersAreThoseOfAllPlacesInTheirWindows) {
    const std::vector<double> positions{.1, .3, .36, .5, .62, .7};
    std::vector<double> likelihood;
    for (const std::size_t seen : {0, 0, 1, 1, 2, 2})
        for (std::size_t s = 0; s < 3; ++s)
            likelihood.push_back(s == seen ? .8 : .1);
    constexpr int places = 400;
    double sum = 0, second_at_61 = 0;
    for (int i = 0; i < places; ++i)
        for (int j = 0; j < places; ++j) {
            const auto border = [](int k, double even) { return (even - .2 + .4 * (k + .5) / places) / 3; };
            const double one = border(i, 1), two = border(j, 2);
            double all = 1;
            for (std::size_t k = 0; k < positions.size(); ++k)
                all *=
                    likelihood[3 * k + static_cast<std::size_t>((positions[k] > one) + (positions[k] > two))];
            sum += all;
            second_at_61 += two > .61 ? all : 0;
        }
    Chain chain({positions, likelihood, 3}, {.window = .2});
    EXPECT_NEAR(chain.log_likelihood(), std::log(sum / places / places), 1e-2);
    chain.look_back();
    std::array<double, 3> states{}, scratch{};
    chain.at(.61, states, scratch);
    EXPECT_NEAR(states[1], second_at_61 / sum, 5e-3);
}

/// The border between two blocks, and where the halos on its two sides end: all their places are summed up by
/// hand.
TEST(Chain, PointsOfAWindowLieInTheirOrder) {
    const std::vector<double> positions{.35, .42, .48, .5, .53, .56, .65};
    std::vector<double> likelihood;
    for (const std::size_t seen : {0, 0, 1, 2, 1, 2, 3})
        for (std::size_t s = 0; s < 4; ++s)
            likelihood.push_back(s == seen ? .7 : .1);
    constexpr int places = 200;
    double sum = 0, third_at_51 = 0;
    for (int i = 0; i < places; ++i)
        for (int j = 0; j < places; ++j)
            for (int k = 0; k < places; ++k) {
                std::array<double, 3> points{};
                for (std::size_t p = 0; const int place : {i, j, k})
                    points[p++] = .5 + (-.2 + .4 * (place + .5) / places) / 2;
                const auto state_at = [&](double x) {
                    return static_cast<std::size_t>(
                        std::ranges::count_if(points, [&](double p) { return p < x; }));
                };
                double all = 1;
                for (std::size_t o = 0; o < positions.size(); ++o)
                    all *= likelihood[4 * o + state_at(positions[o])];
                sum += all;
                third_at_51 += state_at(.51) == 2 ? all : 0;
            }
    Chain chain({positions, likelihood, 4}, {.window = .2, .points = 3});
    EXPECT_NEAR(chain.log_likelihood(), std::log(sum / places / places / places), 1e-2);
    chain.look_back();
    std::array<double, 4> states{}, scratch{};
    chain.at(.51, states, scratch);
    EXPECT_NEAR(states[2], third_at_51 / sum, 5e-3);
}

TEST(Chain, AWindowThatIsPassedLeadsToTheNext) {
    // Three blocks; what was seen in the last one says nothing of the first border, but that it was passed.
    std::vector<double> likelihood(7, .01);
    likelihood.back() = 1;
    Chain chain({{.9}, likelihood, 7}, {.window = .2, .points = 3});
    chain.look_back();
    std::array<double, 7> states{}, scratch{};
    chain.at(1. / 3, states, scratch);
    EXPECT_NEAR(states[0], .125, 1e-12) << "all three points are ahead";
    EXPECT_NEAR(states[1], .375, 1e-12);
    EXPECT_NEAR(states[2], .375, 1e-12);
    EXPECT_NEAR(states[3], .125, 1e-12);
    chain.at(.6, states, scratch);
    EXPECT_NEAR(states[3], 1 - (states[4] + states[5] + states[6]), 1e-12);
}

TEST(Chain, ObservationsOnBothSidesTellTheState) {
    // State 1 was seen at .4 and at .6, with one stray in a hundred.
    const std::vector<double> sure{.005, .99, .005, .005, .99, .005};
    for (Chain chain : {Chain({{.4, .6}, sure, 3}, {}), Chain({{.4, .6}, sure, 3}, {.rate = 3})}) {
        chain.look_back();
        std::array<double, 3> states{}, scratch{};
        chain.at(.5, states, scratch);
        EXPECT_GT(states[1], .8);
        EXPECT_NEAR(states[0] + states[1] + states[2], 1, 1e-12);
    }
}

TEST(Chain, OneThatIsLessLikelyThanCountsHasNoLikelihood) {
    const std::vector<double> improbable{.1, .1, .1, .1, .1, .1};
    EXPECT_NEAR(Chain({{.2, .4, .6}, improbable, 2}, {}).log_likelihood(), 3 * std::log(.1), 1e-9);
    EXPECT_EQ(Chain({{.2, .4, .6}, improbable, 2, -6}, {}).log_likelihood(),
              -std::numeric_limits<double>::infinity());
}

} // namespace
} // namespace homing::model
