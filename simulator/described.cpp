#include "described.hpp"

#include <algorithm>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace homing::simulator {
namespace {

template <class T> std::vector<T> numbers(const toml::node_view<const toml::node> node) {
    std::vector<T> out;
    if (const toml::array* array = node.as_array())
        for (const toml::node& item : *array)
            out.push_back(static_cast<T>(item.value_or(0.0)));
    return out;
}

Cache read_cache(const toml::node_view<const toml::node> node) {
    Cache cache;
    cache.bytes = node["bytes"].value_or(std::uint64_t{0});
    cache.ways = node["ways"].value_or(1u);
    cache.cpus = node["cpus"].value_or(1u);
    return cache;
}

Binding binding_named(const std::string& name) {
    if (name == "spread") return Binding::spread;
    if (name == "close") return Binding::close;
    if (name == "primary") return Binding::primary;
    return name == "turns" ? Binding::turns : Binding::even;
}

Placement read_placement(const toml::node_view<const toml::node> node) {
    Placement placement;
    if (const toml::array* places = node["places"].as_array())
        for (const toml::node& place : *places)
            placement.places.push_back(numbers<int>(toml::node_view<const toml::node>(place)));
    if (const toml::array* bindings = node["bindings"].as_array())
        for (const toml::node& binding : *bindings)
            placement.bindings.push_back(binding_named(binding.value_or(std::string())));
    return placement;
}

/// Are there places, all of CPUs that are there?
bool is_good(const Placement& placement, const Described& described) {
    return !placement.places.empty() && !placement.bindings.empty() &&
           std::ranges::all_of(placement.places, [&](const std::vector<int>& place) {
               return !place.empty() &&
                      std::ranges::all_of(place, [&](int cpu) { return described.node_of_cpu(cpu) >= 0; });
           });
}

/// Do the CPUs have nodes and caches that are there, and are all nodes that of some CPU?
bool has_good_cpus(const Described& described) {
    if (described.cpu_caches.size() != described.cpu_nodes.size()) return false;
    for (std::size_t cpu = 0; cpu < described.cpu_nodes.size(); ++cpu) {
        const int node = described.cpu_nodes[cpu];
        if (node >= described.nodes() || (node >= 0) != (described.cpu_caches[cpu] >= 0)) return false;
    }
    for (int node = 0; node < described.nodes(); ++node)
        if (described.cpus_of(node) == 0) return false;
    return true;
}

bool is_power_of_two(std::uint64_t value) { return value && (value & (value - 1)) == 0; }

} // namespace

int Described::cpu_count() const noexcept {
    return static_cast<int>(std::ranges::count_if(cpu_nodes, [](int node) { return node >= 0; }));
}

int Described::cpus_of(int node) const noexcept {
    return static_cast<int>(std::ranges::count(cpu_nodes, node));
}

int Described::cache_count() const noexcept {
    return cpu_caches.empty() ? 0 : 1 + *std::ranges::max_element(cpu_caches);
}

int Described::node_of_cpu(int cpu) const noexcept {
    return cpu >= 0 && cpu < cpu_slots() ? cpu_nodes[static_cast<std::size_t>(cpu)] : -1;
}

std::string read_described(const char* path, Described& described) {
    const toml::parse_result parsed = toml::parse_file(path);
    if (!parsed) return std::string(path) + ": " + std::string(parsed.error().description());
    const toml::node_view<const toml::node> root(parsed.table());
    described.name = root["name"].value_or(std::string("described machine"));
    described.cpu_nodes = numbers<int>(root["cpu_nodes"]);
    described.cpu_caches = numbers<int>(root["cpu_caches"]);
    described.memory = numbers<std::uint64_t>(root["memory"]);
    if (const toml::array* rows = root["distances"].as_array())
        for (const toml::node& row : *rows)
            described.distances.push_back(numbers<double>(toml::node_view<const toml::node>(row)));
    described.page = root["page"].value_or(std::uint64_t{4096});
    described.line = root["line"].value_or(std::uint64_t{64});
    described.own = read_cache(root["private"]);
    described.shared = read_cache(root["shared"]);
    const std::string initial = root["initial"].value_or(std::string("first-touch"));
    described.initial = initial == "round-robin"   ? Initial::round_robin
                        : initial == "random"      ? Initial::random
                        : initial == "single-node" ? Initial::single_node
                                                   : Initial::first_touch;
    described.placements[static_cast<std::size_t>(Runtime::gcc)] =
        read_placement(root["placement"]["libgomp"]);
    described.placements[static_cast<std::size_t>(Runtime::llvm)] =
        read_placement(root["placement"]["libomp"]);
    if (const toml::array* distributions = root["distributions"].as_array())
        for (const toml::node& item : *distributions) {
            const toml::node_view<const toml::node> one(item);
            described.distributions.push_back(
                {one["area"].value_or(std::string()), one["cycle"].value_or(std::uint64_t{0})});
        }
    described.balancing.scan_bytes = root["balancing"]["bytes"].value_or(std::uint64_t{0});
    described.balancing.scan_accesses = root["balancing"]["accesses"].value_or(std::uint64_t{0});
    described.seed = root["seed"].value_or(std::uint64_t{1});
    described.turn = root["turn"].value_or(std::int64_t{0});
    described.fact = root["fact"].value_or(std::string());
    described.lines = root["lines"].value_or(false);
    const auto nodes = static_cast<std::size_t>(described.nodes());
    if (nodes == 0 || nodes > 64 || !has_good_cpus(described) ||
        !std::ranges::all_of(described.placements,
                             [&](const Placement& one) { return is_good(one, described); }) ||
        !is_power_of_two(described.page) || !is_power_of_two(described.line) || described.line < 64 ||
        described.line > described.page || described.own.bytes < described.line * described.own.ways)
        return std::string(path) + ": not a machine that can be simulated";
    return {};
}

Machine machine_of(const Described& described) {
    Machine machine;
    machine.source = "simulated " + described.name;
    for (int index = 0; index < described.nodes(); ++index) {
        Node node;
        node.index = index;
        node.cpus = described.cpus_of(index);
        node.memory_bytes = described.memory[static_cast<std::size_t>(index)];
        node.memory_known = node.memory_bytes > 0;
        machine.nodes.push_back(node);
    }
    machine.cpu_nodes = described.cpu_nodes;
    for (const int cache : described.cpu_caches) { // numbered by their first CPU
        const auto first = std::ranges::find(described.cpu_caches, cache) - described.cpu_caches.begin();
        machine.cpu_caches.push_back(cache < 0 ? -1 : static_cast<int>(first));
    }
    machine.distances = described.distances;
    machine.last_level_cache_bytes = described.shared.bytes ? described.shared.bytes : described.own.bytes;
    machine.last_level_caches_per_node = std::max(1, described.cache_count() / described.nodes());
    return machine;
}

} // namespace homing::simulator
