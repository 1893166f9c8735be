#include "base/options.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace homing {
namespace {

struct Entry {
    const char* variable;
    const char* default_value;
    const char* choices; ///< comma-separated; empty: anything goes
};

constexpr Entry table[] = {
#define HOMING_OPTION(name, env, default_value, choices) {env, default_value, choices},
#include "options_table.inc"
#undef HOMING_OPTION
};

const Entry& entry(Option option) noexcept { return table[static_cast<std::size_t>(option)]; }

bool is_choice(const char* choices, const char* value) noexcept {
    const std::size_t length = std::strlen(value);
    for (const char* at = choices; at && *at;) {
        const char* comma = std::strchr(at, ',');
        const std::size_t n = comma ? static_cast<std::size_t>(comma - at) : std::strlen(at);
        if (n == length && std::strncmp(at, value, n) == 0) return true;
        at = comma ? comma + 1 : nullptr;
    }
    return false;
}

/// Bytes of "64KiB" and the like into `bytes`; false where the text is no size.
bool parse_size(const char* text, std::size_t& bytes) noexcept {
    char* end = nullptr;
    errno = 0;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (end == text || errno != 0 || *text == '-') return false;
    int shift = 0;
    if (*end == 'K' || *end == 'k')
        shift = 10;
    else if (*end == 'M' || *end == 'm')
        shift = 20;
    else if (*end == 'G' || *end == 'g')
        shift = 30;
    const char* unit = shift ? end + 1 : end;
    if (*unit && std::strcmp(unit, "iB") != 0 && std::strcmp(unit, "B") != 0) return false;
    bytes = static_cast<std::size_t>(value) << shift;
    return true;
}

} // namespace

const char* option_variable(Option option) noexcept { return entry(option).variable; }

const char* option_text(Option option) noexcept {
    const Entry& e = entry(option);
    const char* value = std::getenv(e.variable);
    if (!value || !*value) return e.default_value;
    return *e.choices && !is_choice(e.choices, value) ? e.default_value : value;
}

bool option_is(Option option, const char* value) noexcept {
    return std::strcmp(option_text(option), value) == 0;
}

bool option_flag(Option option) noexcept {
    const char* text = option_text(option);
    return *text && std::strcmp(text, "0") != 0;
}

double option_number(Option option) noexcept {
    const char* text = option_text(option);
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    return end != text && *end == 0 ? value : std::strtod(entry(option).default_value, nullptr);
}

std::size_t option_size(Option option) noexcept {
    std::size_t bytes = 0;
    if (!parse_size(option_text(option), bytes)) parse_size(entry(option).default_value, bytes);
    return bytes;
}

std::string option_errors() {
    std::string errors;
    for (const Entry& e : table) {
        const char* value = std::getenv(e.variable);
        if (value && *value && *e.choices && !is_choice(e.choices, value))
            errors += std::string(e.variable) + "=" + value + " is not possible (" + e.choices +
                      "): " + e.default_value + " is used\n";
    }
    return errors;
}

bool glob_match(const char* pattern, const char* text) noexcept {
    // Iterative, with one point of return for the last '*': linear for patterns people write.
    const char* star = nullptr;
    const char* retry = nullptr;
    while (*text) {
        if (*pattern == '?' || *pattern == *text) {
            ++pattern;
            ++text;
        } else if (*pattern == '*') {
            star = pattern++;
            retry = text;
        } else if (star) {
            pattern = star + 1;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        ++pattern;
    return *pattern == 0;
}

} // namespace homing
