#include "areas/array_cuts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace homing {
namespace {

using model::Block;
using model::Touch;

// Measured over 400 pools of 2 to 5 arrays (4,000 pages; 4, 8 or 16 threads; 150 touches, 3 % of them stray)
// and 1,200 areas that are none (owners at random, one array, 20 runs of any threads): 397 have all cuts
// within a hundredth, 2.8 pages off on average, and none of the others is cut; 0.2 ms each.

/// Probability of a touch by another thread than the owner of its part: strays, and halos. Only the cuts that
/// are proposed depend on it; the belief has its own table (tuning::strays). With .02 395 pools, with .1 397.
constexpr double stray = .05;
/// A cut may come to lie so many touches before or behind where it was found, for a stray touch may stand
/// there: with none 390 pools, with 8 as with 4. And the places that are tried for it between two touches:
/// with 4 it is 4.4 pages off, with 64 2.5 in three times the time.
constexpr std::size_t most_off = 4;
constexpr int places_between = 16;
/// Parts of an area. Recorded touches of one program (the pattern pool), any 100 in a row: with one place in
/// each gap no arrays were found in 17 cases of 69, with 64 as with 256 in 1; pages right .83, .857, .859.
constexpr double fine = 256;
/// Arrays and the touches that contradict them are to be worth at most this part of what owners drawn at
/// random are. A margin: from .35 to 1 nothing differs in the areas above.
constexpr double most_of_random = .5;

/// What touches in [first, end) contradict of one array there that is BLOCK, in logs: 0 for none.
class Fit {
  public:
    Fit(std::span<const Touch> touches, int threads)
        : threads_(threads), misfit_(std::log((1 - stray) * std::max(1, threads - 1) / stray)) {
        for (const Touch& touch : touches)
            touches_.push_back({touch.at(), static_cast<int>(touch.thread)});
        std::ranges::sort(touches_);
    }

    std::size_t size() const noexcept { return touches_.size(); }
    double at(std::size_t touch) const noexcept { return touches_[touch].first; }
    int thread(std::size_t touch) const noexcept { return touches_[touch].second; }

    double cost(std::size_t first, std::size_t end, double begins, double ends) const noexcept {
        std::size_t contradict = 0;
        for (std::size_t i = first; i < end; ++i) {
            const double place = (touches_[i].first - begins) / (ends - begins);
            const int owner = std::clamp(static_cast<int>(place * threads_), 0, threads_ - 1);
            contradict += owner != touches_[i].second;
        }
        return misfit_ * static_cast<double>(contradict);
    }

  private:
    int threads_;
    double misfit_;
    std::vector<std::pair<double, int>> touches_; ///< ascending by place: thread
};

/// A border of arrays: the touch behind it, and its place in pages.
struct Cut {
    std::size_t touch = 0;
    double place = 0;
};

/// Between two touches that lie far apart a cut may be anywhere: one place for each `fine` part of the area.
std::vector<Cut> possible_cuts(const Fit& fit, std::uint64_t pages) {
    std::vector<Cut> cuts{{0, 0}};
    for (std::size_t i = 1; i < fit.size(); ++i) {
        if (fit.thread(i) >= fit.thread(i - 1)) continue;
        const double gap = fit.at(i) - fit.at(i - 1);
        const int places =
            std::clamp(static_cast<int>(fine * gap / static_cast<double>(pages)), 1, places_between);
        for (int place = 0; place < places; ++place)
            cuts.push_back({i, fit.at(i - 1) + gap * (place + .5) / places});
    }
    cuts.push_back({fit.size(), static_cast<double>(pages)});
    return cuts;
}

/// The cheapest way from the first cut to the last one, where each on the way costs `price`.
std::vector<Cut> best_cuts(const Fit& fit, const std::vector<Cut>& cuts, double price) {
    std::vector<double> least(cuts.size(), std::numeric_limits<double>::infinity());
    std::vector<std::size_t> from(cuts.size(), 0);
    least[0] = 0;
    for (std::size_t to = 1; to < cuts.size(); ++to)
        for (std::size_t i = 0; i < to; ++i) {
            if (cuts[to].place <= cuts[i].place) continue;
            const double cost = least[i] + (i > 0 ? price : 0) +
                                fit.cost(cuts[i].touch, cuts[to].touch, cuts[i].place, cuts[to].place);
            if (cost < least[to]) {
                least[to] = cost;
                from[to] = i;
            }
        }
    std::vector<Cut> way{cuts.back()};
    for (std::size_t at = cuts.size() - 1; at > 0; at = from[at])
        way.push_back(cuts[from[at]]);
    std::ranges::reverse(way);
    return way;
}

/// Moves a cut to the middle of where it fits best.
void settle(const Fit& fit, const Cut& before, Cut& cut, const Cut& behind) {
    const std::size_t first = std::max(before.touch + 1, cut.touch - std::min(cut.touch, most_off));
    const std::size_t end = std::min(behind.touch, cut.touch + most_off + 1);
    double least = std::numeric_limits<double>::infinity();
    bool goes_on = false; // from the place before, which fits as well as any
    double from = cut.place, to = cut.place;
    std::size_t touch = cut.touch;
    for (std::size_t at = first; at < end; ++at) {
        const double low = fit.at(at - 1), high = fit.at(at);
        for (int i = 0; i < places_between && high > low; ++i) {
            const double place = low + (high - low) * (i + .5) / places_between;
            const double cost = fit.cost(before.touch, at, before.place, place) +
                                fit.cost(at, behind.touch, place, behind.place);
            if (cost < least) {
                least = cost;
                touch = at;
                from = to = place;
            } else if (goes_on && cost == least && at == touch) {
                to = place;
            }
            goes_on = cost == least;
        }
    }
    cut = {touch, (from + to) / 2};
}

/// What touches contradict of the arrays, and what the cuts are worth, in logs.
double cost_of(const Fit& fit, const std::vector<Cut>& cuts, double price) {
    double sum = price * static_cast<double>(cuts.size() - 2);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
        sum += fit.cost(cuts[i].touch, cuts[i + 1].touch, cuts[i].place, cuts[i + 1].place);
    return sum;
}

} // namespace

double log_prior_of_arrays(std::size_t arrays, std::uint64_t pages) {
    return -static_cast<double>(arrays - 1) * std::log(static_cast<double>(pages));
}

std::vector<Block> arrays_by_touches(std::span<const Touch> touches, std::uint64_t pages, int threads) {
    std::vector<Block> arrays;
    if (threads < 2 || touches.empty()) return arrays;
    const Fit fit(touches, threads);
    const double price = -log_prior_of_arrays(2, pages);
    std::vector<Cut> cuts = best_cuts(fit, possible_cuts(fit, pages), price);
    if (cuts.size() <= 2) return arrays;
    for (int pass = 0; pass < 3; ++pass) // each moves its neighbours' borders
        for (std::size_t i = 1; i + 1 < cuts.size(); ++i)
            settle(fit, cuts[i - 1], cuts[i], cuts[i + 1]);
    // Enough cuts explain anything, owners at random too.
    const double at_random = static_cast<double>(fit.size()) * std::log(threads);
    if (cost_of(fit, cuts, price) >= most_of_random * at_random) return arrays;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
        arrays.push_back({cuts[i].place, cuts[i + 1].place - cuts[i].place});
    return arrays;
}

} // namespace homing
