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

/// Some pages [first, end) of an area.
struct Part {
    std::uint64_t first, end;
    double doubt = 0;
};

} // namespace

double worth_of_touch(const Subject& subject) {
    return subject.traffic_ns * subject.ignorance / (subject.touches + 1);
}

std::vector<std::uint32_t> share_out(std::span<const Subject> subjects, std::uint32_t budget,
                                     std::uint64_t seed) {
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
        if (best.empty() || best.top().first <= 0) break;
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

std::vector<std::uint64_t> pages_to_ask(const Belief* belief, const Users& users, std::uint64_t pages,
                                        std::uint64_t first, std::uint32_t count, std::uint64_t seed) {
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
    // By what is not known of them: the least known ones of even parts and of gaps, each weighed by a page.
    const std::uint64_t count_of_parts = std::min(for_doubt * tuning::candidates_to_ask, tuning::most_looks);
    std::vector<Part> parts;
    const auto gaps = gaps_between(users);
    // Where borders are everywhere there are none.
    if (gaps.size() <= tuning::clearly_more * static_cast<std::size_t>(belief->nodes()))
        for (const auto& [begin, end] : gaps)
            if (begin < end) parts.push_back({begin, end});
    for (std::uint64_t i = 0; i < count_of_parts; ++i) {
        const std::uint64_t begin = i * pages / count_of_parts;
        parts.push_back({begin, std::max(begin + 1, (i + 1) * pages / count_of_parts)});
    }
    const auto page_of = [&](const Part& part, std::uint64_t draw) {
        const double within = unit(seed + (first + draw) * 977 + part.first * 131071);
        return part.first + page_at(within, part.end - part.first);
    };
    Prospect prospect;
    for (Part& part : parts) {
        belief->prospect(page_of(part, 0), unknown_node, prospect);
        part.doubt = 1 - std::max(prospect.spread, *std::ranges::max_element(prospect.best));
    }
    std::ranges::sort(parts, std::greater<>(), &Part::doubt);
    const std::uint64_t least_known = std::max<std::uint64_t>(1, parts.size() / tuning::candidates_to_ask);
    for (std::uint64_t i = 0; i < for_doubt; ++i)
        asked.push_back(page_of(parts[i % least_known], i / least_known));
    return asked;
}

} // namespace homing::model
