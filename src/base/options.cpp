#include "base/options.hpp"

#include "base/raw_calls.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <strings.h>

namespace homing {
namespace {

enum class Kind { word, flag, number, count, size, text, file };

struct Entry {
    const char* variable;
    const char* default_value;
    const char* choices; ///< comma-separated; empty: anything goes
    Kind kind;
    double most; ///< of a number
};

constexpr Entry table[] = {
#define HOMING_OPTION(name, env, default_value, choices, kind, most)                                         \
    {env, default_value, choices, Kind::kind, most},
#include "options_table.inc"
#undef HOMING_OPTION
};

constexpr std::size_t table_size = sizeof table / sizeof table[0];

/// What the environment stated when this library came into the process; null before.
struct Kept {
    const char* values[table_size];
};
constinit const Kept* kept = nullptr;

/// Null: nothing.
const char* stated(const Entry& e) noexcept {
    return kept ? kept->values[&e - table] : std::getenv(e.variable);
}

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

/// Not by strtod() and its kin, which follow the program's locale: "0.01" would be 0 to them where it has a
/// decimal comma.
bool parse_number(std::string_view text, double most, double& number) noexcept {
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && number >= 0 && number <= most &&
           std::isfinite(number);
}

/// A number, whole where it counts something.
bool parse_as(const Entry& e, std::string_view text, double& number) noexcept {
    return parse_number(text, e.most, number) && (e.kind != Kind::count || number == std::floor(number));
}

/// What is wrong with the value, by what would be right; empty: nothing.
std::string problem_with(const Entry& e, const char* value) {
    double number = 0;
    std::size_t bytes = 0;
    if (e.kind == Kind::word && !is_choice(e.choices, value)) return e.choices;
    if (e.kind == Kind::size && !parse_size(value, bytes)) return "a size such as 65536, 64KiB or 2MiB";
    if ((e.kind != Kind::number && e.kind != Kind::count) || parse_as(e, value, number)) return {};
    const std::string asked = e.kind == Kind::count ? "a whole number " : "a number ";
    if (!std::isfinite(e.most)) return asked + "that is not negative";
    return asked + "from 0 to " + std::to_string(static_cast<long long>(e.most));
}

} // namespace

void keep_options() noexcept {
    std::size_t bytes = sizeof(Kept);
    for (const Entry& e : table)
        if (const char* value = std::getenv(e.variable)) bytes += std::strlen(value) + 1;
    void* const memory = raw::map_memory(bytes); // as long as the process lives
    if (!memory) return;
    auto* const all = static_cast<Kept*>(memory);
    char* text = static_cast<char*>(memory) + sizeof(Kept);
    for (const Entry& e : table) {
        const char* value = std::getenv(e.variable);
        if (!value) continue;
        const std::size_t length = std::strlen(value) + 1;
        std::memcpy(text, value, length);
        all->values[&e - table] = text;
        text += length;
    }
    kept = all;
}

const char* option_variable(Option option) noexcept { return entry(option).variable; }

const char* option_text(Option option) noexcept {
    const Entry& e = entry(option);
    const char* value = stated(e);
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
    double number = 0;
    const Entry& e = entry(option);
    if (!parse_as(e, option_text(option), number)) parse_as(e, e.default_value, number);
    return number;
}

std::size_t option_size(Option option) noexcept {
    std::size_t bytes = 0;
    if (!parse_size(option_text(option), bytes)) parse_size(entry(option).default_value, bytes);
    return bytes;
}

bool parse_size(const char* text, std::size_t& bytes) noexcept {
    constexpr std::size_t most_digits = 18;
    std::size_t value = 0;
    const char* unit = text;
    for (; *unit >= '0' && *unit <= '9'; ++unit)
        value = 10 * value + static_cast<std::size_t>(*unit - '0'); // beyond 18 digits it does not matter
    if (unit == text || unit - text > static_cast<std::ptrdiff_t>(most_digits)) return false;
    constexpr const char* units = "kmg";
    const char* known = *unit ? std::strchr(units, *unit | 0x20) : nullptr; // capitals or not
    const int shift = known ? 10 * static_cast<int>(known - units + 1) : 0;
    if (known) ++unit;
    const bool ends = *unit == 0 || ::strcasecmp(unit, "B") == 0 || (known && ::strcasecmp(unit, "iB") == 0);
    if (!ends || value > SIZE_MAX >> shift) return false;
    bytes = value << shift;
    return true;
}

std::string option_errors() {
    std::string errors;
    for (const Entry& e : table) {
        const char* value = stated(e);
        if (!value || !*value) continue;
        if (const std::string problem = problem_with(e, value); !problem.empty())
            errors += std::string(e.variable) + "=" + value + " is not possible (" + problem +
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
