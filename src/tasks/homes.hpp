// Which node a page is on, remembered for a second or two: a task's data is looked up each time it is
// submitted, and a system call for each would cost as much as a small task. Pages may move in the meantime;
// then a task runs on the node where its data was, once.
#pragma once

#include "kernel/kernel.hpp"

#include <atomic>
#include <memory>

namespace homing {

class Homes {
  public:
    explicit Homes(Kernel& kernel);
    /// The node of each page; negative: none (not mapped, not touched), which is not remembered. Any thread.
    /// At most `most_pages` pages.
    void look_up(std::span<void* const> pages, std::span<int> nodes) noexcept;
    void forget() noexcept { generation_.fetch_add(1, std::memory_order_relaxed); }

    static constexpr std::size_t most_pages = 8;

  private:
    using Entry = std::atomic<std::uint64_t>; ///< page number << 16 | age << 8 | node + 1
    std::uint64_t age() const noexcept;
    Entry& entry(std::uint64_t page) noexcept;

    Kernel& kernel_;
    std::unique_ptr<Entry[]> entries_;
    std::atomic<std::uint32_t> generation_{0};
};

} // namespace homing
