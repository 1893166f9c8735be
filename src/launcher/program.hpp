// The program that is to be started: where it is, and whether the library can be preloaded into it.
#pragma once

#include <string>

namespace homing::launcher {

class Environment;

/// The file that execvp would start (homing/launch.py: find_command). Unusual where there is none.
std::string find_program(const std::string& name, const Environment& environment);

/// Unusual where there is a reason to start the program without the library or to expect nothing of it
/// (homing/elf.py: judge): another machine's, static, of another C library, with a sanitizer, privileged.
void check_program(const std::string& program, const std::string& library);

} // namespace homing::launcher
