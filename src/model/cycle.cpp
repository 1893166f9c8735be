#include "model/cycle.hpp"
#include "model/tuning.hpp"

namespace homing::phases {

using namespace model::tuning;

void CycleFinder::reset() {
    period_.reset();
    anchor_.reset();
    by_anchor_ = false;
}

Step CycleFinder::after_settled(const Step& step) {
    anchor_.reset(); // it saw nothing while the exact period was settled
    return step;
}

Step CycleFinder::search(std::uint32_t id) {
    const std::uint32_t followed = period_.period();
    const auto matched = static_cast<double>(period_.matched());
    const Step exact = period_.push(id);
    const Step anchored = anchor_.push(id);
    const double cycle = anchor_.mean_gap();
    if (by_anchor_) {
        // Neighbouring steps of an adaptive program may be the same by chance; only an exact period over many
        // cycles is the better guide.
        const bool lasting = static_cast<double>(period_.matched()) >= chances * cycle;
        if (anchored.event != PeriodEvent::broken && !lasting) return anchored;
        by_anchor_ = false;
        if (!period_.period()) return {PeriodEvent::broken, false, 0};
        return {PeriodEvent::found, exact.iteration_begins, period_.period()};
    }
    if (!anchor_.found()) return exact;
    // The end of a lasting exact period is a new phase of the program, about which the anchor knows nothing.
    if (exact.event == PeriodEvent::broken && matched >= chances * cycle) {
        anchor_.reset();
        return exact;
    }
    if (!period_.period() || static_cast<double>(period_.matched()) < 2 * cycle) {
        by_anchor_ = true;
        return {followed ? PeriodEvent::upgraded : PeriodEvent::found, anchored.iteration_begins,
                anchored.period};
    }
    return exact;
}

} // namespace homing::phases
