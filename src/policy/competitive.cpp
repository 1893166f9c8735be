#include "policy/competitive.hpp"

#include <algorithm>
#include <limits>

namespace homing::policy {

namespace {

bool more_critical(const Candidate& a, const Candidate& b) {
    const std::uint64_t left = std::uint64_t{a.remote} * b.local;
    const std::uint64_t right = std::uint64_t{b.remote} * a.local;
    // Both without local references: equal ratios (infinite), left == right == 0.
    if (left != right) return left > right;
    if ((a.local == 0) != (b.local == 0)) return a.local == 0;
    if (a.remote != b.remote) return a.remote > b.remote;
    return a.page < b.page;
}

} // namespace

double Candidate::ratio() const {
    return local ? static_cast<double>(remote) / local : std::numeric_limits<double>::infinity();
}

std::optional<Candidate> competitive(std::uint64_t page, Node home, std::span<const std::uint16_t> references,
                                     const CompetitiveOptions& options) {
    Candidate candidate{page, home};
    for (std::size_t n = 0; n < references.size(); ++n) {
        const auto node = static_cast<Node>(n);
        if (node == home) {
            candidate.local = references[n];
        } else if (references[n] > candidate.remote && contains(options.targets, node)) {
            candidate.remote = references[n];
            candidate.to = node;
        }
    }
    if (candidate.to == unknown_node || candidate.remote < options.least_remote) return std::nullopt;
    if (!(static_cast<double>(candidate.remote) > options.threshold * candidate.local)) return std::nullopt;
    return candidate;
}

void keep_most_critical(std::vector<Candidate>& candidates, std::size_t n) {
    if (n < candidates.size()) {
        std::nth_element(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(n),
                         candidates.end(), more_critical);
        candidates.resize(n);
    }
    std::sort(candidates.begin(), candidates.end(), more_critical);
}

} // namespace homing::policy
