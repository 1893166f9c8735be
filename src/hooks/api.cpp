// What programs call by name: homing.h (the names of UPMlib are in upmlib.cpp).
#include "homing/homing.h"

#include "areas/areas.hpp"
#include "areas/named.hpp"
#include "base/inside.hpp"
#include "base/kept_errno.hpp"
#include "base/options.hpp"
#include "base/own_mappings.hpp"
#include "base/regions.hpp"
#include "base/uncancelled.hpp"
#include "engine/engine.hpp"
#include "engine/guarded.hpp"
#include "kernel/initial_nodes.hpp"
#include "kernel/own_pages.hpp"
#include "kernel/placement.hpp"
#include "phases/hybrid.hpp"
#include "phases/replayer.hpp"
#include "record/record.hpp"
#include "sources/windows.hpp"
#include "tasks/domains.hpp"
#include "version.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <linux/mempolicy.h>

namespace {

using namespace homing;

/// Ordinary code calls us: exceptions stay here.
template <class Work> int called(Work&& work) noexcept {
    const KeptErrno kept;
    const Inside inside;
    const Uncancelled uncancelled;
    try {
        return work();
    } catch (...) {
        return HOMING_REFUSED;
    }
}

/// The same, and regions are refused.
template <class Work> int serial(Work&& work) noexcept {
    return phases::in_region() ? int{HOMING_IN_REGION} : called(work);
}

/// Placement works before the first region, too: a kernel and nodes of its own.
struct Placer {
    Kernel& kernel;
    Machine machine;
    NodeMap nodes{machine.targets()};
};

void pause_source() {
    if (Engine* running = engine()) running->guarded([=] { running->pause_source(); });
}

/// The kernel moves no page that a window has taken away, and some say that it does not exist.
void give_back(Range range) noexcept {
    if (Windows* windows = armed_windows.load(std::memory_order_acquire))
        windows->release(whole_pages(range));
}

Placer& placer() {
    static Placer* the_placer = [] {
        Kernel& kernel = process_kernel();
        return new Placer{kernel, process_machine(kernel)};
    }();
    return *the_placer;
}

/// These bytes; none where the range is empty or wraps around. Not their pages: those of a described machine
/// may be larger than this one's, and reach beyond the mapping that the bytes lie in.
Range bytes_from(const void* start, size_t bytes) {
    const auto begin = reinterpret_cast<Address>(start);
    const Address last = ~Address{0} - page_bytes();
    if (begin == 0 || bytes == 0 || begin > last || bytes > last - begin) return {};
    return {begin, begin + bytes};
}

/// Is this memory of the program's: mapped from its first byte to its last?
bool is_memory(const void* start, size_t bytes) {
    const Range range = bytes_from(start, bytes);
    return !range.empty() && is_mapped(range);
}

/// May pages of it be taken away? Not ours: they are mapped beside the program's, and a size that is wrong
/// may reach them, or libraries after an array.
bool is_of_the_program(const void* start, size_t bytes) {
    const Range range = bytes_from(start, bytes);
    return !range.empty() && is_of_one_object(range) && !own_mappings.overlap(range.begin, range.end) &&
           std::ranges::none_of(own_ranges(), [&](const Range& ours) { return ours.overlaps(range); });
}

/// Nothing is done in this process. Where there is but one node, there is nothing that could be.
int aside() { return placer().nodes.count() < 2 ? HOMING_OK : HOMING_ASIDE; }

bool is_switched_off() noexcept { return option_is(Option::homing, "off"); }

/// Of what was placed while there was no engine that counts it.
constinit std::atomic<std::uint64_t> moved_without_engine{0}, refused_without_engine{0};

int place(const void* start, size_t bytes, MemoryPolicy policy,
          const std::function<homing::policy::Node(std::uint64_t)>& target_of) {
    Placer& p = placer();
    if (p.nodes.count() < 2) return HOMING_OK;
    if (is_switched_off()) return HOMING_ASIDE;
    const Range range = range_of(start, bytes);
    if (whole_pages(range).empty()) return HOMING_OK;
    give_back(range);
    const PlacementResult result = place_pages(p.kernel, p.nodes, range, target_of, policy, pause_source);
    if (Engine* running = engine()) {
        replay::memory_placed(*running, range);
        replay::memory_placed_under_hybrid(*running, range);
    } else {
        moved_without_engine.fetch_add(result.moved, std::memory_order_relaxed);
        refused_without_engine.fetch_add(result.refused, std::memory_order_relaxed);
    }
    report_placement(range, result);
    forget_homes();
    return result.refused ? HOMING_REFUSED : HOMING_OK;
}

/// What cannot wait for the first region begins here, with nothing of ours on the stack.
void start_now() noexcept {
    if (!phases::in_region() && !phases::aside()) phases::start();
}

/// Before there is an engine. 0: there was no memory to look.
int nodes_that_hold_pages() noexcept {
    const Inside inside;
    const Uncancelled uncancelled;
    try {
        return placer().nodes.count();
    } catch (...) {
        return 0;
    }
}

/// Which memory is hot has changed: the engine decides anew, also where it rests.
void decide_anew() noexcept {
    Engine* const running = engine();
    if (!running) return;
    running->guarded([=] {
        running->stability().wake();
        running->let_moves_wait(true); // of what is astray there may be enough known
    });
}

int watch(const void* start, size_t bytes, const char* name, bool hot, Address site = 0) noexcept {
    if (!name) name = "";
    const int status = serial([&] {
        const Range range = range_of(start, bytes);
        if (is_named_so(range, name, hot)) return int{HOMING_OK}; // its mapping need not be looked up again
        if (!is_of_the_program(start, bytes)) return int{HOMING_INVALID};
        if (is_switched_off()) return aside();
        const std::uint64_t before = named_areas_version();
        const bool named = name_area(range, name, hot, site);
        if (hot && named_areas_version() != before) decide_anew();
        return named ? int{HOMING_OK} : int{HOMING_FULL};
    });
    // Sampling waits for no region: a program may have none.
    if (status == HOMING_OK && option_is(Option::mechanism, "sampling")) start_now();
    return status;
}

/// Record, replay, undo. The first may come before the first region.
int phase_call(replay::Outcome (*call)(Engine&) noexcept) noexcept {
    start_now();
    return serial([=] {
        if (phases::aside()) return aside();
        Engine* running = engine();
        if (!running) return int{HOMING_ASIDE}; // it is too early, or the simulator counts only
        switch (call(*running)) {
        case replay::Outcome::refused:
            return int{HOMING_REFUSED};
        case replay::Outcome::nothing:
            return int{HOMING_INVALID};
        default:
            return int{HOMING_OK};
        }
    });
}

} // namespace

namespace homing {

int watch_registered(const void* start, std::size_t bytes, Address site) noexcept {
    return watch(start, bytes, "upmlib", true, site);
}

} // namespace homing

extern "C" {

static_assert(HOMING_VERSION == version_number, "homing.h and CMakeLists.txt state different versions");
int homing_version(void) { return HOMING_VERSION; }

int homing_watch(const void* start, size_t bytes, const char* name) {
    return watch(start, bytes, name, false);
}
int homing_watch_hot(const void* start, size_t bytes, const char* name) {
    return watch(start, bytes, name, true);
}

int homing_unwatch(const void* start) {
    return serial([&] {
        if (is_switched_off()) return is_memory(start, 1) ? aside() : int{HOMING_INVALID};
        if (!forget_named_area(reinterpret_cast<Address>(start))) return int{HOMING_INVALID};
        decide_anew();
        return int{HOMING_OK};
    });
}

int homing_iteration(void) {
    const bool within = phases::drives_region();
    if (!within && phases::in_region()) return HOMING_IN_REGION;
    return called([=] {
        if (phases::aside()) return aside();
        if (Engine* running = engine()) {
            replay::iteration_called(*running);
            within ? running->iteration_called_in_region() : running->iteration_called();
        }
        return int{HOMING_OK};
    });
}

int homing_next_touch(const void* start, size_t bytes) {
    return serial([&] {
        if (!is_memory(start, bytes)) return int{HOMING_INVALID};
        if (phases::aside()) return aside();
        return request_next_touch(range_of(start, bytes)) ? int{HOMING_OK} : int{HOMING_REFUSED};
    });
}

int homing_place_on_node(const void* start, size_t bytes, int node) {
    return serial([&] {
        if (!is_memory(start, bytes)) return int{HOMING_INVALID};
        const int position = placer().nodes.position(node);
        if (position < 0) return int{HOMING_INVALID};
        MemoryPolicy policy;
        policy.mode = MPOL_PREFERRED;
        policy.nodes.add(node);
        return place(start, bytes, policy,
                     [=](std::uint64_t) { return static_cast<homing::policy::Node>(position); });
    });
}

int homing_place_round_robin(const void* start, size_t bytes) {
    return serial([&] {
        if (!is_memory(start, bytes)) return int{HOMING_INVALID};
        Placer& p = placer();
        MemoryPolicy policy;
        policy.mode = MPOL_INTERLEAVE;
        policy.nodes = p.machine.targets();
        const homing::policy::NodeSet all = homing::policy::all_nodes(p.nodes.count());
        return place(start, bytes, policy,
                     [=](std::uint64_t page) { return homing::policy::round_robin_node(page, all); });
    });
}

int homing_place_random(const void* start, size_t bytes, uint64_t seed) {
    return serial([&] {
        if (!is_memory(start, bytes)) return int{HOMING_INVALID};
        Placer& p = placer();
        const homing::policy::NodeSet all = homing::policy::all_nodes(p.nodes.count());
        return place(start, bytes, MemoryPolicy{},
                     [=](std::uint64_t page) { return homing::policy::random_node(page, all, seed); });
    });
}

long homing_where(const void* start, size_t bytes, int* nodes, size_t count) {
    if (!nodes && count) return HOMING_INVALID;
    const KeptErrno kept;
    const Inside inside;
    const Uncancelled uncancelled;
    try {
        if (start && bytes == 0) return 0;
        if (!is_memory(start, bytes)) return HOMING_INVALID;
        const Range range = range_of(start, bytes);
        give_back(range);
        return static_cast<long>(
            where_pages_are(placer().kernel, range, {nodes, count}, !phases::in_region(), pause_source));
    } catch (...) {
        return HOMING_REFUSED;
    }
}

int homing_statistics(homing_statistics_t* out) {
    if (!out || out->struct_bytes < sizeof out->struct_bytes) return HOMING_INVALID;
    const KeptErrno kept;
    homing_statistics_t filled = {};
    if (const Engine* running = engine()) {
        const Statistics& s = running->statistics();
        filled.active = phases::aside() ? -1 : 1;
        filled.nodes = running->nodes().count();
        filled.iterations = s.iterations;
        filled.settled_at = s.settled_at;
        filled.pages_moved = s.moved;
        filled.pages_refused = s.refused;
        filled.references_seen = s.references;
        filled.seconds_observing = s.observing;
        filled.seconds_deciding = s.deciding;
        filled.seconds_moving = s.moving;
    } else {
        filled.active = phases::aside() ? -1 : 0;
        filled.nodes = nodes_that_hold_pages();
        filled.pages_moved = moved_without_engine.load(std::memory_order_relaxed);
        filled.pages_refused = refused_without_engine.load(std::memory_order_relaxed);
    }
    // An older program has a shorter struct: it gets what it knows.
    filled.struct_bytes = out->struct_bytes;
    std::memcpy(out, &filled, std::min(out->struct_bytes, sizeof filled));
    return HOMING_OK;
}

int homing_record(void) { return phase_call(replay::record_called); }
int homing_replay(void) { return phase_call(replay::replay_called); }
int homing_undo(void) { return phase_call(replay::undo_called); }
int homing_replay_pages(size_t most) {
    return serial([=] {
        if (phases::aside()) return aside();
        replay::set_most(most);
        return int{HOMING_OK};
    });
}

} // extern "C"
