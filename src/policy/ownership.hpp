// Who owns every page of an area, inferred from a sample of its pages.
//
// Method. Each sample gets a likelihood under each of N + 2 states: "owned by node n", "shared" (each page is
// touched by many nodes) and "disordered" (each page has one owner, drawn from those of the pages around it:
// where two nodes mix, only these). The best sequence of states under a penalty for each change (penalised
// maximum likelihood, found exactly by dynamic programming over the samples, O(S (N + 2))) cuts the area into
// runs. Where samples crowd they weigh less. The mix around the border of two blocks is cut in two.
// Disordered runs are then searched for a period: a periodogram of the owners over windows that grow around
// the densest samples gives candidates, folding the samples at a candidate and cutting the circle by the same
// dynamic programming gives the table of owners, and the window is doubled while the fold holds, refining the
// period, which is a real number of pages (rows need not be a multiple of the page); beside a cycle its
// period is tried first (tiles of arrays of several dimensions). A fold is believed only if it also predicts
// samples that had no part in finding it. What is left stays unknown: there only the pages that were seen
// have an owner.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "policy/nodes.hpp"
#include "policy/samples.hpp"

namespace homing::policy {

enum class OwnershipKind : std::uint8_t {
    none,   // no pattern: owner() knows the sampled pages only
    block,  // runs of one owner each (a serially used area is one run)
    cyclic, // one periodic pattern: cyclic, cyclic(k), or a dimension distributed inside a plane
    shared, // touched by several nodes everywhere: pages spread evenly over them
    mixed,  // an area of several arrays or levels: runs of different patterns
};
const char* name(OwnershipKind kind);

enum class Pattern : std::uint8_t { unknown, owned, cyclic, shared };

// A repeating table of owners. A page p lies at phase ((p + 0.5 - origin) mod period); pieces are sorted by
// begin, the first begins at 0, each ends where the next begins (the last at period). Lengths are in pages
// and real.
struct Cycle {
    struct Piece {
        double begin;
        Node node;
    };
    double period = 0;
    double origin = 0;
    double border_error = 0; // estimated share of pages on the wrong side of a border between pieces
    double period_error = 0; // half-width of the range of periods that explain the samples equally well
    std::vector<Piece> pieces;
    Node owner(std::uint64_t page) const;
    // One after the last page of the stretch with the same owner that page lies in.
    std::uint64_t stretch_end(std::uint64_t page) const;
};

struct Run {
    std::uint64_t first = 0; // pages [first, end)
    std::uint64_t end = 0;
    Pattern pattern = Pattern::unknown;
    Node node = unknown_node; // pattern owned
    NodeSet nodes = 0;        // all nodes that matter in it; pattern shared spreads over these
    std::uint32_t cycle = 0;  // pattern cyclic: index into cycles()
    std::uint32_t samples = 0;
    double agreement = 0; // share of the run's samples that the pattern explains
    // The unsampled pages around the border to the run before; empty: the border is pinned down to the page.
    PageRange border;
};

enum class Doubt : std::uint8_t {
    border,       // between two runs: sample inside to move the border
    disordered,   // no pattern yet: sample a dense cluster to find a period
    touched_once, // disordered, and pages were seen once only: sample the same pages again (shared or
                  // random?)
    period,       // a cycle whose period and borders are not yet precise: sample all over the run
    unseen,       // no sample at all
};
struct DoubtfulRange {
    PageRange pages;
    Doubt doubt;
};

// Share of pages that may lie on the wrong side of a cycle's borders before these are in doubt.
inline constexpr double border_error_tolerance = 0.002;

struct InferenceOptions {
    double noise = 0.05;           // first guess of the share of wrong samples; refined from the samples
    double least_agreement = 0.75; // a pattern that explains fewer of its samples is not believed
    // Borders with fewer unsampled pages than this are not in doubt; 1 pins every border down to the page.
    std::uint64_t border_tolerance = 1;
};

class Ownership {
  public:
    // Nothing known about an area of this many pages.
    explicit Ownership(std::uint64_t pages = 0, int nodes = 1);

    std::uint64_t pages() const { return pages_; }
    int nodes() const { return nodes_; }
    OwnershipKind kind() const;

    // The node that a page belongs on, or unknown_node. O(log runs). In a shared run the pages go round the
    // run's nodes.
    Node owner(std::uint64_t page) const;
    // Estimated share of the pages whose owner() is right (unknown pages count as not right), 0..1.
    double confidence() const;
    // The share of touches that contradict their run, which is put down to noise (halo reads, ping-pong).
    double noise() const { return noise_; }

    const std::vector<Run>& runs() const { return runs_; } // in page order, covering [0, pages())
    const std::vector<Cycle>& cycles() const { return cycles_; }
    // Where further samples would tell most, in page order.
    const std::vector<DoubtfulRange>& doubtful() const { return doubtful_; }

    // Calls visit(PageRange, Node) for the longest ranges of one known owner in [range.first, range.end), in
    // page order.
    template <typename Visit> void for_each_range(PageRange range, Visit&& visit) const {
        PageRange open{range.first, range.first};
        Node node = unknown_node;
        for (std::uint64_t page = range.first; page < range.end;) {
            auto [owner_here, until] = owner_until(page, range.end);
            if (owner_here != node || open.end != page) {
                if (node != unknown_node && open.size() > 0) visit(open, node);
                open.first = page;
                node = owner_here;
            }
            open.end = page = until;
        }
        if (node != unknown_node && open.size() > 0) visit(open, node);
    }

    // The owner of page and the end (<= limit) of a stretch of pages known to have the same one.
    std::pair<Node, std::uint64_t> owner_until(std::uint64_t page, std::uint64_t limit) const;

  private:
    friend class OwnershipBuilder;
    const Run* run_of(std::uint64_t page) const;

    std::uint64_t pages_ = 0;
    int nodes_ = 1;
    double noise_ = 0;
    double right_pages_ = 0;
    std::vector<Run> runs_;
    std::vector<Cycle> cycles_;
    std::vector<DoubtfulRange> doubtful_;
    std::vector<std::pair<std::uint64_t, Node>> seen_; // sampled pages in unknown runs, by page
};

// Infers the owners of an area of `pages` pages from settled samples (pages beyond the area are ignored).
// Deterministic. A few milliseconds for 8,192 samples on 16 nodes; allocates: not for use inside a hook.
Ownership infer_ownership(std::uint64_t pages, const Samples& samples, const InferenceOptions& options = {});

// How far fresh samples contradict what is believed.
struct Contradiction {
    std::uint32_t tested = 0;       // samples on pages with a believed owner (not where a border is in doubt)
    std::uint32_t contradicted = 0; // of those, touched mostly by nodes that the belief does not name
    std::uint32_t drifted = 0;      // of those, by the owner of the run next to theirs: its border moved on
    double fraction = 0;
    bool significant = false; // more than the noise explains (one-sided binomial test, p < 0.001)
    // Owners did not change places, their borders moved: most contradictions say so.
    bool drift() const { return significant && 10 * drifted >= 7 * contradicted; }
};
Contradiction changed(const Ownership& believed, const Samples& fresh);

// A gap between samples wider than this part of its run was never looked at: one quarter.
inline constexpr std::uint64_t unseen_share = 4;

// The fresh samples where something was known: not those that lie in a gap that was never looked at. There
// the belief only reaches on from the last sample (over the coarse grids behind a fine one), and nobody
// contradicts it.
Samples where_known(const Ownership& believed, const Samples& known, const Samples& fresh);

// Joins old samples and those of a check of the whole area (SamplePlan::check) after owners changed or
// drifted: around every fresh sample that contradicts the belief, as far as the neighbouring fresh samples
// that agree with it, the old samples are dropped. Use: infer_ownership(pages, refreshed(...)); samples of
// the rounds that follow are merged.
Samples refreshed(const Ownership& believed, const Samples& old, const Samples& fresh);

// The same where borders drift: a fresh sample that belongs to the run next to its own says that the border
// between them has passed it, so the old samples from the border to there, and as far beyond, that say
// otherwise are dropped. What is left of the old samples stays.
Samples followed(const Ownership& believed, const Samples& old, const Samples& fresh);

// The samples, but near the borders of believed runs only the `writes` among them: who reads a page there
// first may be the neighbour, and be it every time (a thread's sweep begins with the last plane of the one
// before it, which comes there at its sweep's end). For areas whose owners write.
Samples without_halo_reads(const Ownership& believed, const Samples& samples, const Samples& writes);

// For areas whose owners read first what they write (u = u + ...): who reads the last pages of a run first is
// the next run's owner, whose sweep begins with them. Another array of the same size, whose owners write,
// tells where the borders are: where one lies above the believed one but no further than a halo reaches, or
// within the unsampled pages around it, and between the same owners, what the upper owner read below it is
// left out, and sightings on both sides pin the border down.
Samples with_borders_of(const Ownership& sibling, const Ownership& believed, const Samples& samples);

// The samples of such an area without those that a neighbour's reads explain: near the end of a run, of the
// next run's owner. They are no sign that owners changed.
Samples without_upper_reads(const Ownership& believed, const Samples& samples);

// The samples of an array of so many pages as if they were of one of other size with as many elements: each
// counts for the page with the element in the middle of its own.
Samples scaled(const Samples& samples, std::uint64_t pages, std::uint64_t other);

// Are an array whose owners are believed and one of the same size with these samples used in the same way: do
// the samples agree with the owners everywhere, and near the borders, too? Too few samples tell nothing.
bool alike(const Ownership& believed, const Samples& samples);

// Do `part` of `all` samples show a share above `expected`, beyond chance (one-sided binomial test, p <
// 0.001)?
bool significant_share(double part, double all, double expected);

} // namespace homing::policy
