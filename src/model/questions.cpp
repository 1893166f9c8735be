#include "model/questions.hpp"

#include "base/invariant.hpp"
#include "base/random.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

namespace homing::model {
namespace {

double unit(std::uint64_t value) { return fraction_of(mixed(value + splitmix_step)); }

std::uint64_t page_at(double y, std::uint64_t pages) {
    return std::min(pages - 1, static_cast<std::uint64_t>(y * static_cast<double>(pages)));
}

} // namespace

double worth_of_touch(const Subject& subject) {
    return subject.traffic_ns * subject.ignorance / (subject.touches + 1);
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

std::vector<std::uint64_t> pages_to_ask(const Belief* belief, std::uint64_t pages, std::uint64_t first,
                                        std::uint32_t count, std::uint64_t seed) {
    invariant(pages > 0, "an area has a page");
    std::vector<std::uint64_t> asked;
    asked.reserve(count);
    std::uint32_t for_doubt = 0;
    for (std::uint64_t index = first; index < first + count; ++index) {
        const double draw = unit(seed ^ (index * 0x2545f4914f6cdd1du));
        if (belief && index >= tuning::few_touches && draw >= tuning::equal_share) {
            ++for_doubt;
            continue;
        }
        // Multiples of the golden ratio lie evenly however many there are.
        double even = unit(seed) + static_cast<double>(index) * 0.6180339887498949;
        even -= std::floor(even);
        asked.push_back(page_at(even, pages));
    }
    if (for_doubt == 0) return asked;
    // By what is not known of them: of even parts, each weighed by a page of it, the least known ones.
    const std::uint64_t parts = std::min(for_doubt * tuning::candidates_to_ask, tuning::most_looks);
    std::vector<std::pair<double, std::uint64_t>> doubts;
    doubts.reserve(parts);
    const auto page_of = [&](std::uint64_t part, std::uint64_t draw) {
        const double within = unit(seed + (first + draw) * 977 + part * 131071);
        return page_at((static_cast<double>(part) + within) / static_cast<double>(parts), pages);
    };
    Prospect prospect;
    for (std::uint64_t part = 0; part < parts; ++part) {
        belief->prospect(page_of(part, 0), unknown_node, prospect);
        doubts.emplace_back(1 - std::max(prospect.spread, *std::ranges::max_element(prospect.best)), part);
    }
    std::ranges::sort(doubts, std::greater<>());
    const std::uint64_t least_known = parts / tuning::candidates_to_ask;
    for (std::uint64_t i = 0; i < for_doubt; ++i)
        asked.push_back(page_of(doubts[i % least_known].second, i / least_known));
    return asked;
}

} // namespace homing::model
