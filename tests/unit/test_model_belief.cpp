// The belief over distributions: what few touches decide, and that the answer follows its input (permuted,
// scaled, reordered).
#include "base/invariant.hpp"
#include "belief_test.hpp"
#include "model/verdict.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace homing::model::model_belief_tests {
namespace {

/// Touches of random pages by the threads that `owner` names for a position.
struct Program {
    Team team;
    std::uint64_t pages;
    std::function<int(double)> owner;
    double strays = 0;

    std::vector<Touch> touch(std::size_t count, std::uint64_t seed) const {
        std::vector<Touch> touches;
        std::uint64_t state = seed * 2654435761u + 88172645463325252u;
        const auto next = [&] {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            return state >> 11;
        };
        const auto uniform = [&] { return static_cast<double>(next()) * 0x1p-53; };
        while (touches.size() < count) {
            const auto page = static_cast<std::uint64_t>(uniform() * static_cast<double>(pages));
            const double y = (static_cast<double>(page) + .5) / static_cast<double>(pages);
            const auto stray = static_cast<int>(uniform() * team.threads());
            const int thread = uniform() < strays ? stray : owner(y);
            touches.push_back({page, static_cast<std::uint32_t>(thread), 0, false});
        }
        return touches;
    }
};

Program block(int threads, int nodes, std::uint64_t pages) {
    return {Team::packed(threads, nodes), pages,
            [threads](double y) { return std::min(threads - 1, static_cast<int>(y * threads)); }};
}

Belief believe(const Program& program, const std::vector<Touch>& touches) {
    static std::vector<std::unique_ptr<Formulas>> kept; // a belief refers to its formulas
    const auto found =
        std::ranges::find(kept, program.team.threads(), [](const auto& one) { return one->threads(); });
    if (found == kept.end()) kept.push_back(std::make_unique<Formulas>(program.team.threads()));
    const Formulas& formulas =
        **std::ranges::find(kept, program.team.threads(), [](const auto& one) { return one->threads(); });
    return {formulas, program.team, program.pages, touches, Prior(formulas)};
}

/// Share of the pages whose likeliest node is that of their owner.
double right_share(const Program& program, const Belief& belief) {
    std::uint64_t right = 0, looked = 0;
    const std::uint64_t step = std::max<std::uint64_t>(1, program.pages / 500);
    for (std::uint64_t page = 0; page < program.pages; page += step, ++looked) {
        const double y = (static_cast<double>(page) + .5) / static_cast<double>(program.pages);
        right += likeliest_node(belief, page) == program.team.node(program.owner(y));
    }
    return static_cast<double>(right) / static_cast<double>(looked);
}

double mean_right_share(const Program& program, std::size_t touches, int seeds = 20) {
    double sum = 0;
    for (int seed = 1; seed <= seeds; ++seed)
        sum +=
            right_share(program, believe(program, program.touch(touches, static_cast<std::uint64_t>(seed))));
    return sum / seeds;
}

TEST(BeliefTest, BlockIsDecidedByFourTouches) {
    EXPECT_GT(mean_right_share(block(4, 4, 1000), 4), .97);
    EXPECT_GT(mean_right_share(block(16, 4, 5000), 4), .97);
    EXPECT_GT(mean_right_share(block(64, 16, 20000), 4), .97);
}

TEST(BeliefTest, BlockWithTenPercentStrayTouchesIsDecidedByEightTouches) {
    Program program = block(16, 4, 5000);
    program.strays = .1;
    EXPECT_GT(mean_right_share(program, 8), .97);
}

TEST(BeliefTest, SingleIsDecidedByEightTouches) {
    Program program{Team::packed(16, 4), 3000, [](double) { return 9; }};
    EXPECT_GT(mean_right_share(program, 8), .97);
    const Belief belief = believe(program, program.touch(8, 1));
    EXPECT_EQ(belief.likeliest(), Family::single);
    EXPECT_EQ(belief.words(), "SINGLE on thread 9");
}

TEST(BeliefTest, CyclicTilesAndTwoGridsAreDecidedByFortyTouches) {
    const Team team = Team::packed(16, 4);
    const Program cyclic{team, 6400, [](double y) { return static_cast<int>(y * 6400 / 5) % 16; }};
    EXPECT_GT(mean_right_share(cyclic, 40), .99);
    const Program a_round_and_a_third{Team::packed(64, 16), 87,
                                      [](double y) { return static_cast<int>(y * 87) % 64; }};
    EXPECT_GT(mean_right_share(a_round_and_a_third, 40), .99);
    const Program tiles{team, 20000, [](double y) {
                            const double row = y * 90;
                            return static_cast<int>(y * 4) * 4 +
                                   static_cast<int>((row - std::floor(row)) * 4);
                        }};
    EXPECT_GT(mean_right_share(tiles, 40), .99);
    const Program grids{team, 20000, [](double y) {
                            return std::min(15, static_cast<int>((y < .61 ? y / .61 : (y - .61) / .39) * 16));
                        }};
    EXPECT_GT(mean_right_share(grids, 40), .97);
}

TEST(BeliefTest, SharedIsToldFromBlockByFortyTouches) {
    Program program = block(16, 4, 5000);
    program.strays = 1; // any thread touches any page
    const Belief belief = believe(program, program.touch(40, 3));
    EXPECT_GT(belief.probability(Family::shared), .9);
    Prospect prospect;
    belief.prospect(17, unknown_node, prospect);
    EXPECT_GT(prospect.spread, .8);
}

TEST(BeliefTest, PagesThatLieRightArePredictedToBeUsedFromWhereTheyLie) {
    // Each page belongs to a node of its own, and lies there.
    const Team team = Team::packed(8, 4);
    const Formulas formulas(8);
    std::vector<Touch> touches;
    std::vector<Node> homes;
    for (std::uint64_t i = 0; i < 40; ++i) {
        const auto thread = static_cast<std::uint32_t>((i * 2654435761u >> 7) % 8);
        touches.push_back({i * 97 % 4000, thread, 0, false});
        homes.push_back(team.node(static_cast<int>(thread)));
    }
    const Belief belief(formulas, team, 4000, touches, Prior(formulas), homes);
    EXPECT_EQ(belief.likeliest(), Family::home);
    Prospect prospect;
    for (std::uint64_t page = 1; page < 4000; page += 101)
        for (Node home = 0; home < 4; ++home) {
            belief.prospect(page, home, prospect);
            EXPECT_EQ(std::ranges::max_element(prospect.best) - prospect.best.begin(), home);
        }
}

TEST(BeliefTest, SharesOfTouchesByTheMasterDoNotHideABlock) {
    Program program = block(16, 4, 5000);
    const Formulas formulas(16);
    std::vector<Touch> touches = program.touch(30, 5);
    for (std::size_t i = 0; i < touches.size(); i += 3)
        touches[i].thread = 0;
    const Belief belief(formulas, program.team, program.pages, touches, Prior(formulas));
    EXPECT_GT(right_share(program, belief), .97);
}

TEST(BeliefTest, HalosLeaveTheBordersWhereTheyAre) {
    const Program program = block(8, 4, 4000);
    std::vector<Touch> touches = program.touch(40, 9);
    for (Touch& touch : touches) { // a neighbour reads the first and last tenth of each block
        const double within = std::fmod((static_cast<double>(touch.page) + .5) / 500, 1.0);
        if (within > .95 && touch.thread < 7) ++touch.thread;
    }
    EXPECT_GT(right_share(program, believe(program, touches)), .98);
}

/// Blocks of 900 to 1100 pages. The next thread reads the last 60 of each first, whose owner writes them.
TEST(BeliefTest, MostOfWhatANeighbourReadsFirstStaysWithItsOwnerWhoWritesIt) {
    const Team team = Team::packed(4, 4);
    const Formulas formulas(4);
    const auto owner = [](std::uint64_t page) { return (page >= 900) + (page >= 2000) + (page >= 3100); };
    std::vector<Touch> touches;
    std::vector<Node> homes;
    for (std::uint64_t page = 7; page < 4000; page += 17) {
        const bool write = page % 2 != 0;
        const int thread = write ? owner(page) : owner(std::min<std::uint64_t>(page + 60, 3999));
        touches.push_back({page, static_cast<std::uint32_t>(thread), 0, write});
        homes.push_back(static_cast<Node>(owner(page)));
    }
    const Belief belief(formulas, team, Extent(4000), touches, Prior(formulas), homes);
    EXPECT_EQ(belief.likeliest(), Family::ordered);
    Prospect prospect;
    int moved = 0;
    for (std::uint64_t page = 0; page < 4000; ++page) {
        belief.prospect(page, static_cast<Node>(owner(page)), prospect);
        moved += better_home(prospect, static_cast<Node>(owner(page))) != unknown_node;
    }
    EXPECT_LT(moved, 15) << "of 180";
}

TEST(BeliefTest, DriftingBordersAreFollowedFromTheAgesOfTouches) {
    const Team team = Team::packed(4, 4);
    Program program{team, 4000, [](double y) { return static_cast<int>(y * 4); }};
    std::vector<Touch> touches = program.touch(60, 2);
    for (std::size_t i = 0; i < touches.size(); ++i) {
        touches[i].age = static_cast<std::uint32_t>(i % 20);
        const double y = (static_cast<double>(touches[i].page) + .5) / 4000 + .01 * touches[i].age;
        touches[i].thread = static_cast<std::uint32_t>((y - std::floor(y)) * 4);
    }
    const Belief belief = believe(program, touches);
    EXPECT_EQ(belief.likeliest(), Family::drift);
    EXPECT_GT(right_share(program, belief), .97);
}

TEST(BeliefTest, SiblingsShareWhatOneOfThemHasShown) {
    const Program program = block(16, 4, 5000);
    const Formulas formulas(16);
    const Prior base(formulas);
    const Belief known(formulas, program.team, program.pages, program.touch(20, 1), base);
    const Prior shared = base.mixed_with(known.as_prior(), .3);
    double alone = 0, together = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const std::vector<Touch> touches = program.touch(2, seed);
        alone += Belief(formulas, program.team, program.pages, touches, base).probability(Family::block);
        together += Belief(formulas, program.team, program.pages, touches, shared).probability(Family::block);
    }
    EXPECT_GT(together, alone);
}

TEST(BeliefTest, WithoutATouchThePriorHolds) {
    const Program program = block(8, 4, 1000);
    const Belief belief = believe(program, {});
    EXPECT_NEAR(belief.probability(Family::block), tuning::family_prior[0] / .97, .05); // HOME needs homes
}

TEST(BeliefTest, ATouchOutsideTheAreaBreaksARule) {
    const Team team = Team::packed(4, 4);
    const Formulas formulas(4);
    const std::vector<Touch> beyond{{10, 0, 0, false}}, nobody{{3, 4, 0, false}};
    EXPECT_THROW(Belief(formulas, team, 10, beyond, Prior(formulas)), homing::InvariantBroken);
    EXPECT_THROW(Belief(formulas, team, 10, nobody, Prior(formulas)), homing::InvariantBroken);
}

TEST(BeliefTest, OneThreadOwnsAll) {
    const Team team({0}, 1);
    const Formulas formulas(1);
    const std::vector<Touch> touches{{3, 0, 0, true}};
    const Belief belief(formulas, team, 10, touches, Prior(formulas));
    EXPECT_EQ(likeliest_node(belief, 9), 0);
}

TEST(BeliefTest, StretchesOfABlockAreItsBlocks) {
    const Program program = block(4, 4, 1000);
    const Belief belief = believe(program, program.touch(40, 1));
    std::vector<std::uint64_t> begins;
    for (std::uint64_t page = 0; page < 1000; page = belief.stretch_end(page))
        if (page == 0 || likeliest_node(belief, page) != likeliest_node(belief, page - 1))
            begins.push_back(page);
    EXPECT_EQ(begins, (std::vector<std::uint64_t>{0, 250, 500, 750}));
}

RC_GTEST_PROP(BeliefProperty, ProbabilitiesAddUpToOne, ()) {
    const int nodes = *rc::gen::inRange(1, 9), threads = nodes * *rc::gen::inRange(1, 5);
    const auto pages = static_cast<std::uint64_t>(*rc::gen::inRange(1, 5000));
    std::vector<Node> node_of; // one after the other, or round the nodes
    const bool packed = *rc::gen::arbitrary<bool>();
    for (int thread = 0; thread < threads; ++thread)
        node_of.push_back(static_cast<Node>(packed ? thread * nodes / threads : thread % nodes));
    const Team team(node_of, nodes);
    const Program program{team, pages, [threads](double y) { return static_cast<int>(y * 77) % threads; },
                          .2};
    const Belief belief =
        believe(program, program.touch(static_cast<std::size_t>(*rc::gen::inRange(0, 40)), 7));
    double sum = 0;
    for (std::size_t family = 0; family < families; ++family)
        sum += belief.probability(static_cast<Family>(family));
    RC_ASSERT(std::abs(sum - 1) < 1e-6);
    Prospect prospect;
    for (std::uint64_t page = 0; page < pages; page += 1 + pages / 20) {
        belief.prospect(page, unknown_node, prospect);
        const double best = std::accumulate(prospect.best.begin(), prospect.best.end(), prospect.spread);
        RC_ASSERT(best < 1 + 1e-6 && best > 1 - .01);
        RC_ASSERT(std::accumulate(prospect.local.begin(), prospect.local.end(), 0.0) < 1 + 1e-6);
        RC_ASSERT(prospect.known + 1e-9 >= *std::ranges::max_element(prospect.local));
    }
}

RC_GTEST_PROP(BeliefProperty, StretchesCoverTheAreaInOrder, ()) {
    const auto pages = static_cast<std::uint64_t>(*rc::gen::inRange(1, 3000));
    const int width = *rc::gen::inRange(1, 40);
    const Program program{
        Team::packed(8, 4), pages,
        [=](double y) { return static_cast<int>(y * static_cast<double>(pages) / width) % 8; }, .05};
    const Belief belief =
        believe(program, program.touch(static_cast<std::size_t>(*rc::gen::inRange(0, 60)), 3));
    std::uint64_t page = 0;
    while (page < pages) {
        const std::uint64_t end = belief.stretch_end(page);
        RC_ASSERT(end > page && end <= pages);
        page = end;
    }
}

RC_GTEST_PROP(BeliefProperty, PermutedNodesGiveThePermutedAnswer, ()) {
    std::vector<Node> permutation{0, 1, 2, 3};
    const int shift = *rc::gen::inRange(1, 4);
    std::ranges::rotate(permutation, permutation.begin() + shift);
    Program program = block(8, 4, 2000);
    program.strays = .1;
    Program permuted = program;
    std::vector<Node> node_of;
    for (int thread = 0; thread < program.team.threads(); ++thread)
        node_of.push_back(permutation[static_cast<std::size_t>(program.team.node(thread))]);
    permuted.team = Team(node_of, 4);
    const std::vector<Touch> touches = program.touch(static_cast<std::size_t>(*rc::gen::inRange(1, 30)), 11);
    const Belief before = believe(program, touches), after = believe(permuted, touches);
    Prospect a, b;
    for (std::uint64_t page = 0; page < 2000; page += 37) {
        before.prospect(page, unknown_node, a);
        after.prospect(page, unknown_node, b);
        for (std::size_t node = 0; node < 4; ++node)
            RC_ASSERT(std::abs(a.best[node] - b.best[static_cast<std::size_t>(permutation[node])]) < 1e-5);
    }
}

RC_GTEST_PROP(BeliefProperty, TheOrderOfTouchesDoesNotMatter, ()) {
    Program program = block(8, 4, 2000);
    program.strays = .2;
    std::vector<Touch> touches = program.touch(static_cast<std::size_t>(*rc::gen::inRange(1, 40)), 13);
    const Belief before = believe(program, touches);
    std::ranges::reverse(touches);
    const Belief after = believe(program, touches);
    for (std::size_t family = 0; family < families; ++family)
        RC_ASSERT(std::abs(before.probability(static_cast<Family>(family)) -
                           after.probability(static_cast<Family>(family))) < 1e-3);
}

RC_GTEST_PROP(BeliefProperty, AScaledAreaGivesTheSameAnswer, ()) {
    const auto factor = static_cast<std::uint64_t>(*rc::gen::inRange(2, 9));
    Program program = block(8, 4, 4001);
    program.strays = .1;
    std::vector<Touch> touches = program.touch(static_cast<std::size_t>(*rc::gen::inRange(4, 40)), 17);
    const Belief before = believe(program, touches);
    Program larger = program;
    larger.pages *= factor;
    for (Touch& touch : touches)
        touch.page = touch.page * factor + factor / 2;
    const Belief after = believe(larger, touches);
    for (std::uint64_t page = 100; page < 4001; page += 307)
        RC_ASSERT(likeliest_node(before, page) == likeliest_node(after, page * factor + factor / 2));
}

/// Areas drawn from the model itself: families, formulas, reaches and strays as often as their priors say.
class DrawnArea {
  public:
    DrawnArea(const Formulas& formulas, const Team& team, std::uint64_t pages, std::uint64_t seed)
        : formulas_(formulas), team_(team), pages_(pages), state_(seed * 2654435761u + 1) {
        std::vector<double> weights(tuning::family_prior.begin(), tuning::family_prior.end());
        weights[static_cast<std::size_t>(Family::home)] = 0; // needs pages that lie somewhere
        family_ = static_cast<Family>(draw(weights));
        weights.clear();
        for (const Formula& formula : formulas.all())
            weights.push_back(formula.family == family_ && formulas.fits(formula, pages) ? formula.prior : 0);
        if (std::accumulate(weights.begin(), weights.end(), 0.0) > 0)
            formula_ = formulas.all()[draw(weights)];
        weights.clear();
        for (const tuning::Stray& stray : tuning::strays)
            weights.push_back(stray.weight);
        stray_ = tuning::strays[draw(weights)];
        weights.clear();
        for (const tuning::Reach& reach : tuning::reaches)
            weights.push_back(reach.weight);
        reach_ = tuning::reaches[draw(weights)].reads;
        for (int i = 1; i < team.threads(); ++i)
            borders_.push_back(uniform());
        std::ranges::sort(borders_);
        const double rate = tuning::switches_per_node[static_cast<std::size_t>(uniform() * 3)] * team.nodes();
        Node node = any_node();
        for (double at = 0; at < 1; at -= std::log(1 - uniform()) / rate, node = any_node())
            runs_.emplace_back(at, node);
        double sum = 0;
        for (int n = 0; n < team.nodes(); ++n)
            sum += shares_.emplace_back(uniform() < .5 ? -std::log(1 - uniform()) : 20);
        for (double& share : shares_)
            share /= sum;
    }

    Family family() const { return family_; }

    Touch touch() {
        const auto page = static_cast<std::uint64_t>(uniform() * static_cast<double>(pages_));
        const double kind = uniform();
        if (kind < stray_.master) return {page, 0, 0, false};
        if (kind < stray_.master + stray_.uniform)
            return {page, static_cast<std::uint32_t>(uniform() * team_.threads()), 0, false};
        return {page, static_cast<std::uint32_t>(toucher(page)), 0, false};
    }

    /// Where the page belongs; unknown_node where it belongs to all alike.
    Node node(std::uint64_t page) const {
        const double y = (static_cast<double>(page) + .5) / static_cast<double>(pages_);
        if (family_ == Family::shared) return unknown_node;
        if (family_ == Family::none) return node_of_page(page);
        if (family_ == Family::runs)
            return (std::ranges::upper_bound(runs_, y, {}, &std::pair<double, Node>::first) - 1)->second;
        if (family_ == Family::ordered)
            return team_.node(static_cast<int>(std::ranges::upper_bound(borders_, y) - borders_.begin()));
        return team_.node(formulas_.owner(formula_, formulas_.place(formula_, pages_, y, 0).block));
    }

  private:
    double uniform() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<double>(state_ >> 11) * 0x1p-53;
    }
    std::size_t draw(const std::vector<double>& weights) {
        double left = uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
        for (std::size_t i = 0; i < weights.size(); ++i)
            if ((left -= weights[i]) < 0) return i;
        return weights.size() - 1;
    }
    Node any_node() { return static_cast<Node>(uniform() * team_.nodes()); }
    Node node_of_page(std::uint64_t page) const {
        double left = static_cast<double>((page + 1) * 0x9e3779b97f4a7c15u >> 11) * 0x1p-53;
        for (std::size_t n = 0; n < shares_.size(); ++n)
            if ((left -= shares_[n]) < 0) return static_cast<Node>(n);
        return 0;
    }
    int thread_on(Node node) {
        int thread = 0;
        do
            thread = static_cast<int>(uniform() * team_.threads());
        while (team_.node(thread) != node);
        return thread;
    }
    int toucher(std::uint64_t page) {
        const double y = (static_cast<double>(page) + .5) / static_cast<double>(pages_);
        if (family_ == Family::shared) return thread_on(static_cast<Node>(draw(shares_)));
        if (family_ == Family::none || family_ == Family::runs) return thread_on(node(page));
        if (family_ == Family::ordered)
            return static_cast<int>(std::ranges::upper_bound(borders_, y) - borders_.begin());
        if (formula_.is_single()) return formula_.base;
        const Place here = formulas_.place(formula_, pages_, y, 0);
        std::vector<double> weights;
        for (int j = -8; j <= 8; ++j)
            weights.push_back(Formulas::spill(reach_, here.within, j));
        return formulas_.owner(formula_, here.block + static_cast<double>(draw(weights)) - 8);
    }

    const Formulas& formulas_;
    const Team& team_;
    std::uint64_t pages_, state_;
    Family family_ = Family::block;
    Formula formula_;
    tuning::Stray stray_{};
    double reach_ = 0;
    std::vector<double> borders_, shares_;
    std::vector<std::pair<double, Node>> runs_;
};

/// Of pages that the belief gives a probability of p to be one node's, a share of p is, within five points.
TEST(BeliefTest, ProbabilitiesAreCalibrated) {
    constexpr int bins = 10;
    constexpr int areas = 3000; // 10,000 were seen once, with the same result
    double said[bins] = {}, was[bins] = {}, count[bins] = {};
    const Team team = Team::packed(8, 4);
    const Formulas formulas(8);
    const Prior prior(formulas);
    for (int i = 0; i < areas; ++i) {
        DrawnArea area(formulas, team, 2048, static_cast<std::uint64_t>(i) + 1);
        std::vector<Touch> touches;
        for (int touch = 0; touch < 3 + i % 12; ++touch)
            touches.push_back(area.touch());
        const Belief belief(formulas, team, 2048, touches, prior);
        Prospect prospect;
        for (std::uint64_t page = 1; page < 2048; page += 397) {
            belief.prospect(page, unknown_node, prospect);
            for (std::size_t node = 0; node < 4; ++node) {
                const auto bin =
                    std::min<std::size_t>(bins - 1, static_cast<std::size_t>(prospect.best[node] * bins));
                said[bin] += prospect.best[node];
                was[bin] += area.node(page) == static_cast<Node>(node);
                ++count[bin];
            }
        }
    }
    for (int bin = 0; bin < bins; ++bin)
        EXPECT_NEAR(said[bin] / count[bin], was[bin] / count[bin], .05)
            << "of " << count[bin] << " in bin " << bin;
}

TEST(Belief, ThatIsMadeForItsEvidenceAloneHasTheSame) {
    const Program program = block(8, 4, 1000);
    const Formulas formulas(8);
    const Prior prior(formulas);
    for (const std::size_t count : {3u, 20u, 100u}) {
        const std::vector<Touch> touches = program.touch(count, count);
        const Belief all(formulas, program.team, program.pages, touches, prior);
        const Belief evidence(formulas, program.team, program.pages, touches, prior, {},
                              Belief::Use::evidence);
        EXPECT_EQ(evidence.log_evidence(), all.log_evidence());
        EXPECT_EQ(evidence.likeliest(), all.likeliest());
    }
}

} // namespace
} // namespace homing::model::model_belief_tests
