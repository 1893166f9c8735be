#include "described.hpp"

#include <numeric>

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

bool is_power_of_two(std::uint64_t value) { return value && (value & (value - 1)) == 0; }

} // namespace

int Described::cpu_count() const noexcept { return std::accumulate(cpus.begin(), cpus.end(), 0); }

int Described::node_of_cpu(int cpu) const noexcept {
    for (int node = 0; node < nodes(); ++node) {
        cpu -= cpus[static_cast<std::size_t>(node)];
        if (cpu < 0) return node;
    }
    return nodes() - 1;
}

std::string read_described(const char* path, Described& described) {
    const toml::parse_result parsed = toml::parse_file(path);
    if (!parsed) return std::string(path) + ": " + std::string(parsed.error().description());
    const toml::node_view<const toml::node> root(parsed.table());
    described.name = root["name"].value_or(std::string("described machine"));
    described.cpus = numbers<int>(root["cpus"]);
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
    const std::string binding = root["binding"].value_or(std::string("spread"));
    described.binding = binding == "close"     ? Binding::close
                        : binding == "primary" ? Binding::primary
                                               : Binding::spread;
    if (const toml::array* places = root["places"].as_array())
        for (const toml::node& place : *places)
            described.places.push_back(numbers<int>(toml::node_view<const toml::node>(place)));
    if (const toml::array* distributions = root["distributions"].as_array())
        for (const toml::node& item : *distributions) {
            const toml::node_view<const toml::node> one(item);
            described.distributions.push_back(
                {one["area"].value_or(std::string()), one["cycle"].value_or(std::uint64_t{0})});
        }
    described.seed = root["seed"].value_or(std::uint64_t{1});
    described.turn = root["turn"].value_or(std::int64_t{0});
    described.fact = root["fact"].value_or(std::string());
    described.lines = root["lines"].value_or(false);
    const auto nodes = static_cast<std::size_t>(described.nodes());
    if (nodes == 0 || nodes > 64 || described.memory.size() != nodes || described.places.empty() ||
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
        node.cpus = described.cpus[static_cast<std::size_t>(index)];
        node.memory_bytes = described.memory[static_cast<std::size_t>(index)];
        machine.nodes.push_back(node);
        const auto first = static_cast<int>(machine.cpu_nodes.size());
        machine.cpu_nodes.insert(machine.cpu_nodes.end(), static_cast<std::size_t>(node.cpus), index);
        const int together = described.shared.bytes ? static_cast<int>(described.shared.cpus) : 1;
        for (int cpu = 0; cpu < node.cpus; ++cpu)
            machine.cpu_caches.push_back(first + cpu / together * together);
    }
    machine.distances = described.distances;
    machine.last_level_cache_bytes = described.shared.bytes ? described.shared.bytes : described.own.bytes;
    const int cpus = machine.nodes.front().cpus;
    const int sharing = static_cast<int>(described.shared.bytes ? described.shared.cpus : 1);
    machine.last_level_caches_per_node = std::max(1, cpus / std::max(1, sharing));
    return machine;
}

} // namespace homing::simulator
