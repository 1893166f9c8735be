// What accesses and moves cost on a machine, and what a seen touch stands for. All costs are elapsed (wall)
// time of the program: a move stops one thread while the others usually wait for it, remote accesses slow all
// threads at once.
#pragma once

#include <cstdint>

namespace homing::policy {

// Measured, read from a costs file, or derived from the machine's distance table; the caller says which.
struct Costs {
    double local_ns = 90;      // a cache line from the own node's memory
    double remote_ns = 150;    // the same from another node's
    double move_call_us = 45;  // fixed cost of one call that moves pages
    double move_page_us = 1.0; // and of each page in it
    double touch_us = 0;       // of one that is seen by a window; 0: as it is measured in the process
    double fit_us = 0;         // of learning from eight touches (seconds_of_fit); 0: likewise

    double move_ns(std::uint64_t pages, std::uint64_t calls = 1) const {
        return 1e3 * (move_call_us * static_cast<double>(calls) + move_page_us * static_cast<double>(pages));
    }
};

// How many cache misses one touch of a page stands for, and how much elapsed time they cost.
//
// A sampled touch says only that a node used a page in an iteration. Parallel loops over arrays use all of
// it: the page is swept, page_size / line_size lines. Whether those come from memory depends on the
// iteration's footprint on that node: an LRU-like cache that is swept again and again keeps everything while
// the footprint fits and nothing once it exceeds the cache; real replacement makes the step a slope. We use
// no miss up to half of the last-level cache, all lines missing from one and a half times on, and a straight
// line between. Threads miss at the same time, and each keeps several misses in flight, so elapsed time is
// the sum divided by both.
struct TouchModel {
    std::uint64_t page_size = 4096;
    std::uint64_t line_size = 64;
    std::uint64_t cache_bytes = 32u << 20;      // last-level cache of one node
    std::uint64_t footprint_bytes = ~0ull >> 1; // bytes that one node uses in an iteration
    int threads = 1;                            // running at the same time
    int nodes = 1;                              // that they are spread over
    double overlap = 4;                         // misses in flight per thread (prefetching, out of order)

    // 0..1: share of the lines of a swept page that miss.
    double miss_share() const;
    double misses_per_touch() const;
    // Extra elapsed nanoseconds of so many page touches being remote instead of local. Never more than
    // region_ns, the time that the regions in which they were seen took: stalls cannot exceed the time there
    // was.
    double excess_ns(std::uint64_t remote_touches, const Costs& costs, double region_ns) const;
    // The same from contention: touches served by the busiest node now, and after the moves. A node's memory
    // is taken to serve what its own threads ask for at full speed (misses in flight over the latency), as
    // balanced machines do; pages of all threads on one node make all wait for it (Wittmann and Hager 2010,
    // section 3: serial placement gives one locality domain's bandwidth).
    double contention_ns(double busiest_now, double busiest_then, const Costs& costs, double region_ns) const;
};

} // namespace homing::policy
