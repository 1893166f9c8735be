// Is this thread inside homing's own code? Allocator hooks leave homing's own blocks alone, and a region that
// homing itself would cause is not the program's.
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

} // namespace homing
