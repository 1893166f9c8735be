#include "tasks/domains.hpp"

#include "base/inside.hpp"

#include <algorithm>
#include <atomic>
#include <sched.h>

namespace homing {
namespace {

constinit std::atomic<Locality*> the_locality{nullptr};

/// Numbers 0, 1, ... for whatever values (negative: none) there are, ascending.
std::vector<int> numbered(const std::vector<int>& values) {
    std::vector<int> distinct;
    for (const int value : values)
        if (value >= 0) distinct.push_back(value);
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    std::vector<int> numbers;
    for (const int value : values)
        numbers.push_back(value < 0
                              ? -1
                              : static_cast<int>(std::lower_bound(distinct.begin(), distinct.end(), value) -
                                                 distinct.begin()));
    return numbers;
}

} // namespace

int heaviest_domain(std::span<const int> domains, std::span<const std::size_t> weights) noexcept {
    int best = -1;
    std::size_t most = 0;
    for (const int domain : domains) {
        if (domain < 0) continue;
        std::size_t sum = 0;
        for (std::size_t k = 0; k < domains.size(); ++k)
            sum += domains[k] == domain ? weights[k] : 0;
        if (sum <= most) continue;
        most = sum;
        best = domain;
    }
    return best;
}

DomainTable::DomainTable(std::vector<int> domain_of_cpu) : cpus_(std::move(domain_of_cpu)) {
    for (const int domain : cpus_)
        count_ = std::max(count_, domain + 1);
}

int DomainTable::here() const noexcept { return of_cpu(::sched_getcpu()); }

Locality::Locality(Kernel& kernel, const Machine& machine)
    : by_node_(numbered(machine.cpu_nodes)), by_cache_(numbered(machine.cpu_caches)), homes_(kernel) {
    nodes_.fill(-1);
    for (std::size_t cpu = 0; cpu < machine.cpu_nodes.size(); ++cpu)
        if (const int node = machine.cpu_nodes[cpu]; node >= 0 && node < max_nodes)
            nodes_[static_cast<std::size_t>(node)] = by_node_.of_cpu(static_cast<int>(cpu));
    // Assumed nodes may outnumber the CPUs, and real ones may have none: their blocks belong to the nearest
    // domain.
    const std::array<int, max_nodes> with_cpus = nodes_;
    for (std::size_t from = 0; from < machine.nodes.size(); ++from) {
        const int node = machine.nodes[from].index;
        if (node < 0 || node >= max_nodes || with_cpus[static_cast<std::size_t>(node)] >= 0) continue;
        double nearest = 0;
        int domain = -1;
        for (std::size_t to = 0; to < machine.nodes.size(); ++to) {
            const int other = machine.nodes[to].index;
            if (other < 0 || other >= max_nodes || with_cpus[static_cast<std::size_t>(other)] < 0) continue;
            const double distance = from < machine.distances.size() && to < machine.distances[from].size()
                                        ? machine.distances[from][to]
                                        : 20;
            if (domain >= 0 && distance >= nearest) continue;
            nearest = distance;
            domain = with_cpus[static_cast<std::size_t>(other)];
        }
        nodes_[static_cast<std::size_t>(node)] = domain;
    }
}

int Locality::of_memory(Address start, std::size_t bytes) noexcept {
    if (start == 0) return -1;
    const std::size_t page = page_bytes();
    const Address first = start / page * page;
    const Address last = (start + std::max<std::size_t>(bytes, 1) - 1) / page * page;
    if (last < first) return -1; // wraps: no such memory
    const std::size_t pages = (last - first) / page + 1;
    const std::size_t looked_at = std::min(pages, Homes::most_pages);
    void* sample[Homes::most_pages];
    int nodes[Homes::most_pages];
    // The middles of equal parts: a block's first and last pages are its neighbours', too.
    for (std::size_t i = 0; i < looked_at; ++i)
        sample[i] = reinterpret_cast<void*>(first + (2 * i + 1) * pages / (2 * looked_at) * page);
    homes_.look_up({sample, looked_at}, {nodes, looked_at});
    int domains[Homes::most_pages];
    std::size_t votes[Homes::most_pages];
    std::fill_n(votes, looked_at, 1);
    for (std::size_t i = 0; i < looked_at; ++i)
        domains[i] = of_node(nodes[i]);
    return heaviest_domain({domains, looked_at}, {votes, looked_at});
}

Locality& locality() {
    static Locality& found = *[] { // never destroyed: tasks may run while the process ends
        const Inside inside;
        Kernel& kernel = process_kernel();
        auto* made = new Locality(kernel, process_machine(kernel));
        the_locality.store(made, std::memory_order_release);
        return made;
    }();
    return found;
}

void forget_homes() noexcept {
    if (Locality* known = the_locality.load(std::memory_order_acquire)) known->forget_homes();
}

} // namespace homing
