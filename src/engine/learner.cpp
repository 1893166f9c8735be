#include "engine/learner.hpp"

#include "areas/area_shape.hpp"
#include "areas/array_cuts.hpp"
#include "base/invariant.hpp"
#include "model/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace homing {
namespace {

namespace tuning = model::tuning;

/// Places of an area of which the record tells: a sweep along each of three dimensions, and one more.
constexpr std::size_t most_places_told = 4;

/// Distributions whose parts may be a page or a few: a border that is a page off is a good part of them.
/// Where pages were sent that way, they are HOME for most touches.
bool has_narrow_parts(model::Family family) noexcept {
    using model::Family;
    return family == Family::cyclic || family == Family::tiles || family == Family::none ||
           family == Family::runs || family == Family::home;
}

bool any(const model::SeenTouch&) { return true; }

} // namespace

void Learner::begin_round(const WatchList& watch) {
    kinds_.clear();
    for (const auto& area : watch.areas())
        if (area->learnt.belief && area->learnt.formulas == team_.formulas()) {
            kinds_.emplace(size_kind(*area), area.get());
            kinds_.emplace(site_kind(*area), area.get());
        }
}

/// Those touches that are wanted, as the belief is to see them: existing granules by their number, threads by
/// their position. `homes`: of their pages.
std::vector<model::Touch> Learner::shown(AreaBelief& learnt, const PageSet& there, std::uint32_t iteration,
                                         const std::function<bool(const model::SeenTouch&)>& wanted,
                                         std::vector<model::Node>* homes) const {
    std::vector<model::Touch> out;
    for (const model::SeenTouch& seen : learnt.touches.at(iteration)) {
        if (!wanted(seen)) continue;
        model::Touch touch = seen;
        touch.page = std::min(there.below(touch.page), there.size() - 1);
        touch.thread = team_.position(touch.thread);
        out.push_back(touch);
        if (homes) homes->push_back(seen.home);
    }
    return out;
}

/// What areas of the kind have shown, beside what is true of any area.
model::Prior Learner::prior_of(const WatchedArea& area) const {
    const model::Prior& base = team_.prior();
    std::vector<const SparsePrior*> siblings;
    for (const std::uint64_t kind : {size_kind(area), site_kind(area)}) {
        const auto [first, end] = kinds_.equal_range(kind);
        for (auto at = first; at != end && siblings.size() < tuning::most_siblings; ++at)
            if (at->second != &area && !at->second->learnt.shown.empty())
                siblings.push_back(&at->second->learnt.shown);
    }
    if (siblings.empty()) return base;
    model::Prior shown = base;
    shown.clear();
    const double each = 1.0 / static_cast<double>(siblings.size());
    for (const SparsePrior* sibling : siblings) {
        for (const auto& [index, share] : sibling->formulas)
            shown.add_formula(index, each * share);
        for (std::size_t f = 0; f < model::families; ++f)
            shown.add_other(static_cast<model::Family>(f), each * sibling->families[f]);
    }
    return base.mixed_with(shown, tuning::equal_share);
}

/// Do several of the fresh touches come from where the belief expects hardly any, beside its best node?
/// (Where all nodes use a page alike, each has an even share.)
bool Learner::surprised_by_fresh(const WatchedArea& area) const {
    const AreaBelief& learnt = area.learnt;
    if (!learnt.is_of(area.there().size()) || learnt.team != team_.version()) return false;
    model::Prospect prospect;
    std::size_t surprising = 0;
    for (const FreshTouch& touch : learnt.fresh) {
        const std::uint64_t page = std::min(area.there().below(touch.granule), area.there().size() - 1);
        learnt.belief->prospect(page, touch.home, prospect);
        surprising += prospect.hardly_expects(touch.node);
    }
    return static_cast<double>(surprising) >= tuning::news_share * static_cast<double>(learnt.fresh.size());
}

bool Learner::take(WatchedArea& area, std::uint32_t iteration) {
    AreaBelief& learnt = area.learnt;
    const bool surprised = surprised_by_fresh(area);
    const std::size_t count = learnt.fresh.size();
    // Of a source that shows thousands, an even part.
    const std::size_t stride = (count + tuning::most_touches / 2 - 1) / (tuning::most_touches / 2);
    for (std::size_t i = 0; i < count; ++i) {
        const FreshTouch& touch = learnt.fresh[i];
        learnt.count_user(touch.granule, touch.node);
        if (i == learnt.fresh_earlier) learnt.touches.begin_phase();
        if (i % stride != 0) continue;
        learnt.touches.add(
            {{touch.granule, touch.slot, 0, touch.write, touch.within}, iteration, touch.home, touch.place},
            area.granules);
        ++learnt.unfitted;
    }
    if (learnt.fresh_earlier >= count) learnt.touches.begin_phase();
    learnt.fresh_earlier.reset();
    learnt.fresh.clear();
    learnt.taken += count;
    if (count > 0) learnt.surprised = surprised;
    return surprised && !area.there().empty();
}

bool Learner::follow_change(WatchedArea& area, std::uint32_t iteration) {
    AreaBelief& learnt = area.learnt;
    const std::vector<model::Touch> all = shown(learnt, area.there(), iteration, any, nullptr);
    if (!learnt.touches.follow_change(*team_.formulas(), team_.team(),
                                      extent_of(area, team_.team().threads()), prior_of(area), all))
        return false;
    learnt.follow_owners(area.granules);
    return true;
}

bool Learner::is_stale(const WatchedArea& area) const {
    const AreaBelief& learnt = area.learnt;
    if (learnt.touches.empty() || area.there().empty()) return false;
    if (!learnt.is_of(area.there().size()) || learnt.team != team_.version()) return true;
    const std::size_t kept = learnt.touches.size(); // what is not fitted may have been forgotten, too
    const auto fitted = static_cast<double>(kept - std::min(kept, learnt.unfitted));
    // Where little is left to learn, fewer than as many again tell nothing; but what is kept passes on.
    const double news = learnt.ignorance < tuning::border_share
                            ? std::min(fitted, tuning::news_share * tuning::most_touches)
                            : tuning::news_share * fitted;
    return static_cast<double>(learnt.unfitted) >= news + (learnt.unfitted == 0);
}

std::vector<Learner::PlaceBelief> Learner::by_place(WatchedArea& area, std::uint32_t iteration) const {
    AreaBelief& learnt = area.learnt;
    std::vector<PlaceBelief> found;
    if (learnt.places.empty() || area.there().empty()) return found;
    const std::map<std::uint32_t, std::size_t> counts = learnt.touches.telling_places();
    std::vector<std::pair<std::uint32_t, std::size_t>> places(counts.begin(), counts.end());
    std::ranges::stable_sort(places, std::greater<>(), [](const auto& one) { return one.second; });
    places.resize(std::min(places.size(), most_places_told));
    const model::Extent extent = extent_of(area, team_.team().threads());
    for (const auto& [place, count] : places) {
        const auto here = [at = place](const model::SeenTouch& touch) { return touch.place == at; };
        const std::vector<model::Touch> touches = shown(learnt, area.there(), iteration, here, nullptr);
        found.push_back(
            {place, count, model::Belief(*team_.formulas(), team_.team(), extent, touches, team_.prior())});
    }
    return found;
}

void Learner::fit(WatchedArea& area, std::uint32_t iteration) {
    AreaBelief& learnt = area.learnt;
    const PageSet& there = area.there();
    invariant(!learnt.touches.empty() && !there.empty(), "an area that was touched has pages");
    std::vector<model::Node> homes;
    std::vector<model::Touch> touches = shown(learnt, there, iteration, any, &homes);
    learnt.formulas = team_.formulas();
    const model::Extent extent = extent_of(area, team_.team().threads());
    model::Prior prior = prior_of(area);
    learnt.places =
        learnt.touches.leading_places(*learnt.formulas, team_.team(), extent, prior, touches, learnt.places);
    if (!learnt.places.empty()) {
        homes.clear();
        touches = shown(
            learnt, there, iteration,
            [&](const model::SeenTouch& touch) { return learnt.follows(touch.place); }, &homes);
    }
    const auto believe = [&](const model::Extent& of) {
        return std::make_unique<model::Belief>(*learnt.formulas, team_.team(), of, touches, prior, homes);
    };
    learnt.belief = believe(extent);
    ++learnt.fits;
    // A program may align its array to a page within what it has allocated. Where every page counts, the
    // touches tell.
    if (extent.is_offset() && has_narrow_parts(learnt.belief->likeliest())) {
        auto aligned = believe(extent.aligned());
        const double odds = aligned->log_evidence() - learnt.belief->log_evidence() +
                            (learnt.is_aligned ? 0 : tuning::aligned_log_prior);
        const bool may_be = !learnt.belief->has_whole_rounds();
        learnt.is_aligned = may_be && odds > 0;
        if (learnt.is_aligned) learnt.belief.swap(aligned);
        if (may_be) learnt.belief->doubt(std::move(aligned), 1 / (1 + std::exp(std::abs(odds))));
    }
    // It may have cut its allocation into arrays.
    if (!extent.has_blocks() && has_narrow_parts(learnt.belief->likeliest()))
        if (std::vector<model::Block> arrays =
                arrays_by_touches(touches, there.size(), team_.team().threads());
            !arrays.empty()) {
            prior =
                prior.with_odds_of_blocks(*learnt.formulas, log_prior_of_arrays(arrays.size(), there.size()));
            learnt.belief = believe(model::Extent(extent).with_blocks(std::move(arrays)));
        }
    learnt.team = team_.version();
    learnt.unfitted = 0;
    learnt.shown = sparse(learnt.belief->as_prior(), *learnt.formulas);
    // Who uses a page tells nothing where each place has other users of it.
    if (learnt.places.empty()) learnt.belief->know_users(users_of(learnt, there), learnt.repeats);
    learnt.writers.reset();
    if (learnt.belief->probability(model::Family::shared) > tuning::certain) {
        const std::vector<model::Touch> writes =
            shown(learnt, there, iteration, std::mem_fn(&model::SeenTouch::write), nullptr);
        if (writes.size() >= tuning::few_touches)
            learnt.writers = std::make_unique<model::Belief>(*learnt.formulas, team_.team(), extent, writes,
                                                             team_.prior());
    }
}

} // namespace homing
