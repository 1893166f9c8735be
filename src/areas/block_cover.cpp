#include "areas/block_cover.hpp"

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

BlockCover::Chunk* BlockCover::find_chunk(Address address) const noexcept {
    const Address key = key_of(address);
    for (std::size_t step = 0; step < most_chunks; ++step) {
        const Place& place = places_[(first_place(key) + step) % most_chunks];
        const Address there = place.key.load(std::memory_order_acquire);
        if (there == key) return place.chunk.load(std::memory_order_acquire);
        if (there == 0) return nullptr;
    }
    return nullptr;
}

/// Null where there is no room: what is not counted covers nothing.
BlockCover::Chunk* BlockCover::make(Address key) noexcept {
    const std::size_t first = first_place(key);
    for (std::size_t step = 0; step < most_chunks; ++step) {
        const std::size_t at = (first + step) % most_chunks;
        Address there = 0;
        if (places_[at].key.compare_exchange_strong(there, key, std::memory_order_acq_rel) || there == key)
            return make_in(at);
    }
    return nullptr;
}

/// Threads that come at once each bring a chunk, and the first one's is taken: nobody waits for a thread that
/// was put aside in between, and no block is lost to it.
BlockCover::Chunk* BlockCover::make_in(std::size_t number) noexcept {
    Place& place = places_[number];
    Chunk* there = place.chunk.load(std::memory_order_acquire);
    if (there || refused_[number].load(std::memory_order_relaxed)) return there;
    auto* mine = static_cast<Chunk*>(raw::map_memory(sizeof(Chunk)));
    if (!mine) {
        refused_[number].store(true, std::memory_order_relaxed);
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

/// One write to what all threads share for a good many blocks: they would wait for one another.
void BlockCover::count_churn(std::size_t bytes) noexcept {
    constexpr std::uint64_t worth_telling = std::uint64_t{64} << 10;
    static constinit thread_local std::uint64_t untold = 0;
    untold += bytes;
    if (untold >= worth_telling) churn_.fetch_add(std::exchange(untold, 0), std::memory_order_relaxed);
}

void BlockCover::add(Range block) noexcept {
    Byte* byte = find(block.begin);
    if (!byte)
        if (Chunk* chunk = make(key_of(block.begin))) byte = chunk->pages + page_in_chunk(block.begin);
    if (byte)
        byte->store(byte_of(block), std::memory_order_relaxed);
    else
        dropped_.fetch_add(block.bytes(), std::memory_order_relaxed);
}

void BlockCover::remove(Range block) noexcept {
    if (Byte* byte = find(block.begin)) byte->store(0, std::memory_order_relaxed);
    asymmetric_fence_light();
}

void BlockCover::note_site(Range block, BlockSites::Site site) noexcept {
    Chunk* chunk = find_chunk(block.begin);
    if (site == 0 || !chunk) return;
    const Address last = std::min(block.end, align_down(block.begin, chunk_bytes) + chunk_bytes) - 1;
    for (std::size_t at = page_in_chunk(block.begin) / pages_of_site;
         at <= page_in_chunk(last) / pages_of_site; ++at) {
        auto& [newest, other] = chunk->sites[at];
        const BlockSites::Site before = newest.load(std::memory_order_relaxed);
        if (before == site) continue;
        other.store(before, std::memory_order_relaxed);
        newest.store(site, std::memory_order_relaxed);
    }
}

/// Other blocks may begin in this memory, and be allocated just now: that they begin there stays, so that
/// their end finds what is known of them. Of one that reaches into it no more is known than what lies before.
Range BlockCover::forget(Range memory) noexcept {
    const auto shorten = [](Byte& byte, std::size_t most_behind) {
        std::uint8_t before = byte.load(std::memory_order_relaxed), after = 0;
        do {
            if (pages_behind(before) <= most_behind) return;
            after = static_cast<std::uint8_t>((before & first_is_whole) | (1 + most_behind));
        } while (!byte.compare_exchange_weak(before, after, std::memory_order_relaxed));
    };
    const Address first = align_down(memory.begin, page);
    if (Byte* byte = find(first)) byte->store(0, std::memory_order_relaxed);
    for (std::size_t behind = 1; behind < count_bits; ++behind)
        if (Byte* byte = find(first - behind * page)) shorten(*byte, behind - 1);
    for (Address at = first + page; at < memory.end; at += page)
        if (Byte* byte = find(at)) {
            shorten(*byte, 0);
            byte->fetch_and(static_cast<std::uint8_t>(~first_is_whole), std::memory_order_relaxed);
        }
    asymmetric_fence_light();
    return memory;
}

/// Calls visit(address, byte, within) for each of these pages, ascending: what is known of it, and does it
/// lie within a block? False ends it.
template <class Visit> void BlockCover::each_page(Range pages, Visit&& visit) const {
    const Address first = align_down(pages.begin, page);
    std::size_t behind = 0; // pages from here on that are of the block before
    for (std::size_t back = 1; back < count_bits; ++back) {
        const Byte* byte = find(first - back * page);
        const std::uint8_t known = byte ? byte->load(std::memory_order_relaxed) : 0;
        if (known == 0) continue;
        if (pages_behind(known) >= back) behind = pages_behind(known) - back + 1;
        break;
    }
    const Chunk* chunk = nullptr;
    for (Address at = first; at < pages.end; at += page) {
        if (at == first || at % chunk_bytes == 0) chunk = find_chunk(at);
        const std::uint8_t known =
            chunk ? chunk->pages[page_in_chunk(at)].load(std::memory_order_relaxed) : std::uint8_t{0};
        const bool within = known ? (known & first_is_whole) != 0 : behind > 0;
        behind = known ? pages_behind(known) : behind - (behind > 0);
        if (!visit(at, known, within)) return;
    }
}

bool BlockCover::is_within(Range pages) const noexcept {
    bool all = !pages.empty();
    each_page(pages, [&](Address, std::uint8_t, bool within) { return all = within; });
    return all;
}

// Base pages may be several of ours.
void BlockCover::parts_within(Range pages, std::vector<Range>& out) const {
    const std::size_t first = out.size();
    Address begin = 0; // of the part that is open, or 0
    const auto close = [&](Address end) {
        const Range part = begin ? whole_pages({begin, end}) : Range{};
        begin = 0;
        if (part.empty()) return;
        if (out.size() > first && out.back().end == part.begin)
            out.back().end = part.end;
        else
            out.push_back(part);
    };
    Address at = 0;
    each_page(pages, [&](Address here, std::uint8_t, bool within) {
        at = here + page;
        if (within && begin == 0) begin = here;
        if (!within) close(here);
        return true;
    });
    close(at);
}

void BlockCover::blocks_within(Range pages, std::vector<Range>& out) const {
    bool open = false;
    const auto close = [&] {
        if (open && out.back().bytes() <= page) out.pop_back(); // it has no whole page
        open = false;
    };
    each_page({align_down(pages.begin, page_bytes()), pages.end},
              [&](Address at, std::uint8_t known, bool within) {
                  if (known != 0 || !within) close();
                  if (known != 0) out.push_back({at, at + page});
                  if (open) out.back().end = at + page;
                  open |= known != 0;
                  return true;
              });
    close();
}

/// Those that are whole, ascending by address.
std::vector<std::pair<Address, const BlockCover::Chunk*>> BlockCover::chunks() const {
    std::vector<std::pair<Address, const Chunk*>> found;
    const std::size_t count = used_count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i)
        if (const std::uint16_t place = used_[i].load(std::memory_order_acquire))
            found.emplace_back((places_[place - 1].key.load(std::memory_order_acquire) - 1) * chunk_bytes,
                               places_[place - 1].chunk.load(std::memory_order_acquire));
    std::sort(found.begin(), found.end());
    return found;
}

namespace {

/// Cells of one window, by the places that own them.
using Tally = std::array<std::uint16_t, BlockSites::capacity + 1>;
using Owners = std::array<BlockSites::Site, 4>; ///< the places with a good part, ascending, 0 behind them

/// known: cells of which any place is known.
Owners owners_of(const Tally& tally, std::size_t known) {
    Owners owners{};
    std::size_t count = 0;
    for (std::size_t site = 1; site < tally.size() && count < owners.size(); ++site)
        if (tally[site] > 0 && tally[site] * least_share >= known)
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
    Address covered_to = 0;  // end of the newest cell that belongs to a run
    std::size_t behind = 0;  // pages from here on that are of the newest block
    Address behind_from = 0; // where that is
    for (const auto& [base, chunk] : chunks()) {
        if (base != behind_from) behind = 0;
        for (std::size_t first = 0; first < cells_in_chunk; first += window_cells) {
            Tally tally{};
            std::size_t known = 0; // cells whose places are known
            bool open = false;     // the newest window goes on
            const auto close = [&] {
                if (open) windows.back().owners = owners_of(tally, known);
                tally.fill(0);
                known = 0;
                open = false;
            };
            for (std::size_t cell = first; cell < first + window_cells; ++cell) {
                ++looked_at_;
                // A page for each in which a block begins, or that lies within one: what a block has besides
                // whole pages is a page's worth of bytes on average, wherever it begins.
                std::size_t covered = 0;
                for (std::size_t i = 0; i < pages_in_cell; ++i) {
                    const std::uint8_t byte =
                        chunk->pages[cell * pages_in_cell + i].load(std::memory_order_relaxed);
                    covered += byte != 0 || behind > 0 ? page : 0;
                    behind = byte != 0 ? pages_behind(byte) : behind - (behind > 0);
                }
                if (covered == 0) continue;
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
                windows.back().covered += covered;
                const auto& sites = chunk->sites[cell * pages_in_cell / pages_of_site];
                known += sites[0].load(std::memory_order_relaxed) != 0;
                for (const auto& site : sites)
                    if (const auto number = site.load(std::memory_order_relaxed)) ++tally[number];
            }
            close();
        }
        behind_from = base + chunk_bytes;
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

} // namespace homing
