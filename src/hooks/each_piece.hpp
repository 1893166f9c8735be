// Reading what the kernel gives in pieces: lines of a file of /proc, entries of a folder.
#pragma once

#include "base/raw_calls.hpp"

#include <cerrno>
#include <string_view>

namespace homing::hooks {

/// Reads the pieces that the kernel gives: whole lines, whole entries. Driver only.
template <class Use> void each_piece(int descriptor, long call, Use&& use) noexcept {
    alignas(8) static char buffer[16384];
    if (descriptor < 0) return;
    for (;;) {
        const long got = raw::call(call, descriptor, static_cast<char*>(buffer), sizeof buffer);
        if (got == -EINTR) continue;
        if (got <= 0 || !use(std::string_view(buffer, static_cast<std::size_t>(got)))) break;
    }
    raw::close(descriptor);
}

} // namespace homing::hooks
