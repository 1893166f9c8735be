#include "mechanisms/learner.hpp"

#include <algorithm>
#include <tuple>

namespace homing {
namespace {

/// Samples kept of one area; beyond that only the newest count.
constexpr std::size_t most_samples = 16384;
/// From this share of writes among an area's references on, borders are told by writes alone.
constexpr double written_share = 0.25;
/// Programs have hundreds of arrays of one size.
constexpr int most_twins_looked_at = 8;
/// Arrays of as many elements, of 1 to 16 bytes each, differ by so many doublings at the most; with few pages
/// in the smaller one too many arrays would seem to.
constexpr int most_doublings = 4;
constexpr std::uint64_t least_scaled = 64;

/// Samples that came since the last decision, taken out of the counters.
policy::Samples take_samples(ReferenceCounters& counters) {
    policy::Samples samples = samples_of(counters);
    counters.forget(0, counters.granules());
    return samples;
}

bool owners_write(const WatchedArea& area) {
    return area.references > 0 &&
           written_share * static_cast<double>(area.references) <= static_cast<double>(area.written);
}

/// The samples that tell an area's owners: where owners write, near borders the writes alone; reads there may
/// be a neighbour's.
policy::Samples sure_samples(WatchedArea& area) {
    if (!owners_write(area)) return area.samples;
    policy::Samples sure = policy::without_halo_reads(area.ownership, area.samples, samples_of(area.writes));
    return sure.size() >= enough_samples ? sure : area.samples;
}

/// Areas of one size stand together.
std::tuple<std::uint64_t, std::size_t> size_of(const WatchedArea* area) {
    return {area->granules, area->granule};
}

} // namespace

policy::Samples samples_of(ReferenceCounters& counters) {
    policy::Samples samples(counters.nodes());
    samples.reserve(counters.size());
    counters.for_each_sorted(
        [&](std::uint64_t granule, std::span<const std::uint16_t> counts) { samples.add(granule, counts); });
    samples.settle();
    return samples;
}

void Learner::gather(const WatchList& watch) {
    known_.clear();
    for (const auto& area : watch.areas())
        if (area->fresh_references > 0 || !area->samples.empty()) known_.push_back(area.get());
    std::ranges::sort(known_, {},
                      [](const WatchedArea* area) { return std::tuple(size_of(area), area->id); });
}

std::span<WatchedArea* const> Learner::of_size(const WatchedArea& area) const {
    return std::ranges::equal_range(known_, size_of(&area), {}, size_of);
}

/// Those of the same granule that may have as many elements, of 2^doublings times the bytes.
std::span<WatchedArea* const> Learner::of_scaled_size(const WatchedArea& area, int doublings) const {
    const std::uint64_t ratio = std::uint64_t{1} << std::abs(doublings);
    // Arrays begin and end amid a page: each may have one more or less than its bytes need.
    const std::uint64_t fewest =
        doublings > 0 ? (area.granules - 1) * ratio : (area.granules - 1) / ratio - 1;
    const std::uint64_t most = doublings > 0 ? (area.granules + 1) * ratio : (area.granules + 1) / ratio + 1;
    if (std::min(area.granules, fewest) < least_scaled) return {};
    return {std::ranges::lower_bound(known_, std::tuple(fewest, std::size_t{0}), {}, size_of),
            std::ranges::upper_bound(known_, std::tuple(most, ~std::size_t{0}), {}, size_of)};
}

/// For an area that is read before it is written: an array of the same size whose owners are told by their
/// writes.
const WatchedArea* Learner::written_sibling(const WatchedArea& area) const {
    if (owners_write(area)) return nullptr;
    for (const WatchedArea* other : of_size(area))
        if (other != &area && !other->drifts && other->samples.size() >= enough_samples &&
            owners_write(*other))
            return other;
    return nullptr;
}

/// Samples of an array that is used in the same way, as far as the samples of this one show: of one of the
/// same size, or of as many elements of another size. Empty where there is none.
policy::Samples Learner::shown_by_twin(const WatchedArea& area, const policy::Samples& samples) const {
    int looked = 0;
    const auto find = [&](std::span<WatchedArea* const> others) -> WatchedArea* {
        for (WatchedArea* other : others) {
            if (other == &area || other->granule != area.granule) continue;
            if (looked == most_twins_looked_at) break;
            ++looked;
            if (!other->drifts &&
                policy::alike(other->ownership, policy::scaled(samples, area.granules, other->granules)))
                return other;
        }
        return nullptr;
    };
    WatchedArea* twin = find(of_size(area));
    for (int doublings = 1; !twin && doublings <= most_doublings; ++doublings)
        for (const int either : {doublings, -doublings})
            if (!twin) twin = find(of_scaled_size(area, either));
    if (!twin) return policy::Samples(samples.nodes());
    const auto here = [&](const policy::Samples& shown) {
        return policy::scaled(shown, twin->granules, area.granules);
    };
    if (owners_write(*twin)) return here(sure_samples(*twin));
    const bool read_first = written_sibling(*twin) != nullptr;
    return read_first ? policy::without_upper_reads(area.ownership, here(twin->samples))
                      : here(twin->samples);
}

Learnt Learner::learn(WatchedArea& area, bool check) const {
    Learnt learnt{&area, take_samples(area.counters)};
    const policy::Samples& fresh = learnt.fresh;
    const bool read_first = written_sibling(area) != nullptr;
    const auto test = [&](const policy::Samples& samples) {
        return policy::changed(area.ownership,
                               read_first ? policy::without_upper_reads(area.ownership, samples) : samples);
    };
    const policy::Samples tested = policy::where_known(area.ownership, area.samples, fresh);
    const policy::Contradiction contradiction = test(tested);
    // What nobody looked at before shows no change, but is news.
    const bool news =
        check && tested.size() < fresh.size() && (area.samples.empty() || test(fresh).significant);
    learnt.changed = contradiction.significant || news;
    if (contradiction.significant) {
        area.drifts = contradiction.drift();
        area.still_rounds = 0;
        area.samples = contradiction.drift() ? policy::followed(area.ownership, area.samples, fresh)
                                             : policy::refreshed(area.ownership, area.samples, fresh);
        area.writes.forget(0, area.granules);
        area.plan.renew();
    } else if (check && !news) {
        return learnt; // as before: nothing to learn
    } else if (area.drifts) {
        area.samples = policy::followed(area.ownership, area.samples, fresh);
    } else if (area.samples.size() > most_samples) {
        area.samples = fresh;
    } else {
        area.samples.merge(fresh);
    }
    if (!fresh.empty()) area.ownership = policy::infer_ownership(area.granules, area.samples);
    return learnt;
}

void Learner::refine(WatchedArea& area) const {
    area.telling = area.samples;
    if (area.drifts || area.samples.empty()) return;
    const WatchedArea* sibling = written_sibling(area);
    policy::Samples sure = sibling ? policy::with_borders_of(sibling->ownership, area.ownership, area.samples)
                                   : sure_samples(area);
    if (owners_write(area) || sibling) {
        area.ownership = policy::infer_ownership(area.granules, sure);
        area.telling = sure;
    }
    // What a twin shows, this one need not be sampled for.
    const policy::Samples shown = shown_by_twin(area, sure);
    if (shown.empty()) return;
    sure.merge(shown);
    area.ownership = policy::infer_ownership(area.granules, sure);
    area.telling = std::move(sure);
}

} // namespace homing
