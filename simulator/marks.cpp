#include "marks.hpp"

#include "base/inside.hpp"
#include "hooks/export.hpp"
#include "machine/simulation.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <mutex>

namespace homing::simulator {
namespace {

/// As many as the lab's counter has.
constexpr std::uint32_t most_phases = 512;

std::mutex marking;
std::vector<Phase>& phases() {
    static auto* const all = new std::vector<Phase>; // until the process is gone
    return *all;
}
constinit std::uint32_t current = 0;
Totals& start() {
    static auto* const counts = new Totals;
    return *counts;
}

/// Called with `marking` held.
void begin(std::uint32_t number) {
    const Totals now = totals();
    if (current != 0) {
        const auto open = std::find_if(phases().begin(), phases().end(),
                                       [](const Phase& one) { return one.number == current; });
        if (open != phases().end()) open->counts.add_difference(now, start());
    }
    current = number;
    start() = now;
    if (number == 0) return;
    auto found = std::find_if(phases().begin(), phases().end(),
                              [&](const Phase& one) { return one.number == number; });
    if (found == phases().end()) found = phases().insert(phases().end(), Phase{number, 0, {}});
    ++found->entries;
}

} // namespace

const std::vector<Phase>& marked_phases() {
    const std::lock_guard lock(marking);
    begin(0);
    return phases();
}

} // namespace homing::simulator

/// A program's mark, outside of parallel regions: `phase` begins. Phases outside 0..511 are ignored.
extern "C" HOMING_EXPORT void homing_simulator_mark(int phase) noexcept {
    using namespace homing;
    if (!simulation() || phase < 0 || static_cast<std::uint32_t>(phase) >= simulator::most_phases) return;
    const Inside inside;
    try {
        const std::lock_guard lock(simulator::marking);
        simulator::begin(static_cast<std::uint32_t>(phase));
    } catch (...) {
        record::message(record::Level::not_done, "out of memory: counts of a phase are missing");
    }
}
