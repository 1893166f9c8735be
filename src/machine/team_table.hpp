// Which threads make up the team that uses the program's arrays, in which order, and where they run.
//
// Owners are threads first and nodes second (model/team.hpp). Sources name threads by the kernel's numbers; a
// runtime makes the threads of a team one after the other, so that the order of these numbers is the order of
// the OpenMP thread numbers. Touches are kept by a slot of this table, which never changes; the slot's
// position in the team does, when threads come or go.
//
// Threads that exist and never touch anything (progress threads of MPI, our own) are no part of the team once
// the others have touched enough to tell, in enough rounds. A source that names no thread has one pretended
// thread a node, and so has a program whose teams are made anew all the time (nested regions of libgomp):
// what is known of their threads is the node alone.
//
// Engine's thread only.
#pragma once

#include "kernel/kernel.hpp"
#include "kernel/node_map.hpp"
#include "model/belief.hpp"
#include "model/team.hpp"

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace homing {

class TeamTable {
  public:
    explicit TeamTable(const NodeMap& nodes) noexcept : nodes_(nodes) {}

    /// The slot of a thread (the kernel's number; 0: not known) that touched something on the node at
    /// `position`.
    std::uint32_t touched(int thread, int position);
    /// The slot of who touches something there, without a touch.
    std::uint32_t slot(int thread, int position);
    /// Makes the team anew from who exists and who touches. Lists the threads of the process where one has
    /// come that was not known, without our own (0: there is none). At the end of a round, before anything
    /// below is asked for: there is no team before (formulas take .3 ms, and it is not known for how many
    /// threads).
    void update(Kernel& kernel, int our_thread = 0);

    const model::Team& team() const noexcept { return *team_; }
    /// Those for the team's number of threads. Beliefs keep them.
    const std::shared_ptr<const model::Formulas>& formulas() const noexcept { return formulas_; }
    const model::Prior& prior() const noexcept { return *prior_; }
    /// Position in the team of who had this slot.
    std::uint32_t position(std::uint32_t slot) const noexcept { return slots_[slot].position; }
    model::Node node(std::uint32_t slot) const noexcept { return slots_[slot].node; }
    /// Differs where something else than before is true of the team.
    std::uint32_t version() const noexcept { return version_; }

  private:
    struct Slot {
        int thread;       ///< the kernel's number; negative: pretended
        model::Node node; ///< of its newest touch, or the CPU that it ran on last
        std::uint64_t touches = 0;
        bool exists = true;
        bool ours = false; ///< a thread of homing
        std::uint32_t position = 0;
    };
    std::uint32_t slot_of(int thread, model::Node node);
    void list(Kernel& kernel);
    void count_gone();
    std::vector<std::uint32_t> members() const;
    void make(const std::vector<std::uint32_t>& members);

    const NodeMap& nodes_;
    std::vector<Slot> slots_;
    std::unordered_map<int, std::uint32_t> slot_of_thread_;
    bool by_node_ = false; ///< threads come and go: for good
    bool unlisted_ = true; ///< a thread came that the last list did not have
    std::uint64_t touches_ = 0;
    std::uint64_t touches_before_round_ = 0;
    std::uint32_t rounds_ = 0; ///< in which anybody touched anything
    std::uint32_t version_ = 0;
    std::unique_ptr<model::Team> team_;
    std::shared_ptr<const model::Formulas> formulas_;
    std::unique_ptr<model::Prior> prior_;
};

} // namespace homing
