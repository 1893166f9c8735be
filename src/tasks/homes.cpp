#include "tasks/homes.hpp"

#include "base/random.hpp"

#include <ctime>

namespace homing {
namespace {

constexpr std::size_t entry_count = std::size_t{1} << 15;

} // namespace

Homes::Homes(Kernel& kernel) : kernel_(kernel), entries_(std::make_unique<Entry[]>(entry_count)) {}

/// Changes every second or so, and when somebody moved pages. It comes again after some minutes: an entry
/// that is so old is believed for a second, which is no harm.
std::uint64_t Homes::age() const noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (static_cast<std::uint64_t>(now.tv_sec) + generation_.load(std::memory_order_relaxed)) & 0xff;
}

Homes::Entry& Homes::entry(std::uint64_t page) noexcept {
    static_assert(entry_count == std::size_t{1} << 15);
    return entries_[table_place(page, 15)];
}

void Homes::look_up(std::span<void* const> pages, std::span<int> nodes) noexcept {
    const std::uint64_t age_now = age();
    void* missing[most_pages];
    int found[most_pages];
    std::size_t place[most_pages];
    std::size_t count = 0;
    for (std::size_t i = 0; i < pages.size() && i < most_pages; ++i) {
        const std::uint64_t page = reinterpret_cast<Address>(pages[i]) / page_bytes();
        const std::uint64_t known = entry(page).load(std::memory_order_relaxed);
        if (known >> 8 == (page << 8 | age_now)) {
            nodes[i] = static_cast<int>(known & 0xff) - 1;
            continue;
        }
        missing[count] = pages[i];
        place[count++] = i;
    }
    if (count == 0) return;
    const bool answered = kernel_.query({missing, count}, {found, count}) == 0;
    for (std::size_t i = 0; i < count; ++i) {
        nodes[place[i]] = answered ? found[i] : -1;
        if (!answered || found[i] < 0) continue;
        const std::uint64_t page = reinterpret_cast<Address>(missing[i]) / page_bytes();
        entry(page).store(page << 16 | age_now << 8 | static_cast<std::uint64_t>(found[i] + 1),
                          std::memory_order_relaxed);
    }
}

} // namespace homing
