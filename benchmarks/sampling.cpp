// How many faults it takes to find the owners of 1 GiB: pages sampled and the owners of all inferred, as
// homing does it (the library's own SamplePlan and infer_ownership, with the engine's samples a round),
// against a fault on every page.
//
//     sampling [MIB [SEEDS]]
//
// prints one JSON object. Patterns of 4 nodes over an array of doubles that does not begin at a page's
// border:
//   block    as schedule(static) deals it out
//   cyclic   as schedule(static, k) does: blocks of 50,000 elements, 97.66 pages
//   narrow   the same with blocks of 20,000 elements, 39.06 pages: one in 39 holds elements of two owners
//   tiles    a square array in 2 x 2 tiles: a row of 11,585 elements is 22.6 pages, of two owners
//   mixed    no pattern: in either half pages of two nodes at random
//   shared   every node touches every page
// A sampled page tells who touched it first in some region: its owner, or on a page that holds elements of
// two owners either of them; near the border of a block one in three touches is the neighbour's (it reads its
// halo). `wrong` are pages that go to a node that does not own the element in their middle: the others are
// left where they are. For the shared pattern a page is right where it lies in a run that was recognised as
// shared by all nodes, because such pages are spread evenly over them.
#include "policy/distributions.hpp"
#include "policy/ownership.hpp"
#include "policy/sample_plan.hpp"
#include "policy/samples.hpp"
#include "policy/stability.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace policy = homing::policy;

namespace {

constexpr int nodes = 4;
constexpr std::uint64_t page_size = 4096;
constexpr std::uint64_t element_size = 8;
constexpr std::uint64_t offset = 16; // of the first element in its page: malloc's header
constexpr std::uint64_t halo_pages = 8;
constexpr double halo_share = 1.0 / 3;
constexpr std::size_t samples_a_round = 384; // Engine::plan_samples
constexpr std::size_t thin_check = 16;
constexpr std::uint64_t cyclic_elements = 50000;
constexpr std::uint64_t narrow_elements = 20000;

struct Pattern {
    const char* name;
    std::function<int(std::uint64_t element)> owner; // none: shared by all
    bool halo = false;                               // neighbours read near the borders
};

std::uint64_t page_of(std::uint64_t element) { return (element * element_size + offset) / page_size; }

Pattern distributed(const char* name, const policy::Distribution& distribution) {
    return {name, [distribution](std::uint64_t element) { return distribution.owner(element); },
            distribution.kind() == policy::DistributionKind::block};
}

/// Column-major, as many columns as rows.
Pattern tiled(std::uint64_t extent) {
    const auto side = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(extent)));
    return {"tiles", [side](std::uint64_t element) {
                const std::uint64_t row = element % side, column = std::min(element / side, side - 1);
                return static_cast<int>(2 * row / side + 2 * (2 * column / side));
            }};
}

Pattern mixed(std::uint64_t extent) {
    return {"mixed", [extent](std::uint64_t element) {
                std::uint64_t hash = (page_of(element) + 1) * 0x9e3779b97f4a7c15u;
                hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
                return static_cast<int>((hash >> 40) % 2 + 2 * (2 * element / extent));
            }};
}

struct Found {
    std::uint64_t faults = 0;
    std::uint64_t right = 0, wrong = 0;
    int rounds = 0;
};

class Program {
  public:
    Program(const Pattern& pattern, std::uint64_t pages, std::uint64_t extent, std::uint64_t seed)
        : pattern_(pattern), pages_(pages), extent_(extent), random_(seed) {}

    /// Of the element in the middle of the page.
    policy::Node owner(std::uint64_t page) const {
        return owner_of((page * page_size + page_size / 2 - offset) / element_size);
    }
    /// Who is seen to touch a page that is armed once.
    policy::Node touch(std::uint64_t page) {
        if (!pattern_.owner) return static_cast<policy::Node>(random_() % nodes);
        const policy::Node low = owner_of(page == 0 ? 0 : (page * page_size - offset) / element_size);
        const policy::Node high = owner_of(((page + 1) * page_size - offset) / element_size - 1);
        if (low != high) return random_() % 2 == 0 ? low : high;
        if (pattern_.halo && std::uniform_real_distribution<>()(random_) < halo_share) {
            const policy::Node before = owner(page >= halo_pages ? page - halo_pages : 0);
            const policy::Node after = owner(std::min(pages_ - 1, page + halo_pages));
            if (before != low) return before;
            if (after != low) return after;
        }
        return low;
    }

  private:
    policy::Node owner_of(std::uint64_t element) const {
        return static_cast<policy::Node>(pattern_.owner(std::min(element, extent_ - 1)));
    }

    const Pattern& pattern_;
    std::uint64_t pages_, extent_;
    std::mt19937_64 random_;
};

/// Moves pages to their owners; returns how many were elsewhere.
std::uint64_t send_home(const policy::Ownership& ownership, std::vector<policy::Node>& homes) {
    std::uint64_t moved = 0;
    ownership.for_each_range({0, homes.size()}, [&](policy::PageRange range, policy::Node node) {
        for (std::uint64_t page = range.first; page < range.end; ++page) {
            moved += homes[page] != node;
            homes[page] = node;
        }
    });
    return moved;
}

Found find_owners(const Pattern& pattern, std::uint64_t pages, std::uint64_t extent, std::uint64_t seed) {
    Program program(pattern, pages, extent, seed * 7919);
    policy::SamplePlan plan(pages, seed);
    policy::Samples samples(nodes);
    policy::Ownership ownership(pages, nodes);
    Found found;
    // All pages lie on node 0. After each round those move whose owner is another node; homing rests when few
    // do.
    std::vector<policy::Node> homes(pages, 0);
    policy::Stability stability;
    std::vector<std::uint64_t> wanted = plan.first(samples_a_round);
    while (!wanted.empty() && !stability.settled()) {
        stability.begin_iteration();
        policy::Samples fresh(nodes);
        for (const std::uint64_t page : wanted)
            fresh.add(page, program.touch(page));
        fresh.settle();
        found.faults += wanted.size();
        ++found.rounds;
        samples.merge(fresh);
        ownership = policy::infer_ownership(pages, samples);
        stability.observed(send_home(ownership, homes), pages);
        wanted = plan.next(ownership, samples, samples_a_round);
        const auto thin = plan.check(thin_check);
        wanted.insert(wanted.end(), thin.begin(), thin.end());
    }
    const policy::NodeSet all = policy::all_nodes(nodes);
    for (const policy::Run& run : ownership.runs())
        if (!pattern.owner && run.pattern == policy::Pattern::shared && run.nodes == all)
            found.right += run.end - run.first;
    for (std::uint64_t page = 0; pattern.owner && page < pages; ++page) {
        const policy::Node owner = ownership.owner(page);
        found.right += owner == program.owner(page);
        found.wrong += owner != policy::unknown_node && owner != program.owner(page);
    }
    return found;
}

} // namespace

int main(int count, char** words) {
    const std::uint64_t mebibytes = count > 1 ? std::strtoull(words[1], nullptr, 10) : 1024;
    const int seeds = count > 2 ? std::atoi(words[2]) : 20;
    if (mebibytes < 1 || seeds < 1) {
        std::fprintf(stderr, "usage: sampling [MIB [SEEDS]]\n");
        return 2;
    }
    const std::uint64_t pages = mebibytes * 256;
    const std::uint64_t extent = (pages * page_size - offset) / element_size;
    const Pattern patterns[] = {
        distributed("block", policy::Distribution::block(extent, nodes)),
        distributed("cyclic", policy::Distribution::cyclic(extent, nodes, cyclic_elements)),
        distributed("narrow", policy::Distribution::cyclic(extent, nodes, narrow_elements)),
        tiled(extent),
        mixed(extent),
        {"shared", {}},
    };
    std::printf("{\"pages\": %llu, \"nodes\": %d, \"samples_a_round\": %zu, \"patterns\": {",
                static_cast<unsigned long long>(pages), nodes, samples_a_round);
    const char* comma = "";
    for (const Pattern& pattern : patterns) {
        std::printf("%s\"%s\": [", comma, pattern.name);
        comma = ", ";
        for (int seed = 1; seed <= seeds; ++seed) {
            const Found found = find_owners(pattern, pages, extent, static_cast<std::uint64_t>(seed));
            std::printf("%s{\"faults\": %llu, \"right\": %llu, \"wrong\": %llu, \"rounds\": %d}",
                        seed > 1 ? ", " : "", static_cast<unsigned long long>(found.faults),
                        static_cast<unsigned long long>(found.right),
                        static_cast<unsigned long long>(found.wrong), found.rounds);
        }
        std::printf("]");
    }
    std::printf("}}\n");
}
