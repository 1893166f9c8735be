// The outer iteration: the cycle of the events as they come, or, around it, that of the sequence in which
// inner loops are shortened (model/loop_filter), whatever their lengths. The outer one is never given up for
// an inner one: it holds as long as its own sequence goes on. Pure, as model/period.hpp.
#pragma once

#include "model/cycle.hpp"
#include "model/loop_filter.hpp"
#include "model/period.hpp"

#include <array>
#include <cstdint>

namespace homing::phases {

class IterationFinder {
  public:
    static constexpr std::uint32_t no_id = PeriodFinder::no_id;

    Step push(std::uint32_t id) {
        if (!around_ && direct_.period().settled()) {
            const Step step = direct_.push(id);
            if (direct_.period().settled()) return step;
            return after_settled(step, id);
        }
        ++events_;
        const bool left = filter_.push(id);
        if (direct_sleeps_ && !left && events_ - begun_at_ < patience_)
            return {PeriodEvent::none, false, length_};
        return search(id, left);
    }
    // Whether iterations vary in length, as far as is known: they are told by an event that comes again
    // rather than by an exact period.
    bool by_anchor() const { return around_ || direct_.by_anchor(); }
    bool found() const { return around_ || direct_.found(); }
    std::uint64_t stable_for() const { return around_ ? iterations_ : direct_.stable_for(); }
    // Events of an exact period that is followed, the iteration's or an inner loop's, and the position of the
    // newest one in it; 0 and no_id while there is none.
    std::uint32_t exact_period() const { return direct_sleeps_ ? 0 : direct_.period().period(); }
    std::uint32_t newest() const { return direct_sleeps_ ? no_id : direct_.period().newest(); }
    const CycleFinder& direct() const { return direct_; }

  private:
    Step search(std::uint32_t id, bool left);
    Step after_settled(const Step& step, std::uint32_t id);
    Step ask_outer(std::uint32_t id);
    Step choose(const Step& direct, bool was_found, const Step& outer);
    Step leave_outer(const Step& direct);
    bool outer_encloses() const;
    void note_length(std::uint64_t events);

    LoopFilter filter_;
    CycleFinder direct_;
    CycleFinder outer_; // of what the filter leaves
    std::uint64_t events_ = 0;
    std::uint64_t settled_at_ = 0; // ids that the direct period had matched when it settled
    std::uint64_t begun_at_ = 0;   // events_ when the newest iteration of outer_ began
    std::uint64_t patience_ = 0;   // after so many events without a new one it has gone
    std::uint64_t iterations_ = 0; // since around_
    std::array<std::uint64_t, 2 * AnchorFinder::window> left_at_{}; // events_ at the newest ids ...
    std::uint32_t left_ = 0;                                        // ... that the filter left
    std::uint32_t length_ = 0;                                      // events of its newest iteration
    std::uint32_t before_ = 0;                                      // of the one before
    std::uint32_t longest_ = 0;                                     // of all since it was found
    bool around_ = false;                                           // outer_ tells the iterations
    bool direct_sleeps_ = false; // ... and has done so for long: direct_ is not asked
};

} // namespace homing::phases
