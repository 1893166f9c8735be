// Keeps the slots of the windows from being used anew while a thread can reach them.
#pragma once

#include <atomic>

namespace homing {

/// While it lives, the slots that it can reach are not used anew.
class Using {
  public:
    explicit Using(std::atomic<int>& users) noexcept : users_(users) {
        users_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Using() { users_.fetch_sub(1, std::memory_order_seq_cst); }
    Using(const Using&) = delete;
    Using& operator=(const Using&) = delete;

  private:
    std::atomic<int>& users_;
};

} // namespace homing
