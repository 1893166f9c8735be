#include "base/asymmetric_fence.hpp"

#include "base/raw_calls.hpp"

#include <linux/membarrier.h>

namespace homing {

void prepare_asymmetric_fences() noexcept {
    if (raw::call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0)
        detail::fences_on_both_sides.store(false, std::memory_order_seq_cst);
}

bool asymmetric_fence_heavy() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (detail::fences_on_both_sides.load(std::memory_order_relaxed)) return true;
    if (raw::call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0) return true;
    detail::fences_on_both_sides.store(true, std::memory_order_seq_cst);
    return false;
}

} // namespace homing
