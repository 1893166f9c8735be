// The machine: its NUMA nodes, their CPUs, memory and distances.
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
    bool memory_known = true; ///< false: of a described machine whose memory nobody told (memory_bytes is 0)
    bool allowed = true;      ///< inside the cpuset's memory nodes
    /// A page may be sent here: has CPUs of this process's cpuset and memory, and is allowed.
    bool target() const noexcept { return cpus > 0 && (memory_bytes > 0 || !memory_known) && allowed; }
};

struct Machine {
    std::vector<Node> nodes; ///< ascending by index
    std::vector<std::vector<double>>
        distances; ///< [from][to] in nodes' order; SLIT values, 10 = local; may be empty
    std::uint64_t last_level_cache_bytes = 0; ///< of one cache (a share of a node's CPUs)
    int last_level_caches_per_node = 1;
    std::string source;               ///< "sysfs", "HOMING_ASSUME_NODES", ... for the record
    std::vector<std::string> remarks; ///< e.g. "node 4 has no CPUs: never a target"

    NodeSet targets() const noexcept;
    int cpu_to_node(int cpu) const noexcept; ///< -1 where not known
    std::vector<int> cpu_nodes;              ///< by operating system CPU index
    std::vector<int> cpu_caches; ///< the same for last-level caches, numbered by their first CPU; -1: none
};

/// Number of nodes that have CPUs, read from one file of sysfs: cheap enough for the start of every
/// process. 1 where it cannot be read.
int quick_node_count() noexcept;
int quick_node_count(const char* has_cpu_file) noexcept; ///< the same of another file

/// The calling thread, which is the process's first, may run where the process may: programs that bind their
/// threads may bind that one before homing looks.
void keep_process_cpus() noexcept;
/// Where the process may run: what keep_process_cpus() saw, and what the calling thread may use now. Where
/// the environment asks an OpenMP runtime for binding (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY,
/// KMP_AFFINITY), which it does before this library begins: the CPUs of the control group. Ascending.
std::vector<int> process_cpus();
/// Discover this machine through sysfs, with the CPUs that the process may run on. Never empty: a kernel
/// without NUMA has one node.
Machine discover_machine(Kernel& kernel);

/// The machine of a folder like /sys/devices/system, for a process that may use these nodes and CPUs
/// (ascending; none: all).
Machine read_machine(const std::string& folder, NodeSet allowed_nodes, const std::vector<int>& allowed_cpus);

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
