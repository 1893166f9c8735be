#include "machine/costs.hpp"

#include "record/record.hpp"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace homing::machine_costs_tests {
namespace {

Machine two_nodes(double distance) {
    Machine machine;
    machine.nodes = {{0, 4, 1 << 30, true}, {1, 4, 1 << 30, true}, {2, 0, 1 << 30, true}};
    machine.distances = {{10, distance, 200}, {distance, 10, 200}, {200, 200, 10}};
    return machine;
}

class CostsFile : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/homing-costs-XXXXXX";
        const int descriptor = ::mkstemp(name);
        ASSERT_GE(descriptor, 0);
        ::close(descriptor);
        path = name;
    }
    void TearDown() override { std::filesystem::remove(path); }
    StatedCosts read(const std::string& text) const {
        std::ofstream(path, std::ios::trunc) << text;
        return find_costs(path, two_nodes(21));
    }
    std::string path;
};

TEST(Costs, AssumedFromTheDistancesOfTargets) {
    const StatedCosts stated = costs_from_distances(two_nodes(21));
    EXPECT_DOUBLE_EQ(stated.costs.local_ns, 90);
    EXPECT_DOUBLE_EQ(stated.costs.remote_ns, 189);
    EXPECT_DOUBLE_EQ(stated.costs.move_call_us, 50);
    EXPECT_DOUBLE_EQ(stated.costs.move_page_us, 1.5);
    EXPECT_EQ(stated.source, "assumed from distances");
}

TEST(Costs, WithoutUsableDistancesTheUsualOnesAreAssumed) {
    Machine machine = two_nodes(21);
    machine.distances.clear();
    EXPECT_DOUBLE_EQ(costs_from_distances(machine).costs.remote_ns, 180);
    EXPECT_DOUBLE_EQ(costs_from_distances(two_nodes(0)).costs.remote_ns, 180);
    EXPECT_DOUBLE_EQ(costs_from_distances(two_nodes(255)).costs.remote_ns, 180);
    EXPECT_DOUBLE_EQ(costs_from_distances(Machine{}).costs.remote_ns, 180);
}

TEST_F(CostsFile, IsBelieved) {
    const StatedCosts stated = read("# measured\nlocal_ns = 80\nremote_ns = 131.5\nmove_call_us = 12.25\n"
                                    "move_page_us = 0.8\ncache_kib = 1024\ntouch_us = 15\nfit_us = 150\n");
    EXPECT_DOUBLE_EQ(stated.costs.local_ns, 80);
    EXPECT_DOUBLE_EQ(stated.costs.remote_ns, 131.5);
    EXPECT_DOUBLE_EQ(stated.costs.move_call_us, 12.25);
    EXPECT_DOUBLE_EQ(stated.costs.move_page_us, 0.8);
    EXPECT_EQ(stated.cache_bytes, 1u << 20);
    EXPECT_DOUBLE_EQ(stated.costs.touch_us, 15);
    EXPECT_DOUBLE_EQ(stated.costs.fit_us, 150);
    EXPECT_EQ(stated.source, "stated in " + path);
}

TEST(Costs, AreToldAsACostsFileHasThem) {
    policy::Costs costs;
    costs.remote_ns = 131.5;
    costs.move_page_us = 0.05;
    EXPECT_EQ(cost_values(costs), "local_ns = 90, remote_ns = 131.5, move_call_us = 45, move_page_us = 0.05");
}

TEST_F(CostsFile, IsNotBelievedWhereItIsWrong) {
    const std::string good = "local_ns = 80\nremote_ns = 130\nmove_call_us = 12\n";
    for (const char* rest :
         {"", "move_page_us = \"fast\"", "move_page_us = -1", "move_page_us = nan", "move_page_us = inf",
          "move_page_us = 1\nmove_pages_us = 2", "move_page_us = 1\ncache_kib = true",
          "move_page_us =", "move_page_us = 1\nlocal_ns = 3"}) {
        const auto before = record::messages(record::Level::warning);
        const StatedCosts stated = read(good + rest + "\n");
        EXPECT_EQ(stated.source, "assumed from distances") << rest;
        EXPECT_DOUBLE_EQ(stated.costs.local_ns, 90) << rest;
        EXPECT_EQ(record::messages(record::Level::warning), before + 1) << rest;
    }
    EXPECT_EQ(read("local_ns = 90\nremote_ns = 80\nmove_call_us = 1\nmove_page_us = 1").source,
              "assumed from distances");
    EXPECT_EQ(read("local_ns = 0\nremote_ns = 80\nmove_call_us = 1\nmove_page_us = 1").source,
              "assumed from distances");
}

TEST_F(CostsFile, SaysWhichKeyIsWrongAndWhatIsExpected) {
    const auto problem = [&](const std::string& text) {
        std::ofstream(path, std::ios::trunc) << text;
        StatedCosts stated;
        return read_costs(path, stated);
    };
    EXPECT_EQ(problem("local_ns = 1"),
              "remote_ns, move_call_us and move_page_us must be stated, each as a number");
    const std::string good = "local_ns = 80\nremote_ns = 130\nmove_call_us = 12\nmove_page_us = 1\n";
    EXPECT_EQ(problem(good), "");
    EXPECT_EQ(problem(good + "cache_kib = \"large\""), "cache_kib must be a number from 0 to 1e12");
    EXPECT_EQ(
        problem(good + "move_pages_us = 1"),
        "unknown key move_pages_us; there are local_ns, remote_ns, move_call_us, move_page_us, cache_kib, "
        "touch_us and fit_us");
    EXPECT_EQ(problem("local_ns = 80\nremote_ns = 30\nmove_call_us = 12\nmove_page_us = 1\n"),
              "remote_ns must not be below local_ns");
    EXPECT_TRUE(problem("local 80, remote 130").starts_with("is not TOML (key = number, a line each): "));
    StatedCosts stated;
    EXPECT_EQ(read_costs("/no/such/file.toml", stated), "File could not be opened for reading");
    // Neither ends, and the user's program would wait.
    const std::string pipe = path + ".pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(read_costs(pipe, stated), "is not a regular file");
    EXPECT_EQ(::unlink(pipe.c_str()), 0);
    EXPECT_EQ(read_costs("/dev/zero", stated), "is not a regular file");
    EXPECT_EQ(problem(std::string(2 << 20, '\n')), "is too large");
}

TEST_F(CostsFile, MayBeAbsent) {
    EXPECT_EQ(find_costs("", two_nodes(21)).source, "assumed from distances");
    EXPECT_EQ(find_costs("/no/such/file.toml", two_nodes(21)).source, "assumed from distances");
    EXPECT_EQ(find_costs("/tmp", two_nodes(21)).source, "assumed from distances");
    std::string any;
    for (int byte = 0; byte < 256; ++byte)
        any += static_cast<char>(byte);
    EXPECT_EQ(read(any).source, "assumed from distances");
}

} // namespace
} // namespace homing::machine_costs_tests
