// Areas whose owners are known, and touches of them: for the benchmarks of the model.
#pragma once

#include "model/belief.hpp"
#include "model/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace truth {

namespace model = homing::model;

using Random = std::mt19937_64;

inline double uniform(Random& random) { return std::uniform_real_distribution<>()(random); }
inline std::uint64_t below(Random& random, std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random);
}

struct Area {
    model::Team team{{0}, 1};
    std::uint64_t pages = 0;
    /// Weights of the threads that touch a page, not normalised.
    std::function<void(std::uint64_t page, std::vector<double>& weights)> users;
    double stray = 0, master = 0;
};

/// Owner by a function of the position; `reach`: halos of so many blocks by the neighbours, with 1 in 3 of
/// the touches there.
using Owner = std::function<int(double y)>;
inline Area owned(model::Team team, std::uint64_t pages, Owner owner, double halo = 0) {
    return {team, pages, [=](std::uint64_t page, std::vector<double>& weights) {
                const double y = (static_cast<double>(page) + .5) / static_cast<double>(pages);
                const int mine = owner(y);
                weights[static_cast<std::size_t>(mine)] += 1;
                for (const double other : {y - halo, y + halo})
                    if (halo > 0 && other > 0 && other < 1 && owner(other) != mine)
                        weights[static_cast<std::size_t>(owner(other))] += .5;
            }};
}

/// GEN_BLOCK with these borders, ascending.
inline Owner between(std::vector<double> borders) {
    return [borders = std::move(borders)](double y) {
        return static_cast<int>(std::ranges::upper_bound(borders, y) - borders.begin());
    };
}
/// Borders anywhere.
inline Owner anywhere(int threads, Random& random) {
    std::vector<double> borders;
    for (int i = 1; i < threads; ++i)
        borders.push_back(uniform(random));
    std::ranges::sort(borders);
    return between(std::move(borders));
}

inline int clamp_thread(double value, int threads) {
    return std::clamp(static_cast<int>(std::floor(value)), 0, threads - 1);
}

struct Pattern {
    const char* name;
    std::function<Area(model::Team, std::uint64_t, Random&)> make;
};

inline std::vector<Pattern> patterns() {
    const auto block = [](int T) { return [T](double y) { return clamp_thread(y * T, T); }; };
    std::vector<Pattern> all;
    const auto add = [&](const char* name, std::function<Area(model::Team, std::uint64_t, Random&)> make) {
        all.push_back({name, std::move(make)});
    };
    add("block", [=](model::Team team, std::uint64_t pages, Random&) {
        return owned(team, pages, block(team.threads()));
    });
    add("halo_5", [=](model::Team team, std::uint64_t pages, Random&) {
        return owned(team, pages, block(team.threads()), .05 / team.threads());
    });
    add("stray_10", [=](model::Team team, std::uint64_t pages, Random&) {
        Area area = owned(team, pages, block(team.threads()));
        area.stray = .1;
        return area;
    });
    add("half_threads", [=](model::Team team, std::uint64_t pages, Random&) {
        return owned(team, pages, block(std::max(1, team.threads() / 2)));
    });
    add("single", [=](model::Team team, std::uint64_t pages, Random& random) {
        const int thread = uniform(random) < .5
                               ? 0
                               : static_cast<int>(below(random, static_cast<std::uint64_t>(team.threads())));
        return owned(team, pages, [=](double) { return thread; });
    });
    add("two_grids", [=](model::Team team, std::uint64_t pages, Random& random) {
        const double cut = .3 + .6 * uniform(random);
        const int T = team.threads();
        return owned(team, pages, [=](double y) {
            return clamp_thread((y < cut ? y / cut : (y - cut) / (1 - cut)) * T, T);
        });
    });
    add("cyclic", [=](model::Team team, std::uint64_t pages, Random& random) {
        const int T = team.threads();
        const std::uint64_t most = std::max<std::uint64_t>(
            1, std::min<std::uint64_t>(16, pages / (2 * static_cast<std::uint64_t>(T))));
        const auto k = static_cast<double>(1 + below(random, most));
        return owned(team, pages, [=](double y) {
            return static_cast<int>(std::fmod(std::floor(y * static_cast<double>(pages) / k), T));
        });
    });
    add("tiles", [=](model::Team team, std::uint64_t pages, Random& random) {
        const int T = team.threads();
        pages = std::max<std::uint64_t>(pages, 16 * static_cast<std::uint64_t>(T));
        int outer = 1;
        while (outer * outer * 4 <= T && T % (outer * 2) == 0)
            outer *= 2;
        const int inner = T / outer;
        const double most = std::min(256.0, static_cast<double>(pages) / inner / 2);
        const double rows =
            std::max<double>(outer * 2, std::floor(8 + uniform(random) * std::max(0.0, most - 8)));
        return owned(team, pages, [=](double y) {
            const double row = y * rows;
            return clamp_thread(y * outer, outer) * inner +
                   clamp_thread((row - std::floor(row)) * inner, inner);
        });
    });
    add("shared", [=](model::Team team, std::uint64_t pages, Random&) {
        return Area{team, pages,
                    [](std::uint64_t, std::vector<double>& weights) { std::ranges::fill(weights, 1.0); }};
    });
    add("borders", [=](model::Team team, std::uint64_t pages, Random& random) {
        return owned(team, pages, anywhere(team.threads(), random));
    });
    add("unordered", [=](model::Team team, std::uint64_t pages, Random& random) {
        const int T = team.threads();
        auto order = std::make_shared<std::vector<int>>();
        for (int i = 0; i < T; ++i)
            order->push_back(i);
        std::ranges::shuffle(*order, random);
        return owned(team, pages,
                     [=](double y) { return (*order)[static_cast<std::size_t>(clamp_thread(y * T, T))]; });
    });
    add("offset", [=](model::Team team, std::uint64_t pages, Random& random) {
        const int T = team.threads();
        const double shift = uniform(random);
        return owned(team, pages, [=](double y) { return clamp_thread(std::fmod(y + shift, 1.0) * T, T); });
    });
    add("master_30", [=](model::Team team, std::uint64_t pages, Random&) {
        Area area = owned(team, pages, block(team.threads()));
        area.master = .3;
        return area;
    });
    add("gathered", [=](model::Team team, std::uint64_t pages, Random&) {
        const int T = team.threads();
        return Area{team, pages, [=](std::uint64_t page, std::vector<double>& weights) {
                        const double y = (static_cast<double>(page) + .5) / static_cast<double>(pages);
                        for (int t = 0; t < T; ++t)
                            weights[static_cast<std::size_t>(t)] += std::exp(-std::abs(y * T - t - .5));
                    }};
    });
    add("irregular", [=](model::Team team, std::uint64_t pages, Random& random) {
        const int T = team.threads();
        const std::uint64_t seed = random();
        return Area{team, pages, [=](std::uint64_t page, std::vector<double>& weights) {
                        Random here(seed ^ (page * 0x9e3779b97f4a7c15u));
                        weights[static_cast<std::size_t>(below(here, static_cast<std::uint64_t>(T)))] += 1;
                    }};
    });
    return all;
}

inline model::Touch touch(const Area& area, std::uint64_t page, Random& random,
                          std::vector<double>& weights) {
    const double draw = uniform(random);
    const auto threads = static_cast<std::uint64_t>(area.team.threads());
    if (draw < area.master) return {page, 0, 0, false};
    if (draw < area.master + area.stray)
        return {page, static_cast<std::uint32_t>(below(random, threads)), 0, false};
    weights.assign(threads, 0);
    area.users(page, weights);
    return {
        page,
        static_cast<std::uint32_t>(std::discrete_distribution<int>(weights.begin(), weights.end())(random)),
        0, false};
}

/// Who touched each page last.
inline model::Users users_of(const Area& area, const std::vector<model::Touch>& touches) {
    std::map<std::uint64_t, model::Node> users;
    for (const model::Touch& one : touches)
        users[one.page] = area.team.node(static_cast<int>(one.thread));
    model::Users out;
    for (const auto& [page, node] : users)
        out.push_back({page, node});
    return out;
}

/// Share of touches from each node, and the best.
struct Truth {
    std::vector<double> share;
    model::Node best;
    bool spread;
};
inline Truth truth_of(const Area& area, std::uint64_t page, std::vector<double>& weights) {
    weights.assign(static_cast<std::size_t>(area.team.threads()), 0);
    area.users(page, weights);
    Truth truth{std::vector<double>(static_cast<std::size_t>(area.team.nodes()), 0), 0, false};
    double sum = 0;
    for (std::size_t t = 0; t < weights.size(); ++t) {
        truth.share[static_cast<std::size_t>(area.team.node(static_cast<int>(t)))] += weights[t];
        sum += weights[t];
    }
    for (double& share : truth.share)
        share /= sum;
    const auto best = std::ranges::max_element(truth.share);
    truth.best = static_cast<model::Node>(best - truth.share.begin());
    truth.spread = *best - *std::ranges::min_element(truth.share) < .05;
    return truth;
}

/// Is a page well off on a node: is none better?
inline bool is_right(const Truth& truth, model::Node lies) {
    return truth.share[static_cast<std::size_t>(lies)] >
           truth.share[static_cast<std::size_t>(truth.best)] - .01;
}
/// Where a page that lies on node 0 goes; unknown_node: nowhere.
inline model::Node target_of(const model::Prospect& prospect) {
    return model::is_spread(prospect) ? model::unknown_node : model::better_home(prospect, 0);
}

inline const model::Formulas& formulas_of(int threads) {
    static std::map<int, std::unique_ptr<model::Formulas>> all;
    auto& one = all[threads];
    if (!one) one = std::make_unique<model::Formulas>(threads);
    return *one;
}

/// A team of 4 to 16 nodes with 1 to 4 threads each, mostly bound close.
inline model::Team any_team(Random& random) {
    const int nodes = 4 << below(random, 3);
    const int threads = nodes << below(random, 3);
    if (uniform(random) < .75) return model::Team::packed(threads, nodes);
    std::vector<model::Node> scattered; // round the nodes
    for (int thread = 0; thread < threads; ++thread)
        scattered.push_back(static_cast<model::Node>(thread % nodes));
    return {scattered, nodes};
}
/// 64 to 100,000 pages.
inline std::uint64_t any_size(Random& random) {
    return static_cast<std::uint64_t>(64 * std::pow(1600.0, uniform(random)));
}

} // namespace truth
