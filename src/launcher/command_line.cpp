// Values are checked more strictly than homing/options.py does it: what is refused here, Python judges.
#include "launcher/command_line.hpp"

#include "base/options.hpp"
#include "launcher/files.hpp"
#include "launcher/unusual.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace homing::launcher {
namespace {

enum class Kind { word, flag, number, count, size, text, file };

/// One row of homing/options.toml.
struct Row {
    std::string_view variable;
    std::string_view flag; ///< empty: only the variable
    Kind kind;
    std::string_view choices; ///< separated by commas
    double most;
};

constexpr Row rows[] = {
#define HOMING_FLAG(variable, flag, kind, choices, most) {variable, flag, Kind::kind, choices, most},
#include "flags_table.inc"
#undef HOMING_FLAG
};

/// These need more than a look at the value: rules are looked up in the program, costs are read.
bool needs_python(const Row& row) { return row.variable == "HOMING_AREAS" || row.variable == "HOMING_COSTS"; }

bool is_choice(std::string_view choices, std::string_view value) {
    while (!choices.empty()) {
        const auto end = std::min(choices.find(','), choices.size());
        if (choices.substr(0, end) == value) return true;
        choices.remove_prefix(std::min(end + 1, choices.size()));
    }
    return false;
}

bool is_plain_number(const std::string& value, double most) {
    const auto digits = [](char letter) { return letter >= '0' && letter <= '9'; };
    const auto point = std::find(value.begin(), value.end(), '.');
    const bool whole = point != value.begin() && std::all_of(value.begin(), point, digits);
    const bool rest = point == value.end() || std::all_of(point + 1, value.end(), digits);
    constexpr std::size_t most_digits = 18; // as everywhere in homing; more is Python's to judge
    return whole && rest && value.size() <= most_digits && std::strtod(value.c_str(), nullptr) <= most;
}

void check(const Row& row, const std::string& value) {
    bool good = !needs_python(row);
    switch (row.kind) {
    case Kind::word:
        good = is_choice(row.choices, value);
        break;
    case Kind::flag:
        good = value == "0" || value == "1";
        break;
    case Kind::number:
        good = is_plain_number(value, row.most);
        break;
    case Kind::count:
        good = is_plain_number(value, row.most) && value.find('.') == std::string::npos;
        break;
    case Kind::size: {
        std::size_t bytes = 0;
        good = parse_size(value.c_str(), bytes);
        break;
    }
    case Kind::text:
    case Kind::file:
        break;
    }
    if (!good) leave_to_python();
}

/// The words of a command line, one after the other.
class Words {
  public:
    explicit Words(const std::vector<std::string>& words) : words_(words) {}

    bool at_flag() const { return next_ < words_.size() && words_[next_].starts_with("-"); }

    /// The name of the flag; its value, if it is stated with =, is kept for value().
    std::string flag() {
        const std::string& word = words_[next_++];
        const auto equal = word.find('=');
        stated_.reset();
        if (equal != std::string::npos) stated_ = word.substr(equal + 1);
        return word.substr(0, equal);
    }

    std::string value() {
        if (!stated_ && next_ == words_.size()) leave_to_python();
        const std::string found = stated_ ? *stated_ : words_[next_++];
        // An empty one and a flag in its place are mistakes; - is standard output, which Python writes.
        if (found.empty() || found.starts_with("--") || found == "-") leave_to_python();
        return found;
    }

    void no_value() const {
        if (stated_) leave_to_python();
    }

    std::vector<std::string> rest() const {
        return {words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end()};
    }

  private:
    const std::vector<std::string>& words_;
    std::size_t next_ = 0;
    std::optional<std::string> stated_;
};

void take(Request& request, const std::string& flag, Words& words) {
    if (flag == "--summary") {
        request.summary = words.value();
    } else if (flag == "--json") {
        request.json = words.value();
    } else if (flag == "--bind") {
        words.no_value();
        request.bind = true;
    } else if (flag == "--on") {
        if (words.value() != "here") leave_to_python();
    } else {
        const Row* const row =
            std::find_if(std::begin(rows), std::end(rows), [&](const Row& one) { return one.flag == flag; });
        if (row == std::end(rows)) leave_to_python();
        std::string value = "1";
        if (row->kind == Kind::flag)
            words.no_value();
        else
            value = words.value();
        check(*row, value);
        request.options.emplace_back(row->variable, value);
    }
}

} // namespace

Request read_command_line(const std::vector<std::string>& all, const Environment& environment) {
    Request request;
    Words words(all);
    while (words.at_flag()) {
        const std::string flag = words.flag();
        if (flag == "--") {
            words.no_value();
            break;
        }
        take(request, flag, words);
    }
    request.command = words.rest();
    if (request.command.empty()) leave_to_python();
    for (const Row& row : rows)
        if (const std::string value = environment.get(row.variable); !value.empty()) check(row, value);

    request.record = environment.get("HOMING_RECORD");
    // The last of several counts; the record's is no variable of the program, which gets a pattern.
    std::erase_if(request.options, [&](const auto& option) {
        if (option.first == "HOMING_RECORD") request.record = option.second;
        return option.first == "HOMING_RECORD";
    });
    std::string only = environment.get("HOMING_ONLY");
    for (const auto& [variable, value] : request.options)
        if (variable == "HOMING_ONLY") only = value;
    // A path means the same wherever the program goes.
    if (only.find('/') != std::string::npos) request.options.emplace_back("HOMING_ONLY", absolute(only));
    return request;
}

} // namespace homing::launcher
