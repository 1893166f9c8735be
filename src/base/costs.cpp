#include "base/costs.hpp"

#include <algorithm>

namespace homing::policy {

double TouchModel::miss_share() const {
    if (cache_bytes == 0) return 1;
    const double fill = static_cast<double>(footprint_bytes) / static_cast<double>(cache_bytes);
    return std::clamp(fill - 0.5, 0.0, 1.0);
}

double TouchModel::misses_per_touch() const {
    const auto lines =
        static_cast<double>(page_size) / static_cast<double>(std::max<std::uint64_t>(line_size, 1));
    return lines * miss_share();
}

double TouchModel::excess_ns(std::uint64_t remote_touches, const Costs& costs, double region_ns) const {
    const double misses = static_cast<double>(remote_touches) * misses_per_touch();
    const double in_flight = std::max(threads, 1) * std::max(overlap, 1.0);
    const double excess = misses * std::max(costs.remote_ns - costs.local_ns, 0.0) / in_flight;
    return std::min(excess, std::max(region_ns, 0.0));
}

double TouchModel::contention_ns(double busiest_now, double busiest_then, const Costs& costs,
                                 double region_ns) const {
    const double misses = std::max(busiest_now - busiest_then, 0.0) * misses_per_touch();
    const double threads_each = std::max(1.0, static_cast<double>(threads) / std::max(nodes, 1));
    const double excess = misses * costs.local_ns / (threads_each * std::max(overlap, 1.0));
    return std::min(excess, std::max(region_ns, 0.0));
}

} // namespace homing::policy
