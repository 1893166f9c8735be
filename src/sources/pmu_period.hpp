// How often the PMU samples: so that the samples stay few enough to cost nothing and many enough to tell
// something.
#pragma once

#include <algorithm>
#include <cstdint>

namespace homing {

/// Samples a second of one event that are aimed at: a thousand a thread (a sample costs the thread 1 to 3 µs
/// of interrupt, so 0.1 to 0.3 %), at most twenty thousand in all (the driver takes each out in about 0.1
/// µs), and no more than half of a ring of `ring_samples` between two drains `interval` seconds apart: a ring
/// that is full loses the end of every iteration.
constexpr double most_rate(std::size_t threads, std::size_t ring_samples, double interval) noexcept {
    const double all = static_cast<double>(std::max<std::size_t>(threads, 1));
    const double of_rings = interval > 0 ? all * static_cast<double>(ring_samples) / 2 / interval : 20000.0;
    return std::max(1.0, std::min({1000.0 * all, 20000.0, of_rings}));
}

struct PeriodLimits {
    std::uint64_t least = 1;
    std::uint64_t most = std::uint64_t{1} << 31;
    std::uint64_t unit = 1; ///< the period is a multiple of it
    double most_rate = 1000;
};

/// The period to go on with after `samples` (those lost included) in `seconds`. Unchanged while the rate is
/// between an eighth of the limit and the limit, since changing reopens every sampler; otherwise such that it
/// would have been half of the limit. At most 64 times longer or shorter at once.
constexpr std::uint64_t adapted_period(std::uint64_t period, std::uint64_t samples, double seconds,
                                       const PeriodLimits& limits) noexcept {
    if (seconds <= 0) return period;
    const double rate = static_cast<double>(samples) / seconds;
    if (rate <= limits.most_rate && rate >= limits.most_rate / 8) return period;
    const double factor = std::clamp(2 * rate / limits.most_rate, 1.0 / 64, 64.0);
    const double wanted = std::clamp(static_cast<double>(period) * factor, static_cast<double>(limits.least),
                                     static_cast<double>(limits.most));
    const auto whole = static_cast<std::uint64_t>(wanted);
    // Odd where the unit permits: even periods fall in step with unrolled loops.
    if (limits.unit <= 1) return std::max(limits.least, whole | 1);
    return std::max((whole + limits.unit - 1) / limits.unit, std::uint64_t{1}) * limits.unit;
}

} // namespace homing
