// What the doors share: exported symbols, and the functions behind them.
#pragma once

#include <atomic>
#include <cstddef>
#include <dlfcn.h>

#define HOMING_EXPORT __attribute__((visibility("default")))

namespace homing::doors {

/// Look up the functions behind all that this library exports. A look-up later, in the middle of the program,
/// would take the message away that dlerror() keeps for it.
void look_up_exports() noexcept;
/// The next definition of a function after ours, or null.
void* next_definition(const char* name) noexcept;

/// The next definition of a function that we interpose. Where it is asked for before exports were looked up,
/// dlsym may call us back (calloc); homing's own memory answers such calls.
template <class Function> class Real {
  public:
    constexpr explicit Real(const char* name) noexcept : name_(name) {}
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
        function_.store(function, std::memory_order_relaxed);
        return function;
    }
    const char* name_;
    std::atomic<Function*> function_{nullptr};
};

} // namespace homing::doors
