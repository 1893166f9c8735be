// What the hooks of signals offer to the engine and to the other hooks.
#pragma once

#include "hooks/signals/masks.hpp"
#include "hooks/signals/stacks.hpp"

namespace homing::hooks {

/// Before each window: our handler is in force and SIGSEGV can reach it. Null: yes; otherwise the reason in
/// words. Before the first call of this, nothing of the program's signals is changed.
const char* prepare_handler() noexcept;
/// No windows in this process from now on, also where none were in use yet. The first reason counts.
void forbid_windows(const char* reason) noexcept;

/// The kernel has our handler of SIGSEGV, or a child without fork(2)'s handlers has changed that.
bool is_installed() noexcept;
/// Is the program's action for the signal kept in own_action.hpp? Not in a child: its handlers are the
/// kernel's business, and one of vfork() shares our memory.
bool is_kept_here(int signal) noexcept;

/// The program's handler of SIGSEGV, beside ours; null: it has none.
const void* own_handler() noexcept;

/// A system call about signals by its number (rt_sigaction, rt_sigprocmask, sigaltstack): done as by the C
/// library's function. False: it is none of these, and was not made. The result is the kernel's.
bool signal_call_by_number(long number, const long* arguments, long& result) noexcept;

/// The kernel gets the program's own handler back, for good. There are no windows any more.
void hand_back_handler() noexcept;

/// While it lives, the kernel has of SIGSEGV what the program has asked for: another program that is started
/// now inherits it. No window may be open, nor open meanwhile.
class Inheritance {
  public:
    Inheritance() noexcept;
    ~Inheritance();
    Inheritance(const Inheritance&) = delete;
    Inheritance& operator=(const Inheritance&) = delete;

  private:
    Mask mask_ = 0; ///< 0: it was left as it is
    bool ignores_ = false;
};

} // namespace homing::hooks
