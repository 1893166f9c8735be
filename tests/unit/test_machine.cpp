// NUMA logic against the system files of other machines, so that a one-node laptop tests an eight-node box.
#include "failing.hpp"
#include "kernel/node_mask.hpp"
#include "machine/machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

namespace homing::machine_tests {
namespace {

bool has_remark(const Machine& machine, const std::string& text) {
    return std::any_of(machine.remarks.begin(), machine.remarks.end(),
                       [&text](const std::string& remark) { return remark.find(text) != std::string::npos; });
}

constexpr NodeSet every_node{~std::uint64_t{0}};

/// A folder like /sys/devices/system, with the files that a test puts into it.
class Sysfs : public ::testing::Test {
  protected:
    Sysfs() {
        char name[] = "/tmp/homing-sysfs-XXXXXX";
        root_ = ::mkdtemp(name);
    }
    ~Sysfs() override { std::filesystem::remove_all(root_); }

    void put(const std::string& name, const std::string& text) {
        const std::filesystem::path path = root_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text << (text.empty() ? "" : "\n");
    }
    void take(const std::string& name) { std::filesystem::remove_all(root_ / name); }

    void node(int index, const std::string& cpus, unsigned gib, const std::string& distances) {
        const std::string folder = "node/node" + std::to_string(index) + "/";
        put(folder + "cpulist", cpus);
        put(folder + "meminfo", "Node " + std::to_string(index) + " MemTotal:       " +
                                    std::to_string(std::uint64_t{gib} << 20) + " kB\nNode 0 MemFree: 1 kB");
        put(folder + "distance", distances);
    }
    /// The caches of CPUs first to last: an L1 of instructions, and an L3 that they share.
    void caches(int first, int last, const std::string& size) {
        for (int cpu = first; cpu <= last; ++cpu) {
            const std::string folder = "cpu/cpu" + std::to_string(cpu) + "/cache/index";
            const std::string shared = std::to_string(first) + "-" + std::to_string(last);
            put(folder + "0/level", "1");
            put(folder + "0/type", "Instruction");
            put(folder + "1/level", "3");
            put(folder + "1/type", "Unified");
            put(folder + "1/size", size);
            put(folder + "1/shared_cpu_list", shared);
        }
    }
    /// Two nodes of four CPUs and 16 GiB.
    void two_nodes() {
        put("node/online", "0-1");
        put("cpu/online", "0-7");
        node(0, "0-3", 16, "10 21");
        node(1, "4-7", 16, "21 10");
        for (int first = 0; first < 8; first += 2)
            caches(first, first + 1, "16384K");
    }

    Machine read(NodeSet nodes = every_node, const std::vector<int>& cpus = {}) const {
        return read_machine(root_.string(), nodes, cpus);
    }

    std::filesystem::path root_;
};

TEST_F(Sysfs, NodesCpusMemoryDistancesAndCaches) {
    two_nodes();
    const Machine machine = read();
    ASSERT_EQ(machine.nodes.size(), 2u);
    EXPECT_EQ(machine.targets().bits, 0b11u);
    for (const Node& node : machine.nodes) {
        EXPECT_EQ(node.cpus, 4);
        EXPECT_EQ(node.memory_bytes, std::uint64_t{16} << 30);
    }
    EXPECT_EQ(machine.cpu_to_node(3), 0);
    EXPECT_EQ(machine.cpu_to_node(7), 1);
    EXPECT_EQ(machine.cpu_to_node(8), -1);
    EXPECT_EQ(machine.cpu_to_node(-1), -1);
    EXPECT_EQ(machine.distances, (std::vector<std::vector<double>>{{10, 21}, {21, 10}}));
    EXPECT_EQ(machine.last_level_caches_per_node, 2);
    EXPECT_EQ(machine.last_level_cache_bytes, std::uint64_t{16} << 20);
    EXPECT_EQ(machine.cpu_caches, (std::vector<int>{0, 0, 2, 2, 4, 4, 6, 6}));
    EXPECT_TRUE(machine.remarks.empty());
}

TEST_F(Sysfs, SparseIndicesAndOnesTooHigh) {
    put("node/online", "0,2,5,70");
    for (const int index : {0, 2, 5, 70})
        node(index, std::to_string(index), 2, "10 20 20 30");
    const Machine machine = read();
    ASSERT_EQ(machine.nodes.size(), 3u);
    EXPECT_EQ(machine.nodes[2].index, 5);
    EXPECT_EQ(machine.targets().bits, 0b100101u);
    EXPECT_EQ(machine.cpu_to_node(5), 5);
    EXPECT_EQ(machine.distances[0], (std::vector<double>{10, 20, 20}));
    EXPECT_TRUE(has_remark(machine, "node 70 is beyond"));
}

TEST_F(Sysfs, MemoryWithoutCpusAndCpusWithoutMemoryAreNeverTargets) {
    two_nodes();
    put("node/online", "0-3");
    node(1, "4-7", 0, "21 10 20 20");
    node(2, "", 32, "20 20 10 20");
    node(3, "", 32, "20 20 20 10");
    node(0, "0-3", 16, "10 21 20 20");
    const Machine machine = read();
    EXPECT_EQ(machine.targets().bits, 0b1u);
    EXPECT_TRUE(has_remark(machine, "node 1 has no memory: never a target"));
    EXPECT_TRUE(has_remark(machine, "node 2 has no CPUs: never a target"));
    EXPECT_TRUE(has_remark(machine, "node 3 has no CPUs: never a target"));
    EXPECT_EQ(machine.last_level_caches_per_node, 2) << "of the nodes that have CPUs";
}

TEST_F(Sysfs, WhatTheProcessMayNotUseIsNoTarget) {
    two_nodes();
    const Machine no_cpus = read(every_node, {0, 1, 2});
    EXPECT_EQ(no_cpus.targets().bits, 0b1u);
    EXPECT_EQ(no_cpus.nodes[0].cpus, 3);
    EXPECT_TRUE(has_remark(no_cpus, "node 1 has no CPUs that this process may run on"));
    const Machine no_memory = read(NodeSet{0b10});
    EXPECT_EQ(no_memory.targets().bits, 0b10u);
    EXPECT_TRUE(has_remark(no_memory, "node 0 is outside this process's memory nodes (cpuset)"));
}

TEST_F(Sysfs, ACacheOfSeveralNodesIsShared) {
    two_nodes();
    caches(0, 7, "32M");
    const Machine machine = read();
    EXPECT_EQ(machine.last_level_cache_bytes, std::uint64_t{16} << 20);
    EXPECT_EQ(machine.last_level_caches_per_node, 1);
}

TEST_F(Sysfs, CoresWithoutACacheOfTheLastLevelHaveNone) {
    two_nodes();
    put("cpu/cpu7/cache/index1/level", "2");
    put("cpu/cpu7/cache/index1/shared_cpu_list", "7");
    put("cpu/cpu6/cache/index1/shared_cpu_list", "6");
    EXPECT_EQ(read().cpu_caches, (std::vector<int>{0, 0, 2, 2, 4, 4, 6, -1}));
}

TEST_F(Sysfs, EveryMissingFileIsSomethingThatIsNotKnown) {
    namespace fs = std::filesystem;
    two_nodes();
    std::vector<fs::path> all;
    for (const auto& entry : fs::recursive_directory_iterator(root_))
        all.push_back(entry.path());
    const fs::path kept = root_.string() + ".kept";
    for (const fs::path& path : all) {
        fs::rename(path, kept);
        const bool folder = fs::is_directory(kept);
        for (const char* instead : {"", "-", "9-3", "junk", "0-99999999", "\xff\xfe"}) {
            if (folder)
                fs::create_directory(path); // without anything in it
            else if (*instead)
                std::ofstream(path) << instead;
            const Machine machine = read();
            EXPECT_FALSE(machine.nodes.empty()) << path;
            EXPECT_LE(machine.targets().count(), 2) << path;
            EXPECT_EQ(machine.cpu_caches.size(), machine.cpu_nodes.size()) << path;
            EXPECT_TRUE(machine.distances.empty() || machine.distances.size() == machine.nodes.size())
                << path;
            if (folder) break;
        }
        fs::remove(path);
        fs::rename(kept, path);
    }
    EXPECT_EQ(read().targets().bits, 0b11u);
}

TEST_F(Sysfs, ANodeFolderWithoutFilesIsNoTarget) {
    two_nodes();
    take("node/node1");
    put("node/node1/power/control", "auto");
    const Machine machine = read();
    ASSERT_EQ(machine.nodes.size(), 2u);
    EXPECT_EQ(machine.targets().bits, 0b1u);
    EXPECT_TRUE(machine.distances.empty());
    EXPECT_TRUE(has_remark(machine, "node 1 has no memory: never a target"));
}

TEST_F(Sysfs, AKernelWithoutNumaHasOneNode) {
    two_nodes();
    take("node");
    const Machine machine = read();
    ASSERT_EQ(machine.nodes.size(), 1u);
    EXPECT_EQ(machine.nodes[0].cpus, 8);
    EXPECT_TRUE(has_remark(machine, "taken for one node"));
}

TEST(Discovered, ThisMachine) {
    const Machine machine = discover_machine(linux_kernel());
    ASSERT_FALSE(machine.nodes.empty());
    EXPECT_EQ(machine.source, "sysfs");
    EXPECT_GE(machine.targets().count(), 1);
    EXPECT_GE(static_cast<int>(machine.nodes.size()), quick_node_count());
    cpu_set_t mine;
    ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
    int cpus = 0;
    for (const Node& node : machine.nodes)
        cpus += node.cpus;
    EXPECT_EQ(cpus, CPU_COUNT(&mine));
    for (std::size_t i = 0; i < machine.distances.size(); ++i)
        EXPECT_EQ(machine.distances[i][i], 10);
}

TEST(NodeMask, SaysWhereItHasNodesThatANodeSetCannotHave) {
    NodeMask mask;
    mask.words[0] = 5;
    NodeSet found;
    EXPECT_EQ(mask.get(found), 0);
    EXPECT_EQ(found.bits, 5u);
    mask.words[1] = 1 << 6; // node 70
    EXPECT_EQ(mask.get(found), EOVERFLOW);
    EXPECT_EQ(found.bits, 5u);
}

TEST(Discovered, NodesThatTheProcessMayNotUseAreNoTargetsAlsoOfMoreThan64) {
    class ManyNodes final : public FailingKernel {
      public:
        ManyNodes() : FailingKernel(linux_kernel()) {}
        int allowed_nodes(NodeSet& nodes) noexcept override {
            nodes = {};
            return EOVERFLOW; // node 70, for instance
        }
    };
    ManyNodes kernel;
    for (const Node& node : discover_machine(kernel).nodes)
        EXPECT_FALSE(node.allowed) << node.index;
}

TEST(Discovered, WhatTheUserTellsATopologyLibraryIsNotHomings) {
    const Machine before = discover_machine(linux_kernel());
    for (const char* variable : {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_COMPONENTS"})
        ::setenv(variable, "/dev/null", 1);
    const Machine after = discover_machine(linux_kernel());
    for (const char* variable : {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_COMPONENTS"})
        ::unsetenv(variable);
    EXPECT_EQ(after.cpu_nodes, before.cpu_nodes);
    EXPECT_EQ(after.targets().bits, before.targets().bits);
}

TEST(Discovered, RespectsTheProcesssCpus) {
    cpu_set_t all, one;
    ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
    const auto cpus_seen = [] {
        int cpus = 0;
        for (const Node& node : discover_machine(linux_kernel()).nodes)
            cpus += node.cpus;
        return cpus;
    };
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(cpus_seen(), 1);
    // An OpenMP runtime has bound the thread: that says nothing about the process.
    ::setenv("OMP_PROC_BIND", "close", 1);
    EXPECT_GE(cpus_seen(), CPU_COUNT(&all));
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

TEST(ProcessCpus, AThreadThatBindsItselfLeavesThemAsTheyWereAtTheStart) {
    for (const char* variable : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"})
        if (std::getenv(variable)) GTEST_SKIP() << variable << " is set";
    cpu_set_t before;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    keep_process_cpus();
    const std::vector<int> all = process_cpus();
    ASSERT_EQ(static_cast<int>(all.size()), CPU_COUNT(&before));
    if (all.size() < 2) GTEST_SKIP() << "needs two CPUs";
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(all.front()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(process_cpus(), all);
    ::sched_setaffinity(0, sizeof before, &before);
}

} // namespace
} // namespace homing::machine_tests
