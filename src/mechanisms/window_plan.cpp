#include "mechanisms/window_plan.hpp"

#include <algorithm>

namespace homing {
namespace {

/// What observation may take before the share of the run time counts (seconds): enough to place a short run's
/// pages.
constexpr double first_allowance = 0.02;
/// A region may be slowed by at most this share while the allowance lasts, and later.
constexpr double eager_share = 0.25;
constexpr double steady_share = 0.05;
constexpr std::size_t largest_window = 1024;
constexpr std::size_t smallest_window = 4;
constexpr std::uint32_t enough_armed = 12;

} // namespace

std::uint64_t WindowPlan::random() noexcept { // xorshift64*: spread, not secrecy
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    return random_ * 0x2545f4914f6cdd1dULL;
}

void WindowPlan::gather(WatchList& watch) {
    entries_.clear();
    cursor_ = 0;
    for (const auto& area : watch.areas())
        for (const std::uint64_t granule : area->pending)
            if (area->is_armable(granule)) entries_.push_back({area->id, area->granule_range(granule)});
    for (std::size_t i = entries_.size(); i > 1; --i)
        std::swap(entries_[i - 1], entries_[random() % i]);
}

const std::vector<Range>& WindowPlan::choose(std::uint32_t region, double seconds, double elapsed) {
    chosen_.clear();
    ranges_.clear();
    if (entries_.empty()) return ranges_;
    const double left = first_allowance + share_ * elapsed - spent_;
    if (left <= 0) return ranges_;
    const double share = spent_ < first_allowance ? eager_share : steady_share;
    const double each = arm_cost + fault_cost;
    auto count = static_cast<std::size_t>(std::min(seconds * share, left) / each);
    count = std::clamp(count, smallest_window, std::min(largest_window, entries_.size()));
    // One pass over the list at the most: entries of areas that this region never touches are passed over,
    // though a few of them are armed now and then in case that changed.
    for (std::size_t looked = 0; looked < entries_.size() && chosen_.size() < count; ++looked) {
        if (cursor_ == entries_.size()) cursor_ = 0;
        const Entry& entry = entries_[cursor_++];
        if (touch_rate(region, entry.area) == 0 && random() % 32 != 0) continue;
        chosen_.push_back(entry);
    }
    std::sort(chosen_.begin(), chosen_.end(),
              [](const Entry& a, const Entry& b) { return a.granule.begin < b.granule.begin; });
    for (const Entry& entry : chosen_)
        ranges_.push_back(entry.granule);
    return ranges_;
}

void WindowPlan::observed(WatchList& watch, std::uint32_t region, const std::vector<Reference>& references) {
    for (const Entry& entry : chosen_)
        ++touches_[key(region, entry.area)].armed;
    for (const Reference& reference : references)
        if (const WatchedArea* area = watch.find(reference.address))
            ++touches_[key(region, area->id)].touched;
    spent_ +=
        arm_cost * static_cast<double>(chosen_.size()) + fault_cost * static_cast<double>(references.size());
    chosen_.clear();
}

double WindowPlan::touch_rate(std::uint32_t region, std::uint32_t area) const {
    const auto found = touches_.find(key(region, area));
    if (found == touches_.end() || found->second.armed < enough_armed) return -1;
    return std::min(1.0, static_cast<double>(found->second.touched) / found->second.armed);
}

} // namespace homing
