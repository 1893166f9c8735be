// A pretended program over the simulated kernel, for tests of the whole engine: it enters regions, its
// threads touch pages, and the engine that ships observes, decides and moves. Only the addresses are real
// (the engine asks /proc which parts of an area may be protected); pages, nodes, policies and protections are
// the simulator's.
#pragma once

#include "areas/areas.hpp"
#include "areas/dispatch.hpp" // has parameters called `nodes`, which would shadow ours
#include "base/clock.hpp"
#include "engine/engine.hpp"
#include "failing.hpp"
#include "kernel/simulated.hpp"
#include "machines.hpp"

#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace homing {

inline constexpr int nodes = 4; ///< of a program that does not say otherwise

class Variable {
  public:
    Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
    ~Variable() { ::unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

  private:
    const char* name_;
};

/// Simulated time: each touch of a page takes as long as a sweep of it would.
inline double simulated_seconds = 0;
inline double simulated_clock() noexcept { return simulated_seconds; }
inline constexpr double touch_seconds = 5e-6;

/// A program of one array and some regions.
class Program {
  public:
    using Owner = std::function<int(std::size_t page)>;

    explicit Program(std::size_t pages, std::size_t node_pages = 1 << 20, int node_count = nodes)
        : pages_(pages), nodes_(node_count),
          simulated(std::vector<std::size_t>(static_cast<std::size_t>(node_count), node_pages)),
          kernel(simulated) {
        memory_ = ::mmap(nullptr, pages * page_bytes(), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        const auto begin = reinterpret_cast<Address>(memory_);
        range = {begin, begin + pages * page_bytes()};
        simulated.map(range);
        const Address origin[max_origin_frames] = {0x1234};
        area_registry().note(range, AreaKind::heap_block, origin, 1, nullptr);
    }
    ~Program() {
        engine.reset();
        area_registry().end(range.begin);
        ::munmap(memory_, pages_ * page_bytes());
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    bool start(std::uint64_t cache_bytes = 1 << 16) {
        Machine machine = machine_of(nodes_, cache_bytes);
        if (machine_changes) machine_changes(machine);
        engine = std::make_unique<Engine>(kernel, machine, HookServices{});
        return engine->start();
    }

    /// One access by a thread on a node, through the window's handler where it faults.
    void touch(std::size_t page, int node, bool write = true) {
        const Address address = range.begin + page * page_bytes();
        simulated.set_current_node(node);
        simulated_seconds += touch_seconds;
        for (int tries = 0; tries < 4; ++tries) {
            if (simulated.touch(address, node) != SimulatedKernel::Touch::fault) return;
            ++faults;
            Windows* windows = engine ? engine->windows() : nullptr;
            if (!windows || windows->fault(address, write) == Windows::Verdict::foreign) break;
        }
        ++stuck; // the program would have died here
    }
    void region(Address function, const Owner& owner) {
        engine->region_begin(function);
        for (std::size_t page = 0; page < pages_; ++page)
            touch(page, owner(page));
        engine->region_end();
    }
    /// One that uses these pages only, each by the node that has its part of them.
    void region(Address function, std::size_t first, std::size_t end) {
        engine->region_begin(function);
        for (std::size_t page = first; page < end; ++page)
            touch(page, static_cast<int>((page - first) * static_cast<std::size_t>(nodes_) / (end - first)));
        engine->region_end();
    }
    void iterate(int iterations, const Owner& owner) {
        for (int i = 0; i < iterations; ++i)
            for (Address function : {0x1000, 0x2000, 0x3000})
                region(function, owner);
    }
    Owner block() const {
        return [n = pages_, count = static_cast<std::size_t>(nodes_)](std::size_t page) {
            return static_cast<int>(page * count / n);
        };
    }
    std::size_t right(const Owner& owner) const {
        std::size_t count = 0;
        for (std::size_t page = 0; page < pages_; ++page)
            count += simulated.where(range.begin + page * page_bytes()) == owner(page);
        return count;
    }
    std::size_t pages() const { return pages_; }
    /// Each page is first touched by its owner: parallel initialisation.
    void initialise(const Owner& owner) {
        for (std::size_t page = 0; page < pages_; ++page)
            simulated.touch(range.begin + page * page_bytes(), owner(page));
    }
    Range part(std::size_t first, std::size_t end) const {
        return {range.begin + first * page_bytes(), range.begin + end * page_bytes()};
    }

  private:
    std::size_t pages_;
    int nodes_;
    void* memory_ = nullptr;

  public:
    SimulatedKernel simulated;
    FailingKernel kernel;
    Range range;
    std::function<void(Machine&)> machine_changes; ///< before start()
    std::unique_ptr<Engine> engine;
    std::size_t faults = 0;
    std::size_t stuck = 0;
};

class EngineTest : public ::testing::Test {
  protected:
    EngineTest() {
        simulated_seconds = seconds_at_start;
        the_clock = simulated_clock;
    }
    ~EngineTest() override { the_clock = monotonic_seconds; }

  private:
    /// Every test begins at the same moment, so that what is drawn and rounded is the same in every run; the
    /// process's record has begun before it (three years after the machine's start).
    static constexpr double seconds_at_start = 1e8;

    Variable references_{"HOMING_REFERENCES", "windows"};
    Variable areas_{"HOMING_AREAS", "include=heap*"}; // not the static arrays of this test
};

} // namespace homing
