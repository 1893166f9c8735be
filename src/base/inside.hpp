// Is this thread inside homing's own code? What libraries allocate for it there is homing's
// (hooks/allocator/heap.cpp), and a region that homing itself would cause is not the program's.
#pragma once

namespace homing {

inline constinit thread_local int inside_depth = 0;

class Inside {
  public:
    Inside() noexcept { ++inside_depth; }
    ~Inside() { --inside_depth; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
};

inline bool is_inside() noexcept { return inside_depth != 0; }

inline constinit thread_local bool is_borrowing = false;

/// While it lives, what libraries allocate for this thread is the program's allocator's, inside or not: for a
/// library that does not free through ours, or that works for the program.
class Borrowing {
  public:
    Borrowing() noexcept : before_(is_borrowing) { is_borrowing = true; }
    ~Borrowing() { is_borrowing = before_; }
    Borrowing(const Borrowing&) = delete;
    Borrowing& operator=(const Borrowing&) = delete;

  private:
    bool before_;
};

} // namespace homing
