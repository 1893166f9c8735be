// What the parts of the model share (model.cpp: threads, caches and the directory; pages.cpp: homes of pages;
// areas.cpp: what is counted for whom). Not for others: model.hpp is the way in.
#pragma once

#include "model.hpp"

#include <mutex>

namespace homing::simulator {

inline constexpr int address_bits = 47;
inline constexpr std::uint64_t address_mask = (std::uint64_t{1} << address_bits) - 1;

// A page's entry: node + 1, or 0 where it has no home; whether it is protected (by homing or the program),
// and whether the kernel's balancing waits for the next thread that touches it.
using PageEntry = std::uint16_t;
inline constexpr PageEntry home_mask = 0x7f;
inline constexpr PageEntry armed = 0x80;
inline constexpr PageEntry marked = 0x100;

/// In place of an area: the page's was one that has ended, and its misses are counted.
inline constexpr std::uint32_t of_ended_area = ~std::uint32_t{0};

struct Tables {
    unsigned line_shift = 6;
    unsigned page_shift = 12;
    unsigned ways = 1;
    std::uint64_t set_mask = 0;
    unsigned shared_ways = 0;
    std::uint64_t shared_set_mask = 0;
    int nodes = 1;
    bool count_places = false;
    std::uint32_t* directory = nullptr;   ///< by line
    PageEntry* pages = nullptr;           ///< by page
    std::uint32_t* page_area = nullptr;   ///< by page: area + 1; 0: none so far; or of_ended_area
    std::uint32_t* page_misses = nullptr; ///< by page and node
    std::uint32_t* page_seen = nullptr;
    std::uint32_t* page_faults = nullptr; ///< by page: who took its last hint fault
};
/// Constant initialisation throughout: objects that are loaded before us may run instrumented code in their
/// constructors.
extern constinit Tables table;
extern constinit const Described* stated;
/// Seldom taken: threads that come and go, areas, policies.
extern constinit std::mutex seldom;

/// Is never destroyed: other libraries end after us, and what they write then is still counted.
template <class T> union Kept {
    T value;
    constexpr Kept() : value{} {}
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    constexpr ~Kept() {} // NOLINT(modernize-use-equals-default): a union's member would need it
};

inline std::uint64_t page_of(Address address) noexcept {
    return (address & address_mask) >> table.page_shift;
}
inline std::uint64_t line_of(Address address) noexcept {
    return (address & address_mask) >> table.line_shift;
}

inline std::uint64_t mix(std::uint64_t value) noexcept {
    value ^= value >> 31;
    value *= 0x7fb5d329728ea185u;
    value ^= value >> 27;
    value *= 0x81dadef4bc2dd44du;
    return value ^ value >> 33;
}

/// Give a page that has none a home.
void place(std::uint64_t page, int home) noexcept;
/// The first page from `page` on that has a home, or no_page.
inline constexpr std::uint64_t no_page = ~std::uint64_t{0};
std::uint64_t next_page_with_home(std::uint64_t page) noexcept;
/// For the kernel's balancing. False: it was marked, or has no home.
bool mark(std::uint64_t page) noexcept;
/// `one` takes a hint fault. Returns the thread that took the last one (id + 1; 0: none so far) and its node.
std::uint32_t exchange_last_fault(Address address, const Thread& one, int& last_node) noexcept;
/// Lines of a range of pages become invalid everywhere: the physical pages behind them are gone.
void forget_lines(Address begin, Address end) noexcept;
/// What a thread counted for areas belongs to the node it was on. Called with `seldom` held.
void fold_areas(Thread& one);

} // namespace homing::simulator
