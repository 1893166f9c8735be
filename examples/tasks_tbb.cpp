// oneTBB with locality queues: parallel_for and parallel_for_each deal out indices, the queues deal out
// blocks.
//   g++ -std=c++20 -O2 tasks_tbb.cpp -lhoming -ltbb
#include <cstdio>
#include <homing/tasks.hpp>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_for_each.h>
#include <vector>

int main() {
    constexpr std::size_t blocks = 500, length = 10'000;
    std::vector<double> data(blocks * length);
    tbb::parallel_for(std::size_t{0}, blocks, [&](std::size_t block) {
        for (std::size_t i = 0; i < length; ++i)
            data[block * length + i] = 1;
    });

    std::vector<double> sums(blocks);
    const auto work = [&](std::size_t block) {
        for (std::size_t i = 0; i < length; ++i)
            sums[block] += data[block * length + i];
    };
    homing::LocalityQueues<std::size_t> queues;
    const auto queue_all = [&] {
        for (std::size_t block = 0; block < blocks; ++block)
            queues.put(block, &data[block * length], length * sizeof(double));
    };
    queue_all();
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, blocks), homing::QueueBody(queues, work));
    queue_all();
    tbb::parallel_for_each(sums.begin(), sums.end(), homing::QueueBody(queues, work));

    double total = 0;
    for (const double sum : sums)
        total += sum;
    std::printf("sum %.0f\n", total);
    return total == 2.0 * blocks * length ? 0 : 1;
}
