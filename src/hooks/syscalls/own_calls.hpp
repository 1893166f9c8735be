// Why a window must end with its parallel region in this process. In serial code a program does what it does
// not do in its loops: it reads, writes, loads libraries. What it does through the C library the hooks see;
// what it may do past it is looked for here.
#pragma once

#include <cstddef>
#include <span>

namespace homing::hooks {

/// [any thread] The loader brings an object, whose code nobody has looked at: no window stays open.
void object_comes() noexcept;
/// [driver] Why system calls may be made past every hook. Null: nothing is known that makes any. The reason
/// is kept as long as the process lives.
const char* makes_own_calls() noexcept;
/// [driver] At every region. Null: nothing is known that makes a window end with its region. The reason is
/// kept as long as the process lives.
const char* keeps_windows_in_regions() noexcept;

/// Is there an instruction in this code that calls the kernel? What only looks like one is taken for one,
/// but where no code could be so.
bool calls_kernel(std::span<const unsigned char> code) noexcept;

} // namespace homing::hooks
