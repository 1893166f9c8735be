#include "model/belief_weights.hpp"

#include <cmath>
#include <numeric>
#include <set>
#include <utility>

namespace homing::model {
namespace {

using tuning::strays;

/// Strays that the chains are weighed with: a mixture of all four would cost as much again and decides the
/// same.
constexpr std::size_t chain_strays[] = {0, 1, 3};

} // namespace

/// A chain over blocks that lie on the nodes `node_of`; each thread is of one of them. Between two of them
/// there may be halos: the owner's part that the other reads, too, on either side of the border.
void Belief::add_runs(std::span<const Touch> touches, Family family, double log_prior,
                      const tuning::Stray& stray, const States& of, const Borders& borders, Joint& joint) {
    std::vector<std::pair<std::size_t, std::size_t>> parts; // the owner, and who else reads them
    for (std::size_t block = 0; block < of.node_of.size(); ++block) {
        if (block > 0 && borders.points > 1)
            parts.insert(parts.end(), {{block - 1, block}, {block, block - 1}});
        parts.emplace_back(block, block);
    }
    std::vector<int> owners(of.node_of.size(), 0);
    for (const std::size_t block : of.state_of)
        ++owners[block];
    std::vector<double> positions, likelihood;
    for (const Touch& touch : touches) {
        positions.push_back(position(touch));
        const std::size_t mine = of.state_of[touch.thread];
        const double beside = touch.write ? tuning::border_share : tuning::equal_share;
        for (const auto& [own, reader] : parts) {
            double share = own == mine;
            if (own != reader) share = reader == mine ? beside : share * (1 - beside);
            likelihood.push_back(stray.likelihood(share / owners[mine], touch.thread == 0, team_.threads()));
        }
    }
    Chain chain({std::move(positions), std::move(likelihood), parts.size(),
                 joint.best() + tuning::negligible_log - log_prior},
                borders);
    joint.runs.push_back(chain.log_likelihood() + log_prior);
    Runs runs{std::move(chain), {}, family, borders.are_nearly_even(), 0, stray.by_owner(), stray.master};
    for (const auto& [own, reader] : parts)
        runs.users_of.emplace_back(of.node_of[own], of.node_of[reader]);
    runs_.push_back(std::move(runs));
}

void Belief::weigh_runs(std::span<const Touch> touches, const Prior& prior, Joint& joint) {
    double stray_weight = 0;
    for (const std::size_t s : chain_strays)
        stray_weight += strays[s].weight;
    States by_thread, by_node;
    for (int thread = 0; thread < team_.threads(); ++thread) {
        by_thread.node_of.push_back(team_.node(thread));
        by_thread.state_of.push_back(static_cast<std::size_t>(thread));
        by_node.state_of.push_back(static_cast<std::size_t>(team_.node(thread)));
    }
    by_node.node_of.resize(static_cast<std::size_t>(team_.nodes()));
    std::iota(by_node.node_of.begin(), by_node.node_of.end(), Node{0});
    constexpr double window = tuning::nearly_even_window;
    constexpr std::size_t border_and_halos = 3;
    for (const std::size_t s : chain_strays) {
        const double weight = std::log(strays[s].weight / stray_weight);
        if (team_.threads() > 1)
            for (const auto& borders :
                 {Borders{.window = window, .points = border_and_halos}, {.window = window}, {}}) {
                double share = prior.other(Family::ordered) * tuning::equal_share;
                if (borders.are_nearly_even()) share *= tuning::equal_share; // with halos, or without
                add_runs(touches, Family::ordered, log_of(share) + weight, strays[s], by_thread, borders,
                         joint);
            }
        for (const double switches : tuning::switches_per_node)
            add_runs(touches, Family::runs,
                     log_of(prior.other(Family::runs) /
                            static_cast<double>(std::size(tuning::switches_per_node))) +
                         weight,
                     strays[s], by_node, {.rate = switches * team_.nodes()}, joint);
    }
}

/// Blocks of even size of which each belongs to any node: threads that own blocks in an order of their own.
void Belief::weigh_even(std::span<const Touch> touches, const Prior& prior, Joint& joint) {
    const auto nodes = static_cast<std::size_t>(team_.nodes());
    std::set<std::size_t> counts;
    for (const int count : {team_.nodes(), team_.threads() / 2, team_.threads(), 2 * team_.threads()})
        if (count > 1 && static_cast<std::uint64_t>(count) <= pages())
            counts.insert(static_cast<std::size_t>(count));
    for (const std::size_t blocks : counts)
        for (const std::size_t s : {chain_strays[0], chain_strays[1]}) {
            const tuning::Stray& stray = strays[s];
            Even even{blocks, 0, std::vector<double>(blocks * nodes, 1.0 / static_cast<double>(nodes)),
                      stray.by_owner(), stray.master};
            double log = log_of(prior.other(Family::runs) * tuning::equal_share /
                                static_cast<double>(2 * counts.size()));
            for (const Touch& touch : touches) { // their order does not matter
                const auto block = std::min(
                    blocks - 1, static_cast<std::size_t>(position(touch) * static_cast<double>(blocks)));
                double sum = 0;
                for (std::size_t n = 0; n < nodes; ++n) {
                    const bool owns = team_.node(static_cast<int>(touch.thread)) == static_cast<Node>(n);
                    const int owners = std::max(1, team_.threads_on(static_cast<Node>(n)));
                    sum += even.owners[block * nodes + n] *=
                        stray.likelihood(owns ? 1.0 / owners : 0, touch.thread == 0, team_.threads());
                }
                for (std::size_t n = 0; n < nodes; ++n)
                    even.owners[block * nodes + n] /= sum;
                log += std::log(sum);
            }
            even_.push_back(std::move(even));
            joint.even.push_back(log);
        }
}

/// Log probability of a sequence of nodes drawn from unknown shares (Polya's urn with so many of each at
/// first).
double Belief::log_urn(std::span<const double> counts, double prior_count) const {
    const double nodes = static_cast<double>(counts.size());
    double sum = 0, log = 0;
    for (const double count : counts) {
        sum += count;
        log += std::lgamma(prior_count + count) - std::lgamma(prior_count);
    }
    return log + std::lgamma(nodes * prior_count) - std::lgamma(nodes * prior_count + sum);
}

/// SHARED: any thread of the drawn node touches.
void Belief::weigh_urns(std::span<const Touch> touches, const Prior& prior, Joint& joint) {
    const auto nodes = static_cast<std::size_t>(team_.nodes());
    std::vector<double> counts(nodes, 0);
    double threads_log = 0;
    for (const Touch& touch : touches) {
        const Node node = team_.node(static_cast<int>(touch.thread));
        ++counts[static_cast<std::size_t>(node)];
        threads_log -= std::log(team_.threads_on(node));
    }
    for (const double prior_count : tuning::urn_counts) {
        Urn urn{std::vector<double>(nodes), 0, false};
        for (std::size_t n = 0; n < nodes; ++n)
            urn.shares[n] = (counts[n] + prior_count) /
                            (static_cast<double>(touches.size()) + prior_count * static_cast<double>(nodes));
        urn.spread = *std::ranges::max_element(urn.shares) <= tuning::certain;
        urns_.push_back(std::move(urn));
        joint.urns.push_back(
            log_urn(counts, prior_count) + threads_log +
            log_of(prior.other(Family::shared) / static_cast<double>(std::size(tuning::urn_counts))));
    }
}

/// NONE: each page has an owner, drawn from unknown shares; who touches it again is mostly the same.
void Belief::weigh_pages(std::span<const Touch> touches, const Prior& prior, Joint& joint) {
    const auto nodes = static_cast<std::size_t>(team_.nodes());
    std::vector<double> counts(nodes, 0);
    double log = log_of(prior.other(Family::none));
    for (const Touch& touch : touches) {
        const Node node = team_.node(static_cast<int>(touch.thread));
        const double one = team_.threads_on(node);
        if (seen_.empty() || seen_.back().page != touch.page) {
            ++counts[static_cast<std::size_t>(node)];
            log -= std::log(one);
            seen_.push_back({touch.page, node});
        } else {
            const bool same = seen_.back().node == node;
            log += std::log(same ? tuning::own_page_again / one
                                 : (1 - tuning::own_page_again) / team_.threads());
            seen_.back().node = node;
        }
    }
    joint.none = log + log_urn(counts, 1);
}

void Belief::weigh_homes(std::span<const Touch> touches, std::span<const Node> homes, const Prior& prior,
                         Joint& joint) {
    if (homes.empty()) return;
    for (std::size_t i = 0; i < touches.size(); ++i)
        if (homes[i] >= 0)
            touches_.push_back({touches[i].page, team_.node(static_cast<int>(touches[i].thread)), homes[i]});
    for (const std::size_t s : chain_strays) {
        double log = log_of(prior.other(Family::home)) + std::log(strays[s].weight);
        for (std::size_t i = 0; i < touches.size(); ++i) {
            const Node home = homes[i];
            // A page on a node of no thread, or not known: any thread.
            const int owners = home >= 0 && home < team_.nodes() ? team_.threads_on(home) : 0;
            const bool owns = owners > 0 && team_.node(static_cast<int>(touches[i].thread)) == home;
            log += std::log(owners > 0 ? strays[s].likelihood(owns ? 1.0 / owners : 0, touches[i].thread == 0,
                                                              team_.threads())
                                       : 1.0 / team_.threads());
        }
        joint.home[s] = log;
    }
}

} // namespace homing::model
