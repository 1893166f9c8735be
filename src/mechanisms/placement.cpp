#include "mechanisms/placement.hpp"

#include <algorithm>
#include <cerrno>

namespace homing {
namespace {
constexpr std::size_t batch = 1024;
}

PlacementResult place_pages(Kernel& kernel, const NodeMap& nodes, Range range,
                            const std::function<policy::Node(std::uint64_t)>& target_of, MemoryPolicy policy,
                            const std::function<void()>& prepare) {
    const Range whole = whole_pages(range);
    PlacementResult result;
    result.pages = whole.bytes() / page_bytes();
    if (result.pages == 0) return result;
    kernel.bind(whole, policy);
    std::vector<void*> pages;
    std::vector<int> targets;
    std::vector<int> status;
    for (std::uint64_t first = 0; first < result.pages; first += batch) {
        pages.clear();
        targets.clear();
        for (std::uint64_t i = first; i < std::min<std::uint64_t>(result.pages, first + batch); ++i) {
            pages.push_back(reinterpret_cast<void*>(whole.begin + i * page_bytes()));
            targets.push_back(nodes.system(target_of(i)));
        }
        status.assign(pages.size(), -EINVAL);
        query_revealed(kernel, pages, status, prepare);
        kernel.move(pages, targets, status);
        status.assign(pages.size(), -EINVAL);
        if (kernel.query(pages, status) != 0) {
            result.refused += pages.size();
            continue;
        }
        for (std::size_t i = 0; i < pages.size(); ++i) {
            if (status[i] == targets[i])
                ++result.there;
            else if (status[i] == -ENOENT || status[i] == -EFAULT)
                ++result.absent;
            else
                ++result.refused;
        }
    }
    return result;
}

std::uint64_t where_pages_are(Kernel& kernel, Range range, std::span<int> nodes, bool reveal,
                              const std::function<void()>& prepare) {
    const Range whole = whole_pages(range);
    const std::uint64_t count = whole.bytes() / page_bytes();
    std::vector<void*> pages;
    for (std::uint64_t first = 0; first < std::min<std::uint64_t>(count, nodes.size()); first += batch) {
        pages.clear();
        const std::uint64_t until = std::min<std::uint64_t>({count, nodes.size(), first + batch});
        for (std::uint64_t i = first; i < until; ++i)
            pages.push_back(reinterpret_cast<void*>(whole.begin + i * page_bytes()));
        const std::span<int> part = nodes.subspan(first, pages.size());
        const int error = reveal ? query_revealed(kernel, pages, part, prepare) : kernel.query(pages, part);
        if (error) std::fill(part.begin(), part.end(), -1);
        for (int& node : part)
            node = std::max(node, -1);
    }
    return count;
}

} // namespace homing
