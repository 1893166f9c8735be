// The common part of all programs (apps/common), for C++.
#pragma once

#define _Noreturn [[noreturn]]
extern "C" {
#include "app.h"
}
#undef _Noreturn

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

namespace wittmann {

inline double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Prints the median and the quantiles of Figure 4 (25 % and 45 % on both sides of it). The line begins with
/// "time", because it differs from run to run.
inline void print_quantiles(const char* what, std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto quantile = [&](double part) {
        const double place = part * static_cast<double>(values.size() - 1);
        const auto low = static_cast<std::size_t>(place);
        const std::size_t high = std::min(low + 1, values.size() - 1);
        return values[low] + (place - std::floor(place)) * (values[high] - values[low]);
    };
    std::printf("time %s 5 25 50 75 95 %%: %.6g %.6g %.6g %.6g %.6g\n", what, quantile(.05), quantile(.25),
                quantile(.5), quantile(.75), quantile(.95));
}

} // namespace wittmann
