// The files that a run leaves, before it begins (homing/run_files.py).
#pragma once

#include "launcher/command_line.hpp"

#include <string>

namespace homing::launcher {

/// Unusual where a file that the user named may not be written in the end, or may take another one's place;
/// where this is one of several tasks, each of which has files of its own; and where there are records of
/// this name already, which must be told from new ones.
void check_files(const Request& request);

/// HOMING_RECORD of the run: `folder` is for records that the user gave no name.
std::string record_pattern(const Request& request, const std::string& folder);

/// Is there a file that this pattern may stand for?
bool has_records(const std::string& pattern);

} // namespace homing::launcher
