// Every call that the keeper of policies makes fails in turn with every errno of its man page.
#include "areas/policies.hpp"
#include "failing.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <linux/mempolicy.h>

namespace homing::areas_policies_failing_tests {
namespace {

constexpr Address base = Address{1} << 40;

class FailingPolicies : public ::testing::Test {
  protected:
    FailingPolicies() : simulated({1000, 1000, 1000, 1000}), kernel(simulated), keeper(kernel, path()) {
        simulated.map(area());
        simulated.place(area(), 2);
        simulated.bind(users(), {MPOL_INTERLEAVE, NodeSet{6}});
        // Two layers lie over three stretches of one area, the middle one bound by the user.
        std::ofstream maps(path());
        for (const Range range :
             {Range{area().begin, users().begin}, users(), Range{users().end, area().end}}) {
            char line[80];
            std::snprintf(line, sizeof line, "%lx-%lx rw-p 00000000 00:00 0\n",
                          static_cast<unsigned long>(range.begin), static_cast<unsigned long>(range.end));
            maps << line;
        }
    }
    ~FailingPolicies() override { std::remove(path().c_str()); }

    static std::string path() { return ::testing::TempDir() + "failing_maps." + std::to_string(::getpid()); }
    static Range area() { return {base, base + 300 * page_bytes()}; }
    static Range users() { return {base + 100 * page_bytes(), base + 200 * page_bytes()}; }

    void expect_as_found(const std::string& what) {
        for (Address at = area().begin; at < area().end; at += 10 * page_bytes()) {
            const MemoryPolicy found =
                users().contains(at) ? MemoryPolicy{MPOL_INTERLEAVE, NodeSet{6}} : MemoryPolicy{};
            ASSERT_EQ(simulated.policy_of(at), found) << what << " page " << (at - base) / page_bytes();
        }
    }

    SimulatedKernel simulated;
    FailingKernel kernel;
    PolicyKeeper keeper;
};

TEST_F(FailingPolicies, NothingIsLostWhicheverCallFailsHowever) {
    std::size_t failures = 0;
    for (const KernelCall call : {KernelCall::bind, KernelCall::policy_at, KernelCall::task_policy}) {
        for (const int error : errnos_of(call)) {
            for (std::size_t nth = 0; nth <= 12; ++nth) { // 0: every one
                const std::string what =
                    name_of(call) + " " + std::to_string(error) + " nth " + std::to_string(nth);
                kernel.fail(call, error, nth);
                const Range ranges[] = {area()};
                PolicyKeeper::Request request{area(), observed_policy(2)};
                const auto owned = keeper.own(ranges, NodeSet{15});
                const auto observed = keeper.set(PolicyKeeper::Layer::observed, std::span(&request, 1));
                if (observed.failed) {
                    EXPECT_EQ(observed.error, error) << what;
                    EXPECT_EQ(keeper.bytes(PolicyKeeper::Layer::observed), 0u) << what;
                }
                if (owned.failed) {
                    EXPECT_EQ(owned.error, error) << what;
                }
                const auto cleared = keeper.clear_all();
                if (!cleared.failed && !keeper.stuck_bytes()) expect_as_found(what);
                failures += kernel.failures();
                kernel.heal();
                keeper.clear_all();
                EXPECT_EQ(keeper.stuck_bytes(), 0u) << what;
                EXPECT_EQ(keeper.pieces(), 0u) << what;
                expect_as_found(what + " healed");
            }
        }
    }
    EXPECT_GT(failures, 0u);
}

TEST_F(FailingPolicies, TooManyMappingsLeaveTheRequestUndone) {
    simulated.set_most_mappings(simulated.mappings().now);
    PolicyKeeper::Request request{{area().begin + 10 * page_bytes(), area().begin + 20 * page_bytes()},
                                  observed_policy(1)};
    const auto outcome = keeper.set(PolicyKeeper::Layer::observed, std::span(&request, 1));
    EXPECT_EQ(outcome.error, ENOMEM);
    expect_as_found("max_map_count");
    EXPECT_EQ(keeper.pieces(), 0u);
}

} // namespace
} // namespace homing::areas_policies_failing_tests
