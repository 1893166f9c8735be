// What the engine does from round to round, over the simulated kernel: when it looks at the team, adopts
// areas, goes on arming, rests and wakes.
#include "record/header.hpp"
#include "record/record.hpp"
#include "scanned_program.hpp"
#include "simulated_program.hpp"
#include "sources/in_flight.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace homing::engine_rounds_tests {
namespace {

/// The record that an engine leaves.
class Recorded {
  public:
    Recorded() {
        std::filesystem::remove(path_);
        EXPECT_TRUE(record::open(path_.c_str()));
    }
    ~Recorded() {
        record::close();
        std::filesystem::remove(path_);
    }
    template <class Row> std::vector<Row> rows() const {
        std::ifstream file(path_, std::ios::binary);
        const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        std::vector<Row> found;
        for (std::size_t at = record::header_bytes; at + record::row_bytes <= bytes.size();
             at += record::row_bytes) {
            Row row;
            record::u32 kind = 0;
            std::memcpy(&kind, bytes.data() + at, sizeof kind);
            if (kind != row.row) continue;
            std::memcpy(&row, bytes.data() + at, sizeof row);
            found.push_back(row);
        }
        return found;
    }

  private:
    std::filesystem::path path_ =
        std::filesystem::path(::testing::TempDir()) / ("rounds." + std::to_string(::getpid()));
};

/// A sanitizer may have one of its own beside the test's.
std::size_t threads_of_this_process() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST_F(EngineTest, TheTeamIsLookedAtOnceAtTheFirstBoundary) {
    const Recorded recorded;
    Program program(256);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.region(0x1000, program.block());
    EXPECT_TRUE(recorded.rows<record::thread_row>().empty()) << "no iteration has ended";
    program.iterate(12, program.block());
    EXPECT_EQ(recorded.rows<record::thread_row>().size(), threads_of_this_process());
}

TEST_F(EngineTest, TheTeamIsLookedAtWhereNoIterationIsFound) {
    const Recorded recorded;
    Program program(256);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.region(0x1000, program.block());
    program.engine->finish();
    EXPECT_EQ(recorded.rows<record::thread_row>().size(), threads_of_this_process());
}

/// How many of a program's pages lie on each node.
std::vector<std::size_t> shares(const Program& program) {
    std::vector<std::size_t> held;
    for (int node = 0; node < nodes; ++node)
        held.push_back(program.simulated.pages_on(program.range, node));
    return held;
}

/// A program whose array is allocated after the first region.
class LateProgram : public Program {
  public:
    explicit LateProgram(std::size_t pages) : Program(pages) { area_registry().end(range.begin); }
    void allocate() {
        const Address origin[max_origin_frames] = {0x1234};
        area_registry().note(range, AreaKind::heap_block, origin, 1, nullptr);
    }
    void other_region() {
        engine->region_begin(0x9000);
        engine->region_end();
    }
};

TEST_F(EngineTest, AnArrayThatComesLaterIsPlacedInitiallyToo) {
    const Variable mechanism("HOMING_MECHANISM", "observe");
    const auto dealt_out = [](const std::vector<std::size_t>& held) {
        for (const std::size_t pages : held)
            EXPECT_NEAR(static_cast<double>(pages), 1024, 150);
    };
    const auto single = [](const std::vector<std::size_t>& held) { EXPECT_EQ(held[0], 4096u); };
    for (const bool populated : {true, false})
        for (const char* placement : {"round-robin", "single-node", "random"}) {
            SCOPED_TRACE(std::string(placement) + (populated ? ", populated" : ", not populated yet"));
            const Variable initial("HOMING_INITIAL", placement);
            LateProgram program(4096);
            ASSERT_TRUE(program.start());
            program.other_region();
            program.allocate();
            if (populated) program.simulated.touch_all(program.range, 1);
            program.iterate(20, [](std::size_t) { return 1; });
            if (std::string_view(placement) == "single-node")
                single(shares(program));
            else
                dealt_out(shares(program));
        }
}

TEST_F(EngineTest, RandomPlacementComesToAnEnd) {
    const Variable mechanism("HOMING_MECHANISM", "observe");
    const Variable initial("HOMING_INITIAL", "random");
    Program program(1024);
    ASSERT_TRUE(program.start()); // nothing is populated, and never will be
    ASSERT_FALSE(program.engine->watch().areas().front()->initially_dealt.empty()) << "waits for pages";
    for (int i = 0; i < 9000; ++i) {
        program.engine->region_begin(0x1000);
        program.engine->region_end();
        program.engine->iteration_called();
    }
    const WatchedArea& area = *program.engine->watch().areas().front();
    EXPECT_TRUE(area.initially_dealt.empty()) << "not looked at any more";
}

TEST_F(EngineTest, RandomPlacementLeavesAloneWhatWasSentHome) {
    const Variable initial("HOMING_INITIAL", "random");
    Program program(4096);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.iterate(60, program.block());
    EXPECT_GE(program.right(program.block()), program.pages() * 99 / 100);
}

class NextTouchTest : public EngineTest {
  private:
    Variable mechanism_{"HOMING_MECHANISM", "next-touch"};
    Variable granule_{"HOMING_GRANULE", "4096"};
};

/// More granules than a window holds, in iterations of one or three regions.
TEST_F(NextTouchTest, GoesOnUntilEachGranuleWasArmed) {
    for (const std::size_t granules : {Windows::usual_capacity, 5 * Windows::usual_capacity / 2})
        for (const int regions : {1, 3}) {
            SCOPED_TRACE(std::to_string(granules) + " granules, " + std::to_string(regions) + " regions");
            Program program(granules);
            program.simulated.touch_all(program.range, 0);
            ASSERT_TRUE(program.start());
            for (int i = 0; i < 30; ++i)
                for (int r = 0; r < regions; ++r)
                    program.region(0x1000 + static_cast<Address>(r) * 0x1000, program.block());
            EXPECT_EQ(program.right(program.block()), program.pages());
            EXPECT_EQ(program.faults, program.pages()) << "each faults once";
            EXPECT_EQ(program.engine->statistics().moved, program.pages() * 3 / 4);
            EXPECT_GT(program.engine->statistics().settled_at, 0u);
            EXPECT_EQ(program.stuck, 0u);
        }
}

/// Each of four regions touches a quarter of the array: whoever could touch a granule finds it armed.
TEST_F(NextTouchTest, ArmsEachGranuleInTheRegionThatTouchesIt) {
    Program program(3 * Windows::usual_capacity);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    for (int i = 0; i < 30; ++i)
        for (std::size_t r = 0; r < 4; ++r) {
            program.engine->region_begin(0x1000 * (r + 1));
            for (std::size_t page = r; page < program.pages(); page += 4)
                program.touch(page, program.block()(page));
            program.engine->region_end();
        }
    EXPECT_EQ(program.right(program.block()), program.pages());
}

TEST_F(NextTouchTest, MemoryThatNobodyTouchesDoesNotKeepItGoing) {
    Program program(4 * Windows::usual_capacity);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    const std::size_t used = program.pages() - Windows::usual_capacity; // behind what nobody touches
    for (int i = 0; i < 30; ++i)
        for (Address function : {0x1000, 0x2000, 0x3000}) {
            program.engine->region_begin(function);
            for (std::size_t page = used; page < program.pages(); ++page)
                program.touch(page, program.block()(page));
            program.engine->region_end();
        }
    EXPECT_EQ(program.simulated.pages_on(program.part(used, program.pages()), 3), Windows::usual_capacity);
    EXPECT_GT(program.engine->statistics().settled_at, 0u);
    program.simulated.clear_log();
    program.iterate(4, program.block());
    for (const auto& logged : program.simulated.log())
        EXPECT_NE(logged.call, KernelCall::protect) << "it still arms";
}

/// A smoother's loop on a coarse grid comes first, and looks like an iteration.
TEST_F(NextTouchTest, WhatAShortLoopDidNotTouchStaysArmed) {
    Program program(512);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.region(0x500, [](std::size_t) { return 0; });
    for (int i = 0; i < 6; ++i)
        for (Address function : {0x1000, 0x2000, 0x3000})
            program.region(function, 0, nodes);
    EXPECT_LE(program.faults, 2 * nodes) << "armed at the first iteration, whatever that is";
    program.iterate(1, program.block());
    EXPECT_GE(program.right(program.block()), program.pages() - nodes) << "all that the loop did not touch";
    program.iterate(8, program.block());
    EXPECT_LE(program.faults, program.pages() + 2 * nodes);
}

class NextTouchBesideACallTest : public NextTouchTest {
  protected:
    NextTouchBesideACallTest() {
        program.simulated.touch_all(program.range, 0);
        EXPECT_TRUE(program.start());
    }
    /// While a call is in flight that may use any memory, which lets no window open.
    void iterate_beside_a_call(int iterations) {
        InFlight call;
        call.add(all_memory);
        std::thread([&] { program.iterate(iterations, program.block()); }).join();
        call.end();
    }
    Program program{512};
};

TEST_F(NextTouchBesideACallTest, WhatCouldNotBeArmedHasAnotherIteration) {
    iterate_beside_a_call(10);
    EXPECT_EQ(program.faults, 0u);
    program.iterate(4, program.block());
    EXPECT_EQ(program.right(program.block()), program.pages());
    EXPECT_GT(program.engine->statistics().settled_at, 0u);
}

TEST_F(NextTouchBesideACallTest, WhatCanNeverBeArmedIsLeft) {
    iterate_beside_a_call(40);
    EXPECT_GT(program.engine->statistics().settled_at, 0u);
    program.iterate(10, program.block());
    EXPECT_EQ(program.faults, 0u) << "it still tries";
}

/// Three regions and three windows' worth of granules: a turn common to all regions would show each region
/// the same third for ever.
TEST_F(NextTouchTest, EveryRegionHasItsOwnTurns) {
    const Variable arm("HOMING_ARM", "every-region");
    Program program(3 * Windows::usual_capacity);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    for (int i = 0; i < 8; ++i)
        for (std::size_t r = 0; r < 3; ++r) {
            program.engine->region_begin(0x1000 * (r + 1));
            if (r == 0)
                for (std::size_t page = 0; page < program.pages(); ++page)
                    program.touch(page, program.block()(page));
            program.engine->region_end();
        }
    EXPECT_EQ(program.right(program.block()), program.pages());
}

/// A program whose pages move for as long as it runs: what is written of it grows as the logarithm of that.
TEST_F(NextTouchTest, ARecordOfMovesThatNeverEndIsShortAndTellsAllOfThem) {
    const Recorded recorded;
    const Variable arm("HOMING_ARM", "every-region");
    const Variable guard("HOMING_GUARD", "off");
    Program program(32);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    constexpr int iterations = 6000;
    for (int i = 0; i < iterations; ++i)
        program.iterate(1, [i](std::size_t) { return i % nodes; });
    const std::uint64_t moved = program.simulated.pages_moved();
    EXPECT_GT(moved, std::uint64_t{iterations} * program.pages() / 2);
    program.engine->finish();
    std::uint64_t told = 0;
    const auto moves = recorded.rows<record::move_row>();
    for (const record::move_row& row : moves)
        told += row.moved;
    EXPECT_EQ(told, moved);
    constexpr std::size_t most = record::RowPace::all + 32;
    EXPECT_LT(moves.size(), most);
    EXPECT_LT(recorded.rows<record::iteration_row>().size(), most);
    EXPECT_LT(recorded.rows<record::overhead_row>().size(), most);
    EXPECT_GT(moves.size(), record::RowPace::all) << "the first ones are told one by one";
}

/// An allocator maps and unmaps all the time: what it does must find room in the log at rest, too.
TEST_F(EngineTest, WhatIsMappedAndUnmappedIsFollowedAtRest) {
    Program program(1024);
    program.initialise(program.block());
    ASSERT_TRUE(program.start());
    program.iterate(60, program.block());
    ASSERT_GT(program.engine->statistics().settled_at, 0u);
    const std::size_t faults = program.faults;
    MappingLog::Entry entry;
    entry.range = {Address{1} << 40, (Address{1} << 40) + page_bytes()};
    std::size_t lost = 0;
    for (int i = 0; i < 20; ++i) {
        for (std::size_t k = 0; k < MappingLog::capacity / 8; ++k)
            lost += !mapping_log().add(entry);
        program.region(0x1000 * (1 + static_cast<Address>(i) % 3), program.block());
    }
    EXPECT_EQ(lost, 0u);
    EXPECT_EQ(program.faults, faults) << "it rests on";
}

TEST_F(EngineTest, NextTouchOfMoreThanAWindowHoldsGoesOn) {
    const Variable granule("HOMING_GRANULE", "4096");
    const Variable mechanism("HOMING_MECHANISM", "observe");
    Program program(5 * Windows::usual_capacity / 2);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.region(0x1000, program.block());
    ASSERT_TRUE(program.engine->next_touch_called(program.range));
    for (int i = 0; i < 6; ++i) {
        program.region(0x1000, program.block());
        program.engine->iteration_called();
    }
    EXPECT_EQ(program.right(program.block()), program.pages());
}

/// Before the first region, between two, and while some of the earlier ones wait.
TEST_F(EngineTest, NextTouchOfSeveralRangesIsOfAll) {
    const Variable mechanism("HOMING_MECHANISM", "observe");
    for (const bool at_once : {true, false}) {
        SCOPED_TRACE(at_once);
        Program program(1024);
        program.simulated.touch_all(program.range, 0);
        ASSERT_TRUE(program.start());
        program.region(0x1000, program.block());
        constexpr std::size_t parts = 4;
        const std::size_t pages = program.pages() / parts;
        for (const std::size_t part : {2u, 0u, 3u, 1u}) {
            ASSERT_TRUE(program.engine->next_touch_called(program.part(part * pages, (part + 1) * pages)));
            if (!at_once) program.region(0x1000, program.block());
        }
        for (int i = 0; i < 4; ++i) {
            program.region(0x1000, program.block());
            program.engine->iteration_called();
        }
        EXPECT_EQ(program.right(program.block()), program.pages());
    }
}

/// Windows that only look, once a next touch is over or beside it, move nothing.
TEST_F(EngineTest, NextTouchOfARangeMovesNothingElse) {
    const Variable mechanism("HOMING_MECHANISM", "observe");
    Program program(1024);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.region(0x1000, program.block());
    const Range half = program.part(0, 512);
    ASSERT_TRUE(program.engine->next_touch_called(half));
    program.iterate(60, program.block());
    EXPECT_EQ(program.simulated.pages_moved(), 256u) << "node 0 has its quarter already";
}

TEST_F(EngineTest, WhereAnAreaWasFoundIsToldAgainAsItGrows) {
    const Recorded recorded;
    Program program(1024);
    program.simulated.set_absent_error(EFAULT);
    program.simulated.tell_populated();
    const Address grown = program.range.begin + 8 * page_bytes();
    program.simulated.touch_all({program.range.begin, grown}, 0);
    ASSERT_TRUE(program.start());
    for (int i = 0; i < 12; ++i) {
        program.engine->region_begin(0x1000);
        for (std::size_t page = 0; page < 8; ++page)
            program.touch(page, 0);
        program.engine->region_end();
    }
    program.simulated.touch_all({grown, program.range.end}, 1);
    program.iterate(40, program.block());
    std::vector<record::placement_row> found = recorded.rows<record::placement_row>();
    std::erase_if(found, [](const auto& row) { return row.when != 1; });
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].pages[0], 8u);
    EXPECT_EQ(found[0].absent, 1016u);
    EXPECT_EQ(found[1].pages[1], 1016u) << "where the program had put them, before any was moved";
}

TEST_F(NextTouchTest, RestsWhenAllWasArmed) {
    const Recorded recorded;
    Program program(512);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.iterate(100, program.block());
    const std::size_t before = recorded.rows<record::iteration_row>().size();
    program.iterate(400, program.block());
    EXPECT_LT(recorded.rows<record::iteration_row>().size() - before, 50u) << "only checks are rows";
}

/// Owners change after a long calm: how many iterations later is the array at home again?
std::size_t iterations_to_come_home(Program& program, int calm, double pause) {
    program.simulated.touch_all(program.range, 0);
    EXPECT_TRUE(program.start());
    const auto iterate = [&](const Program::Owner& owner) {
        program.iterate(1, owner);
        simulated_seconds += pause;
    };
    for (int i = 0; i < calm; ++i)
        iterate(program.block());
    EXPECT_EQ(program.right(program.block()), program.pages());
    const auto reversed = [&](std::size_t page) { return nodes - 1 - program.block()(page); };
    constexpr std::size_t enough = 1000;
    for (std::size_t i = 0; i < enough; ++i) {
        if (program.right(reversed) >= program.pages() * 95 / 100) return i;
        iterate(reversed);
    }
    return enough;
}

TEST_F(EngineTest, WakesAsSoonAfterALongCalmAsAfterAShortOne) {
    for (const int calm : {60, 2100, 4200}) {
        Program program(1024);
        EXPECT_LE(iterations_to_come_home(program, calm, 0), 40u) << "after " << calm;
    }
}

TEST_F(EngineTest, WakesInSecondsWhereIterationsAreLong) {
    Program program(1024);
    constexpr double iteration = 2;
    EXPECT_LE(iterations_to_come_home(program, 300, iteration), 8u) << "10 seconds, and to learn anew";
}

/// The scan comes to the second array late, and rounds end by their time.
TEST_F(EngineTest, NothingRestsWhileTheScanHasNotComeRound) {
    ScannedProgram program(1024);
    ASSERT_TRUE(program.start_scanned());
    program.iterate_scanned(1, {});
    program.iterate_scanned(1, {program.first()});
    for (int i = 0; i < 40; ++i)
        program.iterate_scanned(1, {program.part(0, 16)});
    EXPECT_TRUE(program.is_home(program.first()));
    EXPECT_EQ(program.engine->statistics().settled_at, 0u) << "the second array was never seen";
    for (int i = 0; i < 12; ++i)
        program.iterate_scanned(1, {program.second()});
    EXPECT_TRUE(program.is_home(program.second()));
}

TEST_F(EngineTest, AnArrayThatTheScanNeverShowsIsUnused) {
    ScannedProgram program(1024);
    ASSERT_TRUE(program.start_scanned());
    for (int i = 0; i < 30; ++i)
        program.iterate_scanned(1, {program.first(), program.second()}, false);
    EXPECT_TRUE(program.is_home(program.first()));
    EXPECT_GT(program.engine->statistics().settled_at, 0u);
}

/// Moving takes as long as a loaded machine needs: the pause is over before the second array has its turn,
/// and the scan shows the first one only from then on.
ScannedProgram* slow_program = nullptr;
double slow_clock() noexcept {
    return simulated_seconds +
           (slow_program ? 2e-3 * static_cast<double>(slow_program->simulated.pages_moved()) : 0);
}

TEST_F(EngineTest, WhatThePauseLeftUnmovedIsMovedLater) {
    ScannedProgram program(2048);
    slow_program = &program;
    the_clock = slow_clock;
    ASSERT_TRUE(program.start_scanned());
    for (int i = 0; i < 3; ++i)
        program.iterate_scanned(0.1, {program.first(), program.second()});
    while (program.engine->statistics().moved == 0)
        program.iterate_scanned(0.1, {program.first(), program.second()});
    EXPECT_FALSE(program.is_home(program.second()));
    for (int i = 0; i < 40; ++i)
        program.iterate_scanned(0.1, {program.first()});
    EXPECT_TRUE(program.is_home(program.first()));
    EXPECT_TRUE(program.is_home(program.second()));
    simulated_seconds = slow_clock();
    slow_program = nullptr;
    the_clock = simulated_clock;
}

} // namespace
} // namespace homing::engine_rounds_tests
