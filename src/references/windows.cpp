#include "references/windows.hpp"

#include "base/clock.hpp"
#include "base/inside.hpp"
#include "base/raw_calls.hpp"
#include "base/running_time.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <link.h>
#include <utility>

namespace homing {

constinit std::atomic<Windows*> active_windows{nullptr};
constinit std::atomic<Windows*> armed_windows{nullptr};

namespace {

/// A window sees the first touch only. A neighbour that reads a halo hides the owner, who comes later; an
/// owner that writes hides readers, who matter less to where the page should be. So a write says more than a
/// read.
constexpr std::uint32_t write_weight = 3;

constexpr int slot_bits = 20;
static_assert(Windows::most_capacity < std::size_t{1} << slot_bits);

std::size_t hash(std::uint64_t page) noexcept { return page * 0x9e3779b97f4a7c15u >> 32; }

template <class T> T* map_array(std::size_t count) noexcept {
    return static_cast<T*>(raw::map_memory(count * sizeof(T)));
}

void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// While it lives, the slots are not filled anew.
class Using {
  public:
    explicit Using(std::atomic<int>& users) noexcept : users_(users) {
        users_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Using() { users_.fetch_sub(1, std::memory_order_seq_cst); }
    Using(const Using&) = delete;
    Using& operator=(const Using&) = delete;

  private:
    std::atomic<int>& users_;
};

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

/// Libraries whose peers (other processes, devices, kernel threads) fault on or pin the program's pages.
constexpr const char* forbidding_libraries[] = {
    "libmpi.so",  "libmpich.so",    "libmpi_",         "libibverbs.so", "libfabric.so", "liburing.so",
    "libcuda.so", "libamdhip64.so", "libze_loader.so", "libsycl.so",    "libucp.so"};

int find_forbidding(dl_phdr_info* info, std::size_t, void* found) noexcept {
    const char* path = info->dlpi_name ? info->dlpi_name : "";
    const char* slash = std::strrchr(path, '/');
    const char* name = slash ? slash + 1 : path;
    for (const char* library : forbidding_libraries)
        if (std::strncmp(name, library, std::strlen(library)) == 0) {
            *static_cast<const char**>(found) = library;
            return 1;
        }
    return 0;
}

} // namespace

Windows::~Windows() {
    stop();
    raw::unmap(index_, 4 * capacity_ * sizeof(std::uint64_t));
    raw::unmap(slots_, capacity_ * sizeof(Slot));
    raw::unmap(watched_, max_watched * sizeof(SharedRange));
}

std::string Windows::unavailable() {
    const char* library = nullptr;
    ::dl_iterate_phdr(find_forbidding, &library);
    if (library) return std::string(library) + " is loaded: its peers may touch protected pages";
    if (const char* reason = forbidden()) return reason;
    return {};
}

bool Windows::start(std::span<const WatchedRange> ranges) {
    if (!slots_) slots_ = map_array<Slot>(capacity_);
    if (!watched_) watched_ = map_array<SharedRange>(max_watched);
    if (!index_) index_ = map_array<std::uint64_t>(4 * capacity_);
    if (!slots_ || !watched_ || !index_) return false;
    const std::uint32_t before = watched_sequence_.load(std::memory_order_relaxed);
    watched_sequence_.store(before + 1, std::memory_order_relaxed); // odd: readers assume the worst
    std::atomic_thread_fence(std::memory_order_release);
    const std::size_t count = std::min(ranges.size(), max_watched);
    for (std::size_t i = 0; i < count; ++i) {
        watched_[i].begin.store(ranges[i].range.begin, std::memory_order_relaxed);
        watched_[i].end.store(ranges[i].range.end, std::memory_order_relaxed);
    }
    // Of more than there is room for, all that lies between the last ones is taken for watched.
    if (count < ranges.size())
        watched_[count - 1].end.store(ranges.back().range.end, std::memory_order_relaxed);
    watched_count_.store(count, std::memory_order_relaxed);
    watched_sequence_.store(before + 2, std::memory_order_release);
    count_mappings();
    active_windows.store(this, std::memory_order_release);
    return true;
}

void Windows::stop() {
    close();
    Windows* self = this;
    active_windows.compare_exchange_strong(self, nullptr);
}

void Windows::index(std::size_t count) noexcept {
    index_size_ = 16;
    while (index_size_ < 2 * count)
        index_size_ *= 2;
    std::fill_n(index_, index_size_, 0);
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t page = slots_[i].granule.begin / page_bytes();
        std::size_t at = hash(page) & (index_size_ - 1);
        while (index_[at])
            at = (at + 1) & (index_size_ - 1);
        index_[at] = page << slot_bits | (i + 1);
    }
}

Windows::Slot* Windows::find(Address address) noexcept {
    const std::size_t count = count_.load(std::memory_order_acquire);
    if (count == 0) return nullptr;
    const std::size_t mask = index_size_ - 1;
    const std::uint64_t page = address / page_bytes();
    for (std::size_t at = hash(page) & mask, steps = 0; index_[at] && steps <= mask;
         at = (at + 1) & mask, ++steps) {
        const std::size_t slot = index_[at] & ((std::uint64_t{1} << slot_bits) - 1);
        if (index_[at] >> slot_bits == page && slot <= count && slots_[slot - 1].granule.contains(address))
            return &slots_[slot - 1];
    }
    // A page within a larger granule, or none of ours.
    Slot* end = slots_ + count;
    Slot* at = std::upper_bound(slots_, end, address,
                                [](Address value, const Slot& slot) { return value < slot.granule.begin; });
    if (at == slots_) return nullptr;
    --at;
    return at->granule.contains(address) ? at : nullptr;
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

/// [signal] Giving back must not fail. A call that would split a mapping can (ENOMEM: too many mappings), one
/// that joins mappings cannot: so after some tries the whole watched range is given back, unless the program
/// itself protects a part of it.
void Windows::unprotect(Range range) noexcept {
    for (int tries = 0; tries < 4; ++tries)
        if (kernel_.protect(range, Access::read_write) == 0) return;
    const char* expected = nullptr;
    forbidden_.compare_exchange_strong(expected, "the kernel refuses to give back the right to access pages");
    const std::size_t count = watched_count_.load(std::memory_order_acquire);
    const int excluded = std::min(excluded_count_.load(std::memory_order_acquire), max_excluded);
    for (std::size_t i = 0; i < count; ++i) {
        const Range watched = watched_[i].load();
        bool own_protection = false;
        for (int k = 0; k < excluded; ++k)
            own_protection |= watched.overlaps(excluded_[k]);
        if (watched.overlaps(range) && !own_protection) kernel_.protect(watched, Access::read_write);
    }
}

bool Windows::excludes(Range granule) const noexcept {
    const int count = std::min(excluded_count_.load(std::memory_order_acquire), max_excluded);
    return std::any_of(excluded_, excluded_ + count,
                       [&](const Range& excluded) { return granule.overlaps(excluded); });
}

void Windows::fill(std::span<const Range> granules) noexcept {
    const std::size_t count = std::min(granules.size(), capacity_);
    for (std::size_t i = 0; i < count; ++i) {
        slots_[i].granule = granules[i];
        slots_[i].node = -1;
        slots_[i].state.store(planned, std::memory_order_relaxed);
    }
    index(count);
    count_.store(count, std::memory_order_release);
}

std::size_t Windows::open(std::span<const Range> granules,
                          const std::function<bool()>& still_there) noexcept {
    if (forbidden() || !slots_ || granules.empty()) return 0;
    // Who gives back the last window finishes before its slots are taken away from those who wait for that.
    const bool given_back = wait_for_changes(false);
    building_.fetch_add(1, std::memory_order_seq_cst);
    // Others that still look at the last window's slots come and go within a few calls, unless a signal's
    // handler has jumped out of one.
    if (!given_back || !wait_for_changes(false)) {
        building_.fetch_add(1, std::memory_order_seq_cst);
        stuck_.store(true, std::memory_order_release);
        forbid("a thread did not come back from changing the right to access pages");
        return 0;
    }
    fill(granules);
    in_flight::forget_own();
    // From here on a call that begins sees that pages may be armed, or we see what it uses; and memory that
    // goes away takes its granules out of the window, or we see that it has gone.
    arming_.store(true, std::memory_order_relaxed);
    open_.store(true, std::memory_order_seq_cst);
    armed_windows.store(this, std::memory_order_seq_cst);
    building_.fetch_add(1, std::memory_order_seq_cst);
    {
        const Using guard(users_);
        std::size_t armed_now = 0;
        if (asymmetric_fence_heavy() && leave_out_what_is_in_flight() && still_there()) armed_now = arm();
        arming_.store(false, std::memory_order_seq_cst);
        if (is_open() && armed_now > 0) return armed_now;
        open_.store(false, std::memory_order_seq_cst);
        disarm(); // abandoned in between: what we armed after it looked must go, too
    }
    close();
    return 0;
}

/// What running calls use is not armed. False: one of them may use anything.
bool Windows::leave_out_what_is_in_flight() noexcept {
    return in_flight::each([this](Range range) {
        if (range.begin == all_memory.begin && range.end == all_memory.end) return false;
        for (Slot* at = first_overlapping(range); at != slots_end() && at->granule.begin < range.end; ++at)
            if (at->granule.overlaps(range)) at->pass(planned, released);
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

/// Arms what is planned. Neighbours are armed by one call. A refused range (ENOMEM: too many mappings) is
/// simply not armed, nor is what there may be no mappings for: that comes first in the next window. Returns
/// how many granules were.
std::size_t Windows::arm() noexcept {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    const std::size_t first = std::exchange(first_to_arm_, 0);
    std::size_t armed_now = 0;
    // What a run of neighbours can cost at the most, when every other one has been touched: one more than it
    // has.
    std::size_t spare = spare_mappings_;
    for (std::size_t looked = 0; looked < count && is_open();) {
        const std::size_t i = (first + looked) % count;
        if (spare < 2) {
            first_to_arm_ = i;
            break;
        }
        if (excludes(slots_[i].granule) || !slots_[i].pass(planned, changing)) {
            ++looked;
            continue;
        }
        std::size_t j = i + 1;
        while (j < count && j - i + 2 <= spare && slots_[j].granule.begin == slots_[j - 1].granule.end &&
               !excludes(slots_[j].granule) && slots_[j].pass(planned, changing))
            ++j;
        const Range range{slots_[i].granule.begin, slots_[j - 1].granule.end};
        const int error = kernel_.protect(range, Access::none);
        if (error) {
            unprotect(range);
            if (++refused_ > 64) forbid("the kernel refuses to protect pages");
        } else {
            armed_now += j - i;
        }
        for (std::size_t k = i; k < j; ++k)
            slots_[k].state.store(error ? released : armed, std::memory_order_seq_cst);
        spare -= j - i + 1;
        looked += j - i;
    }
    for (std::size_t i = 0; i < count; ++i)
        slots_[i].pass(planned, released);
    return armed_now;
}

/// [signal] What is armed can be accessed again, what is planned is not armed any more. Not what others are
/// changing just now.
void Windows::disarm() noexcept {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count;) {
        if (!slots_[i].pass(armed, changing)) {
            slots_[i++].pass(planned, released);
            continue;
        }
        std::size_t j = i + 1;
        while (j < count && slots_[j].granule.begin == slots_[j - 1].granule.end &&
               slots_[j].pass(armed, changing))
            ++j;
        unprotect({slots_[i].granule.begin, slots_[j - 1].granule.end});
        for (; i < j; ++i)
            slots_[i].state.store(released, std::memory_order_seq_cst);
    }
}

void Windows::close() noexcept {
    abandon();
    // Its slots are about to be forgotten, and another thread may be held up in the middle of giving back
    // what it has claimed, or the window.
    if (!wait_for_changes(false)) disarm();
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i)
        if (slots_[i].state.load(std::memory_order_acquire) == changing) unprotect(slots_[i].granule);
    Windows* self = this;
    armed_windows.compare_exchange_strong(self, nullptr, std::memory_order_seq_cst);
}

void Windows::abandon() noexcept {
    const Using guard(users_);
    if (!open_.exchange(false, std::memory_order_seq_cst)) return;
    disarm();
}

void Windows::cut_short() noexcept {
    constexpr int most_cuts = 32;
    if (!is_open()) return;
    abandon();
    if (cuts_.fetch_add(1, std::memory_order_relaxed) + 1 == most_cuts)
        forbid("the program takes faults (SIGSEGV) of its own, which end every window");
}

Windows::Verdict Windows::fault(Address address, bool write, Address instruction) noexcept {
    if (!slots_) return Verdict::foreign;
    const Using guard(users_);
    // A fault may arrive late, after its window was closed and while the next one is being built, which waits
    // for us.
    if (building_.load(std::memory_order_seq_cst) & 1) return Verdict::retry;
    Slot* slot = find(address);
    if (!slot) return Verdict::foreign;
    // Another thread got here first and may not have opened it yet; or it is open, or never was armed: what
    // forbids the access then is not ours.
    if (!slot->pass(armed, changing))
        return slot->state.load(std::memory_order_seq_cst) == changing ? Verdict::retry : Verdict::late;
    const Range granule = slot->granule;
    const int node = kernel_.current_node();
    slot->node = static_cast<std::int16_t>(node);
    slot->write = write;
    slot->thread = static_cast<std::int32_t>(raw::call(SYS_gettid));
    slot->instruction = instruction;
    // Access first, then the move: the kernel moves no page that nobody may access.
    unprotect(granule);
    slot->state.store(seen, std::memory_order_seq_cst);
    faults_.fetch_add(1, std::memory_order_relaxed);
    if (TouchAction action = action_.load(std::memory_order_acquire)) action(granule, node);
    return Verdict::counted;
}

bool Windows::open_again(Address address) noexcept {
    if (!slots_) return false;
    const Using guard(users_);
    if (building_.load(std::memory_order_seq_cst) & 1) return false;
    Slot* slot = find(address);
    // Memory that is `changing` cannot go away, whoever changes it.
    if (!slot || slot->state.load(std::memory_order_seq_cst) != changing) return false;
    return kernel_.protect(slot->granule, Access::read_write) == 0;
}

/// The first slot that may overlap the range.
Windows::Slot* Windows::first_overlapping(Range range) noexcept {
    Slot* at = std::upper_bound(slots_, slots_end(), range.begin,
                                [](Address value, const Slot& slot) { return value < slot.granule.begin; });
    return at == slots_ ? at : at - 1;
}

void Windows::release(Range range) noexcept {
    if (!slots_) return;
    const Using guard(users_);
    // What makes the memory go was written before; whoever is filling slots just now will see it.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (building_.load(std::memory_order_seq_cst) & 1) return;
    for (Slot* at = first_overlapping(range); at != slots_end() && at->granule.begin < range.end; ++at) {
        if (!at->granule.overlaps(range)) continue;
        const bool passed = wait_until(
            [&] {
                switch (at->state.load(std::memory_order_seq_cst)) {
                case planned:
                    return at->pass(planned, released);
                case armed:
                    if (!at->pass(armed, changing)) return false;
                    unprotect(at->granule);
                    at->state.store(released, std::memory_order_seq_cst);
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
        if (!passed && is_inside()) kernel_.protect(at->granule, Access::read_write);
    }
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

void Windows::begin_with(std::span<const long> arguments) noexcept {
    begin_touching();
    Windows* armed = armed_windows.load(std::memory_order_acquire);
    if (!armed) return;
    for (const long argument : arguments) {
        const auto begin = static_cast<Address>(argument);
        if (begin < ~Address{0} - page_bytes() && armed->watches(begin, begin + page_bytes()))
            return armed->abandon_and_wait();
    }
}

void Windows::exclude(Range range) noexcept {
    // Claim a place first, then publish in order: callers are few and open() only reads what is published.
    const int at = excluded_claimed_.fetch_add(1, std::memory_order_acq_rel);
    if (at >= max_excluded) {
        forbid("the program protects or unmaps parts of its arrays itself, too often to follow");
        return;
    }
    excluded_[at] = pages_of(range);
    for (int expected = at;
         !excluded_count_.compare_exchange_weak(expected, at + 1, std::memory_order_acq_rel); expected = at)
        relax();
    release(excluded_[at]);
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

void Windows::drain(std::vector<Reference>& out) {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) {
        Slot& slot = slots_[i];
        if (slot.state.load(std::memory_order_acquire) == seen && slot.node >= 0)
            out.push_back({slot.granule.begin, slot.node, slot.write, slot.write ? write_weight : 1,
                           slot.thread, slot.instruction});
    }
    count_.store(0, std::memory_order_release);
    count_mappings(); // for the next one
}

} // namespace homing
