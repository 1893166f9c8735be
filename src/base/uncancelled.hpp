// pthread_cancel() and homing: what homing calls for itself (fopen, opendir, sleep, ...) are cancellation
// points that the program has not written, and a cancelled thread unwinds with an exception that must be
// passed on, which neither a hook that throws nothing nor a catch (...) does.
#pragma once

#include <pthread.h>

namespace homing {

/// While it lives, a request to cancel this thread waits: it is acted upon at the program's own next
/// cancellation point.
class Uncancelled {
  public:
    Uncancelled() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~Uncancelled() { ::pthread_setcancelstate(before_, nullptr); }
    Uncancelled(const Uncancelled&) = delete;
    Uncancelled& operator=(const Uncancelled&) = delete;

  private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

} // namespace homing
