// How well borders are known after so many touches that the model chose itself.
//
//     borders [AREAS]
//
// prints one JSON object: for each kind of area, and after 8, 16, ... touches, means over so many areas (256
// to 25,600 pages, on 4 nodes with 1 to 4 threads each), in percent of the pages that are used: [right,
// wrong] as in belief.cpp. All pages lie on node 0. Touches come in rounds of four; a belief is made anew
// after a quarter as many touches as it was made of.
#include "truth.hpp"

#include "model/questions.hpp"

#include <cstdio>
#include <cstdlib>
#include <optional>

namespace {

using namespace truth;

constexpr std::size_t stops[] = {8, 16, 32, 64, 128};
constexpr std::uint64_t most_judged = 1000;

struct Used {
    Area area;
    double part = 1; ///< of the pages, from the first on
};

struct Kind {
    const char* name;
    std::function<Used(const model::Team&, std::uint64_t, Random&)> make;
};

/// BLOCK over the first part of an array.
Owner even(int threads, double part) {
    return [=](double y) { return clamp_thread(y / part * threads, threads); };
}

/// BLOCK over rows of one length, but for half as long ones in so large a part at either end of the array.
Owner light_ends(int threads, double light) {
    return [=](double y) {
        const double before = std::min(y, light), behind = std::max(y - (1 - light), 0.0);
        return clamp_thread((y + before + behind) / (1 + 2 * light) * threads, threads);
    };
}

/// Borders up to so many blocks from BLOCK's.
Owner uneven(int threads, Random& random) {
    constexpr double most = .15;
    std::vector<double> borders;
    for (int i = 1; i < threads; ++i)
        borders.push_back((i + most * (2 * uniform(random) - 1)) / threads);
    return between(std::move(borders));
}

std::vector<Kind> kinds() {
    return {
        {"block", [](const model::Team& team, std::uint64_t pages,
                     Random&) { return Used{owned(team, pages, even(team.threads(), 1))}; }},
        {"halo_5",
         [](const model::Team& team, std::uint64_t pages, Random&) {
             return Used{owned(team, pages, even(team.threads(), 1), .05 / team.threads())};
         }},
        {"used_part",
         [](const model::Team& team, std::uint64_t pages, Random& random) {
             const double part = .7 + .3 * uniform(random);
             return Used{owned(team, pages, even(team.threads(), part)), part};
         }},
        {"light_ends",
         [](const model::Team& team, std::uint64_t pages, Random& random) {
             return Used{owned(team, pages, light_ends(team.threads(), .03 * uniform(random)))};
         }},
        {"uneven", [](const model::Team& team, std::uint64_t pages,
                      Random& random) { return Used{owned(team, pages, uneven(team.threads(), random))}; }},
        {"uneven_halo",
         [](const model::Team& team, std::uint64_t pages, Random& random) {
             return Used{owned(team, pages, uneven(team.threads(), random), .05 / team.threads())};
         }},
        {"anywhere",
         [](const model::Team& team, std::uint64_t pages, Random& random) {
             return Used{owned(team, pages, anywhere(team.threads(), random))};
         }},
    };
}

struct Score {
    double right = 0, wrong = 0;
};

/// Shares of the used pages.
Score judge(const Used& used, const model::Belief& belief) {
    const auto pages = static_cast<std::uint64_t>(used.part * static_cast<double>(used.area.pages));
    const std::uint64_t judged = std::min(pages, most_judged);
    model::Prospect prospect;
    std::vector<double> weights;
    Score score;
    for (std::uint64_t i = 0; i < judged; ++i) {
        const std::uint64_t page = i * pages / judged;
        const Truth truth = truth_of(used.area, page, weights);
        belief.prospect(page, 0, prospect);
        const model::Node to = target_of(prospect);
        const bool good = is_right(truth, std::max<model::Node>(to, 0));
        score.right += good / static_cast<double>(judged);
        score.wrong += (to >= 0 && !good) / static_cast<double>(judged);
    }
    return score;
}

/// After each of stops.
std::vector<Score> run(const Kind& kind, std::uint64_t seed) {
    Random random(seed * 7919 + 13);
    const int nodes = 4;
    const model::Team team = model::Team::packed(nodes << below(random, 3), nodes);
    const auto pages = static_cast<std::uint64_t>(256 * std::pow(100.0, uniform(random)));
    const Used used = kind.make(team, pages, random);
    const model::Formulas& formulas = formulas_of(team.threads());
    std::vector<model::Touch> touches;
    std::optional<model::Belief> belief;
    std::size_t fitted = 0;
    const auto fit = [&] {
        const std::vector<model::Node> homes(touches.size(), 0);
        belief.emplace(formulas, team, pages, touches, model::Prior(formulas), homes);
        fitted = touches.size();
    };
    std::vector<double> weights;
    std::vector<Score> scores;
    std::uint64_t asked = 0;
    for (const std::size_t stop : stops) {
        while (touches.size() < stop) {
            constexpr std::uint32_t round = 4;
            for (const std::uint64_t page : model::pages_to_ask(
                     belief ? &*belief : nullptr, users_of(used.area, touches), pages, asked, round, seed))
                if (static_cast<double>(page) < used.part * static_cast<double>(pages) &&
                    touches.size() < stop)
                    touches.push_back(touch(used.area, page, random, weights));
            asked += round;
            if (4 * touches.size() >= 5 * fitted) fit();
        }
        fit();
        scores.push_back(judge(used, *belief));
    }
    return scores;
}

} // namespace

int main(int count, char** words) {
    const int areas = count > 1 ? std::atoi(words[1]) : 200;
    if (areas < 1) {
        std::fprintf(stderr, "usage: borders [AREAS]\n");
        return 2;
    }
    std::printf("{\"areas\": %d, \"kinds\": {", areas);
    const char* comma = "";
    for (const Kind& kind : kinds()) {
        Score sum[std::size(stops)];
        for (int i = 0; i < areas; ++i) {
            const std::vector<Score> scores = run(kind, static_cast<std::uint64_t>(i));
            for (std::size_t k = 0; k < scores.size(); ++k) {
                sum[k].right += scores[k].right;
                sum[k].wrong += scores[k].wrong;
            }
        }
        std::printf("%s\n\"%s\": {", comma, kind.name);
        comma = ",";
        for (std::size_t k = 0; k < std::size(stops); ++k)
            std::printf("%s\"%zu\": [%.2f, %.2f]", k ? ", " : "", stops[k], 100 * sum[k].right / areas,
                        100 * sum[k].wrong / areas);
        std::printf("}");
        std::fflush(stdout);
    }
    std::printf("\n}}\n");
}
