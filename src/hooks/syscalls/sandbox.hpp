// Programs that filter their own system calls.
#pragma once

#include "sources/in_flight.hpp"

namespace homing::hooks {

/// A system call is about to be made (prctl, or any by number), which may put such a filter into force. Where
/// the filter ends the process instead of refusing, homing steps aside first, and everything is as the
/// program has asked for it: nobody knows which calls of ours it would end it for.
void filter_may_come(long number, const long* arguments) noexcept;

/// Around such a call: no window is open meanwhile, and none comes any more where the filter refuses this
/// thread to give pages back. (It may be of one thread alone: what another one arms could not be given back
/// in its faults.)
class FilterCall {
  public:
    FilterCall(long number, const long* arguments) noexcept;
    /// What the call returned.
    void returned(long result) noexcept;

  private:
    bool comes_;
    InFlight call_{nullptr};
};

} // namespace homing::hooks
