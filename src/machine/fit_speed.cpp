#include "machine/fit_speed.hpp"

#include "base/running_time.hpp"
#include "model/belief.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace homing {

double seconds_of_fit() {
    constexpr int threads = 4, tries = 3;
    constexpr std::uint64_t pages = 1000;
    const model::Team team = model::Team::packed(threads, threads);
    const auto formulas = std::make_unique<const model::Formulas>(threads); // more than a small stack holds
    const auto prior = std::make_unique<const model::Prior>(*formulas);
    std::vector<model::Touch> touches;
    for (std::uint64_t page = pages / 16; page < pages; page += pages / 8)
        touches.push_back({page, static_cast<std::uint32_t>(page * threads / pages), 0, true});
    double least = 0;
    for (int i = 0; i < tries; ++i) {
        const double begin = thread_seconds();
        const auto belief = std::make_unique<const model::Belief>(*formulas, team, pages, touches, *prior);
        const double took = thread_seconds() - begin;
        least = i == 0 ? took : std::min(least, took);
    }
    return least;
}

} // namespace homing
