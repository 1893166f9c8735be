// What locality queues cost and bring, measured side by side in one process: `homing bench tasks`
// (homing/bench/tasks.py).
//
//   tasks cost MICROSECONDS TASKS ROUNDS    nanoseconds a task: plain OpenMP tasks, queues, the clause, TBB,
//   TBB with queues tasks throughput THREADS ROUNDS         million blocks a second put and taken tasks
//   imbalance MICROSECONDS TASKS ROUNDS   finishing time where one domain has twice the blocks of each other
//   one tasks home BLOCKS KIB PASSES SWEEPS WEIGHT     share of tasks at home, domain 0 having WEIGHT times
//   the blocks of the others
//
// Prints lines "name: value value ..."; values of one round stand at the same place in every line.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <homing/tasks.hpp>
#include <memory>
#include <mutex>
#include <omp.h>
#include <queue>
#include <string>
#include <tbb/blocked_range.h>
#include <tbb/concurrent_queue.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <thread>
#include <vector>

namespace {

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Work that takes the same number of instructions each time, and cannot be left out.
double spin(long turns, double start) {
    double x = start;
    for (long n = 0; n < turns; ++n)
        x = x * 0.999 + 1;
    return x;
}
long turns_of(double microseconds) {
    double best = 1e300;
    for (int round = 0; round < 20; ++round) {
        const double begin = seconds();
        volatile double sink = spin(100000, round);
        (void)sink;
        best = std::min(best, seconds() - begin);
    }
    return static_cast<long>(microseconds * 1e-6 / best * 100000);
}

void print(const std::string& name, const std::vector<double>& values) {
    std::printf("%s:", name.c_str());
    for (const double value : values)
        std::printf(" %.6g", value);
    std::printf("\n");
}

/// The kinds of tasking take turns, so that what disturbs the machine disturbs all alike.
struct Kind {
    const char* name;
    std::function<void()> run;
    std::vector<double> values;
};
void take_turns(std::vector<Kind>& kinds, int rounds, double scale) {
    for (Kind& kind : kinds)
        kind.run(); // threads, memory, what TBB's partitioner learns
    for (int round = 0; round < rounds; ++round)
        for (std::size_t n = 0; n < kinds.size(); ++n) {
            Kind& kind = kinds[(n + static_cast<std::size_t>(round)) % kinds.size()];
            const double begin = seconds();
            kind.run();
            kind.values.push_back((seconds() - begin) * scale);
        }
    for (const Kind& kind : kinds)
        print(kind.name, kind.values);
}

struct Load {
    std::vector<double> out; ///< a cache line a block
    std::vector<int> home;
    long turns = 0;
    long tasks() const { return static_cast<long>(home.size()); }
    void work(long block) {
        double& place = out[static_cast<std::size_t>(block) * 8];
        place = spin(turns, place);
    }
};

/// Blocks in the order of their homes, the first domain having `weight` times as many as each other one.
Load load_of(long tasks, double weight, long turns) {
    Load load;
    load.turns = turns;
    const int domains = homing_domains(HOMING_BY_NODE);
    const double all = weight + domains - 1;
    for (long n = 0; n < tasks; ++n) {
        const double place = static_cast<double>(n) / static_cast<double>(tasks) * all - weight;
        load.home.push_back(place < 0 ? 0 : std::min(domains - 1, 1 + static_cast<int>(place)));
    }
    load.out.resize(static_cast<std::size_t>(tasks) * 8, 1.0);
    return load;
}

void run_omp(Load& load) {
#pragma omp parallel
#pragma omp single
    for (long n = 0; n < load.tasks(); ++n) {
#pragma omp task firstprivate(n) shared(load)
        load.work(n);
    }
}

#if defined(__clang__) // gcc drops the clause
void run_clause(Load& load) {
#pragma omp parallel
#pragma omp single
    for (long n = 0; n < load.tasks(); ++n) {
        [[maybe_unused]] const double* place = &load.out[static_cast<std::size_t>(n) * 8];
#pragma omp task affinity(place[0 : 8]) firstprivate(n) shared(load)
        load.work(n);
    }
}

#endif

void run_queues(Load& load, homing::LocalityQueues<long>& queues) {
    for (long n = 0; n < load.tasks(); ++n)
        queues.put(n, load.home[static_cast<std::size_t>(n)]);
#pragma omp parallel
#pragma omp single
    homing::run_omp_tasks(queues, [&](long n) { load.work(n); });
}

int cost(double microseconds, long tasks, int rounds) {
    Load load = load_of(tasks, 1, turns_of(microseconds));
    homing::LocalityQueues<long> queues;
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(omp_get_max_threads()));
    tbb::affinity_partitioner plain, queued;
    using Range = tbb::blocked_range<long>;
    const auto work = [&](long n) { load.work(n); };
    std::vector<Kind> kinds{
        {"omp", [&] { run_omp(load); }, {}},
        {"queues", [&] { run_queues(load, queues); }, {}},
        {"tbb",
         [&] {
             tbb::parallel_for(
                 Range(0, tasks),
                 [&](const Range& range) {
                     for (long n = range.begin(); n != range.end(); ++n)
                         load.work(n);
                 },
                 plain);
         },
         {}},
        {"tbb_queues",
         [&] {
             for (long n = 0; n < tasks; ++n)
                 queues.put(n, load.home[static_cast<std::size_t>(n)]);
             tbb::parallel_for(Range(0, tasks), homing::QueueBody(queues, work), queued);
         },
         {}},
    };
#if defined(__clang__)
    kinds.push_back({"clause", [&] { run_clause(load); }, {}});
#endif
    take_turns(kinds, rounds, 1e9 / static_cast<double>(tasks));
    return 0;
}

/// What everybody would write first.
class MutexQueue {
  public:
    void push(long block) {
        const std::lock_guard hold(lock_);
        blocks_.push(block);
    }
    bool try_pop(long& block) {
        const std::lock_guard hold(lock_);
        if (blocks_.empty()) return false;
        block = blocks_.front();
        blocks_.pop();
        return true;
    }

  private:
    std::mutex lock_;
    std::queue<long> blocks_;
};

/// Each thread puts `batch` blocks, then takes as many, over and over.
template <class Put, class Take> void exercise(int threads, const Put& put, const Take& take) {
    constexpr long batch = 100, batches = 1000;
    std::vector<std::thread> team;
    for (int thread = 0; thread < threads; ++thread)
        team.emplace_back([&, thread] {
            for (long n = 0; n < batches; ++n) {
                for (long k = 0; k < batch; ++k)
                    put(thread, k);
                for (long k = 0; k < batch; ++k)
                    take(thread);
            }
        });
    for (std::thread& thread : team)
        thread.join();
}

int throughput(int threads, int rounds) {
    const int domains = homing_domains(HOMING_BY_NODE);
    const homing::Domains one{1, nullptr, nullptr};
    homing::LocalityQueues<long> shared({one, "one domain", 0});
    homing::LocalityQueues<long> queues; // a domain for each thread, as far as there are domains
    tbb::concurrent_queue<long> concurrent;
    MutexQueue locked;
    const auto failed = [] { std::abort(); };
    std::vector<Kind> kinds{
        {"queues_one_domain",
         [&] {
             exercise(
                 threads, [&](int, long k) { shared.put(k, 0); },
                 [&](int) { shared.take() ? void() : failed(); });
         },
         {}},
        {"queues",
         [&] {
             exercise(
                 threads, [&](int thread, long k) { queues.put(k, thread % domains); },
                 [&](int) { queues.take() ? void() : failed(); });
         },
         {}},
        {"tbb_concurrent_queue",
         [&] {
             exercise(
                 threads, [&](int, long k) { concurrent.push(k); },
                 [&](int) {
                     long block = 0;
                     if (!concurrent.try_pop(block)) failed();
                 });
         },
         {}},
        {"mutex",
         [&] {
             exercise(
                 threads, [&](int, long k) { locked.push(k); },
                 [&](int) {
                     long block = 0;
                     if (!locked.try_pop(block)) failed();
                 });
         },
         {}},
    };
    std::printf("blocks: %ld\n", 100000L * threads);
    take_turns(kinds, rounds, 1);
    return 0;
}

int imbalance(double microseconds, long tasks, int rounds) {
    Load load = load_of(tasks, 2, turns_of(microseconds));
    homing::LocalityQueues<long> queues;
    std::vector<Kind> kinds{{"omp", [&] { run_omp(load); }, {}},
                            {"queues", [&] { run_queues(load, queues); }, {}}};
    take_turns(kinds, rounds, 1e3);
    std::printf("at_home: %.6g\n",
                static_cast<double>(queues.taken_at_home()) /
                    static_cast<double>(queues.taken_at_home() + queues.taken_elsewhere()));
    return 0;
}

int home(long blocks, long kib, int passes, int sweeps, double weight) {
    const Load load = load_of(blocks, weight, 0);
    // Integers: QEMU adds doubles fast only in threads that have once rounded (its hardfloat wants the
    // inexact flag set), so the first thread, which reads clocks, would do a third more work than the others.
    using Word = std::uint64_t;
    const std::size_t words = static_cast<std::size_t>(kib) * 1024 / sizeof(Word);
    const std::size_t bytes = words * sizeof(Word);
    auto* data = static_cast<Word*>(std::aligned_alloc(4096, static_cast<std::size_t>(blocks) * bytes));
    if (!data) return 1;
    // First touch by a thread of the block's domain.
    std::vector<int> homes(static_cast<std::size_t>(blocks));
#pragma omp parallel
    for (long n = 0; n < blocks; ++n)
        if (load.home[static_cast<std::size_t>(n)] == homing_domain_here(HOMING_BY_NODE))
            std::memset(data + static_cast<std::size_t>(n) * words, 0, bytes);
    for (long n = 0; n < blocks; ++n)
        homes[static_cast<std::size_t>(n)] =
            homing_domain_of(data + static_cast<std::size_t>(n) * words, bytes);
    std::atomic<long> at_home{0}, ran{0};
    const auto work = [&](long n) {
        const std::size_t block = static_cast<std::size_t>(n);
        for (int pass = 0; pass < passes; ++pass)
            for (std::size_t k = 0; k < words; ++k)
                data[block * words + k] += 1;
        ran.fetch_add(1);
        if (homing_domain_here(HOMING_BY_NODE) == homes[block]) at_home.fetch_add(1);
    };
    homing::LocalityQueues<long> queues;
    const auto measure = [&](const char* name, const std::function<void()>& sweep) {
        std::vector<double> shares, times;
        for (int n = 0; n < sweeps; ++n) {
            at_home = ran = 0;
            const double begin = seconds();
            sweep();
            times.push_back(seconds() - begin);
            shares.push_back(static_cast<double>(at_home) / static_cast<double>(ran));
        }
        print(name, shares);
        print(std::string("time ") + name, times);
    };
    measure("omp", [&] {
#pragma omp parallel
#pragma omp single
        for (long n = 0; n < blocks; ++n) {
#pragma omp task firstprivate(n)
            work(n);
        }
    });
    measure("queues", [&] {
        for (long n = 0; n < blocks; ++n)
            queues.put(n, homes[static_cast<std::size_t>(n)]);
#pragma omp parallel
#pragma omp single
        homing::run_omp_tasks(queues, work);
    });
    measure("clause", [&] {
#pragma omp parallel
#pragma omp single
        for (long n = 0; n < blocks; ++n) {
            [[maybe_unused]] const Word* block = data + static_cast<std::size_t>(n) * words;
#pragma omp task affinity(block[0 : words]) firstprivate(n)
            work(n);
        }
    });
    Word sum = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(blocks) * words; ++k)
        sum += data[k];
    std::printf("verification: %s\n", sum == Word{3} * static_cast<Word>(passes) * static_cast<Word>(sweeps) *
                                                  static_cast<Word>(blocks) * words
                                          ? "successful"
                                          : "failed");
    std::free(data);
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    const auto number = [&](int at) { return at < argc ? std::atof(argv[at]) : 0.0; };
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "cost" && argc == 5) return cost(number(2), std::atol(argv[3]), std::atoi(argv[4]));
    if (mode == "throughput" && argc == 4) return throughput(std::atoi(argv[2]), std::atoi(argv[3]));
    if (mode == "imbalance" && argc == 5) return imbalance(number(2), std::atol(argv[3]), std::atoi(argv[4]));
    if (mode == "home" && argc == 7)
        return home(std::atol(argv[2]), std::atol(argv[3]), std::atoi(argv[4]), std::atoi(argv[5]),
                    number(6));
    std::fprintf(
        stderr, "usage: tasks cost US TASKS ROUNDS | throughput THREADS ROUNDS | imbalance US TASKS ROUNDS | "
                "home BLOCKS KIB PASSES SWEEPS WEIGHT\n");
    return 2;
}
