// What the signal door offers to the engine.
#pragma once

#include <cstddef>

namespace homing {
class Windows;
}

namespace homing::doors {

/// Before each window: our handler is in force and SIGSEGV can reach it. Null: yes; otherwise the reason in
/// words.
const char* prepare_handler() noexcept;
/// No windows in this process from now on, also where none were in use yet. The first reason counts.
void forbid_windows(const char* reason) noexcept;

void note_alternate_stack(const void* begin, std::size_t bytes) noexcept;
/// Tell new windows of the stacks that are known already.
bool exclude_alternate_stacks(Windows& windows) noexcept;

} // namespace homing::doors
