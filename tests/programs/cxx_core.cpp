// C++: vectors that grow, exceptions thrown and caught inside regions and out of serial code, threads and
// futures of the library, thread-local objects with destructors.
#include "core.h"
#include <atomic>
#include <future>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<long> destroyed{0};

struct Local {
    std::vector<char> data = std::vector<char>(200000, 'x');
    ~Local() { destroyed += data[5] == 'x' && core_b != nullptr; }
};

uint64_t risky(long i) {
    if (core_a[i] % 5 == 0) throw std::runtime_error(std::string(100, 'e') + std::to_string(i));
    return core_a[i];
}

} // namespace

int main() {
    core_start();
    uint64_t total = 0;
    std::vector<double> grows;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        long caught = 0;
        uint64_t sum = 0;
#pragma omp parallel for reduction(+ : caught, sum)
        for (long at = 0; at < CORE_WORDS; at += 512) {
            try {
                sum += risky(at);
            } catch (const std::runtime_error& error) {
                caught += static_cast<long>(std::string(error.what()).size()) > 100;
            }
        }
        try {
            risky(0);
            total += 1;
        } catch (const std::exception&) {
            total += 2;
        }
        try {
            volatile size_t huge = size_t{1} << 60;
            std::vector<char> impossible(huge);
            total += 3;
        } catch (const std::exception&) {
            total += 5;
        }
        grows.resize(grows.size() + 20000, i);
        double of_grows = 0;
#pragma omp parallel for reduction(+ : of_grows)
        for (size_t at = 0; at < grows.size(); ++at)
            of_grows += grows[at];
        std::thread thread([&] {
            static thread_local Local local;
            for (long at = 0; at < CORE_WORDS; at += 512)
                local.data[static_cast<size_t>(at) % local.data.size()] = 'x';
        });
        auto future = std::async(std::launch::async, [] {
            std::vector<uint64_t> copy(core_c, core_c + CORE_WORDS);
            return std::accumulate(copy.begin(), copy.end(), uint64_t{0});
        });
        auto block = std::make_unique<uint64_t[]>(50000);
#pragma omp parallel for
        for (long at = 0; at < 50000; ++at)
            block[static_cast<size_t>(at)] = static_cast<uint64_t>(at);
        thread.join();
        total = total * 3 + sum + static_cast<uint64_t>(caught) + static_cast<uint64_t>(of_grows) +
                future.get() + block[7];
    }
    std::printf("total %016llx destroyed %ld\n", static_cast<unsigned long long>(total), destroyed.load());
    return core_end();
}
