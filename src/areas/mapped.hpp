// Anonymous memory that the program maps itself: custom pools, and the arenas of allocators that it brings.
// Hooks of any thread write what happens into a log, the engine's thread keeps what there is.
#pragma once

#include "areas/areas.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace homing {

/// What happens to mappings, in the order in which it happens: bounded, lock-free for those who write. There
/// is one, mapping_log().
class MappingLog {
  public:
    static constexpr std::size_t capacity = 4096;

    enum class Event : std::uint8_t {
        mapped = 1, ///< private, anonymous, readable and writable
        gone = 2,   ///< about to be unmapped, moved, replaced, or protected by the program itself
        moved = 3,  ///< what went from `from` is here now
    };
    /// Who deals this memory out.
    enum class Owner : std::uint8_t {
        program = 0,
        hooked = 1, ///< an allocator whose blocks hooks see
        unseen = 2, ///< an allocator in the program itself, of which no hook sees a block
    };
    struct Entry {
        Range range; ///< whole pages
        Event event = Event::gone;
        Owner owner = Owner::program;
        bool stays = false; ///< the memory stays as it is, but the program forbids or allows to access it
        Address from = 0;
        std::uint64_t newest_block = 0; ///< AreaRegistry::newest() when it was about to go
        Address origin[max_origin_frames] = {};
    };

    constexpr MappingLog() noexcept = default;
    MappingLog(const MappingLog&) = delete;
    MappingLog& operator=(const MappingLog&) = delete;

    /// [any thread, hooks] No allocation, no lock, no system call. False: it has found no room.
    bool add(const Entry& entry) noexcept;
    /// Is this memory between mappings that were ever logged? (What is gone elsewhere is nobody's.)
    bool among_mapped(Range range) const noexcept { return mapped_.load().overlaps(range); }
    /// Is it time to take what there is, before entries find no room?
    bool is_filling() const noexcept {
        return claimed_.load(std::memory_order_relaxed) - taken_.load(std::memory_order_relaxed) >=
               capacity / 2;
    }
    /// Differs when something was logged since, as soon as add() has begun.
    std::uint64_t changes() const noexcept {
        return claimed_.load(std::memory_order_seq_cst) + lost_.load(std::memory_order_seq_cst);
    }
    /// [engine's thread] Of these what take() has told of.
    std::uint64_t told() const noexcept { return taken_.load(std::memory_order_relaxed) + seen_lost_; }

    /// [engine's thread] The next entry; false where there is none that is whole. `lost` is set where there
    /// is none at all, and entries since the last time had no room.
    bool take(Entry& entry, bool& lost) noexcept;
    /// All memory lies in it that was told to go by entries that had no room. Empty: there was none.
    Range lost_gone() const noexcept { return lost_gone_.load(); }

  private:
    /// A range that only grows, whichever thread widens it.
    class Span {
      public:
        void widen(Range range) noexcept;
        Range load() const noexcept {
            return {begin_.load(std::memory_order_relaxed), end_.load(std::memory_order_relaxed)};
        }

      private:
        std::atomic<Address> begin_{~Address{0}};
        std::atomic<Address> end_{0};
    };
    struct Slot {
        std::atomic<std::uint64_t> written{0}; ///< number of its entry, + 1
        Entry entry;
    };
    std::atomic<std::uint64_t> claimed_{0};
    std::atomic<std::uint64_t> taken_{0};
    std::atomic<std::uint64_t> lost_{0};
    std::uint64_t seen_lost_ = 0;
    Span mapped_; ///< of all that was ever mapped
    Span lost_gone_;
    Slot slots_[capacity];
};

MappingLog& mapping_log() noexcept;

/// What the program has mapped by now. Engine's thread only.
class MappedMemory {
  public:
    explicit MappedMemory(MappingLog& log) noexcept : log_(log) {}

    bool has_changed() const noexcept { return log_.changes() != log_.told(); }
    /// Memory that went, and the newest block of the registry that there was then.
    struct Gone {
        Range range;
        bool stays = false;
        std::uint64_t newest_block = 0;
    };
    /// Follows the log; returns what went since.
    std::vector<Gone> follow();
    /// What of it is beside `others` (ascending by address), in pieces of at least `smallest` bytes,
    /// ascending. Pieces of one mapping have its generation.
    std::vector<AreaEntry> areas(std::span<const AreaEntry> others, std::size_t smallest) const;
    /// Nothing where the memory at this address was not mapped by the program.
    std::optional<MappingLog::Owner> owner(Address address) const noexcept;

  private:
    struct Mapping {
        Address end = 0;
        MappingLog::Owner owner = MappingLog::Owner::program;
        std::uint64_t generation = 0;
        std::vector<Address> origin;
    };
    void add(Range range, Mapping mapping);
    void cut(Range gone);

    MappingLog& log_;
    std::uint64_t generation_ = 0;
    std::map<Address, Mapping> mappings_;          ///< by begin; disjoint
    std::deque<std::pair<Address, Mapping>> went_; ///< the newest that went, by begin
};

} // namespace homing
