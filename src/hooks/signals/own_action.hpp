// The program's own action for SIGSEGV, while the kernel has ours: what it installed is kept here, and shown
// to it as if it were in force.
#pragma once

#include "hooks/export.hpp"

#include <csignal>

namespace homing::hooks {

extern constinit Real<int(int, const struct sigaction*, struct sigaction*)> real_sigaction;

bool has_handler(const struct sigaction& action) noexcept;

void set_own_action(const struct sigaction& action) noexcept;
/// May be called by a handler that interrupts set_own_action().
struct sigaction own_action() noexcept;
/// The program's own from now on. Where that is a handler, faults are to come to it that are not ours: a
/// window that is open now would be in its way in serial code.
void keep_action(const struct sigaction& action) noexcept;

/// SA_UNSUPPORTED, for ever unknown: kernels from 5.11 on keep no flags that they do not know.
constexpr int unknown_flag = 0x400;
/// What the C library and the kernel make of an action: of one with unknown_flag they gave back `now`.
void learn_reading_back(const struct sigaction& given, const struct sigaction& now) noexcept;
/// The action as the program reads it back.
struct sigaction as_read_back(struct sigaction action) noexcept;

} // namespace homing::hooks
