// Paths, and small files of the system, as homing's Python has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace homing::launcher {

/// The path from the root. Unusual where the current folder is not there any more.
std::string absolute(const std::string& path);
std::string folder_of(const std::string& path); ///< what is before the last slash
std::string file_name(const std::string& path); ///< what is behind it
bool is_file(const std::string& path);
bool is_folder(const std::string& path);

/// The text of a small file; empty where it cannot be read.
std::string read_text(const std::string& path);
/// The kernel's list of numbers ("0-3,8"), as homing/machine_facts.py reads it.
std::vector<int> parse_list(std::string_view text);

/// A JSON text. What is no UTF-8 comes through as Python's surrogates.
std::string json_text(std::string_view text);

} // namespace homing::launcher
