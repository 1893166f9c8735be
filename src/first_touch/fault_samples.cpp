#include "first_touch/fault_samples.hpp"

#include "base/raw_calls.hpp"

#include <algorithm>
#include <linux/perf_event.h>
#include <tuple>

namespace homing {
namespace {

SamplerEvent faults_on(int cpu, std::uint64_t period) noexcept {
    SamplerEvent event;
    event.type = PERF_TYPE_SOFTWARE;
    // Faults that end in a signal, as those of homing's windows, are none of these.
    event.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
    event.period = period;
    event.monotonic = true;
    event.stack_top = true;
    event.with_new_threads_on = cpu;
    return event;
}

/// Data pages of one ring: a power of two.
std::size_t ring_pages(std::size_t rings) noexcept {
    const std::size_t bytes = std::min(FaultSamples::most_ring_bytes, FaultSamples::ring_bytes / rings);
    std::size_t pages = 1;
    while (2 * pages * page_bytes() <= bytes)
        pages *= 2;
    return pages;
}

} // namespace

int FaultSamples::open(std::span<const int> cpus, bool huge) {
    close();
    if (cpus.empty()) return ENOENT;
    process_ = raw::process_id();
    period_ = huge ? period_of_huge_pages : period;
    const std::size_t pages = ring_pages(2 * cpus.size());
    rings_.reserve(cpus.size());
    for (const int cpu : cpus) {
        RingsOfCpu& rings = rings_.emplace_back();
        int error = kernel_.open_sampler(faults_on(cpu, period_), 0, pages, rings.fine);
        if (!error)
            error =
                kernel_.open_sampler(faults_on(cpu, std::uint64_t{period_} * coarse), 0, pages, rings.coarse);
        if (error) {
            close();
            return error;
        }
    }
    return 0;
}

void FaultSamples::close() {
    for (RingsOfCpu& rings : rings_) {
        if (rings.fine.map) kernel_.close_sampler(rings.fine);
        if (rings.coarse.map) kernel_.close_sampler(rings.coarse);
    }
    rings_.clear();
}

void FaultSamples::sample(const Sample& sample) {
    newest_ = std::max(newest_, sample.time);
    // A child of this process may write into its rings (SamplerEvent::with_new_threads_on).
    if (static_cast<pid_t>(sample.process) != process_ || sample.time <= later_than_) return;
    out_->push_back({static_cast<Address>(sample.address), static_cast<Address>(sample.instruction),
                     static_cast<Address>(sample.stack_top), static_cast<std::int32_t>(sample.thread),
                     static_cast<std::int32_t>(sample.cpu), 1e-9 * static_cast<double>(sample.time),
                     stands_for_});
}

void FaultSamples::drain(std::vector<FaultSample>& out) {
    const std::size_t before = out.size();
    out_ = &out;
    for (const RingsOfCpu& rings : rings_) {
        RingStatistics fine, rough;
        later_than_ = newest_ = 0;
        stands_for_ = period_;
        drain_ring(rings.fine, false, *this, fine, true);
        if (fine.lost == 0) {
            clear_ring(rings.coarse);
            continue;
        }
        later_than_ = newest_;
        stands_for_ = period_ * coarse;
        drain_ring(rings.coarse, false, *this, rough, true);
        lost_ += rough.lost * stands_for_;
    }
    out_ = nullptr;
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(),
              [](const FaultSample& a, const FaultSample& b) {
                  return std::tie(a.time, a.address) < std::tie(b.time, b.address);
              });
}

} // namespace homing
