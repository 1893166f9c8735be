// The command line of `homing run`, as far as it is usual: flags of homing/options.toml and a few more.
#pragma once

#include "launcher/environment.hpp"

#include <string>
#include <utility>
#include <vector>

namespace homing::launcher {

/// What the user asked for; homing/run.py has the same Request.
struct Request {
    std::vector<std::string> command;
    std::vector<std::pair<std::string, std::string>> options; ///< variable and value, of the flags given
    std::string summary = "stderr";                           ///< stderr | stdout | none | FILE
    std::string json;                                         ///< FILE; empty: none
    std::string record;                                       ///< FILE, by the flag or by HOMING_RECORD
    bool bind = false;
};

/// Read the words behind `homing run`. Unusual where a flag is not known here, where a value may not be
/// possible, and where a variable of the table has such a value.
Request read_command_line(const std::vector<std::string>& words, const Environment& environment);

} // namespace homing::launcher
