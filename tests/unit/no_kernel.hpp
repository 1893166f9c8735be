// A kernel that does nothing, for tests that need one of its calls.
#pragma once

#include "kernel/kernel.hpp"

#include <cerrno>

namespace homing {

class NoKernel : public Kernel {
  public:
    int query(std::span<void* const>, std::span<int>) noexcept override { return ENOSYS; }
    int move(std::span<void* const>, std::span<const int>, std::span<int>) noexcept override {
        return ENOSYS;
    }
    int bind(Range, MemoryPolicy) noexcept override { return ENOSYS; }
    int policy_at(Address, MemoryPolicy&) noexcept override { return ENOSYS; }
    int task_policy(MemoryPolicy&) noexcept override { return ENOSYS; }
    int allowed_nodes(NodeSet&) noexcept override { return ENOSYS; }
    int protect(Range, Access) noexcept override { return ENOSYS; }
    int current_node() noexcept override { return 0; }
    std::uint64_t free_bytes(int) noexcept override { return 0; }
    int open_sampler(const SamplerEvent&, int, std::size_t, SamplerRing&) noexcept override { return ENOSYS; }
    void close_sampler(SamplerRing&) noexcept override {}
    int node_of_cpu(int) noexcept override { return 0; }
};

} // namespace homing
