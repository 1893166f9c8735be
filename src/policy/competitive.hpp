// The competitive criterion for page migration, as in UPMlib (Nikolopoulos et al. 2000, "Leveraging
// Transparent Data Distribution in OpenMP via User-Level Dynamic Page Migration", section 2): a page is
// eligible when the most references by one remote node, divided by the references by its home node, exceed a
// threshold; the n most critical pages are those with the largest ratios.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "policy/nodes.hpp"

namespace homing::policy {

struct Candidate {
    std::uint64_t page = 0;
    Node from = unknown_node;
    Node to = unknown_node;
    std::uint32_t local = 0;  // references by the home node
    std::uint32_t remote = 0; // most references by one other node

    double ratio() const; // remote / local; infinity without local references
};

struct CompetitiveOptions {
    double threshold = 2.0;         // eligible: remote / local > threshold
    std::uint32_t least_remote = 1; // and at least this many references by that remote node
    NodeSet targets = ~NodeSet{0};  // nodes that may receive pages
};

// Applies the criterion to one page. references[n]: references by node n. A page whose home is unknown (not a
// node of `references`) counts as having no local references. Ties between remote nodes go to the lowest
// number. No allocation.
std::optional<Candidate> competitive(std::uint64_t page, Node home, std::span<const std::uint16_t> references,
                                     const CompetitiveOptions& options = {});

// Keeps the n most critical candidates, most critical first: by ratio, then by remote references, then by
// page. Ratios are compared exactly (cross-multiplied), so the order does not depend on rounding. O(m log n).
void keep_most_critical(std::vector<Candidate>& candidates, std::size_t n);

} // namespace homing::policy
