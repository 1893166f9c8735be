#include "areas/survey.hpp"

#include "base/running_time.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <cerrno>

namespace homing {
namespace {

/// Looking in vain takes so small a part of the time, with what is found out of areas that do exist so much,
/// and is not done more often than this (seconds; a look's own are those that the thread ran).
constexpr double share_in_vain = 1.0 / 400;
constexpr double share_of_time = 1.0 / 10;
constexpr double least_wait = 0.5e-3;
/// What looking in vain may take before its share of the time counts (seconds): a few looks. The first ones
/// come just before the program begins to use what it has.
constexpr double vain_allowance = 0.25e-3;
/// Areas of which nothing was seen yet that are looked at in one go, and probes of each where the kernel
/// tells of single pages only.
constexpr std::size_t most_unseen = 512;
constexpr std::uint64_t probes_of_unseen = 8;
/// Probes that say whether all of an area exists: one for so many granules, within these limits.
constexpr std::uint64_t granules_of_probe = 16;
constexpr std::uint64_t fewest_probes = 8;
constexpr std::uint64_t most_probes = 64;
/// Cells that an area, or what exists of it, is cut into; and the part of them that must exist for these
/// cells to be fine enough. Sixteen levels of cells are more than an address space has.
constexpr std::uint64_t most_cells = 1024;
constexpr std::uint64_t coarse = 16;
constexpr int most_levels = 16;
/// More than this part more than before is news.
constexpr std::uint64_t news = 8;
/// Of granules that are drawn, what existed is believed to be no less than this: less than one of a look's
/// probes.
constexpr double least_share = 1.0 / 128;
/// Draws that are not looked at, after one of which all existed: twice as many each time, up to this.
constexpr int most_trust = 15;

std::uint64_t part(std::uint64_t size, std::uint64_t i, std::uint64_t n) {
    return size / n * i + size % n * i / n; // nothing overflows
}

Address address_of(const WatchedArea& area, std::uint64_t granule) {
    return area.granule_range(granule).begin;
}

bool has_unseen(const WatchList& watch) {
    return std::ranges::any_of(watch.areas(), [](const auto& area) { return !area->seen; });
}

/// Are there areas of which more may come into being?
bool has_incomplete(const WatchList& watch) {
    return std::ranges::any_of(watch.areas(), [](const auto& area) { return !area->seen || area->in_part; });
}

} // namespace

std::uint64_t Survey::random() noexcept { // xorshift64*: spread, not secrecy
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    return random_ * 0x2545f4914f6cdd1dULL;
}

/// found_ of single pages. Where nothing can be learnt, all are believed to exist: whatever is done with them
/// is refused in its own way.
void Survey::probe(const std::vector<Address>& pages) {
    pages_.clear();
    for (const Address page : pages)
        pages_.push_back(reinterpret_cast<void*>(page));
    states_.assign(pages_.size(), -ENOENT);
    found_.assign(pages_.size(), 1);
    if (kernel_.query(pages_, states_) != 0) return;
    const bool hide = kernel_.hides_pages(); // then -ENOENT is a page that is there
    for (std::size_t i = 0; i < pages_.size(); ++i)
        found_[i] = states_[i] >= 0 || (hide && states_[i] == -ENOENT);
}

/// found_ of a granule of an area in each of `count` even parts of these.
void Survey::probe_evenly(const WatchedArea& area, const PageSet& granules, std::uint64_t count) {
    std::vector<Address> pages;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t low = part(granules.size(), i, count);
        const std::uint64_t width = std::max<std::uint64_t>(1, part(granules.size(), i + 1, count) - low);
        pages.push_back(address_of(area, granules.at(low + random() % width)));
    }
    probe(pages);
}

/// Is it time, or have pages come into being since the newest look? Programs fault pages in for other
/// reasons, too: where a look that faults had asked for was in vain, twice as many ask for the next one, so
/// that there are no more than some twenty of these.
bool Survey::is_time(const WatchList& watch) {
    const double now = record::now();
    if (now >= next_) {
        faults_ = kernel_.page_faults();
        return true;
    }
    if (now < glance_ || !has_incomplete(watch)) return false;
    const double begin = thread_seconds();
    const std::uint64_t faults = kernel_.page_faults();
    glance_ = now + std::max(least_wait, (thread_seconds() - begin) / share_in_vain);
    if (faults - faults_ < faults_to_look_) return false;
    faults_ = faults;
    faults_to_look_ *= 2;
    return true;
}

bool Survey::look(WatchList& watch) {
    if (!is_time(watch)) return false;
    const double begin = thread_seconds();
    learning_ = 0;
    bool more = look_at_unseen(watch, most_unseen);
    more |= look_at_parts(watch);
    if (more) faults_to_look_ = 1;
    const double spent = thread_seconds() - begin;
    const double in_vain = std::max(0.0, spent - learning_);
    in_vain_ += in_vain;
    looked_ = record::now();
    next_ = looked_ + std::max({least_wait, spent / share_of_time,
                                std::clamp(in_vain_ - vain_allowance, 0.0, in_vain) / share_in_vain});
    return more;
}

bool Survey::may_have_missed(const WatchList& watch, double since) const {
    return looked_ < since && has_unseen(watch);
}

void Survey::look_at_all(WatchList& watch) { look_at_unseen(watch, watch.areas().size()); }

bool Survey::look_at_unseen(WatchList& watch, std::size_t most) {
    const auto& areas = watch.areas();
    std::vector<WatchedArea*> unseen;
    std::size_t passed = 0;
    for (; passed < areas.size() && unseen.size() < most; ++passed) {
        WatchedArea& area = *areas[(unseen_turn_ + passed) % areas.size()];
        if (!area.seen) unseen.push_back(&area);
    }
    if (unseen.empty()) return false;
    unseen_turn_ = (unseen_turn_ + passed) % areas.size();

    std::vector<Range> ranges;
    for (const WatchedArea* area : unseen)
        ranges.push_back(area->range);
    found_.assign(ranges.size(), 0);
    if (kernel_.populated(ranges, found_) != 0) {
        // The first page and the last one, where most programs begin to use what they have, and some others.
        std::vector<Address> pages;
        for (const WatchedArea* area : unseen)
            for (std::uint64_t i = 0; i < probes_of_unseen; ++i)
                pages.push_back(address_of(*area, i == 0   ? 0
                                                  : i == 1 ? area->granules - 1
                                                           : random() % area->granules));
        probe(pages);
        for (std::size_t i = 0; i < unseen.size(); ++i) {
            const auto first = found_.begin() + static_cast<std::ptrdiff_t>(i * probes_of_unseen);
            ranges[i].end =
                std::any_of(first, first + probes_of_unseen, [](auto there) { return there != 0; })
                    ? ranges[i].end
                    : ranges[i].begin;
        }
    } else {
        for (std::size_t i = 0; i < unseen.size(); ++i)
            if (!found_[i]) ranges[i].end = ranges[i].begin;
    }
    bool more = false;
    const double begin = thread_seconds();
    for (std::size_t i = 0; i < unseen.size(); ++i) {
        if (ranges[i].empty()) continue;
        look_at(watch, *unseen[i]);
        more |= unseen[i]->seen;
    }
    learning_ += thread_seconds() - begin;
    return more;
}

void Survey::look_at(WatchList& watch, WatchedArea& area) {
    area.seen = true;
    watch.decide_granule(area);
    const PageSet& own = area.own;
    const std::uint64_t probes =
        std::min(own.size(), std::clamp(own.size() / granules_of_probe, fewest_probes, most_probes));
    probe_evenly(area, own, probes);
    if (std::ranges::count(found_, 0) > 0) take(area, map(area));
}

void Survey::take(WatchedArea& area, PageSet there) {
    area.seen = !there.empty();
    if (there.size() != area.there().size()) area.trust = area.trusted = 0;
    area.in_part = there.size() < area.own.size();
    area.exists = there.empty() ? area.own : std::move(there);
    area.share_there = area.seen ? share_of_existing(area) : 1;
    area.in_part |= area.share_there < 1;
}

/// Cells are as coarse as the area is large. Where a page here and there is used, each of them exists, and
/// most of their pages do not: what single pages say.
double Survey::share_of_existing(const WatchedArea& area) {
    const PageSet& there = area.there();
    const std::uint64_t probes = std::min(there.size(), most_probes);
    probe_evenly(area, there, probes);
    const auto found = static_cast<double>(std::ranges::count_if(found_, [](auto one) { return one != 0; }));
    return std::max(least_share, found / static_cast<double>(probes));
}

/// Of those areas that exist in part, by turns: one, and others as long as that takes little time.
bool Survey::look_at_parts(WatchList& watch) {
    const auto& areas = watch.areas();
    const double begin = thread_seconds();
    double looked = begin;
    bool more = false;
    for (std::size_t passed = 0; passed < areas.size() && looked - begin < least_wait; ++passed) {
        WatchedArea& area = *areas[part_turn_++ % areas.size()];
        if (!area.seen || !area.in_part) continue;
        if (area.references == 0) watch.decide_granule(area);
        const std::uint64_t before = area.there().size();
        take(area, map(area));
        const double now = thread_seconds();
        if (area.seen && area.there().size() > before + before / news) {
            learning_ += now - looked;
            area.chosen = false; // what was asked for is a part of it
            more = true;
        }
        looked = now;
    }
    return more;
}

/// What exists of an area: whole cells in which something does.
PageSet Survey::map(const WatchedArea& area) {
    PageSet domain = area.own;
    for (int level = 0;; ++level) {
        const std::uint64_t size = (domain.size() + most_cells - 1) / most_cells;
        std::vector<policy::PageRange> cells;
        domain.for_each({0, area.granules}, [&](policy::PageRange part) {
            for (std::uint64_t first = part.first; first < part.end; first += size)
                cells.push_back({first, std::min(first + size, part.end)});
        });
        const PageSet there = existing(area, cells);
        if (size <= 1 || there.empty() || there.size() * coarse >= domain.size() || level == most_levels)
            return there;
        domain = there;
    }
}

/// The cells (ascending) that exist.
PageSet Survey::existing(const WatchedArea& area, const std::vector<policy::PageRange>& cells) {
    std::vector<policy::PageRange> there;
    std::vector<Range> ranges;
    for (const policy::PageRange& cell : cells)
        ranges.push_back({address_of(area, cell.first), area.granule_range(cell.end - 1).end});
    found_.assign(ranges.size(), 0);
    if (kernel_.populated(ranges, found_) == 0) {
        for (std::size_t i = 0; i < cells.size(); ++i)
            if (found_[i]) there.push_back(cells[i]);
        return PageSet(there);
    }
    // By single pages: the first one of each cell, and one more. So what is used of a cell may be missed:
    // those beside one that exists count as such, and what was seen before does.
    std::vector<Address> pages;
    for (const policy::PageRange& cell : cells) {
        pages.push_back(address_of(area, cell.first));
        pages.push_back(address_of(area, cell.first + random() % cell.size()));
    }
    probe(pages);
    const auto exists = [&](std::size_t i) {
        return i < cells.size() && (found_[2 * i] || found_[2 * i + 1] ||
                                    (area.in_part && area.there().count(cells[i]) == cells[i].size()));
    };
    const auto beside = [&](std::size_t i, std::size_t other) {
        return exists(other) && (cells[other].end == cells[i].first || cells[i].end == cells[other].first);
    };
    for (std::size_t i = 0; i < cells.size(); ++i)
        if (exists(i) || beside(i, i - 1) || beside(i, i + 1)) there.push_back(cells[i]);
    return PageSet(there);
}

void Survey::keep_existing(WatchedArea& area, std::vector<std::uint64_t>& granules) {
    if (!area.in_part || granules.empty()) return;
    if (area.trusted > 0) {
        --area.trusted;
        return;
    }
    std::vector<Address> pages;
    for (const std::uint64_t granule : granules)
        pages.push_back(address_of(area, granule));
    probe(pages);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < granules.size(); ++i)
        if (found_[i]) granules[kept++] = granules[i];
    const double share = static_cast<double>(kept) / static_cast<double>(granules.size());
    area.share_there = std::max(least_share, (area.share_there + share) / 2);
    area.trusted = area.trust = kept == granules.size() ? std::min(2 * area.trust + 1, most_trust) : 0;
    granules.resize(kept);
}

} // namespace homing
