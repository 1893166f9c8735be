// What the engine does from round to round, over the simulated kernel: when it looks at the team, adopts
// areas, goes on arming, rests and wakes.
#include "record/header.hpp"
#include "record/record.hpp"
#include "simulated_program.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace homing {
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

TEST_F(EngineTest, TheTeamIsLookedAtOnceAtTheFirstBoundary) {
    const Recorded recorded;
    Program program(256);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.region(0x1000, program.block());
    EXPECT_TRUE(recorded.rows<record::thread_row>().empty()) << "no iteration has ended";
    program.iterate(12, program.block());
    EXPECT_EQ(recorded.rows<record::thread_row>().size(), 1u) << "the thread of this test";
}

TEST_F(EngineTest, TheTeamIsLookedAtWhereNoIterationIsFound) {
    const Recorded recorded;
    Program program(256);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.region(0x1000, program.block());
    program.engine->finish();
    EXPECT_EQ(recorded.rows<record::thread_row>().size(), 1u);
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

} // namespace
} // namespace homing
