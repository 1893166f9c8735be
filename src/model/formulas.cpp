#include "model/formulas.hpp"

#include "base/invariant.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace homing::model {
namespace {

/// Upper ends of the classes that positions within a block fall into; finer near the borders, where halos
/// are.
constexpr double class_ends[] = {.005, .015, .04, .1, .25, .5};
constexpr double class_points[] = {.0025, .01, .025, .065, .17, .37};

int class_of(double within) noexcept {
    const bool upper = within > .5;
    const double from_border = upper ? 1 - within : within;
    int index = 0;
    for (int i = 0; i < 5; ++i)
        index += from_border > class_ends[i];
    return upper ? 11 - index : index;
}

double point_of(int index) noexcept { return index < 6 ? class_points[index] : 1 - class_points[11 - index]; }

} // namespace

const char* name(Family family) {
    static constexpr const char* names[] = {"BLOCK",     "SINGLE", "GRIDS",  "CYCLIC", "TILES", "DRIFT",
                                            "GEN_BLOCK", "RUNS",   "SHARED", "NONE",   "HOME"};
    return names[static_cast<std::size_t>(family)];
}

Formulas::Formulas(int threads) : threads_(threads) {
    invariant(threads > 0, "a team has a thread");
    add_blocks();
    add_grids();
    add_each();
    add_cyclic();
    simple_ = all_.size();
    add_tiles();
    add_drift();
    // Each family's weights become shares of it.
    std::array<double, families> sum{};
    // Areas in which several arrays are known are few, and have a share of their own.
    for (const Formula& formula : all_)
        if (!formula.each) sum[static_cast<std::size_t>(formula.family)] += formula.prior;
    for (Formula& formula : all_)
        if (!formula.each) formula.prior /= sum[static_cast<std::size_t>(formula.family)];
    fill_tables();
}

/// BLOCK in thread order; in reverse; over a half or a quarter of the threads (the first, the last, every
/// second or fourth). SINGLE: mostly the master.
void Formulas::add_blocks() {
    const auto block = [&](double weight, int count, int base, int step) {
        all_.push_back({.family = Family::block,
                        .prior = weight,
                        .outer = static_cast<double>(count),
                        .base = base,
                        .step = step});
    };
    for (int thread = 0; thread < threads_; ++thread)
        all_.push_back(
            {.family = Family::single, .prior = (thread == 0 ? .6 : 0) + .4 / threads_, .base = thread});
    if (threads_ == 1) return;
    block(.75, threads_, 0, 1);
    block(.05, threads_, threads_ - 1, -1);
    for (const int part : {2, 4}) {
        const int count = threads_ / part;
        if (count < 2) continue;
        for (const auto& [base, step] : {std::pair{0, 1}, {threads_ - count, 1}, {0, part}, {part - 1, part}})
            block(.1 / part, count, base, step);
    }
}

/// Two arrays of BLOCK behind one another in one allocation: the likely ratios of multigrid and of odd cuts,
/// and all others.
void Formulas::add_grids() {
    if (threads_ == 1) return;
    const auto grids = [&](double weight, double cut) {
        all_.push_back(
            {.family = Family::grids, .prior = weight, .outer = static_cast<double>(threads_), .cut = cut});
    };
    for (const double cut : {1.0 / 2, 1.0 / 3, 2.0 / 3, 3.0 / 4, 4.0 / 5, 7.0 / 8, 64.0 / 73})
        grids(.08, cut);
    const int fine = std::clamp(2 * threads_, 64, 256);
    for (int i = 1; i < fine; ++i)
        grids(.44 / fine, static_cast<double>(i) / fine);
}

/// Several arrays in one area, each of BLOCK: GRIDS of which the borders are known.
void Formulas::add_each() {
    if (threads_ == 1) return;
    all_.push_back({.family = Family::grids,
                    .prior = tuning::each_prior,
                    .outer = static_cast<double>(threads_),
                    .each = true});
}

void Formulas::add_cyclic() {
    if (threads_ == 1) return;
    for (std::uint32_t k = 1; k <= 1u << 16; k = k < 16 ? k + 1 : 2 * k)
        all_.push_back({.family = Family::cyclic,
                        .prior = 1 / std::sqrt(1.0 + std::min(k, 16u)),
                        .inner = static_cast<double>(threads_),
                        .width = k});
}

void Formulas::add_tiles() {
    for (int outer = 1; outer <= 16; outer *= 2) {
        const int inner = threads_ / outer;
        if (inner < 2 || inner * outer != threads_ || (outer > 1 && outer * outer > 4 * threads_)) continue;
        for (int rows = 2; rows <= 512; ++rows)
            if (rows > outer)
                all_.push_back({.family = Family::tiles,
                                .prior = 1.0 / rows,
                                .outer = static_cast<double>(outer),
                                .rows = static_cast<double>(rows),
                                .inner = static_cast<double>(inner)});
    }
}

void Formulas::add_drift() {
    if (threads_ == 1) return;
    const int offsets = std::clamp(2 * threads_, 64, 256);
    for (int offset = 0; offset < offsets; ++offset)
        for (const double velocity : {0.0, .005, -.005, .01, -.01})
            all_.push_back({.family = Family::drift,
                            .prior = 1,
                            .outer = static_cast<double>(threads_),
                            .offset = static_cast<double>(offset) / offsets,
                            .velocity = velocity});
}

double Formulas::spill(double reach, double within, double offset) {
    const double distance = offset > 0 ? offset - within : offset < 0 ? within - offset - 1 : 0;
    const double tails =
        (std::exp(-within / reach) + std::exp((within - 1) / reach)) / (1 - std::exp(-1 / reach));
    return std::exp(-distance / reach) / (1 + tails);
}

void Formulas::fill_tables() {
    const auto fill = [&](Nuisances& into, bool master, auto&& owner_share) {
        std::size_t index = 0;
        for (const tuning::Reach& reach : tuning::reaches)
            for (const double share = owner_share(reach); const tuning::Stray& stray : tuning::strays)
                into[index++] = static_cast<float>(std::log(stray.likelihood(share, master, threads_)));
    };
    for (const bool master : {false, true}) {
        fill(alone_[master], master, [](const tuning::Reach&) { return 1.0; });
        fill(outside_[master], master, [](const tuning::Reach&) { return 0.0; });
        for (const bool write : {false, true})
            for (int within = 0; within < within_classes; ++within)
                for (int offset = -furthest; offset <= furthest; ++offset)
                    fill(near_[write][master][within][offset + furthest], master,
                         [&](const tuning::Reach& reach) {
                             return spill(write ? reach.writes : reach.reads, point_of(within), offset);
                         });
    }
}

bool Formulas::fits(const Formula& formula, double pages) const noexcept {
    // A quarter of a second round tells it from BLOCK. (table: cyclic, 40 touches: two rounds wanted, 1.05 %
    // of the pages wrong; one and a quarter, 0; any more than one, two_grids .4 % more wrong after 6.)
    if (formula.family == Family::cyclic) return 5.0 * formula.width * threads_ <= 4 * pages;
    return formula.family != Family::tiles || formula.rows * formula.inner <= pages;
}

double Formulas::block_end(const Formula& formula, double pages, double y) const noexcept {
    const double shift = formula.family == Family::drift ? formula.offset : 0;
    double at = y - shift;
    at -= std::floor(at);
    double begin = 0, scale = 1; // of the grid that y lies in
    if (formula.cut < 1) {
        begin = at < formula.cut ? 0 : formula.cut;
        scale = at < formula.cut ? formula.cut : 1 - formula.cut;
    }
    const double u = (at - begin) / scale;
    double end = (std::floor(u * formula.outer) + 1) / formula.outer;
    if (formula.inner > 1) {
        const double rows =
            formula.width > 0 ? pages / (static_cast<double>(formula.width) * threads_) : formula.rows;
        end = std::min(end, (std::floor(u * rows * formula.inner) + 1) / (rows * formula.inner));
    }
    end = std::min(1.0, y + (begin + end * scale - at));
    return end > y ? end : 1.0;
}

const Nuisances& Formulas::likelihood(const Formula& formula, double pages, double y,
                                      const Touch& touch) const noexcept {
    const bool master = touch.thread == 0;
    const int from_base = static_cast<int>(touch.thread) - formula.base;
    if (formula.is_single()) return from_base == 0 ? alone_[master] : outside_[master];
    // Most steps are 1, and a division takes as long as all else.
    const auto [steps, rest] =
        formula.step == 1 ? std::div_t{from_base, 0} : std::div(from_base, formula.step);
    if (rest != 0) return outside_[master];
    const Place here = place(formula, pages, y, touch.age);
    const double offset = steps - here.block;
    if (offset < -furthest || offset > furthest) return outside_[master];
    // A thread that begins a page uses all of it, or all up to its block's end: the middle is what it
    // touched.
    const double half_page = touch.begins_page() ? here.blocks / pages / 2 : 0;
    const double within = std::min(here.within + half_page, half_page > 0 ? (here.within + 1) / 2 : 1);
    return near_[touch.write][master][class_of(within)][static_cast<int>(offset) + furthest];
}

} // namespace homing::model
