// The slots of the windows: one for each granule, in an order in which any thread finds them without a lock
// while the driver builds the next one (Windows::Order).
#include "sources/windows.hpp"

#include "base/random.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>

namespace homing {
namespace {

constexpr int slot_bits = 20;
static_assert(Windows::most_capacity < std::size_t{1} << slot_bits);

std::size_t hash(std::uint64_t page) noexcept { return table_place(page, 32); }

template <class T> T* map_array(std::size_t count) noexcept {
    return static_cast<T*>(raw::map_memory(count * sizeof(T)));
}

} // namespace

constinit const Windows::Order Windows::nothing{};

bool Windows::map_memory() noexcept {
    if (slots_) return true;
    if (!watched_) watched_ = map_array<SharedRange>(max_watched);
    if (!free_) free_ = map_array<std::uint32_t>(slot_count());
    if (!dropped_) dropped_ = map_array<std::uint32_t>(slot_count());
    for (Order& order : orders_) {
        if (!order.index) order.index = map_array<std::uint64_t>(4 * capacity_);
        if (!order.places) order.places = map_array<Order::Place>(capacity_);
        if (!order.index || !order.places) return false;
    }
    if (!watched_ || !free_ || !dropped_) return false;
    Slot* slots = map_array<Slot>(slot_count());
    if (!slots) return false;
    for (std::size_t i = 0; i < slot_count(); ++i)
        free_[i] = static_cast<std::uint32_t>(slot_count() - 1 - i); // the first ones first
    free_count_ = slot_count();
    slots_ = slots;
    return true;
}

void Windows::index(Order& order) noexcept {
    order.index_size = 16;
    while (order.index_size < 2 * order.count)
        order.index_size *= 2;
    std::fill_n(order.index, order.index_size, 0);
    for (std::size_t i = 0; i < order.count; ++i) {
        const std::uint64_t page = order.places[i].begin / page_bytes();
        std::size_t at = hash(page) & (order.index_size - 1);
        while (order.index[at])
            at = (at + 1) & (order.index_size - 1);
        order.index[at] = page << slot_bits | (i + 1);
    }
}

Windows::Slot* Windows::find(Address address) noexcept {
    const Order& now = order();
    if (now.count == 0) return nullptr;
    const std::size_t mask = now.index_size - 1;
    const std::uint64_t page = address / page_bytes();
    for (std::size_t at = hash(page) & mask, steps = 0; now.index[at] && steps <= mask;
         at = (at + 1) & mask, ++steps) {
        const std::size_t place = (now.index[at] & ((std::uint64_t{1} << slot_bits) - 1)) - 1;
        if (now.index[at] >> slot_bits == page && slot(now, place).granule.contains(address))
            return &slot(now, place);
    }
    // A page within a larger granule, or none of ours.
    const Order::Place* const first = now.places;
    const Order::Place* const end = first + now.count;
    const Order::Place* at = std::upper_bound(
        first, end, address, [](Address value, const Order::Place& place) { return value < place.begin; });
    if (at == first) return nullptr;
    Slot& found = slots_[(at - 1)->slot];
    return found.granule.contains(address) ? &found : nullptr;
}

/// What is armed, with these granules planned beside it. Nobody but the driver can reach the order that is
/// written, nor the slots that the last one before it has left.
const Windows::Order& Windows::build(std::span<const Range> granules) noexcept {
    for (; dropped_count_ > 0; --dropped_count_)
        free_[free_count_++] = dropped_[dropped_count_ - 1];
    const Order& old = order();
    Order& fresh = &old == &orders_[0] ? orders_[1] : orders_[0];
    fresh.count = 0;
    const auto add = [&](std::uint32_t at) { fresh.places[fresh.count++] = {slots_[at].granule.begin, at}; };
    // What is armed stays within reach, come what may: its place is kept before any is given away.
    const auto stays = [&](std::size_t place) {
        const std::uint8_t state = slot(old, place).state.load(std::memory_order_acquire);
        return state != planned && state != released;
    };
    std::size_t room = capacity_;
    for (std::size_t i = 0; i < old.count; ++i)
        room -= stays(i);
    std::size_t next = 0;
    const auto plan_next = [&] {
        const Range granule = granules[next++];
        if (room == 0 || free_count_ == 0) return;
        --room;
        const std::uint32_t at = free_[--free_count_];
        Slot& slot = slots_[at];
        slot.granule = granule;
        slot.node = -1;
        slot.state.store(planned, std::memory_order_relaxed);
        add(at);
    };
    for (std::size_t i = 0; i < old.count; ++i) {
        const std::uint32_t at = old.places[i].slot;
        if (!stays(i)) {
            drop(at);
            continue;
        }
        const Range granule = slots_[at].granule;
        while (next < granules.size() && granules[next].end <= granule.begin)
            plan_next();
        const bool asked_again = next < granules.size() && granules[next].overlaps(granule);
        if (asked_again && slots_[at].state.load(std::memory_order_acquire) == seen) {
            drop(at);
            continue;
        }
        while (next < granules.size() && granules[next].overlaps(granule))
            ++next;
        add(at);
    }
    while (next < granules.size())
        plan_next();
    index(fresh);
    filter_.publish([&](auto&& visit) {
        for (std::size_t i = 0; i < fresh.count; ++i)
            visit(slot(fresh, i).granule);
    });
    return fresh;
}

} // namespace homing
