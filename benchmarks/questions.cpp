// What 200 touches bring home where a program has 60 areas: spent by worth, by traffic, or by size.
//
//     questions [PROGRAMS]
//
// prints one JSON object: for each way to spend them, the share of the possible gain (traffic that becomes
// local) after 50, 100, 200 touches, mean and worst over so many made-up programs. A program has 60 areas of
// 12 allocation sites; areas of a site are mostly of one distribution. Sizes are 64 to 100,000 pages, traffic
// goes with size and varies by factors of 20. All pages lie on node 0. Areas of one site share a prior, at
// the trust given (siblings_0 .. siblings_1: by worth, with other trusts).
#include "truth.hpp"

#include "model/questions.hpp"

#include <cstdio>
#include <cstdlib>
#include <optional>

using namespace truth;

namespace {

constexpr int areas = 60, sites = 12;
constexpr std::uint32_t round_touches = 10;
constexpr std::uint32_t stops[] = {50, 100, 200};
constexpr std::uint64_t most_judged = 200;

enum class Spending { worth, traffic, size };

struct Observed {
    Area area;
    int site;
    double traffic;
    std::vector<model::Touch> touches;
    std::optional<model::Belief> belief;
    double ignorance = 1;
};

struct Program {
    model::Team team{{0}, 1};
    std::vector<Observed> areas;
};

Program make_program(Random& random) {
    static const std::vector<Pattern> all = patterns();
    Program program{any_team(random), {}};
    std::vector<std::size_t> kinds;
    for (int site = 0; site < sites;
         ++site) // half of the sites are BLOCK, as in the programs that were recorded
        kinds.push_back(uniform(random) < .5 ? 0 : below(random, all.size()));
    std::vector<std::uint64_t> sizes;
    for (int site = 0; site < sites; ++site)
        sizes.push_back(any_size(random));
    for (int i = 0; i < areas; ++i) {
        const int site = static_cast<int>(below(random, sites));
        const auto s = static_cast<std::size_t>(site);
        const std::uint64_t pages = uniform(random) < .7 ? sizes[s] : any_size(random);
        const std::size_t kind = uniform(random) < .85 ? kinds[s] : below(random, all.size());
        const double traffic = static_cast<double>(pages) * std::pow(20.0, uniform(random));
        program.areas.push_back({all[kind].make(program.team, pages, random), site, traffic, {}, {}, 1});
    }
    return program;
}

model::Prior prior_of(const Program& program, const Observed& one, const model::Prior& base, double trust) {
    model::Prior prior = base;
    if (trust == 0) return prior;
    int siblings = 0;
    std::optional<model::Prior> shown;
    for (const Observed& other : program.areas)
        if (&other != &one && other.site == one.site && other.belief && other.touches.size() >= 4) {
            ++siblings;
            const model::Prior posterior = other.belief->as_prior();
            shown = shown ? shown->mixed_with(posterior, 1.0 / siblings) : posterior;
        }
    return shown ? prior.mixed_with(*shown, trust) : prior;
}

/// Share of the possible gain that the verdicts bring.
double gain_share(const Program& program, Random& random) {
    double possible = 0, reached = 0;
    std::vector<double> weights;
    model::Prospect prospect;
    for (const Observed& one : program.areas) {
        const std::uint64_t judged = std::min(one.area.pages, most_judged);
        for (std::uint64_t i = 0; i < judged; ++i) {
            const std::uint64_t page = judged == one.area.pages ? i : below(random, one.area.pages);
            const Truth real = truth_of(one.area, page, weights);
            const double each = one.traffic / static_cast<double>(judged);
            possible += each * (real.share[static_cast<std::size_t>(real.best)] - real.share[0]);
            if (!one.belief) continue;
            one.belief->prospect(page, 0, prospect);
            const model::Node to = target_of(prospect);
            if (to != model::unknown_node)
                reached += each * (real.share[static_cast<std::size_t>(to)] - real.share[0]);
        }
    }
    return reached / possible;
}

/// What knowing all owners would add to the share of local touches once what is believed has moved, of an
/// area that lies on node 0: from some pages, as the engine does it (engine/judgement.cpp).
double ignorance(const model::Belief& belief) {
    const std::uint64_t looks = std::min<std::uint64_t>(belief.pages(), 64);
    model::Prospect prospect;
    double sum = 0;
    for (std::uint64_t i = 0; i < looks; ++i) {
        belief.prospect((2 * i + 1) * belief.pages() / (2 * looks), 0, prospect);
        const model::Node to = model::better_home(prospect, 0);
        const double local = prospect.local[static_cast<std::size_t>(std::max<model::Node>(to, 0))];
        if (!model::is_spread(prospect)) sum += std::max(prospect.known - local, 0.0);
    }
    return sum / static_cast<double>(looks);
}

std::vector<double> run(std::uint64_t seed, Spending spending, double trust) {
    Random random(seed);
    Program program = make_program(random);
    const model::Formulas& formulas = formulas_of(program.team.threads());
    const model::Prior base(formulas);
    std::vector<double> shares, weights;
    std::uint32_t spent = 0;
    for (const std::uint32_t stop : stops) {
        while (spent < stop) {
            std::vector<model::Subject> subjects;
            for (const Observed& one : program.areas) {
                model::Subject subject{one.area.pages, one.traffic, one.ignorance,
                                       static_cast<double>(one.touches.size())};
                if (spending == Spending::traffic) subject.ignorance = 1;
                if (spending == Spending::size) {
                    subject.ignorance = 1;
                    subject.traffic_ns = static_cast<double>(one.area.pages);
                }
                subjects.push_back(subject);
            }
            const auto counts = model::share_out(subjects, round_touches, seed + spent);
            for (std::size_t i = 0; i < counts.size(); ++i) {
                Observed& one = program.areas[i];
                for (const std::uint64_t page :
                     model::pages_to_ask(one.belief ? &*one.belief : nullptr, users_of(one.area, one.touches),
                                         one.area.pages, one.touches.size(), counts[i], i))
                    one.touches.push_back(touch(one.area, page, random, weights));
                if (counts[i] == 0) continue;
                const std::vector<model::Node> homes(one.touches.size(), 0);
                one.belief.emplace(formulas, program.team, one.area.pages, one.touches,
                                   prior_of(program, one, base, trust), homes);
                one.ignorance = std::max(ignorance(*one.belief), 1e-3);
            }
            spent += round_touches;
        }
        shares.push_back(gain_share(program, random));
    }
    return shares;
}

} // namespace

int main(int count, char** words) {
    const int programs = count > 1 ? std::atoi(words[1]) : 20;
    if (programs < 1) {
        std::fprintf(stderr, "usage: questions [PROGRAMS]\n");
        return 2;
    }
    struct Way {
        const char* name;
        Spending spending;
        double trust;
    };
    constexpr double usual = model::tuning::equal_share;
    const Way ways[] = {{"worth", Spending::worth, usual},     {"traffic", Spending::traffic, usual},
                        {"size", Spending::size, usual},       {"siblings_0", Spending::worth, 0},
                        {"siblings_0.1", Spending::worth, .1}, {"siblings_0.6", Spending::worth, .6},
                        {"siblings_1", Spending::worth, 1}};
    std::printf("{\"programs\": %d, \"ways\": {", programs);
    const char* comma = "";
    for (const Way& way : ways) {
        double sum[3] = {}, worst[3] = {1, 1, 1};
        for (int i = 0; i < programs; ++i) {
            const std::vector<double> shares =
                run(static_cast<std::uint64_t>(i) * 104729 + 7, way.spending, way.trust);
            for (std::size_t k = 0; k < 3; ++k) {
                sum[k] += shares[k];
                worst[k] = std::min(worst[k], shares[k]);
            }
        }
        std::printf("%s\n\"%s\": {", comma, way.name);
        comma = ",";
        for (std::size_t k = 0; k < 3; ++k)
            std::printf("%s\"%u\": [%.3f, %.3f]", k ? ", " : "", stops[k], sum[k] / programs, worst[k]);
        std::printf("}");
        std::fflush(stdout);
    }
    std::printf("\n}}\n");
}
