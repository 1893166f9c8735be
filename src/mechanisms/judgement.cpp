#include "mechanisms/judgement.hpp"

#include "mechanisms/engine.hpp"
#include "mechanisms/evidence.hpp"
#include "mechanisms/learner.hpp"
#include "record/record.hpp"

#include <algorithm>

namespace homing {
namespace {

/// A placement is even when no node holds more than so many times its share: then shared pages stay where
/// they are.
constexpr double uneven = 1.5;
/// Sampled first touches cannot tell the last planes of a block from a neighbour's halo: where no more than
/// this is misplaced, the placement that the program made is as likely right, and stays (no harm to what is
/// at home already). What is beyond doubt moves all the same (Evidence).
constexpr double least_share = 0.08;
constexpr std::uint64_t least_granules = 4096;

/// The run of each sample.
std::vector<std::size_t> runs_of_samples(const WatchedArea& area) {
    const auto& runs = area.ownership.runs();
    std::vector<std::size_t> found(area.telling.size(), 0);
    std::size_t run = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        while (run + 1 < runs.size() && runs[run].end <= area.telling.page(i))
            ++run;
        found[i] = run;
    }
    return found;
}

/// Homes of samples' granules: positions, or -1.
std::vector<int> homes_of(Engine& engine, WatchedArea& area, const policy::Samples& samples) {
    std::vector<std::uint64_t> granules(samples.size());
    for (std::size_t i = 0; i < granules.size(); ++i)
        granules[i] = samples.page(i);
    std::vector<int> homes;
    engine.mover().homes(area, granules, homes);
    return homes;
}

/// Was it refused twice, or did it bounce? Then it is left where it is.
bool stays(const WatchedArea& area, std::uint64_t granule) {
    return (area.freezer && area.freezer->frozen(granule)) || area.refused.left(granule);
}

/// By run: is it shared, and spread over its nodes already?
std::vector<bool> even_runs(const WatchedArea& area, std::span<const int> homes,
                            std::span<const std::size_t> run_of, std::size_t nodes) {
    const auto& runs = area.ownership.runs();
    std::vector<std::uint64_t> held(runs.size() * nodes, 0);
    for (std::size_t i = 0; i < homes.size(); ++i)
        if (homes[i] >= 0) ++held[run_of[i] * nodes + static_cast<std::size_t>(homes[i])];
    std::vector<bool> even(runs.size(), false);
    for (std::size_t r = 0; r < runs.size(); ++r) {
        if (runs[r].pattern != policy::Pattern::shared) continue;
        const auto first = held.begin() + static_cast<std::ptrdiff_t>(r * nodes);
        const auto end = first + static_cast<std::ptrdiff_t>(nodes);
        std::uint64_t sum = 0;
        for (auto at = first; at != end; ++at)
            sum += *at;
        const int sharers = std::max(1, policy::size_of(runs[r].nodes));
        // Small samples scatter: one page more than the share is no sign.
        even[r] = static_cast<double>(*std::max_element(first, end)) <=
                  uneven * static_cast<double>(sum) / sharers + 1;
    }
    return even;
}

/// Where the samples are, and what was inferred of them: weighs what would move.
class Scales {
  public:
    Scales(WatchedArea& area, std::vector<int> homes, std::size_t nodes, double threshold)
        : area_(area), homes_(std::move(homes)), run_of_(runs_of_samples(area)), nodes_(nodes),
          evidence_(area, homes_), even_(even_runs(area, homes_, run_of_, nodes)) {
        options_.threshold = threshold;
    }

    const Evidence& evidence() const { return evidence_; }

    /// Fills in what is to move. `clear`: more is misplaced than halos explain, so that what is likely is
    /// believed; otherwise what is beyond doubt alone.
    void weigh(Judgement& judgement, bool clear) const;

    /// Is more misplaced than halos and chance explain?
    bool clearly_misplaced(const Judgement& judgement) const {
        if (judgement.considered <= 0) return false;
        const double tolerated = std::min(least_share, static_cast<double>(least_granules) /
                                                           static_cast<double>(area_.there().size()));
        const double share = judgement.misplaced / judgement.considered;
        const double samples = judgement.considered * judgement.considered / judgement.squares;
        return policy::significant_share(samples * share, samples, tolerated);
    }

  private:
    WatchedArea& area_;
    std::vector<int> homes_;
    std::vector<std::size_t> run_of_;
    std::size_t nodes_;
    Evidence evidence_;
    std::vector<bool> even_; ///< by run
    policy::CompetitiveOptions options_;
};

void Scales::weigh(Judgement& judgement, bool clear) const {
    const auto& runs = area_.ownership.runs();
    judgement.considered = judgement.misplaced = judgement.squares = 0;
    judgement.single.clear();
    judgement.from.assign(runs.size(), 0);
    const policy::NodeSet all = policy::all_nodes(static_cast<int>(nodes_));
    for (std::size_t r = 0; r < runs.size(); ++r) {
        if (runs[r].pattern == policy::Pattern::shared)
            judgement.from[r] = clear && !even_[r] ? all : 0;
        else if (runs[r].pattern != policy::Pattern::unknown)
            judgement.from[r] = clear ? evidence_.likely(r) : evidence_.certain(r);
    }
    std::vector<double> now(nodes_, 0);
    std::vector<double> then(nodes_, 0);
    for (std::size_t i = 0; i < homes_.size(); ++i) {
        const std::uint64_t page = area_.telling.page(i);
        const std::size_t r = run_of_[i];
        policy::Node owner = area_.ownership.owner(page);
        if (homes_[i] < 0 || owner == policy::unknown_node) continue;
        const auto home = static_cast<policy::Node>(homes_[i]);
        double weight = granules_of_sample(area_, i, runs[r]);
        judgement.considered += weight;
        judgement.squares += weight * weight;
        now[static_cast<std::size_t>(home)] += weight;
        bool moves = false;
        if (runs[r].pattern == policy::Pattern::unknown) {
            const auto candidate = policy::competitive(page, home, area_.telling.counts(i), options_);
            moves = clear && candidate && !stays(area_, page);
            if (moves) judgement.single.push_back(*candidate);
        } else if (home != owner && !stays(area_, page)) {
            moves = policy::contains(judgement.from[r], home);
            if (!moves && evidence_.is_stray(i)) {
                judgement.single.push_back({page, home, owner, 0, area_.telling.touches(i)});
                moves = true;
                now[static_cast<std::size_t>(home)] -= weight - 1;
                weight = 1; // it speaks for itself alone
            }
        }
        judgement.misplaced += moves ? weight : 0;
        then[static_cast<std::size_t>(moves ? owner : home)] += weight;
    }
    judgement.busiest_now = *std::max_element(now.begin(), now.end());
    judgement.busiest_then = *std::max_element(then.begin(), then.end());
}

} // namespace

Judgement judge(Engine& engine, WatchedArea& area, double threshold) {
    const auto nodes = static_cast<std::size_t>(engine.nodes().count());
    Judgement judgement;
    judgement.area = &area;
    const auto& runs = area.ownership.runs();
    if (runs.empty()) return judgement;
    const Scales scales(area, homes_of(engine, area, area.telling), nodes, threshold);
    scales.weigh(judgement, true);
    if (!area.sent_home && !scales.clearly_misplaced(judgement)) scales.weigh(judgement, false);
    const std::vector<std::uint64_t>& doubtful = scales.evidence().doubtful();
    judgement.doubtful = !doubtful.empty();
    area.suspects.assign(doubtful.begin(), doubtful.end());
    for (std::size_t r = 0; r < runs.size(); ++r)
        if (judgement.from[r] != 0) judgement.looks += area.there().count({runs[r].first, runs[r].end});
    judgement.looks -= std::min(judgement.looks, area.seen_homes.known());
    const bool shared = std::ranges::any_of(
        runs, [](const policy::Run& run) { return run.pattern == policy::Pattern::shared; });
    if (shared && area.writes.size() >= 16) {
        judgement.written = policy::infer_ownership(area.granules, samples_of(area.writes));
        judgement.by_writer = judgement.written.kind() == policy::OwnershipKind::block ||
                              judgement.written.kind() == policy::OwnershipKind::cyclic;
    }
    return judgement;
}

void Judgement::for_each_move(
    const std::function<void(policy::PageRange, policy::Node, policy::NodeSet)>& visit) const {
    const auto& runs = area->ownership.runs();
    for (std::size_t r = 0; r < from.size(); ++r) {
        if (from[r] == 0) continue;
        const bool writers = by_writer && runs[r].pattern == policy::Pattern::shared;
        const policy::Ownership& owners = writers ? written : area->ownership;
        owners.for_each_range({runs[r].first, runs[r].end}, [&](policy::PageRange range, policy::Node node) {
            area->there().for_each(range, [&](policy::PageRange part) { visit(part, node, from[r]); });
        });
    }
    for (const policy::Candidate& page : single)
        visit({page.page, page.page + 1}, page.to, policy::node_bit(page.from));
}

bool misplaced_since(Engine& engine, WatchedArea& area, const policy::Samples& fresh) {
    const auto& runs = area.ownership.runs();
    if (fresh.empty() || runs.empty()) return false;
    const std::vector<int> homes = homes_of(engine, area, fresh);
    std::size_t run = 0;
    for (std::size_t i = 0; i < fresh.size(); ++i) {
        const std::uint64_t page = fresh.page(i);
        while (run + 1 < runs.size() && runs[run].end <= page)
            ++run;
        if (homes[i] >= 0 && !stays(area, page) &&
            is_stray(area.ownership, run, page, fresh.counts(i), static_cast<policy::Node>(homes[i])))
            return true;
    }
    return false;
}

void record_references(Engine& engine, WatchedArea& area, const policy::Samples& fresh) {
    const auto nodes = static_cast<std::size_t>(engine.nodes().count());
    // By node of the thread and home of the page.
    std::vector<double> matrix(nodes * nodes, 0);
    double references = 0;
    const std::vector<int> homes = homes_of(engine, area, fresh);
    for (std::size_t i = 0; i < homes.size(); ++i) {
        if (homes[i] < 0) continue;
        const auto counts = fresh.counts(i);
        for (std::size_t n = 0; n < nodes; ++n) {
            matrix[n * nodes + static_cast<std::size_t>(homes[i])] += counts[n];
            references += counts[n];
        }
    }
    if (references <= 0) return;
    for (std::size_t from = 0; from < nodes; ++from)
        for (std::size_t first = 0; first < nodes; first += 8) {
            const double* row_of = matrix.data() + from * nodes;
            if (std::all_of(row_of + first, row_of + std::min(nodes, first + 8),
                            [](double x) { return x == 0; }))
                continue;
            record::references_row row;
            row.area = area.id;
            row.iteration = engine.iteration();
            row.from = static_cast<record::u32>(from);
            row.first = static_cast<record::u32>(first);
            row.time = record::now();
            for (std::size_t k = first; k < std::min(nodes, first + 8); ++k)
                row.to[k - first] = row_of[k];
            record::append(row);
        }
}

} // namespace homing
