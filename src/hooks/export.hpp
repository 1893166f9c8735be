// What the hooks share: exported symbols, and the functions behind them.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <dlfcn.h>
#include <type_traits>

#define HOMING_EXPORT __attribute__((visibility("default")))

namespace homing::hooks {

/// Look up the functions behind all that this library exports. A look-up later, in the middle of the program,
/// would take the message away that dlerror() keeps for it.
void look_up_exports() noexcept;
/// The next definition of a function after ours, or null. At any time, also before this library is relocated.
void* next_definition(const char* name) noexcept;

namespace relocation {
// Hidden here, not only where they are defined: else the compiler takes the first one's address from a table
// that is not relocated either, and holds the same as the second.
[[gnu::visibility("hidden")]] extern const volatile char a_place;
[[gnu::visibility("hidden")]] extern const volatile char* volatile relocated_place;
} // namespace relocation

/// Has the loader relocated this library? It relocates libraries from the last to the first, and those behind
/// us may have functions that choose among several (IFUNC), which may call anything: us, when neither a
/// function of another library nor a thread-local variable can be reached.
inline bool is_relocated() noexcept { return relocation::relocated_place == &relocation::a_place; }

/// The next definition of a function that we interpose. Every hook may be called at any moment of the
/// process's life: before our constructor, by the constructor of another preloaded library, by dlsym
/// (calloc), and before this library is relocated. So it asks is_ready() before it does anything else, and
/// passes the call on (early()) where that says no.
template <class Function> class Real {
  public:
    /// The name is kept as it is: a pointer to it would have to be relocated.
    constexpr explicit Real(const char* name) noexcept : name_{} {
        std::size_t at = 0;
        for (; name[at]; ++at)
            name_[at] = name[at]; // not a constant expression where it is too long
        name_[at] = '\0';
    }
    /// False: too early for more than passing the call on, or there is no such function.
    bool is_ready() noexcept { return __builtin_expect(known() != nullptr, 1) || (is_relocated() && get()); }
    Function* get() noexcept {
        Function* function = function_.load(std::memory_order_relaxed);
        return __builtin_expect(function != nullptr, 1) ? function : look_up();
    }
    /// Null where it was not looked up yet.
    Function* known() const noexcept { return function_.load(std::memory_order_relaxed); }
    template <class... Arguments> auto operator()(Arguments... arguments) {
        return get()(arguments...);
    } // a cancelled thread unwinds through it

  private:
    Function* look_up() noexcept {
        auto* function = reinterpret_cast<Function*>(next_definition(name_));
        if (is_relocated()) function_.store(function, std::memory_order_relaxed);
        return function;
    }
    char name_[48];
    std::atomic<Function*> function_{nullptr};
};

/// errno, which is out of reach before this library is relocated. Apart from its caller: the compiler may ask
/// for its place before it is sure that it is needed.
[[gnu::noinline]] void set_error(int number) noexcept;

/// A function that this C library does not have: a program that finds ours has a way without it.
template <class R> [[gnu::cold, gnu::noinline]] R missing() noexcept {
    set_error(ENOSYS);
    if constexpr (std::is_pointer_v<R>)
        return nullptr;
    else if constexpr (!std::is_void_v<R>)
        return static_cast<R>(-1);
}

/// The call and nothing else, for a function that is not ready.
template <class Function, class... Arguments>
[[gnu::cold, gnu::noinline]] auto early(Real<Function>& real, Arguments... arguments) {
    Function* const function = real.get();
    using Result = decltype(function(arguments...));
    return function ? function(arguments...) : missing<Result>();
}

} // namespace homing::hooks
