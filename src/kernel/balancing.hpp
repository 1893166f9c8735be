// The kernel's own NUMA balancing.
#pragma once

namespace homing {

/// Is it on? Where that cannot be read, assume so.
bool kernel_balances() noexcept;

} // namespace homing
