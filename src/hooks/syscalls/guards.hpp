// What forbids windows, or keeps memory out of them for good.
#pragma once

#include <cstddef>

namespace homing::hooks {

/// Windows are over in this process, with the reason in words; also where none were in use yet.
void no_more_windows(const char* reason) noexcept;
/// Memory whose use by the kernel, or by the C library on its behalf, has no beginning and no end.
void never_arm(const void* memory, std::size_t bytes) noexcept;

} // namespace homing::hooks
