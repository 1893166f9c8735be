// How much of the allocator's memory small live blocks cover: blocks that are too many to be areas one by one
// (the rows of a matrix, nodes of a list), and lie in memory that the allocator shares among them. What they
// cover is watched as areas of pages (areas/arenas.hpp).
//
// Not a block is remembered, only by cell how much of it they cover, and by page whether it lies within one
// block. A hook adds what a block covers when it is allocated, and takes it away before it is freed. So a
// page that lies within a live block may be protected:
//  - no allocator gives it back to the kernel before a hook has seen the end of that block;
//  - nothing else lies there: no lock, no buffer of a stream, none of the allocator's own headers and lists,
//  which threads touch while all signals are blocked (a thread that ends frees its thread-local storage so).
#pragma once

#include "areas/areas.hpp"

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
    std::size_t covered = 0;   ///< bytes of it
    BlockSites::Site site = 0; ///< where most of it comes from, as far as is known
    int sites = 0;             ///< places that own a good part of it
};

/// There is one, block_cover(). Costs 10 bytes for 64 KiB of the allocator's memory: 1.6 MiB for 10 GiB.
class BlockCover {
  public:
    static constexpr std::size_t cell_bytes = std::size_t{16} << 10;
    /// Blocks of so many bytes and more are counted. No page lies within a smaller one, and programs allocate
    /// and free those all the time: eight threads with blocks of 16 to 4096 bytes took half as long again
    /// with all from 1 KiB on counted.
    static constexpr std::size_t smallest_block = 4096;

    constexpr BlockCover() noexcept = default;
    BlockCover(const BlockCover&) = delete;
    BlockCover& operator=(const BlockCover&) = delete;

    /// [any thread, hooks] A block begins to live. Where there is no room for its cells it is counted as
    /// dropped, and never covers anything. Makes one system call in 64 MiB of the allocator's memory, and two
    /// for each other thread that comes to the same new memory at that moment.
    void add(Range block, BlockSites::Site site) noexcept;
    /// [any thread, hooks] A block that add() was told of is about to end. Ordered before every later load
    /// of the caller's, so that who arms pages meanwhile sees it, or is seen (Windows::open).
    void remove(Range block) noexcept;
    /// [any thread, hooks] Does a block that add() was told of begin in this page?
    bool begins_in_page_of(Address address) const noexcept;
    /// [any thread, hooks] A block is about to end of which no more is known than that it begins here and
    /// lies in this memory: from here on no page of that lies within a block, as far as is known. What of it
    /// is covered stays counted. Returns the memory; ordered as remove() is.
    Range forget(Range memory) noexcept;

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

  private:
    static constexpr std::size_t chunk_bytes = std::size_t{64} << 20;
    static constexpr std::size_t cells_in_chunk = chunk_bytes / cell_bytes;
    /// Places are kept for four cells together, the newest two of them.
    static constexpr std::size_t cells_of_site = 4;
    /// Covered bytes are counted in these: a full cell is 128, and a malloc's header is lost on the way.
    static constexpr std::size_t unit = 128;
    static constexpr unsigned all = cell_bytes / unit;
    /// Pages of other machines are several of these.
    static constexpr std::size_t page = 4096;
    static constexpr unsigned covered_bits = 0xff;
    static constexpr int within_shift = 8, start_shift = 12;
    static constexpr std::size_t most_chunks = 4096; ///< 256 GiB of small blocks

    struct Chunk {
        /// What is covered, in units; a bit for each page that lies within a block; and a bit for each in
        /// which a block begins, of which there is one at the most. One write for all.
        std::atomic<std::uint16_t> cells[cells_in_chunk];
        std::atomic<BlockSites::Site> sites[cells_in_chunk / cells_of_site][2];
    };
    struct Place {
        std::atomic<Address> base{0}; ///< 0: free
        std::atomic<Chunk*> chunk{nullptr};
        std::atomic<bool> refused{false}; ///< there was no memory for a chunk, and none is asked for again
    };
    void count_churn(std::size_t bytes) noexcept;
    template <class Change> void each_chunk(Range block, bool make, Change&& change) noexcept;
    template <class Change>
    static void each_cell(Range block, Address base, Range part, Change&& change) noexcept;
    static unsigned covered_of(std::uint16_t cell) noexcept { return cell & covered_bits; }
    static std::size_t first_place(Address base) noexcept;
    Chunk* find(Address base) const noexcept;
    Chunk* make(Address base) noexcept;
    Chunk* make_in(std::size_t place) noexcept;
    std::vector<std::pair<Address, const Chunk*>> chunks() const;

    Place places_[most_chunks];
    std::atomic<std::uint16_t> used_[most_chunks]{}; ///< numbers of the places in use, + 1
    std::atomic<std::size_t> used_count_{0};
    std::atomic<std::uint64_t> dropped_{0};
    std::atomic<std::uint64_t> churn_{0};
    mutable std::uint64_t looked_at_ = 0;
    BlockSites sites_;
};

BlockCover& block_cover() noexcept;

} // namespace homing
