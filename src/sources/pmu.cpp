// References from precise memory samples of the PMU (pmu_events.hpp): each sample has the address and the CPU
// of a load or store; those served by the own socket's caches are left out. The kernel stays out of the
// samples where it can.
#include "sources/references.hpp"

#include "sources/data_source.hpp"
#include "sources/pmu_events.hpp"
#include "sources/pmu_period.hpp"
#include "sources/samplers.hpp"
#include "sources/spe.hpp"
#include "sources/watched.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <linux/perf_event.h>

namespace homing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double seconds_between_changes = 0.25;
constexpr std::size_t bytes_of_sample = 56;
constexpr std::uint64_t samples_without_address = 1000; ///< after so many and none with one, say so

class Pmu final : public ReferenceSource, private SampleVisitor {
  public:
    Pmu(Kernel& kernel, const char* sysfs, const char* proc)
        : kernel_(kernel), proc_(proc), description_(describe_pmu(sysfs)), samplers_(kernel, proc) {}

    const char* name() const noexcept override { return "pmu"; }
    std::string unavailable() override;
    bool start(std::span<const WatchedRange> ranges) override;
    void stop() override;
    void follow_threads() override { samplers_.follow_threads(); }
    void drain(std::vector<Reference>& out) override;
    std::uint64_t lost() const noexcept override { return lost_ + samplers_.statistics().lost; }
    std::string reason() const override { return reason_; }
    std::uint64_t unit() const noexcept override { return unit_; }

  private:
    void sample(std::size_t event, const Sample& sample) override;
    void aux(std::size_t event, const SamplerRing& ring, const AuxChunk& chunk) override;
    void refer(std::size_t event, const Reference& seen, std::uint32_t cpu);
    bool open();
    void begin_to_count();
    void adapt();

    Kernel& kernel_;
    std::string proc_;
    PmuDescription description_;
    bool tried_ = false;
    ThreadSamplers samplers_;
    WatchedRanges watched_;
    std::vector<std::uint64_t> seen_; ///< samples since the last change of periods, by event
    Clock::time_point since_{};
    std::uint64_t unit_ = 1;
    unsigned drains_ = 0;           ///< since then
    std::uint64_t lost_before_ = 0; ///< of samplers_, at that time
    std::uint64_t lost_ = 0;        ///< by samplers that were open earlier since start()
    std::uint64_t unaddressed_ = 0;
    bool addressed_ = false;
    std::vector<std::uint8_t> chunk_;
    std::vector<SpeRecord> records_;
    SpeStatistics spe_;
    std::vector<Reference>* out_ = nullptr;
    std::string reason_;
};

/// Keeps the events that can be opened here, each with the highest precision that the kernel grants.
std::string Pmu::unavailable() {
    if (description_.kind == PmuKind::none) return description_.why_not;
    if (tried_) return description_.why_not;
    tried_ = true;
    int first_error = 0;
    const bool excludes_kernel = description_.events.front().sampler.exclude_kernel;
    std::erase_if(description_.events, [this, &first_error](PmuEvent& event) {
        int error = 0;
        do {
            SamplerRing ring;
            error = kernel_.open_sampler(event.sampler, 0, 1, ring);
            if (!error) {
                kernel_.close_sampler(ring);
                return false;
            }
            // Less precision is better than none, but without any the address is not that of the access.
        } while ((error == EOPNOTSUPP || error == EINVAL) && --event.sampler.precise >= 1);
        if (!first_error) first_error = error;
        return true;
    });
    if (description_.kind == PmuKind::pebs &&
        std::all_of(description_.events.begin(), description_.events.end(),
                    [](const PmuEvent& e) { return e.stores; }))
        description_.events.clear(); // stores alone tell too little
    if (!description_.events.empty()) return {};
    description_.why_not = explain_sampler_error(first_error, proc_.c_str());
    if (description_.kind == PmuKind::ibs && !excludes_kernel &&
        (first_error == EACCES || first_error == EPERM))
        description_.why_not += " and this kernel's IBS cannot leave out the kernel (Linux 6.14 can)";
    return description_.why_not;
}

bool Pmu::open() {
    std::vector<SamplerEvent> events;
    for (const PmuEvent& event : description_.events)
        events.push_back(event.sampler);
    const int error = samplers_.open(events); // its statistics begin anew
    begin_to_count();
    if (error) reason_ = explain_sampler_error(error, proc_.c_str());
    return error == 0;
}

void Pmu::begin_to_count() {
    seen_.assign(description_.events.size(), 0);
    since_ = Clock::now();
    drains_ = 0;
    lost_before_ = samplers_.statistics().lost;
}

bool Pmu::start(std::span<const WatchedRange> ranges) {
    reason_.clear();
    if (const std::string why = unavailable(); !why.empty()) {
        reason_ = why;
        return false;
    }
    watched_.assign(ranges);
    if (samplers_.is_open()) return true;
    lost_ = 0;
    unit_ = description_.events.front().sampler.period;
    if (open()) return true;
    watched_.clear();
    return false;
}

void Pmu::stop() {
    samplers_.close();
    watched_.clear();
}

void Pmu::refer(std::size_t event, const Reference& seen, std::uint32_t cpu) {
    if (!watched_.contains(seen.address)) return;
    Reference reference = seen;
    reference.node = static_cast<std::int16_t>(kernel_.node_of_cpu(static_cast<int>(cpu)));
    if (reference.node < 0) return;
    const std::uint64_t period = description_.events[event].sampler.period;
    reference.weight =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>((period + unit_ / 2) / unit_, 1, ~0u));
    out_->push_back(reference);
}

void Pmu::sample(std::size_t event, const Sample& sample) {
    ++seen_[event];
    const PmuEvent& what = description_.events[event];
    if (sample.address == 0) { // IBS also tags micro-ops that do not touch memory
        ++unaddressed_;
        return;
    }
    addressed_ = true;
    if (what.sampler.weight && served(sample.data_source) == Served::cache) return;
    Reference seen;
    seen.address = sample.address;
    seen.write = what.stores || is_store(sample.data_source);
    seen.thread = static_cast<std::int32_t>(sample.thread);
    seen.instruction = sample.instruction;
    refer(event, seen, sample.cpu);
}

void Pmu::aux(std::size_t event, const SamplerRing& ring, const AuxChunk& chunk) {
    // Out of the circular buffer, in one piece.
    const std::size_t bytes = static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size, ring.aux_bytes));
    if (bytes == 0) return;
    const std::size_t at = static_cast<std::size_t>(chunk.offset % ring.aux_bytes);
    const std::size_t first = std::min(bytes, ring.aux_bytes - at);
    const auto* buffer = static_cast<const std::uint8_t*>(ring.aux);
    chunk_.resize(bytes);
    std::memcpy(chunk_.data(), buffer + at, first);
    std::memcpy(chunk_.data() + first, buffer, bytes - first);
    records_.clear();
    decode_spe(chunk_, records_, spe_);
    seen_[event] += records_.size();
    for (const SpeRecord& record : records_)
        if (record.memory_operation && record.has_address &&
            spe_went_beyond_caches(record, description_.neoverse_sources)) {
            addressed_ = true;
            Reference seen;
            seen.address = record.address;
            seen.write = record.store;
            seen.thread = ring.thread;
            refer(event, seen, chunk.cpu);
        }
}

void Pmu::adapt() {
    const double seconds = std::chrono::duration<double>(Clock::now() - since_).count();
    if (seconds < seconds_between_changes) return;
    // What was lost was too much, whichever event it was of.
    const std::uint64_t lost = samplers_.statistics().lost - lost_before_;
    const std::size_t ring_samples = samplers_.ring_pages() * page_bytes() / bytes_of_sample;
    bool changed = false;
    for (std::size_t event = 0; event < seen_.size(); ++event) {
        PmuEvent& what = description_.events[event];
        // References weigh 1 at least, so a period far below the unit would count them too high.
        const PeriodLimits limits{.least = std::max(what.least_period, std::min<std::uint64_t>(unit_, 1000)),
                                  .unit = what.period_unit,
                                  .most_rate =
                                      most_rate(samplers_.threads(), ring_samples, seconds / drains_)};
        const std::uint64_t period =
            adapted_period(what.sampler.period, seen_[event] + lost, seconds, limits);
        changed = changed || period != what.sampler.period;
        what.sampler.period = period;
    }
    if (changed) {
        lost_ += samplers_.statistics().lost;
        open();
    } else {
        begin_to_count();
    }
}

void Pmu::drain(std::vector<Reference>& out) {
    if (!samplers_.is_open()) return;
    out_ = &out;
    samplers_.drain(*this);
    out_ = nullptr;
    ++drains_;
    if (!addressed_ && unaddressed_ > samples_without_address && reason_.empty())
        reason_ = description_.kind == PmuKind::ibs ? "this kernel's IBS tells no addresses (Linux 6.1 does)"
                                                    : "the samples have no addresses";
    adapt();
}

} // namespace

ReferenceSource* make_pmu_source(Kernel& kernel, const char* sysfs, const char* proc) {
    return new Pmu(kernel, sysfs, proc);
}

} // namespace homing
