#include "base/binomials.hpp"

#include <cmath>
#include <vector>

namespace {

RC_GTEST_PROP(Binomials, AreThoseOfTheFormulaForEveryNumberOfDraws, ()) {
    const double p = *rc::gen::inRange(1, 10000) / 10000.0;
    homing::Binomials binomials(p);
    for (int n = 0; n < 40; ++n) {
        std::vector<double> mass(static_cast<std::size_t>(n) + 1, 0.0);
        binomials.next(true, [&](std::size_t d, double of) { mass[d] += of; });
        double sum = 0;
        for (int d = 0; d <= n; ++d) {
            const double log = std::lgamma(n + 1) - std::lgamma(d + 1) - std::lgamma(n - d + 1) +
                               d * std::log(p) + (n - d) * std::log1p(-p);
            const double found = mass[static_cast<std::size_t>(d)];
            RC_ASSERT(std::abs(found - std::exp(log)) <= 1e-12);
            sum += found;
        }
        RC_ASSERT(std::abs(sum - 1) <= 1e-12);
    }
}

TEST(Binomials, OneThatIsNotWantedIsPassedOver) {
    homing::Binomials all(.3), some(.3);
    double expected = 0, found = 0;
    all.next(true, [](std::size_t, double) {});
    all.next(true, [](std::size_t, double) {});
    all.next(true, [&](std::size_t d, double of) { expected += d == 1 ? of : 0; });
    some.next(false, [](std::size_t, double) { FAIL(); });
    some.next(false, [](std::size_t, double) { FAIL(); });
    some.next(true, [&](std::size_t d, double of) { found += d == 1 ? of : 0; });
    EXPECT_DOUBLE_EQ(found, expected);
    EXPECT_NEAR(found, 2 * .3 * .7, 1e-15);
}

} // namespace
