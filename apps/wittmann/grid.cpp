#include "grid.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <numbers>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace wittmann {
namespace {

constexpr double weight = 1.0 / 6.0;

std::vector<double> sines(long count) {
    std::vector<double> table(static_cast<std::size_t>(count), 0.0);
    for (long at = 1; at + 1 < count; ++at)
        table[static_cast<std::size_t>(at)] =
            std::sin(std::numbers::pi * static_cast<double>(at) / static_cast<double>(count - 1));
    return table;
}

double site(const double* p, std::size_t line, std::size_t plane) {
    return weight * (p[-1] + p[1] + (p - line)[0] + (p + line)[0] + (p - plane)[0] + (p + plane)[0]);
}

#if defined(__SSE2__)
/// Two sites at once, past the caches (section 1.3): a store miss would read the line first.
void sweep_line_nontemporal(const double* p, double* q, std::size_t sites, std::size_t line,
                            std::size_t plane) {
    std::size_t k = 0;
    for (; k < sites && reinterpret_cast<std::uintptr_t>(q + k) % 16 != 0; ++k)
        q[k] = site(p + k, line, plane);
    const __m128d factor = _mm_set1_pd(weight);
    for (; k + 2 <= sites; k += 2) {
        // The same order of additions as in site(): the same digits.
        __m128d sum = _mm_add_pd(_mm_loadu_pd(p + k - 1), _mm_loadu_pd(p + k + 1));
        sum = _mm_add_pd(sum, _mm_loadu_pd(p + k - line));
        sum = _mm_add_pd(sum, _mm_loadu_pd(p + k + line));
        sum = _mm_add_pd(sum, _mm_loadu_pd(p + k - plane));
        sum = _mm_add_pd(sum, _mm_loadu_pd(p + k + plane));
        _mm_stream_pd(q + k, _mm_mul_pd(factor, sum));
    }
    for (; k < sites; ++k)
        q[k] = site(p + k, line, plane);
}
#endif

} // namespace

Grid::Grid(Size size, long block_j, long block_i, Stores stores) : size_(size), stores_(stores) {
    const auto parts = [](long sites, long length) { return (sites + length - 1) / length; };
    blocks_j_ = parts(size.j - 2, block_j);
    blocks_i_ = parts(size.i - 2, block_i);
    for (long ib = 0; ib < blocks_i_; ++ib)
        for (long jb = 0; jb < blocks_j_; ++jb)
            blocks_.push_back({1 + jb * block_j, std::min(1 + (jb + 1) * block_j, size.j - 1),
                               1 + ib * block_i, std::min(1 + (ib + 1) * block_i, size.i - 1), -1});
    sine_[0] = sines(size.i);
    sine_[1] = sines(size.j);
    sine_[2] = sines(size.k);
    for (auto& grid : memory_) {
        // Whole pages of our own, not touched: a huge page would belong to many blocks.
        const std::size_t bytes = (static_cast<std::size_t>(grid_bytes()) + 4095) / 4096 * 4096;
        grid.reset(static_cast<double*>(std::aligned_alloc(4096, bytes)));
        if (!grid) throw std::bad_alloc();
    }
    from_ = memory_[0].get();
    to_ = memory_[1].get();
}

double Grid::start(long i, long j, long k) const {
    return sine_[0][static_cast<std::size_t>(i)] * sine_[1][static_cast<std::size_t>(j)] *
           sine_[2][static_cast<std::size_t>(k)];
}

void Grid::fill(const Block& block) {
    const long i0 = block.i0 == 1 ? 0 : block.i0;
    const long i1 = block.i1 == size_.i - 1 ? size_.i : block.i1;
    const long j0 = block.j0 == 1 ? 0 : block.j0;
    const long j1 = block.j1 == size_.j - 1 ? size_.j : block.j1;
    for (long i = i0; i < i1; ++i)
        for (long j = j0; j < j1; ++j)
            for (long k = 0; k < size_.k; ++k)
                from_[at(i, j, k)] = to_[at(i, j, k)] = start(i, j, k);
}

void Grid::step(const Block& block, bool back) const {
    const double* const source = back ? to_ : from_;
    double* const target = back ? from_ : to_;
    const auto line = static_cast<std::size_t>(size_.k);
    const std::size_t plane = line * static_cast<std::size_t>(size_.j);
    const std::size_t sites = line - 2;
    for (long i = block.i0; i < block.i1; ++i)
        for (long j = block.j0; j < block.j1; ++j) {
            const double* __restrict p = source + at(i, j, 1);
            double* __restrict q = target + at(i, j, 1);
#if defined(__SSE2__)
            if (stores_ == Stores::nontemporal) {
                sweep_line_nontemporal(p, q, sites, line, plane);
                continue;
            }
#endif
            for (std::size_t k = 0; k < sites; ++k)
                q[k] = site(p + k, line, plane);
        }
#if defined(__SSE2__)
    _mm_sfence(); // whoever learns that the block is done must see it
#endif
}

double Grid::check(long sweeps) const {
    double lambda = 0;
    for (const long extent : {size_.i, size_.j, size_.k})
        lambda += std::cos(std::numbers::pi / static_cast<double>(extent - 1)) / 3;
    const double shrunk = std::pow(lambda, static_cast<double>(sweeps));
    double worst = 0;
    for (long i = 0; i < size_.i; ++i)
        for (long j = 0; j < size_.j; ++j)
            for (long k = 0; k < size_.k; ++k)
                worst = std::max(worst, std::fabs(from_[at(i, j, k)] - shrunk * start(i, j, k)));
    return worst;
}

double Grid::checksum() const {
    double sum = 0;
    for (long n = 0; n < size_.sites(); ++n)
        sum += from_[n] * static_cast<double>(n % 7 + 1);
    return sum;
}

} // namespace wittmann
