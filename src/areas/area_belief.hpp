// What was learnt of the owners of one area: its newest touches, who touched each page last, and the belief
// that these lead to. Engine's thread only.
#pragma once

#include "areas/granule_homes.hpp"
#include "model/belief.hpp"
#include "model/touches.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace homing {

/// A reference of the round that is not learnt yet.
struct FreshTouch {
    std::uint64_t granule = 0;
    std::uint32_t slot = 0; ///< of its thread (TeamTable)
    bool write = false;
    std::uint32_t weight = 1;               ///< accesses that it stands for
    model::Node node = model::unknown_node; ///< of the thread
    model::Node home = model::unknown_node; ///< where the granule lay, once that was asked
    std::uint32_t place = 0;                ///< the region, or the barrier, behind which it came
    float within = -1;                      ///< byte of the granule that was touched (model::Touch)
};

/// A posterior as a prior for other areas, without what it rules out.
struct SparsePrior {
    std::vector<std::pair<std::uint32_t, double>> formulas; ///< index in the table, share
    std::array<double, model::families> families{};
    bool empty() const noexcept { return formulas.empty() && families == decltype(families){}; }
};

struct AreaBelief {
    std::vector<FreshTouch> fresh;
    std::optional<std::size_t> fresh_earlier; ///< the first so many of them are of an earlier phase
    /// Pages are granules, threads slots of the TeamTable: both have other numbers in the belief.
    model::Touches touches{model::tuning::most_touches};
    GranuleHomes users; ///< node that touches a granule oftenest (model::User)
    GranuleHomes leads; ///< of those whose lead was more than one: that lead, less one
    model::Repeats repeats;
    GranuleHomes left;       ///< node that a granule was sent away from last, while not much more is known
    std::uint64_t taken = 0; ///< touches so far, those that are forgotten included
    std::uint64_t taken_then = 0;   ///< when the first of `left` was sent away; 0: none was
    std::uint64_t taken_before = 0; ///< of other owners, or doubted since

    // The belief, and what it was made from.
    std::shared_ptr<const model::Formulas> formulas;
    std::unique_ptr<model::Belief> belief; ///< of the granules that exist, in their order; null: no touch yet
    std::unique_ptr<model::Belief>
        writers;                       ///< the same from writes alone, where all nodes use the area alike
    SparsePrior shown;                 ///< to areas of its kind
    std::uint64_t fits = 0;            ///< beliefs so far
    std::uint32_t team = 0;            ///< TeamTable::version()
    std::size_t unfitted = 0;          ///< touches that came since
    std::vector<std::uint32_t> places; ///< ascending: it rests on their touches alone, where there are any
                                       ///< (Touches::leading_places)
    double ignorance = 1;            ///< share of the area's touches that knowing all owners would make local
    bool is_aligned = false;         ///< taken for an array that the program aligned within its memory
    bool surprised = false;          ///< by its newest touches, which do not show that owners changed
    std::uint64_t asked = 0;         ///< granules that were asked for so far
    std::uint32_t silent_rounds = 0; ///< in which others were touched, before it ever was

    /// Is there a belief, and of so many granules, those that exist now? What the area's pages are numbered
    /// by changes with them, and an older belief says nothing of them.
    bool is_of(std::uint64_t existing) const noexcept { return belief && belief->pages() == existing; }

    int lead(std::uint64_t granule) const noexcept { return std::max(leads.home(granule), 0) + 1; }
    /// A touch of the granule by the node is counted: a lead of one passes to it.
    void count_user(std::uint64_t granule, model::Node node) {
        const int before = users.home(granule), leading = lead(granule);
        if (before >= 0) (before == node ? repeats.same : repeats.other) += 1;
        if (before < 0 || (before != node && leading == 1))
            users.set(granule, granule + 1, node);
        else if (before != node)
            leads.set(granule, granule + 1, leading - 2);
        else if (leading < static_cast<int>(model::tuning::telling_touches))
            leads.set(granule, granule + 1, leading);
    }

    /// Do pages go by what is touched at the place?
    bool follows(std::uint32_t place) const noexcept {
        return places.empty() || std::ranges::binary_search(places, place);
    }

    /// Touches that tell of its owners, those that are forgotten included.
    std::uint64_t telling() const noexcept { return taken - taken_before; }
    /// Of the touches so far only those that are kept tell of them.
    void count_kept_alone() noexcept {
        taken_before = taken - std::min<std::uint64_t>(telling(), touches.size());
    }
    /// Nothing is certain any more. What is kept of the touches may still be true.
    void doubt() noexcept {
        ignorance = 1;
        count_kept_alone();
    }
    /// The program has gone on to other places.
    void begin_phase() noexcept {
        if (fresh.empty())
            touches.begin_phase();
        else
            fresh_earlier = fresh.size();
    }
    /// Its owners are others than they were: what older touches said of single pages is over.
    void follow_owners(std::uint64_t granules) {
        users.reset(granules);
        leads.reset(granules);
        forget_departures(granules);
        repeats = {};
        belief.reset();
        surprised = false;
        count_kept_alone();
    }

    void sent_away(std::uint64_t first, std::uint64_t end, model::Node from) {
        left.set(first, end, from);
        if (taken_then == 0) taken_then = taken;
    }
    /// Does the belief rest on twice the touches that it did when pages left? Then one that sends many of
    /// them back does not waver: the first was wrong. A page goes to and fro as often as the logarithm of the
    /// number of touches at most.
    bool may_know_better() const noexcept { return taken_then > 0 && taken >= 2 * taken_then; }
    void forget_departures(std::uint64_t granules) {
        left.reset(granules);
        taken_then = 0;
    }

    /// Would it go back to where it was sent from, and not on its own account? Then it stays: beliefs that
    /// waver move nothing twice.
    bool goes_back(std::uint64_t granule, model::Node node) const noexcept {
        return left.home(granule) == node && users.home(granule) != node;
    }

    /// What is known of pages that another area had, whose granule g is granule g + by of this one now, of so
    /// many granules. The belief is to be made anew.
    void inherit(const AreaBelief& other, std::int64_t by, std::uint64_t granules) {
        reset(granules);
        touches = other.touches;
        touches.renumber(by, granules);
        const auto take = [&](GranuleHomes& homes, const GranuleHomes& others) {
            const auto first = static_cast<std::uint64_t>(std::max<std::int64_t>(0, -by));
            others.for_each(first, ~std::uint64_t{0}, [&](std::uint64_t granule, int position) {
                const std::uint64_t now = granule + static_cast<std::uint64_t>(by);
                if (now < granules) homes.set(now, now + 1, position);
            });
        };
        take(users, other.users);
        take(leads, other.leads);
        take(left, other.left);
        repeats = other.repeats;
        taken = other.taken;
        taken_then = other.taken_then;
        taken_before = other.taken_before;
        asked = other.asked;
        unfitted = touches.size();
    }

    /// Begin anew, in an area of so many granules.
    void reset(std::uint64_t granules) {
        *this = AreaBelief();
        users.reset(granules);
        leads.reset(granules);
        left.reset(granules);
    }
};

} // namespace homing
