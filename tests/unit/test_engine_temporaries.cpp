// The whole engine over arrays that are allocated and freed in every iteration.
#include "simulated_program.hpp"

#include "areas/allocation_plans.hpp"

namespace homing::engine_temporaries_tests {
namespace {

/// One array of a program that is allocated anew in every iteration: in the one half of its memory and in the
/// other by turns, as hooks of an allocator tell of it.
class Temporaries : public Program {
  public:
    Temporaries() : Program(2 * pages_each) { area_registry().end(range.begin); }
    ~Temporaries() {
        if (live.bytes() > 0) end();
    }

    void begin() {
        live = part(turn * pages_each, (turn + 1) * pages_each);
        turn = 1 - turn;
        const Address origin[max_origin_frames] = {0x4242};
        simulated.map(live); // its memory is new
        area_registry().note(live, AreaKind::heap_block, origin, 1, nullptr);
        if (allocation_plans().any()) allocation_plans().begins(live, place_and_size(live.bytes(), origin));
    }
    void end() {
        area_registry().end(live.begin);
        allocation_plans().ends(live);
        live = {};
    }
    /// An iteration: whoever is told clears the array, then its owners use it, three times.
    void iteration(const Owner& cleared_by, const Owner& owner) {
        begin();
        for (std::size_t page = 0; page < pages_each; ++page)
            simulated.touch(live.begin + page * page_bytes(), cleared_by(page));
        right_when_cleared = 0;
        for (std::size_t page = 0; page < pages_each; ++page)
            right_when_cleared += simulated.where(live.begin + page * page_bytes()) == owner(page);
        for (const Address function : {0x1000, 0x2000, 0x3000}) {
            engine->region_begin(function);
            for (std::size_t page = 0; page < pages_each; ++page)
                touch(page + (live.begin - range.begin) / page_bytes(), owner(page));
            engine->region_end();
        }
        end();
    }

    void iterate(int iterations, const Owner& cleared_by, const Owner& owner) {
        for (int i = 0; i < iterations; ++i)
            iteration(cleared_by, owner);
    }

    static constexpr std::size_t pages_each = 1024;
    Range live{};
    std::size_t turn = 0;
    std::size_t right_when_cleared = 0; ///< pages that lie with their owner before it uses them
};

int in_blocks(std::size_t page) { return static_cast<int>(page * nodes / Temporaries::pages_each); }
int by_master(std::size_t) { return 0; }

class TemporariesTest : public EngineTest {
  protected:
    ~TemporariesTest() override { allocation_plans().withdraw(); }
};

TEST_F(TemporariesTest, ThatTheMasterClearsComeIntoBeingWithTheirOwners) {
    Temporaries program;
    ASSERT_TRUE(program.start());
    program.iterate(16, by_master, in_blocks);
    EXPECT_GE(program.right_when_cleared, Temporaries::pages_each * 98 / 100);
    // At rest, too.
    program.iterate(40, by_master, in_blocks);
    EXPECT_GE(program.right_when_cleared, Temporaries::pages_each * 98 / 100);
    program.engine->finish();
    EXPECT_FALSE(allocation_plans().any());
}

TEST_F(TemporariesTest, ThatTheirOwnersTouchFirstNeedNoPlan) {
    Temporaries program;
    ASSERT_TRUE(program.start());
    program.iterate(40, in_blocks, in_blocks);
    EXPECT_FALSE(allocation_plans().any());
}

TEST_F(TemporariesTest, ThatTheMasterUsesAloneNeedNoPlan) {
    Temporaries program;
    ASSERT_TRUE(program.start());
    program.iterate(40, by_master, by_master);
    EXPECT_FALSE(allocation_plans().any());
}

TEST_F(TemporariesTest, AreLeftWhereTheUserHasSetAPolicy) {
    Temporaries program;
    program.simulated.set_task_policy({MPOL_INTERLEAVE, NodeSet{0xf}});
    ASSERT_TRUE(program.start());
    program.iterate(40, by_master, in_blocks);
    EXPECT_FALSE(allocation_plans().any());
}

TEST_F(TemporariesTest, WhoseOwnersChangeArePlacedWithTheNewOnes) {
    Temporaries program;
    ASSERT_TRUE(program.start());
    const auto reversed = [](std::size_t page) { return nodes - 1 - in_blocks(page); };
    program.iterate(40, by_master, in_blocks);
    EXPECT_GE(program.right_when_cleared, Temporaries::pages_each * 98 / 100);
    program.iterate(100, by_master, reversed);
    EXPECT_GE(program.right_when_cleared, Temporaries::pages_each * 98 / 100);
}

} // namespace
} // namespace homing::engine_temporaries_tests
