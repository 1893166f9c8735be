// Temporal blocking, the second outlook of Wittmann and Hager 2010 (section 4): several time steps on a block
// while it is in the cache, with one locality queue for each group of cores that shares a cache, and no
// global barrier.
//
// A block is some planes of the grid. Step t of block b may run when step t - 1 of b - 1, b and b + 1 is done
// (then it also overwrites nothing that anybody still reads: there are two grids). To keep a wavefront in the
// cache, a block enters the next `depth` steps only when the block `window` places before it has finished its
// own; so about `window` blocks of each group are in the cache at a time. Neighbouring groups run through
// their blocks in opposite directions: they meet at their common border.
#include "app.hpp"
#include "grid.hpp"

#include <atomic>
#include <exception>
#include <homing/tasks.hpp>
#include <memory>
#include <omp.h>
#include <stdexcept>
#include <thread>

namespace {

using namespace wittmann;

struct Step {
    int block;
    int time; ///< from 1
};

class Wavefront {
  public:
    Wavefront(const Grid& grid, int groups, int depth, int window)
        : depth_(depth), window_(window), blocks_(static_cast<int>(grid.count())),
          group_(static_cast<std::size_t>(grid.count())), place_(static_cast<std::size_t>(grid.count())) {
        // Equal parts: their lengths differ by one at most, which the wavefronts of neighbours need.
        first_.resize(static_cast<std::size_t>(groups) + 1);
        for (int g = 0; g <= groups; ++g)
            first_[static_cast<std::size_t>(g)] = static_cast<int>(static_cast<long>(g) * blocks_ / groups);
        for (int g = 0; g < groups; ++g)
            for (int b = begin(g); b < end(g); ++b) {
                group_[static_cast<std::size_t>(b)] = g;
                place_[static_cast<std::size_t>(b)] = g % 2 ? end(g) - 1 - b : b - begin(g);
            }
    }

    /// `steps` (a multiple of depth) time steps. `sweep(block, odd)` does one step of a block.
    template <class Sweep> void run(int steps, homing::LocalityQueues<Step>& queues, const Sweep& sweep) {
        steps_ = steps;
        missing_ = std::make_unique<std::atomic<signed char>[]>(static_cast<std::size_t>(blocks_) *
                                                                static_cast<std::size_t>(steps + 1));
        left_ = static_cast<long>(blocks_) * steps;
        for (int t = 1; t <= steps; ++t)
            for (int b = 0; b < blocks_; ++b) {
                int count = t > 1 ? 1 + (b > 0) + (b + 1 < blocks_) : 0;
                count += (t - 1) % depth_ == 0 && sequence(b, t) >= window_of(b);
                missing(b, t).store(static_cast<signed char>(count), std::memory_order_relaxed);
            }
        for (int b = 0; b < blocks_; ++b)
            if (missing(b, 1).load(std::memory_order_relaxed) == 0)
                queues.put({b, 1}, group_[static_cast<std::size_t>(b)]);
#pragma omp parallel
        {
            for (unsigned idle = 0; left_.load(std::memory_order_acquire) > 0;) {
                const std::optional<Step> step = queues.take();
                if (!step) {
                    if (++idle % 16 == 0) std::this_thread::yield();
                    continue;
                }
                idle = 0;
                sweep(step->block, step->time);
                done(*step, queues);
                left_.fetch_sub(1, std::memory_order_acq_rel);
            }
        }
    }

  private:
    int begin(int g) const { return first_[static_cast<std::size_t>(g)]; }
    int end(int g) const { return first_[static_cast<std::size_t>(g) + 1]; }
    int length_of(int b) const {
        const int g = group_[static_cast<std::size_t>(b)];
        return end(g) - begin(g);
    }
    int window_of(int b) const { return std::min(window_, length_of(b)); }
    /// The block's number in its group's order, through all passes.
    long sequence(int b, int t) const {
        return static_cast<long>((t - 1) / depth_) * length_of(b) + place_[static_cast<std::size_t>(b)];
    }
    std::atomic<signed char>& missing(int b, int t) {
        return missing_[static_cast<std::size_t>(t) * static_cast<std::size_t>(blocks_) +
                        static_cast<std::size_t>(b)];
    }
    void release(int b, int t, homing::LocalityQueues<Step>& queues) {
        if (missing(b, t).fetch_sub(1, std::memory_order_acq_rel) == 1)
            queues.put({b, t}, group_[static_cast<std::size_t>(b)]);
    }
    void done(const Step& step, homing::LocalityQueues<Step>& queues) {
        if (step.time % depth_ == 0) {
            // Let the block in that waits for this one's place in the cache.
            const int g = group_[static_cast<std::size_t>(step.block)];
            const int length = end(g) - begin(g);
            const long next = sequence(step.block, step.time) + window_of(step.block);
            const int place = static_cast<int>(next % length);
            const long time = next / length * depth_ + 1;
            if (time <= steps_)
                release(g % 2 ? end(g) - 1 - place : begin(g) + place, static_cast<int>(time), queues);
        }
        if (step.time == steps_) return;
        for (int b = std::max(step.block - 1, 0); b <= std::min(step.block + 1, blocks_ - 1); ++b)
            release(b, step.time + 1, queues);
    }

    int depth_, window_, blocks_, steps_ = 0;
    std::vector<int> group_, place_, first_;
    std::unique_ptr<std::atomic<signed char>[]> missing_;
    std::atomic<long> left_{0};
};

int run(int argc, char** argv) {
    app_begin("temporal", argc, argv);
    Size size;
    size.k = app_integer_option("--sites-k", 200, 4, 1L << 20, "the fastest index");
    size.j = app_integer_option("--sites-j", 200, 3, 1L << 20, "");
    size.i = app_integer_option("--sites-i", 1200, 3, 1L << 20, "");
    const long planes = app_integer_option("--planes", 2, 1, 1L << 20, "of a block");
    const int depth = static_cast<int>(
        app_integer_option("--depth", 4, 1, 64, "time steps on a block in the cache; 1: plain sweeps"));
    const int wanted = static_cast<int>(app_integer_option(
        "--window", 0, 0, 1 << 20, "blocks in the cache; 0: 2 depth + 1 + threads of a group"));
    const long samples = app_integer_option("--samples", 10, 1, 100000,
                                            "of `depth` time steps each, without a barrier between them");
    const long given = app_integer_option("--groups", 0, 0, 1024, "cache groups; 0: of this machine");
    app_options_end();

    Grid grid(size, size.j, planes, Stores::normal); // what the next step reads shall stay in the cache
    const int threads = omp_get_max_threads();
    homing::Domains domains = homing::domains_of_machine(homing::By::cache);
    if (given)
        domains = {static_cast<int>(given),
                   [](const void* count) { return omp_get_thread_num() % *static_cast<const int*>(count); },
                   &domains.count};
    domains.count = std::min<int>(domains.count, static_cast<int>(grid.count()));
    const int window = wanted ? wanted : 2 * depth + 1 + std::max(1, threads / domains.count);
    if (window < 2 * depth - 1) throw std::runtime_error("--window must be 2 * depth - 1 at least");
    const int steps = static_cast<int>(samples) * depth;
    char text[200];
    std::snprintf(text, sizeof text,
                  "%ld x %ld x %ld sites, %ld blocks of %ld planes, %d groups, depth %d, window %d", size.k,
                  size.j, size.i, grid.count(), planes, domains.count, depth, window);
    app_describe(text, grid.bytes(), APP_PARALLEL, threads);
#pragma omp parallel for schedule(static)
    for (long n = 0; n < grid.count(); ++n)
        grid.fill(grid.block(n));

    Wavefront wavefront(grid, domains.count, depth, window);
    homing::LocalityQueues<Step> queues({domains, "time steps", 0});
    const double updates = static_cast<double>((size.k - 2) * (size.j - 2) * (size.i - 2)) * steps;
    app_iterations_begin(1);
    app_iteration_begin();
    const double begin = seconds();
    wavefront.run(steps, queues, [&](int b, int t) { grid.step(grid.block(b), t % 2 == 0); });
    const double rate = updates / (seconds() - begin) / 1e6;
    app_iteration_end(nullptr, 0);
    app_iterations_end();
    if (steps % 2) grid.exchange();
    std::printf("time mlups: %.6g\n", rate);
    std::printf("time home: %llu of %llu steps in their group\n",
                static_cast<unsigned long long>(queues.taken_at_home()),
                static_cast<unsigned long long>(queues.taken_at_home() + queues.taken_elsewhere()));
    app_result("checksum", grid.checksum());
    app_finish(grid.check(steps) <= 1e-13 * (steps + 1) ? APP_SUCCESSFUL : APP_FAILED);
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        app_error(error.what());
    }
}
