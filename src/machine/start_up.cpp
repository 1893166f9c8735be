#include "machine/start_up.hpp"

#include "base/options.hpp"
#include "kernel/own_pages.hpp"
#include "machine/threads.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <linux/mempolicy.h>
#include <string>

namespace homing {

void record_machine(const Machine& machine, const NodeMap& nodes, Kernel& kernel) {
    for (const Node& node : machine.nodes) {
        record::node_row row;
        row.index = node.index;
        row.memory_bytes = node.memory_bytes;
        row.free_bytes = kernel.free_bytes(node.index);
        row.cpus = node.cpus;
        row.target = node.target();
        row.position = nodes.position(node.index);
        record::append(row);
    }
    for (std::size_t from = 0; from < machine.distances.size(); ++from)
        for (std::size_t first = 0; first < machine.distances[from].size(); first += 8) {
            record::distance_row row;
            row.from = machine.nodes[from].index;
            row.first = static_cast<record::i32>(first);
            row.count =
                static_cast<record::i32>(std::min<std::size_t>(8, machine.distances[from].size() - first));
            for (int k = 0; k < row.count; ++k)
                row.to[k] = static_cast<float>(machine.distances[from][first + static_cast<std::size_t>(k)]);
            record::append(row);
        }
    for (const std::string& remark : machine.remarks)
        record::message(record::Level::note, remark);
    record::fact("machine", machine.source);
}

void respect_binding(Kernel& kernel, Machine& machine) {
    MemoryPolicy policy;
    if (kernel.task_policy(policy) != 0 || policy.plain_mode() != MPOL_BIND) return;
    for (Node& node : machine.nodes)
        if (node.target() && !policy.nodes.has(node.index)) {
            node.allowed = false;
            machine.remarks.push_back(
                "node " + std::to_string(node.index) +
                " is outside the nodes that memory was bound to (numactl): never a target");
        }
}

void bring_pages_of_hooks(Kernel& kernel) {
    const int node = kernel.current_node();
    bring_pages(kernel, own_ranges(), node);
    MemoryPolicy policy;
    if (option_is(Option::mechanism, "observe") || bound_node(kernel) != node ||
        kernel.task_policy(policy) != 0 || policy.plain_mode() != MPOL_DEFAULT)
        return;
    if (const std::size_t came = bring_pages(kernel, thread_ranges(), node))
        record::fact("brought",
                     std::to_string(came) +
                         " pages of the stack and the thread-local variables of the first thread came "
                         "to its node " +
                         std::to_string(node));
}

void bring_pages_of_new_thread(Kernel& kernel) noexcept {
    MemoryPolicy policy;
    const int node = bound_node(kernel);
    if (node < 0 || option_is(Option::mechanism, "observe") || kernel.task_policy(policy) != 0 ||
        policy.plain_mode() != MPOL_DEFAULT)
        return;
    bring_few_pages(kernel, block_of_new_thread(), node);
}

} // namespace homing
