// NUMA logic against described machines, so that a one-node laptop tests an eight-node box.
#include "machine/machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sched.h>
#include <unistd.h>

using namespace homing;

namespace {

bool has_hwloc() { return !described_machine("numa:1 core:1 pu:1").nodes.empty(); }

bool has_remark(const Machine& machine, const std::string& text) {
    return std::any_of(machine.remarks.begin(), machine.remarks.end(),
                       [&text](const std::string& remark) { return remark.find(text) != std::string::npos; });
}

class Described : public testing::Test {
  protected:
    void SetUp() override {
        if (!has_hwloc()) GTEST_SKIP() << "libhwloc.so.15 is not installed";
    }
};

TEST_F(Described, EightNodesOfFourCpus) {
    const Machine machine = described_machine("pack:8 [numa(memory=16GB)] l3:2(size=16MB) core:2 pu:1");
    ASSERT_EQ(machine.nodes.size(), 8u);
    EXPECT_EQ(machine.targets().count(), 8);
    for (const Node& node : machine.nodes) {
        EXPECT_EQ(node.cpus, 4);
        EXPECT_EQ(node.memory_bytes, 16'000'000'000u);
    }
    EXPECT_EQ(machine.cpu_to_node(0), 0);
    EXPECT_EQ(machine.cpu_to_node(31), 7);
    EXPECT_EQ(machine.cpu_to_node(32), -1);
    EXPECT_EQ(machine.cpu_to_node(-1), -1);
    EXPECT_EQ(machine.last_level_caches_per_node, 2);
    EXPECT_EQ(machine.last_level_cache_bytes, 16'000'000u);
    EXPECT_TRUE(machine.remarks.empty());
}

TEST_F(Described, SparseIndicesAndOnesTooHigh) {
    const Machine machine = described_machine("numa:4(memory=2GB indexes=0,2,5,70) core:2 pu:1");
    ASSERT_EQ(machine.nodes.size(), 3u);
    EXPECT_EQ(machine.nodes[1].index, 2);
    EXPECT_EQ(machine.nodes[2].index, 5);
    EXPECT_EQ(machine.targets().bits, 0b100101u);
    EXPECT_EQ(machine.cpu_to_node(4), 5);
    EXPECT_TRUE(has_remark(machine, "node 70 is beyond"));
}

TEST_F(Described, MemoryWithoutCpusIsNeverATarget) {
    // Two sockets, each with its own memory and a memory expander beside it.
    const Machine machine = described_machine("pack:2 [numa(memory=8GB)] [numa(memory=32GB)] core:4 pu:1");
    ASSERT_EQ(machine.nodes.size(), 4u);
    EXPECT_EQ(machine.nodes[0].cpus, 4);
    EXPECT_EQ(machine.nodes[1].cpus, 0);
    EXPECT_EQ(machine.targets().bits, 0b0101u);
    EXPECT_TRUE(has_remark(machine, "node 1 has no CPUs: never a target"));
    EXPECT_TRUE(has_remark(machine, "node 3 has no CPUs: never a target"));
}

TEST_F(Described, NodesWithoutMemoryAreNeverTargets) {
    std::ifstream recorded(HOMING_TEST_DATA "/unit/machines/two_sockets_four_nodes.xml");
    std::string text{std::istreambuf_iterator<char>(recorded), {}};
    const std::string memory = "local_memory=\"2000000000\"";
    ASSERT_NE(text.find(memory), std::string::npos);
    text.replace(text.find(memory), memory.size(), "local_memory=\"0\"");
    const std::string path = "/tmp/homing-machine-" + std::to_string(::getpid()) + ".xml";
    std::ofstream(path) << text;
    const Machine machine = described_machine(path);
    ::unlink(path.c_str());
    ASSERT_EQ(machine.nodes.size(), 4u);
    EXPECT_EQ(machine.targets().bits, 0b1110u);
    EXPECT_TRUE(has_remark(machine, "node 0 has no memory"));
}

TEST_F(Described, ACacheOfSeveralNodesIsShared) {
    const Machine machine = described_machine("pack:2 l3:1(size=32MB) numa:2(memory=8GB) core:4 pu:1");
    ASSERT_EQ(machine.nodes.size(), 4u);
    EXPECT_EQ(machine.last_level_cache_bytes, 16'000'000u);
    EXPECT_EQ(machine.last_level_caches_per_node, 1);
}

TEST_F(Described, DistancesFromAFile) {
    const Machine machine = described_machine(HOMING_TEST_DATA "/unit/machines/two_sockets_four_nodes.xml");
    ASSERT_EQ(machine.nodes.size(), 4u);
    const std::vector<std::vector<double>> expected{
        {10, 12, 32, 32}, {12, 10, 32, 32}, {32, 32, 10, 12}, {32, 32, 12, 10}};
    EXPECT_EQ(machine.distances, expected);
    EXPECT_EQ(machine.last_level_caches_per_node, 2);
}

TEST_F(Described, NonsenseIsARemark) {
    for (const char* text : {"", "banana", "numa:", "/no/such/file.xml"}) {
        const Machine machine = described_machine(text);
        EXPECT_TRUE(machine.nodes.empty()) << text;
        EXPECT_FALSE(machine.remarks.empty()) << text;
    }
}

TEST(Discovered, ThisMachine) {
    if (!has_hwloc()) GTEST_SKIP() << "libhwloc.so.15 is not installed";
    const Machine machine = discover_machine(linux_kernel());
    ASSERT_FALSE(machine.nodes.empty()) << (machine.remarks.empty() ? "" : machine.remarks.front());
    EXPECT_EQ(machine.source, "hwloc");
    EXPECT_GE(machine.targets().count(), 1);
    EXPECT_GE(static_cast<int>(machine.nodes.size()), quick_node_count());
    cpu_set_t before, after;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    int cpus = 0;
    for (const Node& node : machine.nodes) {
        cpus += node.cpus;
        EXPECT_GT(node.memory_bytes, 0u);
    }
    EXPECT_EQ(cpus, CPU_COUNT(&before));
    discover_machine(linux_kernel());
    ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after)) << "hwloc has not bound the thread";
    if (machine.distances.size() == machine.nodes.size()) {
        for (std::size_t i = 0; i < machine.nodes.size(); ++i)
            EXPECT_EQ(machine.distances[i][i], 10);
    }
}

TEST(Discovered, RespectsTheProcesssCpus) {
    if (!has_hwloc()) GTEST_SKIP() << "libhwloc.so.15 is not installed";
    cpu_set_t all, one;
    ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    const auto cpus_seen = [] {
        int cpus = 0;
        for (const Node& node : discover_machine(linux_kernel()).nodes)
            cpus += node.cpus;
        return cpus;
    };
    EXPECT_EQ(cpus_seen(), 1);
    // An OpenMP runtime has bound the thread: that says nothing about the process.
    ::setenv("OMP_PROC_BIND", "close", 1);
    EXPECT_EQ(cpus_seen(), CPU_COUNT(&all));
    ::unsetenv("OMP_PROC_BIND");
    ::sched_setaffinity(0, sizeof all, &all);
}

TEST(Assumed, NodesPlayedByOneMachine) {
    const Machine machine = assumed_machine(4);
    ASSERT_EQ(machine.nodes.size(), 4u);
    EXPECT_EQ(machine.targets().bits, 0b1111u);
    EXPECT_EQ(machine.source, "HOMING_ASSUME_NODES=4");
    for (std::size_t cpu = 0; cpu < machine.cpu_nodes.size(); ++cpu) {
        EXPECT_EQ(machine.cpu_nodes[cpu], assumed_kernel(4).node_of_cpu(static_cast<int>(cpu)));
    }
    EXPECT_EQ(machine.cpu_to_node(0), 0);
    EXPECT_EQ(machine.distances[1][1], 10);
    EXPECT_EQ(machine.distances[1][2], 20);
    EXPECT_TRUE(has_remark(machine, "4 nodes are assumed"));
}

TEST(QuickNodeCount, ReadsTheKernelsList) {
    char name[] = "/tmp/homing-nodes-XXXXXX";
    const int descriptor = ::mkstemp(name);
    ASSERT_GE(descriptor, 0);
    ::close(descriptor);
    const std::pair<const char*, int> lists[] = {
        {"0\n", 1}, {"0-3\n", 4}, {"0,8,250-253\n", 6}, {"", 1}, {"junk", 1}};
    for (const auto& [text, count] : lists) {
        std::ofstream(name, std::ios::trunc) << text;
        EXPECT_EQ(quick_node_count(name), count) << text;
    }
    ::unlink(name);
    EXPECT_EQ(quick_node_count(name), 1);
}

} // namespace
