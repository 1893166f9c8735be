#include "kernel/kernel.hpp"

#include <cerrno>
#include <vector>

namespace homing {

int query_revealed(Kernel& kernel, std::span<void* const> pages, std::span<int> nodes,
                   const std::function<void()>& prepare) {
    if (const int error = kernel.query(pages, nodes)) return error;
    if (!kernel.hides_pages()) return 0;
    // A scan may come between the touch and the second look, and hide pages again: what was seen once stands,
    // and the rest is looked at some more times.
    constexpr int looks = 4;
    std::vector<void*> hidden;
    std::vector<std::size_t> places;
    std::vector<int> seen;
    for (int look = 0; look < looks; ++look) {
        hidden.clear();
        places.clear();
        for (std::size_t i = 0; i < pages.size(); ++i)
            if (nodes[i] == -ENOENT) {
                hidden.push_back(pages[i]);
                places.push_back(i);
            }
        if (hidden.empty()) break;
        if (look == 0 && prepare) prepare();
        // Where that is refused, what was seen so far stands.
        seen.assign(hidden.size(), -ENOENT);
        if (kernel.reveal(hidden) != 0) break;
        if (const int error = kernel.query(hidden, seen)) return error;
        for (std::size_t i = 0; i < hidden.size(); ++i)
            nodes[places[i]] = seen[i];
    }
    return 0;
}

} // namespace homing
