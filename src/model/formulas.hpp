// The regular distributions as one formula over the threads of a team, and how likely each makes a touch.
//
//     thread = base + step * (floor(y A) B + floor(frac(y m) B)),   y the position in the area, 0..1
//
// y may also be the position in one of several arrays that lie in the area: each of them is BLOCK then.
//
// BLOCK: A = T.  CYCLIC(k): m = pages / (k T), B = T.  Tiles of a two-dimensional array: A = Tr, B = Tc, m
// rows.  Two grids of BLOCK behind one another: y is stretched on both sides of a cut.  Drift: y is shifted,
// more with every iteration.
//
// P(touch by thread t) = (1 - u - s) K(distance) + u / T + s [t is the master], where K falls off as
// exp(-distance / reach) with the distance of the page from t's block, in blocks. u, s and the reach are not
// known: they are summed out on a small grid (tuning::strays, tuning::reaches), so that halos, fuzzy borders
// and stray touches need no rules of their own.
#pragma once

#include "model/team.hpp"
#include "model/touch.hpp"
#include "model/tuning.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace homing::model {

enum class Family : std::uint8_t {
    block,
    single,
    grids,
    cyclic,
    tiles,
    drift,
    ordered,
    runs,
    shared,
    none,
    home
};
inline constexpr std::size_t families = 11;
const char* name(Family family);

struct Formula {
    Family family = Family::block;
    double prior = 0; ///< share of its family
    double outer = 1; ///< A
    double rows = 1;  ///< m; not used by cyclic, where the area's size gives it
    double inner = 1; ///< B
    int base = 0;
    int step = 1;
    double cut = 1;
    double offset = 0;
    double velocity = 0;     ///< of the borders, in areas an iteration
    std::uint32_t width = 0; ///< k of cyclic, in pages
    bool each = false;       ///< of each array in the area, where these are known (Extent::with_blocks)
    /// One block only: everything belongs to the thread `base`.
    bool is_single() const noexcept { return outer * inner == 1; }
};

/// Where a position lies: the number of its block in thread order, how far into the block, 0..1, and how many
/// such blocks an area has.
struct Place {
    double block = 0;
    double within = 0;
    double blocks = 1;
};

using Nuisances = std::array<float, tuning::nuisances>; ///< log likelihood for each (reach, stray)

/// All formulas over a team of so many threads, and the tables of their likelihood. Immutable: one serves all
/// areas.
class Formulas {
  public:
    explicit Formulas(int threads);

    int threads() const noexcept { return threads_; }
    const std::vector<Formula>& all() const noexcept { return all_; }
    /// Formulas [0, simple()) are tried at once, the others (tiles, drift) only where these do not explain an
    /// area.
    std::size_t simple() const noexcept { return simple_; }

    /// Can an array of this size, in pages, show the formula?
    bool fits(const Formula& formula, double pages) const noexcept;
    /// Where position y (0..1) of an array of this size lies, `age` iterations ago.
    Place place(const Formula& formula, double pages, double y, double age) const noexcept {
        if (formula.family == Family::drift) {
            y += formula.velocity * age - formula.offset;
            y -= std::floor(y);
        }
        double grid = 1; // the part of the area that the grid has which y lies in
        if (formula.cut < 1) {
            const bool first = y < formula.cut;
            grid = first ? formula.cut : 1 - formula.cut;
            y = (first ? y : y - formula.cut) / grid;
        }
        const double outer = y * formula.outer;
        const double block = whole(outer);
        if (formula.inner == 1) return {block, outer - block, formula.outer / grid};
        const double rows =
            formula.width > 0 ? pages / (static_cast<double>(formula.width) * threads_) : formula.rows;
        const double row = y * rows;
        const double inner = (row - whole(row)) * formula.inner;
        const double column = whole(inner);
        return {block * formula.inner + column, inner - column, rows * formula.inner};
    }
    /// Where the block that y lies in ends: a position in (y, 1].
    double block_end(const Formula& formula, double pages, double y) const noexcept;
    /// Log likelihood of a touch of position y.
    const Nuisances& likelihood(const Formula& formula, double pages, double y,
                                const Touch& touch) const noexcept;
    /// The thread that owns a block; clamped to the team.
    int owner(const Formula& formula, int block) const noexcept {
        return std::clamp(formula.base + formula.step * block, 0, threads_ - 1);
    }
    /// P(touch by the thread `offset` blocks on | reach of reads, the page lies `within` its owner's block),
    /// with no strays.
    static double spill(double reach, double within, double offset);

  private:
    /// floor() of what is not negative, without a call.
    static double whole(double x) noexcept { return static_cast<double>(static_cast<std::int64_t>(x)); }

    static constexpr int within_classes = 12;
    static constexpr int furthest = 8; ///< blocks; beyond, all touches are strays

    void add_blocks();
    void add_grids();
    void add_each();
    void add_cyclic();
    void add_tiles();
    void add_drift();
    void fill_tables();

    int threads_;
    std::size_t simple_ = 0;
    std::vector<Formula> all_;
    /// By write, by master, class of the position within the block, offset of the toucher's block + furthest.
    Nuisances near_[2][2][within_classes][2 * furthest + 1];
    Nuisances alone_[2];   ///< by master: the single owner touches
    Nuisances outside_[2]; ///< by master: a thread that owns nothing near
};

} // namespace homing::model
