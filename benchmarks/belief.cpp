// How many touches it takes to know an area: the model's belief beside the learner of 0.1.0, on areas whose
// owners are known.
//
//     belief [AREAS] [PATTERN]
//
// prints one JSON object: for each pattern and number of touches, means over so many areas (teams of 4 to 16
// nodes with 1 to 4 threads each, 64 to 100,000 pages), in percent of the area's pages:
//   right  all pages lie on node 0 at first; after the verdict they lie on a node that no other is better
//   than (a shared page:
//          known to be shared)
//   wrong  they were moved and lie on a node that is worse than the best one
//   harm   all pages lie on their best node at first: they were moved
// for the belief (a page moves as model::better_home says) and for
// 0.1.0 (from 40 samples on, or 20 where it is urgent; `old` has 40).
#include "truth.hpp"

#include "model/belief.hpp"
#include "model/verdict.hpp"
#include "policy/ownership.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace policy = homing::policy;

namespace {

using namespace truth;

constexpr int counts[] = {3, 4, 6, 8, 12, 20, 40, 100};
constexpr std::uint64_t most_judged = 2000; ///< pages of an area that are looked at

struct Score {
    double right = 0, wrong = 0, harm = 0;
    void add(const Score& other) { right += other.right, wrong += other.wrong, harm += other.harm; }
};

void judge(const Truth& truth, model::Node target, bool known_shared, Score& score) {
    if (truth.spread) {
        score.right += known_shared;
        return;
    }
    const auto lies = static_cast<std::size_t>(target < 0 ? 0 : target);
    const bool good = truth.share[lies] > truth.share[static_cast<std::size_t>(truth.best)] - .01;
    score.right += good;
    score.wrong += target >= 0 && !good;
}

struct Result {
    Score belief, old;
    double seconds = 0;
};

double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Result measure(const Area& area, int touches_count, Random& random) {
    Result result;
    std::vector<double> weights;
    std::vector<model::Touch> touches;
    for (int i = 0; i < touches_count; ++i)
        touches.push_back(touch(area, below(random, area.pages), random, weights));
    std::vector<model::Node> serial(touches.size(), 0), own;
    for (const model::Touch& one : touches)
        own.push_back(truth_of(area, one.page, weights).best);
    const model::Formulas& formulas = formulas_of(area.team.threads());
    const model::Prior prior(formulas);
    const double begin = now();
    const model::Belief from_serial(formulas, area.team, area.pages, touches, prior, serial);
    result.seconds = now() - begin;
    const model::Belief from_own(formulas, area.team, area.pages, touches, prior, own);

    policy::Ownership ownership(area.pages, area.team.nodes());
    policy::Samples samples(area.team.nodes());
    for (const model::Touch& one : touches)
        samples.add(one.page, area.team.node(static_cast<int>(one.thread)));
    samples.settle();
    if (samples.size() >= std::min<std::size_t>(40, area.pages))
        ownership = policy::infer_ownership(area.pages, samples);

    const std::uint64_t judged = std::min(area.pages, most_judged);
    model::Prospect prospect;
    for (std::uint64_t i = 0; i < judged; ++i) {
        const std::uint64_t page = judged == area.pages ? i : below(random, area.pages);
        const Truth truth = truth_of(area, page, weights);
        from_serial.prospect(page, 0, prospect);
        judge(truth, model::better_home(prospect, 0), model::is_spread(prospect), result.belief);
        from_own.prospect(page, truth.best, prospect);
        result.belief.harm += !truth.spread && model::better_home(prospect, truth.best) >= 0;
        const policy::Node owner = ownership.owner(page);
        bool shared = false;
        for (const policy::Run& run : ownership.runs())
            shared |= page >= run.first && page < run.end && run.pattern == policy::Pattern::shared;
        judge(truth, owner == 0 ? model::unknown_node : owner, shared, result.old);
        result.old.harm += !truth.spread && owner >= 0 && owner != truth.best;
    }
    for (Score* score : {&result.belief, &result.old}) {
        score->right *= 100.0 / static_cast<double>(judged);
        score->wrong *= 100.0 / static_cast<double>(judged);
        score->harm *= 100.0 / static_cast<double>(judged);
    }
    return result;
}

} // namespace

int main(int count, char** words) {
    const int areas = count > 1 ? std::atoi(words[1]) : 200;
    const std::string only = count > 2 ? words[2] : "";
    if (areas < 1) {
        std::fprintf(stderr, "usage: belief [AREAS] [PATTERN]\n");
        return 2;
    }
    std::printf("{\"areas\": %d, \"patterns\": {", areas);
    const char* comma = "";
    for (const Pattern& pattern : patterns()) {
        if (!only.empty() && only != pattern.name) continue;
        std::printf("%s\n\"%s\": [", comma, pattern.name);
        comma = ",";
        const char* inner = "";
        for (const int touches : counts) {
            Result sum;
            for (int i = 0; i < areas; ++i) {
                Random random(static_cast<std::uint64_t>(i) * 7919 + 17);
                const model::Team team = any_team(random);
                const std::uint64_t pages = any_size(random);
                const Result result = measure(pattern.make(team, pages, random), touches, random);
                sum.belief.add(result.belief);
                sum.old.add(result.old);
                sum.seconds += result.seconds;
            }
            std::printf(
                "%s{\"touches\": %d, \"right\": %.2f, \"wrong\": %.2f, \"harm\": %.2f, \"old_right\": %.2f, "
                "\"old_wrong\": %.2f, \"old_harm\": %.2f, \"us\": %.0f}",
                inner, touches, sum.belief.right / areas, sum.belief.wrong / areas, sum.belief.harm / areas,
                sum.old.right / areas, sum.old.wrong / areas, sum.old.harm / areas,
                1e6 * sum.seconds / areas);
            inner = ",\n  ";
        }
        std::printf("]");
        std::fflush(stdout);
    }
    std::printf("\n}}\n");
}
