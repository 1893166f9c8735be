// What windows cannot bear in a process and no hook sees: threads that block SIGSEGV past the C library,
// kernel and devices that read and write the program's pages by themselves, libraries whose peers do, limits.
#pragma once

namespace homing {
class Windows;
}

namespace homing::hooks {

/// [driver] Before a window opens. False: not now. Where it is never again the windows are forbidden.
bool surroundings_allow(Windows& windows) noexcept;

} // namespace homing::hooks
