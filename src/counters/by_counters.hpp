// The iterative mechanism as UPMlib has it (Nikolopoulos et al. 2000, section 2.1): at the end of each
// iteration the counters of all pages of the hot memory are read, each page that another node accesses
// clearly more than its home goes there at once, pages that go to and fro freeze, and nothing is looked at
// any more when placement is stable. It needs a source that counts every miss: then who uses a page is known,
// and how much, and nothing has to be believed. Without one, `--guard off` moves by beliefs
// (engine/iterative).
#pragma once

#include "counters/counted_pages.hpp"
#include "engine/engine.hpp"

#include <memory>

namespace homing::counters {

class ByCounters final : public Mechanism {
  public:
    ByCounters(int nodes, double threshold) : pages_(nodes, threshold) {}

    const char* name() const noexcept override { return "iterative"; }
    void references_came(Engine& engine) override { pages_.take(engine); }
    void iteration_observed(Engine& engine, bool check) override;
    void process_ends(Engine& engine) override;

    /// Of all decisions, and of the first one that moved anything.
    const Outcome& totals() const noexcept { return totals_; }
    std::uint64_t moved_first() const noexcept { return moved_first_; }

  private:
    CountedPages pages_;
    Outcome totals_;
    std::uint64_t moved_first_ = 0;
    std::uint64_t decisions_ = 0;
};

/// What moves pages at iterations here: ByCounters with `--guard off` where every miss is counted, else
/// make_iterative().
std::unique_ptr<Mechanism> make_for_iterations(Engine& engine);
/// `--mechanism iterative`: from now on pages of this engine move by that. Once, in front of the first
/// region.
void begin(Engine& engine) noexcept;

} // namespace homing::counters
