// A kernel whose calls fail on purpose: wraps any kernel and answers chosen calls with chosen errors. Tests
// of the engine loop over every call and every errno that its man page names:
//
//     for (KernelCall call : failing_calls)
//         for (int error : errnos_of(call)) { FailingKernel kernel(simulated); kernel.fail(call, error); ...
//         }
#pragma once

#include "kernel/simulated.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace homing {

/// The calls that can fail.
inline constexpr KernelCall failing_calls[] = {
    KernelCall::query,   KernelCall::populated,   KernelCall::reveal,      KernelCall::move,
    KernelCall::bind,    KernelCall::policy_at,   KernelCall::task_policy, KernelCall::allowed_nodes,
    KernelCall::protect, KernelCall::open_sampler};

inline std::string name_of(KernelCall call) {
    static constexpr const char* names[] = {"query",         "populated",    "reveal",      "move",
                                            "bind",          "policy_at",    "task_policy", "allowed_nodes",
                                            "protect",       "current_node", "free_bytes",  "open_sampler",
                                            "close_sampler", "node_of_cpu"};
    return names[static_cast<std::size_t>(call)];
}

/// As the ERRORS of move_pages(2), mbind(2), get_mempolicy(2), mprotect(2), and perf_event_open(2) with
/// mmap(2) have them; ENOSYS and EPERM everywhere, because containers' seccomp filters answer so.
inline std::vector<int> errnos_of(KernelCall call) {
    switch (call) {
    case KernelCall::query:
    case KernelCall::move:
        return {E2BIG, EACCES, EFAULT, EINVAL, ENODEV, ENOENT, ENOMEM, EPERM, ESRCH, ENOSYS, EINTR, EAGAIN};
    case KernelCall::populated: // open(2) of the page map, PAGEMAP_SCAN
        return {EACCES, EMFILE, ENFILE, EFAULT, EINVAL, ENOMEM, ENOTTY, EPERM, ENOSYS};
    case KernelCall::reveal: // open(2) of the page map, process_vm_readv(2)
        return {EACCES, EMFILE, ENFILE, EFAULT, EINVAL, ENOMEM, EPERM, ESRCH, ENOSYS};
    case KernelCall::bind:
        return {EFAULT, EINVAL, EIO, ENOMEM, EPERM, ENOSYS};
    case KernelCall::policy_at:
    case KernelCall::task_policy:
    case KernelCall::allowed_nodes:
        return {EFAULT, EINVAL, EPERM, ENOSYS, EOVERFLOW};
    case KernelCall::protect:
        return {EACCES, EINVAL, ENOMEM, EPERM, ENOSYS};
    case KernelCall::open_sampler:
        return {E2BIG,  EACCES, EBADF,  EBUSY,      EFAULT,    EINTR, EINVAL, EMFILE, ENFILE, ENODEV,
                ENOENT, ENOSPC, ENOSYS, EOPNOTSUPP, EOVERFLOW, EPERM, ESRCH,  ENOMEM, EAGAIN};
    default:
        return {};
    }
}

/// What move_pages(2) says of a single page.
inline std::vector<int> page_errnos() { return {EACCES, EBUSY, EFAULT, EIO, EINVAL, ENOENT, ENOMEM, EAGAIN}; }

class FailingKernel : public Kernel {
  public:
    static constexpr std::size_t every = 0;

    explicit FailingKernel(Kernel& inner) : inner_(inner) {}

    /// The n-th call of a kind from now on (1: the next), or every one, answers `error` and does nothing.
    void fail(KernelCall call, int error, std::size_t nth = every) { plans_[call] = {error, nth, 0}; }
    /// The n-th page of each move (1: the first), or every page, is refused with `error`, the others move.
    void refuse_pages(int error, std::size_t nth = every) { page_plan_ = Plan{error, nth, 0}; }
    /// What happens before each call that can fail.
    void before(std::function<void(KernelCall)> action) { before_ = std::move(action); }
    void heal() {
        plans_.clear();
        page_plan_.reset();
    }
    /// How many calls have been made to fail.
    std::size_t failures() const { return failures_; }

    int query(std::span<void* const> pages, std::span<int> nodes) noexcept override {
        const int error = planned(KernelCall::query);
        return error ? error : inner_.query(pages, nodes);
    }

    int populated(std::span<const Range> ranges, std::span<std::uint8_t> found) noexcept override {
        const int error = planned(KernelCall::populated);
        return error ? error : inner_.populated(ranges, found);
    }

    std::uint64_t page_faults() noexcept override { return inner_.page_faults(); }
    bool hides_pages() noexcept override { return inner_.hides_pages(); }
    int reveal(std::span<void* const> pages) noexcept override {
        const int error = planned(KernelCall::reveal);
        return error ? error : inner_.reveal(pages);
    }

    int move(std::span<void* const> pages, std::span<const int> targets,
             std::span<int> status) noexcept override {
        if (const int error = planned(KernelCall::move)) {
            std::fill(status.begin(), status.end(), -error);
            return error;
        }
        if (!page_plan_) return inner_.move(pages, targets, status);
        std::vector<void*> others;
        std::vector<int> others_targets;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < pages.size(); ++i) {
            if (page_plan_->nth == every || i + 1 == page_plan_->nth) {
                status[i] = -page_plan_->error;
                ++failures_;
            } else {
                others.push_back(pages[i]);
                others_targets.push_back(targets[i]);
                places.push_back(i);
            }
        }
        std::vector<int> others_status(others.size());
        const int error = inner_.move(others, others_targets, others_status);
        for (std::size_t i = 0; i < places.size(); ++i)
            status[places[i]] = others_status[i];
        return error;
    }

    int bind(Range range, MemoryPolicy policy) noexcept override {
        const int error = planned(KernelCall::bind);
        return error ? error : inner_.bind(range, policy);
    }
    int policy_at(Address address, MemoryPolicy& policy) noexcept override {
        const int error = planned(KernelCall::policy_at);
        return error ? error : inner_.policy_at(address, policy);
    }
    int task_policy(MemoryPolicy& policy) noexcept override {
        const int error = planned(KernelCall::task_policy);
        return error ? error : inner_.task_policy(policy);
    }
    int allowed_nodes(NodeSet& nodes) noexcept override {
        const int error = planned(KernelCall::allowed_nodes);
        return error ? error : inner_.allowed_nodes(nodes);
    }
    int protect(Range range, Access access) noexcept override {
        const int error = planned(KernelCall::protect);
        return error ? error : inner_.protect(range, access);
    }
    int open_sampler(const SamplerEvent& event, int thread, std::size_t pages,
                     SamplerRing& ring) noexcept override {
        const int error = planned(KernelCall::open_sampler);
        if (error) ring = {};
        return error ? error : inner_.open_sampler(event, thread, pages, ring);
    }
    void close_sampler(SamplerRing& ring) noexcept override { inner_.close_sampler(ring); }
    Mappings mappings() noexcept override { return inner_.mappings(); }
    int current_node() noexcept override { return inner_.current_node(); }
    int current_thread() noexcept override { return inner_.current_thread(); }
    std::vector<Thread> threads() override { return inner_.threads(); }
    /// fail(KernelCall::free_bytes, anything): not known.
    std::uint64_t free_bytes(int node) noexcept override {
        return planned(KernelCall::free_bytes) ? 0 : inner_.free_bytes(node);
    }
    int node_of_cpu(int cpu) noexcept override { return inner_.node_of_cpu(cpu); }

  private:
    struct Plan {
        int error;
        std::size_t nth;
        std::size_t seen;
    };

    int planned(KernelCall call) {
        if (before_) before_(call);
        const auto plan = plans_.find(call);
        if (plan == plans_.end()) return 0;
        ++plan->second.seen;
        if (plan->second.nth != every && plan->second.seen != plan->second.nth) return 0;
        ++failures_;
        return plan->second.error;
    }

    Kernel& inner_;
    std::function<void(KernelCall)> before_;
    std::map<KernelCall, Plan> plans_;
    std::optional<Plan> page_plan_;
    std::size_t failures_ = 0;
};

} // namespace homing
