#include "sources/window_plan.hpp"

#include "base/find_range.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace homing {
namespace {

/// What observation may take before the share of the run time counts, in references (as dear as they are
/// where a single thread runs) and in seconds: enough to place a few arrays, with what is armed in vain
/// before it is known which regions use them, and at most half a percent of half a second (CG class A).
constexpr double first_references = 400;
constexpr double most_allowance = 3e-3;
/// Where homing's work is slower than on the machine whose costs are stated, the program is, too: so many
/// times (the lab's guest: integers some 5 times, floating point 40). A run may be observed as much as one of
/// as many iterations there.
constexpr double slowness_of_programs = 32;
/// A program that does something new has the same once more when it has run so many times as long as all
/// that it had: that adds no more than 2 %.
constexpr double run_for_allowance = 50;
/// A region may be slowed by at most this share while the allowance lasts, and later.
constexpr double eager_share = 0.25;
constexpr double steady_share = 0.05;
constexpr std::size_t largest_window = 1024;
constexpr std::size_t smallest_window = 4;
constexpr double least_rate = 1.0 / 32;
constexpr double least_rate_of_place = 1.0 / 256; // better known
/// References wanted of every part of an area; fewer where all are of one node and a neighbouring part's are,
/// too (the inside of a block); a share of its granules where it has few. Armed so often without a touch, a
/// part is not used.
constexpr std::uint32_t enough_of_part = 12;
constexpr std::uint32_t enough_of_inside = 3;
constexpr std::uint64_t share_of_part = 4;
constexpr std::uint32_t unused_after = 64;
constexpr std::size_t most_remembered = std::size_t{1} << 17;
/// So often granules are armed, by what their part needs, while parts lack samples.
constexpr double wanted_rate[] = {1, 0.5, 0.25}; // unseen, thin, covered
/// Granules armed in a region whose length is not known yet, and the share of what is left of the budget that
/// they may take.
constexpr std::size_t first_window_each = 64; // of an area
constexpr std::size_t first_window = 256;
constexpr double first_share = 0.7;
/// The same once it is known how fast a long region goes through the areas.
constexpr std::size_t later_window = 16;
/// Regions that are too short to touch this part of what is watched, at this many times the longest one's
/// speed, are left out: what may be spent would be gone before the next region that uses much. They have
/// their turn when those that were left out have taken this share of the longest one's time.
constexpr double least_reach = 1.0 / 32;
constexpr double reach_margin = 4;
constexpr double most_passed_over = 0.125;
constexpr std::size_t enough_for_speed = 16;
/// A window of which less than this share is likely to be touched is opened in proportion to that share only
/// where little may be spent: what is armed and not touched costs, too, and is gone for the regions that do
/// the work.
constexpr double least_worth = 1.0 / 8;
/// Where windows outlast regions, one is opened when arming and faults may take so many times what opening it
/// does, or this share of what may be spent at once: the first opening may have been held up. By reason.
constexpr double most_for_opening = 4;
constexpr double most_of_allowance = 1.0 / 8;
/// The same for other regions: long regions must leave something to short ones, who alone use the coarse
/// grids.
constexpr double later_share = 0.25;
/// Granules that may wait for a touch at one time where windows outlast their regions: so many, and half of
/// those that were touched of late, but for those that were given back untouched; never fewer than the least.
/// So two of three are touched where there are many.
constexpr double first_standing = 48;
constexpr double more_for_touch = 0.5;
constexpr double fewer_for_waste = 1;
constexpr double least_standing = 8;
constexpr double remembered_outcomes = 2048;
/// Arming costs are believed within these limits (seconds): a call may be held up.
constexpr double least_arm_cost = 1e-6;
constexpr double most_arm_cost = 2e-4;

} // namespace

std::uint64_t WindowPlan::random() noexcept { // xorshift64*: spread, not secrecy
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    return random_ * 0x2545f4914f6cdd1dULL;
}

void WindowPlan::gather(WatchList& watch) {
    entries_.clear();
    turns_.clear();
    cursor_ = 0;
    areas_ = 0;
    bytes_ = 0;
    rates_.clear();
    lacking_ = false;
    for (const auto& area : watch.areas()) {
        const std::size_t before = entries_.size();
        for (const std::uint64_t granule : area->pending)
            if (area->is_armable(granule)) {
                const std::uint32_t piece = piece_of(*area, granule);
                const Need need = need_of(part_of(piece), area->there().size() / parts);
                lacking_ |= need != Need::covered;
                if (entries_.size() == before || entries_.back().piece != piece) rates_.push_back(-1);
                const auto ordinal = static_cast<std::uint32_t>(rates_.size() - 1);
                entries_.push_back({area->id, piece, ordinal, need, area->granule_range(granule)});
            }
        if (entries_.size() == before) continue;
        ++areas_;
        bytes_ += static_cast<double>(area->used_bytes());
    }
    turns_.resize(entries_.size());
    std::iota(turns_.begin(), turns_.end(), 0u);
    for (std::size_t i = turns_.size(); i > 1; --i)
        std::swap(turns_[i - 1], turns_[random() % i]);
}

double WindowPlan::allowance() const noexcept {
    return std::min(first_references * first_cost_, most_allowance * slowness_);
}

/// Seconds that may be spent now.
double WindowPlan::left_at(double elapsed) const noexcept {
    return allowed_ + share_ * std::max(1.0, slowness_ / slowness_of_programs) * elapsed - spent_;
}

void WindowPlan::begin_anew(double elapsed) noexcept {
    if (elapsed < run_for_allowance * allowed_) return;
    allowed_ += allowance();
    eager_until_ = spent_ + allowance();
}

std::size_t WindowPlan::room_beside(std::size_t standing) const noexcept {
    const double most = std::clamp(first_standing + more_for_touch * useful_ - fewer_for_waste * wasted_,
                                   least_standing, static_cast<double>(largest_window));
    return static_cast<std::size_t>(std::max(0.0, most - static_cast<double>(standing)));
}

/// How likely the turn of an entry is taken: parts that lack samples come first, and those of which what is
/// armed is never touched seldom. What is known of the area stands for one sample of each part: programs
/// have arrays that they use no more.
double WindowPlan::wanted_of(const Entry& entry) const {
    const double wanted = lacking_ ? wanted_rate[static_cast<std::size_t>(entry.need)] : 1;
    const auto area = unused_.find(entry.area);
    const double of_area =
        area == unused_.end() ? 1 : enough_of_part / static_cast<double>(enough_of_part + area->second);
    const auto part = coverage_.find(part_of(entry.piece));
    return wanted * std::max(least_rate, part == coverage_.end() ? of_area : rate_of(part->second, of_area));
}

void WindowPlan::begin_adding(double elapsed, std::size_t standing) {
    chosen_.clear();
    ranges_.clear();
    room_ = 0;
    if (entries_.empty()) return;
    // Nothing that stood before was slowed: a while without arming pays for some at once.
    const double share = is_eager() ? eager_share : steady_share;
    const double may_take = first_share * std::min(left_at(elapsed), share * (elapsed - added_at_));
    if (may_take < std::min(most_for_opening * opening_.value(), most_of_allowance * allowance())) return;
    const double count = may_take / each();
    if (count < static_cast<double>(smallest_window)) return;
    const std::size_t room = std::min(room_beside(standing), static_cast<std::size_t>(count));
    if (room < smallest_window) return;
    room_ = room;
}

const std::vector<Range>& WindowPlan::end_adding(double elapsed) {
    if (chosen_.empty()) return ranges_;
    added_at_ = elapsed;
    const auto by_address = [](const Entry& entry) { return entry.granule.begin; };
    std::ranges::sort(chosen_, {}, by_address);
    const auto twice = std::ranges::unique(chosen_, {}, by_address);
    chosen_.erase(twice.begin(), twice.end());
    return collect();
}

const std::vector<Range>& WindowPlan::choose(Site site, double seconds, double elapsed) {
    chosen_.clear();
    ranges_.clear();
    if (entries_.empty()) return ranges_;
    const double left = left_at(elapsed);
    if (left < each() * static_cast<double>(smallest_window)) return ranges_;
    const Touches* here = at_place(site);
    const double likely = seconds > 0 ? seconds : last_;
    if (!(here && here->touched > 0) && too_short(likely)) return ranges_;
    turn_of_ = std::exchange(passed_over_, 0.0);
    const double share = is_eager() ? eager_share : steady_share;
    const std::size_t unknown =
        speed_ > 0 ? later_window : std::min(first_window, first_window_each * areas_);
    auto count = seconds > 0
                     ? static_cast<std::size_t>(std::min(seconds * share, left * later_share) / each())
                     : std::min(unknown, static_cast<std::size_t>(first_share * left / each()));
    count = std::clamp(count, smallest_window,
                       std::max(smallest_window, std::min(largest_window, entries_.size())));
    const std::uint32_t scale = scale_of(likely);
    // Drawn once: the less a window is worth and the less is left, the seldomer it is opened. Where nothing
    // was ever touched, that is known without a look at the list.
    const double scarce = std::clamp(1 - left / allowance(), 0.0, 1.0);
    const double draw = least_worth * scarce * fraction();
    if (likely_at_all(site, here, scale) < draw) return ranges_;
    double expected = 0;
    std::ranges::fill(rates_, -1.0);
    // One pass over the list at the most: entries where this region seldom touches anything are mostly passed
    // over.
    for (std::size_t looked = 0; looked < turns_.size() && chosen_.size() < count; ++looked) {
        if (cursor_ == turns_.size()) cursor_ = 0;
        const Entry& entry = entries_[turns_[cursor_++]];
        const double wanted = lacking_ ? wanted_rate[static_cast<std::size_t>(entry.need)] : 1;
        double& likely_touched = rates_[entry.ordinal];
        if (likely_touched < 0) likely_touched = rate(site, entry.piece, here, scale);
        if (!happens(wanted * likely_touched)) continue;
        chosen_.push_back(entry);
        expected += likely_touched;
    }
    if (expected < draw * static_cast<double>(chosen_.size())) {
        chosen_.clear();
        return ranges_;
    }
    std::sort(chosen_.begin(), chosen_.end(),
              [](const Entry& a, const Entry& b) { return a.granule.begin < b.granule.begin; });
    return collect();
}

/// Touches such a region too little of what is watched to be worth a window? Regions of this kind that
/// together take as long as a good part of a long one have their turn.
bool WindowPlan::too_short(double seconds) {
    if (seconds <= 0 || speed_ <= 0 || reach_margin * seconds * speed_ >= least_reach * bytes_) return false;
    passed_over_ += seconds;
    return passed_over_ < most_passed_over * longest_;
}

const std::vector<Range>& WindowPlan::collect() {
    ranges_.clear();
    for (const Entry& entry : chosen_)
        ranges_.push_back(entry.granule);
    return ranges_;
}

void WindowPlan::calibrate(double arming, double fault, double handler, double slowness) noexcept {
    slowness_ = slowness;
    const double arm = std::clamp(arming, least_arm_cost, most_arm_cost);
    const double all = fault > 0 ? std::clamp(fault, least_arm_cost, most_arm_cost) : fault_in_arms * arm;
    arming_.set(arm);
    handler_.set(std::clamp(handler, 0.0, all));
    outside_handler_ = all - handler_.value();
    first_cost_ = arm + all;
    allowed_ = eager_until_ = allowance();
}

void WindowPlan::paid(const Windows::Costs& costs, std::size_t standing) noexcept {
    const auto each_of = [](double seconds, std::uint64_t count) {
        return std::clamp(seconds / static_cast<double>(count), least_arm_cost, most_arm_cost);
    };
    const std::uint64_t armed = costs.armed - paid_.armed;
    const std::uint64_t touches = costs.touches - paid_.touches;
    const std::uint64_t timed = costs.timed_touches - paid_.timed_touches;
    const double arming = costs.arm_seconds - paid_.arm_seconds;
    const double giving_back = costs.back_seconds - paid_.back_seconds;
    if (armed > 0 && arming > 0) arming_.saw(each_of(arming, armed));
    if (timed > 0) handler_.saw(each_of(costs.touch_seconds - paid_.touch_seconds, timed));
    const double faults = fault_cost() * static_cast<double>(touches);
    const std::size_t outcomes = std::size_t{armed} + stood_;
    const std::size_t given_back = outcomes - std::min<std::size_t>(outcomes, touches + standing);
    faults_spent_ += faults;
    spent_ += arming_.value() * static_cast<double>(armed) + faults +
              std::clamp(giving_back, 0.0, most_arm_cost * static_cast<double>(given_back));
    useful_ += static_cast<double>(touches);
    wasted_ += static_cast<double>(given_back);
    if (useful_ + wasted_ > remembered_outcomes) {
        useful_ /= 2;
        wasted_ /= 2;
    }
    stood_ = standing;
    paid_ = costs;
}

/// A granule was touched: what is known of its part.
void WindowPlan::cover(WatchedArea& area, std::uint64_t granule, int node) {
    const std::uint32_t part = part_of(piece_of(area, granule));
    Coverage& covered = coverage_[part];
    ++covered.touched;
    unused_.erase(area.id);
    if (covered.node < 0) covered.node = static_cast<std::int16_t>(node);
    covered.mixed |= covered.node != node;
    const Need need = need_of(part, area.there().size() / parts);
    if (covered.need != need)
        for (Entry& entry : entries_)
            if (part_of(entry.piece) == part) entry.need = need;
    covered.need = need;
}

void WindowPlan::observed_between(WatchList& watch, const std::vector<Reference>& references) {
    for (const Reference& reference : references)
        if (WatchedArea* area = watch.find(reference.address))
            cover(*area, area->granule_of(reference.address), reference.node);
}

void WindowPlan::observed(WatchList& watch, Site site, const std::vector<Reference>& references,
                          double seconds) {
    // (Next touch arms windows of its own.)
    if (!chosen_.empty() && references.size() >= enough_for_speed && seconds > 0 && seconds >= longest_) {
        longest_ = seconds;
        const double touched = static_cast<double>(references.size()) / static_cast<double>(chosen_.size());
        speed_ = std::min(1.0, touched) * bytes_ / seconds;
    }
    // Where short regions use what is watched, a long one that does not come again (a program's first, which
    // reads its input) is soon no measure.
    if (!references.empty()) longest_ -= std::min(turn_of_, most_passed_over * longest_);
    turn_of_ = 0;
    if (parts_.size() > most_remembered) { // programs that allocate in every iteration: areas without end
        touches_.clear();
        parts_.clear();
        coverage_.clear();
        unused_.clear();
    }
    if (placed_.size() > most_remembered) placed_.clear(); // periods that come and go: places without end
    const std::uint32_t scale = scale_of(seconds);
    const auto count = [&](std::uint32_t area, std::uint32_t piece, std::uint32_t Touches::* what) {
        const std::uint32_t part = part_of(piece);
        ++(touches_[key(site.region, area)].*what);
        for (const std::uint32_t where : {part, all_pieces})
            ++(parts_[key(kind_of(site, scale), where)].*what);
        if (site.placed())
            for (const std::uint32_t where : {piece, all_of_part | part, all_pieces})
                ++(placed_[key(site.place, where)].*what);
    };
    for (const Entry& entry : chosen_) {
        count(entry.area, entry.piece, &Touches::armed);
        ++coverage_[part_of(entry.piece)].armed;
        ++unused_[entry.area];
    }
    for (const Reference& reference : references) {
        WatchedArea* area = watch.find(reference.address);
        if (!area) continue;
        const std::uint64_t granule = area->granule_of(reference.address);
        if (find_range(chosen_, reference.address, &Entry::granule))
            count(area->id, piece_of(*area, granule), &Touches::touched);
        cover(*area, granule, reference.node);
    }
    chosen_.clear();
}

/// Of a region that takes so long: the logarithm of what the longest one takes more, to the base 8, which is
/// what a grid of half the points a dimension takes less.
std::uint32_t WindowPlan::scale_of(double seconds) const {
    if (longest_ <= 0 || seconds <= 0 || seconds >= longest_) return 0;
    return std::min(scales - 1, static_cast<std::uint32_t>(std::log2(longest_ / seconds) / 3 + 0.5));
}

const WindowPlan::Touches* WindowPlan::at_place(Site site) const {
    if (!site.placed()) return nullptr;
    const auto found = placed_.find(key(site.place, all_pieces));
    return found == placed_.end() ? nullptr : &found->second;
}

/// What was seen, beside one sample of what is likely otherwise.
double WindowPlan::rate_of(const Touches& seen, double otherwise) {
    return (otherwise + seen.touched) / (1.0 + seen.armed);
}

/// How likely a region of this kind (its function, and the scale of its time) touches a part of an area.
double WindowPlan::rate_of_kind(Site site, std::uint32_t scale, std::uint32_t part) const {
    const auto found = parts_.find(key(kind_of(site, scale), part));
    return found == parts_.end() ? 1 : std::max(least_rate, rate_of(found->second, 1));
}

/// Where nothing was ever touched, here or by regions of this kind: how likely anything is, as what was armed
/// in all parts together says. Otherwise 1: that takes a look at the parts. `here`: what was seen of
/// everything at the place.
double WindowPlan::likely_at_all(Site site, const Touches* here, std::uint32_t scale) const {
    if (here && here->touched > 0) return 1;
    const auto found = parts_.find(key(kind_of(site, scale), all_pieces));
    const double kind = found == parts_.end() || found->second.touched > 0 ? 1 : rate_of(found->second, 1);
    return here ? rate_of(*here, kind) : kind;
}

/// How likely the region touches a granule of the piece; `here`: what was seen of everything at its place.
/// What is known of the region's kind stands for one sample of everything at the place, that for one of each
/// part, and that of a part for one of each of its pieces: a place that works on a small grid is soon known
/// to touch little else, without every piece having been armed there.
double WindowPlan::rate(Site site, std::uint32_t piece, const Touches* here, std::uint32_t scale) const {
    const double kind = rate_of_kind(site, scale, part_of(piece));
    if (!here) return kind;
    const auto of_key = [&](std::uint32_t where, double otherwise) {
        const auto found = placed_.find(key(site.place, where));
        return found == placed_.end() ? otherwise : rate_of(found->second, otherwise);
    };
    const double in_part = of_key(all_of_part | part_of(piece), rate_of(*here, kind));
    return std::max(least_rate_of_place, of_key(piece, in_part));
}

/// Evenly from 0 to below 1.
double WindowPlan::fraction() { return static_cast<double>(random() % 4096) / 4096; }

bool WindowPlan::happens(double probability) { return fraction() < probability; }

WindowPlan::Need WindowPlan::need_of(std::uint32_t part, std::uint64_t granules) const {
    const auto found = coverage_.find(part);
    if (found == coverage_.end()) return Need::unseen;
    const Coverage& seen = found->second;
    if (seen.touched == 0) return seen.armed < unused_after ? Need::unseen : Need::covered;
    const auto continues = [&](std::uint32_t neighbour) {
        const auto beside = coverage_.find(neighbour);
        return beside != coverage_.end() && beside->second.node == seen.node && !beside->second.mixed;
    };
    const bool inside = !seen.mixed && ((part % parts > 0 && continues(part - 1)) ||
                                        (part % parts + 1 < parts && continues(part + 1)));
    const std::uint64_t enough = inside ? enough_of_inside : enough_of_part;
    return seen.touched < std::min(enough, granules / share_of_part) ? Need::thin : Need::covered;
}

/// Pieces are finer than parts: the small grids behind a large one are a few pages. Both are of what exists.
std::uint32_t WindowPlan::piece_of(const WatchedArea& area, std::uint64_t granule) noexcept {
    const PageSet& there = area.there();
    const std::uint64_t piece = there.below(granule) * pieces / std::max<std::uint64_t>(1, there.size());
    return area.id * pieces + static_cast<std::uint32_t>(std::min<std::uint64_t>(piece, pieces - 1));
}

double WindowPlan::touch_estimate(std::uint32_t region, std::uint32_t area) const {
    const auto found = touches_.find(key(region, area));
    if (found == touches_.end() || found->second.armed == 0) return 0;
    return std::min(1.0, static_cast<double>(found->second.touched) / found->second.armed);
}

} // namespace homing
