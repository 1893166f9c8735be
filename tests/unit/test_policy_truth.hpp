// A made-up area whose owners are known, and samples drawn from it: for the tests of inferred ownership.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "policy/nodes.hpp"
#include "policy/ownership.hpp"
#include "policy/sample_plan.hpp"
#include "policy/samples.hpp"

namespace homing::policy::testing {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    std::uint64_t below(std::uint64_t limit) { return next() % limit; }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  private:
    std::uint64_t state_;
};

// owners(page): the nodes that use it; more than one: all of them alike.
struct Truth {
    std::uint64_t pages;
    int nodes;
    std::function<NodeSet(std::uint64_t)> owners;
};

// Threads in any order on the nodes.
inline std::vector<Node> threads_on_nodes(int threads, int nodes, Random& random) {
    std::vector<Node> map(static_cast<std::size_t>(threads));
    for (std::size_t t = 0; t < map.size(); ++t)
        map[t] = static_cast<Node>(t % static_cast<std::size_t>(nodes));
    for (std::size_t t = map.size(); t > 1; --t)
        std::swap(map[t - 1], map[random.below(t)]);
    return map;
}

inline Truth block(std::uint64_t pages, int nodes, const std::vector<Node>& map) {
    return {pages, nodes, [=](std::uint64_t page) {
                const std::uint64_t width = (pages + map.size() - 1) / map.size();
                return node_bit(map[page / width]);
            }};
}

// Threads share every period of `period` pages (not necessarily whole) in equal parts.
inline Truth cyclic(std::uint64_t pages, int nodes, double period, const std::vector<Node>& map) {
    return {pages, nodes, [=](std::uint64_t page) {
                const double turns = (static_cast<double>(page) + 0.5) / period;
                const auto part =
                    static_cast<std::size_t>((turns - std::floor(turns)) * static_cast<double>(map.size()));
                return node_bit(map[std::min(part, map.size() - 1)]);
            }};
}

inline Truth shared(std::uint64_t pages, int nodes, NodeSet set) {
    return {pages, nodes, [=](std::uint64_t) { return set; }};
}

inline Truth random_owners(std::uint64_t pages, int nodes, std::uint64_t seed) {
    return {pages, nodes, [=](std::uint64_t page) {
                return node_bit(
                    static_cast<Node>(Random(seed + page).below(static_cast<std::uint64_t>(nodes))));
            }};
}

// Areas one after the other.
inline Truth joined(const std::vector<Truth>& parts) {
    Truth all{0, parts.front().nodes, {}};
    std::vector<std::uint64_t> begins;
    for (const Truth& part : parts) {
        begins.push_back(all.pages);
        all.pages += part.pages;
    }
    all.owners = [=](std::uint64_t page) {
        const auto after = std::upper_bound(begins.begin(), begins.end(), page);
        const auto index = static_cast<std::size_t>(after - begins.begin()) - 1;
        return parts[index].owners(page - begins[index]);
    };
    return all;
}

// Each page is touched `touches` times by its owners; with probability `noise` by one random node instead.
inline Samples observe(const Truth& truth, const std::vector<std::uint64_t>& pages, double noise, int touches,
                       Random& random) {
    Samples samples(truth.nodes);
    samples.reserve(pages.size());
    std::vector<std::uint16_t> counts(static_cast<std::size_t>(truth.nodes));
    for (const std::uint64_t page : pages) {
        std::fill(counts.begin(), counts.end(), std::uint16_t{0});
        const NodeSet owners = truth.owners(page);
        if (random.uniform() < noise) {
            counts[random.below(counts.size())] = static_cast<std::uint16_t>(touches);
        } else {
            for (int i = 0; i < touches; ++i)
                ++counts[static_cast<std::size_t>(nth_node(owners, random.next() >> 8))];
        }
        samples.add(page, counts);
    }
    samples.settle();
    return samples;
}

struct Score {
    double right = 0; // share of all pages that go to one of their owners
    double wrong = 0; // share of all pages that go elsewhere
    double unknown = 0;
};

// Exact for small areas, else over twenty thousand random pages.
inline Score score(const Truth& truth, const Ownership& ownership, std::uint64_t seed = 99) {
    Random random(seed);
    const std::uint64_t most = 20000;
    const std::uint64_t tested = std::min(truth.pages, most);
    std::uint64_t right = 0, unknown = 0;
    for (std::uint64_t i = 0; i < tested; ++i) {
        const std::uint64_t page = truth.pages <= most ? i : random.below(truth.pages);
        const Node owner = ownership.owner(page);
        unknown += owner == unknown_node;
        right += contains(truth.owners(page), owner);
    }
    const auto share = [&](std::uint64_t count) {
        return static_cast<double>(count) / static_cast<double>(tested);
    };
    return {share(right), share(tested - right - unknown), share(unknown)};
}

struct Campaign {
    Samples samples;
    Ownership ownership;
    int rounds = 0;
    std::uint64_t faults = 0; // pages sampled, repeated ones each time
};

// Samples and infers until nothing is in doubt, or the rounds are over.
inline Campaign campaign(const Truth& truth, std::size_t first, std::size_t later, int most_rounds,
                         double noise, int touches, std::uint64_t seed) {
    Random random(seed);
    SamplePlan plan(truth.pages, seed ^ 0x5bd1e995);
    Campaign result{Samples(truth.nodes), Ownership(truth.pages, truth.nodes)};
    std::vector<std::uint64_t> pages = plan.first(first);
    while (!pages.empty() && result.rounds < most_rounds) {
        result.faults += pages.size();
        ++result.rounds;
        result.samples.merge(observe(truth, pages, noise, touches, random));
        result.ownership = infer_ownership(truth.pages, result.samples);
        pages = plan.next(result.ownership, result.samples, later);
    }
    return result;
}

// A sample of every `step`th page of [first, end), each touched so often by the node that owner(page) says.
template <typename Owner>
Samples sampled(int nodes, std::uint64_t first, std::uint64_t end, std::uint64_t step, Owner&& owner,
                std::uint16_t touches = 1) {
    Samples samples(nodes);
    for (std::uint64_t page = first; page < end; page += step)
        samples.add(page, static_cast<Node>(owner(page)), touches);
    samples.settle();
    return samples;
}

} // namespace homing::policy::testing
