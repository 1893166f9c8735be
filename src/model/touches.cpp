#include "model/touches.hpp"

#include "base/invariant.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace homing::model {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The log of the probability of touches, by one distribution.
auto evidence_by(const Formulas& formulas, const Team& team, const Extent& extent, const Prior& prior) {
    return [&](std::span<const Touch> some) {
        return Belief(formulas, team, extent, some, prior).log_evidence();
    };
}

} // namespace

void Touches::add(std::uint64_t page, std::uint32_t thread, bool write, std::uint32_t iteration, Node home,
                  std::uint32_t place, float within) {
    invariant(iterations_.empty() || iteration >= iterations_.back(),
              "touches come in the order of iterations");
    // A quarter at once, so that a full memory is not moved at every touch.
    if (touches_.size() >= most_) drop(std::max<std::size_t>(1, most_ / 4));
    touches_.push_back({page, thread, 0, write, within});
    iterations_.push_back(iteration);
    homes_.push_back(home);
    places_.push_back(place);
}

void Touches::drop(std::size_t count) {
    const auto first = static_cast<std::ptrdiff_t>(std::min(count, touches_.size()));
    touches_.erase(touches_.begin(), touches_.begin() + first);
    iterations_.erase(iterations_.begin(), iterations_.begin() + first);
    homes_.erase(homes_.begin(), homes_.begin() + first);
    places_.erase(places_.begin(), places_.begin() + first);
    earlier_ -= std::min(earlier_, static_cast<std::size_t>(first));
}

void Touches::forget() { drop(touches_.size()); }

void Touches::renumber(std::int64_t by, std::uint64_t pages) {
    std::size_t kept = 0, kept_earlier = 0;
    for (std::size_t i = 0; i < touches_.size(); ++i) {
        const std::int64_t page = static_cast<std::int64_t>(touches_[i].page) + by;
        if (page < 0 || static_cast<std::uint64_t>(page) >= pages) continue;
        touches_[kept] = touches_[i];
        touches_[kept].page = static_cast<std::uint64_t>(page);
        iterations_[kept] = iterations_[i];
        places_[kept] = places_[i];
        kept_earlier += i < earlier_;
        homes_[kept++] = homes_[i];
    }
    touches_.resize(kept);
    iterations_.resize(kept);
    homes_.resize(kept);
    places_.resize(kept);
    earlier_ = kept_earlier;
}

std::span<const Touch> Touches::at(std::uint32_t iteration) {
    for (std::size_t i = 0; i < touches_.size(); ++i)
        touches_[i].age = iteration - std::min(iteration, iterations_[i]);
    return touches_;
}

/// The evidence of the touches where each place uses the area in a way of its own. Nothing where the touches
/// of earlier phases come from places that none has come from since: what no longer runs tells nothing of
/// what does now.
std::optional<double> Touches::evidence_by_place(std::span<const Touch> all, const Evidence& evidence) const {
    const std::span<const std::uint32_t> places(places_);
    const auto earlier = places.first(std::min(earlier_, all.size())), since = places.subspan(earlier.size());
    const bool runs = earlier.empty() || std::ranges::any_of(earlier, [&](std::uint32_t place) {
                          return place != nowhere && std::ranges::find(since, place) != since.end();
                      });
    std::map<std::uint32_t, std::vector<Touch>> by_place;
    for (std::size_t i = 0; i < all.size(); ++i)
        by_place[places_[i]].push_back(all[i]);
    if (!runs || by_place.size() < 2) return {};
    double sum = 0;
    for (const auto& [place, touches] : by_place)
        sum += evidence(touches);
    return sum;
}

std::optional<std::uint32_t> Touches::leading_place(const Formulas& formulas, const Team& team,
                                                    const Extent& extent, const Prior& prior,
                                                    std::span<const Touch> shown,
                                                    std::optional<std::uint32_t> before) const {
    invariant(shown.size() == touches_.size(), "all touches are shown");
    std::map<std::uint32_t, std::size_t> counts;
    for (const std::uint32_t place : places_)
        if (place != nowhere) ++counts[place];
    std::erase_if(counts, [](const auto& one) { return one.second < tuning::telling_touches; });
    if (counts.size() < 2) return {};
    const Evidence evidence = evidence_by(formulas, team, extent, prior);
    const std::optional<double> apart = evidence_by_place(shown, evidence);
    if (!apart || *apart + tuning::change_log_prior <= evidence(shown)) return {};
    const auto most = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
    const auto kept = before ? counts.find(*before) : counts.end();
    const bool stays = kept != counts.end() && most->second < tuning::clearly_more * kept->second;
    return stays ? kept->first : most->first;
}

bool Touches::follow_change(const Formulas& formulas, const Team& team, const Extent& extent,
                            const Prior& prior, std::span<const Touch> shown) {
    invariant(shown.size() == touches_.size(), "all touches are shown");
    if (touches_.size() < 2 * tuning::telling_touches) return false;
    const std::span<const Touch> all = shown;
    const Evidence evidence = evidence_by(formulas, team, extent, prior);
    const double together = evidence(all);
    std::optional<double> by_place; // the same of every split: made when it is first asked for
    // The newest 8, 16, 32, ... touches, as long as others are left. Whole iterations: the touches of one
    // come in the order of addresses, and its last ones tell of the area's end alone.
    for (std::size_t least = tuning::telling_touches;; least *= 2) {
        std::size_t since = least;
        while (since < all.size() && iterations_[all.size() - since - 1] == iterations_[all.size() - since])
            ++since;
        if (since + tuning::telling_touches > all.size()) return false;
        const double apart = evidence(all.first(all.size() - since)) + evidence(all.last(since));
        if (apart + tuning::change_log_prior <= together) continue;
        if (!by_place) by_place = evidence_by_place(all, evidence).value_or(-infinity);
        if (*by_place >= apart + tuning::change_log_prior) continue;
        drop(all.size() - since);
        return true;
    }
}

} // namespace homing::model
