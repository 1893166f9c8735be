#include "areas/area_filter.hpp"

#include "base/options.hpp"

#include <algorithm>
#include <charconv>

namespace homing {
namespace {

/// The text up to the next comma that is in no bracket, which is taken off with it.
std::string_view take_rule(std::string_view& rest) noexcept {
    int depth = 0;
    std::size_t at = 0;
    for (; at < rest.size() && (rest[at] != ',' || depth > 0); ++at) {
        if (rest[at] == '<' || rest[at] == '(' || rest[at] == '[') ++depth;
        if ((rest[at] == '>' || rest[at] == ')' || rest[at] == ']') && depth > 0) --depth;
    }
    const std::string_view rule = rest.substr(0, at);
    rest.remove_prefix(std::min(at + 1, rest.size()));
    return rule;
}

/// The number in hexadecimal digits at the front of `text`, which is taken off with the space behind it;
/// false where there is none.
template <class Number> bool take_number(std::string_view& text, Number& number) noexcept {
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    if (result.ec != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
    if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    return true;
}

} // namespace

AreaFilter::AreaFilter(std::string_view rules, std::string_view code) {
    while (!rules.empty()) {
        const std::string_view piece = take_rule(rules);
        const std::size_t equals = piece.find('=');
        const std::string_view key = piece.substr(0, equals);
        if (equals == std::string_view::npos || (key != "include" && key != "exclude")) {
            error_ = "HOMING_AREAS: \"" + std::string(piece) +
                     "\" is neither include=GLOB nor exclude=GLOB: ignored";
            continue;
        }
        Rule rule;
        rule.include = key == "include";
        rule.pattern = piece.substr(equals + 1);
        rules_.push_back(std::move(rule));
    }
    read_code(code);
}

void AreaFilter::read_code(std::string_view code) {
    std::string key;
    while (!code.empty()) {
        const std::size_t end = code.find('\n');
        std::string_view line = code.substr(0, end);
        code.remove_prefix(std::min(line.size() + 1, code.size()));
        constexpr std::string_view object = "object ";
        if (line.starts_with(object)) {
            key = line.substr(object.size());
            continue;
        }
        Code one;
        one.key = key;
        if (!take_number(line, one.rule) || !take_number(line, one.condition) ||
            !take_number(line, one.begin) || !take_number(line, one.end))
            continue;
        if (one.rule >= rules_.size() || one.condition >= 32) continue;
        rules_[one.rule].conditions |= 1u << one.condition;
        code_.push_back(std::move(one));
    }
}

bool AreaFilter::decide(const std::string& name, std::span<const AreaPlace> places, std::uint64_t counted) {
    std::vector<std::uint32_t> met(rules_.size(), 0);
    for (const AreaPlace& place : places) {
        const std::string_view file = place.object.substr(place.object.rfind('/') + 1);
        for (const Code& one : code_)
            if (one.begin <= place.offset && place.offset < one.end &&
                (one.key == place.identity || one.key == file))
                met[one.rule] |= 1u << one.condition;
    }
    bool accepted = rules_.empty() || !rules_.front().include;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
        Rule& rule = rules_[i];
        const bool by_code = rule.conditions != 0 && met[i] == rule.conditions;
        if (!by_code && !glob_match(rule.pattern.c_str(), name.c_str())) continue;
        accepted = rule.include;
        rule.matched = true;
        rule.areas += counted;
    }
    return accepted;
}

bool AreaFilter::accepts(const std::string& name, std::span<const AreaPlace> places) {
    return decide(name, places, 0);
}

bool AreaFilter::adopts(const std::string& name, std::span<const AreaPlace> places) {
    return decide(name, places, 1);
}

} // namespace homing
