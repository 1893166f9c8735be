// Record, replay and undo over the simulated kernel: what really moves, and comes back.
#include "areas/named.hpp"
#include "engine/guarded.hpp"
#include "phases/replayer.hpp"
#include "scanned_program.hpp"

namespace homing::replay::phases_replayer_tests {
namespace {

constexpr std::size_t page_count = 400;

/// A program of Figure 2: three regions that use the array by blocks of pages, and one, the phase, that uses
/// it in the opposite order.
class Figure2 : public Program {
  public:
    explicit Figure2(std::size_t most = 20, bool moves = true, std::size_t count = page_count)
        : Program(count), replayer(most, 1.5, moves) {
        initialise(block());
        EXPECT_TRUE(start());
    }
    int opposite(std::size_t page) const { return nodes - 1 - block()(page); }
    void solve() { region(0x9000, in_solve); }
    Owner in_solve = [this](std::size_t page) { return opposite(page); };
    void call(Outcome (Replayer::*what)(Engine&)) {
        engine->guarded([&] { last = (replayer.*what)(*engine); });
    }
    /// Hooks between the calls: what happens in the phase, after replay has moved.
    std::function<void()> in_phase = [] {};
    void step(bool first) {
        iterate(1, block());
        call(first ? &Replayer::record : &Replayer::replay);
        in_phase();
        solve();
        call(first ? &Replayer::record : &Replayer::undo);
        region(0xa000, block());
    }
    std::size_t at_home() const { return right(block()); }

    Replayer replayer;
    Outcome last = Outcome::nothing;
};

class Replaying : public EngineTest {};

TEST_F(Replaying, TwentyPagesMoveBeforeThePhaseAndComeBackBehindIt) {
    Figure2 program;
    std::size_t home_in_phase = 0;
    program.in_phase = [&] { home_in_phase = program.at_home(); };
    program.step(true);
    EXPECT_EQ(home_in_phase, page_count) << "nothing moves in the recorded iteration";
    for (int i = 0; i < 10; ++i) {
        program.step(false);
        EXPECT_EQ(home_in_phase, page_count - 20);
        EXPECT_EQ(program.at_home(), page_count);
    }
    const Replayer::Phase& phase = program.replayer.phases()[0];
    EXPECT_GE(phase.accessed, page_count - 2) << "those at the ends of the array are never armed";
    EXPECT_EQ(phase.eligible, phase.accessed) << "all of them are used from another node there";
    EXPECT_EQ(phase.planned, 20u);
    EXPECT_EQ(phase.replays, 10u);
    EXPECT_EQ(phase.moved, 200u);
    EXPECT_EQ(phase.undone, 200u);
    EXPECT_EQ(phase.refused, 0u);
    EXPECT_EQ(program.stuck, 0u);
}

TEST_F(Replaying, PagesGoToTheNodeThatAccessesThemInThePhase) {
    Figure2 program(page_count);
    program.in_phase = [&] {
        if (program.replayer.phases()[0].replays == 0) return;
        EXPECT_GE(program.right([&](std::size_t page) { return program.opposite(page); }), page_count - 2);
    };
    program.step(true);
    program.step(false);
    EXPECT_EQ(program.at_home(), page_count);
}

TEST_F(Replaying, ANeighbourThatComesFirstToAPageDoesNotGetIt) {
    Figure2 program(page_count);
    const Figure2::Owner owners = program.in_solve;
    program.in_solve = [&](std::size_t page) {
        return page % 16 == 3 ? (program.opposite(page) + 1) % nodes : program.opposite(page);
    };
    std::size_t right = 0;
    program.in_phase = [&] { right = program.right(owners); };
    program.step(true);
    program.step(false);
    EXPECT_GT(right, page_count - page_count / 32) << "the touches of the phase are by blocks, but for a few";
    EXPECT_EQ(program.at_home(), page_count);
}

/// Figure 2's phase under a source that sees some of its touches.
class SampledPhase : public Program {
  public:
    SampledPhase() : Program(page_count), replayer(page_count, 1.5, true) {
        initialise(block());
        auto made = std::make_unique<Scanned>();
        source = made.get();
        engine = std::make_unique<Engine>(kernel, machine_of(nodes, 1 << 16), HookServices{});
        EXPECT_TRUE(engine->start(std::move(made), false));
    }
    int opposite(std::size_t page) const { return nodes - 1 - block()(page); }
    void call(Outcome (Replayer::*what)(Engine&)) {
        engine->guarded([&] { (replayer.*what)(*engine); });
    }
    /// The kernel has marked each `every`-th page before it.
    void seen_region(Address function, const Owner& owner, std::size_t every) {
        engine->region_begin(function);
        for (std::size_t page = 0; page < page_count; ++page) {
            const Range one = part(page, page + 1);
            if (page % every == 0) source->scan(one);
            touch(page, owner(page));
            source->touch(one.begin, owner(page), 100 + owner(page), false);
        }
        engine->region_end();
    }
    Range part(std::size_t first, std::size_t end) const {
        return {range.begin + first * page_bytes(), range.begin + end * page_bytes()};
    }

    Replayer replayer;
    Scanned* source;
};

TEST_F(Replaying, PagesThatASampleOfThePhaseDidNotSeeGoByWhatItTells) {
    SampledPhase program;
    program.kernel.fail(KernelCall::protect, ENOMEM); // no windows, which would see all pages
    const auto opposite = [&](std::size_t page) { return program.opposite(page); };
    constexpr std::size_t every = 8;
    program.seen_region(0x1000, program.block(), every);
    program.call(&Replayer::record);
    program.seen_region(0x9000, opposite, every);
    program.call(&Replayer::record);
    program.seen_region(0x1000, program.block(), every);
    program.call(&Replayer::replay);
    const Replayer::Phase& phase = program.replayer.phases()[0];
    EXPECT_EQ(phase.accessed, page_count / every) << "what was seen";
    EXPECT_GE(phase.eligible, page_count - 3 * every) << "but for pages at borders of blocks";
    EXPECT_GE(program.right(opposite), page_count - 3 * every);
    program.call(&Replayer::undo);
    EXPECT_EQ(program.right(program.block()), page_count);
}

TEST_F(Replaying, APlanTakesOneCallThatMovesAndOneThatBringsBack) {
    Figure2 program;
    program.step(true);
    program.step(false);
    const std::size_t before = program.simulated.calls(KernelCall::move);
    program.step(false);
    EXPECT_EQ(program.simulated.calls(KernelCall::move), before + 2);
}

TEST_F(Replaying, OnlyRegisteredMemoryMoves) {
    Figure2 program(page_count);
    ASSERT_TRUE(name_area(program.part(0, 50), "hot", true));
    program.in_phase = [&] {
        for (std::size_t page = 50; page < page_count; ++page)
            EXPECT_EQ(program.simulated.where(program.part(page, page + 1).begin), program.block()(page));
    };
    program.step(true);
    program.step(false);
    EXPECT_GE(program.replayer.phases()[0].moved, 48u);
    EXPECT_LE(program.replayer.phases()[0].moved, 50u);
    forget_named_area(program.range.begin);
}

TEST_F(Replaying, ASecondPhaseGoesOnFromTheFirstAndUndoKnowsTheOriginalHomes) {
    Figure2 program(page_count);
    const auto third = [&](std::size_t page) { return (program.block()(page) + 1) % nodes; };
    const auto step = [&](bool first) {
        program.call(first ? &Replayer::record : &Replayer::replay);
        program.solve();
        program.call(first ? &Replayer::record : &Replayer::replay);
        if (!first) {
            EXPECT_GE(program.right(third), page_count - 2);
        }
        program.region(0xb000, third);
        program.call(first ? &Replayer::record : &Replayer::undo);
        EXPECT_EQ(program.at_home(), page_count);
        program.region(0xa000, program.block());
    };
    program.iterate(1, program.block());
    step(true);
    for (int i = 0; i < 3; ++i)
        step(false);
}

TEST_F(Replaying, WhatSomebodyElseMovedMeanwhileIsLeft) {
    Figure2 program;
    program.step(true);
    program.in_phase = [&] { program.simulated.place(program.range, 1); };
    program.step(false);
    EXPECT_EQ(program.simulated.pages_on(program.range, 1), page_count);
}

/// To where replay has sent them: where they lie tells nothing.
TEST_F(Replaying, WhatTheProgramPlacedSinceIsLeft) {
    Figure2 program(page_count);
    program.step(true);
    program.in_phase = [&] {
        const std::size_t sent = program.at_home();
        EXPECT_LT(sent, page_count);
        program.engine->guarded([&] { program.replayer.placed(*program.engine, program.part(0, 50)); });
    };
    program.step(false);
    const auto expected = [&](std::size_t page) {
        return page > 0 && page < 50 ? program.opposite(page) : program.block()(page);
    };
    EXPECT_GE(program.right(expected), page_count - 2);
    program.in_phase = [] {};
    program.step(false);
    EXPECT_GE(program.right(expected), page_count - 2) << "that is their home now";
}

TEST_F(Replaying, ARecordingEndsThatNothingIsReplayedOf) {
    Figure2 program(20, true, 40);
    for (int i = 0; i < 16'384; ++i) {
        program.call(&Replayer::record);
        ASSERT_EQ(program.last, Outcome::done) << i;
    }
    program.call(&Replayer::record);
    EXPECT_EQ(program.last, Outcome::nothing);
    EXPECT_EQ(program.replayer.phases().size(), 16'384u);
    program.call(&Replayer::replay);
    EXPECT_EQ(program.last, Outcome::done);
}

TEST_F(Replaying, WhereNothingIsToMoveItIsAccountedOnly) {
    Figure2 program(20, false);
    program.step(true);
    program.in_phase = [&] { EXPECT_EQ(program.at_home(), page_count); };
    program.step(false);
    EXPECT_EQ(program.replayer.phases()[0].planned, 20u);
    EXPECT_EQ(program.replayer.phases()[0].moved, 0u);
    EXPECT_LT(program.replayer.phases()[0].share.remote_with_plan, program.replayer.phases()[0].share.remote);
}

TEST_F(Replaying, CallsThatMeanNothingMoveNothing) {
    Figure2 program;
    for (const auto call : {&Replayer::replay, &Replayer::undo, &Replayer::undo, &Replayer::replay}) {
        program.call(call);
        EXPECT_EQ(program.last, Outcome::nothing);
    }
    program.call(&Replayer::record);
    program.call(&Replayer::replay);
    EXPECT_EQ(program.last, Outcome::nothing) << "one record marks no phase";
    program.iterate(5, program.block());
    EXPECT_EQ(program.at_home(), page_count);
    EXPECT_EQ(program.stuck, 0u);
}

TEST_F(Replaying, APhaseOfNoRegionHasAnEmptyPlan) {
    Figure2 program;
    program.iterate(1, program.block());
    program.call(&Replayer::record);
    program.call(&Replayer::record);
    program.call(&Replayer::replay);
    EXPECT_EQ(program.last, Outcome::done);
    EXPECT_EQ(program.replayer.phases()[0].planned, 0u);
}

TEST_F(Replaying, AThousandPhases) {
    Figure2 program(1, true, 40);
    program.iterate(1, program.block());
    const auto run = [&](Outcome (Replayer::*begin)(Engine&), Outcome (Replayer::*end)(Engine&)) {
        for (int phase = 0; phase < 500; ++phase) {
            program.call(begin);
            if (phase % 50 == 0) program.solve();
            program.call(end);
        }
    };
    run(&Replayer::record, &Replayer::record);
    run(&Replayer::replay, &Replayer::undo);
    EXPECT_EQ(program.at_home(), 40u);
    std::uint64_t moved = 0;
    for (const Replayer::Phase& phase : program.replayer.phases())
        moved += phase.moved;
    EXPECT_EQ(moved, 10u);
}

TEST_F(Replaying, MemoryThatIsFreedInBetweenIsPassedOver) {
    Figure2 program;
    program.step(true);
    program.step(false);
    area_registry().end(program.range.begin);
    program.call(&Replayer::replay);
    EXPECT_EQ(program.last, Outcome::done);
    program.call(&Replayer::undo);
    EXPECT_EQ(program.last, Outcome::done);
    EXPECT_EQ(program.at_home(), page_count);
}

TEST_F(Replaying, MemoryThatIsFreedWithinThePhaseIsNotBroughtBack) {
    Figure2 program;
    program.step(true);
    program.in_phase = [&] { area_registry().end(program.range.begin); };
    program.step(false);
    EXPECT_EQ(program.at_home(), page_count - 20);
}

TEST_F(Replaying, ANewRecordingBeginsAnew) {
    Figure2 program;
    program.step(true);
    program.step(false);
    program.step(true);
    EXPECT_EQ(program.at_home(), page_count);
    program.in_phase = [&] { EXPECT_EQ(program.at_home(), page_count - 20); };
    program.step(false);
    EXPECT_EQ(program.at_home(), page_count);
}

TEST_F(Replaying, ANextTouchThatTheProgramAskedForGoesOn) {
    for (const bool hybrid : {false, true}) {
        const Variable nothing_else_moves("HOMING_MECHANISM", "observe"), granule("HOMING_GRANULE", "4096");
        Figure2 program;
        if (!hybrid) program.step(true);
        program.simulated.place(program.range, 0);
        ASSERT_TRUE(program.engine->next_touch_called(program.range));
        if (hybrid)
            program.engine->guarded([&] { program.replayer.adopt(*program.engine, {}); });
        else
            program.call(&Replayer::replay);
        program.iterate(1, program.block());
        EXPECT_GE(program.at_home(), page_count - 2) << (hybrid ? "hybrid" : "replay");
    }
}

TEST_F(Replaying, PagesDoNotMoveAtIterationsUnlessTheProgramCallsForThem) {
    for (const bool calls : {false, true}) {
        Figure2 program;
        program.simulated.place(program.range, 0); // all on one node
        program.step(true);
        const std::size_t before = program.at_home(); // until its first record homing may have guessed
        for (int i = 0; i < 40; ++i) {
            program.step(false);
            if (!calls) continue;
            program.engine->guarded([&] { program.replayer.iteration_called(*program.engine); });
            program.engine->iteration_called();
        }
        if (calls)
            EXPECT_GT(program.at_home(), page_count * 9 / 10);
        else
            EXPECT_EQ(program.at_home(), before);
    }
}

TEST_F(Replaying, RefusedPagesLeaveThePlan) {
    for (const int error : page_errnos()) {
        SCOPED_TRACE(error);
        Figure2 program;
        program.step(true);
        program.kernel.refuse_pages(error, 1);
        program.step(false);
        program.kernel.heal();
        const std::size_t refused = program.replayer.phases()[0].refused;
        EXPECT_GE(refused, 1u);
        EXPECT_EQ(program.replayer.phases()[0].plan.size(), 20 - refused);
        program.step(false);
        program.step(false);
        EXPECT_EQ(program.replayer.phases()[0].refused, refused) << "nobody asks for them again";
        EXPECT_EQ(program.stuck, 0u);
    }
}

TEST_F(Replaying, EveryCallOfTheKernelMayFail) {
    for (const KernelCall call : failing_calls)
        for (const int error : errnos_of(call)) {
            SCOPED_TRACE(name_of(call) + " fails with errno " + std::to_string(error));
            Figure2 program;
            program.step(true);
            program.kernel.fail(call, error);
            program.step(false);
            program.kernel.heal();
            for (int i = 0; i < 3; ++i)
                program.step(false);
            EXPECT_EQ(program.stuck, 0u);
            const bool moves_fail = call == KernelCall::move || call == KernelCall::query;
            if (!moves_fail) {
                EXPECT_EQ(program.at_home(), page_count);
            }
            EXPECT_GE(program.at_home(), page_count - 20);
        }
}

} // namespace
} // namespace homing::replay::phases_replayer_tests
