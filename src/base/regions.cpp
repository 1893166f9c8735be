#include "base/regions.hpp"

#include "base/inside.hpp"
#include "base/kept_errno.hpp"

#include <atomic>

namespace homing::phases {
namespace {

enum Standing : int { undecided, is_aside, active };

constinit std::atomic<int> standing{undecided};
constinit std::atomic<Listener*> listener{nullptr};
constinit std::atomic<Starter> starter{nullptr};
// The thread that drives the open top-level region, by the address of a variable of its own; null: none is
// open.
constinit std::atomic<const void*> driver{nullptr};
constinit std::atomic<bool> ends_unknown{false};
constinit thread_local int depth = 0;

const void* self() noexcept { return &depth; }

/// The first region of the process: one thread decides, others that come in meanwhile run unobserved.
bool decide() noexcept {
    static constinit std::atomic<bool> deciding{false};
    const Starter start = starter.load(std::memory_order_acquire);
    if (!start) // a constructor that runs before ours has regions: it is too early to decide
        return false;
    if (deciding.exchange(true)) return false;
    const Inside inside;
    const KeptErrno kept;
    Listener* found = start();
    listener.store(found, std::memory_order_release);
    int expected = undecided;
    standing.compare_exchange_strong(expected, found ? active : is_aside, std::memory_order_acq_rel);
    return found != nullptr;
}

} // namespace

void set_starter(Starter function) noexcept { starter.store(function, std::memory_order_release); }

bool start() noexcept {
    const int now = standing.load(std::memory_order_acquire);
    return now == undecided ? !is_inside() && decide() : now == active;
}

bool begin(Address function) noexcept {
    const int now = standing.load(std::memory_order_acquire);
    if (now == is_aside || is_inside()) return false;
    if (now == undecided && !decide()) return false;
    if (depth++ != 0) return true; // nested on the driving thread
    const void* expected = nullptr;
    if (!driver.compare_exchange_strong(expected, self(), std::memory_order_acq_rel))
        return true; // nested on a team's thread, or another thread's region at the same time
    const Inside inside;
    const KeptErrno kept;
    listener.load(std::memory_order_acquire)->region_begin(function);
    return true;
}

void end() noexcept {
    if (depth == 0 || --depth != 0) return;
    if (driver.load(std::memory_order_acquire) != self()) return;
    if (standing.load(std::memory_order_acquire) == active) {
        const Inside inside;
        const KeptErrno kept;
        listener.load(std::memory_order_acquire)->region_end();
    }
    driver.store(nullptr, std::memory_order_release);
}

bool begin_without_end(Address function) noexcept {
    ends_unknown.store(true, std::memory_order_relaxed);
    if (depth != 0 && driver.load(std::memory_order_acquire) == self()) end();
    return begin(function);
}

bool ends_are_known() noexcept { return !ends_unknown.load(std::memory_order_relaxed); }

bool barrier(Address site) noexcept {
    if (depth != 1 || !drives_region() || standing.load(std::memory_order_acquire) != active) return false;
    const Inside inside;
    const KeptErrno kept;
    return listener.load(std::memory_order_acquire)->barrier(site);
}

void barrier_passed() noexcept {
    if (!drives_region() || standing.load(std::memory_order_acquire) != active) return;
    const Inside inside;
    const KeptErrno kept;
    listener.load(std::memory_order_acquire)->barrier_passed();
}

bool aside() noexcept { return standing.load(std::memory_order_relaxed) == is_aside; }
void step_aside() noexcept { standing.store(is_aside, std::memory_order_release); }
bool in_region() noexcept { return driver.load(std::memory_order_acquire) != nullptr; }
bool drives_region() noexcept { return driver.load(std::memory_order_acquire) == self(); }

} // namespace homing::phases
