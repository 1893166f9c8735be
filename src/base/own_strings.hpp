// Strings and bytes without the C library: its functions may be another preloaded library's, which is not
// ready yet when it calls us (a sanitizer that looks up its own functions). The empty instruction keeps
// compilers from putting a call of the library's in place of the loop.
#pragma once

#include <cstddef>

namespace homing {

inline std::size_t own_length(const char* text) noexcept {
    std::size_t length = 0;
    while (text[length]) {
        ++length;
        asm volatile("");
    }
    return length;
}

inline bool own_equal(const char* one, const char* other) noexcept {
    for (; *one && *one == *other; ++one, ++other)
        asm volatile("");
    return *one == *other;
}

inline bool own_starts_with(const char* text, const char* begin) noexcept {
    for (; *begin && *begin == *text; ++begin, ++text)
        asm volatile("");
    return *begin == '\0';
}

inline void own_clear(void* memory, std::size_t bytes) noexcept {
    auto* at = static_cast<char*>(memory);
#if defined(__x86_64__)
    asm volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(0) : "memory");
#else
    for (; bytes > 0; --bytes, ++at) {
        *at = 0;
        asm volatile("");
    }
#endif
}

inline void own_copy(void* to, const void* from, std::size_t bytes) noexcept {
    auto* at = static_cast<char*>(to);
    const auto* source = static_cast<const char*>(from);
#if defined(__x86_64__)
    asm volatile("rep movsb" : "+D"(at), "+S"(source), "+c"(bytes) : : "memory");
#else
    for (; bytes > 0; --bytes, ++at, ++source) {
        *at = *source;
        asm volatile("");
    }
#endif
}

} // namespace homing
