// OpenMP: worksharing, tasks, tasks with locality queues, the affinity clause, nested teams.
#include "variants.hpp"

#include <algorithm>
#include <homing/tasks.hpp>
#include <omp.h>

namespace wittmann {

void HomeCount::ran(const Block& block) noexcept {
    if (block.home < 0 && runs_.empty()) return;
    const int here = homing_domain_here(HOMING_BY_NODE);
    if (!runs_.empty())
        if (const std::size_t at = next_run_.fetch_add(1, std::memory_order_relaxed); at < runs_.size())
            runs_[at] = {here, block.home};
    if (block.home < 0) return;
    known_.fetch_add(1, std::memory_order_relaxed);
    if (here == block.home) at_home_.fetch_add(1, std::memory_order_relaxed);
}

void find_homes(Grid& grid) {
    for (long n = 0; n < grid.count(); ++n) {
        Block& block = grid.block(n);
        // The lines of the middle plane: those of one plane are contiguous.
        block.home = homing_domain_of(grid.lines(block, (block.i0 + block.i1) / 2), grid.line_bytes(block));
    }
}

namespace {

class Omp : public Variant {
  public:
    Omp(const Choice& choice, Grid& grid, HomeCount& count) : choice_(choice), grid_(grid), count_(count) {}

    void initialise() override {
        const long blocks = grid_.count();
        if (choice_.initialise == "serial" || choice_.initialise == "round-robin") {
            if (choice_.initialise == "round-robin")
                for (const int which : {0, 1})
                    homing_place_round_robin(grid_.begin(which),
                                             static_cast<std::size_t>(grid_.grid_bytes()));
            for (long n = 0; n < blocks; ++n)
                fill(n);
        } else if (choice_.initialise == "s1") {
#pragma omp parallel for schedule(static, 1)
            for (long n = 0; n < blocks; ++n)
                fill(n);
        } else {
#pragma omp parallel for schedule(static)
            for (long n = 0; n < blocks; ++n)
                fill(n);
        }
    }

  protected:
    void fill(long n) {
        grid_.fill(grid_.block(n));
        grid_.block(n).home = homing_domain_here(HOMING_BY_NODE);
    }
    void run(long n) {
        const Block& block = grid_.block(n);
        for (long time = 0; time < choice_.work; ++time)
            grid_.sweep(block);
        count_.ran(block);
    }
    long in_order(long n) const { return grid_.in_order(n, choice_.kji); }

    Choice choice_;
    Grid& grid_;
    HomeCount& count_;
};

struct Static final : Omp {
    using Omp::Omp;
    void sweep() override {
#pragma omp parallel for schedule(static)
        for (long n = 0; n < grid_.count(); ++n)
            run(n);
    }
};

struct Dynamic final : Omp {
    using Omp::Omp;
    void sweep() override {
#pragma omp parallel for schedule(dynamic)
        for (long n = 0; n < grid_.count(); ++n)
            run(in_order(n));
    }
};

struct Tasks final : Omp {
    using Omp::Omp;
    void sweep() override {
#pragma omp parallel
#pragma omp single
        for (long n = 0; n < grid_.count(); ++n) {
            const long number = in_order(n);
#pragma omp task firstprivate(number)
            run(number);
        }
    }
};

/// Submitted by all threads (end of section 2.1's first part), each its part of the blocks in order.
struct TasksAll final : Omp {
    using Omp::Omp;
    void sweep() override {
#pragma omp parallel for schedule(static)
        for (long n = 0; n < grid_.count(); ++n) {
            const long number = in_order(n);
#pragma omp task firstprivate(number)
            run(number);
        }
    }
};

/// All blocks queued, then as many tasks.
struct Queued final : Omp {
    using Omp::Omp;
    homing::LocalityQueues<long> queues;
    void sweep() override {
        for (long n = 0; n < grid_.count(); ++n) {
            const long number = in_order(n);
            queues.put(number, grid_.block(number).home);
        }
#pragma omp parallel
#pragma omp single
        homing::run_omp_tasks(queues, [this](long number) { run(number); });
    }
};

/// As in section 2.2: a block is queued and its task submitted, one after the other.
struct QueuedPaper final : Omp {
    using Omp::Omp;
    homing::LocalityQueues<long> queues;
    void sweep() override {
#pragma omp parallel
#pragma omp single
        for (long n = 0; n < grid_.count(); ++n) {
            const long number = in_order(n);
            queues.put(number, grid_.block(number).home);
#pragma omp task
            queues.run_one([this](long block) { run(block); });
        }
    }
};

/// The same, submitted by all threads.
struct QueuedPaperAll final : Omp {
    using Omp::Omp;
    homing::LocalityQueues<long> queues;
    void sweep() override {
#pragma omp parallel for schedule(static)
        for (long n = 0; n < grid_.count(); ++n) {
            const long number = in_order(n);
            queues.put(number, grid_.block(number).home);
#pragma omp task
            queues.run_one([this](long block) { run(block); });
        }
    }
};

/// The standard's own words; `homing run --tasks affinity` follows them.
struct Clause final : Omp {
    using Omp::Omp;
    void sweep() override {
#pragma omp parallel
#pragma omp single
        for (long n = 0; n < grid_.count(); ++n) {
            const long number = in_order(n);
            const Block& block = grid_.block(number);
            [[maybe_unused]] const double* lines = grid_.lines(block, (block.i0 + block.i1) / 2);
            [[maybe_unused]] const std::size_t sites = grid_.line_bytes(block) / sizeof(double);
#pragma omp task affinity(lines[0 : sites]) firstprivate(number)
            run(number);
        }
    }
    std::string remark() const override {
#if defined(__clang__)
        return {};
#else
        return "this compiler drops the affinity clause";
#endif
    }
};

/// One team a domain (end of section 2.2): the outer threads share the domains, their teams the blocks.
struct Nested final : Omp {
    using Omp::Omp;
    std::vector<std::vector<long>> blocks;
    void initialise() override {
        omp_set_max_active_levels(2);
        Omp::initialise();
    }
    void sweep() override {
        const int domains = homing_domains(HOMING_BY_NODE);
        if (blocks.empty()) {
            blocks.resize(static_cast<std::size_t>(domains));
            for (long n = 0; n < grid_.count(); ++n)
                blocks[static_cast<std::size_t>(std::max(grid_.block(n).home, 0))].push_back(n);
        }
        const int each = std::max(1, choice_.threads / domains);
        std::vector<std::atomic_flag> taken(static_cast<std::size_t>(domains));
#pragma omp parallel num_threads(domains) proc_bind(spread)
        {
            // Outer threads are not numbered as domains are: each takes the one where it is, if that is free.
            int domain = std::max(homing_domain_here(HOMING_BY_NODE), 0);
            while (taken[static_cast<std::size_t>(domain)].test_and_set())
                domain = (domain + 1) % domains;
            const std::vector<long>& own = blocks[static_cast<std::size_t>(domain)];
#pragma omp parallel for num_threads(each) proc_bind(close) schedule(dynamic)
            for (std::size_t n = 0; n < own.size(); ++n)
                run(own[n]);
        }
    }
};

} // namespace

std::unique_ptr<Variant> make_omp_variant(const Choice& choice, Grid& grid, HomeCount& count) {
    if (choice.variant == "static") return std::make_unique<Static>(choice, grid, count);
    if (choice.variant == "dynamic") return std::make_unique<Dynamic>(choice, grid, count);
    if (choice.variant == "tasks") return std::make_unique<Tasks>(choice, grid, count);
    if (choice.variant == "tasks-all") return std::make_unique<TasksAll>(choice, grid, count);
    if (choice.variant == "paper-all") return std::make_unique<QueuedPaperAll>(choice, grid, count);
    if (choice.variant == "queues") return std::make_unique<Queued>(choice, grid, count);
    if (choice.variant == "paper") return std::make_unique<QueuedPaper>(choice, grid, count);
    if (choice.variant == "clause") return std::make_unique<Clause>(choice, grid, count);
    if (choice.variant == "nested") return std::make_unique<Nested>(choice, grid, count);
    return nullptr;
}

} // namespace wittmann
