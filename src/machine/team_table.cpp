#include "machine/team_table.hpp"

#include "base/invariant.hpp"
#include "model/tuning.hpp"

#include <algorithm>

namespace homing {

using model::tuning::chances;
using model::tuning::clearly_more;
using model::tuning::most_team_threads;

std::uint32_t TeamTable::slot_of(int thread, model::Node node) {
    const auto [found, is_new] =
        slot_of_thread_.try_emplace(thread, static_cast<std::uint32_t>(slots_.size()));
    if (is_new) slots_.push_back({thread, node});
    return found->second;
}

std::uint32_t TeamTable::slot(int thread, int position) {
    invariant(position >= 0 && position < nodes_.count(), "a touch comes from a node");
    const std::size_t known = slots_.size();
    const std::uint32_t found =
        slot_of(thread > 0 && !by_node_ ? thread : -1 - position, static_cast<model::Node>(position));
    if (slots_.size() != known && !by_node_) unlisted_ = true;
    return found;
}

std::uint32_t TeamTable::touched(int thread, int position) {
    const std::uint32_t found = slot(thread, position);
    slots_[found].node = static_cast<model::Node>(position);
    ++slots_[found].touches;
    ++touches_;
    return found;
}

void TeamTable::list(Kernel& kernel) {
    unlisted_ = false;
    const std::vector<Kernel::Thread> threads = kernel.threads();
    if (threads.empty()) return;
    for (Slot& slot : slots_)
        slot.exists = slot.thread < 0;
    for (const Kernel::Thread& thread : threads) {
        const int position = nodes_.position(thread.node);
        if (position < 0 && !slot_of_thread_.contains(thread.number)) continue;
        slots_[slot_of(thread.number, static_cast<model::Node>(position))].exists = true;
    }
}

/// Do threads come and go, so that their numbers say nothing?
void TeamTable::count_gone() {
    std::size_t gone = 0, here = 0;
    for (const Slot& slot : slots_)
        if (slot.thread > 0 && slot.touches > 0) (slot.exists ? here : gone) += 1;
    if (gone <= clearly_more * std::max(here, static_cast<std::size_t>(nodes_.count()))) return;
    by_node_ = true;
    unlisted_ = false;
    for (std::size_t i = 0, known = slots_.size(); i < known; ++i)
        slot_of(-1 - slots_[i].node, slots_[i].node);
}

/// The slots of the team, in its order.
std::vector<std::uint32_t> TeamTable::members() const {
    std::vector<std::uint32_t> members;
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot)
        if (slots_[slot].exists && !slots_[slot].ours && (slots_[slot].thread < 0 || !by_node_))
            members.push_back(slot);
    if (!by_node_ && rounds_ >= chances && touches_ >= chances * members.size())
        std::erase_if(members, [this](std::uint32_t slot) { return slots_[slot].touches == 0; });
    // The newest of those who have gone stands for its node where nobody else is: teams may come again.
    policy::NodeSet covered = 0;
    for (const std::uint32_t slot : members)
        covered |= policy::node_bit(slots_[slot].node);
    for (std::uint32_t slot = static_cast<std::uint32_t>(slots_.size()); slot-- > 0;) {
        const Slot& one = slots_[slot];
        if (one.exists || one.ours || one.touches == 0 || policy::contains(covered, one.node)) continue;
        covered |= policy::node_bit(one.node);
        members.push_back(slot);
    }
    std::ranges::sort(members, {}, [this](std::uint32_t slot) {
        const int thread = slots_[slot].thread;
        return thread < 0 ? -thread : thread; // pretended threads: by node
    });
    return members;
}

void TeamTable::update(Kernel& kernel, int our_thread) {
    rounds_ += touches_ != touches_before_round_;
    touches_before_round_ = touches_;
    if (unlisted_) {
        list(kernel);
        count_gone();
    }
    // It may have been listed before it could tell its number.
    if (const auto found = slot_of_thread_.find(our_thread); found != slot_of_thread_.end())
        slots_[found->second].ours = true;
    make(members());
}

void TeamTable::make(const std::vector<std::uint32_t>& members) {
    std::vector<model::Node> node_of;
    for (const std::uint32_t slot : members)
        node_of.push_back(slots_[slot].node);
    if (node_of.empty())
        for (int node = 0; node < nodes_.count(); ++node)
            node_of.push_back(static_cast<model::Node>(node));
    model::Team team(node_of, nodes_.count());
    // More threads than formulas are made for stand in groups; where no group has one node, nodes do.
    int size = (team.threads() + most_team_threads - 1) / most_team_threads;
    while (size < team.threads() && !team.can_group(size))
        ++size;
    const bool by_node = size > 1 && !team.can_group(size);
    if (by_node)
        team = model::Team::packed(nodes_.count(), nodes_.count());
    else if (size > 1)
        team = team.grouped(size);
    std::vector<bool> is_member(slots_.size(), false);
    for (std::uint32_t i = 0; i < members.size(); ++i) {
        Slot& slot = slots_[members[i]];
        is_member[members[i]] = true;
        slot.position =
            by_node ? static_cast<std::uint32_t>(slot.node) : i / static_cast<std::uint32_t>(size);
    }
    // Who has gone, or is no member, stands for the same share of the team as before, or as near to that as
    // there is a member on its node.
    const auto before = team_ ? static_cast<std::uint32_t>(team_->threads()) : 1;
    const auto now = static_cast<std::uint32_t>(team.threads());
    for (std::uint32_t number = 0; number < slots_.size(); ++number) {
        if (is_member[number]) continue;
        Slot& slot = slots_[number];
        const std::uint32_t scaled =
            std::min(now - 1, static_cast<std::uint32_t>(std::uint64_t{slot.position} * now / before));
        slot.position = scaled;
        std::uint32_t nearest = now;
        for (std::uint32_t member = 0; member < now; ++member) {
            const std::uint32_t distance = member > scaled ? member - scaled : scaled - member;
            if (team.node(static_cast<int>(member)) != slot.node || distance >= nearest) continue;
            nearest = distance;
            slot.position = member;
        }
    }
    if (team_ && *team_ == team) return;
    if (!team_ || team_->threads() != team.threads()) {
        formulas_ = std::make_shared<const model::Formulas>(team.threads());
        prior_ = std::make_unique<model::Prior>(*formulas_);
    }
    team_ = std::make_unique<model::Team>(std::move(team));
    ++version_;
}

} // namespace homing
