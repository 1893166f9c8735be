// Which granules a round of observation by windows asks for, of which areas.
#include "engine/engine.hpp"

#include "areas/area_shape.hpp"
#include "base/random.hpp"
#include "base/running_time.hpp"
#include "model/questions.hpp"
#include "model/tuning.hpp"
#include "record/record.hpp"

#include <algorithm>

namespace homing {

using namespace model::tuning;

/// Which granules the next windows should arm: of all areas, or of those that came since they were chosen, as
/// temporaries do that live for a part of the iteration.
void Engine::plan_samples(bool check, bool all) {
    const double begin = thread_seconds(); // what others make it wait for is not what choosing takes
    choose_samples(check, all);
    plan_.gather(watch_);
    // Not in even steps: of what comes and goes within an iteration it would be the same time and again.
    const double even = (thread_seconds() - begin) / negligible_part;
    (all ? next_plan_ : next_of_new_) =
        record::now() + 2 * even * fraction_of(mixed(seed_ + ++plans_ * splitmix_step));
    if (all) plan_is_old_ = false;
}

/// WatchedArea::pending.
void Engine::choose_samples(bool check, bool all) {
    std::vector<WatchedArea*> areas;
    std::vector<model::Subject> subjects;
    std::uint64_t pages = 0, of_all = 0;
    for (const auto& area : watch_.areas()) {
        of_all += area->there().size();
        if (!all && area->chosen) continue;
        area->chosen = area->seen;
        area->pending.clear();
        // What does not exist yet has nothing to be asked for.
        if (!mechanism_->samples() || !area->seen || area->there().empty()) continue;
        areas.push_back(area.get());
        pages += area->there().size();
        // A check asks by traffic, whatever is believed: a confident error is never asked about otherwise.
        const AreaBelief& learnt = area->learnt;
        subjects.push_back({area->there().size(), traffic(*area), check ? 1 : learnt.ignorance,
                            check ? 0 : static_cast<double>(learnt.telling())});
    }
    std::uint64_t granules = check ? granules_of_round / check_interval : granules_of_round;
    if (!all && of_all > 0) granules = (granules * pages + of_all - 1) / of_all;
    const std::vector<std::uint32_t> shares =
        model::share_out(subjects, static_cast<std::uint32_t>(granules), seed_ + iteration_);
    for (std::size_t i = 0; i < areas.size(); ++i) {
        WatchedArea& area = *areas[i];
        AreaBelief& learnt = area.learnt;
        const model::Belief* belief = learnt.is_of(area.there().size()) ? learnt.belief.get() : nullptr;
        // Most of what is drawn from where a page here and there is used does not exist.
        const auto draws = static_cast<std::uint32_t>(shares[i] / area.share_there);
        const std::uint32_t share = area.in_part ? std::min(draws, most_looks) : shares[i];
        // Where each place has other users of a page, who uses it tells nothing.
        model::Users users;
        if (belief && share > 0 && learnt.places.empty()) users = users_of(learnt, area.there());
        for (const std::uint64_t page :
             model::pages_to_ask(belief, users, area.there().size(), learnt.asked, share, seed_ + area.id))
            area.pending.push_back(area.there().at(page));
        learnt.asked += share;
        std::ranges::sort(area.pending);
        area.pending.erase(std::unique(area.pending.begin(), area.pending.end()), area.pending.end());
        survey_.keep_existing(area, area.pending);
    }
}

} // namespace homing
