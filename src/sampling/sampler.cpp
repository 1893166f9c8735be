#include "sampling/sampler.hpp"

#include "base/options.hpp"
#include "base/pace.hpp"
#include "base/running_time.hpp"
#include "machine/simulation.hpp"
#include "model/tuning.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <utility>

namespace homing::sampling {
namespace {

/// Seconds that arming pages of the next scan may take before its share of the run counts. By reason.
constexpr double first_arming = 1e-3;

/// What scans may take, without the moves: .01 s at first, by reason, then a hundredth of a core, which
/// nobody misses. Where a scan of so many pages takes longer, the next one comes later.
constexpr Pace scan_pace{0.01, 0.01};
/// Scans that may take what they need before that: they bring home what initialisation has left, which is an
/// amount of work, not a time. How many, by reason. (In the guest, where a scan of 5,440 pages takes 2.85 s,
/// the second one came minutes later without.)
constexpr std::uint64_t first_scans = 32;

} // namespace

void Sampler::iteration_begins(Engine& engine) {
    if (simulation()) scan(engine);
}

/// The pages of the hot areas that come next, round and round; no page twice.
std::vector<Sampler::Page> Sampler::next_pages(Engine& engine, bool advance) {
    const counters::HotMemory hot;
    std::vector<WatchedArea*> areas;
    for (const auto& area : engine.watch().areas())
        if (area->seen && !area->left_alone() && !area->there().empty()) areas.push_back(area.get());
    std::vector<Page> pages;
    if (areas.empty()) return pages;
    std::ranges::sort(areas, {}, &WatchedArea::id);
    const auto at = std::ranges::lower_bound(areas, area_, {}, &WatchedArea::id);
    std::size_t index = static_cast<std::size_t>(at - areas.begin()) % areas.size();
    std::uint64_t position = at != areas.end() && (*at)->id == area_ ? position_ : 0;
    const std::size_t first = index;
    const std::uint64_t first_position = position;
    // Once round: the area that it began in comes a second time for the pages before the first one.
    for (std::size_t areas_seen = 0; areas_seen <= areas.size() && pages.size() < most_; ++areas_seen) {
        WatchedArea& area = *areas[index];
        const std::uint64_t end =
            areas_seen == areas.size() ? std::min(first_position, area.there().size()) : area.there().size();
        if (areas_seen == areas.size() && index != first) break;
        for (; position < end && pages.size() < most_; ++position) {
            const std::uint64_t granule = area.there().at(position);
            if (hot.has(area, granule)) pages.push_back({&area, granule});
        }
        if (pages.size() >= most_) break;
        index = (index + 1) % areas.size();
        position = 0;
    }
    if (advance) {
        area_ = areas[index]->id;
        position_ = position;
    }
    return pages;
}

/// Windows show what they are asked for: the pages of the next scan, and nothing where a region runs that has
/// no barrier until time has passed (Engine::time_passes). Beside a source that samples by itself there are
/// none: owners of whole arrays, for which the engine would ask, are nothing to a scan.
bool Sampler::region_begins(Engine& engine, std::uint32_t) {
    if (!engine.windows()) return false;
    if (!engine.samples_itself()) arm_next(engine);
    return true;
}

void Sampler::arm_next(Engine& engine) {
    const double begin = thread_seconds(); // what others make it wait for is not what arming takes
    const Pace pace{first_arming, option_number(Option::observe_share)};
    if (!pace.allows(arming_, record::now())) return;
    std::vector<Range> granules;
    std::vector<void*> pages;
    for (const Page& page : next_pages(engine, false)) {
        if (granules.size() == engine.windows()->capacity()) break;
        if (!page.area->is_armable(page.granule)) continue;
        if (!pages_.wants_references(*page.area, page.granule)) continue;
        granules.push_back(page.area->granule_range(page.granule));
        pages.push_back(reinterpret_cast<void*>(granules.back().begin));
    }
    // What does not exist is not armed: it would be the first touch of initialisation that shows.
    std::vector<int> homes(pages.size(), -1);
    if (engine.kernel().query(pages, homes) != 0) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < granules.size(); ++i)
        if (homes[i] >= 0) granules[kept++] = granules[i];
    granules.resize(kept);
    std::ranges::sort(granules, {}, &Range::begin);
    if (!granules.empty()) engine.open_window(std::move(granules));
    arming_ += thread_seconds() - begin;
}

void Sampler::scan(Engine& engine) {
    if (!simulation()) {
        if (engine.samples_itself()) {
            engine.begin_observing(policy::Activity::observe); // areas come and go
            engine.take_in();
        } else {
            engine.follow_changes();
        }
    }
    pages_.forget_gone(engine);
    if (begun_ < 0) begun_ = record::now();
    ++totals_.scans;
    std::map<WatchedArea*, std::vector<std::uint64_t>> accessed;
    for (const Page& page : next_pages(engine, true)) {
        ++totals_.scanned;
        if (pages_.is_due(*page.area, page.granule)) accessed[page.area].push_back(page.granule);
    }
    if (!accessed.empty()) engine.own_areas();
    for (auto& [area, granules] : accessed) {
        std::ranges::sort(granules);
        totals_.add(pages_.decide(engine, *area, granules));
    }
    // Where pages had to be shown for the look at them, the source goes on.
    if (!simulation() && !accessed.empty() && engine.samples_itself())
        engine.begin_observing(policy::Activity::observe);
    if ((totals_.scans & (totals_.scans - 1)) == 0) write_row();
}

double Sampler::pause(double interval) {
    if (totals_.scans <= first_scans) excused_ = totals_.seconds;
    const double wait = scan_pace.wait(totals_.seconds - excused_, record::now() - begun_);
    if (wait > 2 * interval && !std::exchange(stretched_, true))
        record::message(
            record::Level::note,
            "sampling: scans come less often than --sampling-interval says, so that they take 1 % of a "
            "core at the most; fewer --sampling-pages make a scan cheaper");
    return std::max(interval, wait);
}

void Sampler::process_ends(Engine&) { write_row(); }

void Sampler::write_row() const {
    record::sampling_row row;
    row.time = record::now();
    row.scans = totals_.scans;
    row.scanned = totals_.scanned;
    row.accessed = totals_.accessed;
    row.eligible = totals_.eligible;
    row.moved = totals_.moved;
    row.frozen = totals_.frozen;
    row.seconds = totals_.seconds;
    record::append(row);
}

} // namespace homing::sampling
