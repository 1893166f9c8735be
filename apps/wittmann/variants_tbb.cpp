// oneTBB: parallel_for, pinned or not, with and without the affinity partitioner, with locality queues; and
// one arena a NUMA node.
#include "variants.hpp"

#include <algorithm>
#include <homing/tasks.hpp>
#include <sched.h>
#include <tbb/blocked_range.h>
#include <tbb/blocked_range3d.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_for_each.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <tbb/task_scheduler_observer.h>

namespace wittmann {
namespace {

/// Each thread that enters the arena gets a CPU of the process for itself, as long as it stays.
class Pin final : public tbb::task_scheduler_observer {
  public:
    Pin() {
        cpu_set_t all;
        if (::sched_getaffinity(0, sizeof all, &all) == 0)
            for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
                if (CPU_ISSET(cpu, &all)) cpus_.push_back(cpu);
        observe(true);
    }
    ~Pin() override { observe(false); }
    void on_scheduler_entry(bool) override {
        if (cpus_.empty()) return;
        const auto slot = static_cast<std::size_t>(std::max(tbb::this_task_arena::current_thread_index(), 0));
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<std::size_t>(cpus_[slot % cpus_.size()]), &one);
        ::sched_setaffinity(0, sizeof one, &one);
    }

  private:
    std::vector<int> cpus_;
};

class Tbb : public Variant {
  public:
    Tbb(const Choice& choice, Grid& grid, HomeCount& count)
        : choice_(choice), grid_(grid), count_(count),
          limit_(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(choice.threads)) {
        if (choice.pin) pin_ = std::make_unique<Pin>();
    }
    /// First touch by the same loop (section 3.1), in which the affinity partitioner learns.
    void initialise() override {
        loop([this](long n) {
            grid_.fill(grid_.block(n));
            grid_.block(n).home = homing_domain_here(HOMING_BY_NODE);
        });
    }
    void sweep() override {
        loop([this](long n) { run(n); });
    }

  protected:
    using Range = tbb::blocked_range3d<long>;
    using Line = tbb::blocked_range<long>;
    template <class All, class Body> void parallel_over(const All& all, const Body& body) {
        if (choice_.partitioner)
            tbb::parallel_for(all, body, partitioner_);
        else
            tbb::parallel_for(all, body);
    }
    template <class Body> void parallel(const Body& body) {
        if (choice_.line)
            parallel_over(Line(0, grid_.count(), 1), body);
        else
            parallel_over(Range(0, grid_.blocks_i(), 1, 0, grid_.blocks_j(), 1, 0, 1, 1), body);
    }
    /// The blocks of a range; rows are jb, pages are ib.
    template <class Work> void each(const Range& range, const Work& work) const {
        for (long ib = range.pages().begin(); ib != range.pages().end(); ++ib)
            for (long jb = range.rows().begin(); jb != range.rows().end(); ++jb)
                work(ib * grid_.blocks_j() + jb);
    }
    template <class Work> void each(const Line& line, const Work& work) const {
        for (long n = line.begin(); n != line.end(); ++n)
            work(n);
    }
    template <class Work> void loop(const Work& work) {
        parallel([&](const auto& range) { each(range, work); });
    }
    void run(long n) {
        const Block& block = grid_.block(n);
        for (long time = 0; time < choice_.work; ++time)
            grid_.sweep(block);
        count_.ran(block);
    }

    Choice choice_;
    Grid& grid_;
    HomeCount& count_;
    tbb::global_control limit_;
    std::unique_ptr<Pin> pin_;
    tbb::affinity_partitioner partitioner_;
};

/// All blocks queued, then one index a block.
struct TbbQueued final : Tbb {
    using Tbb::Tbb;
    homing::LocalityQueues<long> queues;
    void sweep() override {
        for (long n = 0; n < grid_.count(); ++n)
            queues.put(n, grid_.block(n).home);
        const auto work = [this](long n) { run(n); };
        parallel(homing::QueueBody(queues, work));
    }
};

/// As in section 3.2: the functor queues the blocks of its range, then works on as many.
struct TbbQueuedPaper final : Tbb {
    using Tbb::Tbb;
    homing::LocalityQueues<long> queues;
    void sweep() override {
        const auto work = [this](long n) { run(n); };
        const homing::QueueBody body(queues, work);
        parallel([&](const auto& range) {
            each(range, [&](long n) { queues.put(n, grid_.block(n).home); });
            body(range);
        });
    }
};

/// What the paper could not yet try in time (parallel_do of its day).
struct TbbForEach final : Tbb {
    using Tbb::Tbb;
    homing::LocalityQueues<long> queues;
    std::vector<long> order;
    void sweep() override {
        order.clear();
        for (long n = 0; n < grid_.count(); ++n) {
            order.push_back(grid_.in_order(n, choice_.kji));
            queues.put(order.back(), grid_.block(order.back()).home);
        }
        const auto work = [this](long n) { run(n); };
        tbb::parallel_for_each(order.begin(), order.end(), homing::QueueBody(queues, work));
    }
};

/// Today's peer: an arena a NUMA node, bound by TBB itself; each node's blocks in its arena.
struct TbbArena final : Tbb {
    using Tbb::Tbb;
    std::vector<std::unique_ptr<tbb::task_arena>> arenas;
    std::vector<std::vector<long>> blocks;
    void arrange() {
        const std::vector<tbb::numa_node_id> nodes = tbb::info::numa_nodes();
        const int each_one = std::max(1, choice_.threads / static_cast<int>(nodes.size()));
        for (const tbb::numa_node_id node : nodes) {
            tbb::task_arena::constraints where(node);
            where.set_max_concurrency(each_one);
            arenas.push_back(std::make_unique<tbb::task_arena>(where));
        }
        blocks.resize(arenas.size());
    }
    template <class Work> void in_arenas(const Work& work) {
        std::vector<tbb::task_group> groups(arenas.size());
        for (std::size_t a = 0; a < arenas.size(); ++a)
            arenas[a]->execute([&, a] {
                groups[a].run([&, a] {
                    tbb::parallel_for(std::size_t{0}, blocks[a].size(),
                                      [&](std::size_t n) { work(blocks[a][n]); });
                });
            });
        for (std::size_t a = 0; a < arenas.size(); ++a)
            arenas[a]->execute([&, a] { groups[a].wait(); });
    }
    void initialise() override {
        arrange();
        for (long n = 0; n < grid_.count(); ++n)
            blocks[static_cast<std::size_t>(n) * arenas.size() / static_cast<std::size_t>(grid_.count())]
                .push_back(n);
        in_arenas([this](long n) {
            grid_.fill(grid_.block(n));
            grid_.block(n).home = homing_domain_here(HOMING_BY_NODE);
        });
    }
    void sweep() override {
        in_arenas([this](long n) { run(n); });
    }
    std::string remark() const override {
        const int domains = homing_domains(HOMING_BY_NODE);
        if (static_cast<int>(arenas.size()) == domains) return {};
        return "TBB sees " + std::to_string(arenas.size()) + " NUMA node(s) of " + std::to_string(domains) +
               " (libtbbbind is not installed, or the domains are pretended)";
    }
};

} // namespace

std::unique_ptr<Variant> make_tbb_variant(const Choice& choice, Grid& grid, HomeCount& count) {
    if (choice.variant == "tbb") return std::make_unique<Tbb>(choice, grid, count);
    if (choice.variant == "tbb-queues") return std::make_unique<TbbQueued>(choice, grid, count);
    if (choice.variant == "tbb-paper") return std::make_unique<TbbQueuedPaper>(choice, grid, count);
    if (choice.variant == "tbb-for-each") return std::make_unique<TbbForEach>(choice, grid, count);
    if (choice.variant == "tbb-arena") return std::make_unique<TbbArena>(choice, grid, count);
    return nullptr;
}

} // namespace wittmann
