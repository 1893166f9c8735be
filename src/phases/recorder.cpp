#include "phases/recorder.hpp"

#include "counters/hot_memory.hpp"
#include "record/record.hpp"

#include <algorithm>

namespace homing::replay {
namespace {

/// Granules that windows arm in all of a recorded iteration before they arm a few a region only: at 5 to 15
/// us for arming and the fault that is up to four seconds, once.
constexpr std::uint64_t most_armed = std::uint64_t{1} << 18;
constexpr std::size_t few_armed = 64;

class Recorder final : public Mechanism {
  public:
    explicit Recorder(std::function<Recording*()> recording) : recording_(std::move(recording)) {}
    const char* name() const noexcept override { return "record"; }
    void iteration_observed(Engine&, bool) override {}
    /// It ends with the program's word only.
    bool needs_windows() const noexcept override { return true; }
    bool region_begins(Engine& engine, std::uint32_t region) override;
    void references_came(Engine& engine) override;

  private:
    std::function<Recording*()> recording_;
    std::size_t next_ = 0; ///< of the granules: the first of the next window, where one cannot have all
    std::uint64_t armed_ = 0;
    bool said_ = false;
};

bool Recorder::region_begins(Engine& engine, std::uint32_t) {
    Recording* recording = recording_();
    if (!recording || engine.counts_misses()) return false;
    if (!engine.windows()) {
        recording->is_sample = true;
        return false;
    }
    const counters::HotMemory hot;
    std::vector<Range> granules;
    for (const auto& area : engine.watch().areas())
        for (std::uint64_t granule = 0; granule < area->granules; ++granule)
            if (area->is_armable(granule) && hot.has(*area, granule))
                granules.push_back(area->granule_range(granule));
    const std::size_t most = armed_ < most_armed ? engine.windows()->capacity() : few_armed;
    bool is_whole = true;
    if (granules.size() > most) {
        is_whole = false;
        if (!std::exchange(said_, true))
            record::message(record::Level::note,
                            "recording looks at " + std::to_string(most) + " of " +
                                std::to_string(granules.size()) +
                                " pages in each region, one part after the other: there are too many");
        std::rotate(granules.begin(), granules.begin() + static_cast<std::ptrdiff_t>(next_ % granules.size()),
                    granules.end());
        next_ = (next_ + most) % granules.size();
        granules.resize(most);
        std::ranges::sort(granules, {}, &Range::begin);
    }
    armed_ += granules.size();
    const bool opened = !granules.empty() && engine.open_window(std::move(granules)) > 0;
    recording->is_sample |= !opened || !is_whole;
    return opened;
}

void Recorder::references_came(Engine& engine) {
    Recording* recording = recording_();
    if (!recording) return;
    const counters::HotMemory hot;
    for (const Reference& reference : engine.references()) {
        const WatchedArea* area = engine.watch().find(reference.address);
        if (area && hot.has(*area, area->granule_of(reference.address)))
            recording->add(engine, *area, reference);
    }
}

} // namespace

std::unique_ptr<Mechanism> make_recorder(std::function<Recording*()> recording) {
    return std::make_unique<Recorder>(std::move(recording));
}

} // namespace homing::replay
