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

} // namespace
} // namespace homing
