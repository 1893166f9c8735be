// One run of `homing run`.
#pragma once

#include "launcher/python.hpp"

#include <string>
#include <vector>

namespace homing::launcher {

/// Run the command, say what was done, and end as the command ended. Returns where Python has to do it all:
/// then nothing was started, and nothing is left.
void run_usual(const std::vector<std::string>& words, const Python& python);

} // namespace homing::launcher
