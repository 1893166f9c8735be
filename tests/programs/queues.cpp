// homing/tasks.hpp under ThreadSanitizer: blocks that are not atomic, worked on by OpenMP tasks, oneTBB or
// threads, nested and with exceptions. Domains are the thread's own word, so that nothing of the library is
// needed.
#include <atomic>
#include <cstdio>
#include <homing/tasks.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#if defined(USE_TBB)
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_for_each.h>
#elif defined(_OPENMP)
#include <omp.h>
#endif

namespace {

thread_local int turn = 0;
constexpr int count = 300;

struct Block {
    long values[64] = {};
};

homing::Domains wandering() {
    return {3, [](const void*) { return ++turn % 4 - 1; }, nullptr}; // a thread that migrates all the time
}

} // namespace

int main() {
    std::vector<Block> blocks(count);
    homing::LocalityQueues<Block*> queues({wandering(), "blocks", 0});
    // That a TBB loop is over, the main thread hears from TBB's library, which is not instrumented: after
    // every loop the sanitizer is told in the language's own words. Workers release only, so that a race
    // between them still shows.
    std::atomic<long> finished{0};
    const auto work = [&finished](Block* block) {
        for (long& value : block->values)
            ++value;
        finished.fetch_add(1, std::memory_order_release);
    };
    const auto queue_all = [&] {
        for (int n = 0; n < count; ++n)
            queues.put(&blocks[static_cast<std::size_t>(n)], n % 4 - 1);
    };
    long sweeps = 0;
#if defined(USE_TBB)
    for (; sweeps < 40; ++sweeps) {
        queue_all();
        if (sweeps % 2)
            tbb::parallel_for(tbb::blocked_range<int>(0, count), homing::QueueBody(queues, work));
        else
            tbb::parallel_for_each(blocks.begin(), blocks.end(), homing::QueueBody(queues, work));
        if (finished.load(std::memory_order_acquire) != (sweeps + 1) * count) return 1;
    }
#elif defined(_OPENMP)
    for (; sweeps < 40; ++sweeps) {
        queue_all();
#pragma omp parallel
#pragma omp single
        {
            if (sweeps % 2)
                homing::run_omp_tasks(queues, work);
            else
                homing::run_omp_taskloop(queues, work, sweeps % 4); // a grain of 0, or of 2
        }
    }
    // Nested: each block's task queues and submits a second one; some throw.
    homing::LocalityQueues<Block*> inner({wandering(), "inner", 0});
    queue_all();
    int caught = 0;
#pragma omp parallel
#pragma omp single
    try {
        homing::run_omp_tasks(queues, [&](Block* block) {
            inner.put(block, 1);
            homing::run_omp_tasks(inner, work);
            if (block == &blocks[7]) throw std::runtime_error("block 7");
        });
    } catch (const std::runtime_error&) {
        ++caught;
    }
    sweeps += caught;
    // What `keep` reserves is worked on all the same.
    homing::LocalityQueues<Block*> kept({wandering(), "kept", homing::keep_all});
    for (Block& block : blocks)
        kept.put(&block, static_cast<int>((&block - blocks.data()) % 3));
#pragma omp parallel
#pragma omp single
    homing::run_omp_tasks(kept, work);
    ++sweeps;
#else
    for (; sweeps < 40; ++sweeps) {
        std::vector<std::thread> team;
        queue_all();
        for (int thread = 0; thread < 4; ++thread)
            team.emplace_back([&] {
                while (queues.waiting() > 0)
                    queues.run_one(work);
            });
        for (std::thread& thread : team)
            thread.join();
    }
#endif
    if (finished.load(std::memory_order_acquire) < sweeps * count) return 1;
    for (const Block& block : blocks)
        for (const long value : block.values)
            if (value != sweeps) {
                std::printf("wrong: %ld instead of %ld\n", value, sweeps);
                return 1;
            }
    std::printf("right, %ld sweeps\n", sweeps);
    return 0;
}
