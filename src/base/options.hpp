// What the user asked for. Names, variables, defaults and choices come from homing/options.toml, the one
// table that the command line and the manual are made from, too.
#pragma once

#include <cstddef>
#include <string>

namespace homing {

enum class Option {
#define HOMING_OPTION(name, ...) name,
#include "options_table.inc"
#undef HOMING_OPTION
    count
};

/// The options are those of now from now on: a program may clear its environment, or write over it (for a
/// title in the list of processes), before its first region.
void keep_options() noexcept;

/// The value from the environment, else the default. Never null; no allocation (usable in a constructor).
const char* option_text(Option option) noexcept;
/// The environment variable's name, for messages.
const char* option_variable(Option option) noexcept;
bool option_is(Option option, const char* value) noexcept;
bool option_flag(Option option) noexcept;
/// From 0 to the option's largest; the default where the text is no such number.
double option_number(Option option) noexcept;
/// Bytes; the default where the text is no size (parse_size).
std::size_t option_size(Option option) noexcept;

/// Bytes of a size into `bytes`: up to 18 digits, then nothing, B, or K, M or G with or without B or iB
/// behind it (powers of 1024), in capitals or not. False for everything else, and for more than can be
/// addressed. homing/options.py has the same rule.
bool parse_size(const char* text, std::size_t& bytes) noexcept;

/// One line for each variable whose value is not possible (the default is used instead); empty: all is well.
std::string option_errors();

/// Shell-style match: * and ? only.
bool glob_match(const char* pattern, const char* text) noexcept;

} // namespace homing
