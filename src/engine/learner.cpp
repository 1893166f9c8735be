#include "engine/learner.hpp"

#include "base/invariant.hpp"
#include "base/random.hpp"
#include "base/running_time.hpp"
#include "model/tuning.hpp"
#include "model/verdict.hpp"

#include <algorithm>
#include <functional>
#include <map>

namespace homing {
namespace {

namespace tuning = model::tuning;

/// Places of an area of which the record tells: a sweep along each of three dimensions, and one more.
constexpr std::size_t most_places_told = 4;

/// Areas of one size: arrays of one grid, whoever allocated them.
std::uint64_t size_kind(const WatchedArea& area) { return area.granules * 2 * splitmix_step ^ area.granule; }
/// Areas of one allocation site, whatever their size.
std::uint64_t site_kind(const WatchedArea& area) {
    std::uint64_t hash = 1;
    for (const Address frame : area.group.entry.origin)
        hash = (hash ^ frame) * 0x2545f4914f6cdd1du;
    return hash;
}

SparsePrior sparse(const model::Prior& prior, const model::Formulas& formulas) {
    SparsePrior out;
    for (std::size_t i = 0; i < formulas.all().size(); ++i)
        if (prior.formula(i) > 0) out.formulas.emplace_back(static_cast<std::uint32_t>(i), prior.formula(i));
    for (std::size_t f = 0; f < model::families; ++f)
        out.families[f] = prior.other(static_cast<model::Family>(f));
    return out;
}

/// The arrays that lie in the allocator's memory, where most of it is of such as a team can share. Not of
/// more than a chunk: blocks that are too small to be areas are hundreds there.
std::vector<model::Block> blocks_of(const WatchedArea& area, int threads) {
    std::vector<model::Block> blocks;
    if (area.group.entry.kind != AreaKind::arena || area.granule != page_bytes() ||
        area.range.bytes() > BlockCover::chunk_bytes)
        return blocks;
    std::vector<Range> ranges;
    block_cover().blocks_within(area.range, ranges);
    std::uint64_t shared_out = 0;
    for (const Range& range : ranges) {
        const std::uint64_t first = area.granule_of(range.begin), pages = range.bytes() / area.granule;
        // Where it begins in its first page is not known, nor where behind its whole pages it ends: half a
        // page in, and half a page on.
        blocks.push_back({static_cast<double>(first) + .5, static_cast<double>(pages)});
        if (pages >= static_cast<std::uint64_t>(threads)) shared_out += pages;
    }
    if (2 * shared_out < area.granules) blocks.clear();
    return blocks;
}

/// Where the array lies in its granules, or the arrays; where not all of them exist, or small blocks share
/// them, that is not known.
model::Extent extent_of(const WatchedArea& area, int threads) {
    const std::uint64_t pages = area.there().size();
    if (pages != area.granules || !area.group.blocks.empty()) return {pages};
    const Range& array = area.group.entry.range;
    const auto granule = static_cast<double>(area.granule);
    const auto before = static_cast<double>(static_cast<std::int64_t>(array.begin - area.origin));
    return model::Extent(pages, before / granule, static_cast<double>(array.bytes()) / granule)
        .with_blocks(blocks_of(area, threads));
}

/// Distributions whose parts may be a page or a few: a border that is a page off is a good part of them.
bool has_narrow_parts(model::Family family) noexcept {
    using model::Family;
    return family == Family::cyclic || family == Family::tiles || family == Family::none ||
           family == Family::runs;
}

bool any(const model::SeenTouch&) { return true; }

/// Who touched which existing granule last, as pages of the belief.
model::Users users_of(const AreaBelief& learnt, const PageSet& there) {
    model::Users users;
    users.reserve(learnt.users.known());
    std::uint64_t before = 0; // existing granules before the part
    there.for_each({0, there.span().end}, [&](policy::PageRange part) {
        learnt.users.for_each(part.first, part.end, [&](std::uint64_t granule, int node) {
            users.emplace_back(before + (granule - part.first), static_cast<model::Node>(node));
        });
        before += part.size();
    });
    return users;
}

} // namespace

double seconds_of_fit() {
    constexpr int threads = 4, tries = 3;
    constexpr std::uint64_t pages = 1000;
    const model::Team team = model::Team::packed(threads, threads);
    const model::Formulas formulas(threads);
    const model::Prior prior(formulas);
    std::vector<model::Touch> touches;
    for (std::uint64_t page = pages / 16; page < pages; page += pages / 8)
        touches.push_back({page, static_cast<std::uint32_t>(page * threads / pages), 0, true});
    double least = 0;
    for (int i = 0; i < tries; ++i) {
        const double begin = thread_seconds();
        const model::Belief belief(formulas, team, pages, touches, prior);
        const double took = thread_seconds() - begin;
        least = i == 0 ? took : std::min(least, took);
    }
    return least;
}

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

/// Do several of the fresh touches come from where the belief expects hardly any?
bool Learner::surprised_by_fresh(const WatchedArea& area) const {
    const AreaBelief& learnt = area.learnt;
    if (!learnt.is_of(area.there().size()) || learnt.team != team_.version()) return false;
    model::Prospect prospect;
    std::size_t surprising = 0;
    for (const FreshTouch& touch : learnt.fresh) {
        const std::uint64_t page = std::min(area.there().below(touch.granule), area.there().size() - 1);
        learnt.belief->prospect(page, touch.home, prospect);
        surprising += prospect.local[static_cast<std::size_t>(touch.node)] < 1 - tuning::certain;
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
        if (const int before = learnt.users.home(touch.granule); before >= 0)
            (before == touch.node ? learnt.repeats.same : learnt.repeats.other) += 1;
        learnt.users.set(touch.granule, touch.granule + 1, touch.node);
        if (i % stride != 0) continue;
        learnt.touches.add(
            {{touch.granule, touch.slot, 0, touch.write, touch.within}, iteration, touch.home, touch.place});
        ++learnt.unfitted;
    }
    learnt.fresh.clear();
    learnt.taken += count;
    if (count > 0) learnt.surprised = surprised;
    if (!surprised || area.there().empty()) return false;
    const std::vector<model::Touch> all = shown(learnt, area.there(), iteration, any, nullptr);
    if (!learnt.touches.follow_change(*team_.formulas(), team_.team(),
                                      extent_of(area, team_.team().threads()), prior_of(area), all))
        return false;
    learnt.users.reset(area.granules);
    learnt.forget_departures(area.granules);
    learnt.repeats = {};
    learnt.belief.reset();
    learnt.surprised = false;
    return true;
}

bool Learner::is_stale(const WatchedArea& area) const {
    const AreaBelief& learnt = area.learnt;
    if (learnt.touches.empty() || area.there().empty()) return false;
    if (!learnt.is_of(area.there().size()) || learnt.team != team_.version()) return true;
    return static_cast<double>(learnt.unfitted) >=
           tuning::news_share * static_cast<double>(learnt.touches.size() - learnt.unfitted) +
               (learnt.unfitted == 0);
}

std::vector<Learner::PlaceBelief> Learner::by_place(WatchedArea& area, std::uint32_t iteration) const {
    AreaBelief& learnt = area.learnt;
    std::vector<PlaceBelief> found;
    if (!learnt.place || area.there().empty()) return found;
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
    const model::Prior prior = prior_of(area);
    learnt.place =
        learnt.touches.leading_place(*learnt.formulas, team_.team(), extent, prior, touches, learnt.place);
    if (learnt.place) {
        homes.clear();
        touches = shown(
            learnt, there, iteration,
            [&](const model::SeenTouch& touch) { return touch.place == *learnt.place; }, &homes);
    }
    const auto believe = [&](const model::Extent& of) {
        return std::make_unique<model::Belief>(*learnt.formulas, team_.team(), of, touches, prior, homes);
    };
    learnt.belief = believe(extent);
    ++learnt.fits;
    // A program may align its array to a page within what it has allocated. Where every page counts, the
    // touches tell.
    if (extent.is_offset() && has_narrow_parts(learnt.belief->likeliest())) {
        auto aligned = believe(model::Extent(there.size()));
        if (aligned->log_evidence() + tuning::aligned_log_prior > learnt.belief->log_evidence())
            learnt.belief = std::move(aligned);
    }
    learnt.team = team_.version();
    learnt.unfitted = 0;
    learnt.shown = sparse(learnt.belief->as_prior(), *learnt.formulas);
    // Who used a page last tells nothing where each place has other users of it.
    if (!learnt.place) learnt.belief->know_users(users_of(learnt, there), learnt.repeats);
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
