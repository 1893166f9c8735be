#include "references/windows.hpp"

#include "base/raw_calls.hpp"

#include <algorithm>
#include <cstring>
#include <link.h>

namespace homing {

constinit std::atomic<Windows*> active_windows{nullptr};

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

/// Brackets the time between claiming a granule and opening it.
class Changing {
  public:
    explicit Changing(std::atomic<int>& count) noexcept : count_(count) {
        count_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Changing() { count_.fetch_sub(1, std::memory_order_seq_cst); }
    Changing(const Changing&) = delete;
    Changing& operator=(const Changing&) = delete;

  private:
    std::atomic<int>& count_;
};

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
    raw::unmap(watched_, max_watched * sizeof(Range));
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
    if (!watched_) watched_ = map_array<Range>(max_watched);
    if (!index_) index_ = map_array<std::uint64_t>(4 * capacity_);
    if (!slots_ || !watched_ || !index_) return false;
    watched_sequence_.fetch_add(1, std::memory_order_acq_rel); // odd: readers wait
    const std::size_t count = std::min(ranges.size(), max_watched);
    for (std::size_t i = 0; i < count; ++i)
        watched_[i] = ranges[i].range;
    watched_count_.store(count, std::memory_order_release);
    watched_sequence_.fetch_add(1, std::memory_order_acq_rel);
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
        const std::size_t count = watched_count_.load(std::memory_order_acquire);
        const Range* at =
            std::upper_bound(watched_, watched_ + count, end - 1,
                             [](Address value, const Range& range) { return value < range.begin; });
        const bool inside = at != watched_ && (at - 1)->overlaps(Range{begin, end});
        if (watched_sequence_.load(std::memory_order_acquire) == before) return inside;
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
        bool own_protection = false;
        for (int k = 0; k < excluded; ++k)
            own_protection |= watched_[i].overlaps(excluded_[k]);
        if (watched_[i].overlaps(range) && !own_protection) kernel_.protect(watched_[i], Access::read_write);
    }
}

std::size_t Windows::open(std::span<const Range> granules) noexcept {
    if (forbidden() || !slots_ || granules.empty()) return 0;
    building_.fetch_add(1, std::memory_order_acq_rel);
    std::size_t count = 0;
    const int excluded = excluded_count_.load(std::memory_order_acquire);
    for (const Range& granule : granules) {
        if (count == capacity_) break;
        bool forbidden_granule = false;
        for (int i = 0; i < excluded; ++i)
            forbidden_granule |= granule.overlaps(excluded_[i]);
        if (forbidden_granule) continue;
        slots_[count].granule = granule;
        slots_[count].node = -1;
        slots_[count].state.store(armed, std::memory_order_relaxed);
        ++count;
    }
    index(count);
    count_.store(count, std::memory_order_release);
    // From here on a system call that uses watched memory sees an open window, or we see the call.
    open_.store(true, std::memory_order_seq_cst);
    building_.fetch_add(1, std::memory_order_acq_rel);
    if (system_calls_.load(std::memory_order_seq_cst) != 0) {
        abandon();
        return 0;
    }
    // Neighbours are armed by one call. A refused range (ENOMEM: too many mappings) is simply not armed.
    std::size_t armed_now = 0;
    for (std::size_t i = 0; i < count;) {
        std::size_t j = i + 1;
        while (j < count && slots_[j].granule.begin == slots_[j - 1].granule.end)
            ++j;
        if (!is_open()) return armed_now; // cut short by another thread while we were arming
        const int error = kernel_.protect({slots_[i].granule.begin, slots_[j - 1].granule.end}, Access::none);
        if (error) {
            ++refused_;
            for (std::size_t k = i; k < j; ++k)
                slots_[k].state.store(released, std::memory_order_release);
            unprotect({slots_[i].granule.begin, slots_[j - 1].granule.end});
            if (refused_ > 64) forbid("the kernel refuses to protect pages");
        } else {
            armed_now += j - i;
            // Released, or counted by a late fault of an earlier window, while we were arming it: nobody else
            // will open it again.
            for (std::size_t k = i; k < j; ++k)
                if (slots_[k].state.load(std::memory_order_seq_cst) != armed) unprotect(slots_[k].granule);
        }
        i = j;
    }
    if (!is_open()) { // abandoned in between: what we armed after it looked must go, too
        for (std::size_t i = 0; i < count; ++i)
            slots_[i].state.store(armed, std::memory_order_release);
        disarm_armed();
        return 0;
    }
    return armed_now;
}

void Windows::disarm_armed() noexcept {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count;) {
        std::uint8_t expected = armed;
        if (!slots_[i].state.compare_exchange_strong(expected, released)) {
            ++i;
            continue;
        }
        std::size_t j = i + 1;
        while (j < count && slots_[j].granule.begin == slots_[j - 1].granule.end) {
            expected = armed;
            if (!slots_[j].state.compare_exchange_strong(expected, released)) break;
            ++j;
        }
        // Race, judged benign: a thread outside the team may free and unmap this granule between the exchange
        // and this call. The call then fails (ENOMEM) unless another mapping took its place within those
        // nanoseconds.
        unprotect({slots_[i].granule.begin, slots_[j - 1].granule.end});
        i = j;
    }
}

void Windows::close() noexcept {
    if (!open_.exchange(false, std::memory_order_seq_cst)) return;
    disarm_armed();
    // A thread outside the team may have claimed a granule and been held up before it could open it: its slot
    // is about to be forgotten.
    const std::size_t count = count_.load(std::memory_order_acquire);
    if (changing_.load(std::memory_order_seq_cst) != 0)
        for (std::size_t i = 0; i < count; ++i)
            if (slots_[i].state.load(std::memory_order_acquire) == seen) unprotect(slots_[i].granule);
}

void Windows::abandon() noexcept {
    const Changing changing(changing_);
    if (!open_.exchange(false, std::memory_order_seq_cst)) return;
    disarm_armed();
}

Windows::Verdict Windows::fault(Address address, bool write) noexcept {
    // A fault may arrive late, after its window was closed and while the next one is being built.
    for (int spins = 0; building_.load(std::memory_order_acquire) & 1 && spins < 1 << 20; ++spins)
        relax();
    Slot* slot = slots_ ? find(address) : nullptr;
    if (!slot) return Verdict::foreign;
    const Changing changing(changing_);
    std::uint8_t expected = armed;
    if (slot->state.compare_exchange_strong(expected, seen)) {
        const Range granule = slot->granule;
        const int node = kernel_.current_node();
        slot->node = static_cast<std::int16_t>(node);
        slot->write = write;
        // Access first, then the move: the kernel moves no page that nobody may access.
        unprotect(granule);
        faults_.fetch_add(1, std::memory_order_relaxed);
        if (TouchAction action = action_.load(std::memory_order_acquire)) action(granule, node);
        return Verdict::counted;
    }
    if (expected == released && !open_.load(std::memory_order_acquire)) return Verdict::retry;
    // Another thread got here first and may not have unprotected it yet.
    return Verdict::retry;
}

bool Windows::open_again(Address address) noexcept {
    Slot* slot = slots_ ? find(address) : nullptr;
    if (!slot || slot->state.load(std::memory_order_acquire) == armed) return false;
    const Range granule = slot->granule;
    const int excluded = excluded_count_.load(std::memory_order_acquire);
    for (int i = 0; i < excluded; ++i)
        if (granule.overlaps(excluded_[i])) return false;
    return kernel_.protect(granule, Access::read_write) == 0;
}

void Windows::release(Range range) noexcept {
    if (!open_.load(std::memory_order_acquire) || !slots_) return;
    const Changing changing(changing_);
    const std::size_t count = count_.load(std::memory_order_acquire);
    Slot* end = slots_ + count;
    Slot* at = std::upper_bound(slots_, end, range.begin,
                                [](Address value, const Slot& slot) { return value < slot.granule.begin; });
    if (at != slots_) --at;
    for (; at != end && at->granule.begin < range.end; ++at) {
        if (!at->granule.overlaps(range)) continue;
        std::uint8_t expected = armed;
        if (at->state.compare_exchange_strong(expected, released)) unprotect(at->granule);
    }
}

void Windows::system_call_begin() noexcept {
    system_calls_.fetch_add(1, std::memory_order_seq_cst);
    abandon_and_wait();
}

void Windows::abandon_and_wait() noexcept {
    abandon();
    wait_for_changes();
}

/// Another thread may have claimed a granule and not have opened it yet. Bounded: it may be the one we
/// interrupt.
void Windows::wait_for_changes() noexcept {
    for (int spins = 0; changing_.load(std::memory_order_seq_cst) != 0 && spins < 1 << 15; ++spins)
        if (spins < 256)
            relax();
        else
            raw::call(SYS_sched_yield);
}

bool Windows::system_call_begin(const void* buffer, std::size_t bytes) noexcept {
    const Address begin = reinterpret_cast<Address>(buffer);
    if (!buffer || bytes == 0 || !watched_ || !watches(begin, begin + bytes)) return false;
    system_calls_.fetch_add(1, std::memory_order_seq_cst);
    if (open_.load(std::memory_order_seq_cst)) release(Range{begin, begin + bytes});
    wait_for_changes();
    return true;
}

void Windows::exclude(Range range) noexcept {
    // Claim a place first, then publish in order: callers are few and open() only reads what is published.
    static constinit std::atomic<int> claimed{0};
    const int at = claimed.fetch_add(1, std::memory_order_acq_rel);
    if (at >= max_excluded) {
        forbid("the program protects or unmaps parts of its arrays itself, too often to follow");
        return;
    }
    excluded_[at] = {align_down(range.begin, page_bytes()), align_up(range.end, page_bytes())};
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
            out.push_back({slot.granule.begin, slot.node, slot.write, slot.write ? write_weight : 1});
    }
    count_.store(0, std::memory_order_release);
}

} // namespace homing
