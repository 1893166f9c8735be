// The hybrid mechanism without any call, over the simulated kernel: phases that it finds itself.
#include "engine/guarded.hpp"
#include "phases/hybrid.hpp"
#include "record/record.hpp"
#include "simulated_program.hpp"

namespace homing::replay::phases_hybrid_tests {
namespace {

constexpr std::size_t page_count = 400;

/// Moves pages as another mechanism does, and notes where they were when it began to decide.
class Looks final : public Mechanism {
  public:
    Looks(std::unique_ptr<Mechanism> decides, const Program& program)
        : decides_(std::move(decides)), program_(program) {}
    const char* name() const noexcept override { return decides_->name(); }
    void iteration_observed(Engine& engine, bool check) override {
        look();
        decides_->iteration_observed(engine, check);
    }
    void iteration_begins(Engine& engine) override {
        look();
        decides_->iteration_begins(engine);
    }

    std::size_t decisions = 0;
    std::size_t least_at_home = page_count;

  private:
    void look() {
        ++decisions;
        least_at_home = std::min(least_at_home, program_.right(program_.block()));
    }

    std::unique_ptr<Mechanism> decides_;
    const Program& program_;
};

/// Three regions use the array by blocks of pages, and one in the opposite order.
class Sweeps : public Program {
  public:
    explicit Sweeps(bool guarded, std::size_t most = 20, Hybrid::Records what = Hybrid::Records::stable)
        : Program(page_count) {
        initialise(block());
        EXPECT_TRUE(start());
        engine->guarded([&] {
            auto iterative = std::make_unique<Looks>(
                make_iterative(what == Hybrid::Records::stable, engine->team()), *this);
            looks = iterative.get();
            auto one = std::make_unique<Hybrid>(std::move(iterative), most, 1.5, guarded, what);
            hybrid = one.get();
            engine->move_by(std::move(one));
        });
    }
    int opposite(std::size_t page) const { return nodes - 1 - block()(page); }
    void phase() {
        engine->region_begin(0x9000);
        home_in_phase = right(block());
        for (std::size_t page = 0; page < page_count; ++page)
            touch(page, opposite(page));
        engine->region_end();
    }
    void step() {
        iterate(1, block());
        phase();
        region(0xa000, block());
        home_behind = right(block());
    }
    void step_that_ends_in_phase() {
        iterate(1, block());
        phase();
    }

    Hybrid* hybrid = nullptr;
    Looks* looks = nullptr;
    std::size_t home_in_phase = 0, home_behind = 0;
};

class HybridPhases : public EngineTest {};

TEST_F(HybridPhases, ARegionThatWantsOtherHomesIsAPhase) {
    Sweeps program(false);
    for (int i = 0; i < 200 && program.hybrid->moved_phases().empty(); ++i)
        program.step();
    ASSERT_EQ(program.hybrid->moved_phases().size(), 1u);
    for (int i = 0; i < 5; ++i) {
        program.step();
        EXPECT_EQ(program.home_in_phase, page_count - 20);
        EXPECT_EQ(program.home_behind, page_count) << "they went back before the next region";
    }
    EXPECT_EQ(program.stuck, 0u);
    const auto [region, number] = *program.hybrid->moved_phases().begin();
    EXPECT_EQ(program.engine->regions()[region].function, Address{0x9000});
    EXPECT_GE(program.hybrid->replayer().phases()[number].eligible, page_count - 2);
    EXPECT_EQ(program.hybrid->replayer().phases().size(), 5u) << "all regions are weighed";
}

TEST_F(HybridPhases, AnIterationThatEndsInAPhaseIsJudgedWithItsPagesAtHome) {
    Sweeps program(false);
    for (int i = 0; i < 200 && program.hybrid->moved_phases().empty(); ++i)
        program.step_that_ends_in_phase();
    ASSERT_EQ(program.hybrid->moved_phases().size(), 1u);
    program.looks->decisions = 0;
    program.looks->least_at_home = page_count;
    for (int i = 0; i < 10; ++i) {
        program.engine->stability().wake(); // something is decided at the end of each
        program.step_that_ends_in_phase();
        EXPECT_EQ(program.home_in_phase, page_count - 20);
    }
    EXPECT_GE(program.looks->decisions, 10u);
    EXPECT_EQ(program.looks->least_at_home, page_count);
    program.region(0x1000, program.block()); // the last replay is undone, too
    const auto number = program.hybrid->moved_phases().begin()->second;
    const Replayer::Phase& phase = program.hybrid->replayer().phases()[number];
    EXPECT_EQ(phase.moved, 20 * phase.replays);
    EXPECT_EQ(phase.undone, phase.moved);
}

TEST_F(HybridPhases, WhereItDoesNotPayNothingMovesAndTheEngineRests) {
    Sweeps program(true); // a sweep of 20 pages saves less than 40 moves cost
    for (int i = 0; i < 200 && program.hybrid->replayer().phases().empty(); ++i)
        program.step();
    ASSERT_EQ(program.hybrid->replayer().phases().size(), 5u);
    EXPECT_TRUE(program.hybrid->moved_phases().empty());
    EXPECT_FALSE(program.hybrid->needs_windows());
    const std::uint64_t moved = program.engine->statistics().moved;
    for (int i = 0; i < 20; ++i)
        program.step();
    EXPECT_EQ(program.engine->statistics().moved, moved);
}

/// A round of observation has many iterations where little is seen in each.
class NeverStable final : public Mechanism {
  public:
    const char* name() const noexcept override { return "never stable"; }
    void iteration_observed(Engine&, bool) override {}
};

TEST_F(HybridPhases, APlacementThatNeverSettlesIsRecordedAllTheSame) {
    Program program(page_count);
    program.initialise(program.block());
    ASSERT_TRUE(program.start());
    Hybrid hybrid(std::make_unique<NeverStable>(), 20, 1.5, false);
    Hybrid undecided(std::make_unique<NeverStable>(), 20, 1.5, false);
    program.iterate(4, program.block()); // the iteration is found
    for (int i = 0; i < 20; ++i)
        undecided.iteration_begins(*program.engine);
    EXPECT_FALSE(undecided.needs_windows()) << "nothing was seen of it yet";
    program.engine->stability().wake();
    hybrid.iteration_observed(*program.engine, false);
    for (int i = 0; i < 15; ++i) {
        hybrid.iteration_begins(*program.engine);
        EXPECT_FALSE(hybrid.needs_windows()) << i;
    }
    hybrid.iteration_begins(*program.engine);
    EXPECT_TRUE(hybrid.needs_windows()) << "sixteen iterations, in one round";
}

TEST_F(HybridPhases, ARunThatEndsBeforeAPhaseIsRecordedSaysSo) {
    for (const bool recorded : {false, true}) {
        const std::uint64_t before = record::messages(record::Level::note);
        Sweeps program(false);
        for (int i = 0; i < 200 && recorded && program.hybrid->replayer().phases().empty(); ++i)
            program.step();
        program.hybrid->process_ends(*program.engine);
        EXPECT_EQ(record::messages(record::Level::note) > before, !recorded);
    }
}

TEST_F(HybridPhases, APlacementThatIsWrongIsMendedFirst) {
    Sweeps program(false);
    program.simulated.place(program.range, 0);
    for (int i = 0; i < 400 && program.hybrid->moved_phases().empty(); ++i)
        program.step();
    ASSERT_FALSE(program.hybrid->moved_phases().empty());
    program.step();
    EXPECT_GE(program.home_behind, page_count * 9 / 10);
}

TEST_F(HybridPhases, RecordAndReplayAloneRecordsTheFirstIterationAndMovesForPhasesOnly) {
    Sweeps program(false, 20, Hybrid::Records::first);
    program.simulated.place(program.range, 0); // so that the iterative mechanism would move three quarters
    int steps = 0;
    for (; steps < 200 && program.hybrid->replayer().phases().empty(); ++steps)
        program.step();
    EXPECT_LT(steps, 10) << "it waits for nothing";
    ASSERT_FALSE(program.hybrid->moved_phases().empty());
    for (int i = 0; i < 20; ++i) {
        program.step();
        program.region(0xb000, program.block());
        EXPECT_EQ(program.right(program.block()), page_count / nodes) << "all of them are back";
    }
    std::uint64_t moved = 0;
    for (const Replayer::Phase& phase : program.hybrid->replayer().phases()) {
        EXPECT_EQ(phase.undone, phase.moved);
        EXPECT_LE(phase.moved, 20 * phase.replays);
        moved += phase.moved;
    }
    EXPECT_GE(moved, 20u * 20u);
    EXPECT_EQ(program.stuck, 0u);
}

TEST_F(HybridPhases, MemoryThatGoesIsPassedOver) {
    Sweeps program(false);
    for (int i = 0; i < 200 && program.hybrid->moved_phases().empty(); ++i)
        program.step();
    program.step();
    area_registry().end(program.range.begin);
    for (int i = 0; i < 3; ++i)
        for (const Address function : {0x1000, 0x2000, 0x3000, 0x9000, 0xa000}) {
            program.engine->region_begin(function);
            program.engine->region_end();
        }
    EXPECT_EQ(program.stuck, 0u);
    EXPECT_EQ(program.right(program.block()), page_count);
}

TEST_F(HybridPhases, EveryCallOfTheKernelMayFail) {
    for (const KernelCall call : {KernelCall::query, KernelCall::move, KernelCall::protect, KernelCall::bind})
        for (const int error : errnos_of(call)) {
            SCOPED_TRACE(name_of(call) + " fails with errno " + std::to_string(error));
            Sweeps program(false);
            for (int i = 0; i < 60 && program.hybrid->moved_phases().empty(); ++i)
                program.step();
            program.kernel.fail(call, error);
            for (int i = 0; i < 3; ++i)
                program.step();
            program.kernel.heal();
            for (int i = 0; i < 3; ++i)
                program.step();
            EXPECT_EQ(program.stuck, 0u);
            EXPECT_GE(program.home_behind, page_count - 20);
        }
}

} // namespace
} // namespace homing::replay::phases_hybrid_tests
