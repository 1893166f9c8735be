// The model: caches of each thread, a directory of lines, and the home node of each page. An access that the
// filter of its thread does not know (context.h) comes to access(); everything else here is called seldom.
//
// What is modelled, and what is not:
//  - each thread has a private cache (LRU, write-allocate, indexed by virtual address), groups of CPUs of a
//  node may
//    share a last level. A miss of the last level is counted for (node of the thread, home node of the page),
//    wherever a copy of the line may be: this is what the counters of Löf, Nordén and Holmgren counted (2004,
//    section 3).
//  - the directory knows for each line who may write it (exclusive), or that several may hold it, and a
//  version: a write
//    that takes a line away from others raises the version, and copies of older versions are invalid. It
//    needs no list of sharers, so 4,000 threads cost no more than 4.
//  - pages get a home when they are first accessed. A page that is sent elsewhere is another physical page:
//  its lines are
//    cold again.
//  - the filter stands for the first-level cache: a line in it is not looked up in the private cache (where
//  it stays
//    young: an eviction passes over it). There is no prefetching, no translation buffer, no code.
//
// Threads of the program run at the same time, and the tables are shared without locks. Races that are left,
// and why they are harmless: two threads that write one line at the same moment may both believe to own it
// until the next of them asks (one invalidation less is counted); a shared cache's set that two threads
// change at once may lose a line or hold one twice (one miss more or less). With turns (--deterministic)
// there are none.
#pragma once

#include "base/pages.hpp"
#include "context.h"
#include "described.hpp"

#include <atomic>
#include <cstdint>
#include <sched.h>
#include <vector>

namespace homing::simulator {

inline constexpr int most_threads = 4000;
/// Areas at one time. By reason: each has counts for each pair of nodes.
inline constexpr std::uint32_t most_areas = 1u << 16;

struct SharedCache {
    std::uint64_t* tags = nullptr;
};

/// Misses by the place in the code that caused them: open addressing by program counter, one a thread.
struct Place {
    const void* pc;
    std::uint64_t misses[1]; ///< by home node: as many as there are nodes
};

/// A thread that runs and makes no access, as the others see it (--deterministic).
struct Stillness {
    std::int64_t left; ///< its context.left when it was last looked at
    double since;      ///< seconds: it has not changed since then
    double looked;     ///< when it was last looked at
};

struct Thread {
    homing_context context; ///< first: the callbacks know only this part
    std::uint64_t* tags;    ///< sets x ways: line << 20 | version; 0: empty
    std::uint64_t* row;     ///< misses by home node, of the node where the thread is
    SharedCache* shared;
    std::uint32_t* area_misses; ///< (area, home node), since the thread came to its node
    char* places;               ///< table of Place; null: not counted
    std::uint32_t place_count;
    std::uint32_t place_slots;
    int id; ///< index in threads
    int node;
    int cpu;
    int system_id;       ///< the operating system's
    std::uint32_t epoch; ///< of regions, when node was last looked up
    int ordinal;         ///< of threads outside OpenMP
    bool alive;
    bool main;
    bool bound;                    ///< the program said where it may run:
    cpu_set_t allowed;             ///< CPUs of the described machine
    int waits_for_turn;            ///< 1 while it does (--deterministic)
    std::uint64_t order;           ///< of turns: by OpenMP thread numbers
    Stillness still;               ///< does it wait without sleep?
    bool moved;                    ///< was on several nodes: more rows than one are in use
    std::int64_t granted;          ///< accesses so far + context.left
    std::int64_t clocked;          ///< accesses that the clock of balancing has heard of
    std::uint32_t balancing_round; ///< of balancing, when the filter was last forgotten for it
    std::uint64_t invalidations;
    std::uint64_t upgrades;
    std::uint64_t shared_hits;
    std::uint64_t* matrix; ///< nodes x nodes: `row` points into it
};

/// What was counted up to now.
struct Totals {
    std::uint64_t accesses = 0;
    std::uint64_t invalidations = 0;
    std::uint64_t upgrades = 0;
    std::uint64_t shared_hits = 0;
    std::vector<std::uint64_t> misses; ///< nodes x nodes

    void add_difference(const Totals& later, const Totals& earlier);
};

/// Prepare the tables; `described` must stay. Empty string: done; otherwise why not (no address space).
std::string prepare_model(const Described& described);
const Described& described() noexcept;

/// The calling thread's; made at its first access. Null: it is not simulated (too many threads, or the
/// process is a forked child).
Thread* current_thread() noexcept;
Thread* attach() noexcept;
/// The CPU of the described machine on which the caller is now; -1: it is not simulated.
int current_cpu() noexcept;
/// Where the caller may run from now on; false: none of these CPUs is there, or the caller is not simulated.
bool bind_caller(const cpu_set_t& cpus) noexcept;
/// Where it may run: what it said, else everywhere.
cpu_set_t cpus_of_caller() noexcept;
void access(homing_context* context, std::uintptr_t address, int write, const void* pc) noexcept;
/// Lines of a range, for memory functions of the C library.
void access_range(const void* memory, std::size_t bytes, int write, const void* pc) noexcept;

/// Threads that were ever there, by id.
int thread_count() noexcept;
Thread& thread(int id) noexcept;

Totals totals();
/// Misses of an area: nodes x nodes, added to `out`. Areas are known by numbers below most_areas.
void add_area_misses(std::uint32_t area, std::vector<std::uint64_t>& out);
void begin_area(std::uint32_t area, Range range, const char* name);
void end_area(std::uint32_t area, Range range);
/// The number of an area that has ended may be another one's from now on.
void release_area(std::uint32_t area);

// Pages.
inline constexpr int nowhere = -1;
int home_of(Address address) noexcept;
bool is_protected(Address address) noexcept;
/// Places a page that has no home as its first touch by `node` would.
void populate(Address address, int node) noexcept;
/// Send a page: 0, or an errno.
int send(Address address, int node) noexcept;
void forget(Range range) noexcept;
void move_pages_of(Range from, Range to) noexcept;
void set_protection(Range range, bool protect) noexcept;
/// Protected pages must be met by every thread: what filters know is forgotten. Only while no region runs.
void forget_filters() noexcept;
std::uint64_t free_bytes_of(int node) noexcept;
/// Misses of a page by node of the thread, since its home was given to it.
const std::uint32_t* page_misses(Address address) noexcept;
/// The same at the time of the last look by the source of references; to be changed by it.
std::uint32_t* page_misses_seen(Address address) noexcept;
/// Misses that would be remote with every page on its majority node (of pages as they are now).
std::uint64_t oracle_remote() noexcept;

/// The calling thread's own policy, of set_mempolicy: threads that have none go by the main thread's.
void set_task_policy(int mode, std::uint64_t nodes) noexcept;
void task_policy_of_caller(int& mode, std::uint64_t& nodes) noexcept;
/// Where a page goes that `node` touches, by a policy with nodes.
int preferred_home(Address address, int node, int mode, std::uint64_t nodes) noexcept;

/// A policy by range, of mbind: mode and nodes (0: none).
void bind_range(Range range, int mode, std::uint64_t nodes);
void policy_of(Address address, int& mode, std::uint64_t& nodes);

/// Regions come and go: threads ask anew where they are.
void next_epoch() noexcept;

/// Nothing is simulated any more (forked child).
void abandon_model() noexcept;

/// Visit the places of all threads: visit(pc, node of the thread, misses by home node).
template <class Visit> void for_each_place(Visit&& visit);

std::size_t place_bytes() noexcept;

template <class Visit> void for_each_place(Visit&& visit) {
    for (int id = 0; id < thread_count(); ++id) {
        Thread& one = thread(id);
        for (std::uint32_t i = 0; one.places && i < one.place_slots; ++i) {
            const auto* place = reinterpret_cast<const Place*>(one.places + i * place_bytes());
            if (place->pc) visit(place->pc, one.node, place->misses);
        }
    }
}

} // namespace homing::simulator
