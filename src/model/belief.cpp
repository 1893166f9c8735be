#include "model/belief_weights.hpp"

#include "base/invariant.hpp"

#include <cmath>
#include <functional>
#include <iterator>

namespace homing::model {
namespace {

using tuning::many_strays;
using tuning::reaches;
using tuning::strays;

} // namespace

Prior::Prior(const Formulas& formulas) {
    for (const Formula& formula : formulas.all())
        formulas_.push_back(formula.prior * tuning::family_prior[static_cast<std::size_t>(formula.family)]);
    for (const Family family : {Family::ordered, Family::runs, Family::shared, Family::none, Family::home})
        families_[static_cast<std::size_t>(family)] = tuning::family_prior[static_cast<std::size_t>(family)];
}

Prior Prior::mixed_with(const Prior& other, double trust) const {
    invariant(formulas_.size() == other.formulas_.size(), "priors are of one table");
    Prior mixed = *this;
    for (std::size_t i = 0; i < formulas_.size(); ++i)
        mixed.formulas_[i] += trust * (other.formulas_[i] - mixed.formulas_[i]);
    for (std::size_t i = 0; i < families; ++i)
        mixed.families_[i] += trust * (other.families_[i] - mixed.families_[i]);
    return mixed;
}

Prior Prior::with_odds_of_blocks(const Formulas& formulas, double log_odds) const {
    Prior changed = *this;
    for (std::size_t i = 0; i < formulas_.size(); ++i)
        if (formulas.all()[i].each) changed.formulas_[i] *= std::exp(log_odds);
    return changed;
}

void Prior::clear() {
    std::ranges::fill(formulas_, 0.0);
    families_ = {};
}

Belief::Belief(const Formulas& formulas, const Team& team, const Extent& extent,
               std::span<const Touch> touches, const Prior& prior, std::span<const Node> homes, Use use)
    : formulas_(formulas), team_(team), extent_(extent) {
    invariant(formulas.threads() == team.threads(), "the formulas are for this team");
    invariant(homes.empty() || homes.size() == touches.size(), "each touch has a home");
    for (const Touch& touch : touches)
        invariant(touch.page < extent.pages() && touch.thread < static_cast<std::uint32_t>(team.threads()),
                  "a touch is of a page of the area by a thread of the team");
    std::vector<Touch> sorted(touches.begin(), touches.end());
    std::ranges::stable_sort(sorted, {}, &Touch::page);
    Joint joint;
    std::ranges::transform(touches, std::back_inserter(joint.positions),
                           [this](const Touch& touch) { return position(touch); });
    if (!touches.empty()) {
        const auto begin = std::ranges::count_if(touches, std::mem_fn(&Touch::begins_page));
        joint.in_cut_page =
            std::log1p(-static_cast<double>(begin) / (2 * static_cast<double>(touches.size())));
    }
    weigh_urns(sorted, prior, joint);
    weigh_pages(sorted, prior, joint);
    weigh_homes(touches, homes, prior, joint);
    weigh_even(sorted, prior, joint);
    weigh_formulas(touches, prior, joint, 0, formulas_.simple());
    std::ranges::stable_sort(sorted, {}, &Touch::at); // bytes of a page, too
    weigh_runs(sorted, prior, joint);
    normalise(joint);
    if (touches.size() > tuning::few_touches) {
        // With wide reaches and many strays a plain distribution explains what a finer one explains better.
        // So does HOME what was sent home by a finer one: all but the touches from before.
        const bool is_home = *std::ranges::max_element(joint.home) > tuning::negligible_log;
        double simple = is_home ? probability(Family::home) : 0;
        for (const Alive& alive : alive_)
            if (alive.formula.family != Family::grids || alive.formula.each) simple += alive.crisp;
        for (const Runs& runs : runs_)
            if (runs.is_nearly_even) simple += runs.share;
        if (simple < tuning::simple_enough || !explains(joint.best(), touches.size())) {
            weigh_formulas(touches, prior, joint, formulas_.simple(), formulas_.all().size());
            refine(touches, joint);
            normalise(joint);
        }
    }
    if (use == Use::evidence) return;
    std::erase_if(runs_, [](const Runs& runs) { return runs.share < tuning::negligible_share; });
    for (Runs& runs : runs_)
        runs.chain.look_back();
    prepare_formulas();
    find_part(sorted);
    find_breaks();
}

/// So many touches would hardly all lie in so small a part of the area if it were used alike: they tell of
/// that part, and of as much beside it as lies between two of them. (A short loop over an array's begin; a
/// scan of the kernel that has not come further.)
void Belief::find_part(std::span<const Touch> sorted) {
    part_end_ = pages();
    if (sorted.size() < 2) return;
    const std::uint64_t first = sorted.front().page, end = sorted.back().page + 1;
    const double share = static_cast<double>(end - first) / static_cast<double>(pages());
    const auto count = static_cast<double>(sorted.size());
    const double by_chance = (count - (count - 1) * share) * std::pow(share, count - 1);
    if (by_chance >= tuning::negligible_part) return;
    const std::uint64_t gap = (end - first) / (sorted.size() - 1);
    part_ = first - std::min(first, gap);
    part_end_ = std::min(end + gap, pages());
}

void Belief::normalise(Joint& joint) {
    const double top = joint.best();
    posterior_ = {};
    double sum = 0;
    const auto share_of = [&](double log, Family family) {
        constexpr double least = 2 * tuning::negligible_log; // e^-36 of a sum is below its last digit
        const double share = log > top + least ? std::exp(log - top) : 0;
        posterior_[static_cast<std::size_t>(family)] += share;
        sum += share;
        return share;
    };
    known_ = 0;
    for (Candidate& candidate : joint.candidates) {
        candidate.share = 0;
        if (candidate.best < top + tuning::negligible_log) continue;
        for (std::size_t i = 0; i < candidate.log.size(); ++i) {
            const double share = share_of(candidate.log[i], candidate.formula->family);
            candidate.share += share;
            known_ += share * strays[i % strays.size()].by_owner();
        }
    }
    for (std::size_t i = 0; Runs & runs : runs_)
        runs.share = share_of(joint.runs[i++], runs.family);
    for (std::size_t i = 0; Even & even : even_)
        even.share = share_of(joint.even[i++], Family::runs);
    for (std::size_t i = 0; Urn & urn : urns_)
        urn.share = share_of(joint.urns[i++], Family::shared);
    none_ = share_of(joint.none, Family::none);
    home_ = home_by_owner_ = 0;
    for (std::size_t s = 0; s < strays.size(); ++s) {
        const double share = share_of(joint.home[s], Family::home);
        home_ += share;
        home_by_owner_ += share * strays[s].by_owner();
    }

    invariant(sum > 0, "some hypothesis explains the touches");
    log_evidence_ = top + std::log(sum);
    for (double& probability : posterior_)
        probability /= sum;
    known_ /= sum;
    keep_what_counts(joint.candidates, top, sum);
    const auto scale = [&](auto& one) { known_ += (one.share /= sum) * one.by_owner; };
    std::ranges::for_each(runs_, scale);
    std::ranges::for_each(even_, scale);
    for (Urn& urn : urns_) {
        urn.share /= sum;
        known_ += urn.share * *std::ranges::max_element(urn.shares);
    }
    none_ /= sum;
    known_ += none_ * tuning::own_page_again;
    home_ /= sum;
    known_ += home_by_owner_ /= sum;
}

/// Leaves out formulas of next to no weight; the others take over what they had. Of hundreds few are kept:
/// only these are written down. `top` and `sum`: of the weights.
void Belief::keep_what_counts(std::span<const Candidate> candidates, double top, double sum) {
    std::vector<const Candidate*> order;
    double all = 0;
    for (const Candidate& candidate : candidates) {
        all += candidate.share / sum;
        if (candidate.share / sum >= tuning::negligible_share) order.push_back(&candidate);
    }
    std::ranges::sort(order, std::greater<>(), [](const Candidate* one) { return one->share; });
    double kept = 0;
    std::size_t count = 0;
    while (count < order.size() && kept < all - tuning::negligible_part)
        kept += order[count++]->share / sum;
    const double scale = all / kept / sum;
    alive_.clear();
    alive_.reserve(count);
    for (const Candidate* candidate : std::span(order).first(count)) {
        Alive alive{candidate->index, *candidate->formula, scale * candidate->share, 0, {}, {}, {}, 0, 0};
        for (std::size_t r = 0; r < reaches.size(); ++r)
            for (std::size_t s = 0; s < strays.size(); ++s) {
                const double share = scale * std::exp(candidate->log[r * strays.size() + s] - top);
                alive.owners[r] += share;
                alive.by_owner[r] += share * strays[s].by_owner();
                alive.by_master[r] += share * strays[s].master;
                if (r < tuning::halos && s != many_strays) alive.crisp += share;
            }
        alive_.push_back(alive);
    }
}

Family Belief::likeliest() const noexcept {
    return static_cast<Family>(std::ranges::max_element(posterior_) - posterior_.begin());
}

bool Belief::has_whole_rounds() const noexcept {
    const Formula& best = alive_.empty() ? formulas_.all().front() : alive_.front().formula;
    return best.family == Family::cyclic && std::fmod(extent_.size(), best.width * best.inner) == 0;
}

Prior Belief::as_prior() const {
    Prior prior(formulas_);
    prior.clear();
    for (const Alive& alive : alive_)
        prior.formulas_[alive.index] += alive.share;
    for (const Family family : {Family::ordered, Family::runs, Family::shared, Family::none, Family::home})
        prior.families_[static_cast<std::size_t>(family)] = probability(family);
    return prior;
}

} // namespace homing::model
