// The whole engine over the simulated kernel (simulated_program.hpp).
#include "base/invariant.hpp"
#include "simulated_program.hpp"

#include "record/record.hpp"

#include <fstream>
#include <linux/mempolicy.h>

namespace homing::engine_tests {
namespace {

TEST_F(EngineTest, SendsAnArrayHomeThatOneThreadInitialised) {
    Program program(4096);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.iterate(40, program.block());
    EXPECT_GE(program.right(program.block()), program.pages() * 99 / 100);
    EXPECT_GT(program.engine->statistics().settled_at, 0u);
    EXPECT_EQ(program.engine->statistics().moved, program.simulated.pages_moved());
    EXPECT_LT(program.faults, program.pages() * 2) << "a sample is enough";
    EXPECT_EQ(program.stuck, 0u);
    program.engine->finish();
    EXPECT_EQ(program.simulated.protected_pages(), 0u);
}

TEST_F(EngineTest, LeavesAloneWhatIsAtHome) {
    Program program(4096);
    for (std::size_t page = 0; page < program.pages(); ++page)
        program.simulated.touch(program.range.begin + page * page_bytes(), program.block()(page));
    ASSERT_TRUE(program.start());
    program.iterate(40, program.block());
    EXPECT_EQ(program.simulated.pages_moved(), 0u);
    EXPECT_GT(program.engine->statistics().settled_at, 0u);
}

/// A stencil code: an array is written by its owners in one region, and read with a halo in the next, where a
/// neighbour reads the last planes of a block before their owner comes there.
void stencil(Program& program, int iterations, std::size_t halo) {
    const std::size_t block = program.pages() / nodes;
    for (int i = 0; i < iterations; ++i) {
        program.region(0x1000, program.block());
        program.engine->region_begin(0x2000);
        for (std::size_t page = 0; page < program.pages(); ++page) {
            const int owner = program.block()(page);
            const bool by_neighbour = page % block >= block - halo && owner + 1 < nodes;
            program.touch(page, by_neighbour ? owner + 1 : owner, false);
        }
        program.engine->region_end();
    }
}

TEST_F(EngineTest, HalosThatNeighboursReadFirstMoveNoBorder) {
    Program program(4096);
    for (std::size_t page = 0; page < program.pages(); ++page)
        program.simulated.touch(program.range.begin + page * page_bytes(), program.block()(page));
    ASSERT_TRUE(program.start());
    stencil(program, 60, 18);
    EXPECT_LE(program.simulated.pages_moved(), 8u);
}

TEST_F(EngineTest, HalosDoNotKeepPagesFromHome) {
    Program program(4096);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    stencil(program, 60, 18);
    EXPECT_GE(program.right(program.block()), program.pages() * 99 / 100);
}

TEST_F(EngineTest, FindsCyclicOwners) {
    Program program(4096);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    const auto cyclic = [](std::size_t page) { return static_cast<int>(page / 3 % nodes); };
    program.iterate(60, cyclic);
    EXPECT_GE(program.right(cyclic), program.pages() * 95 / 100);
}

TEST_F(EngineTest, SpreadsWhatAllNodesUse) {
    Program program(4096);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    std::size_t turn = 0;
    program.iterate(60,
                    [&turn](std::size_t page) { return static_cast<int>((page * 7 + turn++ / 97) % nodes); });
    for (int node = 0; node < nodes; ++node)
        EXPECT_LT(program.simulated.pages_on(program.range, node), program.pages() / 2) << "node " << node;
}

TEST_F(EngineTest, FollowsOwnersThatChange) {
    Program program(4096);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.iterate(40, program.block());
    const auto reversed = [&](std::size_t page) { return nodes - 1 - program.block()(page); };
    program.iterate(400, reversed);
    EXPECT_GE(program.right(reversed), program.pages() * 95 / 100);
}

/// Pages that went to and fro are not left behind for good: what counts is who uses them now.
TEST_F(EngineTest, OwnersThatChangeThereAndBackAndThenForGoodAreFollowed) {
    Program program(4096);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    const auto reversed = [&](std::size_t page) { return nodes - 1 - program.block()(page); };
    for (int stage = 0; stage < 4; ++stage)
        program.iterate(12, stage % 2 == 0 ? program.block() : Program::Owner(reversed));
    program.iterate(500, program.block());
    EXPECT_GE(program.right(program.block()), program.pages() * 99 / 100);
}

/// Blocks that begin some pages later in every iteration, in an array that one thread initialised.
class DriftingProgram : public Program {
  public:
    explicit DriftingProgram(std::size_t pages) : Program(pages) { simulated.touch_all(range, 0); }
    void shift(std::size_t by_pages) { shift_ += by_pages; }
    Owner owner() const {
        return [this](std::size_t page) {
            return static_cast<int>((page + pages() - shift_) % pages() * nodes / pages());
        };
    }

  private:
    std::size_t shift_ = 0;
};

/// Whether the engine rests when they come, or is awake for another array and has nothing to ask of this one.
TEST_F(EngineTest, APhaseOfRegionsThatWereNeverSeenIsFollowed) {
    for (const bool beside_another : {false, true})
        for (const int first_phase : {12, 30}) {
            SCOPED_TRACE(std::to_string(first_phase) + (beside_another ? ", awake" : ", at rest"));
            Program program(8192);
            const std::size_t pages = beside_another ? 2048 : program.pages();
            const auto without_order = [](std::size_t page) {
                return static_cast<int>((page * 0x9e3779b97f4a7c15u >> 40) % nodes);
            };
            const auto dealt_out = [&](std::size_t page) {
                return page < pages ? static_cast<int>(page / 8 % nodes) : without_order(page);
            };
            const auto in_blocks = [&](std::size_t page) {
                return page < pages ? static_cast<int>(page * nodes / pages) : without_order(page);
            };
            if (beside_another) {
                area_registry().end(program.range.begin);
                const Address one[max_origin_frames] = {0x1234}, other[max_origin_frames] = {0x4321};
                area_registry().note(program.part(0, pages), AreaKind::heap_block, one, 1, nullptr);
                area_registry().note(program.part(pages, program.pages()), AreaKind::heap_block, other, 1,
                                     nullptr);
            }
            program.initialise(dealt_out);
            ASSERT_TRUE(program.start());
            for (int i = 0; i < first_phase; ++i)
                program.region(0x1000, dealt_out);
            for (int i = 0; i < 10; ++i)
                for (const Address function : {0x2000, 0x3000})
                    program.region(function, in_blocks);
            std::size_t right = 0;
            for (std::size_t page = 0; page < pages; ++page)
                right +=
                    program.simulated.where(program.range.begin + page * page_bytes()) == in_blocks(page);
            EXPECT_GE(right, pages * 99 / 100);
            if (beside_another) area_registry().end(program.part(pages, pages).begin);
        }
}

TEST_F(EngineTest, FollowsBordersThatDrift) {
    DriftingProgram program(8192);
    ASSERT_TRUE(program.start());
    double at_home = 0;
    constexpr int iterations = 400;
    constexpr int settling = 100;
    for (int i = 0; i < iterations; ++i) {
        program.iterate(1, program.owner());
        if (i >= settling) at_home += static_cast<double>(program.right(program.owner()));
        program.shift(6); // 0.3 % of a block
    }
    // Every page has changed its owner; one placement for the whole run would have half of them at home.
    EXPECT_GE(at_home / (iterations - settling) / static_cast<double>(program.pages()), 0.85);
    EXPECT_EQ(program.stuck, 0u);
}

TEST_F(EngineTest, PagesThatWereSentHomeAreNotAskedAboutAtEveryMove) {
    DriftingProgram program(16384);
    ASSERT_TRUE(program.start());
    const auto drift = [&](int iterations) {
        for (int i = 0; i < iterations; ++i) {
            program.iterate(1, program.owner());
            program.shift(12);
        }
    };
    drift(40);
    const std::uint64_t moved_before = program.engine->statistics().moved;
    program.simulated.clear_log();
    drift(100);
    std::size_t asked = 0;
    std::size_t rounds = 0;
    for (const auto& logged : program.simulated.log()) {
        asked += logged.call == KernelCall::query ? logged.pages : 0;
        rounds += logged.call == KernelCall::move;
    }
    ASSERT_GT(program.engine->statistics().moved, moved_before + 1000);
    ASSERT_GT(rounds, 20u) << "there were many moves";
    EXPECT_LT(asked, rounds * program.pages() / 4) << "in " << rounds << " moves";
}

TEST_F(EngineTest, PagesThatSomebodyElseMovesAreSentHomeAgain) {
    Program program(8192);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    while (program.engine->statistics().moved < program.pages() / 2)
        program.iterate(1, program.block());
    program.simulated.place(program.range, 3);
    program.iterate(400, program.block());
    EXPECT_GE(program.right(program.block()), program.pages() * 95 / 100);
}

/// A multigrid code: a fine grid and a coarse one behind it in one block; each region works on one of them.
TEST_F(EngineTest, FindsTheOwnersOfACoarseGridBehindAFineOne) {
    Program program(8192);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    const std::size_t fine = program.pages() * 7 / 8;
    const auto owner = [&](std::size_t page) {
        return static_cast<int>(page < fine ? page * nodes / fine
                                            : (page - fine) * nodes / (program.pages() - fine));
    };
    const auto run = [&](Address function, std::size_t first, std::size_t end) {
        program.engine->region_begin(function);
        for (std::size_t page = first; page < end; ++page)
            program.touch(page, owner(page));
        program.engine->region_end();
    };
    for (int i = 0; i < 60; ++i) {
        run(0x1000, 0, fine);
        run(0x2000, fine, program.pages());
        run(0x3000, fine, program.pages());
        run(0x4000, 0, fine);
    }
    EXPECT_GE(program.right(owner), program.pages() * 98 / 100);
}

TEST_F(EngineTest, TheFirstRegionTellsOnlyOfPagesThatExist) {
    Program program(4096);
    const auto reversed = [&](std::size_t page) { return nodes - 1 - program.block()(page); };
    program.simulated.touch_all({program.range.begin, program.range.begin + 1024 * page_bytes()}, 0);
    ASSERT_TRUE(program.start());
    program.region(0x1000, reversed); // the first touch of three quarters of the array
    EXPECT_GT(program.faults, 0u);
    EXPECT_GT(program.engine->statistics().references, 0u);
    for (const Reference& reference : program.engine->references())
        EXPECT_LT(reference.address, program.range.begin + 1024 * page_bytes());
}

TEST_F(EngineTest, ObserveMovesNothing) {
    const Variable mechanism("HOMING_MECHANISM", "observe");
    Program program(2048);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.iterate(30, program.block());
    EXPECT_EQ(program.simulated.calls(KernelCall::move), 0u);
    EXPECT_GT(program.engine->statistics().references, 0u);
}

TEST_F(EngineTest, SendsPagesHomeThatTheKernelHides) {
    Program program(4096);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    for (int i = 0; i < 30; ++i)
        for (Address function : {0x1000, 0x2000, 0x3000}) {
            program.simulated.make_armed(program.range); // the balancer's scan, between two regions
            program.region(function, program.block());
        }
    EXPECT_GT(program.right(program.block()), program.pages() * 95 / 100);
}

TEST_F(EngineTest, DoesNotRestOnPagesThatStayHidden) {
    Program program(4096);
    program.simulated.touch_all(program.range, 0);
    program.kernel.fail(KernelCall::reveal, EPERM);
    ASSERT_TRUE(program.start());
    for (int i = 0; i < 12; ++i)
        for (Address function : {0x1000, 0x2000, 0x3000}) {
            program.simulated.make_armed(program.range);
            program.region(function, program.block());
        }
    EXPECT_EQ(program.engine->statistics().moved, 0u);
    program.kernel.heal();
    for (int i = 0; i < 30; ++i)
        for (Address function : {0x1000, 0x2000, 0x3000}) {
            program.simulated.make_armed(program.range);
            program.region(function, program.block());
        }
    EXPECT_GT(program.right(program.block()), program.pages() * 95 / 100);
}

TEST_F(EngineTest, NextTouchMovesEachGranuleToItsToucher) {
    const Variable mechanism("HOMING_MECHANISM", "next-touch");
    const Variable granule("HOMING_GRANULE", "4096");
    Program program(2048);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.iterate(30, program.block());
    EXPECT_EQ(program.right(program.block()), program.pages());
    EXPECT_LE(program.faults, program.pages()) << "each page faults once";
    EXPECT_EQ(program.engine->statistics().moved, program.pages() * 3 / 4) << "a quarter was at home";
    EXPECT_EQ(program.simulated.pages_moved(), program.pages() * 3 / 4);
    EXPECT_EQ(program.simulated.protected_pages(), 0u);
}

TEST_F(EngineTest, NextTouchMovesWhatAScanHidesInTheHandler) {
    const Variable mechanism("HOMING_MECHANISM", "next-touch");
    const Variable granule("HOMING_GRANULE", "4096");
    Program program(512);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.simulated.scan_after(KernelCall::protect, 1 << 20);
    program.iterate(30, program.block());
    EXPECT_EQ(program.right(program.block()), program.pages());
}

TEST_F(EngineTest, NextTouchArmsAgainWhereALongerIterationIsFound) {
    const Variable mechanism("HOMING_MECHANISM", "next-touch");
    Program program(512);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.iterate(12, program.block());
    const auto reversed = [&](std::size_t page) { return nodes - 1 - program.block()(page); };
    program.iterate(2, reversed);
    EXPECT_EQ(program.right(program.block()), program.pages()) << "armed once";
    program.engine->iteration_called();
    program.iterate(2, reversed);
    EXPECT_EQ(program.right(reversed), program.pages());
}

TEST_F(EngineTest, NextTouchEveryRegionFollowsEachRegion) {
    const Variable mechanism("HOMING_MECHANISM", "next-touch");
    const Variable arm("HOMING_ARM", "every-region");
    Program program(512);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.iterate(12, program.block());
    EXPECT_EQ(program.right(program.block()), program.pages());
    const auto reversed = [&](std::size_t page) { return nodes - 1 - program.block()(page); };
    program.region(0x1000, reversed);
    EXPECT_EQ(program.right(reversed), program.pages()) << "at once, without observing first";
}

TEST_F(EngineTest, TheGuardLeavesAloneWhatFitsIntoTheCache) {
    Program program(1024);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start(std::uint64_t{1} << 30));
    program.iterate(60, program.block());
    EXPECT_EQ(program.simulated.pages_moved(), 0u);
}

TEST_F(EngineTest, AFullNodeIsRefusedAndCounted) {
    Program program(4096, 4096 + 8192 +
                              100); // node 0 holds all; the engine keeps 32 MiB (8192 pages) free everywhere
    program.simulated.touch_all(program.range, 0);
    // Node 2 is full of something else.
    const Range other{program.range.end + (1u << 30), program.range.end + (1u << 30) + 12000 * page_bytes()};
    program.simulated.map(other);
    program.simulated.touch_all(other, 2);
    ASSERT_TRUE(program.start());
    program.iterate(40, program.block());
    EXPECT_EQ(program.simulated.pages_on(program.range, 2), 0u);
    EXPECT_GT(program.engine->statistics().refused, 0u);
    EXPECT_GE(program.simulated.pages_on(program.range, 1), 900u);
    EXPECT_GE(program.simulated.pages_on(program.range, 3), 900u);
}

TEST_F(EngineTest, GivesBackThePolicyItFound) {
    Program program(2048);
    NodeSet first_two;
    first_two.add(0);
    first_two.add(1);
    const MemoryPolicy interleave{MPOL_INTERLEAVE, first_two};
    const Range part{program.range.begin, program.range.begin + 512 * page_bytes()};
    ASSERT_EQ(program.simulated.bind(part, interleave), 0);
    program.simulated.place(program.range, 0);
    ASSERT_TRUE(program.start());
    program.iterate(40, program.block());
    EXPECT_GT(program.simulated.pages_moved(), 0u);
    program.engine->finish();
    EXPECT_EQ(program.simulated.policy_of(part.begin), interleave);
    EXPECT_EQ(program.simulated.policy_of(part.end), MemoryPolicy{});
}

TEST_F(EngineTest, MemoryThatIsFreedInARegionIsLeftAlone) {
    Program program(2048);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.iterate(10, program.block());
    program.engine->region_begin(0x1000);
    area_registry().end(program.range.begin); // what the allocator hook does
    program.engine->windows()->release(program.range);
    EXPECT_EQ(program.simulated.protected_pages(), 0u);
    program.simulated.unmap(program.range);
    program.simulated.clear_log();
    program.engine->region_end();
    for (int i = 0; i < 10; ++i)
        for (Address function : {0x1000, 0x2000, 0x3000}) {
            program.engine->region_begin(function);
            program.engine->region_end();
        }
    for (const auto& logged : program.simulated.log())
        EXPECT_NE(logged.call, KernelCall::protect) << "protections of memory that is gone";
}

TEST_F(EngineTest, SaysThatNoWindowOpensForLong) {
    const Variable mechanism("HOMING_MECHANISM", "next-touch");
    const Variable arm("HOMING_ARM", "every-region");
    for (const bool allowed : {true, false}) {
        SCOPED_TRACE(allowed);
        HookServices services;
        services.surroundings_allow =
            allowed ? +[](Windows&) noexcept { return true; } : +[](Windows&) noexcept { return false; };
        Program program(256);
        program.simulated.touch_all(program.range, 0);
        program.engine = std::make_unique<Engine>(program.kernel, machine_of(nodes, 1 << 16), services);
        ASSERT_TRUE(program.engine->start());
        program.iterate(20, program.block()); // what is said of this process's threads was said
        const auto before = record::messages(record::Level::warning);
        program.iterate(1500, program.block()); // longer than a round
        EXPECT_EQ(program.faults > 0, allowed);
        EXPECT_EQ(record::messages(record::Level::warning) > before, !allowed);
    }
}

/// Every call that the engine makes fails with every errno of its man page, always or at the third time: the
/// program runs on, nothing stays protected, nothing counts as moved that is not there.
TEST_F(EngineTest, SurvivesEveryErrorOfEveryCall) {
    for (const char* mechanism : {"iterative", "next-touch"}) {
        const Variable variable("HOMING_MECHANISM", mechanism);
        for (const KernelCall call : failing_calls)
            for (const int error : errnos_of(call))
                for (const std::size_t nth : {FailingKernel::every, std::size_t{3}}) {
                    SCOPED_TRACE(std::string(mechanism) + ": " + name_of(call) + " fails with " +
                                 std::to_string(error) + (nth ? " once" : " always"));
                    Program program(256);
                    program.simulated.touch_all(program.range, 0);
                    program.kernel.fail(call, error, nth);
                    if (program.start()) {
                        program.iterate(16, program.block());
                        EXPECT_EQ(program.stuck, 0u);
                        program.engine->finish();
                        EXPECT_LE(program.engine->statistics().moved, program.pages() * 16);
                        if (program.simulated.pages_moved() == 0) {
                            EXPECT_LE(program.engine->statistics().moved, program.pages() / nodes + 16)
                                << "only the toucher's own pages (to a granule) are there without a move";
                        }
                    }
                    EXPECT_EQ(program.simulated.protected_pages(), 0u);
                }
    }
}

TEST_F(EngineTest, SurvivesPagesThatAreRefused) {
    for (const int error : page_errnos()) {
        SCOPED_TRACE(error);
        Program program(512);
        program.simulated.touch_all(program.range, 0);
        program.kernel.refuse_pages(error);
        ASSERT_TRUE(program.start());
        program.iterate(20, program.block());
        EXPECT_EQ(program.engine->statistics().moved, 0u);
        EXPECT_GT(program.engine->statistics().refused, 0u);
        EXPECT_EQ(program.simulated.protected_pages(), 0u);
    }
}

/// A source with a defect: it breaks a rule when it is asked for what it saw.
class BrokenSource final : public ReferenceSource {
  public:
    const char* name() const noexcept override { return "broken"; }
    std::string unavailable() override { return {}; }
    bool start(std::span<const WatchedRange>) override { return true; }
    void stop() override { stopped = true; }
    void drain(std::vector<Reference>&) override { invariant(false, "a source tells what it saw"); }
    static inline bool stopped = false;
};

TEST_F(EngineTest, ABrokenRuleMakesHomingStepAsideAndSayWhere) {
    // In a process of its own: stepping aside is for good.
    const auto run = [] {
        Program program(256);
        program.simulated.touch_all(program.range, 0);
        program.engine = std::make_unique<Engine>(program.kernel, machine_of(nodes, 1 << 16), HookServices{});
        if (!program.engine->start(std::make_unique<BrokenSource>())) std::_Exit(1);
        PolicyKeeper& policies = program.engine->policies();
        if (policies.own({&program.range, 1}, program.engine->machine().targets()).bytes == 0) std::_Exit(4);
        program.iterate(20, program.block());
        if (program.simulated.pages_moved() != 0 || program.simulated.protected_pages() != 0) std::_Exit(2);
        // The rest of the run is as it would be without homing.
        if (!BrokenSource::stopped || policies.bytes(PolicyKeeper::Layer::owned) != 0) std::_Exit(5);
        std::_Exit(record::messages(record::Level::not_done) > 0 ? 0 : 3);
    };
    ASSERT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

TEST_F(EngineTest, WithoutTheGuardPagesMoveWhateverThatCosts) {
    const std::string costs = std::string(::testing::TempDir()) + "dear." + std::to_string(::getpid());
    std::ofstream(costs) << "local_ns = 100\nremote_ns = 101\nmove_call_us = 1000\nmove_page_us = 1000000\n";
    const Variable stated("HOMING_COSTS", costs.c_str());
    for (const char* guard : {"on", "off"}) {
        SCOPED_TRACE(guard);
        const Variable chosen("HOMING_GUARD", guard);
        Program program(1024);
        program.simulated.touch_all(program.range, 0);
        ASSERT_TRUE(program.start());
        program.iterate(20, program.block());
        if (std::string_view(guard) == "on")
            EXPECT_EQ(program.simulated.pages_moved(), 0u);
        else
            EXPECT_GT(program.right(program.block()), 900u);
    }
    std::remove(costs.c_str());
}

} // namespace
} // namespace homing::engine_tests
