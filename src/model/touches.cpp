#include "model/touches.hpp"

#include "base/invariant.hpp"

#include <algorithm>

namespace homing::model {

void Touches::add(std::uint64_t page, std::uint32_t thread, bool write, std::uint32_t iteration, Node home) {
    invariant(iterations_.empty() || iteration >= iterations_.back(),
              "touches come in the order of iterations");
    // A quarter at once, so that a full memory is not moved at every touch.
    if (touches_.size() >= most_) drop(std::max<std::size_t>(1, most_ / 4));
    touches_.push_back({page, thread, 0, write});
    iterations_.push_back(iteration);
    homes_.push_back(home);
}

void Touches::drop(std::size_t count) {
    const auto first = static_cast<std::ptrdiff_t>(std::min(count, touches_.size()));
    touches_.erase(touches_.begin(), touches_.begin() + first);
    iterations_.erase(iterations_.begin(), iterations_.begin() + first);
    homes_.erase(homes_.begin(), homes_.begin() + first);
}

void Touches::forget() { drop(touches_.size()); }

void Touches::renumber(std::int64_t by, std::uint64_t pages) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < touches_.size(); ++i) {
        const std::int64_t page = static_cast<std::int64_t>(touches_[i].page) + by;
        if (page < 0 || static_cast<std::uint64_t>(page) >= pages) continue;
        touches_[kept] = touches_[i];
        touches_[kept].page = static_cast<std::uint64_t>(page);
        iterations_[kept] = iterations_[i];
        homes_[kept++] = homes_[i];
    }
    touches_.resize(kept);
    iterations_.resize(kept);
    homes_.resize(kept);
}

std::span<const Touch> Touches::at(std::uint32_t iteration) {
    for (std::size_t i = 0; i < touches_.size(); ++i)
        touches_[i].age = iteration - std::min(iteration, iterations_[i]);
    return touches_;
}

bool Touches::follow_change(const Formulas& formulas, const Team& team, const Extent& extent,
                            const Prior& prior, std::span<const Touch> shown) {
    invariant(shown.size() == touches_.size(), "all touches are shown");
    if (touches_.size() < 2 * tuning::least_since_change) return false;
    const std::span<const Touch> all = shown;
    const auto evidence = [&](std::span<const Touch> some) {
        return Belief(formulas, team, extent, some, prior).log_evidence();
    };
    const double together = evidence(all);
    // The newest 8, 16, 32, ... touches, as long as others are left. Whole iterations: the touches of one
    // come in the order of addresses, and its last ones tell of the area's end alone.
    for (std::size_t least = tuning::least_since_change;; least *= 2) {
        std::size_t since = least;
        while (since < all.size() && iterations_[all.size() - since - 1] == iterations_[all.size() - since])
            ++since;
        if (since + tuning::least_since_change > all.size()) return false;
        const double apart = evidence(all.first(all.size() - since)) + evidence(all.last(since));
        if (apart + tuning::change_log_prior <= together) continue;
        drop(all.size() - since);
        return true;
    }
}

} // namespace homing::model
