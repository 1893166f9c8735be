// The simulated machine's model: caches, directory, homes of pages, what is counted of them. The program's
// memory is played by numbers: the model never looks behind an address.
#include "model.hpp"
#include "threads.hpp"

#include <cerrno>
#include <condition_variable>
#include <functional>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <list>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <rapidcheck/gtest.h>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unordered_map>

namespace homing::simulator::simulator_model_tests {
namespace {

constexpr int nodes = 4;
constexpr std::uint64_t page = 4096;
constexpr std::uint64_t line = 64;
constexpr std::uint64_t node_pages = 1024;
constexpr Cache own_cache{64 << 10, 4, 1};

/// One CPU a node: thread n of those that are alive is on node n.
Described machine(bool with_shared) {
    Described one;
    one.name = "four";
    for (int node = 0; node < nodes; ++node) {
        one.cpu_nodes.push_back(node);
        one.cpu_caches.push_back(node);
    }
    one.memory.assign(nodes, node_pages * page);
    one.distances = {{10, 20, 30, 40}, {20, 10, 20, 30}, {30, 20, 10, 20}, {40, 30, 20, 10}};
    one.own = own_cache;
    if (with_shared) one.shared = {256 << 10, 8, 1};
    for (Placement& placement : one.placements) {
        for (int cpu = 0; cpu < nodes; ++cpu)
            placement.places.push_back({cpu});
        placement.bindings = {Binding::spread};
    }
    one.distributions = {{"blocks", 0}, {"cycles", 2}};
    return one;
}

/// A thread that does what it is told, one piece after the other: its cache stays its own between them.
class Worker {
  public:
    Worker() : thread_([this] { work(); }) {}
    ~Worker() {
        give(nullptr);
        thread_.join();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void run(const std::function<void()>& piece) {
        give(&piece);
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !given_; });
    }

  private:
    void give(const std::function<void()>* piece) {
        const std::lock_guard lock(mutex_);
        piece_ = piece;
        given_ = true;
        changed_.notify_all();
    }
    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return given_; });
            if (!piece_) return;
            (*piece_)();
            given_ = false;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void()>* piece_ = nullptr;
    bool given_ = false;
    std::thread thread_;
};

void touch(Address address, bool write = false) {
    ASSERT_NE(attach(), nullptr);
    access_range(reinterpret_cast<const void*>(address), 1, write, nullptr);
}

void sweep(Address begin, std::uint64_t bytes, bool write = false) {
    for (std::uint64_t at = 0; at < bytes; at += line)
        touch(begin + at, write);
}

std::uint64_t sum(const std::vector<std::uint64_t>& values) {
    return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

/// What was counted since the last look.
class Counted {
  public:
    Totals look() {
        const Totals now = totals();
        Totals difference;
        difference.add_difference(now, before_);
        before_ = now;
        return difference;
    }

  private:
    Totals before_ = totals();
};

/// The tables are the process's: prepared once a machine, and each test has addresses of its own.
class SimulatorModel : public ::testing::Test {
  protected:
    void SetUp() override {
        const std::string& refused = prepared(with_shared());
        if (!refused.empty()) GTEST_SKIP() << refused; // ThreadSanitizer's address space is too small
        stated().initial = Initial::first_touch;
        next_epoch();
        base_ = next_base();
        // The main thread is the first that is there: node 0.
        touch(base_ - page);
        for (int i = 1; i < nodes; ++i) {
            workers_.push_back(std::make_unique<Worker>());
            workers_.back()->run([this] { touch(base_ - page); });
        }
    }
    virtual bool with_shared() const { return false; }

    void on(int node, const std::function<void()>& piece) {
        if (node == 0)
            piece();
        else
            workers_[static_cast<std::size_t>(node) - 1]->run(piece);
    }
    static Described& stated() {
        static Described one;
        return one;
    }
    static Address next_base() {
        static Address next = Address{1} << 36;
        return next += Address{1} << 30;
    }
    static const std::string& prepared(bool shared) {
        static int is = -1;
        static std::string refused;
        if (is != static_cast<int>(shared)) {
            is = static_cast<int>(shared);
            stated() = machine(shared);
            refused = prepare_model(stated());
        }
        return refused;
    }

    Address base_ = 0;
    std::vector<std::unique_ptr<Worker>> workers_;
};

TEST_F(SimulatorModel, ALineThatIsThereIsNoMiss) {
    Counted counted;
    const std::uint64_t bytes = own_cache.bytes / 2;
    sweep(base_, bytes);
    EXPECT_EQ(sum(counted.look().misses), bytes / line);
    for (int i = 0; i < 3; ++i)
        sweep(base_, bytes);
    const Totals again = counted.look();
    EXPECT_EQ(sum(again.misses), 0u);
    EXPECT_EQ(again.accesses, 3 * bytes / line);
}

TEST_F(SimulatorModel, MissesAreThoseOfALeastRecentlyUsedCache) {
    // The same accesses through a plain model written down here. The filter hides a little of their order.
    struct Set {
        std::list<std::uint64_t> lines;
    };
    const std::uint64_t sets = own_cache.bytes / line / own_cache.ways;
    std::vector<Set> plain(sets);
    std::uint64_t expected = 0;
    std::mt19937_64 random(7);
    Counted counted;
    const std::uint64_t lines = 2 * own_cache.bytes / line;
    for (int i = 0; i < 200000; ++i) {
        // Some lines are used more than others, as in programs.
        const std::uint64_t one = random() % lines * (random() % lines) / lines;
        auto& set = plain[(base_ / line + one) % sets].lines;
        const auto at = std::find(set.begin(), set.end(), one);
        if (at == set.end()) {
            ++expected;
            if (set.size() == own_cache.ways) set.pop_back();
        } else {
            set.erase(at);
        }
        set.push_front(one);
        touch(base_ + one * line, i % 3 == 0);
    }
    const auto found = static_cast<double>(sum(counted.look().misses));
    EXPECT_GT(expected, 20000u);
    EXPECT_NEAR(found / static_cast<double>(expected), 1.0, 0.02);
}

TEST_F(SimulatorModel, PagesLiveWhereTheyAreTouchedFirst) {
    for (int node = 0; node < nodes; ++node)
        on(node, [&] { sweep(base_ + static_cast<Address>(node) * page, page); });
    for (int node = 0; node < nodes; ++node)
        EXPECT_EQ(home_of(base_ + static_cast<Address>(node) * page), node);
    EXPECT_EQ(home_of(base_ + nodes * page), nowhere);
    Counted counted;
    on(2, [&] { sweep(base_, nodes * page); });
    const Totals found = counted.look();
    for (std::size_t home = 0; home < nodes; ++home)
        EXPECT_EQ(found.misses[2 * nodes + home], home == 2 ? 0 : page / line) << home;
    EXPECT_EQ(sum(found.misses), 3 * page / line);
}

TEST_F(SimulatorModel, InitialPlacements) {
    stated().initial = Initial::round_robin;
    on(3, [&] { sweep(base_, 8 * page); });
    for (Address i = 1; i < 8; ++i)
        EXPECT_EQ(home_of(base_ + i * page), (home_of(base_ + (i - 1) * page) + 1) % nodes);
    stated().initial = Initial::single_node;
    on(3, [&] { touch(base_ + 8 * page); });
    EXPECT_EQ(home_of(base_ + 8 * page), 0);
    stated().initial = Initial::random;
    std::vector<int> on_node(nodes, 0);
    for (Address i = 16; i < 416; ++i) {
        touch(base_ + i * page);
        ++on_node[static_cast<std::size_t>(home_of(base_ + i * page))];
    }
    for (const int count : on_node)
        EXPECT_NEAR(count, 100, 40);
    forget({base_, base_ + 416 * page});
}

TEST_F(SimulatorModel, AFullNodeSendsItsFirstTouchesToTheNearest) {
    const std::uint64_t room = free_bytes_of(1) / page;
    on(1, [&] {
        for (Address i = 0; i < room + 3; ++i)
            touch(base_ + i * page);
    });
    EXPECT_EQ(free_bytes_of(1), 0u);
    EXPECT_EQ(home_of(base_ + (room - 1) * page), 1);
    EXPECT_EQ(home_of(base_ + room * page), 0) << "20 from node 1, as node 2 is: the first of them";
    EXPECT_EQ(send(base_ + room * page, 1), ENOMEM);
    forget({base_, base_ + (room + 3) * page});
    EXPECT_EQ(free_bytes_of(1) / page, room);
    EXPECT_EQ(home_of(base_), nowhere);
}

TEST_F(SimulatorModel, AWriteTakesTheLineAwayFromOthers) {
    sweep(base_, page);
    on(1, [&] { sweep(base_, page); });
    Counted counted;
    sweep(base_, page);
    EXPECT_EQ(sum(counted.look().misses), 0u) << "both may hold it while nobody writes";
    on(1, [&] { sweep(base_, page, true); });
    EXPECT_EQ(sum(counted.look().misses), 0u) << "it has the line, and asks to write only";
    sweep(base_, page);
    const Totals found = counted.look();
    EXPECT_EQ(found.misses[0], page / line);
    EXPECT_EQ(sum(found.misses), page / line);
    EXPECT_EQ(found.invalidations, page / line);
    sweep(base_, page);
    EXPECT_EQ(sum(counted.look().misses), 0u);
}

TEST_F(SimulatorModel, APageThatIsSentIsColdInEveryCache) {
    sweep(base_, 2 * page);
    on(1, [&] { sweep(base_, 2 * page); });
    EXPECT_EQ(send(base_, 3), 0);
    EXPECT_EQ(home_of(base_ + 17), 3);
    EXPECT_EQ(home_of(base_ + page), 0);
    Counted counted;
    sweep(base_, 2 * page);
    on(1, [&] { sweep(base_, 2 * page); });
    const Totals found = counted.look();
    EXPECT_EQ(found.misses[0 * nodes + 3], page / line);
    EXPECT_EQ(found.misses[1 * nodes + 3], page / line);
    EXPECT_EQ(sum(found.misses), 2 * page / line) << "the other page stayed";

    EXPECT_EQ(send(base_, 3), 0) << "it is there";
    EXPECT_EQ(send(base_, nodes), ENODEV);
    EXPECT_EQ(send(base_, -1), ENODEV);
    EXPECT_EQ(send(base_ + 10 * page, 1), EFAULT) << "nobody touched it";
}

TEST_F(SimulatorModel, PoliciesDecideForPagesToCome) {
    bind_range({base_, base_ + 8 * page}, MPOL_INTERLEAVE, 0b1010);
    bind_range({base_ + 8 * page, base_ + 9 * page}, MPOL_PREFERRED, 0b0100);
    int mode = 0;
    std::uint64_t allowed = 0;
    policy_of(base_ + 8 * page, mode, allowed);
    EXPECT_EQ(mode, MPOL_PREFERRED);
    EXPECT_EQ(allowed, 0b0100u);
    sweep(base_, 10 * page);
    for (Address i = 0; i < 8; ++i)
        EXPECT_EQ(home_of(base_ + i * page), home_of(base_) == 1 ? (i % 2 ? 3 : 1) : (i % 2 ? 1 : 3));
    EXPECT_EQ(home_of(base_ + 8 * page), 2);
    EXPECT_EQ(home_of(base_ + 9 * page), 0) << "no policy";
    bind_range({base_, base_ + 9 * page}, MPOL_DEFAULT, 0);
    policy_of(base_ + 8 * page, mode, allowed);
    EXPECT_EQ(allowed, 0u);
}

TEST_F(SimulatorModel, ProtectionThatNobodyWaitsForIsLifted) {
    sweep(base_, 2 * page);
    set_protection({base_, base_ + page}, true);
    forget_filters();
    EXPECT_TRUE(is_protected(base_));
    EXPECT_FALSE(is_protected(base_ + page));
    EXPECT_EQ(home_of(base_), 0) << "protected, and at home";
    Counted counted;
    sweep(base_, 2 * page);
    EXPECT_FALSE(is_protected(base_)) << "no window is open: it is met once";
    EXPECT_EQ(sum(counted.look().misses), 0u) << "the lines were never gone";
}

TEST_F(SimulatorModel, MissesOfAnAreaByNodeAndHome) {
    on(1, [&] { sweep(base_, 4 * page); }); // before anybody knew of the area
    begin_area(5, {base_, base_ + 4 * page}, "field");
    on(2, [&] { sweep(base_, 4 * page); });
    std::vector<std::uint64_t> found;
    add_area_misses(5, found);
    EXPECT_EQ(found[1 * nodes + 1], 4 * page / line);
    EXPECT_EQ(found[2 * nodes + 1], 4 * page / line);
    EXPECT_EQ(sum(found), 8 * page / line);
    end_area(5, {base_, base_ + 4 * page});
    on(3, [&] { sweep(base_, 4 * page); });
    found.clear();
    add_area_misses(5, found);
    EXPECT_EQ(sum(found), 8 * page / line) << "it has ended";
    begin_area(6, {base_, base_ + 4 * page}, "next");
    found.clear();
    add_area_misses(6, found);
    EXPECT_EQ(sum(found), 0u) << "what was missed before is not its own";
    release_area(5);
    begin_area(5, {base_ + 8 * page, base_ + 9 * page}, "another");
    on(3, [&] { sweep(base_ + 8 * page, page); });
    found.clear();
    add_area_misses(5, found);
    EXPECT_EQ(found[3 * nodes + 3], page / line);
    EXPECT_EQ(sum(found), page / line) << "its number is another one's";
}

TEST_F(SimulatorModel, DistributionsPlaceWhatIsThereAndWhatComes) {
    sweep(base_, 2 * page);
    begin_area(6, {base_, base_ + 8 * page}, "blocks");
    begin_area(7, {base_ + 8 * page, base_ + 16 * page}, "cycles");
    begin_area(8, {base_ + 16 * page, base_ + 17 * page}, "another");
    for (Address i = 0; i < 8; ++i) {
        EXPECT_EQ(home_of(base_ + i * page), static_cast<int>(i / 2)) << i;
        EXPECT_EQ(home_of(base_ + (8 + i) * page), static_cast<int>(i / 2 % nodes)) << i;
    }
    EXPECT_EQ(home_of(base_ + 16 * page), nowhere);
}

TEST_F(SimulatorModel, MemoryThatMovesTakesItsHomesAlong) {
    for (int node = 0; node < nodes; ++node)
        on(node, [&] { touch(base_ + static_cast<Address>(node) * page); });
    const Address there = base_ + 100 * page;
    move_pages_of({base_, base_ + 4 * page}, {there, there + 4 * page});
    for (int node = 0; node < nodes; ++node) {
        EXPECT_EQ(home_of(there + static_cast<Address>(node) * page), node);
        EXPECT_EQ(home_of(base_ + static_cast<Address>(node) * page), nowhere);
        EXPECT_EQ(page_misses(there + static_cast<Address>(node) * page)[node], 1u);
    }
}

TEST_F(SimulatorModel, TheOraclePutsEachPageWhereItIsMissedMost) {
    const std::uint64_t before = oracle_remote();
    sweep(base_, page);
    on(2, [&] {
        sweep(base_, page);
        sweep(base_ + page, own_cache.bytes * 2); // out of the cache
        sweep(base_, page);
    });
    // Node 2 missed on the page twice, node 0 once; the other pages are node 2's alone.
    EXPECT_EQ(oracle_remote() - before, page / line);
    forget({base_, base_ + page});
    EXPECT_EQ(oracle_remote() - before, page / line) << "what is gone was missed all the same";
}

class SimulatorModelShared : public SimulatorModel {
  protected:
    bool with_shared() const override { return true; }
};

TEST_F(SimulatorModelShared, TheSharedCacheServesWhatThePrivateOneLost) {
    const std::uint64_t bytes = 2 * own_cache.bytes; // too much for the private one, half of the shared one
    Counted counted;
    sweep(base_, bytes);
    EXPECT_EQ(sum(counted.look().misses), bytes / line);
    sweep(base_, bytes);
    const Totals again = counted.look();
    EXPECT_EQ(sum(again.misses), 0u);
    EXPECT_GT(again.shared_hits, bytes / line / 2);
    on(1, [&] { sweep(base_, page, true); });
    counted.look();
    sweep(base_, page);
    EXPECT_EQ(sum(counted.look().misses), page / line) << "written by another node: outdated there as well";
}

TEST(SimulatorModelPrepared, SaysWhatIsMissingWithoutAddressSpace) {
    const auto prepare_in_little = [] {
        const rlimit little{std::uint64_t{1} << 34, std::uint64_t{1} << 34};
        ::setrlimit(RLIMIT_AS, &little);
        static const Described one = machine(false);
        const std::string said = prepare_model(one);
        std::fprintf(stderr, "%s\n", said.c_str());
        std::_Exit(said.empty() ? 1 : 0);
    };
    EXPECT_EXIT(prepare_in_little(), ::testing::ExitedWithCode(0), "vm.overcommit_memory must not be 2");
}

} // namespace
} // namespace homing::simulator::simulator_model_tests
