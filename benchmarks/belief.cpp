// How many touches it takes to know an area, on areas whose owners are known.
//
//     belief [AREAS] [PATTERN]
//
// prints one JSON object: for each pattern and number of touches, means over so many areas (teams of 4 to 16
// nodes with 1 to 4 threads each, 64 to 100,000 pages), in percent of the area's pages:
//   right  all pages lie on node 0 at first; after the verdict they lie on a node that no other is better
//          than (a shared page: it is known to be shared)
//   wrong  they were moved and lie on a node that is worse than the best one
//   harm   all pages lie on their best node at first: they were moved
// A page moves as model::better_home says.
//
// The same areas and touches were shown to the learner of 0.1.0, whose numbers are kept in
// homing/bench/learner_of_0_1_0.json: who changes what is drawn here makes them incomparable.
#include "truth.hpp"

#include "model/belief.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

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
    const bool good = is_right(truth, std::max<model::Node>(target, 0));
    score.right += good;
    score.wrong += target >= 0 && !good;
}

struct Result {
    Score score;
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

    const std::uint64_t judged = std::min(area.pages, most_judged);
    model::Prospect prospect;
    for (std::uint64_t i = 0; i < judged; ++i) {
        const std::uint64_t page = judged == area.pages ? i : below(random, area.pages);
        const Truth truth = truth_of(area, page, weights);
        from_serial.prospect(page, 0, prospect);
        judge(truth, model::better_home(prospect, 0), model::is_spread(prospect), result.score);
        from_own.prospect(page, truth.best, prospect);
        result.score.harm += !truth.spread && model::better_home(prospect, truth.best) >= 0;
    }
    for (double* percent : {&result.score.right, &result.score.wrong, &result.score.harm})
        *percent *= 100.0 / static_cast<double>(judged);
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
                sum.score.add(result.score);
                sum.seconds += result.seconds;
            }
            std::printf("%s{\"touches\": %d, \"right\": %.2f, \"wrong\": %.2f, \"harm\": %.2f, \"us\": %.0f}",
                        inner, touches, sum.score.right / areas, sum.score.wrong / areas,
                        sum.score.harm / areas, 1e6 * sum.seconds / areas);
            inner = ",\n  ";
        }
        std::printf("]");
        std::fflush(stdout);
    }
    std::printf("\n}}\n");
}
