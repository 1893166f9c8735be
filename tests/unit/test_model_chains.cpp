#include "model/chains.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace homing::model {
namespace {

TEST(Chain, BordersOfAnOrderedOneAreUniformWhereNothingWasSeen) {
    Chain chain = Chain::ordered({{}, {}, 3});
    chain.look_back();
    std::array<double, 3> states{}, scratch{};
    chain.at(.5, states, scratch);
    EXPECT_NEAR(states[0], .25, 1e-12);
    EXPECT_NEAR(states[1], .5, 1e-12);
    EXPECT_NEAR(states[2], .25, 1e-12);
}

TEST(Chain, ObservationsOnBothSidesTellTheState) {
    // State 1 was seen at .4 and at .6, with one stray in a hundred.
    const std::vector<double> sure{.005, .99, .005, .005, .99, .005};
    for (Chain chain : {Chain::ordered({{.4, .6}, sure, 3}), Chain::switching({{.4, .6}, sure, 3}, 3)}) {
        chain.look_back();
        std::array<double, 3> states{}, scratch{};
        chain.at(.5, states, scratch);
        EXPECT_GT(states[1], .8);
        EXPECT_NEAR(states[0] + states[1] + states[2], 1, 1e-12);
    }
}

TEST(Chain, OneThatIsLessLikelyThanCountsHasNoLikelihood) {
    const std::vector<double> improbable{.1, .1, .1, .1, .1, .1};
    EXPECT_NEAR(Chain::ordered({{.2, .4, .6}, improbable, 2}).log_likelihood(), 3 * std::log(.1), 1e-9);
    EXPECT_EQ(Chain::ordered({{.2, .4, .6}, improbable, 2, -6}).log_likelihood(),
              -std::numeric_limits<double>::infinity());
}

} // namespace
} // namespace homing::model
