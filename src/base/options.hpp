// What the user asked for. Names, variables, defaults and choices come from homing/options.toml, the one
// table that the command line and the manual are made from, too.
#pragma once

#include <cstddef>
#include <string>

namespace homing {

enum class Option {
#define HOMING_OPTION(name, env, default_value, choices) name,
#include "options_table.inc"
#undef HOMING_OPTION
    count
};

/// The value from the environment, else the default. Never null; no allocation (usable in a constructor).
const char* option_text(Option option) noexcept;
/// The environment variable's name, for messages.
const char* option_variable(Option option) noexcept;
bool option_is(Option option, const char* value) noexcept;
bool option_flag(Option option) noexcept;
double option_number(Option option) noexcept;
/// "64KiB", "2MiB", "1GiB" or plain bytes; the default where the text is no size.
std::size_t option_size(Option option) noexcept;

/// One line for each variable whose value is not possible (the default is used instead); empty: all is well.
std::string option_errors();

/// Shell-style match: * and ? only.
bool glob_match(const char* pattern, const char* text) noexcept;

} // namespace homing
