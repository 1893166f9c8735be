// Rules that state keeps, checked in releases, too. homing lives in somebody else's program: a broken rule
// must not end it, so it is thrown, and the engine steps aside and says where (Engine::guarded). Not for
// signal handlers and allocator hooks: nothing catches there.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace homing {

/// A rule was broken: a defect of homing.
class InvariantBroken : public std::logic_error {
  public:
    InvariantBroken(const char* rule, const std::source_location& where)
        : std::logic_error(std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": " +
                           rule) {}
};

/// Throws InvariantBroken where the rule does not hold. `rule` says in words what should.
inline void invariant(bool holds, const char* rule,
                      const std::source_location& where = std::source_location::current()) {
    if (__builtin_expect(!holds, 0)) throw InvariantBroken(rule, where);
}

} // namespace homing
