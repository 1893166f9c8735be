#include "mechanisms/own_pages.hpp"

#include "base/arena.hpp"
#include "mechanisms/placement.hpp"

#include <algorithm>
#include <cerrno>
#include <link.h>

namespace homing {
namespace {

constexpr std::size_t batch = 1024;

/// Something in this library, by which the loader's list of objects tells it from others.
constinit char landmark = 0;

int add_segments(dl_phdr_info* info, std::size_t, void* data) {
    std::vector<Range> found;
    bool ours = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info->dlpi_phdr[i];
        if (header.p_type != PT_LOAD) continue;
        const Address begin = info->dlpi_addr + header.p_vaddr;
        const Range segment{begin, begin + header.p_memsz};
        ours |= segment.contains(reinterpret_cast<Address>(&landmark));
        if (!(header.p_flags & PF_X))
            found.push_back({align_down(segment.begin, page_bytes()), align_up(segment.end, page_bytes())});
    }
    if (!ours) return 0;
    auto& ranges = *static_cast<std::vector<Range>*>(data);
    ranges.insert(ranges.end(), found.begin(), found.end());
    return 1;
}

} // namespace

std::vector<Range> own_ranges() {
    std::vector<Range> ranges;
    ::dl_iterate_phdr(add_segments, &ranges);
    own_arena.each_segment([&](std::uintptr_t begin, std::uintptr_t end) { ranges.push_back({begin, end}); });
    return ranges;
}

std::size_t bring_pages(Kernel& kernel, std::span<const Range> ranges, int node) {
    std::vector<void*> elsewhere;
    for (const Range& range : ranges) {
        std::vector<int> nodes(range.bytes() / page_bytes());
        where_pages_are(kernel, range, nodes, false);
        for (std::size_t i = 0; i < nodes.size(); ++i)
            if (nodes[i] >= 0 && nodes[i] != node)
                elsewhere.push_back(reinterpret_cast<void*>(range.begin + i * page_bytes()));
    }
    // One page that stays holds back those behind it in the call: they are asked for again.
    std::size_t came = 0;
    for (std::size_t at = 0; at < elsewhere.size();) {
        const std::size_t count = std::min(batch, elsewhere.size() - at);
        const std::vector<int> targets(count, node);
        std::vector<int> status(count, -EAGAIN);
        if (kernel.move({&elsewhere[at], count}, targets, status) != 0) return came;
        const auto untried = std::find(status.begin(), status.end(), -EAGAIN);
        const auto tried = static_cast<std::size_t>(untried - status.begin());
        came += static_cast<std::size_t>(std::count(status.begin(), untried, node));
        at += std::max<std::size_t>(tried, 1);
    }
    return came;
}

} // namespace homing
