#include "kernel/placement.hpp"

#include "record/record.hpp"

#include <algorithm>
#include <cerrno>

namespace homing {
namespace {
constexpr std::size_t pages_a_call = 1024;
} // namespace

void PlacementResult::add(const PlacementResult& other) {
    pages += other.pages;
    absent += other.absent;
    there += other.there;
    moved += other.moved;
    refused += other.refused;
    calls += other.calls;
    seconds += other.seconds;
    longest_call = std::max(longest_call, other.longest_call);
    for (const auto& [error, count] : other.errors)
        errors[error] += count;
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
    std::vector<int> before;
    std::vector<int> reasons;
    std::vector<int> now;
    for (std::uint64_t first = 0; first < result.pages; first += pages_a_call) {
        pages.clear();
        targets.clear();
        for (std::uint64_t i = first; i < std::min<std::uint64_t>(result.pages, first + pages_a_call); ++i) {
            pages.push_back(reinterpret_cast<void*>(whole.begin + i * page_bytes()));
            targets.push_back(nodes.system(target_of(i)));
        }
        before.assign(pages.size(), -EINVAL);
        query_revealed(kernel, pages, before, prepare);
        reasons.assign(pages.size(), -EINVAL);
        const double begin = record::now();
        const int error = kernel.move(pages, targets, reasons);
        const double seconds = record::now() - begin;
        ++result.calls;
        result.seconds += seconds;
        result.longest_call = std::max(result.longest_call, seconds);
        now.assign(pages.size(), -EINVAL);
        const int query_error = kernel.query(pages, now);
        for (std::size_t i = 0; i < pages.size(); ++i) {
            if (query_error == 0 && now[i] == targets[i]) {
                ++result.there;
                result.moved += before[i] >= 0 && before[i] != targets[i];
            } else if (query_error == 0 && (now[i] == -ENOENT || now[i] == -EFAULT)) {
                ++result.absent;
            } else {
                ++result.refused;
                ++result.errors[error            ? error
                                : reasons[i] < 0 ? -reasons[i]
                                : query_error    ? query_error
                                                 : EBUSY];
            }
        }
    }
    return result;
}

std::uint64_t where_pages_are(Kernel& kernel, Range range, std::span<int> nodes, bool reveal,
                              const std::function<void()>& prepare) {
    const Range whole = whole_pages(range);
    const std::uint64_t count = whole.bytes() / page_bytes();
    std::vector<void*> pages;
    for (std::uint64_t first = 0; first < std::min<std::uint64_t>(count, nodes.size());
         first += pages_a_call) {
        pages.clear();
        const std::uint64_t until = std::min<std::uint64_t>({count, nodes.size(), first + pages_a_call});
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
