// The touches of one area that still say something: the newest ones, and none from before its owners changed.
//
// Whether owners changed is a question of evidence, too: touches before and since a moment are explained by
// one distribution, or by one each. One explains touches of unchanged owners far better, for what the older
// ones have shown need not be guessed again by the newer ones. So drift and thawing need no mode of their
// own. Places of the iteration (a region, or what follows a barrier) may each use an area in a way of their
// own: where that explains the touches as well, nothing has changed.
#pragma once

#include "model/belief.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace homing::model {

/// A touch, and what was known when it was seen.
struct SeenTouch : Touch {
    std::uint32_t iteration = 0; ///< of the outer ones
    Node home = unknown_node;    ///< of its page
    std::uint32_t place = 0;     ///< in the iteration: any number
};

class Touches {
  public:
    /// The place of a touch by serial code.
    static constexpr std::uint32_t nowhere = ~std::uint32_t{0};

    /// Keeps so many touches at most: beyond, the oldest go of parts of the area that have newer ones.
    explicit Touches(std::size_t most = tuning::most_touches) : most_(most) {}

    /// Of an area of so many pages. Iterations never fall.
    void add(const SeenTouch& touch, std::uint64_t pages);
    /// Drops what came before a change of owners, where the touches show one. Returns whether they do. Some
    /// fits of the belief: to be asked after new touches, not after each. formulas and prior as in Belief.
    /// shown: all touches as the belief is to see them, where pages or threads have other numbers there.
    bool follow_change(const Formulas& formulas, const Team& team, const Extent& extent, const Prior& prior,
                       std::span<const Touch> shown);
    /// The places that enough touches come from to tell how each uses the area, and how many.
    std::map<std::uint32_t, std::size_t> telling_places() const;
    /// Where places use the area in ways of their own, which no one distribution explains: those places that
    /// use it in one way and whose touches that way explains best, for a placement by it helps most of them;
    /// ascending. Those with one of `before`, if they do nearly as well. Empty where one distribution
    /// explains all.
    std::vector<std::uint32_t> leading_places(const Formulas& formulas, const Team& team,
                                              const Extent& extent, const Prior& prior,
                                              std::span<const Touch> shown,
                                              std::span<const std::uint32_t> before) const;
    /// The program has gone on to other places: all touches so far are of an earlier phase.
    void begin_phase() noexcept { earlier_ = touches_.size(); }
    /// The area begins elsewhere: each page is `by` further on now, and those outside of [0, pages) are gone.
    void renumber(std::int64_t by, std::uint64_t pages);

    /// Oldest first; ages are those at `iteration`.
    std::span<const SeenTouch> at(std::uint32_t iteration);
    std::size_t size() const noexcept { return touches_.size(); }
    bool empty() const noexcept { return touches_.empty(); }
    /// Did they all come from serial code, before this iteration?
    bool are_serial_before(std::uint32_t iteration) const noexcept {
        return newest() < iteration &&
               std::ranges::all_of(touches_, [](const SeenTouch& touch) { return touch.place == nowhere; });
    }
    /// The iteration of the newest one, 0 where there is none.
    std::uint32_t newest() const noexcept { return touches_.empty() ? 0 : touches_.back().iteration; }

  private:
    void make_room(std::uint64_t pages);
    using Evidence = std::function<double(std::span<const Touch>)>; ///< the log of it
    struct Way {                                                    ///< in which some places use the area
        std::vector<std::uint32_t> places;
        std::vector<Touch> touches;
        double evidence = 0;
    };
    /// Does none of the places run any more that the touches of earlier phases come from?
    bool earlier_is_over() const;
    bool goes_on(std::span<const Touch> all, const Evidence& evidence) const;
    std::vector<Way> way_of_each_place(std::span<const Touch> newest, const Evidence& evidence) const;
    static double sum_of_evidence(std::span<const Way> ways) noexcept;
    static std::vector<Way> joined(std::vector<Way> ways, const Evidence& evidence);

    std::size_t most_;
    std::size_t earlier_ = 0; ///< the first so many are of earlier phases of the program
    std::vector<SeenTouch> touches_;
};

} // namespace homing::model
