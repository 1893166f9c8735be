// The table of live heap blocks. Hooks of any thread write it while the driver reads it, without a lock: a
// hook must not wait for a thread that the program (or a debugger, or a signal) has stopped.
//
// Open addressing by the block's start. A slot's key says what it holds: nothing, a tombstone (was used:
// probes go on behind it, a new block may take it), a start address, or "changing" while one thread has it
// for itself. The payload is read by the driver under the slot's version, which is odd while the payload is
// written (a seqlock).
//
// Races that are left, and why they are harmless:
//  - note() of a start that is in the table replaces that entry. Two threads that note the same start at once
//  (a
//    program that frees a block twice, or ends we have not seen) may leave two entries; snapshot() drops the
//    older.
//  - end() between a note's claim of a slot and its key: the block is not known yet, as if end() had come
//  first.
//    A correct program has no such order: it frees what malloc has returned.
//  - knows() and snapshot() may miss a block that another thread adds or removes meanwhile; changes() has
//  moved then.
//  - a thread that is gone in the middle of a change (fork: the child's copy) leaves one slot "changing" for
//  good.
#include "areas/areas.hpp"

#include "base/random.hpp"

#include <algorithm>
#include <bit>

namespace homing {
namespace {

constexpr Address nothing = 0;
constexpr Address tombstone = 1;
constexpr Address changing = 2;

constexpr std::size_t slots = AreaRegistry::capacity;
constexpr std::size_t probe_limit = 64;
constexpr int slot_bits = 16;
static_assert(slots == std::size_t{1} << slot_bits);

struct Payload {
    std::atomic<std::uint32_t> version; ///< odd: being written
    std::atomic<std::uint32_t> kind;
    std::atomic<Address> end;
    std::atomic<std::uint64_t> generation;
    std::atomic<const char*> name;
    std::atomic<Address> origin[max_origin_frames];
};

// Zero is the right initial value of all of it; memory becomes resident as it is used. Keys lie apart from
// payloads, so that probing and snapshots read few pages.
struct Table {
    std::atomic<Address> keys[slots];
    Payload payloads[slots];
    // Blocks by a part of their hash: most addresses that are freed are not in the table, and one load of
    // this says so. A count that has reached its limit stays there (and always means "look").
    std::atomic<std::uint16_t> blocks[slots / 4];
    // Slots that were ever taken, a bit each, and the words of those that are not zero: a snapshot reads a
    // few cache lines instead of all keys.
    std::atomic<std::uint64_t> used[slots / 64];
    std::atomic<std::uint64_t> used_words[slots / 64 / 64];
};
static_assert(std::is_trivially_destructible_v<Table>);
Table table; // zero-initialised: .bss

std::size_t place_of(Address start) noexcept {
    return table_place(start >> 4, slot_bits); // allocators align, so the lowest bits say nothing
}

std::atomic<std::uint16_t>& count_of(std::size_t place) noexcept { return table.blocks[place % (slots / 4)]; }

void count_up(std::size_t place) noexcept {
    std::atomic<std::uint16_t>& count = count_of(place);
    std::uint16_t value = count.load(std::memory_order_relaxed);
    while (value != UINT16_MAX && !count.compare_exchange_weak(value, static_cast<std::uint16_t>(value + 1),
                                                               std::memory_order_relaxed)) {
    }
}

void count_down(std::size_t place) noexcept {
    std::atomic<std::uint16_t>& count = count_of(place);
    std::uint16_t value = count.load(std::memory_order_relaxed);
    while (value != UINT16_MAX && value != 0 &&
           !count.compare_exchange_weak(value, static_cast<std::uint16_t>(value - 1),
                                        std::memory_order_relaxed)) {
    }
}

void set_bit(std::atomic<std::uint64_t>* words, std::size_t bit) noexcept {
    const std::uint64_t mask = std::uint64_t{1} << bit % 64;
    if (!(words[bit / 64].load(std::memory_order_relaxed) & mask))
        words[bit / 64].fetch_or(mask, std::memory_order_release);
}

template <class Visit> void for_each_bit(std::uint64_t word, std::size_t base, Visit&& visit) {
    for (; word; word &= word - 1)
        visit(base + static_cast<std::size_t>(std::countr_zero(word)));
}

/// Visits every slot that was ever taken, ascending.
template <class Visit> void for_each_used_slot(Visit&& visit) {
    for (std::size_t top = 0; top < std::size(table.used_words); ++top)
        for_each_bit(table.used_words[top].load(std::memory_order_acquire), top * 64, [&](std::size_t word) {
            for_each_bit(table.used[word].load(std::memory_order_acquire), word * 64, visit);
        });
}

/// The slot whose key is `start`, or `slots`.
std::size_t find(Address start) noexcept {
    const std::size_t place = place_of(start);
    if (count_of(place).load(std::memory_order_relaxed) == 0) return slots;
    for (std::size_t step = 0; step < probe_limit; ++step) {
        const std::size_t slot = (place + step) % slots;
        const Address key = table.keys[slot].load(std::memory_order_acquire);
        if (key == start) return slot;
        if (key == nothing) break;
    }
    return slots;
}

/// Take a slot for a block that begins at `start`: that of an older entry, else the first free one. `slots`:
/// no room.
std::size_t claim(Address start, bool& replaced) noexcept {
    const std::size_t place = place_of(start);
    for (int attempt = 0; attempt < 8; ++attempt) { // another thread took the slot: look again
        std::size_t chosen = slots;
        Address seen = nothing;
        for (std::size_t step = 0; step < probe_limit; ++step) {
            const std::size_t slot = (place + step) % slots;
            const Address key = table.keys[slot].load(std::memory_order_acquire);
            if (key == start) {
                chosen = slot;
                seen = key;
                break;
            }
            if (key <= tombstone && chosen == slots) {
                chosen = slot;
                seen = key;
            }
            if (key == nothing) break;
        }
        if (chosen == slots) return slots;
        if (table.keys[chosen].compare_exchange_strong(seen, changing, std::memory_order_acq_rel)) {
            replaced = seen == start;
            set_bit(table.used, chosen);
            set_bit(table.used_words, chosen / 64);
            return chosen;
        }
    }
    return slots;
}

} // namespace

bool AreaRegistry::note(Range range, AreaKind kind, const Address* origin, int frames,
                        const char* name) noexcept {
    if (range.begin <= changing || range.empty()) return false;
    bool replaced = false;
    const std::size_t slot = claim(range.begin, replaced);
    if (slot == slots) {
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    Payload& payload = table.payloads[slot];
    const std::uint32_t version = payload.version.load(std::memory_order_relaxed);
    payload.version.store(version + 1, std::memory_order_relaxed);
    // Each store below is a release: whoever reads one of them, reads the odd version too.
    payload.kind.store(static_cast<std::uint32_t>(kind), std::memory_order_release);
    payload.end.store(range.end, std::memory_order_release);
    payload.generation.store(generation_.fetch_add(1, std::memory_order_relaxed) + 1,
                             std::memory_order_release);
    payload.name.store(name, std::memory_order_release);
    for (int i = 0; i < max_origin_frames; ++i) {
        payload.origin[i].store(origin && i < frames ? origin[i] : 0, std::memory_order_release);
    }
    payload.version.store(version + 2, std::memory_order_release);
    if (!replaced) {
        count_up(place_of(range.begin));
        live_.fetch_add(1, std::memory_order_relaxed);
    }
    table.keys[slot].store(range.begin, std::memory_order_release);
    changes_.fetch_add(1, std::memory_order_release);
    return true;
}

Range AreaRegistry::end(Address start) noexcept {
    const std::size_t slot = start > changing ? find(start) : slots;
    if (slot == slots) return {};
    Address expected = start;
    if (!table.keys[slot].compare_exchange_strong(expected, changing, std::memory_order_acq_rel)) return {};
    const Range range{start, table.payloads[slot].end.load(std::memory_order_relaxed)};
    table.keys[slot].store(tombstone, std::memory_order_release);
    count_down(place_of(start));
    live_.fetch_sub(1, std::memory_order_relaxed);
    changes_.fetch_add(1, std::memory_order_release);
    return range;
}

bool AreaRegistry::knows(Address start) const noexcept { return start > changing && find(start) != slots; }

void AreaRegistry::snapshot(std::vector<AreaEntry>& out) const {
    out.clear();
    for_each_used_slot([&](std::size_t slot) {
        const Payload& payload = table.payloads[slot];
        for (int attempt = 0; attempt < 4; ++attempt) {
            const Address key = table.keys[slot].load(std::memory_order_acquire);
            if (key <= changing) break;
            AreaEntry entry;
            const std::uint32_t before = payload.version.load(std::memory_order_acquire);
            entry.range = {key, payload.end.load(std::memory_order_acquire)};
            entry.kind = static_cast<AreaKind>(payload.kind.load(std::memory_order_acquire));
            entry.generation = payload.generation.load(std::memory_order_acquire);
            entry.name = payload.name.load(std::memory_order_acquire);
            for (int i = 0; i < max_origin_frames; ++i) {
                entry.origin[i] = payload.origin[i].load(std::memory_order_acquire);
            }
            // Acquire loads above keep their order with these: had any of them seen a newer payload, so would
            // these.
            const std::uint32_t after = payload.version.load(std::memory_order_relaxed);
            if (before == after && before % 2 == 0 &&
                table.keys[slot].load(std::memory_order_relaxed) == key) {
                out.push_back(entry);
                break;
            }
        }
    });
    std::sort(out.begin(), out.end(),
              [](const AreaEntry& a, const AreaEntry& b) { return a.range.begin < b.range.begin; });
    // An entry whose end was missed (memory given back by a way that has no hook) may overlap newer ones.
    // Those kept are disjoint and begin before the next one, so that only the last of them can overlap it.
    std::size_t kept = 0;
    for (const AreaEntry& entry : out) {
        const bool overlap = kept > 0 && out[kept - 1].range.overlaps(entry.range);
        if (overlap && out[kept - 1].generation > entry.generation) continue;
        out[overlap ? kept - 1 : kept++] = entry;
    }
    out.resize(kept);
}

AreaRegistry& area_registry() noexcept {
    static constinit AreaRegistry registry;
    return registry;
}

} // namespace homing
