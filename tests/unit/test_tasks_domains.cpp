// Locality domains of described machines, and homes of blocks.
#include "failing.hpp"
#include "kernel/simulated.hpp"
#include "machine/machine.hpp"
#include "machines.hpp"
#include "tasks/domains.hpp"

#include <gtest/gtest.h>

namespace homing::tasks_domains_tests {
namespace {

/// Nodes 0 to 3 with a CPU each, and node 4 with memory only, near node 2.
Machine machine() {
    Machine made;
    made.cpu_nodes = {0, 1, 2, 3};
    made.cpu_caches = {0, 0, 2, 2};
    for (int index = 0; index < 5; ++index) {
        Node node;
        node.index = index;
        node.cpus = index < 4;
        node.memory_bytes = 1 << 30;
        made.nodes.push_back(node);
        made.distances.push_back({20, 20, 20, 20, 20});
        made.distances.back()[static_cast<std::size_t>(index)] = 10;
    }
    made.distances[4][2] = 14;
    return made;
}

Address page(std::size_t number) { return Address{0x100000} + number * page_bytes(); }
Range pages(std::size_t first, std::size_t count) { return {page(first), page(first + count)}; }

class DomainsTest : public ::testing::Test {
  protected:
    DomainsTest() : kernel({1000, 1000, 1000, 1000, 1000}), locality(kernel, machine()) {
        kernel.map(pages(0, 100));
    }
    int home(std::size_t first, std::size_t count) {
        return locality.of_memory(page(first), count * page_bytes());
    }
    SimulatedKernel kernel;
    Locality locality;
};

TEST_F(DomainsTest, MostOfTheBlockDecides) {
    kernel.place(pages(0, 20), 1);
    kernel.place(pages(20, 10), 3);
    EXPECT_EQ(home(0, 30), 1);
    EXPECT_EQ(home(18, 12), 3);
    EXPECT_EQ(locality.of_memory(page(25) + 100, 8), 3) << "less than a page";
    EXPECT_EQ(locality.of_memory(page(25), 0), 3) << "the clause names a variable without a length";
}

TEST_F(DomainsTest, WhatIsNotThereHasNoHome) {
    EXPECT_EQ(home(0, 10), -1) << "not touched";
    EXPECT_EQ(home(5000, 10), -1) << "not mapped";
    EXPECT_EQ(locality.of_memory(0, 100), -1);
    EXPECT_EQ(locality.of_memory(~Address{0} - 10, 100), -1) << "beyond the end of memory";
    kernel.place(pages(9, 1), 2);
    EXPECT_EQ(home(9, 1), 2) << "what was not there is looked up again";
    kernel.place(pages(0, 4), 3);
    EXPECT_EQ(home(0, 8), 3) << "pages without a home do not vote";
}

TEST_F(DomainsTest, ANodeWithoutCpusBelongsToTheNearestDomain) {
    EXPECT_EQ(locality.by_node().count(), 4);
    EXPECT_EQ(locality.of_node(4), 2);
    EXPECT_EQ(locality.of_node(5), -1);
    EXPECT_EQ(locality.of_node(-1), -1);
    kernel.place(pages(0, 4), 4);
    EXPECT_EQ(home(0, 4), 2);
}

TEST_F(DomainsTest, HomesAreRememberedUntilTheyAreForgotten) {
    kernel.place(pages(0, 8), 1);
    EXPECT_EQ(home(0, 8), 1);
    kernel.clear_log();
    const std::size_t before = kernel.calls(KernelCall::query);
    for (int i = 0; i < 1000; ++i)
        ASSERT_EQ(home(0, 8), 1);
    EXPECT_LE(kernel.calls(KernelCall::query), before + 2) << "asked again after a second or so only";
    kernel.unmap(pages(0, 8));
    kernel.map(pages(0, 8));
    kernel.place(pages(0, 8), 3);
    locality.forget_homes();
    EXPECT_EQ(home(0, 8), 3);
}

TEST_F(DomainsTest, AKernelThatRefusesLeavesBlocksWithoutAHome) {
    kernel.place(pages(0, 8), 1);
    for (const int error : errnos_of(KernelCall::query)) {
        FailingKernel failing(kernel);
        failing.fail(KernelCall::query, error);
        Locality without(failing, machine());
        EXPECT_EQ(without.of_memory(page(0), 8 * page_bytes()), -1) << error;
    }
}

TEST_F(DomainsTest, CpusThatShareACacheAreADomain) {
    EXPECT_EQ(locality.by_cache().count(), 2);
    EXPECT_EQ(locality.by_cache().of_cpu(1), 0);
    EXPECT_EQ(locality.by_cache().of_cpu(2), 1);
    EXPECT_EQ(locality.by_cache().of_cpu(4), -1);
    EXPECT_EQ(locality.by_cache().of_cpu(-1), -1);
}

TEST(DomainsOfMachines, CacheGroupsComeFromTheTopology) {
    Machine described = machine_of(2);
    described.cpu_nodes = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
    described.cpu_caches = {0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9};
    SimulatedKernel kernel({10, 10});
    const Locality locality(kernel, described);
    EXPECT_EQ(locality.by_node().count(), 2);
    EXPECT_EQ(locality.by_cache().count(), 4);
    EXPECT_EQ(locality.by_cache().of_cpu(2), 0);
    EXPECT_EQ(locality.by_cache().of_cpu(3), 1);
    EXPECT_EQ(locality.by_cache().of_cpu(11), 3);
}

TEST(DomainsOfMachines, WithoutKnowledgeThereIsOneDomain) {
    SimulatedKernel kernel({10});
    const Locality locality(kernel, Machine{});
    EXPECT_EQ(locality.by_node().count(), 1);
    EXPECT_EQ(locality.by_node().here(), -1);
    EXPECT_EQ(locality.of_node(0), -1);
}

} // namespace
} // namespace homing::tasks_domains_tests
