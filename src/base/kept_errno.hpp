// errno is the program's: what it asks homing for changes it no more than what homing does by itself.
#pragma once

#include <cerrno>

namespace homing {

/// While it lives, errno is whatever it is; then it is what it was before.
class KeptErrno {
  public:
    KeptErrno() noexcept : before_(errno) {}
    ~KeptErrno() { errno = before_; }
    KeptErrno(const KeptErrno&) = delete;
    KeptErrno& operator=(const KeptErrno&) = delete;

  private:
    int before_;
};

} // namespace homing
