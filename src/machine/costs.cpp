#include "machine/costs.hpp"

#include "record/record.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

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

/// The costs of a parsed file, or what is wrong with it.
std::string take_costs(const toml::table& table, StatedCosts& stated) {
    double cache_kib = 0;
    const std::array<std::pair<std::string_view, double*>, 5> keys{{
        {"local_ns", &stated.costs.local_ns},
        {"remote_ns", &stated.costs.remote_ns},
        {"move_call_us", &stated.costs.move_call_us},
        {"move_page_us", &stated.costs.move_page_us},
        {"cache_kib", &cache_kib},
    }};
    for (const auto& [key, value] : keys) {
        const std::string name(key);
        const toml::node_view<const toml::node> node = table[key];
        if (!node && key == "cache_kib") continue;
        if (!node) return "has no " + name;
        const std::optional<double> number = node.value<double>();
        if (!number || !std::isfinite(*number) || *number < 0 || *number > 1e12)
            return name + " is no such number";
        *value = *number;
    }
    for (const auto& entry : table) {
        const std::string_view key = entry.first.str();
        bool known = false;
        for (const auto& candidate : keys)
            known |= candidate.first == key;
        if (!known) return "has an unknown key " + std::string(key);
    }
    if (stated.costs.local_ns <= 0) return "local_ns is not above zero";
    if (stated.costs.remote_ns < stated.costs.local_ns) return "remote_ns is below local_ns";
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

StatedCosts find_costs(const std::string& path, const Machine& machine) {
    if (path.empty()) return costs_from_distances(machine);
    StatedCosts stated;
    const toml::parse_result parsed = toml::parse_file(path);
    std::string problem;
    if (parsed) {
        problem = take_costs(parsed.table(), stated);
    } else {
        problem = parsed.error().description();
        if (const auto line = parsed.error().source().begin.line; line > 0)
            problem += " (line " + std::to_string(line) + ")";
    }
    if (!problem.empty()) {
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
