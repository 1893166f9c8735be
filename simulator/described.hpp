// The described machine and what the user wants of it, as `homing run --on MACHINE` writes it down for the
// process: a TOML file whose name is in HOMING_SIMULATOR. It is complete and checked
// (homing/simulate/machines.py does both), so what is wrong here is a mistake of ours.
#pragma once

#include "machine/machine.hpp"
#include "places.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace homing::simulator {

enum class Initial : std::uint8_t { first_touch, round_robin, random, single_node };

struct Cache {
    std::uint64_t bytes = 0; ///< 0: there is none
    unsigned ways = 1;
    unsigned cpus = 1; ///< that share it
};

/// Pages of the area `name` are first placed so, whoever touches them: the owner of page p of n is
/// block: p * nodes / n, cyclic(k): (p / k) mod nodes.
struct Distribution {
    std::string area;
    std::uint64_t cycle = 0; ///< pages; 0: block
};

/// The kernel's own NUMA balancing: whenever the threads have made so many accesses each, on the average, so
/// many bytes of the process are marked. 0 accesses: it is off.
struct Balancing {
    std::uint64_t scan_bytes = 0;
    std::uint64_t scan_accesses = 0;
};

/// Where an OpenMP runtime would put its threads.
struct Placement {
    std::vector<std::vector<int>> places; ///< CPUs by number; none is empty
    std::vector<Binding> bindings;        ///< by nesting level; the last one counts on
};

struct Described {
    std::string name;
    std::vector<int> cpu_nodes;        ///< by CPU number; -1: there is no such CPU
    std::vector<int> cpu_caches;       ///< the last-level cache of each CPU, counted from 0; -1: no such CPU
    std::vector<std::uint64_t> memory; ///< bytes of each node; 0: not known, and never full
    std::vector<std::vector<double>> distances;
    std::uint64_t page = 4096;
    std::uint64_t line = 64;
    Cache own;    ///< private to a thread
    Cache shared; ///< last level; cpu_caches tells who shares one
    Initial initial = Initial::first_touch;
    std::array<Placement, 2> placements; ///< by Runtime
    std::vector<Distribution> distributions;
    Balancing balancing;
    std::uint64_t seed = 1;
    std::int64_t turn = 0; ///< accesses that a thread has before the next one's turn; 0: all run at once
    std::string fact;      ///< for the record: what the launcher wants to find there
    bool lines = false;    ///< count by place in the code, too

    int nodes() const noexcept { return static_cast<int>(memory.size()); }
    int cpu_slots() const noexcept { return static_cast<int>(cpu_nodes.size()); } ///< above every number
    int cpu_count() const noexcept;
    int cpus_of(int node) const noexcept; ///< how many
    int cache_count() const noexcept;
    int node_of_cpu(int cpu) const noexcept; ///< -1: there is no such CPU
};

/// Reads the file. Empty string: done; otherwise what is wrong.
std::string read_described(const char* path, Described& described);

/// The same as the engine's machine.
Machine machine_of(const Described& described);

} // namespace homing::simulator
