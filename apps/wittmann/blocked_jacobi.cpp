// The six-point Jacobi solver of Wittmann and Hager 2010 on blocks, by each way of their Figure 3 and some of
// today, in million lattice-site updates a second.
#include "app.hpp"
#include "variants.hpp"

#include <cstring>
#include <exception>
#include <fstream>
#include <homing/homing.h>
#include <omp.h>
#include <stdexcept>

namespace wittmann {

const char* const variant_names =
    "static|dynamic|tasks|queues|paper|clause|nested|tbb|tbb-queues|tbb-paper|tbb-for-each|tbb-arena|"
    "tasks-all|paper-all";

namespace {

/// Bytes that may be used without pushing anybody out.
double available_bytes() {
    double kilobytes = 0;
    if (std::FILE* file = std::fopen("/proc/meminfo", "r")) {
        char line[256];
        while (std::fgets(line, sizeof line, file))
            if (std::sscanf(line, "MemAvailable: %lf", &kilobytes) == 1) break;
        std::fclose(file);
    }
    return kilobytes > 0 ? kilobytes * 1024 : 2e9;
}

/// The paper's grid where two of them fit into half of the memory at hand; else fewer layers of the same
/// blocks.
long layers_that_fit(long k, long j, long wanted) {
    const double most = available_bytes() / 2 / (2.0 * sizeof(double) * static_cast<double>(k * j));
    return std::max(12L, std::min(wanted, static_cast<long>(most) / 10 * 10));
}

std::string word(const char* choices, int number) {
    std::string all = choices;
    for (; number > 0; --number)
        all = all.substr(all.find('|') + 1);
    return all.substr(0, all.find('|'));
}

/// A line a sweep and block: the domains of the thread that ran it and of the block, -1 for none.
void write_runs(const char* path, const std::vector<HomeCount::Run>& runs) {
    std::ofstream file(path);
    for (const HomeCount::Run& one : runs)
        file << one.here << ' ' << one.home << '\n';
    if (!file.flush()) throw std::runtime_error(std::string(path) + ": cannot be written");
}

int run(int argc, char** argv) {
    app_begin("blocked_jacobi", argc, argv);
    Choice choice;
    const char* const placements = "s|s1|serial|round-robin";
    choice.variant =
        word(variant_names, app_choice_option("--variant", 3, variant_names, "how a sweep is run"));
    choice.initialise =
        word(placements, app_choice_option("--initialise", 0, placements,
                                           "first touch: schedule(static), (static,1), serial; or "
                                           "pages dealt out (not TBB: by its own loop)"));
    choice.kji = app_choice_option("--order", 0, "ijk|kji", "of the tasks' submission");
    choice.pin = app_choice_option("--pin", 0, "no|yes", "bind TBB's threads");
    choice.partitioner = app_choice_option("--partitioner", 0, "auto|affinity", "TBB's");
    choice.line = app_choice_option("--range", 0, "3d|1d", "TBB's: blocks as a space, or as a line");
    choice.look_up =
        app_choice_option("--homes", 0, "look-up|noted",
                          "blocks' domains: where their pages are, or who touched them first") == 0;
    const int stores = app_choice_option("--stores", 0, "nontemporal|normal", "how the new value is stored");
    Size size;
    size.k = app_integer_option("--sites-k", 600, 4, 1L << 20, "the fastest index, not cut");
    size.j = app_integer_option("--sites-j", 600, 3, 1L << 20, "");
    const long layers =
        app_integer_option("--sites-i", 0, 0, 1L << 20, "0: 2400, or what fits into the memory");
    const long block_j = app_integer_option("--block-j", 10, 1, 1L << 20, "sites of a block");
    const long block_i = app_integer_option("--block-i", 10, 1, 1L << 20,
                                            "sites of a block; 10 gives the 14,400 tasks of section 2.1");
    const long samples = app_integer_option("--samples", 100, 1, 1000000, "sweeps");
    choice.work = app_integer_option("--work", 1, 1, 1000000,
                                     "each block is updated so many times, to the same values");
    const char* const runs_path = app_text_option(
        "--runs", "FILE", "write a line for each block that ran: the domains of its thread, and its own");
    app_options_end();

    size.i = layers ? layers : layers_that_fit(size.k, size.j, 2400);
    choice.threads = omp_get_max_threads();
    Grid grid(size, block_j, block_i, stores ? Stores::normal : Stores::nontemporal);
    HomeCount count;
    std::unique_ptr<Variant> variant = make_omp_variant(choice, grid, count);
    if (!variant) variant = make_tbb_variant(choice, grid, count);
    if (!variant) app_error("this build has no such variant");

    char text[160];
    std::snprintf(text, sizeof text, "%ld x %ld x %ld sites, blocks of %ld x %ld x %ld, %ld blocks", size.k,
                  size.j, size.i, size.k, block_j, block_i, grid.count());
    app_describe(text, grid.bytes(), choice.initialise == "serial" ? APP_SERIAL : APP_PARALLEL,
                 choice.threads);
    std::printf("variant: %s, initialise %s, order %s\n", choice.variant.c_str(), choice.initialise.c_str(),
                choice.kji ? "kji" : "ijk");
    variant->initialise();
    if (choice.look_up) find_homes(grid);
    if (runs_path) count.keep_runs(static_cast<std::size_t>(grid.count() * samples));
    std::vector<double> rates;
    const double updates = static_cast<double>((size.k - 2) * (size.j - 2) * (size.i - 2));
    app_iterations_begin(samples);
    for (long sample = 0; sample < samples; ++sample) {
        app_iteration_begin();
        const double begin = seconds();
        variant->sweep();
        rates.push_back(updates / (seconds() - begin) / 1e6);
        grid.exchange();
        app_iteration_end(nullptr, 0);
    }
    app_iterations_end();
    print_quantiles("mlups", rates);
    std::printf("time home: %ld of %ld blocks with a home\n", count.at_home(), count.known());
    if (runs_path) write_runs(runs_path, count.runs());
    if (const std::string remark = variant->remark(); !remark.empty())
        std::printf("time remark: %s\n", remark.c_str());
    app_result("checksum", grid.checksum());
    app_finish(grid.check(samples) <= 1e-13 * static_cast<double>(samples + 1) ? APP_SUCCESSFUL : APP_FAILED);
    return 0;
}

} // namespace
} // namespace wittmann

int main(int argc, char** argv) {
    try {
        return wittmann::run(argc, argv);
    } catch (const std::exception& error) {
        app_error(error.what());
    }
}
