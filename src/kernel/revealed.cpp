#include "kernel/kernel.hpp"

#include <cerrno>
#include <vector>

namespace homing {

int query_revealed(Kernel& kernel, std::span<void* const> pages, std::span<int> nodes,
                   const std::function<void()>& prepare) {
    if (const int error = kernel.query(pages, nodes)) return error;
    if (!kernel.hides_pages()) return 0;
    std::vector<void*> hidden;
    for (std::size_t i = 0; i < pages.size(); ++i)
        if (nodes[i] == -ENOENT) hidden.push_back(pages[i]);
    if (hidden.empty()) return 0;
    if (prepare) prepare();
    // Where that is refused, what the first look gave stands.
    return kernel.reveal(hidden) ? 0 : kernel.query(pages, nodes);
}

} // namespace homing
