#include "hooks/signals/stacks.hpp"

#include "base/inside.hpp"
#include "base/next_below.hpp"
#include "base/raw_calls.hpp"
#include "base/regions.hpp"
#include "engine/engine.hpp"
#include "first_touch/first_touches.hpp"
#include "hooks/allocator/own_memory.hpp"
#include "hooks/export.hpp"
#include "hooks/signals/kernel_actions.hpp"
#include "hooks/signals/masks.hpp"
#include "machine/start_up.hpp"
#include "sources/windows.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <pthread.h>
#include <sys/auxv.h>

namespace homing::hooks {
namespace {

constinit Real<int(const stack_t*, stack_t*)> real_sigaltstack{"sigaltstack"};

constexpr int disarms_itself = -1 - 0x7fffffff; // SS_AUTODISARM

constinit std::atomic<bool> giving{false};
constinit pthread_key_t key{};
constinit thread_local void* own_stack = nullptr;

/// Of a thread's stack only what was once in use is memory.
std::size_t own_stack_bytes() noexcept {
    constexpr std::size_t room = std::size_t{64} << 10;
    return room + ::getauxval(AT_MINSIGSTKSZ);
}

bool disables(const stack_t& stack) noexcept { return (stack.ss_flags & ~disarms_itself) == SS_DISABLE; }

stack_t no_stack() noexcept {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    return none;
}

stack_t ours() noexcept {
    stack_t stack{};
    stack.ss_sp = own_stack;
    stack.ss_size = own_stack_bytes();
    return stack;
}

constexpr const char* too_small = "an alternate stack has no room for a fault within a handler";
constinit std::atomic<bool> one_is_too_small{false};

/// A handler on it that touches what is armed needs a second frame of the kernel's there, and one of ours.
bool has_room_for_a_fault(std::size_t bytes) noexcept {
    constexpr std::size_t ours = 2048; // our handler was measured to take 1,100
    return bytes >= 2 * ::getauxval(AT_MINSIGSTKSZ) + ours;
}

/// An alternate stack of the program's: it is never armed, and there is room on it.
void note_stack_of_handlers(const stack_t& stack) noexcept {
    if (!has_room_for_a_fault(stack.ss_size)) {
        one_is_too_small.store(true, std::memory_order_release);
        if (Windows* windows = active_windows.load(std::memory_order_acquire)) windows->forbid(too_small);
    }
    note_alternate_stack(stack.ss_sp, stack.ss_size);
}

/// Null: there is no memory.
void take_into_use(void* memory) noexcept {
    if (!memory) return;
    own_stack = memory;
    const stack_t stack = ours();
    if (raw::call(SYS_sigaltstack, &stack, nullptr) == 0 && ::pthread_setspecific(key, memory) == 0) return;
    const stack_t none = no_stack();
    raw::call(SYS_sigaltstack, &none, nullptr);
    own_stack = nullptr;
    own_free(memory);
}

/// What its thread-local keys were for has gone, or goes now.
constinit thread_local bool ending = false;
constinit thread_local bool creating = false;

/// Such calls do not lie within one another.
struct Creating {
    Creating() noexcept { creating = true; }
    Creating(const Creating&) = delete;
    Creating& operator=(const Creating&) = delete;
    ~Creating() { creating = false; }
};

/// The thread ends.
void take_stack(void* stack) noexcept {
    if (!giving.load(std::memory_order_relaxed)) return;
    const stack_t none = no_stack();
    stack_t now{};
    if (raw::call(SYS_sigaltstack, &none, &now) == 0 && now.ss_sp != stack && !disables(now))
        raw::call(SYS_sigaltstack, &now, nullptr); // the program's: its destructors may still run
    own_stack = nullptr;
    ending = true;
    own_free(stack);
}

struct Beginning {
    void* (*function)(void*);
    void* argument;
};

void* begin_thread(void* memory) {
    const Beginning beginning = *static_cast<Beginning*>(memory);
    own_free(memory);
    if (watches_new_threads()) watch_new_thread();
    if (!giving.load(std::memory_order_acquire)) return beginning.function(beginning.argument);
    let_faults_through_new_thread();
    give_stack();
    if (Engine* running = engine()) bring_pages_of_new_thread(running->kernel());
    return beginning.function(beginning.argument);
}

} // namespace

void prepare_stacks() noexcept {
    if (::pthread_key_create(&key, take_stack) == 0) giving.store(true, std::memory_order_release);
}

bool thread_is_ending() noexcept { return ending; }

void give_stack() noexcept {
    if (own_stack || !giving.load(std::memory_order_acquire)) return;
    // A handler of the program's that asks for an alternate stack must find the program's, or none.
    if (a_handler_asks_for_a_stack()) return;
    stack_t now{};
    if (raw::call(SYS_sigaltstack, nullptr, &now) != 0 || !disables(now)) return;
    take_into_use(own_allocate(own_stack_bytes()));
}

bool is_own_stack(const void* begin) noexcept { return own_stack && begin == own_stack; }

void give_no_more_stacks() noexcept { giving.store(false, std::memory_order_release); }

} // namespace homing::hooks

using namespace homing::hooks;

extern "C" {

// An alternate stack must never be armed: the kernel could not deliver the very fault.
HOMING_EXPORT int sigaltstack(const stack_t* stack, stack_t* old) noexcept {
    if (!translates_masks()) { // no window yet: the call as it is
        const int result = real_sigaltstack(stack, old);
        if (result == 0 && stack && !disables(*stack)) note_stack_of_handlers(*stack);
        return result;
    }
    stack_t given{};
    stack_t before{};
    if (stack) given = *stack;
    const bool sets = stack && !disables(given);
    if (sets) note_stack_of_handlers(given);
    if (stack && !sets && own_stack) given = ours();
    const int result = real_sigaltstack(stack ? &given : nullptr, old ? &before : nullptr);
    if (result != 0) return result;
    if (old) *old = is_own_stack(before.ss_sp) ? no_stack() : before;
    return result;
}

HOMING_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attribute, void* (*function)(void*),
                                 void* argument) noexcept {
    static constinit Real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)> real{
        "pthread_create"};
    if (!real.is_ready()) return early(real, thread, attribute, function, argument);
    const Creating creates;
    const bool gives = giving.load(std::memory_order_acquire);
    if (homing::phases::aside() || homing::is_inside() || (!gives && !homing::watches_new_threads()))
        return real(thread, attribute, function, argument);
    if (gives) {
        let_faults_through_here();
        give_stack();
    }
    auto* beginning = static_cast<Beginning*>(own_allocate(sizeof(Beginning)));
    if (!beginning) return real(thread, attribute, function, argument);
    *beginning = {function, argument};
    const int result = real(thread, attribute, begin_thread, beginning);
    if (result != 0) own_free(beginning);
    return result;
}

} // extern "C"

namespace homing::hooks {
namespace {
constexpr int most_stacks = 256;
struct Stack {
    std::atomic<Address> begin{0};
    std::atomic<std::size_t> bytes{0};
};
constinit Stack stacks[most_stacks];
constinit std::atomic<int> stack_count{0};
constexpr const char* too_many = "more than 256 stacks, buffers of streams and locks may not be protected";
} // namespace

bool creates_thread() noexcept { return creating; }

void note_alternate_stack(const void* begin, std::size_t bytes) noexcept {
    const auto address = reinterpret_cast<Address>(begin);
    const int known = std::min(stack_count.load(std::memory_order_acquire), most_stacks);
    for (int i = 0; i < known; ++i)
        if (stacks[i].begin.load(std::memory_order_acquire) == address &&
            stacks[i].bytes.load(std::memory_order_acquire) >= bytes)
            return;
    const int at = next_below(stack_count, most_stacks + 1); // the last one: there were too many
    if (at < most_stacks) {
        stacks[at].bytes.store(bytes, std::memory_order_release);
        stacks[at].begin.store(address, std::memory_order_release);
    }
    if (Windows* windows = active_windows.load(std::memory_order_acquire)) {
        if (at < most_stacks)
            windows->exclude({address, address + bytes});
        else
            windows->forbid(too_many);
    }
}

bool exclude_alternate_stacks(Windows& windows) noexcept {
    const int known = stack_count.load(std::memory_order_acquire);
    if (known > most_stacks || one_is_too_small.load(std::memory_order_acquire)) {
        windows.forbid(known > most_stacks ? too_many : too_small);
        return false;
    }
    for (int i = 0; i < known; ++i) {
        const Address begin = stacks[i].begin.load(std::memory_order_acquire);
        if (begin) windows.exclude({begin, begin + stacks[i].bytes.load(std::memory_order_acquire)});
    }
    return true;
}

} // namespace homing::hooks
