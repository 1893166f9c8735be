#include "counters/criterion.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace homing::counters {
namespace {

double ratio(const PlannedMove& move) noexcept {
    if (move.local == 0) return std::numeric_limits<double>::infinity();
    return static_cast<double>(move.remote) / static_cast<double>(move.local);
}

std::uint64_t count_of(std::span<const std::uint64_t> counts, policy::Node node) {
    const auto at = static_cast<std::size_t>(node);
    return node >= 0 && at < counts.size() ? counts[at] : 0;
}

} // namespace

bool is_more_critical(const PlannedMove& one, const PlannedMove& other) noexcept {
    const double first = ratio(one), second = ratio(other);
    if (first != second) return first > second;
    if (one.remote != other.remote) return one.remote > other.remote;
    return one.page < other.page;
}

std::vector<PlannedMove> eligible_moves(const Trace& trace, const std::function<policy::Node(PageId)>& home,
                                        double threshold) {
    std::vector<PlannedMove> moves;
    trace.for_each([&](PageId page, std::span<const std::uint64_t> counts) {
        PlannedMove move{page, home(page), policy::unknown_node, 0, 0};
        if (move.from == policy::unknown_node) return;
        for (std::size_t node = 0; node < counts.size(); ++node) {
            if (node == static_cast<std::size_t>(move.from) || counts[node] <= move.remote) continue;
            move.remote = counts[node];
            move.to = static_cast<policy::Node>(node);
        }
        move.local = count_of(counts, move.from);
        if (move.remote > 0 && ratio(move) > threshold) moves.push_back(move);
    });
    std::ranges::sort(moves, is_more_critical);
    return moves;
}

void keep_most_critical(std::vector<PlannedMove>& moves, std::size_t most) {
    std::ranges::sort(moves, is_more_critical);
    if (moves.size() > most) moves.resize(most);
}

Share share_of(const Trace& trace, const std::function<policy::Node(PageId)>& home,
               const std::vector<PlannedMove>& plan) {
    std::map<PageId, policy::Node> planned;
    for (const PlannedMove& move : plan)
        planned[move.page] = move.to;
    Share share;
    trace.for_each([&](PageId page, std::span<const std::uint64_t> counts) {
        const policy::Node now = home(page);
        if (now == policy::unknown_node) return;
        const auto at = planned.find(page);
        const policy::Node then = at == planned.end() ? now : at->second;
        std::uint64_t all = 0;
        for (const std::uint64_t count : counts)
            all += count;
        share.references += all;
        share.remote += all - count_of(counts, now);
        share.remote_with_plan += all - count_of(counts, then);
    });
    return share;
}

} // namespace homing::counters
