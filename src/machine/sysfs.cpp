// This machine as Linux shows it in /sys/devices/system. It is read here and not by a topology library: sysfs
// of virtual machines and containers has any shape (folders without files, nodes that are offline, lists that
// end early), a library that takes this for its own mistake may abort, and so would the user's program.
// Nothing here can: what cannot be read is not known, and said in a remark.
#include "machine/machine.hpp"

#include "base/index_list.hpp"
#include "base/pages.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unistd.h>

namespace homing {
namespace {

/// CPUs that a distribution's kernel is built for.
constexpr int most_cpus = 8192;
/// Levels and kinds of a CPU's caches: index0, index1, ...
constexpr int most_caches = 16;

class Files {
  public:
    explicit Files(std::string folder) : folder_(std::move(folder)) {}

    /// The file's text without the newline at its end; empty where it cannot be read.
    const char* text(const std::string& name) {
        const std::string path = folder_ + "/" + name;
        if (raw::read_file(path.c_str(), text_.data(), text_.size()) < 0) text_[0] = '\0';
        if (char* end = std::strchr(text_.data(), '\n'); end && end[1] == '\0') *end = '\0';
        return text_.data();
    }

    /// A list of CPUs or nodes ("0-3,8"), ascending; what is no list gives what could be read of it.
    std::vector<int> list(const std::string& name, int most) {
        std::vector<int> found;
        for_each_index(text(name), [&](int index) {
            if (index < most) found.push_back(index);
        });
        std::ranges::sort(found);
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    /// The whole number behind `key` (or at the beginning); 0 where there is none.
    std::uint64_t number(const std::string& name, const char* key = "") {
        const char* at = std::strstr(text(name), key);
        if (!at) return 0;
        at += std::strlen(key);
        while (*at == ' ' || *at == '\t')
            ++at;
        std::uint64_t value = 0;
        std::from_chars(at, at + std::strlen(at), value);
        return value;
    }

  private:
    std::string folder_;
    std::vector<char> text_ = std::vector<char>(1 << 16); // the longest list of 8,192 CPUs
};

std::string node_file(int node, const char* name) { return "node/node" + std::to_string(node) + "/" + name; }

/// The nodes that are online; a kernel without NUMA has one, and shows none.
std::vector<int> read_nodes(Files& files, Machine& machine) {
    constexpr int most_indexes = 1 << 16;
    std::vector<int> online = files.list("node/online", most_indexes);
    if (online.empty()) {
        machine.remarks.emplace_back("no NUMA nodes in /sys/devices/system/node: taken for one node");
        online = {0};
    }
    std::vector<int> known;
    for (const int node : online) {
        if (node < max_nodes) {
            known.push_back(node);
            continue;
        }
        machine.remarks.push_back("node " + std::to_string(node) + " is beyond the " +
                                  std::to_string(max_nodes) + " nodes that homing knows: ignored");
    }
    for (const int index : known) {
        Node node;
        node.index = index;
        node.memory_bytes = files.number(node_file(index, "meminfo"), "MemTotal:") * 1024;
        machine.nodes.push_back(node);
    }
    return online;
}

/// The node of every CPU.
void read_cpu_nodes(Files& files, Machine& machine) {
    const auto put = [&machine](int cpu, int node) {
        if (static_cast<std::size_t>(cpu) >= machine.cpu_nodes.size())
            machine.cpu_nodes.resize(static_cast<std::size_t>(cpu) + 1, -1);
        int& known = machine.cpu_nodes[static_cast<std::size_t>(cpu)];
        if (known < 0) known = node;
    };
    for (const Node& node : machine.nodes)
        for (const int cpu : files.list(node_file(node.index, "cpulist"), most_cpus))
            put(cpu, node.index);
    if (machine.nodes.size() == 1 && machine.cpu_nodes.empty())
        for (const int cpu : files.list("cpu/online", most_cpus))
            put(cpu, machine.nodes.front().index);
}

/// The kernel's distances: a row a node, in the order of the nodes that are online. A table that is not whole
/// is none.
void read_distances(Files& files, const std::vector<int>& online, Machine& machine) {
    for (const Node& node : machine.nodes) {
        std::vector<double> row;
        std::string_view text = files.text(node_file(node.index, "distance"));
        for (std::size_t at = 0; at < text.size();) {
            int value = 0;
            const auto read = std::from_chars(text.data() + at, text.data() + text.size(), value);
            if (read.ec != std::errc{}) break;
            row.push_back(value);
            at = static_cast<std::size_t>(read.ptr - text.data());
            at = std::min(text.find_first_not_of(' ', at), text.size());
        }
        if (row.size() != online.size()) {
            machine.distances.clear();
            return;
        }
        std::vector<double> kept;
        for (std::size_t i = 0; i < online.size(); ++i)
            if (online[i] < max_nodes) kept.push_back(row[i]);
        machine.distances.push_back(kept);
    }
}

struct LastLevel {
    int level = 0;
    std::uint64_t bytes = 0;
    std::vector<int> cpus;
};

/// The last cache of data that a CPU has; level 0: none is known.
LastLevel last_level_of(Files& files, int cpu) {
    LastLevel last;
    std::string found;
    for (int index = 0; index < most_caches; ++index) {
        const std::string folder =
            "cpu/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index) + "/";
        const auto level = static_cast<int>(std::min<std::uint64_t>(files.number(folder + "level"), 9));
        if (level == 0) break;
        if (level <= last.level || std::strncmp(files.text(folder + "type"), "Instruction", 11) == 0)
            continue;
        last.level = level;
        found = folder;
    }
    if (last.level == 0) return last;
    last.bytes = files.number(found + "size");
    const char* unit = files.text(found + "size");
    last.bytes <<= std::strchr(unit, 'M') ? 20 : std::strchr(unit, 'K') ? 10 : 0;
    last.cpus = files.list(found + "shared_cpu_list", most_cpus);
    return last;
}

/// The last-level caches: which CPUs share one, and the part of one that a node can have. Where none is
/// known, all CPUs share one.
void read_caches(Files& files, Machine& machine) {
    const std::size_t slots = machine.cpu_nodes.size();
    machine.cpu_caches.assign(slots, -1);
    std::vector<LastLevel> caches;
    int highest = 0;
    for (std::size_t cpu = 0; cpu < slots; ++cpu) {
        if (machine.cpu_nodes[cpu] < 0 || machine.cpu_caches[cpu] >= 0) continue;
        const LastLevel last = last_level_of(files, static_cast<int>(cpu));
        if (last.level == 0) continue;
        highest = std::max(highest, last.level);
        machine.cpu_caches[cpu] = static_cast<int>(cpu);
        for (const int other : last.cpus)
            if (static_cast<std::size_t>(other) < slots &&
                machine.cpu_nodes[static_cast<std::size_t>(other)] >= 0)
                machine.cpu_caches[static_cast<std::size_t>(other)] = static_cast<int>(cpu);
        caches.push_back(last);
    }
    // Cores without a cache of this level (an efficiency core beside others) have none.
    for (std::size_t cpu = 0, next = 0; cpu < slots; ++cpu) {
        if (machine.cpu_caches[cpu] != static_cast<int>(cpu)) continue;
        if (caches[next++].level == highest) continue;
        std::ranges::replace(machine.cpu_caches, static_cast<int>(cpu), -1);
    }
    std::erase_if(caches, [highest](const LastLevel& one) { return one.level != highest; });
    if (caches.empty()) {
        machine.cpu_caches.assign(slots, 0);
        return;
    }
    const auto nodes_with_cpus = static_cast<std::size_t>(
        std::count_if(machine.nodes.begin(), machine.nodes.end(), [&machine](const Node& node) {
            return std::ranges::find(machine.cpu_nodes, node.index) != machine.cpu_nodes.end();
        }));
    if (nodes_with_cpus == 0) return;
    machine.last_level_cache_bytes = caches.front().bytes;
    machine.last_level_caches_per_node = static_cast<int>(caches.size() / nodes_with_cpus);
    if (caches.size() < nodes_with_cpus) { // one cache for several nodes (sub-NUMA clustering)
        machine.last_level_cache_bytes = caches.front().bytes * caches.size() / nodes_with_cpus;
        machine.last_level_caches_per_node = 1;
    }
}

/// Why a node is no target. `cpus`: all that it has.
std::string reason(const Node& node, bool cpus) {
    if (node.memory_bytes == 0) return "has no memory";
    if (!node.allowed) return "is outside this process's memory nodes (cpuset)";
    return cpus ? "has no CPUs that this process may run on" : "has no CPUs";
}

/// The CPUs that the cpuset of our control group has; empty where nothing limits them, or nothing is known.
std::vector<int> cpus_of_control_group() {
    Files root("");
    const std::string groups = root.text("proc/self/cgroup");
    const auto path_behind = [&groups](const char* key) {
        const std::size_t at = groups.find(key);
        if (at == std::string::npos) return std::string("?");
        const std::size_t begin = groups.find('/', at);
        return begin == std::string::npos ? std::string()
                                          : groups.substr(begin, groups.find('\n', begin) - begin);
    };
    const std::array<std::array<std::string, 3>, 2> kinds{
        {{"0::", "sys/fs/cgroup", "/cpuset.cpus.effective"},
         {":cpuset:", "sys/fs/cgroup/cpuset", "/cpuset.effective_cpus"}}};
    for (const auto& [key, mount, file] : kinds) {
        std::string group = path_behind(key.c_str());
        if (group == "?") continue;
        for (;;) {
            std::string path = mount;
            path += group;
            path += file;
            const std::vector<int> cpus = root.list(path, most_cpus);
            if (!cpus.empty()) return cpus;
            if (group.empty()) break;
            group.resize(std::min(group.rfind('/'), group.size() - 1));
        }
    }
    return {};
}

constexpr std::size_t mask_bits = 8 * sizeof(unsigned long);
using CpuMask = std::array<unsigned long, most_cpus / mask_bits>;

/// Of the calling thread.
void read_affinity(CpuMask& mask) noexcept { raw::call(SYS_sched_getaffinity, 0, sizeof mask, mask.data()); }

constinit CpuMask affinity_at_start{};

} // namespace

void keep_process_cpus() noexcept { read_affinity(affinity_at_start); }

std::vector<int> process_cpus() {
    for (const char* variable : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
        if (std::getenv(variable)) return cpus_of_control_group();
    }
    CpuMask mask{};
    read_affinity(mask);
    std::vector<int> cpus;
    for (std::size_t cpu = 0; cpu < std::size_t{most_cpus}; ++cpu) {
        const unsigned long word = mask[cpu / mask_bits] | affinity_at_start[cpu / mask_bits];
        if (word >> (cpu % mask_bits) & 1) cpus.push_back(static_cast<int>(cpu));
    }
    return cpus;
}

Machine read_machine(const std::string& folder, NodeSet allowed_nodes, const std::vector<int>& allowed_cpus) {
    Machine machine;
    machine.source = "sysfs";
    Files files(folder);
    const std::vector<int> online = read_nodes(files, machine);
    read_cpu_nodes(files, machine);
    read_distances(files, online, machine);
    read_caches(files, machine);
    std::vector<int> cpus_of_all(max_nodes, 0);
    for (std::size_t cpu = 0; cpu < machine.cpu_nodes.size(); ++cpu) {
        const int index = machine.cpu_nodes[cpu];
        if (index < 0) continue;
        ++cpus_of_all[static_cast<std::size_t>(index)];
        if (!allowed_cpus.empty() && !std::ranges::binary_search(allowed_cpus, static_cast<int>(cpu)))
            continue;
        for (Node& node : machine.nodes)
            if (node.index == index) ++node.cpus;
    }
    for (Node& node : machine.nodes) {
        node.allowed = allowed_nodes.has(node.index);
        if (node.target()) continue;
        machine.remarks.push_back("node " + std::to_string(node.index) + " " +
                                  reason(node, cpus_of_all[static_cast<std::size_t>(node.index)] > 0) +
                                  ": never a target");
    }
    return machine;
}

Machine discover_machine(Kernel& kernel) {
    NodeSet allowed;
    const int error = kernel.allowed_nodes(allowed);
    if (error && error != EOVERFLOW) allowed.bits = ~std::uint64_t{0};
    Machine machine = read_machine("/sys/devices/system", allowed, process_cpus());
    // Without NUMA no node tells its memory.
    if (machine.nodes.size() == 1 && machine.nodes.front().memory_bytes == 0) {
        machine.nodes.front().memory_bytes =
            static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 1L)) * page_bytes();
        std::erase_if(machine.remarks, [](const std::string& remark) {
            return remark.find("has no memory") != std::string::npos;
        });
    }
    return machine;
}

} // namespace homing
