// What homing has mapped for itself. The kernel joins it with anonymous memory of the program beside it, so
// that /proc/self/maps does not tell one from the other; and a page of ours must never be taken away.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace homing {

/// [any thread, signal] No lock, no allocation. There is one, own_mappings.
class OwnMappings {
  public:
    constexpr OwnMappings() noexcept = default;
    OwnMappings(const OwnMappings&) = delete;
    OwnMappings& operator=(const OwnMappings&) = delete;

    void add(std::uintptr_t begin, std::uintptr_t end) noexcept {
        for (Place& place : places_) {
            std::uintptr_t none = 0;
            if (!place.begin.compare_exchange_strong(none, being_written, std::memory_order_acq_rel))
                continue;
            place.end.store(end, std::memory_order_relaxed);
            place.begin.store(begin, std::memory_order_release);
            return;
        }
        // Of more than there is room for, all that lies between them counts as ours.
        std::uintptr_t before = lowest_.load(std::memory_order_relaxed);
        while (begin < before && !lowest_.compare_exchange_weak(before, begin)) {
        }
        before = highest_.load(std::memory_order_relaxed);
        while (end > before && !highest_.compare_exchange_weak(before, end)) {
        }
    }
    void remove(std::uintptr_t begin) noexcept {
        for (Place& place : places_) {
            std::uintptr_t found = begin;
            if (place.begin.compare_exchange_strong(found, 0, std::memory_order_acq_rel)) return;
        }
    }
    bool overlap(std::uintptr_t begin, std::uintptr_t end) const noexcept {
        return (begin < highest_.load() && lowest_.load() < end) ||
               std::ranges::any_of(places_, [=](const Place& place) {
                   const std::uintptr_t ours = place.begin.load(std::memory_order_acquire);
                   return ours > being_written && ours < end &&
                          begin < place.end.load(std::memory_order_relaxed);
               });
    }
    /// visit(begin, end) for each, as far as they have a place.
    template <class Visit> void each(Visit&& visit) const {
        for (const Place& place : places_)
            if (const std::uintptr_t begin = place.begin.load(std::memory_order_acquire);
                begin > being_written)
                visit(begin, place.end.load(std::memory_order_relaxed));
    }

  private:
    /// By reason: the arena has 64 segments at the most, and tables and the record's pieces come beside them.
    static constexpr std::size_t room = 256;
    static constexpr std::uintptr_t being_written = 1; ///< no page begins here
    struct Place {
        std::atomic<std::uintptr_t> begin{0}, end{0}; ///< begin is 0 where it is free
    };
    std::array<Place, room> places_{};
    std::atomic<std::uintptr_t> lowest_{~std::uintptr_t{0}}, highest_{0}; ///< of those without a place
};

inline constinit OwnMappings own_mappings;

} // namespace homing
