#include "kernel/move_status.hpp"

#include <algorithm>

namespace homing {

void explain_moves(Kernel& kernel, std::span<void* const> pages, std::span<const int> targets,
                   std::span<int> status, int error) noexcept {
    std::size_t first = 0;
    while (first < status.size() && status[first] != not_attempted)
        ++first;
    std::size_t run_end = first;
    while (run_end < status.size() && targets[run_end] == targets[first] && status[run_end] == not_attempted)
        ++run_end;

    constexpr std::size_t piece = 256;
    for (std::size_t begin = first; begin < pages.size(); begin += piece) {
        const std::size_t count = std::min(piece, pages.size() - begin);
        int where[piece];
        const int failed = kernel.query(pages.subspan(begin, count), std::span<int>(where, count));
        for (std::size_t i = 0; i < count; ++i) {
            int& state = status[begin + i];
            if (state != not_attempted) continue;
            if (!failed && (where[i] == targets[begin + i] || where[i] < 0)) {
                state = where[i];
            } else if (begin + i < run_end) {
                state = error ? -error : -EBUSY;
            }
        }
    }
}

} // namespace homing
