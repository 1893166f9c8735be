// Machines as hwloc sees them. The library is opened when it is asked for the first time, so that homing runs
// without it; its types and prototypes come from its header.
#include "machine/machine.hpp"

#include "base/arena.hpp"
#include "base/inside.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <hwloc.h>
#include <hwloc/distances.h>
#include <optional>
#include <sched.h>
#include <unistd.h>

namespace homing {
namespace {

#define HOMING_HWLOC_FUNCTIONS(FUNCTION)                                                                     \
    FUNCTION(get_api_version)                                                                                \
    FUNCTION(topology_init)                                                                                  \
    FUNCTION(topology_destroy)                                                                               \
    FUNCTION(topology_load)                                                                                  \
    FUNCTION(topology_set_flags)                                                                             \
    FUNCTION(topology_set_io_types_filter)                                                                   \
    FUNCTION(topology_set_type_filter)                                                                       \
    FUNCTION(topology_set_synthetic)                                                                         \
    FUNCTION(topology_set_xml)                                                                               \
    FUNCTION(topology_is_thissystem)                                                                         \
    FUNCTION(topology_get_allowed_cpuset)                                                                    \
    FUNCTION(topology_get_allowed_nodeset)                                                                   \
    FUNCTION(get_type_depth)                                                                                 \
    FUNCTION(get_nbobjs_by_depth)                                                                            \
    FUNCTION(get_obj_by_depth)                                                                               \
    FUNCTION(bitmap_alloc)                                                                                   \
    FUNCTION(bitmap_free)                                                                                    \
    FUNCTION(bitmap_isset)                                                                                   \
    FUNCTION(distances_get)                                                                                  \
    FUNCTION(distances_release)

struct Hwloc {
#define HOMING_HWLOC_POINTER(name) decltype(&::hwloc_##name) name = nullptr;
    HOMING_HWLOC_FUNCTIONS(HOMING_HWLOC_POINTER)
#undef HOMING_HWLOC_POINTER
    std::string problem; ///< why it cannot be used; empty: it can
    /// Its malloc() and free() are not the ones that homing stands before: somebody else opened it earlier,
    /// with RTLD_DEEPBIND (oneTBB does). What the C library allocates for it, as in strdup(), must not be
    /// homing's then.
    bool frees_past_us = false;
};

const Hwloc& hwloc() {
    static const Hwloc& opened = *new Hwloc([] { // never destroyed: exit handlers may ask
        Hwloc library;
        void* handle = ::dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            library.problem = "libhwloc.so.15 cannot be opened (package libhwloc15)";
            return library;
        }
#define HOMING_HWLOC_LOAD(name)                                                                              \
    library.name = reinterpret_cast<decltype(&::hwloc_##name)>(::dlsym(handle, "hwloc_" #name));             \
    if (!library.name) library.problem = "libhwloc.so.15 has no hwloc_" #name;
        HOMING_HWLOC_FUNCTIONS(HOMING_HWLOC_LOAD)
#undef HOMING_HWLOC_LOAD
        if (library.problem.empty() && library.get_api_version() >> 16 != HWLOC_API_VERSION >> 16) {
            library.problem =
                "libhwloc.so.15 is of another major version than the one that homing was built for";
        }
        if (library.problem.empty()) {
            hwloc_bitmap_t probe = library.bitmap_alloc();
            library.frees_past_us = !own_arena.owns(probe);
            library.bitmap_free(probe);
        }
        return library;
    }());
    return opened;
}

/// While it lives, hwloc finds no plugins: they would bring libxml2, OpenCL and X11 into the program, for
/// devices that nobody asks for. The environment of the program stays as it is; only the table that getenv
/// reads is another for the moment.
class WithoutPlugins {
  public:
    WithoutPlugins() : before_(environ) {
        for (char** variable = before_; variable && *variable; ++variable)
            if (std::strncmp(*variable, "HWLOC_PLUGINS_PATH=", 19) != 0) table_.push_back(*variable);
        table_.push_back(const_cast<char*>("HWLOC_PLUGINS_PATH=/nonexistent"));
        table_.push_back(nullptr);
        environ = table_.data();
    }
    ~WithoutPlugins() {
        if (environ == table_.data()) environ = before_;
    }
    WithoutPlugins(const WithoutPlugins&) = delete;
    WithoutPlugins& operator=(const WithoutPlugins&) = delete;

  private:
    char** before_;
    std::vector<char*> table_;
};

enum class Origin { this_machine, synthetic, xml_file };

/// A loaded topology without devices. Of one thread, and for a scope.
class Topology {
  public:
    Topology(Origin origin, const std::string& description) : borrowing_(hwloc().frees_past_us) {
        problem_ = hwloc().problem;
        if (!problem_.empty()) return;
        const Hwloc& lib = hwloc();
        if (WithoutPlugins none; lib.topology_init(&topology_) != 0) {
            topology_ = nullptr;
            problem_ = "hwloc_topology_init failed";
            return;
        }
        // Packages and groups stay: a node is where its parent is, and would be spread over the machine
        // without them.
        lib.topology_set_io_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_NONE);
        for (const hwloc_obj_type_t cache : caches) {
            lib.topology_set_type_filter(topology_, cache, HWLOC_TYPE_FILTER_KEEP_ALL);
        }
        // Everything is shown; what this process may use is asked separately. hwloc must not bind the calling
        // thread elsewhere to look around (an older one does not know the flag, and does so only where Linux
        // tells nothing).
        const unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;
        if (lib.topology_set_flags(topology_, flags | HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING) != 0) {
            lib.topology_set_flags(topology_, flags);
        }
        int failed = 0;
        if (origin == Origin::synthetic) failed = lib.topology_set_synthetic(topology_, description.c_str());
        if (origin == Origin::xml_file) failed = lib.topology_set_xml(topology_, description.c_str());
        if (failed || lib.topology_load(topology_) != 0) {
            problem_ = origin == Origin::this_machine
                           ? std::string("hwloc cannot read this machine: ") + std::strerror(errno)
                           : "hwloc does not understand the description \"" + description + "\"";
        }
    }
    ~Topology() {
        if (topology_) hwloc().topology_destroy(topology_);
    }
    Topology(const Topology&) = delete;
    Topology& operator=(const Topology&) = delete;

    const std::string& problem() const noexcept { return problem_; }
    bool is_this_machine() const { return hwloc().topology_is_thissystem(topology_) != 0; }
    hwloc_const_cpuset_t allowed_cpus() const { return hwloc().topology_get_allowed_cpuset(topology_); }
    hwloc_const_nodeset_t allowed_nodes() const { return hwloc().topology_get_allowed_nodeset(topology_); }

    /// All objects of a type, ascending by operating system index where they have one.
    std::vector<hwloc_obj_t> objects(hwloc_obj_type_t type) const {
        std::vector<hwloc_obj_t> found;
        const int depth = hwloc().get_type_depth(topology_, type);
        if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || depth == HWLOC_TYPE_DEPTH_MULTIPLE) return found;
        const unsigned count = hwloc().get_nbobjs_by_depth(topology_, depth);
        for (unsigned i = 0; i < count; ++i)
            found.push_back(hwloc().get_obj_by_depth(topology_, depth, i));
        std::stable_sort(found.begin(), found.end(),
                         [](hwloc_obj_t a, hwloc_obj_t b) { return a->os_index < b->os_index; });
        return found;
    }

    /// The caches of the last level, all alike on the machines we know.
    std::vector<hwloc_obj_t> last_level_caches() const {
        for (const hwloc_obj_type_t cache : caches) {
            std::vector<hwloc_obj_t> found = objects(cache);
            if (!found.empty()) return found;
        }
        return {};
    }

    /// The operating system's distances between `nodes`, or nothing.
    std::vector<std::vector<double>> distances(const std::vector<Node>& nodes) const {
        hwloc_distances_s* matrix = nullptr;
        unsigned count = 1;
        const unsigned long kind = HWLOC_DISTANCES_KIND_FROM_OS | HWLOC_DISTANCES_KIND_MEANS_LATENCY;
        if (hwloc().distances_get(topology_, &count, &matrix, kind, 0) != 0 || count == 0 || !matrix)
            return {};
        std::vector<std::vector<double>> table(nodes.size(), std::vector<double>(nodes.size(), 0));
        std::vector<int> place; // of each object of the matrix among `nodes`
        std::size_t known = 0;
        for (unsigned i = 0; i < matrix->nbobjs; ++i) {
            const hwloc_obj_t object = matrix->objs[i];
            const auto node = std::find_if(nodes.begin(), nodes.end(), [object](const Node& candidate) {
                return object && object->type == HWLOC_OBJ_NUMANODE &&
                       candidate.index == static_cast<int>(object->os_index);
            });
            place.push_back(node == nodes.end() ? -1 : static_cast<int>(node - nodes.begin()));
            known += node != nodes.end();
        }
        for (unsigned i = 0; i < matrix->nbobjs; ++i) {
            for (unsigned k = 0; k < matrix->nbobjs; ++k) {
                if (place[i] < 0 || place[k] < 0) continue;
                table[static_cast<std::size_t>(place[i])][static_cast<std::size_t>(place[k])] =
                    static_cast<double>(matrix->values[i * matrix->nbobjs + k]);
            }
        }
        hwloc().distances_release(topology_, matrix);
        if (known != nodes.size()) table.clear();
        return table;
    }

  private:
    // Last level first.
    static constexpr hwloc_obj_type_t caches[] = {HWLOC_OBJ_L5CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE,
                                                  HWLOC_OBJ_L2CACHE};
    Borrowing borrowing_; // until the topology has been destroyed
    hwloc_topology_t topology_ = nullptr;
    std::string problem_;
};

/// The node of every CPU. hwloc also gives a node without CPUs (CXL memory, memory of a GPU) the CPUs that
/// are near; what is wanted is the one node that a CPU belongs to: what the kernel says, else the first that
/// has it.
std::vector<int> nodes_of_cpus(const Topology& topology, Kernel* kernel) {
    std::vector<int> nodes;
    for (const hwloc_obj_t cpu : topology.objects(HWLOC_OBJ_PU)) {
        const auto index = static_cast<int>(cpu->os_index);
        if (cpu->os_index >= nodes.size()) nodes.resize(cpu->os_index + 1, -1);
        int& node = nodes[cpu->os_index];
        if (kernel) node = kernel->node_of_cpu(index);
        if (kernel && node >= 0) continue;
        for (const hwloc_obj_t candidate : topology.objects(HWLOC_OBJ_NUMANODE)) {
            if (!candidate->cpuset || !hwloc().bitmap_isset(candidate->cpuset, cpu->os_index)) continue;
            node = static_cast<int>(candidate->os_index);
            break;
        }
    }
    return nodes;
}

/// The last-level cache of every CPU; where none is known, all CPUs share one.
std::vector<int> caches_of_cpus(const Topology& topology, std::size_t cpus) {
    const std::vector<hwloc_obj_t> caches = topology.last_level_caches();
    std::vector<int> found(cpus, caches.empty() ? 0 : -1);
    for (const hwloc_obj_t cache : caches) {
        int first = -1;
        for (std::size_t cpu = 0; cpu < cpus; ++cpu) {
            if (!cache->cpuset || !hwloc().bitmap_isset(cache->cpuset, static_cast<unsigned>(cpu))) continue;
            if (first < 0) first = static_cast<int>(cpu);
            found[cpu] = first;
        }
    }
    return found;
}

/// The size of the part of a last-level cache that one node can have, and how many of them.
void describe_caches(const Topology& topology, Machine& machine) {
    const std::vector<hwloc_obj_t> caches = topology.last_level_caches();
    if (caches.empty() || machine.nodes.empty()) return;
    const auto nodes_with_cpus = static_cast<std::size_t>(
        std::count_if(machine.nodes.begin(), machine.nodes.end(), [&machine](const Node& node) {
            return std::find(machine.cpu_nodes.begin(), machine.cpu_nodes.end(), node.index) !=
                   machine.cpu_nodes.end();
        }));
    const std::uint64_t bytes = caches.front()->attr ? caches.front()->attr->cache.size : 0;
    if (nodes_with_cpus == 0) return;
    if (caches.size() >= nodes_with_cpus) {
        machine.last_level_cache_bytes = bytes;
        machine.last_level_caches_per_node = static_cast<int>(caches.size() / nodes_with_cpus);
    } else { // one cache for several nodes (sub-NUMA clustering)
        machine.last_level_cache_bytes = bytes * caches.size() / nodes_with_cpus;
        machine.last_level_caches_per_node = 1;
    }
}

void remark_on_nodes(Machine& machine, const std::vector<int>& cpus_of_all) {
    for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
        const Node& node = machine.nodes[i];
        if (node.target()) continue;
        const char* reason = "has no memory";
        if (node.memory_bytes > 0) reason = "is outside this process's memory nodes (cpuset)";
        if (node.memory_bytes > 0 && node.allowed) {
            reason = cpus_of_all[i] > 0 ? "has no CPUs that this process may run on" : "has no CPUs";
        }
        machine.remarks.push_back("node " + std::to_string(node.index) + " " + reason + ": never a target");
    }
}

Machine machine_of(const Topology& topology, Kernel* kernel, const std::optional<cpu_set_t>& affinity) {
    Machine machine;
    if (!topology.problem().empty()) {
        machine.remarks.push_back(topology.problem());
        return machine;
    }
    NodeSet kernel_allows;
    const bool asked = kernel && kernel->allowed_nodes(kernel_allows) == 0;
    for (const hwloc_obj_t object : topology.objects(HWLOC_OBJ_NUMANODE)) {
        if (object->os_index >= static_cast<unsigned>(max_nodes)) {
            machine.remarks.push_back("node " + std::to_string(object->os_index) + " is beyond the " +
                                      std::to_string(max_nodes) + " nodes that homing knows: ignored");
            continue;
        }
        Node node;
        node.index = static_cast<int>(object->os_index);
        node.memory_bytes = object->attr ? object->attr->numanode.local_memory : 0;
        node.allowed = asked ? kernel_allows.has(node.index)
                             : hwloc().bitmap_isset(topology.allowed_nodes(), object->os_index) != 0;
        machine.nodes.push_back(node);
    }
    machine.cpu_nodes = nodes_of_cpus(topology, kernel);
    machine.cpu_caches = caches_of_cpus(topology, machine.cpu_nodes.size());
    std::vector<int> cpus_of_all(machine.nodes.size(), 0);
    for (std::size_t cpu = 0; cpu < machine.cpu_nodes.size(); ++cpu) {
        for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
            if (machine.nodes[i].index != machine.cpu_nodes[cpu]) continue;
            ++cpus_of_all[i];
            const bool allowed =
                hwloc().bitmap_isset(topology.allowed_cpus(), static_cast<unsigned>(cpu)) != 0;
            const bool bound = !affinity || (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &*affinity));
            if (allowed && bound) ++machine.nodes[i].cpus;
        }
    }
    machine.distances = topology.distances(machine.nodes);
    describe_caches(topology, machine);
    remark_on_nodes(machine, cpus_of_all);
    return machine;
}

// Where the process may run, as it was told from outside (taskset, numactl, an MPI launcher). Once an OpenMP
// runtime has bound its threads, the calling thread's own affinity is a single place and says nothing about
// the process.
struct EarlyAffinity {
    bool known = false;
    cpu_set_t set{};
} early_affinity;

std::optional<cpu_set_t> process_affinity() {
    if (early_affinity.known) return early_affinity.set;
    for (const char* variable : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
        if (std::getenv(variable)) return std::nullopt;
    }
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) != 0)
        return std::nullopt; // more CPUs than a cpu_set_t: no limit known
    return set;
}

} // namespace

void remember_affinity() noexcept {
    const long bytes = raw::call(SYS_sched_getaffinity, 0, sizeof early_affinity.set, &early_affinity.set);
    early_affinity.known = bytes > 0;
}

Machine discover_machine(Kernel& kernel) {
    const Topology topology(Origin::this_machine, {});
    if (topology.problem().empty() && !topology.is_this_machine()) {
        // The user's HWLOC_XMLFILE or HWLOC_SYNTHETIC: pages cannot be moved on a machine that is not this
        // one.
        Machine machine = machine_of(topology, nullptr, std::nullopt);
        machine.source = "hwloc, a described machine";
        machine.remarks.push_back(
            "hwloc was told to describe another machine (HWLOC_XMLFILE or HWLOC_SYNTHETIC)");
        return machine;
    }
    Machine machine = machine_of(topology, &kernel, process_affinity());
    machine.source = "hwloc";
    return machine;
}

Machine described_machine(const std::string& description) {
    const bool xml = description.ends_with(".xml");
    const Topology topology(xml ? Origin::xml_file : Origin::synthetic, description);
    Machine machine = machine_of(topology, nullptr, std::nullopt);
    machine.source = description;
    return machine;
}

} // namespace homing
