#include "hooks/signals/own_action.hpp"

#include "hooks/signals/masks.hpp"
#include "sources/windows.hpp"

#include <atomic>

namespace homing::hooks {
namespace {

// Written by the program's sigaction calls, read by the handler: a sequence number makes a half-written one
// visible.
struct Chained {
    std::atomic<unsigned> sequence{0};
    struct sigaction action = {};
};
constinit Chained chained;

/// What the C library's function returns of every action: how a handler goes back to the kernel.
constinit std::atomic<void (*)()> restorer{nullptr};
constinit std::atomic<int> restorer_flag{0};
constinit std::atomic<bool> keeps_known_flags{false};

} // namespace

constinit Real<int(int, const struct sigaction*, struct sigaction*)> real_sigaction{"sigaction"};

bool has_handler(const struct sigaction& action) noexcept {
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

void set_own_action(const struct sigaction& action) noexcept {
    chained.sequence.fetch_add(1, std::memory_order_acq_rel);
    chained.action = action;
    chained.sequence.fetch_add(1, std::memory_order_acq_rel);
}

struct sigaction own_action() noexcept {
    struct sigaction copy;
    unsigned before = 0;
    int tries = 0;
    do {
        before = chained.sequence.load(std::memory_order_acquire);
        copy = chained.action;
    } while ((before & 1 || chained.sequence.load(std::memory_order_acquire) != before) && ++tries < 1000);
    return copy;
}

void keep_action(const struct sigaction& action) noexcept {
    set_own_action(action);
    Windows* windows = armed_windows.load(std::memory_order_acquire);
    if (windows && has_handler(action)) windows->abandon();
}

void learn_reading_back(const struct sigaction& given, const struct sigaction& now) noexcept {
    restorer.store(now.sa_restorer, std::memory_order_relaxed);
    restorer_flag.store(now.sa_flags & ~given.sa_flags, std::memory_order_relaxed);
    keeps_known_flags.store(!(now.sa_flags & unknown_flag), std::memory_order_relaxed);
}

struct sigaction as_read_back(struct sigaction action) noexcept {
    constexpr unsigned known = SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART |
                               SA_NODEFER | SA_RESETHAND | 0x800; // SA_EXPOSE_TAGBITS
    auto flags = static_cast<unsigned>(action.sa_flags);
    if (keeps_known_flags.load(std::memory_order_relaxed)) flags &= known;
    action.sa_flags = static_cast<int>(flags) | restorer_flag.load(std::memory_order_relaxed);
    action.sa_restorer = restorer.load(std::memory_order_relaxed);
    put_mask(action.sa_mask, get_mask(action.sa_mask) & ~(mask_of(SIGKILL) | mask_of(SIGSTOP)));
    return action;
}

} // namespace homing::hooks
