// What the engine's sample tells of the remote share: of a whole run, before and after its moves, against the
// truth that the simulated program knows.
#include "simulated_program.hpp"

#include <cmath>

namespace homing::engine_estimate_tests {
namespace {

struct Shares {
    double before, after;
    double samples; ///< equal ones that these are worth
};

/// By the rows that the engine leaves (engine/journal.cpp), of all areas.
Shares estimated(Program& program) {
    double traffic = 0, before = 0, after = 0, samples = 0;
    for (const auto& area : program.engine->watch().areas()) {
        std::vector<int> homes;
        for (const std::uint64_t granule : area->remote_share.granules())
            homes.push_back(program.simulated.where(area->granule_range(granule).begin));
        const RemoteSums sums = area->remote_share.sums(homes, area->there(), false);
        if (sums.granules == 0) continue;
        const auto bytes = static_cast<double>(area->used_bytes());
        traffic += bytes;
        before += bytes * sums.before.share / sums.weight;
        after += bytes * sums.after.share / sums.weight;
        samples += sums.weight * sums.weight / sums.weight2;
    }
    return {before / traffic, after / traffic, samples};
}

double remote_now(Program& program, const Program::Owner& owner) {
    return 1 - static_cast<double>(program.right(owner)) / static_cast<double>(program.pages());
}

double tolerance(double share, double samples) {
    return 4 * std::sqrt(std::max(share * (1 - share), 1 / samples) / samples);
}

TEST_F(EngineTest, TheEstimateKnowsBothEndsOfARun) {
    for (const char* seed : {"1", "2", "3"}) {
        const Variable variable("HOMING_SEED", seed);
        Program program(8192);
        const auto owner = program.block();
        program.initialise([](std::size_t) { return 0; });
        ASSERT_TRUE(program.start());
        const double before = remote_now(program, owner);
        program.iterate(60, owner);
        const double after = remote_now(program, owner);
        const Shares shares = estimated(program);
        EXPECT_GT(shares.samples, 20);
        EXPECT_NEAR(shares.before, before, tolerance(before, shares.samples)) << seed;
        EXPECT_NEAR(shares.after, after, tolerance(after, shares.samples)) << seed;
        EXPECT_LT(after, 0.1);
    }
}

TEST_F(EngineTest, TheEstimateIsOneNumberWhereNothingMoves) {
    const Variable variable("HOMING_MECHANISM", "observe");
    for (const double share : {0.1, 0.5}) {
        Program program(8192);
        const auto owner = [&](std::size_t page) { return page % 100 < 100 * share ? 1 : 0; };
        program.initialise([](std::size_t) { return 0; });
        ASSERT_TRUE(program.start());
        program.iterate(60, owner);
        const Shares shares = estimated(program);
        EXPECT_GT(shares.samples, 20);
        EXPECT_EQ(shares.before, shares.after);
        EXPECT_NEAR(shares.before, share, tolerance(share, shares.samples));
    }
}

} // namespace
} // namespace homing::engine_estimate_tests
