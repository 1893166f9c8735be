// Does arming everything at the start of a region pay at all? Data that a thread has at home can save no more
// than the region takes: an arming, with the faults that follow from it, that costs more than that never
// pays. A region is armed once to know what that costs, and from then on where it costs no more than the
// region takes without it. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace homing {

class ArmingCeiling {
  public:
    /// May so many granules be armed in the region that begins? Counts where they may not.
    bool allows(std::uint32_t region, std::uint64_t granules) {
        Region& one = at(region);
        if (!one.cost_known || price(one, granules) <= one.seconds) return true;
        ++left_out_;
        left_price_ += price(one, granules);
        left_seconds_ += one.seconds;
        return false;
    }
    /// It took so long, nothing being armed in it.
    void took(std::uint32_t region, double seconds) { at(region).took(seconds); }
    /// It took so long beside what arming so many granules cost.
    void cost(std::uint32_t region, double seconds, std::uint64_t granules, double price) {
        Region& one = at(region);
        if (one.cost_known || seconds < one.seconds) one.took(seconds);
        one.price = price;
        one.granules = std::max<std::uint64_t>(1, granules);
        one.cost_known = true;
    }

    std::uint64_t left_out() const noexcept { return left_out_; }
    std::string what_was_left_out() const {
        char text[200];
        std::snprintf(text, sizeof text,
                      "next touch: %llu regions were not armed: that takes %.0f us, and they take %.0f",
                      static_cast<unsigned long long>(left_out_), 1e6 * left_price(), 1e6 * left_seconds());
        return text;
    }
    /// Seconds that arming one of those would have cost, and that it took: means.
    double left_price() const noexcept { return mean(left_price_); }
    double left_seconds() const noexcept { return mean(left_seconds_); }

  private:
    struct Region {
        double seconds = 1e9; ///< without what arming cost; not known yet
        double newest = 1e9;
        double price = 0; ///< of the newest arming, of so many granules
        std::uint64_t granules = 1;
        bool cost_known = false;

        /// The shorter of the two newest entries: one that was held up says nothing (a busy machine).
        void took(double now) noexcept {
            seconds = std::min(newest, now);
            newest = now;
        }
    };
    static double price(const Region& one, std::uint64_t granules) noexcept {
        return one.price * static_cast<double>(granules) / static_cast<double>(one.granules);
    }
    double mean(double sum) const noexcept { return left_out_ ? sum / static_cast<double>(left_out_) : 0; }
    Region& at(std::uint32_t region) {
        if (regions_.size() <= region) regions_.resize(region + 1);
        return regions_[region];
    }

    std::vector<Region> regions_;
    std::uint64_t left_out_ = 0;
    double left_price_ = 0, left_seconds_ = 0;
};

} // namespace homing
