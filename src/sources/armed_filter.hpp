// Which pages may be armed: asked by every free() of a small block while a window is open, without a lock and
// without a write to what other threads use. It says yes of some pages that are not, never no of one that is.
#pragma once

#include "base/pages.hpp"
#include "base/random.hpp"

#include <atomic>
#include <cstdint>

namespace homing {

class ArmedFilter {
  public:
    /// Larger granules lie within no block of less than so many pages.
    static constexpr std::size_t most_pages = 256;

    /// [driver] From now on these granules may be armed, and no others: before any of them is, and before the
    /// asymmetric fence after which it is seen whether their memory is still there.
    template <class EachGranule> void publish(EachGranule&& each_granule) noexcept {
        const std::uint32_t version = version_.load(std::memory_order_relaxed) + 1;
        auto& words = words_[version % 2];
        for (auto& word : words)
            word.store(0, std::memory_order_relaxed);
        each_granule([&](Range granule) {
            if (granule.bytes() > most_pages * page_bytes()) return;
            for (Address at = granule.begin; at < granule.end; at += page_bytes()) {
                auto& word = words[place_of(at) / 64];
                word.store(word.load(std::memory_order_relaxed) | std::uint64_t{1} << place_of(at) % 64,
                           std::memory_order_relaxed);
            }
        });
        version_.store(version, std::memory_order_seq_cst);
    }

    /// [any thread] May a whole page of this block be armed, which has fewer than most_pages? What was
    /// published twice while we looked is not worth another look.
    bool may_hold(Range block) const noexcept {
        const std::uint32_t version = version_.load(std::memory_order_acquire);
        const auto& words = words_[version % 2];
        const Address end = align_down(block.end, page_bytes());
        bool found = false;
        for (Address at = align_up(block.begin, page_bytes()); at < end && !found; at += page_bytes())
            found = words[place_of(at) / 64].load(std::memory_order_relaxed) >> place_of(at) % 64 & 1;
        std::atomic_thread_fence(std::memory_order_acquire);
        return found || version_.load(std::memory_order_relaxed) != version;
    }

  private:
    /// Eight bits for each granule that a window has at the most.
    static constexpr unsigned bits = 16;
    static std::size_t place_of(Address page) noexcept { return table_place(page / page_bytes(), bits); }

    std::atomic<std::uint32_t> version_{0};
    std::atomic<std::uint64_t> words_[2][(std::size_t{1} << bits) / 64]{};
};

} // namespace homing
