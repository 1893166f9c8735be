// Granules that the kernel would not move: tried once more in a later round, then left where they are.
// Without this, what is pinned or shared with a child would be sent again in every round.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace homing {

class RefusedPages {
  public:
    /// A granule was not moved in this round (a counter that never falls), for this reason (errno). True: it
    /// was the second time, and the granule is left from now on.
    bool refused(std::uint64_t granule, std::uint32_t round, int error) {
        if (granule / chunk >= chunks_.size()) chunks_.resize(granule / chunk + 1);
        std::unique_ptr<Chunk>& part = chunks_[granule / chunk];
        if (!part) part = std::make_unique<Chunk>(); // all 0
        Times& times = (*part)[granule % chunk];
        if (times == twice) return true;
        const bool again = times == once;
        times = again ? twice : once;
        again ? --waiting_ : ++waiting_;
        round_ = round;
        error_ = error;
        return again;
    }

    /// It is no longer to be tried again: it is where it should be, or somebody else moved it.
    void forget(std::uint64_t granule) noexcept {
        if (times(granule) == never) return;
        if (times(granule) == once) --waiting_;
        (*chunks_[granule / chunk])[granule % chunk] = never;
    }

    /// May it be sent in this round?
    bool may_try(std::uint64_t granule, std::uint32_t round) const noexcept {
        const Times before = times(granule);
        return before == never || (before == once && round != round_);
    }

    /// Was it refused twice?
    bool left(std::uint64_t granule) const noexcept { return times(granule) == twice; }

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
    enum Times : std::uint8_t { never, once, twice };
    static constexpr std::uint64_t chunk = 4096;
    using Chunk = std::array<Times, chunk>;

    Times times(std::uint64_t granule) const noexcept {
        return granule / chunk < chunks_.size() && chunks_[granule / chunk]
                   ? (*chunks_[granule / chunk])[granule % chunk]
                   : never;
    }

    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::uint64_t waiting_ = 0;
    std::uint32_t round_ = 0; ///< of the last refusal
    int error_ = 0;
};

} // namespace homing
