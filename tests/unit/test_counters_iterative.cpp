// The iterative mechanism by counters of all misses (UPMlib's), over the simulated kernel.
#include "areas/named.hpp"
#include "counters/by_counters.hpp"
#include "engine/guarded.hpp"
#include "simulated_program.hpp"

#include <map>

namespace homing::counters::iterative_tests {
namespace {

constexpr std::size_t page_count = 400;

/// Counts every miss that the test says there is.
class Counting final : public ReferenceSource {
  public:
    const char* name() const noexcept override { return "counting"; }
    std::string unavailable() override { return {}; }
    bool counts_misses() const noexcept override { return true; }
    bool start(std::span<const WatchedRange>) override { return true; }
    void stop() override { misses.clear(); }
    void drain(std::vector<Reference>& out) override {
        for (const auto& [at, count] : misses)
            out.push_back({at.first, static_cast<std::int16_t>(at.second), false, count});
        misses.clear();
    }
    std::map<std::pair<Address, int>, std::uint32_t> misses;
};

/// Its pages lie on the first node at first.
class Counted : public Program {
  public:
    Counted() : Program(page_count) {
        initialise([](std::size_t) { return 0; });
        engine = std::make_unique<Engine>(kernel, machine_of(nodes, 1 << 16), HookServices{});
        auto given = std::make_unique<Counting>();
        source = given.get();
        EXPECT_TRUE(engine->start(std::move(given)));
        engine->guarded([&] {
            auto one = std::make_unique<ByCounters>(nodes, 1.5);
            mechanism = one.get();
            engine->move_by(std::move(one));
        });
    }
    void misses(std::size_t page, int node, std::uint32_t count) {
        source->misses[{range.begin + page * page_bytes(), node}] += count;
    }
    /// Two regions, of which the owners miss most in the first, and all others a little in the second.
    void step(const Owner& owner, bool tells = true) {
        engine->region_begin(0x1000);
        for (std::size_t page = 0; page < page_count; ++page)
            misses(page, owner(page), 40);
        engine->region_end();
        engine->region_begin(0x2000);
        for (std::size_t page = 0; page < page_count; ++page)
            for (int node = 0; node < nodes; ++node)
                misses(page, node, node == owner(page) ? 0 : 10);
        engine->region_end();
        simulated_seconds += 1;
        if (tells) engine->iteration_called();
    }
    Counting* source = nullptr;
    ByCounters* mechanism = nullptr;
};

class ByCountersTest : public EngineTest {};

TEST_F(ByCountersTest, WhoMissesMostHasThePageAfterOneIterationAndForGood) {
    Counted program;
    const auto owner = program.block();
    program.step(owner);
    EXPECT_EQ(program.right(owner), page_count) << "although most nodes that use a page are others";
    const std::uint64_t moved = program.engine->statistics().moved;
    EXPECT_EQ(moved, page_count * 3 / 4);
    EXPECT_EQ(program.mechanism->moved_first(), moved);
    for (int i = 0; i < 20; ++i)
        program.step(owner);
    EXPECT_EQ(program.engine->statistics().moved, moved) << "nothing wavers";
    EXPECT_TRUE(program.engine->stability().settled());
}

TEST_F(ByCountersTest, NearlyEqualUsersMoveNothing) {
    Counted program;
    for (int i = 0; i < 5; ++i) {
        for (std::size_t page = 0; page < page_count; ++page) {
            program.misses(page, 0, 10);
            program.misses(page, 1, 15);
        }
        program.engine->iteration_called();
    }
    EXPECT_EQ(program.engine->statistics().moved, 0u);
}

TEST_F(ByCountersTest, PagesThatGoToAndFroFreeze) {
    Counted program;
    const auto owner = program.block();
    const auto other = [&](std::size_t page) { return nodes - 1 - owner(page); };
    for (int i = 0; i < 12; ++i)
        program.step(i % 2 ? other : owner);
    EXPECT_EQ(program.mechanism->totals().frozen, page_count);
    const std::uint64_t moved = program.engine->statistics().moved;
    EXPECT_LE(moved, 4 * page_count);
    for (int i = 0; i < 12; ++i)
        program.step(i % 2 ? other : owner);
    EXPECT_EQ(program.engine->statistics().moved, moved);
    EXPECT_TRUE(program.engine->stability().settled());
}

TEST_F(ByCountersTest, OwnersThatChangeAreFollowedByACheck) {
    Counted program;
    const auto owner = program.block();
    for (int i = 0; i < 20; ++i)
        program.step(owner);
    ASSERT_TRUE(program.engine->stability().settled());
    const auto next = [&](std::size_t page) { return (owner(page) + 1) % nodes; };
    for (int i = 0; i < 100 && program.right(next) < page_count; ++i)
        program.step(next);
    EXPECT_EQ(program.right(next), page_count);
}

TEST_F(ByCountersTest, OnlyRegisteredMemoryMoves) {
    Counted program;
    ASSERT_TRUE(name_area(program.part(200, 300), "hot", true));
    const auto owner = program.block();
    for (int i = 0; i < 3; ++i)
        program.step(owner);
    forget_named_area(program.part(200, 300).begin);
    for (std::size_t page = 0; page < page_count; ++page) {
        const bool hot = page >= 200 && page < 300;
        EXPECT_EQ(program.simulated.where(program.part(page, page + 1).begin), hot ? owner(page) : 0) << page;
    }
}

TEST_F(ByCountersTest, ARefusedPageHoldsNoOtherBack) {
    Counted program;
    const auto owner = program.block();
    program.kernel.refuse_pages(EBUSY, 3);
    for (int i = 0; i < 20; ++i)
        program.step(owner);
    EXPECT_GT(program.engine->statistics().moved, page_count / 2);
    EXPECT_TRUE(program.engine->stability().settled());
}

} // namespace
} // namespace homing::counters::iterative_tests
