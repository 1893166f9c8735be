// Shortens inner loops: the sequence that is left shows the first two turns of each loop, however often it
// turned. So a time step with solvers that converge after varying counts, or after thousands of regions, is a
// short sequence that repeats exactly. Pure, as model/period.hpp.
//
// An id is left out where it, and all since the turn before, equal what came one loop earlier. That depends
// on the last two turns only: equal surroundings are shortened alike.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace homing::phases {

class LoopFilter {
  public:
    static constexpr std::uint32_t longest_loop = 64; ///< regions of a turn
    static constexpr std::uint32_t no_id = ~std::uint32_t{0};

    LoopFilter() { reset(); }

    /// Does the id stay? Cost: one comparison within a loop, O(longest_loop), vectorised, elsewhere.
    bool push(std::uint32_t id) {
        if (loop_ != 0 && id == history_[head_ + loop_ - 1]) {
            remember(id);
            return false;
        }
        return push_slowly(id);
    }
    /// From now on only loops up to so many regions a turn are shortened: what is longer is no inner loop.
    void limit(std::uint32_t longest) { limit_ = longest < longest_loop ? longest : longest_loop; }
    std::uint32_t limit() const { return limit_; }
    /// It was not told of a loop that turned many times: this turn, whose next id would be that at
    /// `position`.
    void turned(std::span<const std::uint32_t> turn, std::uint32_t position);
    void reset();

  private:
    static constexpr std::uint32_t kept = 2 * longest_loop; ///< ids that are needed: two turns

    bool push_slowly(std::uint32_t id);
    void count_runs();
    void remember(std::uint32_t id) {
        if (head_ == 0) make_room();
        history_[--head_] = id;
    }
    void make_room();

    // Newest first from head_ on.
    alignas(64) std::array<std::uint32_t, 2 * kept> history_;
    alignas(64) std::array<std::uint32_t, longest_loop> run_; // [p-1]: ids in a row that equal the one p ago
    std::uint32_t head_ = kept;
    std::uint32_t loop_ = 0; ///< regions of a turn of the loop that it is in; run_ is not kept up then
    std::uint32_t limit_ = longest_loop;
};

} // namespace homing::phases
