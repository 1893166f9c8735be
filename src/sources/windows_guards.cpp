// What the windows keep away from: memory that goes, that system calls use, that the program protects itself,
// and the mappings that are the program's to have.
#include "sources/windows.hpp"

#include "base/clock.hpp"
#include "base/inside.hpp"
#include "base/next_below.hpp"
#include "base/raw_calls.hpp"
#include "base/running_time.hpp"
#include "record/record.hpp"
#include "sources/windows_using.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace homing {
namespace {

void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Waits until `done`, some seconds at the most, and not long where this thread may have been
/// interrupted (a signal's handler) in the middle of what it waits for.
template <class Done> bool wait_until(Done&& done, bool interrupted) noexcept {
    constexpr int short_spins = 256;
    constexpr int yields = 1 << 15;
    constexpr int naps = 1 << 14; // a second or two
    for (int spins = 0; !done(); ++spins) {
        if (spins < short_spins) {
            relax();
        } else if (spins < yields) {
            raw::call(SYS_sched_yield);
        } else {
            if (interrupted || spins > yields + naps) return false;
            const timespec nap{0, 50000};
            raw::call(SYS_nanosleep, &nap, nullptr);
        }
    }
    return true;
}

} // namespace

template <class Visit> void Windows::each_overlapping(Range range, Visit&& visit) noexcept {
    const Order& now = order();
    const Order::Place* const first = now.places;
    const Order::Place* const end = first + now.count;
    const Order::Place* at =
        std::upper_bound(first, end, range.begin,
                         [](Address value, const Order::Place& place) { return value < place.begin; });
    if (at != first) --at;
    for (; at != end && at->begin < range.end; ++at)
        if (slots_[at->slot].granule.overlaps(range)) visit(slots_[at->slot]);
}

bool Windows::watches(Address begin, Address end) const noexcept {
    for (;;) {
        const std::uint32_t before = watched_sequence_.load(std::memory_order_acquire);
        if (before & 1) return true; // the set changes just now: assume the worst, the call is only bracketed
        const std::size_t count = watched_count_.load(std::memory_order_relaxed);
        const SharedRange* at = std::upper_bound(
            watched_, watched_ + count, end - 1, [](Address value, const SharedRange& range) {
                return value < range.begin.load(std::memory_order_relaxed);
            });
        const bool inside = at != watched_ && (at - 1)->load().overlaps(Range{begin, end});
        std::atomic_thread_fence(std::memory_order_acquire);
        if (watched_sequence_.load(std::memory_order_relaxed) == before) return inside;
    }
}

bool Windows::excludes(Range granule) const noexcept {
    const int count = std::min(excluded_count_.load(std::memory_order_acquire), max_excluded);
    return std::any_of(excluded_, excluded_ + count,
                       [&](const Range& excluded) { return granule.overlaps(excluded); });
}

/// What running calls use is not armed. False: one of them may use anything.
bool Windows::leave_out_what_is_in_flight() noexcept {
    return in_flight::each([this](Range range) {
        if (range.begin == all_memory.begin && range.end == all_memory.end) return false;
        each_overlapping(range, [](Slot& slot) { slot.pass(planned, released); });
        return true;
    });
}

/// The kernel allows a process so many mappings, and what is armed costs some: a program that comes near the
/// limit keeps an eighth of it, for what it maps before we look again. That is soon, unless counting takes
/// long.
void Windows::count_mappings() noexcept {
    constexpr std::size_t kept_share = 8;
    constexpr double seldom = 1000; // times as long as counting takes
    if (clock_seconds() < next_count_) return;
    const double begin = thread_seconds();
    const Kernel::Mappings mappings = kernel_.mappings();
    next_count_ = clock_seconds() + seldom * (thread_seconds() - begin);
    const std::size_t most = mappings.most - mappings.most / kept_share;
    spare_mappings_ = mappings.now < most ? most - mappings.now : 0;
}

bool Windows::leaves_mappings() noexcept {
    count_mappings();
    return spare_mappings_ > 0;
}

void Windows::release(Range range) noexcept {
    if (!slots_) return;
    // What makes the memory go was written before; whoever is about to arm it just now will see it.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (is_quiet()) return; // nothing is armed, or being given back just now
    const Using guard(users_);
    each_overlapping(range, [this](Slot& slot) {
        const bool passed = wait_until(
            [&] {
                switch (slot.state.load(std::memory_order_seq_cst)) {
                case planned:
                    return slot.pass(planned, released);
                case is_protected:
                    if (!claim(slot)) return false;
                    unprotect(slot.granule);
                    back_calls_.fetch_add(1, std::memory_order_relaxed);
                    slot.state.store(released, std::memory_order_seq_cst);
                    return true;
                case changing:
                    return false;
                default:
                    return true;
                }
            },
            is_inside());
        // The program's handler of a signal, within our own work on these pages: they are still there, and
        // are to be used now. What comes back to the work finds them given back, which does no harm.
        if (!passed && is_inside()) kernel_.protect(slot.granule, Access::read_write);
    });
}

/// [any thread] What is planned is not armed any more, when this returns. What is armed stays so.
void Windows::stop_arming() noexcept {
    {
        const Using guard(users_);
        const Order& now = order();
        for (std::size_t i = 0; i < now.count; ++i)
            slot(now, i).pass(planned, released);
    }
    wait_for_changes(true);
}

void Windows::abandon_and_wait() noexcept {
    abandon();
    wait_for_changes(true);
}

/// Another thread may have claimed a granule and not have opened it yet. False: it still has not.
bool Windows::wait_for_changes(bool interrupted) noexcept {
    const auto done = [&] {
        return users_.load(std::memory_order_seq_cst) == 0 || stuck_.load(std::memory_order_acquire);
    };
    return wait_until(done, interrupted);
}

void Windows::give_way(InFlight call) noexcept {
    call.each([this](Range range) {
        if (range.begin == all_memory.begin && range.end == all_memory.end)
            abandon_and_wait();
        else if (watches(range.begin, range.end))
            release(range);
    });
}

void Windows::exclude(Range range) noexcept {
    add_excluded(range);
    release(pages_of(range));
}

void Windows::add_excluded(Range range) noexcept {
    // Claim a place first, then publish in order: callers are few and open() only reads what is published.
    const int at = next_below(excluded_claimed_, max_excluded);
    if (at >= max_excluded) {
        forbid("the program protects or unmaps parts of its arrays itself, or the kernel refuses to protect "
               "them, too often to follow");
        return;
    }
    excluded_[at] = pages_of(range);
    for (int expected = at;
         !excluded_count_.compare_exchange_weak(expected, at + 1, std::memory_order_acq_rel); expected = at)
        relax();
}

/// [driver] Of some memory the kernel never protects such pieces: of a pool of huge pages (MAP_HUGETLB) only
/// whole pages. The areas of those places that it refuses so are left out from now on. False: there is none.
bool Windows::leave_out_unfit(std::size_t first, std::size_t end) noexcept {
    const Order& now = order();
    bool any = false;
    for (std::size_t i = first; i < end; ++i) {
        const Range granule = slot(now, i).granule;
        if (excludes(granule)) continue;
        const int error = kernel_.protect(granule, Access::none);
        unprotect(granule);
        if (error != EINVAL) continue;
        any = true;
        for (std::size_t k = 0; k < watched_count_.load(std::memory_order_relaxed); ++k)
            if (watched_[k].load().overlaps(granule)) add_excluded(watched_[k].load());
    }
    if (any)
        record::message(
            record::Level::note,
            "windows leave out arrays of which the kernel does not protect single pages: they lie "
            "in a pool of huge pages (MAP_HUGETLB, glibc.malloc.hugetlb=2)");
    return any;
}

void Windows::exclude_if_watched(Range range) noexcept {
    if (!watched_ || !watches(range.begin, range.end)) return;
    const int known = excluded_count_.load(std::memory_order_acquire);
    for (int i = 0; i < known; ++i)
        if (excluded_[i].begin <= range.begin && range.end <= excluded_[i].end) return;
    exclude(range);
}

void Windows::forbid(const char* reason) noexcept {
    const char* expected = nullptr;
    forbidden_.compare_exchange_strong(expected, reason, std::memory_order_acq_rel);
    abandon();
}

} // namespace homing
