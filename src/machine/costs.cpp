#include "machine/costs.hpp"
#include "base/raw_calls.hpp"

#include "record/record.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sys/stat.h>
#include <vector>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace homing {
namespace {

// The assumptions of costs_from_distances().
constexpr double assumed_local_ns = 90;
constexpr double assumed_call_us = 50;
constexpr double assumed_page_us = 1.5;
constexpr double local_distance = 10;   // of every SLIT
constexpr double unknown_distance = 20; // the kernel's own default (REMOTE_DISTANCE)

constexpr off_t most_file_bytes = 1 << 20; // five lines are needed

/// Why a file cannot state costs; empty: it may. A pipe or a device would hold up the user's program for
/// ever.
std::string file_problem(const std::string& path) {
    struct stat there{};
    if (raw::status(path.c_str(), there) != 0) return {}; // opening it says why
    if (!S_ISREG(there.st_mode)) return "is not a regular file";
    return there.st_size > most_file_bytes ? "is too large" : "";
}

/// Mean distance between different target nodes; `unknown_distance` where the machine has no table.
double mean_distance(const Machine& machine) {
    double sum = 0;
    int pairs = 0;
    for (std::size_t from = 0; from < machine.nodes.size(); ++from) {
        for (std::size_t to = 0; to < machine.nodes.size(); ++to) {
            if (from == to || !machine.nodes[from].target() || !machine.nodes[to].target()) continue;
            if (from >= machine.distances.size() || to >= machine.distances[from].size()) continue;
            sum += machine.distances[from][to];
            ++pairs;
        }
    }
    // 255 is "not reachable", anything below local a table that firmware has not filled in.
    const double mean = pairs > 0 ? sum / pairs : unknown_distance;
    return mean >= local_distance && mean < 255 ? mean : unknown_distance;
}

constexpr double largest = 1e12;
constexpr const char* number_expected = " must be a number from 0 to 1e12";

/// A value that must be there, or may be.
struct Key {
    const char* name;
    double* value;
    bool needed = true;
};

/// "a, b and c".
std::string listed(const std::vector<std::string>& names) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
    return text;
}

/// The costs of a parsed file, or what is wrong with it.
std::string take_costs(const toml::table& table, StatedCosts& stated) {
    double cache_kib = 0;
    const std::array<Key, 7> keys{{
        {"local_ns", &stated.costs.local_ns},
        {"remote_ns", &stated.costs.remote_ns},
        {"move_call_us", &stated.costs.move_call_us},
        {"move_page_us", &stated.costs.move_page_us},
        {"cache_kib", &cache_kib, false},
        {"touch_us", &stated.costs.touch_us, false},
        {"fit_us", &stated.costs.fit_us, false},
    }};
    std::vector<std::string> known;
    std::vector<std::string> missing;
    for (const Key& key : keys) {
        known.emplace_back(key.name);
        const toml::node_view<const toml::node> node = table[key.name];
        if (!node && key.needed) missing.emplace_back(key.name);
        if (!node) continue;
        const std::optional<double> number = node.value<double>();
        if (!number || !std::isfinite(*number) || *number < 0 || *number > largest)
            return key.name + std::string(number_expected);
        *key.value = *number;
    }
    if (!missing.empty()) return listed(missing) + " must be stated, each as a number";
    for (const auto& entry : table) {
        const std::string key(entry.first.str());
        if (std::ranges::find(known, key) == known.end())
            return "unknown key " + key + "; there are " + listed(known);
    }
    if (stated.costs.local_ns <= 0) return "local_ns must be above 0";
    if (stated.costs.remote_ns < stated.costs.local_ns) return "remote_ns must not be below local_ns";
    stated.cache_bytes = static_cast<std::uint64_t>(cache_kib * 1024);
    return {};
}

} // namespace

StatedCosts costs_from_distances(const Machine& machine) {
    StatedCosts stated;
    const double distance = mean_distance(machine);
    stated.costs.local_ns = assumed_local_ns;
    stated.costs.remote_ns = assumed_local_ns * distance / local_distance;
    stated.costs.move_call_us = assumed_call_us;
    stated.costs.move_page_us = assumed_page_us;
    stated.source =
        machine.distances.empty() ? "assumed (the machine tells no distances)" : "assumed from distances";
    return stated;
}

std::string read_costs(const std::string& path, StatedCosts& stated) {
    if (std::string problem = file_problem(path); !problem.empty()) return problem;
    const toml::parse_result parsed = toml::parse_file(path);
    if (parsed) return take_costs(parsed.table(), stated);
    const auto line = parsed.error().source().begin.line;
    if (line == 0) return std::string(parsed.error().description()); // it could not be read
    return "is not TOML (key = number, a line each): " + std::string(parsed.error().description()) +
           " (line " + std::to_string(line) + ")";
}

StatedCosts find_costs(const std::string& path, const Machine& machine) {
    if (path.empty()) return costs_from_distances(machine);
    StatedCosts stated;
    if (const std::string problem = read_costs(path, stated); !problem.empty()) {
        record::message(record::Level::warning,
                        "costs file " + path + ": " + problem + "; costs are assumed from distances instead");
        return costs_from_distances(machine);
    }
    stated.source = "stated in " + path;
    return stated;
}

std::string cost_values(const policy::Costs& costs) {
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(),
                  "local_ns = %.4g, remote_ns = %.4g, move_call_us = %.4g, move_page_us = %.4g",
                  costs.local_ns, costs.remote_ns, costs.move_call_us, costs.move_page_us);
    return text.data();
}

} // namespace homing
