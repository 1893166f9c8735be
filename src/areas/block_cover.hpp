// How much of the allocator's memory small live blocks cover: blocks that are too many to be areas one by one
// (the rows of a matrix, nodes of a list), and lie in memory that the allocator shares among them. What they
// cover is watched as areas of pages (areas/arenas.hpp).
//
// Not a block is remembered, only a byte for each page: whether one begins in it, and how many pages it has.
// A hook writes it when a block is allocated, and clears it before the block is freed. Each byte is that of
// one block, so that a hook writes it like any variable: two threads that do so at once would have the same
// memory from the allocator. (Counters by cell, changed by compare-and-exchange, cost 40 ns a block: half as
// much again as glibc takes for one of 4 to 8 KiB.) So it is known which pages lie within a live block, and
// such a page may be protected:
//  - no allocator gives it back to the kernel before a hook has seen the end of that block;
//  - nothing else lies there: no lock, no buffer of a stream, none of the allocator's own headers and lists,
//  which threads touch while all signals are blocked (a thread that ends frees its thread-local storage so).
#pragma once

#include "areas/areas.hpp"
#include "base/asymmetric_fence.hpp"
#include "base/random.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace homing {

/// Places in the code that small blocks come from, by a number each; lock-free. 0 is no place.
class BlockSites {
  public:
    static constexpr std::size_t capacity = 255;
    using Site = std::uint8_t;

    /// The number of this place (its return addresses, outwards); 0 where there is no room.
    Site intern(const Address* origin, int frames) noexcept;
    /// max_origin_frames return addresses, 0 behind the last.
    const Address* origin(Site site) const noexcept { return places_[site].origin; }

  private:
    struct Place {
        std::atomic<std::uint64_t> hash{0}; ///< 0: free
        std::atomic<bool> ready{false};
        Address origin[max_origin_frames] = {};
    };
    Place places_[capacity + 1];
};

/// A run of cells that small blocks of the same places cover.
struct CoveredRun {
    Range range;               ///< whole cells
    std::size_t covered = 0;   ///< bytes of it, to a page or so for each block
    BlockSites::Site site = 0; ///< where most of it comes from, as far as is known
    int sites = 0;             ///< places that own a good part of it
};

/// There is one, block_cover(). Costs a byte for each page of the allocator's memory, and two for each 64
/// KiB: 2.8 MiB for 10 GiB.
class BlockCover {
  public:
    /// What is covered is looked at by cells.
    static constexpr std::size_t cell_bytes = std::size_t{16} << 10;
    /// Blocks of so many bytes and more are counted. No page lies within a smaller one, and programs allocate
    /// and free those all the time: eight threads with blocks of 16 to 4096 bytes took half as long again
    /// with all from 1 KiB on counted.
    static constexpr std::size_t smallest_block = 4096;

    constexpr BlockCover() noexcept = default;
    BlockCover(const BlockCover&) = delete;
    BlockCover& operator=(const BlockCover&) = delete;

    /// [any thread, hooks] A block of smallest_block bytes or more begins to live. Where there is no room for
    /// its pages it is counted as dropped, and never covers anything. Makes one system call in 64 MiB of the
    /// allocator's memory, and two for each other thread that comes to the same new memory at that moment.
    void add(Range block) noexcept;
    /// [any thread, hooks] The place that such a block comes from. Some of a place's blocks will do.
    void note_site(Range block, BlockSites::Site site) noexcept;
    /// [any thread, hooks] So many bytes came or went, as far as is known.
    void count_churn(std::size_t bytes) noexcept;
    /// All three, of one block.
    void add(Range block, BlockSites::Site site) noexcept {
        add(block);
        note_site(block, site);
        count_churn(block.bytes());
    }
    /// [any thread, hooks] A block that add() was told of is about to end. Ordered before every later load
    /// of the caller's by an asymmetric fence, of which who arms pages has the heavy side (Windows::open):
    /// that one sees it, or is seen.
    void remove(Range block) noexcept;
    /// [any thread, hooks] Does a block that add() was told of begin in this page?
    bool begins_in_page_of(Address address) const noexcept {
        const Byte* byte = find(address);
        return byte && byte->load(std::memory_order_relaxed) != 0;
    }
    /// [any thread, hooks] A block is about to end of which no more is known than that it begins here and
    /// lies in this memory: from here on no page of that lies within a block, as far as is known. Returns the
    /// memory; ordered as remove() is.
    Range forget(Range memory) noexcept;

    /// For hooks that programs call all the time: what is known of a page, where that is found at once.
    class Page {
      public:
        /// Nothing is known, or it has to be looked for.
        bool is_unknown() const noexcept { return byte_ == nullptr; }
        /// It has to be looked for: add(), begins_in_page_of() and remove() do.
        bool is_elsewhere() const noexcept { return elsewhere_; }
        bool block_begins() const noexcept { return byte_->load(std::memory_order_relaxed) != 0; }
        /// As add() and remove(), of the block that begins in this page.
        void add(Range block) noexcept { byte_->store(byte_of(block), std::memory_order_relaxed); }
        void remove() noexcept {
            byte_->store(0, std::memory_order_relaxed);
            asymmetric_fence_light();
        }

      private:
        friend class BlockCover;
        std::atomic<std::uint8_t>* byte_ = nullptr;
        bool elsewhere_ = false;
    };
    Page at_once(Address address) noexcept {
        Page found;
        const Address key = key_of(address);
        Place& place = places_[first_place(key)];
        const Address there = place.key.load(std::memory_order_acquire);
        if (__builtin_expect(there == key, 1)) {
            if (Chunk* chunk = place.chunk.load(std::memory_order_acquire))
                found.byte_ = chunk->pages + page_in_chunk(address);
        } else {
            found.elsewhere_ = there != 0;
        }
        return found;
    }

    /// Do all of these pages lie within live blocks?
    bool is_within(Range pages) const noexcept;
    /// The parts of `pages` that do, ascending.
    void parts_within(Range pages, std::vector<Range>& out) const;

    /// Blocks that have whole pages within `pages`, ascending: of each from the page in which it begins up to
    /// the one in which it ends.
    void blocks_within(Range pages, std::vector<Range>& out) const;

    /// Bytes that came and went since the process began, but for the last 64 KiB of each thread.
    std::uint64_t churn() const noexcept { return churn_.load(std::memory_order_relaxed); }
    /// All runs of at least `smallest` bytes, ascending by address. Gaps up to `widest_gap` bytes within a
    /// run belong to it; where other places begin to own the memory, another run begins.
    void runs(std::size_t smallest, std::size_t widest_gap, std::vector<CoveredRun>& out) const;
    /// Bytes of blocks that there was no room for.
    std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
    BlockSites& sites() noexcept { return sites_; }
    const BlockSites& sites() const noexcept { return sites_; }

    /// Cells looked at by runs() so far: the work, for tests.
    std::uint64_t looked_at() const noexcept { return looked_at_; }

    /// What is known of blocks lies in chunks of so many bytes of addresses.
    static constexpr std::size_t chunk_bytes = std::size_t{64} << 20;

  private:
    /// Pages of other machines are several of these.
    static constexpr std::size_t page = 4096;
    static constexpr std::size_t pages_in_chunk = chunk_bytes / page;
    static constexpr std::size_t pages_in_cell = cell_bytes / page;
    static constexpr std::size_t cells_in_chunk = chunk_bytes / cell_bytes;
    /// Places are kept for four cells together, the newest two of them.
    static constexpr std::size_t pages_of_site = 4 * pages_in_cell;
    static constexpr unsigned chunk_bits = 12;
    static constexpr std::size_t most_chunks = std::size_t{1} << chunk_bits; ///< 256 GiB of small blocks

    /// Of the page in which a block begins (there is one at the most): 1 + the whole pages that it has behind
    /// that one, as far as there is room for the number; and whether that is one of its whole pages, too. 0
    /// for the others.
    static constexpr std::uint8_t count_bits = 0x7f, first_is_whole = 0x80;
    static std::uint8_t byte_of(Range block) noexcept {
        const std::size_t pages = std::min<std::size_t>(block.end / page - block.begin / page, count_bits);
        return static_cast<std::uint8_t>(pages | (block.begin % page == 0 ? first_is_whole : 0));
    }
    static std::size_t pages_behind(std::uint8_t byte) noexcept {
        return byte == 0 ? 0 : (byte & count_bits) - std::size_t{1};
    }
    using Byte = std::atomic<std::uint8_t>;
    struct Chunk {
        Byte pages[pages_in_chunk];
        std::atomic<BlockSites::Site> sites[pages_in_chunk / pages_of_site][2];
    };
    struct Place {
        std::atomic<Address> key{0}; ///< number of the chunk, + 1; 0: free
        std::atomic<Chunk*> chunk{nullptr};
    };

    static std::size_t page_in_chunk(Address address) noexcept { return address % chunk_bytes / page; }
    static Address key_of(Address address) noexcept { return address / chunk_bytes + 1; }
    /// Where the search for a chunk begins: neighbours do not get into each other's way.
    static std::size_t first_place(Address key) noexcept { return key % most_chunks; }
    /// That of the page with this address.
    Chunk* find_chunk(Address address) const noexcept;
    Byte* find(Address address) const noexcept {
        Chunk* chunk = find_chunk(address);
        return chunk ? chunk->pages + page_in_chunk(address) : nullptr;
    }
    Chunk* make(Address key) noexcept;
    Chunk* make_in(std::size_t place) noexcept;
    template <class Visit> void each_page(Range pages, Visit&& visit) const;
    std::vector<std::pair<Address, const Chunk*>> chunks() const;

    Place places_[most_chunks];
    std::atomic<bool> refused_[most_chunks]{};       ///< there was no memory for it, and none is asked for
    std::atomic<std::uint16_t> used_[most_chunks]{}; ///< numbers of the places in use, + 1
    std::atomic<std::size_t> used_count_{0};
    std::atomic<std::uint64_t> dropped_{0};
    std::atomic<std::uint64_t> churn_{0};
    mutable std::uint64_t looked_at_ = 0;
    BlockSites sites_;
};

namespace detail {
inline constinit BlockCover the_block_cover;
}

inline BlockCover& block_cover() noexcept { return detail::the_block_cover; }

} // namespace homing
