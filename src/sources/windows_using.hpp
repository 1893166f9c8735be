// Keeps the slots of the windows from being used anew while a thread can reach them.
#pragma once

#include "base/signals_blocked.hpp"

#include <atomic>
#include <optional>

namespace homing {

/// While it lives, the slots that it can reach are not used anew, and no handler interrupts this thread:
/// others wait for what it has begun.
class Using {
  public:
    explicit Using(std::atomic<int>& users) noexcept : users_(users) {
        blocked_.emplace();
        users_.fetch_add(1, std::memory_order_seq_cst);
    }
    /// In the handler of SIGSEGV, which blocks all signals itself.
    struct InHandler {};
    Using(std::atomic<int>& users, InHandler) noexcept : users_(users) {
        users_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Using() { users_.fetch_sub(1, std::memory_order_seq_cst); }
    Using(const Using&) = delete;
    Using& operator=(const Using&) = delete;

  private:
    std::optional<SignalsBlocked> blocked_; // ends after the destructor has let others go on
    std::atomic<int>& users_;
};

} // namespace homing
