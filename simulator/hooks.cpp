// Memory functions of the C library, which no compiler instruments: their accesses are counted, a line at a
// time, and the real function does the work. Calls of programs and of libraries (libgfortran copies array
// sections so) come by here, those that _FORTIFY_SOURCE checks as well; those inside the C library itself do
// not.
#include "base/inside.hpp"
#include "hooks/export.hpp"
#include "model.hpp"

#include <cstdlib>
#include <cstring>

namespace homing::simulator {
namespace {

using hooks::Real;

/// Small ones come through expansion by the compiler; calls of a few bytes are not worth the look.
bool counts() noexcept { return current_thread() != nullptr && !is_inside(); }

/// Before the dynamic linker has resolved the real function (it calls memset itself), bytes go one by one.
template <class Function> Function* known(Real<Function>& real) noexcept {
    static constinit thread_local bool looking = false;
    if (looking) return nullptr;
    looking = true;
    Function* function = real.get();
    looking = false;
    return function;
}

void* copy_up(void* to, const void* from, std::size_t bytes) noexcept {
    auto* out = static_cast<volatile char*>(to);
    for (std::size_t i = 0; i < bytes; ++i)
        out[i] = static_cast<const char*>(from)[i];
    return to;
}

void* copy_overlapping(void* to, const void* from, std::size_t bytes) noexcept {
    auto* out = static_cast<volatile char*>(to);
    const auto* in = static_cast<const char*>(from);
    for (std::size_t i = 0; i < bytes; ++i) {
        const std::size_t at = out < in ? i : bytes - 1 - i;
        out[at] = in[at];
    }
    return to;
}

void* fill(void* to, int value, std::size_t bytes) noexcept {
    auto* out = static_cast<volatile char*>(to);
    for (std::size_t i = 0; i < bytes; ++i)
        out[i] = static_cast<char>(value);
    return to;
}

} // namespace
} // namespace homing::simulator

using homing::hooks::Real;
using namespace homing::simulator;

#define HERE __builtin_return_address(0)

// A copy and its checked form; `plain` does the work where the real function is not known yet.
#define COPY(name, plain)                                                                                    \
    HOMING_EXPORT void* name(void* to, const void* from, std::size_t bytes) noexcept {                       \
        static constinit Real<void*(void*, const void*, std::size_t)> real{#name};                           \
        if (counts()) {                                                                                      \
            access_range(from, bytes, 0, HERE);                                                              \
            access_range(to, bytes, 1, HERE);                                                                \
        }                                                                                                    \
        if (auto* function = known(real)) return function(to, from, bytes);                                  \
        return plain(to, from, bytes);                                                                       \
    }                                                                                                        \
    HOMING_EXPORT void* __##name##_chk(void* to, const void* from, std::size_t bytes,                        \
                                       std::size_t room) noexcept {                                          \
        static constinit Real<void*(void*, const void*, std::size_t, std::size_t)> real{"__" #name "_chk"};  \
        if (counts() && bytes <= room) {                                                                     \
            access_range(from, bytes, 0, HERE);                                                              \
            access_range(to, bytes, 1, HERE);                                                                \
        }                                                                                                    \
        if (auto* function = known(real)) return function(to, from, bytes, room);                            \
        if (bytes > room) std::abort();                                                                      \
        return plain(to, from, bytes);                                                                       \
    }

extern "C" {

COPY(memcpy, copy_up)
COPY(memmove, copy_overlapping)

HOMING_EXPORT void* memset(void* to, int value, std::size_t bytes) noexcept {
    static constinit Real<void*(void*, int, std::size_t)> real{"memset"};
    if (counts()) access_range(to, bytes, 1, HERE);
    if (auto* function = known(real)) return function(to, value, bytes);
    return fill(to, value, bytes);
}

HOMING_EXPORT void* __memset_chk(void* to, int value, std::size_t bytes, std::size_t room) noexcept {
    static constinit Real<void*(void*, int, std::size_t, std::size_t)> real{"__memset_chk"};
    if (counts() && bytes <= room) access_range(to, bytes, 1, HERE);
    if (auto* function = known(real)) return function(to, value, bytes, room);
    if (bytes > room) std::abort();
    return fill(to, value, bytes);
}

} // extern "C"
