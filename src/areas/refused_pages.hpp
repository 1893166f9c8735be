// Granules that the kernel would not move: tried once more in a later round, then left where they are.
// Without this, what is pinned or shared with a child would be sent again in every round. What was refused
// for want of room, or not tried, is left for a time only: others may give memory back.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

namespace homing {

class RefusedPages {
  public:
    /// Seconds for which granules are left that were refused for a reason that passes: at first, and, as each
    /// time is twice as long as the one before, at the longest.
    static constexpr double first_pause = 10;
    static constexpr double longest_pause = 320;

    /// A granule was not moved in this round (a counter that never falls), for this reason (errno). True: it
    /// was the second time, and the granule is left from now on (told once, however often it is tried later).
    bool refused(std::uint64_t granule, std::uint32_t round, int error) {
        if (granule / chunk >= chunks_.size()) chunks_.resize(granule / chunk + 1);
        std::unique_ptr<Chunk>& part = chunks_[granule / chunk];
        if (!part) part = std::make_unique<Chunk>(); // all 0
        Times& times = (*part)[granule % chunk];
        if (times == twice || times == for_now) return true;
        const bool again = times == once;
        if (times == never) {
            times = once;
            ++waiting_;
        } else {
            waiting_ -= again;
            const bool passes = error == ENOMEM || error == EAGAIN;
            times = passes ? for_now : twice;
            for_now_ += passes;
        }
        round_ = round;
        error_ = error;
        return again;
    }

    /// It is no longer to be tried again: it is where it should be, or somebody else moved it.
    void forget(std::uint64_t granule) noexcept {
        if (times(granule) == never) return;
        if (times(granule) == once) --waiting_;
        if (times(granule) == for_now) --for_now_;
        (*chunks_[granule / chunk])[granule % chunk] = never;
    }

    /// May it be sent in this round?
    bool may_try(std::uint64_t granule, std::uint32_t round) const noexcept {
        const Times before = times(granule);
        return before == never || before == anew || (before == once && round != round_);
    }

    /// Was it refused twice, and is it left where it is?
    bool left(std::uint64_t granule) const noexcept {
        return times(granule) == twice || times(granule) == for_now;
    }

    /// From time to time, in seconds of any clock: what was left for a time may be tried anew when that is
    /// over. The time begins with the first call after the refusal.
    void time_passes(double now) noexcept {
        if (for_now_ == 0) {
            anew_at_ = 0;
        } else if (anew_at_ == 0) {
            anew_at_ = now + pause_;
        } else if (now >= anew_at_) {
            for (const std::unique_ptr<Chunk>& part : chunks_)
                if (part) std::ranges::replace(*part, for_now, anew);
            for_now_ = 0;
            anew_at_ = 0;
            pause_ = std::min(2 * pause_, longest_pause);
        }
    }

    /// Visits those that were refused once: visit(granule), ascending. They may be sent meanwhile.
    template <class Visit> void for_each_waiting(Visit&& visit) const {
        for (std::uint64_t part = 0; waiting_ > 0 && part < chunks_.size(); ++part)
            for (std::uint64_t i = 0; chunks_[part] && i < chunk; ++i)
                if ((*chunks_[part])[i] == once) visit(part * chunk + i);
    }

    /// Granules that were refused once, and not tried again yet; why the last of them was.
    std::uint64_t waiting() const noexcept { return waiting_; }
    int error() const noexcept { return error_; }

  private:
    /// for_now: twice, for a reason that passes; anew: that time is over.
    enum Times : std::uint8_t { never, once, twice, for_now, anew };
    static constexpr std::uint64_t chunk = 4096;
    using Chunk = std::array<Times, chunk>;

    Times times(std::uint64_t granule) const noexcept {
        return granule / chunk < chunks_.size() && chunks_[granule / chunk]
                   ? (*chunks_[granule / chunk])[granule % chunk]
                   : never;
    }

    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::uint64_t waiting_ = 0;
    std::uint64_t for_now_ = 0; ///< granules that are left for a time
    double anew_at_ = 0;        ///< when it is over; 0: it has not begun
    double pause_ = first_pause;
    std::uint32_t round_ = 0; ///< of the last refusal
    int error_ = 0;
};

} // namespace homing
