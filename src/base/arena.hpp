// Memory of homing's own, apart from the program's heap.
//
// What homing allocated from the program's allocator would stand between the program's own blocks: where they
// begin in a cache line and a page, and so which threads share lines and pages at the borders of their parts,
// would not be what it is without homing. (Counted: CG's heap arrays moved by the 72 KiB that libstdc++ takes
// for emergencies cost 1.3 % more remote misses.)
//
// Blocks are of size classes, four to a doubling, cut off segments that grow with what is there already, and
// come back to their class when they are freed. Any thread may allocate and free; a signal handler may not.
#pragma once

#include "base/fork_mutex.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace homing {

class Arena {
  public:
    constexpr Arena() noexcept = default;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    /// `alignment`: a power of two. Null where the kernel gives no memory.
    void* allocate(std::size_t bytes, std::size_t alignment = smallest) noexcept;
    /// A block of ours.
    void free(void* block) noexcept;
    /// How many bytes the block of ours may hold.
    static std::size_t usable_size(const void* block) noexcept;
    /// Is the block ours? Any pointer may be asked about; every free() of the program asks.
    bool owns(const void* block) const noexcept {
        return spans(block) && in_segments(reinterpret_cast<std::uintptr_t>(block));
    }
    /// Is the block ours, or between blocks of ours?
    bool spans(const void* block) const noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(block);
        return at >= lowest_.load(std::memory_order_relaxed) && at < highest_.load(std::memory_order_relaxed);
    }

    /// Each piece of memory that blocks are cut off, from its begin to before its end.
    template <class Function> void each_segment(Function&& function) const {
        const std::size_t count = segment_count_.load(std::memory_order_acquire);
        for (std::size_t i = 0; i < count; ++i)
            function(segments_[i].begin, segments_[i].end);
    }

    /// A thread that forks holds the arena, so that it is whole in the child. One that forks in a handler, in
    /// the middle of an allocation, goes on with that in both processes; until then there is no more.
    void before_fork() noexcept { mutex_.lock_for_fork(); }
    void after_fork() noexcept { mutex_.unlock_after_fork(); }

  private:
    static constexpr std::size_t smallest = 16; ///< alignment, and bytes of a header
    static constexpr std::size_t classes = 8 + 4 * 41;
    static constexpr std::size_t most_segments = 64; ///< they double: enough for any address space

    /// Stands before every block.
    struct Header {
        Header* next;       ///< free ones: the next of their class
        std::uint32_t kind; ///< the class
        std::uint32_t back; ///< bytes from the header's own place in its class's piece: alignment
    };
    static_assert(sizeof(Header) == smallest);

    struct Segment {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
    };

    bool in_segments(std::uintptr_t at) const noexcept;
    static std::size_t class_of(std::size_t bytes) noexcept;
    static std::size_t class_bytes(std::size_t kind) noexcept;
    static Header* header_of(const void* block) noexcept;
    /// A piece of the class that is cut off the newest segment, or off a new one; null where there is none.
    Header* cut(std::size_t kind) noexcept;

    ForkMutex mutex_;
    std::array<Header*, classes> free_{};
    std::array<Segment, most_segments> segments_{};
    std::atomic<std::size_t> segment_count_{0};
    std::atomic<std::uintptr_t> lowest_{~std::uintptr_t{0}}; ///< all segments lie from here
    std::atomic<std::uintptr_t> highest_{0};                 ///< to here, and other memory between them
    std::uintptr_t cursor_ = 0;                              ///< in the newest segment
    std::size_t total_ = 0;                                  ///< bytes of all segments
};

/// The one that homing's own blocks come from (hooks/allocator/own_memory.hpp).
extern constinit Arena own_arena;

} // namespace homing
