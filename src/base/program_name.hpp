// The names by which users mean a program.
#pragma once

namespace homing {

/// Is this process's program the one that `wanted` names? A name is compared with the last part of argv[0]
/// (what was typed) and with that of the executable (what the summary says: python3.11 for python3). What
/// has a slash is a path, and means the file that it leads to. No allocation; errno may change.
bool program_is(const char* wanted) noexcept;

} // namespace homing
