// Eigenvalues and eigenvectors of a symmetric tridiagonal matrix (diagonal a, next to it b): by bisection on
// the number of sign changes and by inverse iteration (B. Parlett: The Symmetric Eigenvalue Problem, chapters
// 3 and 4).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace wittmann {

/// How many eigenvalues are below x.
inline long eigenvalues_below(const std::vector<double>& a, const std::vector<double>& b, double x) {
    long count = 0;
    double pivot = 1;
    for (std::size_t i = 0; i < a.size(); ++i) {
        pivot = a[i] - x - (i ? b[i - 1] * b[i - 1] / pivot : 0);
        if (pivot == 0)
            pivot = std::numeric_limits<double>::epsilon() * (std::fabs(a[i]) + std::fabs(x) + 1e-300);
        count += pivot < 0;
    }
    return count;
}

/// The eigenvalue of the given rank (0: the smallest).
inline double eigenvalue(const std::vector<double>& a, const std::vector<double>& b, long rank) {
    double low = a[0], high = a[0];
    for (std::size_t i = 0; i < a.size(); ++i) { // Gershgorin
        const double around = (i ? std::fabs(b[i - 1]) : 0) + (i + 1 < a.size() ? std::fabs(b[i]) : 0);
        low = std::min(low, a[i] - around);
        high = std::max(high, a[i] + around);
    }
    for (int step = 0; step < 200 && high - low > 4e-16 * std::max(std::fabs(low), std::fabs(high)); ++step) {
        const double middle = low + (high - low) / 2;
        (eigenvalues_below(a, b, middle) > rank ? high : low) = middle;
    }
    return low + (high - low) / 2;
}

/// The eigenvector of an eigenvalue, of length 1.
inline std::vector<double> eigenvector(const std::vector<double>& a, const std::vector<double>& b,
                                       double value) {
    const std::size_t n = a.size();
    std::vector<double> x(n, 1.0);
    for (int round = 0; round < 4; ++round) {
        // Gaussian elimination with row exchanges: three diagonals above.
        std::vector<double> d(n), u(n), w(n);
        for (std::size_t i = 0; i < n; ++i) {
            d[i] = a[i] - value;
            u[i] = i + 1 < n ? b[i] : 0;
            w[i] = 0;
        }
        std::vector<double> lower(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(n - 1));
        for (std::size_t i = 0; i + 1 < n; ++i) {
            if (std::fabs(lower[i]) > std::fabs(d[i])) {
                std::swap(d[i], lower[i]);
                std::swap(u[i], d[i + 1]);
                std::swap(w[i], u[i + 1]);
                std::swap(x[i], x[i + 1]);
            }
            if (d[i] == 0) d[i] = std::numeric_limits<double>::epsilon();
            const double factor = lower[i] / d[i];
            d[i + 1] -= factor * u[i];
            u[i + 1] -= factor * w[i];
            x[i + 1] -= factor * x[i];
        }
        if (d[n - 1] == 0) d[n - 1] = std::numeric_limits<double>::epsilon();
        double length = 0;
        for (std::size_t i = n; i-- > 0;) {
            x[i] = (x[i] - (i + 1 < n ? u[i] * x[i + 1] : 0) - (i + 2 < n ? w[i] * x[i + 2] : 0)) / d[i];
            length = std::max(length, std::fabs(x[i]));
        }
        double sum = 0;
        for (double& value_at : x) {
            value_at /= length;
            sum += value_at * value_at;
        }
        for (double& value_at : x)
            value_at /= std::sqrt(sum);
    }
    return x;
}

} // namespace wittmann
