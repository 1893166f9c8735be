#include "model/belief_weights.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace homing::model {
namespace {

using tuning::reaches;
using tuning::strays;

/// Logs of the prior weights of the nuisances. Borders that drift are never sharp: they have passed some
/// pages within the iteration.
const std::array<float, tuning::nuisances>& nuisance_logs(Family family) {
    static const auto logs = [] {
        std::array<std::array<float, tuning::nuisances>, 2> both{};
        for (const bool drifts : {false, true}) {
            std::size_t i = 0;
            for (const tuning::Reach& reach : reaches)
                for (const tuning::Stray& stray : strays)
                    both[drifts][i++] = drifts && &reach == reaches.data()
                                            ? -std::numeric_limits<float>::infinity()
                                            : static_cast<float>(std::log(reach.weight * stray.weight));
        }
        return both;
    }();
    return logs[family == Family::drift];
}

} // namespace

/// Adds the touches to a candidate's logs, every so manyth at once, so that each batch is of the whole area.
/// Returns false where a batch rules it out beside `best`: a log only falls. (Not those that explain the
/// touches so far worse than the best one does: cuts and rows are refined around such ones. In the guest pool
/// was 10 to 14 % remote in 6 runs of 10 with that, as a whole, and 1.5 to 3.9 % in 5 without.) One candidate
/// after the other: all of them are more than a cache holds.
bool Belief::observe(std::span<const Touch> touches, const Joint& joint, Candidate& candidate,
                     double best) const {
    constexpr std::size_t batch = 4; // a look at the log costs as much as so many touches
    const std::size_t batches = std::max<std::size_t>(1, (touches.size() + batch - 1) / batch);
    for (std::size_t first = 0; first < batches; ++first) {
        Nuisances sum = candidate.log; // a copy can be no part of the tables: it stays in registers
        for (std::size_t t = first; t < touches.size(); t += batches) {
            const Nuisances& log =
                formulas_.likelihood(*candidate.formula, extent_.size(), joint.positions[t], touches[t]);
            for (std::size_t i = 0; i < log.size(); ++i)
                sum[i] += log[i];
        }
        candidate.log = sum;
        candidate.find_best();
        if (candidate.best < best + tuning::negligible_log) return false;
    }
    const double cut = log_of_cut_pages(touches, joint, candidate);
    for (float& log : candidate.log)
        log += static_cast<float>(cut);
    candidate.find_best();
    return true;
}

/// A page that two blocks share is first touched by one of two threads that sweep over their blocks: by the
/// former at the page's first line, by the latter where its block begins. Where both have more than a line of
/// it, either as often; else how often by the former is the program's, and not known (Beta(1/2, 1/2)): in a
/// pipeline always. Without this, borders in a page explained its touches as those of its former owner.
double Belief::log_of_cut_pages(std::span<const Touch> touches, const Joint& joint,
                                const Candidate& candidate) const {
    double former = 0, latter = 0, log = 0;
    for (std::size_t t = 0; t < touches.size(); ++t) {
        const Touch& touch = touches[t];
        if (touch.within < 0) continue;
        const auto place_of = [&](double y) {
            return formulas_.place(*candidate.formula, extent_.size(), y, touch.age);
        };
        const auto block_at = [&](double within) {
            return place_of(extent_.place(static_cast<double>(touch.page) + within)).block;
        };
        const auto [block, within, blocks] = place_of(joint.positions[t]);
        if (std::min(within, 1 - within) * extent_.size() >= blocks) continue; // a page off every border
        if (!touch.begins_page())
            log += block_at(0) != block ? joint.in_cut_page : 0;
        else if (block_at(last_byte) == block)
            latter += block_at(0) != block;
        else if (block_at(first_line) == block)
            log -= std::numbers::ln2;
        else
            ++former;
    }
    if (former + latter == 0) return log;
    return log + std::lgamma(former + .5) + std::lgamma(latter + .5) - std::lgamma(former + latter + 1) -
           std::log(std::numbers::pi);
}

/// The same where each of the arrays in the area is BLOCK, but for some of which any thread touches any page
/// (so are the small blocks between them): the allocator's memory holds both. Each array has its own share of
/// both explanations.
void Belief::observe_each(std::span<const Touch> touches, Candidate& candidate) {
    struct Logs {
        std::array<double, tuning::nuisances> block{};
        double any = 0;
    };
    std::vector<Logs> of(extent_.blocks() + 1);
    for (const Touch& touch : touches) {
        Logs& logs = of[extent_.block_at(touch.at())];
        const Nuisances& block = formulas_.likelihood(*candidate.formula, extent_.size(),
                                                      position(*candidate.formula, touch), touch);
        for (std::size_t i = 0; i < block.size(); ++i)
            logs.block[i] += block[i];
        logs.any -= std::log(team_.threads());
    }
    constexpr double regular = tuning::certain;
    for (const Logs& logs : of) {
        const double most = std::max(logs.any, *std::ranges::max_element(logs.block));
        const double any = (1 - regular) * std::exp(logs.any - most);
        for (std::size_t i = 0; i < candidate.log.size(); ++i)
            candidate.log[i] += static_cast<float>(
                most + (&logs == &of.back() ? logs.any - most
                                            : std::log(any + regular * std::exp(logs.block[i] - most))));
    }
    candidate.find_best();
    const auto best = std::ranges::find(candidate.log, candidate.best) - candidate.log.begin();
    each_is_block_.clear();
    for (const Logs& logs : of) {
        const double block = logs.block[static_cast<std::size_t>(best)];
        each_is_block_.push_back(regular / (regular + (1 - regular) * std::exp(logs.any - block)));
    }
    each_is_block_.back() = 0;
}

/// Adds formulas [first, end) of the table that explain the touches at all.
void Belief::weigh_formulas(std::span<const Touch> touches, const Prior& prior, Joint& joint,
                            std::size_t first, std::size_t end) {
    double best = joint.best();
    const bool still =
        std::ranges::all_of(touches, [&](const Touch& touch) { return touch.age == touches.front().age; });
    for (std::size_t index = first; index < end; ++index) {
        const Formula& formula = formulas_.all()[index];
        if (formula.each ? !extent_.has_blocks() : !formulas_.fits(formula, extent_.size())) continue;
        // A thread that was never seen owns nothing alone.
        if (formula.is_single() && !touches.empty() &&
            std::ranges::find(touches, static_cast<std::uint32_t>(formula.base), &Touch::thread) ==
                touches.end())
            continue;
        if (formula.velocity != 0 && still) continue; // touches of one iteration show no drift
        Candidate candidate{index, &formula, nuisance_logs(formula.family)};
        for (float& log : candidate.log)
            log += static_cast<float>(log_of(prior.formula(index)));
        if (formula.each) observe_each(touches, candidate);
        if (!formula.each && !observe(touches, joint, candidate, best)) continue;
        best = std::max<double>(best, candidate.best);
        joint.candidates.push_back(candidate);
    }
}

/// Cuts, offsets and rows lie between those of the table: around the best of these families smaller and
/// smaller steps are tried, as long as they explain the touches better. Each has its share of the weight of
/// the formula that it stands beside; rows are whole but for few arrays: one that was aligned to a page by
/// hand would look as likely to be one of 128 1/8 rows, each border a page off.
void Belief::refine(std::span<const Touch> touches, Joint& joint) const {
    for (const Family family : {Family::grids, Family::drift, Family::tiles}) {
        double step = family == Family::tiles ? 1.0 : 1.0 / std::clamp(2 * formulas_.threads(), 64, 256);
        for (int level = 0; level < tuning::refinements; ++level, step /= tuning::refined_steps) {
            const auto best = std::ranges::max_element(joint.candidates, {}, [&](const Candidate& candidate) {
                return candidate.formula->family == family && !candidate.formula->each ? candidate.best
                                                                                       : -3e38f;
            });
            const double top = joint.best();
            if (best == joint.candidates.end() || best->formula->family != family || best->formula->each ||
                best->best < top + tuning::negligible_log)
                break;
            const Candidate from = *best; // a copy: the candidates grow
            bool is_better = false;
            for (int i = -tuning::refined_steps + 1; i < tuning::refined_steps; ++i) {
                if (i == 0) continue;
                Formula formula = *from.formula;
                Candidate candidate{from.index, &formula, nuisance_logs(family)};
                const double shift = i * step / tuning::refined_steps;
                if (family == Family::grids) formula.cut += shift;
                if (family == Family::drift) formula.offset += shift;
                if (family == Family::tiles) formula.rows += shift;
                if (formula.cut <= 0 || (family == Family::grids && formula.cut >= 1) || formula.rows < 1)
                    continue;
                const double share =
                    formulas_.all()[from.index].prior / (2 * tuning::refined_steps) *
                    (family == Family::tiles ? tuning::equal_share * (1 - tuning::certain) : 1) *
                    tuning::family_prior[static_cast<std::size_t>(family)];
                for (float& log : candidate.log)
                    log += static_cast<float>(log_of(share));
                if (!observe(touches, joint, candidate, top)) continue;
                candidate.formula = &joint.refined.emplace_back(formula);
                joint.candidates.push_back(candidate);
                is_better |= candidate.best > from.best;
            }
            if (!is_better) break;
        }
    }
}

} // namespace homing::model
