// How the engine asks by windows: when one is opened, with which of the granules that are planned, what was
// touched in it, and when it ends.
#include "engine/engine.hpp"

#include "model/tuning.hpp"
#include "record/record.hpp"

#include <utility>

namespace homing {

using namespace model::tuning;

/// Does what is armed stay so in serial code and later regions? Not where no hook guards that code.
bool Engine::windows_outlast_regions() {
    if (!services_.keeps_windows_in_regions) return false;
    const char* reason = services_.keeps_windows_in_regions();
    if (reason && !std::exchange(windows_in_regions_said_, true))
        record::message(record::Level::note,
                        std::string("each window ends with its parallel region: ") + reason);
    return !reason;
}

/// A region, or one of the program's own iterations, begins: what serial code has touched since the last one.
void Engine::serial_code_ends() {
    check_window(record::now());
    if (!window_stays_ || (windows_->is_open() && windows_->touches() == touches_taken_)) return;
    take_touches_of(Site::outside());
}

/// Where it may not stay any more, it ends.
void Engine::check_window(double now) {
    if (window_stays_ && windows_->is_open() && !window_may_stay(now)) close_window();
}

/// What may have changed in serial code, past every hook: looked at now and then.
bool Engine::window_may_stay(double now) {
    if (now < window_looked_at_ + short_time) return true;
    window_looked_at_ = now;
    return has_handler() && windows_->leaves_mappings() && surroundings_allow();
}

/// Where our handler cannot be had any more, windows are over.
bool Engine::has_handler() {
    const char* reason = services_.prepare_handler ? services_.prepare_handler() : nullptr;
    if (!reason) return true;
    windows_->forbid(reason);
    say_windows_ended();
    return false;
}

bool Engine::surroundings_allow() {
    return !services_.surroundings_allow || services_.surroundings_allow(*windows_);
}

/// What was touched since the last time. A window that somebody else has ended is over.
void Engine::take_touches() {
    if (!windows_->is_open()) window_open_ = window_stays_ = false;
    touches_taken_ = windows_->touches();
    references_.clear();
    windows_->drain(references_);
    plan_.paid(windows_->costs(), windows_->armed());
    if (scans()) asked_for_.insert(asked_for_.end(), references_.begin(), references_.end());
    count_references(Origin::asked);
}

/// The same of what ran before.
void Engine::take_touches_of(Site site) {
    const Site runs = std::exchange(open_, site);
    take_touches();
    plan_.observed_between(watch_, references_);
    open_ = runs;
}

/// A window that stayed ends here: nothing is armed any more.
void Engine::close_window() {
    if (!window_stays_) return;
    windows_->close();
    take_touches_of(Site::outside());
}

void Engine::window_region_begins() {
    const bool outlasts = windows_outlast_regions(); // said also where nothing is to be asked just now
    if (plan_.empty()) return;
    const RegionInfo& info = regions_[open_.region];
    const double begin = record::now();
    const double elapsed = running_.seconds(begin);
    std::vector<Range> granules;
    if (outlasts) {
        granules = plan_.add(elapsed, window_stays_ ? windows_->armed() : 0,
                             [this](Address granule) { return windows_->is_armed(granule); });
    } else {
        close_window();
        // At a place that is not known: the same functions work on grids of several sizes, one after the
        // other.
        const double here = places_.mean_seconds();
        granules = plan_.choose(open_, here > 0 ? here : info.longest * scale_, elapsed);
    }
    // A region that is entered for the first time may be initialisation, whose touches say nothing of the
    // computation to come: then its pages do not exist yet. What does exist was initialised before, and is
    // used now.
    if (info.count < 2 && !granules.empty()) {
        pages_.clear();
        for (const Range& granule : granules)
            pages_.push_back(reinterpret_cast<void*>(granule.begin));
        homes_.assign(pages_.size(), -1);
        if (kernel_.query(pages_, homes_) != 0) homes_.assign(pages_.size(), -1);
        std::size_t at = 0;
        granules = plan_.filter([&](const Range&) { return homes_[at++] >= 0; });
    }
    const double choosing_ended = record::now();
    plan_.planned(choosing_ended - begin);
    if (granules.empty()) return;
    const double arming = windows_->costs().arm_seconds;
    const bool opened = open_window(granules) > 0;
    plan_.opened(record::now() - choosing_ended - (windows_->costs().arm_seconds - arming));
    window_stays_ = outlasts && windows_->is_open();
    window_open_ = opened || window_stays_;
    if (opened) plan_.paid(windows_->costs(), windows_->armed());
    // What has come since we asked has found no window to end.
    if (window_stays_ && !windows_outlast_regions()) window_stays_ = false;
}

std::size_t Engine::open_window(std::vector<Range> granules) {
    if (!windows_) return 0;
    watch_.keep_covered(granules);
    if (granules.empty() || !has_handler()) return 0;
    // Not what went away between the look at the areas and now: another thread may have freed it.
    const std::size_t armed =
        surroundings_allow()
            ? windows_->open(granules, [&] { return watch_.synchronised() && watch_.all_covered(granules); })
            : 0;
    window_wanted(armed > 0);
    return armed;
}

/// Once, whoever has forbidden them: a signal's handler or a hook cannot say it itself.
void Engine::say_windows_ended() {
    const char* reason = windows_ ? windows_->forbidden() : nullptr;
    if (!reason || std::exchange(windows_ended_said_, true)) return;
    record::message(record::Level::warning, std::string("windows end here: ") + reason);
}

void Engine::window_wanted(bool opened) {
    say_windows_ended();
    if (opened || windows_->forbidden()) {
        refused_ = 0;
        return;
    }
    const double now = record::now();
    if (refused_++ == 0) refused_since_ = now;
    if (now < refused_since_ + longest_round) return;
    refused_ = 0;
    record::message(record::Level::warning,
                    "for seconds no window could open: the program used its arrays in system calls, or gave "
                    "and took memory, whenever a region began, or has nearly as many mappings as the kernel "
                    "allows a process (vm.max_map_count)");
}

void Engine::window_region_ends(double seconds) {
    if (!window_open_) return;
    if (window_stays_ && windows_outlast_regions()) {
        const bool is_open = windows_->is_open();
        references_.clear();
        if (!is_open || windows_->touches() != touches_taken_) take_touches();
    } else {
        windows_->close();
        take_touches();
    }
    plan_.observed(watch_, open_, references_, seconds);
}

} // namespace homing
