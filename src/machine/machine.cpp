#include "machine/machine.hpp"

#include "base/options.hpp"

#include "base/index_list.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

namespace homing {

NodeSet Machine::targets() const noexcept {
    NodeSet set;
    for (const Node& node : nodes) {
        if (node.target()) set.add(node.index);
    }
    return set;
}

int Machine::cpu_to_node(int cpu) const noexcept {
    return cpu >= 0 && static_cast<std::size_t>(cpu) < cpu_nodes.size()
               ? cpu_nodes[static_cast<std::size_t>(cpu)]
               : -1;
}

int quick_node_count(const char* has_cpu_file) noexcept {
    char text[1024];
    int count = 0;
    if (raw::read_file(has_cpu_file, text, sizeof text) > 0) {
        for_each_index(text, [&count](int) { ++count; });
    }
    return std::max(count, 1);
}

int quick_node_count() noexcept { return quick_node_count("/sys/devices/system/node/has_cpu"); }

Machine assumed_machine(int count) {
    count = std::clamp(count, 1, max_nodes);
    const Machine real = discover_machine(linux_kernel());
    Kernel& kernel = assumed_kernel(count);
    Machine machine;
    machine.source = "HOMING_ASSUME_NODES=" + std::to_string(count);
    std::uint64_t memory =
        std::accumulate(real.nodes.begin(), real.nodes.end(), std::uint64_t{0},
                        [](std::uint64_t sum, const Node& node) { return sum + node.memory_bytes; });
    if (memory == 0) { // no node tells it
        memory = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 1L)) * page_bytes();
    }
    std::vector<int> own_cpus(static_cast<std::size_t>(count), 0);
    int online = 0;
    for (int cpu = 0, last = -1; cpu < 8192 && cpu - last < 1024; ++cpu) {
        const int node = kernel.node_of_cpu(cpu);
        machine.cpu_nodes.push_back(node);
        if (node < 0) continue;
        last = cpu;
        ++online;
        ++own_cpus[static_cast<std::size_t>(node)];
    }
    while (!machine.cpu_nodes.empty() && machine.cpu_nodes.back() < 0)
        machine.cpu_nodes.pop_back();
    for (int index = 0; index < count; ++index) {
        Node node;
        node.index = index;
        // Fewer CPUs than nodes: all nodes are targets all the same, or there would be less to decide than on
        // the machine that is played.
        node.cpus = std::max(own_cpus[static_cast<std::size_t>(index)], 1);
        node.memory_bytes = std::max<std::uint64_t>(memory / static_cast<unsigned>(count), 1);
        machine.nodes.push_back(node);
        std::vector<double> row(static_cast<std::size_t>(count), 20.0);
        row[static_cast<std::size_t>(index)] = 10.0;
        machine.distances.push_back(row);
    }
    machine.last_level_cache_bytes = real.last_level_cache_bytes;
    machine.last_level_caches_per_node = 1;
    machine.cpu_caches = machine.cpu_nodes; // a cache a node
    machine.remarks.push_back(
        std::to_string(count) + " nodes are assumed: " + std::to_string(online) +
        " CPUs play them, pages only pretend to move, distances of 10 and 20 are assumed");
    return machine;
}

namespace {

struct Played {
    Kernel& kernel;
    Machine machine;
};
constinit std::atomic<const Played*> played{nullptr};

int assumed_nodes() noexcept { return static_cast<int>(option_number(Option::assume_nodes)); }

} // namespace

void play_machine(Kernel& kernel, Machine machine) {
    played.store(new Played{kernel, std::move(machine)}, std::memory_order_release); // never destroyed
}

Kernel& process_kernel() noexcept {
    if (const Played* other = played.load(std::memory_order_acquire)) return other->kernel;
    const int assumed = assumed_nodes();
    return assumed > 1 ? assumed_kernel(assumed) : linux_kernel();
}

Machine process_machine(Kernel& kernel) {
    if (const Played* other = played.load(std::memory_order_acquire)) return other->machine;
    const int assumed = assumed_nodes();
    return assumed > 1 ? assumed_machine(assumed) : discover_machine(kernel);
}

} // namespace homing
