// What is believed of an area: a posterior over distributions, from a few touches.
//
// The hypotheses are the family of the directives over the threads of the team: formulas (formulas.hpp), runs
// of threads with unknown borders (chains.hpp), SHARED (every node touches all of it: Polya's urn), NONE
// (each page has an owner of its own), and HOME (every page is used from where it lies). All are weighed by
// Bayes' rule; what is not known about a family (borders, stray touches, the reach of halos) is summed out.
// Nothing here waits for a number of touches: four decide BLOCK, because few other distributions explain
// them.
//
// Pure: no kernel, no clock. The result holds no reference to its input. Cost: about 20 ns a formula and
// touch, and formulas that the touches rule out are dropped on the way (benchmarks/results/sampling.md).
#pragma once

#include "model/chains.hpp"
#include "model/extent.hpp"
#include "model/formulas.hpp"
#include "model/team.hpp"
#include "model/touch.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace homing::model {

/// What is expected of one page.
struct Prospect {
    /// Expected share of the page's touches that would be local on each node, 0..1.
    std::vector<double> local;
    /// Probability that a node is where the page belongs; and that all nodes use it alike, so that it belongs
    /// nowhere.
    std::vector<double> best;
    double spread = 0;
    /// What is expected of the share of local touches if all were known: never below the best of local.
    double known = 0;
    /// What a node's best and local gain where the page lies there: the share of HOME that is not its
    /// neighbours'. In `best` and `local` already where the home was told.
    double of_home = 0, local_of_home = 0;
    /// Is it outside of the part of the area that the touches tell of? Then it stays where it is.
    bool is_beyond = false;

    /// Are touches from there hardly expected, beside those from its best node? (Neighbours of a border may
    /// come first, again and again, to pages that their owner uses most.)
    bool hardly_expects(Node node) const {
        return local[static_cast<std::size_t>(node)] <
               (1 - tuning::certain) * *std::ranges::max_element(local);
    }
};

/// Relative weights of families and of the formulas in them before anything is seen of an area. Siblings
/// (areas of one allocation site, size or shape) share one that has learnt from them.
class Prior {
  public:
    explicit Prior(const Formulas& formulas);
    /// The mixture (1 - trust) this + trust other: what siblings show, at a trust in [0, 1].
    Prior mixed_with(const Prior& other, double trust) const;

    /// The same where it has such log odds that the area's arrays are where they are thought to be.
    Prior with_odds_of_blocks(const Formulas& formulas, double log_odds) const;

    /// All weights 0, for add_...().
    void clear();
    void add_formula(std::size_t index, double weight) { formulas_[index] += weight; }
    void add_other(Family family, double weight) { families_[static_cast<std::size_t>(family)] += weight; }

    double formula(std::size_t index) const noexcept { return formulas_[index]; }
    double other(Family family) const noexcept { return families_[static_cast<std::size_t>(family)]; }

  private:
    friend class Belief;
    std::vector<double> formulas_;
    std::array<double, families> families_{}; ///< of families that are no formulas
};

/// Pages that were touched again: by the node that touched them oftenest (User), or by another. Where they
/// come from the same node oftener than a distribution explains, pages have owners of their own beside it.
struct Repeats {
    double same = 0, other = 0;
};

/// A page, the node that used it oftenest, and by how many touches more than all others together: by majority
/// vote over its touches (Boyer and Moore, MJRTY, 1991), which counts no further than
/// tuning::telling_touches.
struct User {
    std::uint64_t page;
    Node node;
    int lead = 1;
};
/// By pages, ascending.
using Users = std::vector<User>;

/// Pages [first, end), maybe none, between neighbouring known ones that different nodes used.
std::vector<std::pair<std::uint64_t, std::uint64_t>> gaps_between(const Users& users);

/// Is a log of the probability of so many touches as good as if each were by one of two threads? (With one
/// stray in ten it is better.)
inline bool explains(double log, std::size_t touches) {
    return log > -std::log(2) * static_cast<double>(touches);
}

class Belief {
  public:
    /// What it is made for: to ask anything of it, or its log_evidence() alone, at about half the cost.
    enum class Use : std::uint8_t { all, evidence };
    /// Of an area of such an extent used by a team. homes: the node of each touched page, where that is known
    /// (else empty): then HOME is a hypothesis. formulas must be for the team's number of threads and outlive
    /// the belief.
    Belief(const Formulas& formulas, const Team& team, const Extent& extent, std::span<const Touch> touches,
           const Prior& prior, std::span<const Node> homes = {}, Use use = Use::all);

    /// Who uses which page, of all pages of which that is known; and how often those that came again came
    /// from the same node.
    void know_users(Users users, Repeats repeats);
    /// Another explanation of the same touches is so probable beside this one (0..1/2): prospects are of
    /// both.
    void doubt(std::unique_ptr<Belief> other, double probability);
    /// The share of pages that have an owner of their own beside the distribution, 0..1.
    double own_owners() const noexcept { return own_owners_; }

    int nodes() const noexcept { return team_.nodes(); }
    std::uint64_t pages() const noexcept { return extent_.pages(); }
    /// Posterior probability of a family.
    double probability(Family family) const noexcept { return posterior_[static_cast<std::size_t>(family)]; }
    Family likeliest() const noexcept;
    /// What is expected of a page that lies on `home` (unknown_node: not known).
    void prospect(std::uint64_t page, Node home, Prospect& out) const;
    /// One after the last page of the stretch that begins with `page` and whose pages have the same
    /// prospects, but for what fades at borders. In (page, pages].
    std::uint64_t stretch_end(std::uint64_t page) const;
    /// The posterior as a prior for siblings.
    Prior as_prior() const;
    /// The likeliest distribution, in the words of the directives: "BLOCK over 16 threads", "CYCLIC(3
    /// pages)", "SHARED", ...; "NONE" where most pages have an owner of their own.
    std::string words() const;
    /// Is the array whole rounds of CYCLIC, the likeliest? Then nothing was added to align it to a page.
    bool has_whole_rounds() const noexcept;
    /// Log of the probability of all touches: of two explanations of the same touches the larger is the
    /// better.
    double log_evidence() const noexcept { return log_evidence_; }

  private:
    struct Alive {
        std::size_t index; ///< in the table; of a refined formula: where it came from
        Formula formula;
        double share; ///< of the posterior
        double crisp; ///< of it, with the least reach and few strays
        std::array<double, tuning::reaches.size()> owners, by_owner,
            by_master;           ///< by reach: share; times local share
        double by_any_owner = 0; ///< the sum of by_owner
        std::size_t order = 0;   ///< in orders_; of the blurred ones
    };
    struct BlockRun {
        int end; ///< one after its last block
        Node node;
    };
    /// The nodes along the blocks of all formulas with this base and this step.
    struct Order {
        int base, step;
        std::vector<BlockRun> runs;
    };
    struct Runs {
        Chain chain;
        std::vector<std::pair<Node, Node>> users_of; ///< by state: the owner, and who else reads it
        Family family;
        bool is_nearly_even;
        double share, by_owner, by_master;
    };
    /// Equal blocks of which each has an owner of its own.
    struct Even {
        std::size_t blocks;
        double share;
        std::vector<double> owners; ///< blocks x nodes
        double by_owner, by_master;
    };
    struct Urn {
        std::vector<double> shares; ///< of the nodes
        double share;
        bool spread;
    };
    void find_part(std::span<const Touch> sorted);
    void by_distribution(std::uint64_t page, Prospect& out) const;
    void add_page_alone(std::uint64_t page, Node home, Prospect& out) const;
    bool has_part_of(std::uint64_t page, Node node) const;
    void follow_lead(std::size_t node, int lead, Prospect& out) const;
    double trust_in_neighbours(const Users& users) const;
    void keep_contradicting(Users& users) const;
    struct Joint; ///< log weights before they are normalised (belief.cpp)

    struct Candidate; ///< a formula that is being weighed
    bool observe(std::span<const Touch> touches, const Joint& joint, Candidate& candidate, double best) const;
    double log_of_cut_pages(std::span<const Touch> touches, const Joint& joint,
                            const Candidate& candidate) const;
    void observe_each(std::span<const Touch> touches, Candidate& candidate);
    void weigh_formulas(std::span<const Touch> touches, const Prior& prior, Joint& joint, std::size_t first,
                        std::size_t end);
    void refine(std::span<const Touch> touches, Joint& joint) const;
    void weigh_runs(std::span<const Touch> touches, const Prior& prior, Joint& joint);
    void weigh_even(std::span<const Touch> touches, const Prior& prior, Joint& joint);
    void weigh_urns(std::span<const Touch> touches, const Prior& prior, Joint& joint);
    void weigh_pages(std::span<const Touch> touches, const Prior& prior, Joint& joint);
    void weigh_homes(std::span<const Touch> touches, std::span<const Node> homes, const Prior& prior,
                     Joint& joint);
    struct States {
        std::vector<Node> node_of;         ///< by state
        std::vector<std::size_t> state_of; ///< by thread
    };
    void add_runs(std::span<const Touch> touches, Family family, double log_prior, const tuning::Stray& stray,
                  const States& of, const Borders& borders, Joint& joint);
    void normalise(Joint& joint);
    void keep_what_counts(std::span<const Candidate> candidates, double top, double sum);
    void prepare_formulas();
    std::size_t order_of(const Formula& formula);
    void find_breaks();
    void break_at_seen();
    void sort_breaks();
    double log_urn(std::span<const double> counts, double prior_count) const;
    /// Of a page, or of a touch.
    double position(const auto& of) const noexcept { return extent_.position(of); }
    double position(const Formula& formula, const auto& of) const noexcept {
        return formula.each ? extent_.position_in_block(of) : extent_.position(of);
    }
    std::uint64_t block_end(const Formula& formula, std::uint64_t page) const noexcept;

    const Formulas& formulas_;
    Team team_;
    Extent extent_;
    std::array<double, families> posterior_{};
    double log_evidence_ = 0;
    std::vector<Alive> alive_;
    std::vector<Order> orders_;
    /// Of the arrays that lie in the area, and behind them of what is none: is it BLOCK where each may be?
    std::vector<double> each_is_block_;
    std::size_t blurred_ = 0; ///< the first of alive_: those whose reach over borders counts
    double by_master_ = 0;    ///< of all of alive_
    bool crowded_ = false;    ///< they have more blocks than there are pages
    std::vector<Runs> runs_;
    std::vector<Even> even_;
    std::vector<Urn> urns_;
    double none_ = 0;
    Users seen_; ///< the pages that were touched, as far as that tells more than the distribution
    double own_owners_ = 0;
    double again_ = 0;      ///< how often pages that were touched again were touched by the node that leads
    double neighbours_ = 0; ///< how often the node that uses the known pages on both sides uses a page, too
    struct Seen {
        std::uint64_t page;
        Node node, home;
    };
    std::vector<Seen> touches_; ///< where that of the page is known
    double home_ = 0, home_by_owner_ = 0;
    double known_ = 0;                      ///< Prospect::known
    std::uint64_t part_ = 0, part_end_ = 0; ///< [part_, part_end_): the pages that the touches tell of
    std::unique_ptr<Belief> other_;
    double other_share_ = 0;
    std::vector<std::uint64_t> breaks_; ///< first pages behind which runs or single pages differ, ascending
};

} // namespace homing::model
