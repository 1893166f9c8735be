// Which pages to sample next. Deterministic: the same seed and calls give the same pages.
//
// Samples are drawn from the pages that exist: programs dimension arrays to a maximum, and keep pools and
// workspaces of which they use a part. What is drawn evenly, or near one another, is so as if the holes were
// not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "policy/ownership.hpp"
#include "policy/page_set.hpp"
#include "policy/samples.hpp"

namespace homing::policy {

class SamplePlan {
  public:
    SamplePlan(std::uint64_t pages, std::uint64_t seed);

    // First round: two thirds of `most` stratified at random over the area, the rest a cluster that gets
    // denser towards one random page (for periods of any length). All pages where the area has no more than
    // `most`. Sorted, distinct, at most `most` pages.
    std::vector<std::uint64_t> first(std::size_t most);

    // Later rounds: divides `most` among the doubtful ranges: borders evenly inside the gap (a round with m
    // samples shrinks it by about m), clusters and repeated pages where no pattern was found. Up to half of
    // it goes to pages that contradict what is believed, until they have been seen a second time: a chance
    // touch (a thread that was not bound, a neighbour's read) will not come again, another owner will; and to
    // as many that agree, or pages that were seen often would all look shared; and to a few amid blocks that
    // nobody explains. Empty: nothing is in doubt, or no further sample would help (the same disorder after
    // `patience` clusters). `telling`: of what was seen, what tells owners; what it leaves out (a neighbour's
    // reads, see without_halo_reads) contradicts nothing.
    std::vector<std::uint64_t> next(const Ownership& ownership, const Samples& seen, const Samples& telling,
                                    std::size_t most);
    std::vector<std::uint64_t> next(const Ownership& ownership, const Samples& seen, std::size_t most) {
        return next(ownership, seen, seen, most);
    }

    // A thin check of the whole area for changed(): stratified at random, other pages at each call.
    std::vector<std::uint64_t> check(std::size_t most);

    // The same of some pages only.
    std::vector<std::uint64_t> within(PageRange pages, std::size_t most);

    // One page in each of the widest gaps between sampled pages, in shares of the run that they lie in (where
    // runs are short, what is hidden is small), those beside a sample that contradicts its run first. A gap
    // in which nothing is ever seen is given up after `hopeless` rounds. Sorted, distinct, at most `most`
    // pages.
    std::vector<std::uint64_t> gaps(const Ownership& ownership, const Samples& seen, std::size_t most);
    // Did gaps() find one that was never looked at (unseen_share)?
    bool wide_gap() const { return wide_gap_; }

    // After owners changed: clusters and second looks may help again.
    void renew() {
        clusters_ = 0;
        doubted_.clear();
    }

    // Which pages exist, as far as is known: all of the area until this is said.
    void exist(PageSet pages) { there_ = std::move(pages); }
    const PageSet& there() const { return there_; }
    static constexpr int patience = 4;
    static constexpr int hopeless = 16;
    static constexpr int islet_looks = 2; // at a page that was seen, where all were
    static constexpr int resolution = 16; // narrower gaps than this part of their run are left

  private:
    std::uint64_t random();
    // Ranges and single pages by their numbers among those that exist, and the way back.
    PageRange numbers(PageRange pages) const { return {there_.below(pages.first), there_.below(pages.end)}; }
    void to_pages(std::vector<std::uint64_t>& numbers) const;
    void stratified(PageRange range, std::size_t count, std::vector<std::uint64_t>& out);
    void cluster(PageRange range, std::uint64_t centre, std::uint64_t reach, std::size_t count,
                 std::vector<std::uint64_t>& out);
    void second_looks(const Ownership& ownership, const Samples& seen, std::size_t most,
                      std::vector<std::uint64_t>& out);
    void looks_at_islets(const Ownership& ownership, const Samples& seen, std::size_t most,
                         std::vector<std::uint64_t>& out);
    void repeat_pages(PageRange range, const Samples& seen, std::size_t count,
                      std::vector<std::uint64_t>& out);

    static constexpr std::uint64_t cluster_reach = 64; // spacings of the stratified samples

    PageSet there_;
    std::uint64_t state_;
    std::uint64_t centre_ = 0; // by its number
    int clusters_ = 0;
    struct Tried {
        std::uint64_t end;
        int rounds;
    };
    std::unordered_map<std::uint64_t, Tried> tried_; // gaps by the number of their first page
    struct Doubted {
        std::uint32_t touches; // when it was asked for first
        int rounds;
    };
    Doubted& doubt_of(const Samples& seen, std::size_t i); // of the i-th sample's page
    std::unordered_map<std::uint64_t, Doubted> doubted_;   // pages to be seen a second time
    bool wide_gap_ = false;
};

} // namespace homing::policy
