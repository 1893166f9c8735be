// Places of a table that threads and handlers take one after the other, up to its end.
#pragma once

#include <atomic>

namespace homing {

/// The place that is the caller's now, or `limit`: all are taken. (A plain addition would count on behind the
/// end, and after 2^31 calls name places before the table.)
inline int next_below(std::atomic<int>& taken, int limit) noexcept {
    int at = taken.load(std::memory_order_relaxed);
    while (at < limit && !taken.compare_exchange_weak(at, at + 1, std::memory_order_acq_rel)) {
    }
    return at;
}

} // namespace homing
