// Nodes as the pure decisions see them: small dense numbers 0..N-1. The caller maps them to the kernel's
// (possibly sparse) node ids and back.
#pragma once

#include <bit>
#include <cstdint>

namespace homing::policy {

using Node = std::int16_t;
using NodeSet = std::uint64_t; // bit n stands for node n

inline constexpr Node unknown_node = -1;
inline constexpr int most_nodes = 64;

// None for unknown_node.
constexpr NodeSet node_bit(Node node) { return node >= 0 ? NodeSet{1} << node : 0; }
constexpr bool contains(NodeSet set, Node node) { return (set & node_bit(node)) != 0; }
constexpr int size_of(NodeSet set) { return std::popcount(set); }
constexpr NodeSet all_nodes(int count) {
    return count >= most_nodes ? ~NodeSet{0} : (NodeSet{1} << count) - 1;
}

// The index-th node of a set in ascending order; index is taken modulo the size of the set. unknown_node if
// empty.
constexpr Node nth_node(NodeSet set, std::uint64_t index) {
    if (set == 0) return unknown_node;
    for (index %= static_cast<std::uint64_t>(size_of(set)); index > 0; --index)
        set &= set - 1;
    return static_cast<Node>(std::countr_zero(set));
}

// Pages [first, end), numbered from the start of their area.
struct PageRange {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::uint64_t size() const { return end - first; }
    friend bool operator==(const PageRange&, const PageRange&) = default;
};

} // namespace homing::policy
