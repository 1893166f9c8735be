#include "base/arena.hpp"

#include "base/pages.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <bit>

namespace homing {
namespace {

constexpr std::size_t first_segment = std::size_t{1} << 20;
constexpr std::size_t largest_growth = std::size_t{64} << 20;
/// The pages of free pieces from this size on go back to the kernel.
constexpr std::size_t large_piece = std::size_t{1} << 20;
constexpr std::size_t largest_request = std::size_t{1} << 46;

} // namespace

constinit Arena own_arena;

// Up to 128 bytes in steps of 16, then four steps to a doubling.
std::size_t Arena::class_of(std::size_t bytes) noexcept {
    if (bytes <= 128) return (bytes - 1) / 16;
    const auto doubling = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;
    return 8 + (doubling - 7) * 4 + ((bytes - 1) >> (doubling - 2) & 3);
}

std::size_t Arena::class_bytes(std::size_t kind) noexcept {
    if (kind < 8) return (kind + 1) * 16;
    const std::size_t doubling = (kind - 8) / 4 + 7;
    return (std::size_t{5} + (kind - 8) % 4) << (doubling - 2);
}

Arena::Header* Arena::header_of(const void* block) noexcept {
    return static_cast<Header*>(const_cast<void*>(block)) - 1;
}

Arena::Header* Arena::cut(std::size_t kind) noexcept {
    const std::size_t bytes = class_bytes(kind);
    std::size_t count = segment_count_.load(std::memory_order_relaxed);
    if (count == 0 || segments_[count - 1].end - cursor_ < bytes) {
        if (count == most_segments) return nullptr;
        const std::size_t size =
            std::max(std::clamp(total_, first_segment, largest_growth), align_up(bytes, first_segment));
        void* memory = raw::map_memory(size);
        if (!memory) return nullptr;
        cursor_ = reinterpret_cast<std::uintptr_t>(memory);
        segments_[count] = {cursor_, cursor_ + size};
        total_ += size;
        lowest_.store(std::min(lowest_.load(std::memory_order_relaxed), cursor_), std::memory_order_relaxed);
        highest_.store(std::max(highest_.load(std::memory_order_relaxed), cursor_ + size),
                       std::memory_order_relaxed);
        segment_count_.store(++count, std::memory_order_release);
    }
    auto* piece = reinterpret_cast<Header*>(cursor_);
    cursor_ += bytes;
    return piece;
}

void* Arena::allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes > largest_request || alignment > largest_request || mutex_.held_by_this_thread())
        return nullptr;
    // Pieces are aligned to 16 bytes: more of it needs room to begin later.
    const std::size_t slack = alignment > smallest ? alignment - smallest : 0;
    const std::size_t kind = class_of(sizeof(Header) + std::max(bytes, std::size_t{1}) + slack);
    Header* piece = nullptr;
    {
        const std::lock_guard guard(mutex_);
        piece = free_[kind];
        if (piece)
            free_[kind] = piece->next;
        else
            piece = cut(kind);
    }
    if (!piece) return nullptr;
    const auto first = reinterpret_cast<std::uintptr_t>(piece + 1);
    const std::uintptr_t begin = slack == 0 ? first : align_up(first, alignment);
    auto* header = reinterpret_cast<Header*>(begin) - 1;
    header->next = nullptr;
    header->kind = static_cast<std::uint32_t>(kind);
    header->back = static_cast<std::uint32_t>(begin - first);
    return header + 1;
}

void Arena::free(void* block) noexcept {
    Header* header = header_of(block);
    const std::size_t kind = header->kind;
    auto* piece = reinterpret_cast<Header*>(reinterpret_cast<std::uintptr_t>(header) - header->back);
    if (const std::size_t bytes = class_bytes(kind); bytes >= large_piece) {
        const auto begin = reinterpret_cast<std::uintptr_t>(piece + 1);
        const Address first = align_up(begin, page_bytes());
        const Address end = align_down(reinterpret_cast<std::uintptr_t>(piece) + bytes, page_bytes());
        raw::discard(first, end - first);
    }
    if (mutex_.held_by_this_thread()) return; // within a handler's fork: the piece is lost
    const std::lock_guard guard(mutex_);
    piece->next = free_[kind];
    free_[kind] = piece;
}

std::size_t Arena::usable_size(const void* block) noexcept {
    const Header* header = header_of(block);
    return class_bytes(header->kind) - sizeof(Header) - header->back;
}

bool Arena::in_segments(std::uintptr_t at) const noexcept {
    const std::size_t count = segment_count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i)
        if (at >= segments_[i].begin && at < segments_[i].end) return true;
    return false;
}

} // namespace homing
