#include "sources/windows.hpp"

#include "base/clock.hpp"
#include "base/raw_calls.hpp"
#include "sources/windows_using.hpp"

#include <algorithm>
#include <cerrno>
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

/// Adds the processor time of this thread between its begin and its end to a sum: what the thread was put
/// aside for in between does not count.
class Timed {
  public:
    explicit Timed(std::atomic<std::uint64_t>& sum) noexcept : sum_(sum), begin_(is_possible() ? now() : 0) {}
    ~Timed() {
        if (begin_) sum_.fetch_add(now() - begin_, std::memory_order_relaxed);
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

    /// Simulated time has nothing to do with the processor's.
    static bool is_possible() noexcept {
        return the_clock.load(std::memory_order_relaxed) == monotonic_seconds;
    }
    /// [signal] Nanoseconds.
    static std::uint64_t now() noexcept {
        timespec used{};
        raw::call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &used);
        return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000u +
               static_cast<std::uint64_t>(used.tv_nsec);
    }

  private:
    std::atomic<std::uint64_t>& sum_;
    std::uint64_t begin_;
};

/// Libraries whose peers (other processes, devices, kernel threads) fault on or pin the program's pages.
constexpr const char* forbidding_libraries[] = {
    "libmpi.so",  "libmpich.so",    "libmpi_",         "libibverbs.so", "libfabric.so", "liburing.so",
    "libcuda.so", "libamdhip64.so", "libze_loader.so", "libsycl.so",    "libucp.so"};
/// Valgrind brings this into every program. By default it knows not all registers at an access: what goes on
/// behind a fault computes with old values.
constexpr const char* valgrinds_library = "vgpreload_core";

bool begins(const char* name, const char* with) noexcept {
    return std::strncmp(name, with, std::strlen(with)) == 0;
}

int find_forbidding(dl_phdr_info* info, std::size_t, void* found) noexcept {
    const char* path = info->dlpi_name ? info->dlpi_name : "";
    const char* slash = std::strrchr(path, '/');
    const char* name = slash ? slash + 1 : path;
    if (begins(name, valgrinds_library)) {
        *static_cast<const char**>(found) = valgrinds_library;
        return 1;
    }
    for (const char* library : forbidding_libraries)
        if (begins(name, library)) {
            *static_cast<const char**>(found) = library;
            return 1;
        }
    return 0;
}

} // namespace

Windows::~Windows() {
    stop();
    for (Order& order : orders_) {
        raw::unmap(order.index, 4 * capacity_ * sizeof(std::uint64_t));
        raw::unmap(order.places, capacity_ * sizeof(Order::Place));
    }
    raw::unmap(free_, slot_count() * sizeof(std::uint32_t));
    raw::unmap(dropped_, slot_count() * sizeof(std::uint32_t));
    raw::unmap(slots_, slot_count() * sizeof(Slot));
    raw::unmap(watched_, max_watched * sizeof(SharedRange));
}

std::string Windows::unavailable() {
    const char* library = nullptr;
    ::dl_iterate_phdr(find_forbidding, &library);
    if (library == valgrinds_library)
        return "valgrind runs the program, which goes on with old registers behind a fault";
    if (library) return std::string(library) + " is loaded: its peers may touch protected pages";
    if (const char* reason = forbidden()) return reason;
    return {};
}

bool Windows::start(std::span<const WatchedRange> ranges) {
    if (!map_memory()) return false;
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

std::size_t Windows::open(std::span<const Range> granules,
                          const std::function<bool()>& still_there) noexcept {
    if (forbidden() || !slots_ || granules.empty()) return 0;
    // Whoever gives back a window finishes first, and whoever looks at an order that was replaced. They come
    // and go within a few calls, unless a signal's handler has jumped out of one.
    if (!wait_for_changes(false)) {
        stuck_.store(true, std::memory_order_release);
        forbid("a thread did not come back from changing the right to access pages");
        return 0;
    }
    const Order& fresh = build(granules);
    in_flight::forget_own();
    // From here on a call that begins sees that pages may be armed, or we see what it uses; and memory that
    // goes away takes its granules out of the window, or we see that it has gone.
    open_.store(true, std::memory_order_seq_cst);
    armed_windows.store(this, std::memory_order_seq_cst);
    order_.store(&fresh, std::memory_order_seq_cst);
    sequence_.fetch_add(1, std::memory_order_seq_cst);
    arming_.store(true, std::memory_order_seq_cst);
    std::size_t armed_now = 0;
    {
        const Using guard(users_);
        if (asymmetric_fence_heavy() && !forbidden() && leave_out_what_is_in_flight() && still_there())
            armed_now = arm();
        for (std::size_t i = 0; i < fresh.count; ++i)
            slot(fresh, i).pass(planned, released);
        arming_.store(false, std::memory_order_seq_cst);
        if (is_open() && !forbidden() && (armed_now > 0 || armed() > 0)) return armed_now;
        open_.store(false, std::memory_order_seq_cst);
        disarm(); // abandoned in between: what we armed after it looked must go, too
    }
    close();
    return 0;
}

bool Windows::is_armed(Address address) noexcept {
    const Slot* found = slots_ ? find(address) : nullptr;
    return found && found->state.load(std::memory_order_relaxed) == is_protected;
}

/// The kernel has refused to protect these places, and they are all accessible. Now and then it may (ENOMEM:
/// too many mappings).
void Windows::refused(std::size_t first, std::size_t end, int error) noexcept {
    constexpr int most_in_turn = 64;
    if (error == EINVAL && leave_out_unfit(first, end)) return;
    if (++refused_ > most_in_turn) forbid("the kernel refuses to protect pages");
}

/// Arms what is planned. Neighbours are armed by one call. A refused range is simply not armed, nor is what
/// there may be no mappings for: that comes first in the next window. Returns how many granules were.
std::size_t Windows::arm() noexcept {
    const Order& now = order();
    const auto at = [&](std::size_t place) -> Slot& { return slot(now, place); };
    const Address first_wanted = std::exchange(first_to_arm_, 0);
    std::size_t first = 0;
    while (first < now.count && now.places[first].begin < first_wanted)
        ++first;
    const Timed timed(arm_nanoseconds_);
    std::size_t armed_now = 0;
    // What a run of neighbours can cost at the most, when every other one has been touched: one more than it
    // has. What is armed already costs as much.
    const std::size_t kept = 2 * armed();
    std::size_t spare = spare_mappings_ - std::min(spare_mappings_, kept);
    for (std::size_t looked = 0; looked < now.count && is_open();) {
        const std::size_t i = (first + looked) % now.count;
        if (at(i).state.load(std::memory_order_relaxed) != planned) {
            ++looked;
            continue;
        }
        if (spare < 2) {
            first_to_arm_ = at(i).granule.begin;
            break;
        }
        if (excludes(at(i).granule) || !at(i).pass(planned, changing)) {
            ++looked;
            continue;
        }
        std::size_t j = i + 1;
        while (j < now.count && j - i + 2 <= spare && at(j).granule.begin == at(j - 1).granule.end &&
               !excludes(at(j).granule) && at(j).pass(planned, changing))
            ++j;
        const Range range{at(i).granule.begin, at(j - 1).granule.end};
        const int error = kernel_.protect(range, Access::none);
        arm_calls_.fetch_add(1, std::memory_order_relaxed);
        if (error) {
            unprotect(range);
            refused(i, j, error);
        } else {
            refused_ = 0;
            armed_now += j - i;
            standing_.fetch_add(j - i, std::memory_order_relaxed); // before anybody can claim one
        }
        for (std::size_t k = i; k < j; ++k)
            at(k).state.store(error ? released : is_protected, std::memory_order_seq_cst);
        spare -= j - i + 1;
        looked += j - i;
    }
    armed_.fetch_add(armed_now, std::memory_order_relaxed);
    return armed_now;
}

/// [signal] What is armed can be accessed again, what is planned is not armed any more. Not what others are
/// changing just now.
void Windows::disarm() noexcept {
    const Order& now = order();
    const auto at = [&](std::size_t place) -> Slot& { return slot(now, place); };
    const Timed timed(back_nanoseconds_);
    for (std::size_t i = 0; i < now.count;) {
        if (!claim(at(i))) {
            at(i++).pass(planned, released);
            continue;
        }
        std::size_t j = i + 1;
        while (j < now.count && at(j).granule.begin == at(j - 1).granule.end && claim(at(j)))
            ++j;
        unprotect({at(i).granule.begin, at(j - 1).granule.end});
        back_calls_.fetch_add(1, std::memory_order_relaxed);
        for (; i < j; ++i)
            at(i).state.store(released, std::memory_order_seq_cst);
    }
}

void Windows::close() noexcept {
    abandon();
    // Its slots are about to be forgotten, and another thread may be held up in the middle of giving back
    // what it has claimed, or the window.
    if (!wait_for_changes(false)) disarm();
    const Order& now = order();
    for (std::size_t i = 0; i < now.count; ++i)
        if (slot(now, i).state.load(std::memory_order_acquire) == changing) unprotect(slot(now, i).granule);
    Windows* self = this;
    armed_windows.compare_exchange_strong(self, nullptr, std::memory_order_seq_cst);
}

void Windows::abandon() noexcept {
    if (!is_open()) return;
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

Windows::Verdict Windows::fault(Address address, bool write, Address instruction, bool own) noexcept {
    if (!slots_) return Verdict::foreign;
    const Using guard(users_, Using::InHandler{});
    Slot* slot = find(address);
    if (!slot) return Verdict::foreign;
    const std::uint64_t number = all_faults_.fetch_add(1, std::memory_order_relaxed);
    // Another thread got here first and may not have opened it yet; or it is open, or never was armed: what
    // forbids the access then is not ours.
    if (!claim(*slot))
        return slot->state.load(std::memory_order_seq_cst) == changing ? Verdict::retry : Verdict::late;
    constexpr std::uint64_t timed_of = 8;
    const bool timed = number % timed_of == 0 && !own && Timed::is_possible();
    const std::uint64_t begin = timed ? Timed::now() : 0;
    const Range granule = slot->granule;
    if (own) {
        unprotect(granule);
        back_calls_.fetch_add(1, std::memory_order_relaxed);
        slot->state.store(released, std::memory_order_seq_cst);
        return Verdict::counted;
    }
    const int node = kernel_.current_node();
    slot->node = static_cast<std::int16_t>(node);
    slot->write = write;
    slot->thread = kernel_.current_thread();
    slot->touched = address;
    slot->instruction = instruction;
    // Access first, then the move: the kernel moves no page that nobody may access.
    unprotect(granule);
    slot->state.store(seen, std::memory_order_seq_cst);
    touches_.fetch_add(1, std::memory_order_relaxed);
    if (timed) {
        touch_nanoseconds_.fetch_add(Timed::now() - begin, std::memory_order_relaxed);
        timed_touches_.fetch_add(1, std::memory_order_relaxed);
    }
    if (TouchAction action = action_.load(std::memory_order_acquire)) action(granule, node);
    return Verdict::counted;
}

bool Windows::open_again(Address address) noexcept {
    if (!slots_) return false;
    const Using guard(users_, Using::InHandler{});
    Slot* slot = find(address);
    // Memory that is `changing` cannot go away, whoever changes it.
    if (!slot || slot->state.load(std::memory_order_seq_cst) != changing) return false;
    return kernel_.protect(slot->granule, Access::read_write) == 0;
}

void Windows::drain(std::vector<Reference>& out) {
    const Order& now = order();
    for (std::size_t i = 0; i < now.count; ++i) {
        Slot& touched = slot(now, i);
        if (touched.state.load(std::memory_order_acquire) != seen) continue;
        if (touched.node >= 0)
            out.push_back({touched.touched, touched.node, touched.write, touched.write ? write_weight : 1,
                           touched.thread, touched.instruction});
        touched.pass(seen, released);
    }
    if (is_open()) return;
    close(); // others may be giving back what is about to be forgotten
    order_.store(&nothing, std::memory_order_seq_cst);
    for (std::size_t i = 0; i < now.count; ++i)
        drop(now.places[i].slot);
    count_mappings(); // for the next one
}

Windows::Costs Windows::costs() const noexcept {
    const auto read = [](const std::atomic<std::uint64_t>& value) {
        return value.load(std::memory_order_relaxed);
    };
    const auto seconds = [&](const std::atomic<std::uint64_t>& nanoseconds) {
        return 1e-9 * static_cast<double>(read(nanoseconds));
    };
    Costs costs;
    costs.armed = read(armed_);
    costs.arm_calls = read(arm_calls_);
    costs.back_calls = read(back_calls_);
    costs.touches = read(touches_);
    costs.faults = read(all_faults_);
    costs.arm_seconds = seconds(arm_nanoseconds_);
    costs.back_seconds = seconds(back_nanoseconds_);
    costs.timed_touches = read(timed_touches_);
    costs.touch_seconds = seconds(touch_nanoseconds_);
    return costs;
}

void Windows::forget_costs() noexcept {
    for (std::atomic<std::uint64_t>* value :
         {&armed_, &arm_calls_, &back_calls_, &touches_, &all_faults_, &arm_nanoseconds_, &back_nanoseconds_,
          &timed_touches_, &touch_nanoseconds_})
        value->store(0, std::memory_order_relaxed);
}

} // namespace homing
