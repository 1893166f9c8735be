// What this library itself calls.
#pragma once

namespace homing::hooks {

/// Functions of the C library that this library calls are the C library's from now on, and those that it has
/// a hook for its own, whatever the program defines by the same names.
void bind_own_imports() noexcept;

} // namespace homing::hooks
