#include "sources/sent_by_touches.hpp"

#include "areas/areas.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <span>

namespace homing::sent_by_touches {
namespace {

constinit std::atomic<Kernel*> moving_kernel{nullptr};
constinit std::atomic<std::uint64_t> target_bits{0};
constinit std::atomic<std::size_t> whole_granule{huge_page_bytes}; ///< of huge pages: huge_granule_bytes()
constinit std::atomic<std::uint32_t> handler_calls{0};
constinit std::atomic<std::uint64_t> pages_sent{0}; ///< that were on another node

/// The balancer's scans hide pages at any time, on Linux up to 6.5 (Kernel::query): between the question and
/// the move as well. So many times a page is made known again.
constexpr int most_reveals = 3;

/// [signal] query(), with another look at what a scan hid since the granule was opened. Every page that hides
/// is of a granule that the caller touches: that the kernel may move it here is what is wanted.
int look(Kernel& kernel, std::span<void* const> pages, std::span<int> status) noexcept {
    if (const int error = kernel.query(pages, status)) return error;
    if (!kernel.hides_pages() || std::find(status.begin(), status.end(), -ENOENT) == status.end()) return 0;
    return kernel.reveal(pages) ? 0 : kernel.query(pages, status);
}

/// [signal] Send those of at most `group` pages that are not on the node; how many were away.
constexpr std::size_t group = 32; // alternate signal stacks are small
std::size_t send_group(Kernel& kernel, std::span<void*> pages, int node) noexcept {
    int nodes[group];
    int status[group];
    std::size_t were_away = 0;
    for (int looks = 0; looks < most_reveals && !pages.empty(); ++looks) {
        const std::span<int> found(status, pages.size());
        if (look(kernel, pages, found) != 0) break;
        // Asking is cheap; a move drains every CPU's lists of pages even where there is nothing to move.
        std::size_t away = 0;
        for (std::size_t i = 0; i < pages.size(); ++i)
            if (found[i] >= 0 && found[i] != node) pages[away++] = pages[i];
        if (away == 0) break;
        if (looks == 0) were_away = away;
        std::fill_n(nodes, away, node);
        kernel.move(pages.first(away), {nodes, away}, {status, away});
        handler_calls.fetch_add(1, std::memory_order_relaxed);
        if (!kernel.hides_pages()) break;
        std::size_t hidden = 0;
        for (std::size_t i = 0; i < away; ++i)
            if (status[i] == -ENOENT) pages[hidden++] = pages[i];
        pages = pages.first(hidden);
    }
    return were_away;
}

} // namespace

void send_here(Range granule, int node) noexcept {
    Kernel* kernel = moving_kernel.load(std::memory_order_acquire);
    if (!kernel || !NodeSet{target_bits.load(std::memory_order_relaxed)}.has(node)) return;
    void* pages[group];
    // A huge page goes whole, by its first address; small pages inside follow one by one.
    if (granule.bytes() == whole_granule.load(std::memory_order_relaxed)) {
        pages[0] = reinterpret_cast<void*>(granule.begin);
        if (send_group(*kernel, {pages, 1}, node))
            pages_sent.fetch_add(granule.bytes() / page_bytes(), std::memory_order_relaxed);
        int last = 0;
        pages[0] = reinterpret_cast<void*>(granule.end - page_bytes());
        if (look(*kernel, {pages, 1}, {&last, 1}) == 0 && (last == node || last < 0)) return;
    }
    for (Address at = granule.begin; at < granule.end;) {
        std::size_t count = 0;
        for (; count < group && at < granule.end; ++count, at += page_bytes())
            pages[count] = reinterpret_cast<void*>(at);
        pages_sent.fetch_add(send_group(*kernel, {pages, count}, node), std::memory_order_relaxed);
    }
}

void begin(Kernel& kernel, NodeSet targets, Windows& windows) noexcept {
    moving_kernel.store(&kernel, std::memory_order_release);
    target_bits.store(targets.bits, std::memory_order_relaxed);
    whole_granule.store(huge_granule_bytes(), std::memory_order_relaxed);
    windows.set_touch_action(send_here);
}

std::uint64_t take_pages() noexcept { return pages_sent.exchange(0, std::memory_order_relaxed); }
std::uint32_t take_calls() noexcept { return handler_calls.exchange(0); }

} // namespace homing::sent_by_touches
