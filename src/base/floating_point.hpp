// The floating-point environment belongs to the program: homing's sums raise no flag in it, trap nowhere, and
// do not depend on its rounding.
#pragma once

#if !defined __x86_64__
#include <cfenv>
#endif

namespace homing {

/// While it lives the environment is the default one; then it is the program's again, flags included.
class OwnFloatingPoint {
  public:
#if defined __x86_64__
    // SSE's register alone: homing has no long double, and the x87 unit's environment takes a hundred cycles.
    OwnFloatingPoint() noexcept : saved_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(masked_nearest); }
    ~OwnFloatingPoint() { __builtin_ia32_ldmxcsr(saved_); }
#else
    OwnFloatingPoint() noexcept {
        std::fegetenv(&saved_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~OwnFloatingPoint() { std::fesetenv(&saved_); }
#endif
    OwnFloatingPoint(const OwnFloatingPoint&) = delete;
    OwnFloatingPoint& operator=(const OwnFloatingPoint&) = delete;

  private:
#if defined __x86_64__
    static constexpr unsigned masked_nearest = 0x1f80;
    unsigned saved_;
#else
    std::fenv_t saved_;
#endif
};

} // namespace homing
