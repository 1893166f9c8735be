// The sampling mechanism (Nikolopoulos et al. 2000, section 2.1), for programs that do not repeat: from time
// to time some pages of the hot areas are scanned, in turn; those that another node accesses clearly more
// than their home go there. No iteration is waited for, and nothing ever rests.
#pragma once

#include "counters/counted_pages.hpp"
#include "engine/engine.hpp"

#include <cstdint>
#include <vector>

namespace homing::sampling {

/// What scans came to.
struct Totals : counters::Outcome {
    std::uint64_t scans = 0;
    std::uint64_t scanned = 0; ///< pages that were looked at
    double seconds = 0;        ///< processor time of the thread, without the moves
};

class Sampler final : public Mechanism {
  public:
    /// pages: of a scan. Where a machine is simulated a scan comes with the end of each iteration: time is
    /// not the program's there.
    Sampler(int nodes, std::uint64_t pages, double threshold) : most_(pages), pages_(nodes, threshold) {}

    const char* name() const noexcept override { return "sampling"; }
    void references_came(Engine& engine) override { pages_.take(engine); }
    void iteration_observed(Engine&, bool) override {}
    void iteration_begins(Engine& engine) override;
    bool region_begins(Engine& engine, std::uint32_t region) override;
    void process_ends(Engine& engine) override;

    /// One scan. Within Engine::guarded(), by any thread.
    void scan(Engine& engine);
    /// What a scan took of its thread, without the moves: processor seconds.
    void took(double seconds) noexcept { totals_.seconds += seconds; }
    /// Seconds to the next scan: the interval, or more where scans have taken more of a core than they may
    /// (the first ones may take what they need).
    double pause(double interval);
    const Totals& totals() const noexcept { return totals_; }

  private:
    struct Page {
        WatchedArea* area;
        std::uint64_t granule;
    };
    void arm_next(Engine& engine);
    std::vector<Page> next_pages(Engine& engine, bool advance);
    void write_row() const;

    std::uint64_t most_; ///< pages of a scan
    counters::CountedPages pages_;
    std::uint32_t area_ = 0;     ///< of the page that the next scan begins with
    std::uint64_t position_ = 0; ///< among those of the area that exist
    double arming_ = 0;          ///< seconds that arming pages took
    double begun_ = -1;          ///< when the first scan was made
    double excused_ = 0;         ///< seconds that the first scans took
    bool stretched_ = false;     ///< pauses are longer than asked for, which was said
    Totals totals_;
};

} // namespace homing::sampling
