#include "areas/block_cover.hpp"

#include "base/random.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace homing {
namespace {

std::uint64_t hash_of(const Address* origin, int frames) noexcept {
    std::uint64_t hash = splitmix_step;
    for (int i = 0; i < frames; ++i)
        hash = (hash ^ origin[i]) * 0xff51afd7ed558ccdu ^ hash >> 29;
    return hash | 1;
}

/// A cell belongs to a run when blocks cover at least this part of it.
constexpr std::uint8_t least_part = 8;
/// Places are compared by windows of so many cells: 1 MiB. One that owns less than this part of a window
/// says nothing; fewer windows of other places than this are part of the run before.
constexpr std::size_t window_cells = 64;
constexpr std::size_t least_share = 4;
constexpr std::size_t fewest_windows = 4;

} // namespace

BlockSites::Site BlockSites::intern(const Address* origin, int frames) noexcept {
    frames = std::min(frames, max_origin_frames);
    if (frames <= 0) return 0;
    const std::uint64_t hash = hash_of(origin, frames);
    for (std::size_t step = 0; step < capacity; ++step) {
        const std::size_t at = 1 + (hash + step) % capacity;
        Place& place = places_[at];
        std::uint64_t seen = place.hash.load(std::memory_order_acquire);
        if (seen == 0 && place.hash.compare_exchange_strong(seen, hash, std::memory_order_acq_rel)) {
            std::copy_n(origin, frames, place.origin);
            place.ready.store(true, std::memory_order_release);
            return static_cast<Site>(at);
        }
        // Whoever has just taken it has perhaps not written it yet: this block then has no place.
        if (seen == hash) return place.ready.load(std::memory_order_acquire) ? static_cast<Site>(at) : 0;
    }
    return 0;
}

/// Where the search for a chunk begins: all bits of its number count.
std::size_t BlockCover::first_place(Address base) noexcept {
    static_assert(most_chunks == std::size_t{1} << 12);
    return table_place(base / chunk_bytes, 12);
}

BlockCover::Chunk* BlockCover::find(Address base) const noexcept {
    const std::size_t first = first_place(base);
    for (std::size_t step = 0; step < most_chunks; ++step) {
        const Place& place = places_[(first + step) % most_chunks];
        const Address there = place.base.load(std::memory_order_acquire);
        if (there == base) return place.chunk.load(std::memory_order_acquire);
        if (there == 0) return nullptr;
    }
    return nullptr;
}

/// Null where there is no room: what is not counted covers nothing.
BlockCover::Chunk* BlockCover::make(Address base) noexcept {
    const std::size_t first = first_place(base);
    for (std::size_t step = 0; step < most_chunks; ++step) {
        const std::size_t at = (first + step) % most_chunks;
        Address there = 0;
        if (places_[at].base.compare_exchange_strong(there, base, std::memory_order_acq_rel) || there == base)
            return make_in(at);
    }
    return nullptr;
}

/// Threads that come at once each bring a chunk, and the first one's is taken: nobody waits for a thread that
/// was put aside in between, and no block is lost to it.
BlockCover::Chunk* BlockCover::make_in(std::size_t number) noexcept {
    Place& place = places_[number];
    Chunk* there = place.chunk.load(std::memory_order_acquire);
    if (there || place.refused.load(std::memory_order_relaxed)) return there;
    auto* mine = static_cast<Chunk*>(raw::map_memory(sizeof(Chunk)));
    if (!mine) {
        place.refused.store(true, std::memory_order_relaxed);
        return place.chunk.load(std::memory_order_acquire);
    }
    if (!place.chunk.compare_exchange_strong(there, mine, std::memory_order_acq_rel)) {
        raw::unmap(mine, sizeof(Chunk));
        return there;
    }
    used_[used_count_.fetch_add(1, std::memory_order_acq_rel)].store(static_cast<std::uint16_t>(number + 1),
                                                                     std::memory_order_release);
    return mine;
}

namespace {

/// What came and went in this thread, and was not told yet.
constinit thread_local std::uint64_t untold_churn = 0;
constexpr std::uint64_t worth_telling = std::uint64_t{64} << 10;

} // namespace

/// One write to what all threads share for a good many blocks: they would wait for one another.
void BlockCover::count_churn(std::size_t bytes) noexcept {
    untold_churn += bytes;
    if (untold_churn < worth_telling) return;
    churn_.fetch_add(std::exchange(untold_churn, 0), std::memory_order_relaxed);
}

/// change(chunk, begin of what it stands for, part of the block that lies there).
template <class Change> void BlockCover::each_chunk(Range block, bool make_chunks, Change&& change) noexcept {
    for (Address at = block.begin; at < block.end;) {
        const Address base = align_down(at, chunk_bytes);
        const Address next = std::min<Address>(base + chunk_bytes, block.end);
        Chunk* chunk = find(base);
        if (!chunk && make_chunks) chunk = make(base);
        if (chunk)
            change(*chunk, base, Range{at, next});
        else if (make_chunks)
            dropped_.fetch_add(next - at, std::memory_order_relaxed);
        at = next;
    }
}

/// What a part of a block covers of each cell, in units, and what is to be said of its
/// pages: change(number, units, bits). Borders are rounded down at both ends, so that neighbours never count
/// a unit twice, and a block takes away exactly what it has brought.
template <class Change>
void BlockCover::each_cell(Range block, Address base, Range part, Change&& change) noexcept {
    const Address first = align_up(block.begin, page), end = align_down(block.end, page);
    for (Address at = part.begin; at < part.end;) {
        const Address cell = align_down(at, cell_bytes);
        const Address next = std::min<Address>(cell + cell_bytes, part.end);
        const Address from = std::max(first, cell), to = std::min<Address>(end, cell + cell_bytes);
        const unsigned pages = from < to ? ((1u << (to - from) / page) - 1) << (from - cell) / page : 0;
        const unsigned start = at == block.begin ? 1u << at % cell_bytes / page : 0;
        change((cell - base) / cell_bytes, static_cast<unsigned>(next / unit - at / unit),
               pages << within_shift | start << start_shift);
        at = next;
    }
}

void BlockCover::add(Range block, BlockSites::Site site) noexcept {
    each_chunk(block, true, [&](Chunk& chunk, Address base, Range part) {
        each_cell(block, base, part, [&](std::size_t number, unsigned units, unsigned bits) {
            auto& cell = chunk.cells[number];
            std::uint16_t before = cell.load(std::memory_order_relaxed), after = 0;
            do { // more than there is of a cell: the end of a block was missed
                const unsigned covered = std::min<unsigned>(all, covered_of(before) + units);
                after = static_cast<std::uint16_t>(covered | (before & ~covered_bits) | bits);
            } while (!cell.compare_exchange_weak(before, after, std::memory_order_acq_rel));
            if (site == 0) return;
            auto& [newest, other] = chunk.sites[number / cells_of_site];
            const BlockSites::Site last = newest.load(std::memory_order_relaxed);
            if (last == site) return;
            other.store(last, std::memory_order_relaxed);
            newest.store(site, std::memory_order_relaxed);
        });
    });
    count_churn(block.bytes());
}

void BlockCover::remove(Range block) noexcept {
    each_chunk(block, false, [&](Chunk& chunk, Address base, Range part) {
        each_cell(block, base, part, [&](std::size_t number, unsigned units, unsigned bits) {
            auto& cell = chunk.cells[number];
            std::uint16_t before = cell.load(std::memory_order_relaxed), after = 0;
            do { // less than it takes away: blocks that were allocated before homing began to count
                const unsigned covered = covered_of(before) - std::min(covered_of(before), units);
                after = static_cast<std::uint16_t>(covered | (before & ~covered_bits & ~bits));
            } while (!cell.compare_exchange_weak(before, after, std::memory_order_seq_cst));
        });
    });
    count_churn(block.bytes());
}

bool BlockCover::begins_in_page_of(Address address) const noexcept {
    if (used_count_.load(std::memory_order_relaxed) == 0) return false;
    const Address base = align_down(address, chunk_bytes);
    const Chunk* chunk = find(base);
    if (!chunk) return false;
    const std::uint16_t cell = chunk->cells[(address - base) / cell_bytes].load(std::memory_order_relaxed);
    return cell >> start_shift >> address % cell_bytes / page & 1;
}

Range BlockCover::forget(Range memory) noexcept {
    each_chunk(memory, false, [&](Chunk& chunk, Address base, Range part) {
        each_cell(memory, base, part, [&](std::size_t number, unsigned, unsigned bits) {
            auto& cell = chunk.cells[number];
            if (cell.load(std::memory_order_relaxed) & bits)
                cell.fetch_and(static_cast<std::uint16_t>(~bits), std::memory_order_seq_cst);
        });
    });
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return memory;
}

bool BlockCover::is_within(Range pages) const noexcept {
    for (Address at = align_down(pages.begin, page); at < pages.end; at += page) {
        const Address base = align_down(at, chunk_bytes);
        const Chunk* chunk = find(base);
        if (!chunk) return false;
        const std::uint16_t cell = chunk->cells[(at - base) / cell_bytes].load(std::memory_order_seq_cst);
        if (!(cell >> within_shift >> at % cell_bytes / page & 1)) return false;
    }
    return !pages.empty();
}

void BlockCover::parts_within(Range pages, std::vector<Range>& out) const {
    const std::size_t first = out.size();
    for (Address at = align_down(pages.begin, page_bytes()); at < pages.end; at += page_bytes()) {
        if (!is_within({at, at + page_bytes()})) continue;
        if (out.size() > first && out.back().end == at)
            out.back().end = at + page_bytes();
        else
            out.push_back({at, at + page_bytes()});
    }
}

void BlockCover::blocks_within(Range pages, std::vector<Range>& out) const {
    bool open = false;
    const auto close = [&] {
        if (open && out.back().bytes() <= page_bytes()) out.pop_back(); // it has no whole page
        open = false;
    };
    for (Address at = align_down(pages.begin, page_bytes()); at < pages.end; at += page_bytes()) {
        const bool begins = begins_in_page_of(at);
        if (begins || !is_within({at, at + page_bytes()})) close();
        if (begins) out.push_back({at, at + page_bytes()});
        if (open) out.back().end = at + page_bytes();
        open |= begins;
    }
    close();
}

/// Those that are whole, ascending by address.
std::vector<std::pair<Address, const BlockCover::Chunk*>> BlockCover::chunks() const {
    std::vector<std::pair<Address, const Chunk*>> found;
    const std::size_t count = used_count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i)
        if (const std::uint16_t place = used_[i].load(std::memory_order_acquire))
            found.emplace_back(places_[place - 1].base.load(std::memory_order_acquire),
                               places_[place - 1].chunk.load(std::memory_order_acquire));
    std::sort(found.begin(), found.end());
    return found;
}

namespace {

/// Cells of one window, by the places that own them.
using Tally = std::array<std::uint16_t, BlockSites::capacity + 1>;
using Owners = std::array<BlockSites::Site, 4>; ///< the places with a good part, ascending, 0 behind them

Owners owners_of(const Tally& tally, std::size_t looked) {
    Owners owners{};
    std::size_t count = 0;
    for (std::size_t site = 1; site < tally.size() && count < owners.size(); ++site)
        if (tally[site] > 0 && tally[site] * least_share >= looked)
            owners[count++] = static_cast<BlockSites::Site>(site);
    return owners;
}

/// What one window of cells has of a run.
struct Window {
    Range range;
    std::size_t covered = 0;
    Owners owners{};
    bool begins = false; ///< a gap lies before it
};

/// Windows without a gap between them, as runs of the same owners. Where nothing is known of a window's
/// owners they are those of its neighbours.
void split_by_owners(const Window* first, const Window* end, std::vector<CoveredRun>& out) {
    while (first != end) {
        Owners owners = first->owners;
        const Window* last = first + 1;
        // A few windows of other owners are no array of their own: borders, and what is scattered.
        for (const Window* at = last; at != end;) {
            const Window* same = std::find_if(at, end, [&](const Window& window) {
                return owners[0] == 0 || window.owners[0] == 0 || window.owners == owners;
            });
            if (static_cast<std::size_t>(same - at) >= fewest_windows) break;
            at = last = same == end ? end : same + 1;
            if (owners[0] == 0) owners = (last - 1)->owners;
        }
        CoveredRun run;
        run.range = {first->range.begin, (last - 1)->range.end};
        for (const Window* at = first; at != last; ++at)
            run.covered += at->covered;
        run.site = owners[0];
        run.sites = static_cast<int>(std::ranges::count_if(owners, [](auto site) { return site != 0; }));
        out.push_back(run);
        first = last;
    }
}

} // namespace

void BlockCover::runs(std::size_t smallest, std::size_t widest_gap, std::vector<CoveredRun>& out) const {
    std::vector<Window> windows;
    Address covered_to = 0; // end of the newest cell that belongs to a run
    for (const auto& [base, chunk] : chunks()) {
        for (std::size_t first = 0; first < cells_in_chunk; first += window_cells) {
            Tally tally{};
            std::size_t looked = 0;
            bool open = false; // the newest window goes on
            const auto close = [&] {
                if (open) windows.back().owners = owners_of(tally, looked);
                tally.fill(0);
                looked = 0;
                open = false;
            };
            for (std::size_t cell = first; cell < first + window_cells; ++cell) {
                ++looked_at_;
                const unsigned units = covered_of(chunk->cells[cell].load(std::memory_order_relaxed));
                if (units < all / least_part) continue;
                const Address at = base + cell * cell_bytes;
                const bool gap = windows.empty() || at - covered_to > widest_gap;
                if (gap) close();
                if (!open) {
                    windows.push_back({});
                    windows.back().range.begin = gap ? at : covered_to;
                    windows.back().begins = gap;
                    open = true;
                }
                covered_to = windows.back().range.end = at + cell_bytes;
                windows.back().covered += units * unit;
                ++looked;
                for (const auto& site : chunk->sites[cell / cells_of_site])
                    if (const auto number = site.load(std::memory_order_relaxed)) ++tally[number];
            }
            close();
        }
    }
    std::vector<CoveredRun> found;
    for (std::size_t first = 0; first < windows.size();) {
        std::size_t end = first + 1;
        while (end < windows.size() && !windows[end].begins)
            ++end;
        split_by_owners(windows.data() + first, windows.data() + end, found);
        first = end;
    }
    for (const CoveredRun& run : found)
        if (run.range.bytes() >= smallest) out.push_back(run);
}

BlockCover& block_cover() noexcept {
    static constinit BlockCover cover;
    return cover;
}

} // namespace homing
