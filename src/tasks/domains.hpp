// The locality domains of a machine: NUMA nodes with CPUs, or the CPUs that share a last-level cache; and
// where memory is at home. Asked by every task, so answers come from tables.
#pragma once

#include "kernel/kernel.hpp"
#include "machine/machine.hpp"
#include "tasks/homes.hpp"

#include <array>
#include <span>
#include <vector>

namespace homing {

/// The domain with the greatest sum of weights, of equal ones the first; -1 where all are negative (none).
/// For a few: quadratic.
int heaviest_domain(std::span<const int> domains, std::span<const std::size_t> weights) noexcept;

/// Domains of one kind, numbered 0, 1, ...
class DomainTable {
  public:
    /// `domain_of_cpu`: by operating system CPU index, -1 for a CPU of none.
    explicit DomainTable(std::vector<int> domain_of_cpu);
    int count() const noexcept { return count_; }
    int of_cpu(int cpu) const noexcept {
        return cpu >= 0 && static_cast<std::size_t>(cpu) < cpus_.size() ? cpus_[static_cast<std::size_t>(cpu)]
                                                                        : -1;
    }
    /// Of the CPU that runs the caller.
    int here() const noexcept;

  private:
    std::vector<int> cpus_;
    int count_ = 1;
};

class Locality {
  public:
    Locality(Kernel& kernel, const Machine& machine);
    const DomainTable& by_node() const noexcept { return by_node_; }
    const DomainTable& by_cache() const noexcept { return by_cache_; }
    /// The domain of a node by its operating system index; of a node without CPUs the nearest; -1: no such
    /// node.
    int of_node(int node) const noexcept {
        return node >= 0 && node < max_nodes ? nodes_[static_cast<std::size_t>(node)] : -1;
    }
    /// The domain that holds most of [start, start + bytes), from up to eight of its pages; -1: no page has a
    /// home.
    int of_memory(Address start, std::size_t bytes) noexcept;
    /// Pages were moved: look them up again.
    void forget_homes() noexcept { homes_.forget(); }

  private:
    DomainTable by_node_;
    DomainTable by_cache_;
    std::array<int, max_nodes> nodes_{};
    Homes homes_;
};

/// Of this machine, or of the one that HOMING_ASSUME_NODES pretends. Found at the first call (some
/// milliseconds).
Locality& locality();

/// Forget homes, if anybody ever asked for them.
void forget_homes() noexcept;

} // namespace homing
