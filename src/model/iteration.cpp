#include "model/iteration.hpp"
#include "model/tuning.hpp"

#include <algorithm>

namespace homing::phases {

using namespace model::tuning;

/// An iteration of the outer cycle took so many events.
void IterationFinder::note_length(std::uint64_t events) {
    before_ = length_;
    length_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(events, PeriodFinder::no_id));
    longest_ = std::max(longest_, length_);
    patience_ = std::max(most_unlike * longest_, first_events);
    begun_at_ = events_;
}

/// An id that the filter has left.
Step IterationFinder::ask_outer(std::uint32_t id) {
    const auto slots = static_cast<std::uint32_t>(left_at_.size());
    left_at_[left_++ % slots] = events_;
    const Step step = outer_.push(id);
    if (step.event == PeriodEvent::found || step.event == PeriodEvent::upgraded) {
        const auto at = [&](std::uint32_t back) { return left_at_[(left_ - 1 - back) % slots]; };
        const std::uint64_t one = at(step.period);
        const std::uint64_t two = left_ > 2 * step.period ? at(2 * step.period) : 0;
        longest_ = 0;
        note_length(one - two);
        note_length(events_ - one);
        begun_at_ = at(outer_.newest());
    } else if (step.iteration_begins) {
        note_length(events_ - begun_at_);
    }
    return step;
}

bool IterationFinder::outer_encloses() const {
    // What the filter itself may have shortened is direct_'s to find.
    if (!outer_.found() || length_ <= LoopFilter::longest_loop) return false;
    // Alike are iterations, not a step of warming up and all that follow it.
    const std::uint64_t shorter = std::min(length_, before_);
    if (std::max(length_, before_) > most_unlike * shorter) return false;
    if (!direct_.found()) return true;
    if (length_ < clearly_more * direct_.length()) return false;
    if (direct_.by_anchor())
        return length_ >= most_unlike * direct_.length() && outer_.stable_for() >= few_iterations;
    return direct_.period().matched() < 2 * std::uint64_t{length_};
}

Step IterationFinder::leave_outer(const Step& direct) {
    around_ = false;
    filter_.limit(LoopFilter::longest_loop);
    if (direct_sleeps_) direct_.reset(); // it has seen nothing for long
    direct_sleeps_ = false;
    if (!direct_.found()) return {PeriodEvent::broken, false, 0};
    return {PeriodEvent::found, direct.iteration_begins, direct.period};
}

/// Which of them tells the iteration?
Step IterationFinder::choose(const Step& direct, bool was_found, const Step& outer) {
    if (!around_) {
        if (!outer_encloses()) return direct;
        around_ = true;
        iterations_ = 1;
        filter_.limit(std::max(length_ / 2, 1u)); // what is longer is not within it
        return {was_found ? PeriodEvent::upgraded : PeriodEvent::found, outer.iteration_begins, length_};
    }
    if (!outer_.found()) return leave_outer(direct);
    const bool gone = events_ - begun_at_ >= patience_;
    const bool lasting =
        !direct_sleeps_ && !direct_.by_anchor() && direct_.period().matched() >= chances * length_;
    if (gone || lasting) {
        outer_.reset();
        return leave_outer(direct);
    }
    iterations_ += outer.iteration_begins;
    direct_sleeps_ |= iterations_ >= chances;
    if (outer.event == PeriodEvent::none) return {PeriodEvent::none, false, length_};
    return {outer.event, outer.iteration_begins, length_};
}

Step IterationFinder::search(std::uint32_t id, bool left) {
    const bool was_found = direct_.found();
    const Step direct = direct_sleeps_ ? Step{} : direct_.push(id);
    if (direct_.period().settled()) settled_at_ = direct_.period().matched();
    const Step outer = left ? ask_outer(id) : Step{};
    return choose(direct, was_found, outer);
}

/// A period that was followed without asking anybody else has ended. If it was an inner loop, nothing was
/// missed that the filter would have left.
Step IterationFinder::after_settled(const Step& step, std::uint32_t id) {
    const PeriodFinder::Broken& broken = direct_.period().broken();
    if (broken.iteration.size() > filter_.limit()) {
        filter_.reset();
        outer_.reset();
        left_ = 0;
        return step;
    }
    events_ += broken.matched - std::min(settled_at_, broken.matched);
    filter_.turned(broken.iteration, broken.position);
    Step outer;
    for (const std::uint32_t next : {broken.foreign, id}) {
        if (next == no_id) continue;
        ++events_;
        if (filter_.push(next)) outer = ask_outer(next);
    }
    return choose(step, true, outer);
}

} // namespace homing::phases
