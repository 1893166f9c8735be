#include "model/belief_weights.hpp"

#include "base/invariant.hpp"

#include <limits>
#include <numeric>

namespace homing::model {
namespace {

using tuning::reaches;

constexpr int beyond(double reach) { return 1 + static_cast<int>(3 * reach); }
constexpr int furthest = beyond(std::ranges::max_element(reaches, {}, &tuning::Reach::reads)->reads);

/// How the touches of a page, so far within its owner's block, fall to the blocks around: spill() in a table,
/// because a verdict asks for it at every page. Summed up, so that a run of blocks on one node is two
/// look-ups.
class SpillShares {
  public:
    /// [i]: the share of all blocks before the one that is i - furthest behind the page's own.
    using Before = std::array<double, 2 * furthest + 2>;
    SpillShares() {
        for (std::size_t r = 0; r < reaches.size(); ++r)
            for (int c = 0; c < classes; ++c) {
                Before& before = table_[r][static_cast<std::size_t>(c)];
                const int most = beyond(reaches[r].reads);
                const auto first = static_cast<std::size_t>(furthest - most);
                std::size_t at = first;
                for (int j = -most; j <= most; ++j, ++at)
                    before[at + 1] = before[at] + Formulas::spill(reaches[r].reads, (c + .5) / classes, j);
                const double sum = before[at];
                for (std::size_t i = first + 1; i <= at; ++i)
                    before[i] /= sum;
                std::fill(before.begin() + most + furthest + 1, before.end(), 1.0);
            }
    }
    const Before& of(std::size_t reach, double within) const {
        const int at = std::clamp(static_cast<int>(within * classes), 0, classes - 1);
        return table_[reach][static_cast<std::size_t>(at)];
    }

  private:
    static constexpr int classes = 128; ///< of positions in a block
    std::array<std::array<Before, classes>, reaches.size()> table_{};
};

/// Who uses a page, and the nearest known pages before and behind it; unknown_node where that is not known.
struct Around {
    Node own = unknown_node, before = unknown_node, behind = unknown_node;
    int lead = 0; ///< of its own

    Around(const Users& users, std::uint64_t page) {
        auto at = std::ranges::lower_bound(users, page, {}, &User::page);
        if (at != users.begin()) before = (at - 1)->node;
        if (at != users.end() && at->page == page) {
            own = at->node;
            lead = (at++)->lead;
        }
        if (at != users.end()) behind = at->node;
    }
    /// The node of both neighbours; of a known page its own, if one of them is of that node, too.
    Node alike() const noexcept {
        if (before == unknown_node || behind == unknown_node) return unknown_node;
        if (own != unknown_node) return own == before || own == behind ? own : unknown_node;
        return before == behind ? before : unknown_node;
    }
};

const SpillShares& spill_shares() {
    static const SpillShares shares;
    return shares;
}

} // namespace

/// What prospects need of the formulas, beside their shares. Those that are left over when all but a little
/// is explained (they are sorted) are taken for sharp at their borders.
void Belief::prepare_formulas() {
    double left = std::accumulate(alive_.begin(), alive_.end(), 0.0,
                                  [](double sum, const Alive& alive) { return sum + alive.share; });
    for (Alive& alive : alive_) {
        by_master_ += std::accumulate(alive.by_master.begin(), alive.by_master.end(), 0.0);
        alive.by_any_owner = std::accumulate(alive.by_owner.begin(), alive.by_owner.end(), 0.0);
        if (left > tuning::border_share) {
            ++blurred_;
            alive.order = order_of(alive.formula);
        }
        left -= alive.share;
    }
}

/// The index in orders_ of the nodes along a formula's blocks. Beyond the team's ends its first and its last
/// thread own all.
std::size_t Belief::order_of(const Formula& formula) {
    const auto same = std::ranges::find_if(orders_, [&](const Order& order) {
        return order.base == formula.base && order.step == formula.step;
    });
    if (same != orders_.end()) return static_cast<std::size_t>(same - orders_.begin());
    Order order{formula.base, formula.step, {}};
    for (int block = -team_.threads(); block <= team_.threads(); ++block) {
        const Node node = team_.node(formulas_.owner(formula, block));
        if (order.runs.empty() || order.runs.back().node != node) order.runs.push_back({0, node});
        order.runs.back().end = block + 1;
    }
    order.runs.back().end = std::numeric_limits<int>::max() / 2;
    orders_.push_back(std::move(order));
    return orders_.size() - 1;
}

/// What the distributions say of a page, whatever is known of it alone.
void Belief::by_distribution(std::uint64_t page, Prospect& out) const {
    const auto nodes = static_cast<std::size_t>(team_.nodes());
    out.local.assign(nodes, 0);
    out.best.assign(nodes, 0);
    out.spread = 0;
    const double y = position(page);
    const auto master = static_cast<std::size_t>(team_.node(0));
    out.local[master] += by_master_;
    const SpillShares& spills = spill_shares();
    // By reach: one sum of all would wait for itself at every step.
    struct Sums {
        std::array<double, policy::most_nodes> best, local;
    };
    std::array<Sums, reaches.size()> sums;
    for (Sums& one : sums) {
        std::fill_n(one.best.begin(), nodes, 0.0);
        std::fill_n(one.local.begin(), nodes, 0.0);
    }
    const auto block_in = [&](const Formula& formula) {
        const double at = formula.each ? extent_.position_in_block(page) : y;
        return formulas_.place(formula, extent_.size(), at, 0);
    };
    const auto owner_in = [&](const Formula& formula, const Place& here) {
        const int thread = formulas_.owner(formula, static_cast<int>(here.block));
        return static_cast<std::size_t>(team_.node(thread));
    };
    // The part of its weight with which a formula holds for this page; with the rest any thread touches it.
    const auto part_of = [&](const Alive& alive) {
        if (!alive.formula.each) return 1.0;
        const double part = each_is_block_[extent_.block_at(static_cast<double>(page) + .5)];
        out.spread += alive.share * (1 - part);
        return part;
    };
    for (const Alive& alive : std::span(alive_).first(blurred_)) {
        const Place here = block_in(alive.formula);
        const int own = static_cast<int>(here.block);
        const double part = part_of(alive);
        for (std::size_t r = 0; r < reaches.size(); ++r) {
            const double owners = part * alive.owners[r], by_owner = part * alive.by_owner[r];
            if (alive.owners[r] < tuning::negligible_share * alive.share) continue;
            Sums& sum = sums[r];
            if (r < tuning::halos || alive.formula.is_single()) {
                const std::size_t node = owner_in(alive.formula, here);
                sum.best[node] += owners;
                sum.local[node] += by_owner;
                continue;
            }
            // Beyond, borders are known no better than touches reach over them.
            const auto& before = spills.of(r, here.within);
            double passed = 0;
            for (const BlockRun& run : orders_[alive.order].runs) {
                const int end = run.end - own + furthest;
                if (end <= 0) continue;
                const auto node = static_cast<std::size_t>(run.node);
                const double upto = before[static_cast<std::size_t>(std::min(end, 2 * furthest + 1))];
                sum.best[node] += (upto - passed) * owners;
                sum.local[node] += (upto - passed) * by_owner;
                if (end > 2 * furthest) break;
                passed = upto;
            }
        }
    }
    for (const Alive& alive : std::span(alive_).subspan(blurred_)) {
        const std::size_t node = owner_in(alive.formula, block_in(alive.formula));
        const double part = part_of(alive);
        sums[0].best[node] += part * alive.share;
        sums[1].local[node] += part * alive.by_any_owner;
    }
    for (const Sums& sum : sums)
        for (std::size_t n = 0; n < nodes; ++n) {
            out.best[n] += sum.best[n];
            out.local[n] += sum.local[n];
        }
    std::vector<double> states;
    for (const Runs& runs : runs_) {
        if (runs.share < tuning::negligible_share) continue;
        states.resize(2 * runs.users_of.size());
        const std::span<double> all(states), owners = all.first(runs.users_of.size());
        runs.chain.at(y, owners, all.subspan(owners.size()));
        out.local[master] += runs.share * runs.by_master;
        for (std::size_t s = 0; s < owners.size(); ++s) {
            const double share = runs.share * owners[s];
            const auto& [own, beside] = runs.users_of[s];
            out.best[static_cast<std::size_t>(own)] += share;
            for (const Node user : {own, beside})
                out.local[static_cast<std::size_t>(user)] += share * runs.by_owner / 2;
        }
    }
    for (const Even& even : even_) {
        if (even.share < tuning::negligible_share) continue;
        const auto block =
            std::min(even.blocks - 1, static_cast<std::size_t>(y * static_cast<double>(even.blocks)));
        out.local[master] += even.share * even.by_master;
        for (std::size_t n = 0; n < nodes; ++n) {
            out.best[n] += even.share * even.owners[block * nodes + n];
            out.local[n] += even.share * even.by_owner * even.owners[block * nodes + n];
        }
    }
    for (const Urn& urn : urns_) {
        for (std::size_t n = 0; n < nodes; ++n) {
            out.local[n] += urn.share * urn.shares[n];
            if (!urn.spread) out.best[n] += urn.share * urn.shares[n];
        }
        if (urn.spread) out.spread += urn.share;
    }
}

void Belief::prospect(std::uint64_t page, Node home, Prospect& out) const {
    by_distribution(page, out);
    add_page_alone(page, home, out);
    out.is_beyond = page < part_ || page >= part_end_;
    if (!other_) return;
    Prospect others;
    other_->prospect(page, home, others);
    for (const auto part : {&Prospect::best, &Prospect::local})
        for (std::size_t n = 0; n < (out.*part).size(); ++n)
            (out.*part)[n] += other_share_ * ((others.*part)[n] - (out.*part)[n]);
    for (const auto part :
         {&Prospect::spread, &Prospect::known, &Prospect::of_home, &Prospect::local_of_home})
        out.*part += other_share_ * (others.*part - out.*part);
}

void Belief::doubt(std::unique_ptr<Belief> other, double probability) {
    invariant(other->pages() == pages() && probability <= .5, "the likelier one of two of one area");
    if (probability < tuning::negligible_part) return;
    other_ = std::move(other);
    other_share_ = probability;
}

/// To what the distributions say, what is known of this page alone: who touched it, and where it lies.
void Belief::add_page_alone(std::uint64_t page, Node home, Prospect& out) const {
    const auto nodes = static_cast<std::size_t>(team_.nodes());
    const Around around(seen_, page);
    const bool was_seen = around.own != unknown_node;
    const bool leads = around.lead > 1 && out.hardly_expects(around.own) && !has_part_of(page, around.own);
    const Node beside = around.alike();
    const double trust = beside == unknown_node ? 0 : neighbours_;
    for (std::size_t n = 0; n < nodes; ++n) {
        const double anywhere = 1 / static_cast<double>(nodes);
        const double as_beside = trust > 0 && static_cast<std::size_t>(beside) == n ? trust : 0;
        const double here =
            was_seen ? static_cast<std::size_t>(around.own) == n : as_beside + (1 - trust) * anywhere;
        out.best[n] += none_ * here + home_ * as_beside;
        out.local[n] += none_ * tuning::own_page_again * here + home_by_owner_ * as_beside;
    }
    if (was_seen && own_owners_ > 0)
        for (std::size_t n = 0; n < nodes; ++n) {
            const double own = static_cast<std::size_t>(around.own) == n;
            out.best[n] += own_owners_ * (own - out.best[n]);
            out.local[n] += own_owners_ * (own * tuning::own_page_again - out.local[n]);
        }
    if (was_seen) out.spread *= 1 - own_owners_;
    out.of_home = home_ * (1 - trust);
    out.local_of_home = home_by_owner_ * (1 - trust);
    if (home >= 0 && home < team_.nodes()) {
        out.best[static_cast<std::size_t>(home)] += out.of_home;
        out.local[static_cast<std::size_t>(home)] += out.local_of_home;
    }
    if (leads) follow_lead(static_cast<std::size_t>(around.own), around.lead, out);
    out.known = std::max(known_, *std::ranges::max_element(out.local));
}

/// Is a part of the page the node's, by a formula that may be true? Of the threads that share a page always
/// the same one may come first, for a few bytes of it.
bool Belief::has_part_of(std::uint64_t page, Node node) const {
    return std::ranges::any_of(alive_, [&](const Alive& alive) {
        if (alive.share < tuning::border_share) return false;
        return std::ranges::any_of(std::array{0.0F, last_byte}, [&](float within) {
            const Touch end{.page = page, .within = within};
            const Place here =
                formulas_.place(alive.formula, extent_.size(), position(alive.formula, end), 0);
            return team_.node(formulas_.owner(alive.formula, static_cast<int>(here.block))) == node;
        });
    });
}

/// A page whose touches came from one node by so many more is that node's, whatever distributions say: each
/// touch of the lead but the first is the likelier there, by how often pages are touched again by their own
/// node. (The first one they know.) Distributions are never quite certain of a page.
void Belief::follow_lead(std::size_t node, int lead, Prospect& out) const {
    const double others = static_cast<double>(team_.nodes() - 1);
    const double before = std::max(out.best[node], tuning::negligible_share);
    const double likelier = std::max(1.0, others * again_ / (1 - again_));
    if (before >= 1 || likelier <= 1) return;
    const double odds = before / (1 - before) * std::pow(likelier, lead - 1);
    const double part = 1 - 1 / (1 + odds) / (1 - before);
    for (std::size_t n = 0; n < out.best.size(); ++n) {
        out.best[n] += part * ((n == node) - out.best[n]);
        out.local[n] += part * ((n == node ? again_ : (1 - again_) / others) - out.local[n]);
    }
    for (double* share : {&out.spread, &out.of_home, &out.local_of_home})
        *share *= 1 - part;
}

/// Of pages that lay elsewhere than the known ones on both sides, which one node uses: how often that node
/// used them, too, rather than the node where they lay. 0 where too few are known, or where it would move
/// nothing.
double Belief::trust_in_neighbours(const Users& users) const {
    if (none_ + home_ < tuning::least_lead) return 0;
    double beside = 0, home = 0;
    for (const Seen& touch : touches_) {
        const Around around(users, touch.page);
        if (around.before == unknown_node || around.before != around.behind || around.before == touch.home)
            continue;
        beside += touch.node == around.before;
        home += touch.node == touch.home;
    }
    if (beside + home < tuning::few_touches) return 0;
    return (beside + 1) / (beside + home + 2);
}

void Belief::know_users(Users users, Repeats repeats) {
    invariant(std::ranges::is_sorted(users, {}, &User::page) &&
                  (users.empty() || users.back().page < pages()),
              "users of pages of the area come in their order");
    if (other_) other_->know_users(users, repeats);
    // How often a page would come from the same node again by the distribution alone.
    Prospect prospect;
    double explained = 0, contradicting = 0;
    const std::size_t looks = std::min<std::size_t>(users.size(), tuning::least_looks);
    for (std::size_t i = 0; i < looks; ++i) {
        const auto& [page, node, lead] = users[i * users.size() / looks];
        by_distribution(page, prospect);
        contradicting += 1 - prospect.best[static_cast<std::size_t>(node)] - prospect.spread;
        add_page_alone(page, unknown_node, prospect);
        const double sum = std::accumulate(prospect.local.begin(), prospect.local.end(), 0.0);
        for (const double local : prospect.local)
            explained += sum > 0 ? local * local / (sum * sum) : 0;
    }
    explained = looks > 0 ? explained / static_cast<double>(looks) : 1;
    contradicting /= static_cast<double>(std::max<std::size_t>(looks, 1));
    const double same = (repeats.same + tuning::telling_touches * explained) /
                        (repeats.same + repeats.other + tuning::telling_touches);
    own_owners_ = explained < 1 ? std::clamp((same - explained) / (1 - explained), 0.0, 1.0) : 0;
    own_owners_ *= std::clamp(contradicting / tuning::most_neighbours - 1, 0.0, 1.0);
    neighbours_ = trust_in_neighbours(users);
    again_ = (repeats.same + 1) / (repeats.same + repeats.other + 2);
    if (none_ + own_owners_ <= tuning::negligible_share && neighbours_ == 0) keep_contradicting(users);
    if (users.empty()) return;
    known_ += own_owners_ * std::max(tuning::own_page_again - known_, 0.0);
    seen_ = std::move(users);
    break_at_seen();
    sort_breaks();
}

/// Those alone that distributions do not expect where they lead.
void Belief::keep_contradicting(Users& users) const {
    Prospect prospect;
    std::uint64_t end = 0;
    std::erase_if(users, [&](const User& user) {
        if (user.lead < 2) return true;
        if (user.page >= end) {
            by_distribution(user.page, prospect);
            end = stretch_end(user.page);
        }
        if (prospect.best[static_cast<std::size_t>(user.node)] > tuning::certain) return true;
        by_distribution(user.page, prospect); // near borders pages of a stretch differ
        return !prospect.hardly_expects(user.node) || has_part_of(user.page, user.node);
    });
}

/// Each page that is known alone is a stretch of its own.
void Belief::break_at_seen() {
    for (const User& user : seen_) {
        breaks_.push_back(user.page);
        breaks_.push_back(user.page + 1);
    }
}

void Belief::sort_breaks() {
    std::ranges::sort(breaks_);
    breaks_.erase(std::unique(breaks_.begin(), breaks_.end()), breaks_.end());
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> gaps_between(const Users& users) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> gaps;
    for (std::size_t i = 1; i < users.size(); ++i)
        if (users[i - 1].node != users[i].node) gaps.emplace_back(users[i - 1].page + 1, users[i].page);
    return gaps;
}

/// Pages behind which the runs' owner may change, or that are known alone.
void Belief::find_breaks() {
    double blocks = 0;
    for (const Alive& alive : alive_)
        if (alive.share >= tuning::negligible_share) blocks += alive.formula.outer * alive.formula.inner;
    crowded_ = blocks >= static_cast<double>(pages());
    double runs = 0;
    for (const Runs& one : runs_)
        runs += one.share;
    breaks_.push_back(part_);
    breaks_.push_back(part_end_);
    if (none_ > tuning::negligible_share) break_at_seen();
    if (runs > tuning::negligible_share)
        for (const auto& [first, end] : gaps_between(seen_))
            for (std::uint64_t piece = 0; piece < tuning::pieces_of_gap; ++piece)
                breaks_.push_back(first + (end - first) * piece / tuning::pieces_of_gap);
    sort_breaks();
}

/// The first page behind the block that a page lies in.
std::uint64_t Belief::block_end(const Formula& formula, std::uint64_t page) const noexcept {
    const double border = formulas_.block_end(formula, extent_.size(), position(formula, page));
    return formula.each ? extent_.first_behind_in_block(page, border) : extent_.first_behind(page, border);
}

std::uint64_t Belief::stretch_end(std::uint64_t page) const {
    if (crowded_) return page + 1;
    std::uint64_t end = other_ ? other_->stretch_end(page) : pages();
    const auto next = std::ranges::upper_bound(breaks_, page);
    if (next != breaks_.end()) end = std::min(end, *next);
    const double y = position(page);
    for (const Alive& alive : alive_) {
        if (alive.share < tuning::negligible_share) continue;
        end = std::min(end, block_end(alive.formula, page));
    }
    for (const Even& even : even_) {
        if (even.share < tuning::negligible_share) continue;
        const auto blocks = static_cast<double>(even.blocks);
        end = std::min(end, extent_.first_behind(page, (std::floor(y * blocks) + 1) / blocks));
    }
    return end;
}

std::string Belief::words() const {
    if (own_owners_ > .5) return name(Family::none);
    const Family family = likeliest();
    const auto best = std::ranges::max_element(
        alive_, {}, [&](const Alive& alive) { return alive.formula.family == family ? alive.share : -1; });
    if (best == alive_.end() || best->formula.family != family) return name(family);
    const Formula& formula = best->formula;
    if (formula.each)
        return "each BLOCK over " + std::to_string(static_cast<int>(formula.outer)) + " threads";
    switch (family) {
    case Family::block:
        return "BLOCK over " + std::to_string(static_cast<int>(formula.outer)) + " threads";
    case Family::single:
        return "SINGLE on thread " + std::to_string(formula.base);
    case Family::cyclic:
        return "CYCLIC(" + std::to_string(formula.width) + " pages)";
    case Family::tiles:
        return "BLOCK x BLOCK over " + std::to_string(static_cast<int>(formula.outer)) + " x " +
               std::to_string(static_cast<int>(formula.inner)) + " threads";
    default:
        return name(family);
    }
}

} // namespace homing::model
