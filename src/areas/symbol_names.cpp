#include "areas/symbol_names.hpp"

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>

namespace homing {
namespace {

bool is_digit(char letter) noexcept { return letter >= '0' && letter <= '9'; }

/// A Fortran name as compilers write it into symbols: lower case.
bool is_fortran_name(std::string_view name) noexcept {
    return !name.empty() && name[0] >= 'a' && name[0] <= 'z' &&
           std::all_of(name.begin(), name.end(), [](char letter) {
               return (letter >= 'a' && letter <= 'z') || is_digit(letter) || letter == '_' || letter == '$';
           });
}

/// flang (flang/lib/Optimizer/Support/InternalNames.cpp): _Q, then scopes as a tag of upper-case letters and
/// a name in lower case (M module, S submodule, F procedure, B block with its number), then E (variable) or
/// EC (constant).
std::string flang_name(std::string_view symbol) {
    std::string path;
    std::size_t at = 2;
    while (at < symbol.size()) {
        std::size_t name = at;
        while (name < symbol.size() && symbol[name] >= 'A' && symbol[name] <= 'Z')
            ++name;
        std::size_t end = name;
        while (end < symbol.size() && !(symbol[end] >= 'A' && symbol[end] <= 'Z'))
            ++end;
        std::string_view tags = symbol.substr(at, name - at);
        const std::string_view part = symbol.substr(name, end - name);
        if (tags.empty()) return {};
        // The main program is a scope without a name: its tag stands directly before the next one.
        if (tags.size() > 1 && tags[0] == 'F') tags.remove_prefix(1);
        if (tags == "E" || tags == "EC") return end == symbol.size() ? path.append(part) : std::string();
        if (tags != "M" && tags != "S" && tags != "F" && tags != "P" && tags != "B") return {};
        if (tags != "B") path.append(part).append("::");
        at = end;
    }
    return {};
}

/// A symbol of C++ as it was written; as it is where the toolchain's demangler cannot read it.
std::string cxx_name(std::string symbol) {
    char* const text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, nullptr);
    if (text) symbol = text;
    std::free(text);
    return symbol;
}

/// Without numbers that a compiler adds, also several (x.3.lto_priv.0).
std::string_view without_numbers(std::string_view symbol) noexcept {
    std::string_view name = symbol;
    for (;;) {
        std::size_t digits = name.size();
        while (digits > 0 && is_digit(name[digits - 1]))
            --digits;
        if (digits == name.size() || digits < 2 || name[digits - 1] != '.') break;
        name = name.substr(0, digits - 1);
        constexpr std::string_view link_time = ".lto_priv";
        if (name.ends_with(link_time)) name.remove_suffix(link_time.size());
    }
    return name.empty() ? symbol : name;
}

} // namespace

std::string readable_symbol(std::string_view symbol) {
    if (symbol.starts_with("_Z")) return cxx_name(std::string(without_numbers(symbol)));
    if (symbol.starts_with("_Q")) {
        std::string name = flang_name(symbol);
        return name.empty() ? std::string(symbol) : name;
    }
    if (symbol == "__BLNK__") return "//";
    if (symbol.starts_with("__")) {
        const std::size_t mark = symbol.find("_MOD_");
        if (mark != std::string_view::npos && mark > 2 && mark + 5 < symbol.size()) {
            return std::string(symbol.substr(2, mark - 2)).append("::").append(symbol.substr(mark + 5));
        }
    }
    if (symbol.size() > 1 && symbol.back() == '_') {
        const std::string_view block = symbol.substr(0, symbol.size() - 1);
        if (is_fortran_name(block)) return std::string("/").append(block).append("/");
    }
    return std::string(without_numbers(symbol));
}

} // namespace homing
