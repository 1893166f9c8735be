// STREAM copy (section 1.3): the bandwidth that the Jacobi sweep can have at most, with the stores that it
// uses.
#include "app.hpp"

#include <cstdlib>
#include <cstring>
#include <omp.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace {

void copy(const double* from, double* to, std::size_t count, bool nontemporal) {
#if defined(__SSE2__)
    if (nontemporal) {
        for (std::size_t i = 0; i + 2 <= count; i += 2)
            _mm_stream_pd(to + i, _mm_load_pd(from + i));
        _mm_sfence();
        return;
    }
#endif
    for (std::size_t i = 0; i < count; ++i)
        to[i] = from[i];
}

} // namespace

int main(int argc, char** argv) {
    app_begin("copy", argc, argv);
    const bool normal = app_choice_option("--stores", 0, "nontemporal|normal", "") != 0;
    const long bytes = app_bytes_option("--bytes", 512L << 20, 1 << 20, 1L << 40, "of both arrays together");
    const long samples = app_integer_option("--samples", 20, 1, 100000, "");
    app_options_end();
    const int threads = omp_get_max_threads();
    // A whole number of pages for each thread.
    const std::size_t each =
        static_cast<std::size_t>(bytes) / 2 / static_cast<std::size_t>(threads) / 4096 * 512;
    const std::size_t count = each * static_cast<std::size_t>(threads);
    auto* from = static_cast<double*>(std::aligned_alloc(4096, count * sizeof(double)));
    auto* to = static_cast<double*>(std::aligned_alloc(4096, count * sizeof(double)));
    if (!from || !to || each == 0) app_error("out of memory, or too little of it asked for");
    app_describe("copy", bytes, APP_PARALLEL, threads);
#pragma omp parallel
    {
        const std::size_t first = static_cast<std::size_t>(omp_get_thread_num()) * each;
        for (std::size_t i = first; i < first + each; ++i) {
            from[i] = static_cast<double>(i % 1000);
            to[i] = 0;
        }
    }
    std::vector<double> rates;
    app_iterations_begin(samples);
    for (long sample = 0; sample < samples; ++sample) {
        app_iteration_begin();
        const double begin = wittmann::seconds();
#pragma omp parallel
        {
            const std::size_t first = static_cast<std::size_t>(omp_get_thread_num()) * each;
            copy(from + first, to + first, each, !normal);
        }
        rates.push_back(2e-9 * sizeof(double) * static_cast<double>(count) / (wittmann::seconds() - begin));
        app_iteration_end(nullptr, 0);
    }
    app_iterations_end();
    wittmann::print_quantiles("gbytes_per_second", rates);
    app_finish(std::memcmp(from, to, count * sizeof(double)) == 0 ? APP_SUCCESSFUL : APP_FAILED);
    return 0;
}
