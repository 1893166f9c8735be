// Areas of the simulated machine: misses by array, and the distributions that the user states for them.
#include "tables.hpp"

#include "base/options.hpp"

#include <algorithm>

namespace homing::simulator {
namespace {

constinit Kept<std::vector<std::uint64_t>>
    area_totals; ///< (area, node, home), of threads that left their node

/// What the user wants of an area's pages, those that are there and those to come.
void distribute(Range range, const char* name) noexcept {
    const std::uint64_t first = page_of(range.begin);
    const std::uint64_t pages = page_of(range.end) - first;
    const auto nodes = static_cast<std::uint64_t>(table.nodes);
    for (const Distribution& one : stated->distributions) {
        if (!glob_match(one.area.c_str(), name)) continue;
        for (std::uint64_t i = 0; i < pages; ++i) {
            const auto node = static_cast<int>(one.cycle ? i / one.cycle % nodes : i * nodes / pages);
            const Address address = (first + i) << table.page_shift;
            if (home_of(address) < 0) place(first + i, node);
            send(address, node);
        }
    }
}

} // namespace

void fold_areas(Thread& one) {
    const auto nodes = static_cast<std::size_t>(table.nodes);
    const std::size_t known = area_totals.value.size() / (nodes * nodes);
    for (std::size_t area = 0; area < known; ++area)
        for (std::size_t home = 0; home < nodes; ++home) {
            std::uint32_t& count = one.area_misses[area * nodes + home];
            area_totals.value[(area * nodes + static_cast<std::size_t>(one.node)) * nodes + home] += count;
            count = 0;
        }
}

void begin_area(std::uint32_t area, Range range, const char* name) {
    const std::lock_guard lock(seldom);
    const auto nodes = static_cast<std::size_t>(table.nodes);
    if (area_totals.value.size() < (area + 1) * nodes * nodes)
        area_totals.value.resize((area + 1) * nodes * nodes);
    for (std::uint64_t page = page_of(range.begin); page < page_of(range.end); ++page) {
        // What was missed on it before anybody knew of the area.
        const int home = (table.pages[page] & home_mask) - 1;
        if (home >= 0 && table.page_area[page] == 0)
            for (std::size_t node = 0; node < nodes; ++node)
                area_totals.value[(area * nodes + node) * nodes + static_cast<std::size_t>(home)] +=
                    table.page_misses[page * nodes + node];
        __atomic_store_n(&table.page_area[page], area + 1, __ATOMIC_RELAXED);
    }
    distribute(range, name);
}

void end_area(std::uint32_t area, Range range) {
    for (std::uint64_t page = page_of(range.begin); page < page_of(range.end); ++page)
        if (table.page_area[page] == area + 1)
            __atomic_store_n(&table.page_area[page], of_ended_area, __ATOMIC_RELAXED);
}

void release_area(std::uint32_t area) {
    const std::lock_guard lock(seldom);
    const auto nodes = static_cast<std::size_t>(table.nodes);
    if (area_totals.value.size() < (area + 1) * nodes * nodes) return;
    std::fill_n(area_totals.value.begin() + static_cast<std::ptrdiff_t>(area * nodes * nodes), nodes * nodes,
                std::uint64_t{0});
    for (int id = 0; id < thread_count(); ++id)
        std::fill_n(thread(id).area_misses + area * nodes, nodes, 0u);
}

void add_area_misses(std::uint32_t area, std::vector<std::uint64_t>& out) {
    const std::lock_guard lock(seldom);
    const auto nodes = static_cast<std::size_t>(table.nodes);
    out.resize(nodes * nodes);
    if (area_totals.value.size() < (area + 1) * nodes * nodes) return;
    for (std::size_t i = 0; i < nodes * nodes; ++i)
        out[i] += area_totals.value[area * nodes * nodes + i];
    for (int id = 0; id < thread_count(); ++id)
        for (std::size_t home = 0; home < nodes && thread(id).node >= 0; ++home)
            out[static_cast<std::size_t>(thread(id).node) * nodes + home] +=
                thread(id).area_misses[area * nodes + home];
}

} // namespace homing::simulator
