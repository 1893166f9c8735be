#include "model/touches.hpp"

#include "base/invariant.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace homing::model {
namespace {

/// The log of the probability of touches, by one distribution.
auto evidence_by(const Formulas& formulas, const Team& team, const Extent& extent, const Prior& prior) {
    return [&](std::span<const Touch> some) {
        return Belief(formulas, team, extent, some, prior, {}, Belief::Use::evidence).log_evidence();
    };
}

} // namespace

void Touches::add(const SeenTouch& touch, std::uint64_t pages) {
    invariant(touch.iteration >= newest(), "touches come in the order of iterations");
    if (touches_.size() >= most_) make_room(pages);
    touches_.push_back(touch);
}

/// A quarter goes at once, so that a full memory is not moved at every touch: the oldest, but not what is the
/// newest of its part of the area. There are as many parts as touches that go, so enough are left that may.
/// What the first questions have told of a part that is not asked about again would be lost otherwise.
void Touches::make_room(std::uint64_t pages) {
    const std::size_t parts = std::max<std::size_t>(1, most_ / 4);
    std::vector<std::size_t> in_part(parts, 0);
    const auto part_of = [&](const SeenTouch& touch) -> std::size_t& {
        const double at = static_cast<double>(touch.page) / static_cast<double>(pages);
        return in_part[std::min(parts - 1, static_cast<std::size_t>(at * static_cast<double>(parts)))];
    };
    for (const SeenTouch& touch : touches_)
        ++part_of(touch);
    std::size_t at = 0, gone = 0, gone_earlier = 0;
    std::erase_if(touches_, [&](const SeenTouch& touch) {
        const bool is_earlier = at++ < earlier_;
        const bool goes = gone < parts && --part_of(touch) > 0;
        gone += goes;
        gone_earlier += goes && is_earlier;
        return goes;
    });
    earlier_ -= gone_earlier;
}

void Touches::renumber(std::int64_t by, std::uint64_t pages) {
    const auto gone = [&](const SeenTouch& touch) {
        const std::int64_t page = static_cast<std::int64_t>(touch.page) + by;
        return page < 0 || static_cast<std::uint64_t>(page) >= pages;
    };
    const auto first = touches_.begin();
    const auto since = first + static_cast<std::ptrdiff_t>(std::min(earlier_, touches_.size()));
    earlier_ -= static_cast<std::size_t>(std::count_if(first, since, gone));
    std::erase_if(touches_, gone);
    for (SeenTouch& touch : touches_)
        touch.page += static_cast<std::uint64_t>(by);
}

std::span<const SeenTouch> Touches::at(std::uint32_t iteration) {
    for (SeenTouch& touch : touches_)
        touch.age = iteration - std::min(iteration, touch.iteration);
    return touches_;
}

bool Touches::earlier_is_over() const {
    const std::span<const SeenTouch> seen(touches_);
    const auto earlier = seen.first(earlier_), since = seen.subspan(earlier_);
    return !earlier.empty() && !since.empty() && std::ranges::none_of(earlier, [&](const SeenTouch& one) {
        return one.place != nowhere && std::ranges::find(since, one.place, &SeenTouch::place) != since.end();
    });
}

/// Each place of the newest touches with these, as if it used the area in a way of its own; ascending.
std::vector<Touches::Way> Touches::way_of_each_place(std::span<const Touch> newest,
                                                     const Evidence& evidence) const {
    std::map<std::uint32_t, std::vector<Touch>> by_place;
    const std::size_t older = touches_.size() - newest.size();
    for (std::size_t i = 0; i < newest.size(); ++i)
        by_place[touches_[older + i].place].push_back(newest[i]);
    std::vector<Way> ways;
    for (auto& [place, touches] : by_place) {
        const double own = evidence(touches);
        ways.push_back({{place}, std::move(touches), own});
    }
    return ways;
}

/// Is the area used now as the touches of earlier phases have it: by all touches since, or at one place?
bool Touches::goes_on(std::span<const Touch> all, const Evidence& evidence) const {
    const std::span<const Touch> earlier = all.first(earlier_), since = all.subspan(earlier_);
    if (std::min(earlier.size(), since.size()) < tuning::telling_touches) return true; // too few to tell
    std::vector<Way> ways = way_of_each_place(since, evidence);
    if (ways.size() > 1) ways.push_back({{}, {since.begin(), since.end()}, evidence(since)});
    const double apart = evidence(earlier) + tuning::change_log_prior;
    return std::ranges::any_of(ways, [&](Way& way) {
        if (way.touches.size() < tuning::telling_touches) return false; // a few touches go with any
        way.touches.insert(way.touches.end(), earlier.begin(), earlier.end());
        return evidence(way.touches) >= way.evidence + apart;
    });
}

double Touches::sum_of_evidence(std::span<const Way> ways) noexcept {
    double sum = 0;
    for (const Way& way : ways)
        sum += way.evidence;
    return sum;
}

std::map<std::uint32_t, std::size_t> Touches::telling_places() const {
    std::map<std::uint32_t, std::size_t> counts;
    for (const SeenTouch& touch : touches_)
        if (touch.place != nowhere) ++counts[touch.place];
    std::erase_if(counts, [](const auto& one) { return one.second < tuning::telling_touches; });
    return counts;
}

/// Of places that enough touches come from, those in one way that one distribution explains better than one
/// each. The larger ones first, each with those that it goes best with. Evidence is asked for at most as
/// often as there are pairs of places, of which there are most_touches / telling_touches.
std::vector<Touches::Way> Touches::joined(std::vector<Way> ways, const Evidence& evidence) {
    std::erase_if(ways, [](const Way& way) {
        return way.places.front() == nowhere || way.touches.size() < tuning::telling_touches;
    });
    std::ranges::stable_sort(ways, std::greater<>(), [](const Way& way) { return way.touches.size(); });
    std::vector<Way> found;
    for (Way& own : ways) {
        Way* best = nullptr;
        Way both;
        double gain = 0;
        for (Way& way : found) {
            std::vector<Touch> touches = way.touches;
            touches.insert(touches.end(), own.touches.begin(), own.touches.end());
            const double together = evidence(touches);
            if (together - way.evidence - own.evidence <= gain) continue;
            gain = together - way.evidence - own.evidence;
            best = &way;
            both = {way.places, std::move(touches), together};
        }
        if (best) {
            both.places.push_back(own.places.front());
            *best = std::move(both);
        } else {
            found.push_back(std::move(own));
        }
    }
    return found;
}

std::vector<std::uint32_t> Touches::leading_places(const Formulas& formulas, const Team& team,
                                                   const Extent& extent, const Prior& prior,
                                                   std::span<const Touch> shown,
                                                   std::span<const std::uint32_t> before) const {
    invariant(shown.size() == touches_.size(), "all touches are shown");
    if (telling_places().size() < 2) return {};
    if (earlier_is_over()) shown = shown.subspan(earlier_); // no placement helps what no longer runs
    const Evidence evidence = evidence_by(formulas, team, extent, prior);
    const double together = evidence(shown);
    if (explains(together, shown.size())) return {}; // if a place differs, then by few touches
    std::vector<Way> apart = way_of_each_place(shown, evidence);
    if (sum_of_evidence(apart) + tuning::change_log_prior <= together) return {};
    std::vector<Way> all = joined(std::move(apart), evidence);
    if (all.empty()) return {};
    // How much better a way's touches are explained than if any node made any of them: where all nodes use
    // all pages no placement helps, however many touches come from there.
    const double by_any_node = std::log(team.nodes());
    const auto told = [&](const Way& way) {
        return way.evidence + by_any_node * static_cast<double>(way.touches.size());
    };
    const auto most = std::ranges::max_element(all, {}, told);
    const auto kept = std::ranges::find_if(all, [&](const Way& way) {
        return std::ranges::find_first_of(way.places, before) != way.places.end();
    });
    const bool stays = kept != all.end() && told(*most) < tuning::clearly_more * told(*kept);
    std::vector<std::uint32_t> places = std::move((stays ? kept : most)->places);
    std::ranges::sort(places);
    return places;
}

bool Touches::follow_change(const Formulas& formulas, const Team& team, const Extent& extent,
                            const Prior& prior, std::span<const Touch> shown) {
    invariant(shown.size() == touches_.size(), "all touches are shown");
    if (touches_.size() < 2 * tuning::telling_touches) return false;
    const Evidence evidence = evidence_by(formulas, team, extent, prior);
    const double together = evidence(shown);
    const auto forget = [&](std::size_t old) {
        touches_.erase(touches_.begin(), touches_.begin() + static_cast<std::ptrdiff_t>(old));
        earlier_ -= std::min(earlier_, old);
        return true;
    };
    if (earlier_is_over() && !goes_on(shown, evidence)) return forget(earlier_);
    std::optional<double> by_place; // the same of every split: made when it is first asked for
    // The newest 8, 16, 32, ... touches, as long as others are left. Whole iterations: the touches of one
    // come in the order of addresses, and its last ones tell of the area's end alone.
    for (std::size_t least = tuning::telling_touches;; least *= 2) {
        std::size_t since = least;
        while (since < shown.size() &&
               touches_[shown.size() - since - 1].iteration == touches_[shown.size() - since].iteration)
            ++since;
        if (since + tuning::telling_touches > shown.size()) return false;
        const double apart = evidence(shown.first(shown.size() - since)) + evidence(shown.last(since));
        if (apart + tuning::change_log_prior <= together) continue;
        if (!by_place) by_place = sum_of_evidence(way_of_each_place(shown, evidence));
        if (*by_place < apart + tuning::change_log_prior) return forget(shown.size() - since);
    }
}

} // namespace homing::model
