// The launcher does what is usual, and leaves everything else to Python, which does it all.
#pragma once

namespace homing::launcher {

/// Thrown before the program is started, where this launcher does not know what to do, or where it knows that
/// there is an error: Python starts again from the command line, and is the only one that words errors.
struct Unusual {};

[[noreturn]] inline void leave_to_python() { throw Unusual{}; }

} // namespace homing::launcher
