// Moves pages in batches, and believes nothing: what is not on its target after a second query was not moved.
#pragma once

#include "base/nodes.hpp"
#include "kernel/kernel.hpp"
#include "kernel/node_map.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace homing {

/// What became of pages that were to move.
struct Moves {
    std::uint64_t moved = 0; ///< verified
    std::uint64_t refused = 0;
    std::uint32_t calls = 0; ///< that moved pages, and what they took
    double seconds = 0;
    double longest_call = 0;
    std::map<int, std::uint64_t> errors; ///< refused pages by errno

    Moves& operator+=(const Moves& others);
};

struct MoveResult : Moves {
    std::uint64_t considered = 0; ///< base pages looked at
    std::uint64_t wanted = 0;     ///< of these, on another node than their owner's
    std::uint64_t absent = 0;     ///< not populated
    bool complete = true;         ///< false: the pause limit ended it; the rest is left for the next time
};

/// What is moved: memory in numbered granules, which are pages of one size. It is told what becomes of them.
class MovableMemory {
  public:
    virtual std::size_t granule_bytes() const noexcept = 0;
    virtual Range granule_range(std::uint64_t granule) const noexcept = 0;

    /// Where it was last seen; -1: not known.
    virtual int seen_home(std::uint64_t granule) const noexcept = 0;
    /// These lie on the node at `position`.
    virtual void lies_at(policy::PageRange run, int position) = 0;
    /// Somebody else moves pages: what was seen holds no more.
    virtual void forget_homes() noexcept = 0;
    /// These were sent away from the node at `from`.
    virtual void moved_from(policy::PageRange run, policy::Node from) = 0;
    /// It was not moved in this round, for this reason (errno). True: it is left where it is from now on.
    virtual bool was_refused(std::uint64_t granule, std::uint32_t round, int error) = 0;
    virtual void forget_refusal(std::uint64_t granule) noexcept = 0;

  protected:
    MovableMemory() = default;
    MovableMemory(const MovableMemory&) = default;
    MovableMemory& operator=(const MovableMemory&) = default;
    ~MovableMemory() = default;
};

class Mover {
  public:
    Mover(Kernel& kernel, const NodeMap& nodes);

    /// Send granules to the node at `position`: those that lie on one of the nodes `from`
    /// (positions). Pages on nodes that are no targets (without CPUs, outside the cpuset) stay there. Adds to
    /// `result`. Stops where `deadline` (seconds of record::now()) has passed, and says so in
    /// result.complete.
    void send(MovableMemory& memory, std::span<const std::uint64_t> granules, int position,
              policy::NodeSet from, std::uint32_t round, double deadline, MoveResult& result);

    /// Homes of single granules (their first base page): position of the node, or -1. Where
    /// one is not where it was seen before, somebody else moves pages, and nothing is believed any more.
    void homes(MovableMemory& memory, std::span<const std::uint64_t> granules, std::vector<int>& positions);

    /// Is there room for so many bytes on a node? Remembered for one round (a sysfs read each).
    bool has_room(int position, std::uint64_t bytes, std::uint32_t round);

    /// Pages may be armed for hint faults. `prepare` is called before some are touched to see where they are
    /// (Kernel::reveal).
    void pages_may_hide(std::function<void()> prepare) { before_reveal_ = std::move(prepare); }

  private:
    void send_batch(MovableMemory& memory, std::span<const std::uint64_t> granules, int position,
                    policy::NodeSet from, std::uint32_t round, MoveResult& result);
    std::size_t keep_misplaced(MovableMemory& memory, int position, policy::NodeSet from, MoveResult& result);
    int move_batch(std::span<void*> pages, int target, MoveResult& result);
    struct Parts {
        std::uint64_t before, after;
    };
    Parts move_parts(const MovableMemory& memory, std::uint64_t granule, int target, policy::NodeSet from,
                     MoveResult& result);

    Kernel& kernel_;
    const NodeMap& nodes_;
    std::size_t batch_;
    std::function<void()> before_reveal_;
    std::vector<void*> pages_;
    std::vector<std::uint64_t> granules_; ///< of pages_
    std::vector<int> status_, targets_, from_, now_;
    std::array<std::uint64_t, max_nodes> room_{};
    std::array<std::uint32_t, max_nodes> room_round_{};
};

} // namespace homing
