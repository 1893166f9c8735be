// The machine: its NUMA nodes, their CPUs, memory and distances. Found by hwloc here, or from a description
// (hwloc's synthetic notation or XML), so that a one-node laptop can test an eight-node box.
#pragma once

#include "kernel/kernel.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace homing {

struct Node {
    int index = 0; ///< operating system index, may be sparse
    int cpus = 0;  ///< CPUs of the node that this process may run on
    std::uint64_t memory_bytes = 0;
    bool allowed = true; ///< inside the cpuset's memory nodes
    /// A page may be sent here: has CPUs of this process's cpuset and memory, and is allowed.
    bool target() const noexcept { return cpus > 0 && memory_bytes > 0 && allowed; }
};

struct Machine {
    std::vector<Node> nodes; ///< ascending by index
    std::vector<std::vector<double>>
        distances; ///< [from][to] in nodes' order; SLIT values, 10 = local; may be empty
    std::uint64_t last_level_cache_bytes = 0; ///< of one cache (a share of a node's CPUs)
    int last_level_caches_per_node = 1;
    std::string source;               ///< "hwloc", "HOMING_ASSUME_NODES", ... for the record
    std::vector<std::string> remarks; ///< e.g. "node 4 has no CPUs: never a target"

    NodeSet targets() const noexcept;
    int cpu_to_node(int cpu) const noexcept; ///< -1 where not known
    std::vector<int> cpu_nodes;              ///< by operating system CPU index
    std::vector<int> cpu_caches; ///< the same for last-level caches, numbered by their first CPU; -1: none
};

/// Number of nodes that have CPUs, read from sysfs without hwloc: cheap enough for the start of every
/// process. 1 where it cannot be read.
int quick_node_count() noexcept;
int quick_node_count(const char* has_cpu_file) noexcept; ///< the same of another file

/// Note the calling thread's affinity as that of the process: to be called as early as possible, before an
/// OpenMP runtime binds the thread. Without it discover_machine() uses the affinity it finds, unless the
/// environment asks for binding (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY, KMP_AFFINITY): then it knows
/// of the cpuset only.
void remember_affinity() noexcept;

/// Discover this machine through hwloc (opened by dlopen at this moment only). Empty `nodes` and a remark
/// when hwloc is missing or fails.
Machine discover_machine(Kernel& kernel);

/// A machine from hwloc's synthetic notation ("numa:4 core:2 pu:1") or from a file NAME.xml that lstopo
/// wrote, for tests. Empty `nodes` and a remark where hwloc does not understand it.
Machine described_machine(const std::string& description);

/// `nodes` equal parts of this machine's CPUs, in CPU order (the same as assumed_kernel's). With fewer CPUs
/// than nodes every node still counts as having one, so that it is a target.
Machine assumed_machine(int nodes);

/// Another machine is played in this process (the simulator's): the two functions below answer with it. Once
/// at most; the kernel lives as long as the process.
void play_machine(Kernel& kernel, Machine machine);

/// The kernel and the machine of this process: the real ones, those that are played, or those that
/// HOMING_ASSUME_NODES pretends.
Kernel& process_kernel() noexcept;
Machine process_machine(Kernel& kernel);

} // namespace homing
