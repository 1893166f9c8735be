#include "model/questions.hpp"

#include "base/invariant.hpp"
#include "base/random.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

namespace homing::model {
namespace {

double unit(std::uint64_t value) { return fraction_of(mixed(value + splitmix_step)); }

std::uint64_t page_at(double y, std::uint64_t pages) {
    return std::min(pages - 1, static_cast<std::uint64_t>(y * static_cast<double>(pages)));
}

} // namespace

double worth_of_touch(const Subject& subject) {
    return subject.traffic_ns * subject.ignorance / (static_cast<double>(subject.touches) + 1);
}

std::vector<std::uint32_t> share_out(std::span<const Subject> subjects, std::uint32_t budget,
                                     double least_worth_ns, std::uint64_t seed) {
    std::vector<std::uint32_t> shares(subjects.size(), 0);
    std::priority_queue<std::pair<double, std::size_t>> best;
    double traffic = 0;
    for (std::size_t i = 0; i < subjects.size(); ++i) {
        traffic += subjects[i].traffic_ns;
        if (subjects[i].pages > 0) best.emplace(worth_of_touch(subjects[i]), i);
    }
    const auto ask_by_traffic = [&](double draw) {
        double left = draw * traffic;
        for (std::size_t i = 0; i < subjects.size(); ++i)
            if ((left -= subjects[i].traffic_ns) < 0 && subjects[i].pages > 0) {
                ++shares[i];
                return;
            }
    };
    for (std::uint32_t asked = 0; asked < budget; ++asked) {
        if (best.empty() || best.top().first < least_worth_ns || best.top().first <= 0) break;
        if (asked % tuning::check_interval == tuning::check_interval - 1) {
            ask_by_traffic(unit(seed + asked));
            continue;
        }
        const std::size_t i = best.top().second;
        best.pop();
        ++shares[i];
        Subject later = subjects[i];
        later.touches += shares[i];
        best.emplace(worth_of_touch(later), i);
    }
    return shares;
}

std::uint64_t page_to_ask(const Belief* belief, std::uint64_t pages, std::uint64_t index,
                          std::uint64_t seed) {
    invariant(pages > 0, "an area has a page");
    // Multiples of the golden ratio lie evenly however many there are.
    double even = unit(seed) + static_cast<double>(index) * 0.6180339887498949;
    even -= std::floor(even);
    const double draw = unit(seed ^ (index * 0x2545f4914f6cdd1du));
    if (!belief || index < tuning::even_touches || draw < tuning::even_share_of_touches)
        return page_at(even, pages);
    // By what is not known of them: of some even candidates the least known one.
    Prospect prospect;
    double most = -1;
    std::uint64_t found = page_at(even, pages);
    for (std::uint64_t i = 0; i < tuning::candidates_to_ask; ++i) {
        const std::uint64_t page = page_at(unit(seed + index * 977 + i * 131071), pages);
        belief->prospect(page, unknown_node, prospect);
        const double doubt = 1 - std::max(prospect.spread, *std::ranges::max_element(prospect.best));
        if (doubt > most) {
            most = doubt;
            found = page;
        }
    }
    return found;
}

} // namespace homing::model
