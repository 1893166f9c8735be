#include "kernel/own_pages.hpp"

#include "base/arena.hpp"
#include "base/loaded_object.hpp"

#include <algorithm>
#include <cerrno>
#include <link.h>
#include <pthread.h>

namespace homing {
namespace {

constexpr std::size_t queried_at_once = 1024;
/// On the stack of a new thread: 1 KiB of words. Its thread-local variables take some pages (the guest's: 2).
constexpr std::size_t most_few_pages = 64;

/// Of a thread's stack: what lies above the caller's frame (callers of hooks and what they hand to their
/// team), and how deep hooks go below it.
constexpr std::size_t stack_above = std::size_t{128} << 10;
constexpr std::size_t stack_below = std::size_t{32} << 10;

/// Empty where it cannot be told.
Range stack_of_this_thread() {
    pthread_attr_t attributes;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return {};
    void* begin = nullptr;
    std::size_t bytes = 0;
    const bool known = ::pthread_attr_getstack(&attributes, &begin, &bytes) == 0;
    ::pthread_attr_destroy(&attributes);
    const auto at = reinterpret_cast<Address>(begin);
    return known ? Range{at, at + bytes} : Range{};
}

/// This library, as the loader tells of it.
struct Library {
    std::vector<Range> data;
    Range variables; ///< of the calling thread; empty where it has none
};

int find_library(dl_phdr_info* info, std::size_t, void* data) {
    if (!is_this_library(*info)) return 0;
    auto& found = *static_cast<Library*>(data);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info->dlpi_phdr[i];
        if (header.p_type == PT_TLS && info->dlpi_tls_data) {
            const auto begin = reinterpret_cast<Address>(info->dlpi_tls_data);
            found.variables = {begin, begin + header.p_memsz};
        }
        const Address begin = info->dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_LOAD && !(header.p_flags & PF_X))
            found.data.push_back(pages_of({begin, begin + header.p_memsz}));
    }
    return 1;
}

Library this_library() {
    Library library;
    ::dl_iterate_phdr(find_library, &library);
    return library;
}

/// Those pages of the range that lie elsewhere come to the node. The spans are room for a word of each page.
std::size_t bring(Kernel& kernel, Range range, int node, std::span<void*> pages, std::span<int> nodes,
                  std::span<int> status) noexcept {
    const std::size_t count = range.bytes() / page_bytes();
    for (std::size_t i = 0; i < count; ++i)
        pages[i] = reinterpret_cast<void*>(range.begin + i * page_bytes());
    if (kernel.query(pages.first(count), nodes.first(count)) != 0) return 0;
    std::size_t elsewhere = 0;
    for (std::size_t i = 0; i < count; ++i)
        if (nodes[i] >= 0 && nodes[i] != node) pages[elsewhere++] = pages[i];
    std::fill_n(nodes.begin(), elsewhere, node);
    // One page that stays holds back those behind it in the call: they are asked for again.
    std::size_t came = 0;
    for (std::size_t at = 0; at < elsewhere;) {
        const std::size_t left = elsewhere - at;
        const std::span<int> outcome = status.first(left);
        std::ranges::fill(outcome, -EAGAIN);
        if (kernel.move(pages.subspan(at, left), nodes.first(left), outcome) != 0) return came;
        const auto untried = std::ranges::find(outcome, -EAGAIN);
        came += static_cast<std::size_t>(std::count(outcome.begin(), untried, node));
        at += std::max<std::size_t>(static_cast<std::size_t>(untried - outcome.begin()), 1);
    }
    return came;
}

} // namespace

std::vector<Range> own_ranges() {
    std::vector<Range> ranges = this_library().data;
    own_arena.each_segment([&](std::uintptr_t begin, std::uintptr_t end) { ranges.push_back({begin, end}); });
    return ranges;
}

std::vector<Range> thread_ranges() {
    const auto frame = reinterpret_cast<Address>(__builtin_frame_address(0));
    const Range stack = stack_of_this_thread();
    if (!stack.contains(frame)) return {};
    std::vector<Range> ranges;
    ranges.push_back(pages_of({frame - std::min(stack_below, frame - stack.begin),
                               frame + std::min(stack_above, stack.end - frame)}));
    if (const Range variables = this_library().variables; !variables.empty())
        ranges.push_back(pages_of(variables));
    const auto block = reinterpret_cast<Address>(__builtin_thread_pointer());
    ranges.push_back(pages_of({block, block + 1}));
    return ranges;
}

Range block_of_new_thread() noexcept {
    static constinit thread_local char variable = 0;
    // Thread-local variables lie below the thread pointer on some architectures, above it on others.
    const auto frame = reinterpret_cast<Address>(__builtin_frame_address(0));
    const auto end = std::max(reinterpret_cast<Address>(__builtin_thread_pointer()),
                              reinterpret_cast<Address>(&variable)) +
                     1;
    return frame < end && end - frame <= most_few_pages * page_bytes() ? pages_of({frame, end}) : Range{};
}

std::size_t bring_few_pages(Kernel& kernel, Range range, int node) noexcept {
    void* pages[most_few_pages];
    int nodes[most_few_pages], status[most_few_pages];
    const std::size_t count = std::min(range.bytes() / page_bytes(), most_few_pages);
    return bring(kernel, {range.begin, range.begin + count * page_bytes()}, node, {pages, count},
                 {nodes, count}, {status, count});
}

std::size_t bring_pages(Kernel& kernel, std::span<const Range> ranges, int node) {
    std::vector<void*> pages(queried_at_once);
    std::vector<int> nodes(queried_at_once), status(queried_at_once);
    std::size_t came = 0;
    for (const Range& range : ranges)
        for (Address at = range.begin; at < range.end; at += queried_at_once * page_bytes()) {
            const Range part{at, std::min(range.end, at + queried_at_once * page_bytes())};
            came += bring(kernel, part, node, pages, nodes, status);
        }
    return came;
}

} // namespace homing
