// Programs that filter their own system calls.
#pragma once

namespace homing::hooks {

/// A system call is about to be made (prctl, or any by number), which may put such a filter into force. Where
/// the filter ends the process instead of refusing, homing steps aside first, and everything is as the
/// program has asked for it: nobody knows which calls of ours it would end it for.
void filter_may_come(long number, const long* arguments) noexcept;

} // namespace homing::hooks
