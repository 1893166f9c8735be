#include "model/team.hpp"

#include "base/invariant.hpp"

#include <utility>

namespace homing::model {

Team::Team(std::vector<Node> node_of, int nodes) : node_of_(std::move(node_of)), nodes_(nodes) {
    invariant(!node_of_.empty(), "a team has a thread");
    threads_on_.resize(static_cast<std::size_t>(nodes));
    for (const Node node : node_of_) {
        invariant(node >= 0 && node < nodes, "a thread runs on one of the nodes");
        ++threads_on_[static_cast<std::size_t>(node)];
    }
}

Team Team::packed(int threads, int nodes) {
    std::vector<Node> node_of;
    for (int thread = 0; thread < threads; ++thread)
        node_of.push_back(static_cast<Node>(static_cast<std::int64_t>(thread) * nodes / threads));
    return {std::move(node_of), nodes};
}

bool Team::can_group(int size) const noexcept {
    if (size < 1 || threads() % size != 0) return false;
    for (int thread = 0; thread < threads(); ++thread)
        if (node(thread) != node(thread - thread % size)) return false;
    return true;
}

Team Team::grouped(int size) const {
    invariant(can_group(size), "a group lies on one node");
    std::vector<Node> node_of;
    for (int thread = 0; thread < threads(); thread += size)
        node_of.push_back(node(thread));
    return {std::move(node_of), nodes_};
}

} // namespace homing::model
