#include "first_touch/fault_samples.hpp"

#include "base/signals_blocked.hpp"

#include <algorithm>
#include <linux/perf_event.h>
#include <mutex>
#include <tuple>

namespace homing {
namespace {

SamplerEvent faults_of_caller(std::uint64_t period) noexcept {
    SamplerEvent event;
    event.type = PERF_TYPE_SOFTWARE;
    // Faults that end in a signal, as those of homing's windows, are none of these.
    event.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
    event.period = period;
    event.monotonic = true;
    event.stack_top = true;
    return event;
}

/// A handler that ends the process while its thread has the lock would wait for itself.
class Locked {
  public:
    explicit Locked(RawMutex& mutex) : holding_(mutex) {}

  private:
    SignalsBlocked quiet_;
    std::lock_guard<RawMutex> holding_;
};

} // namespace

int FaultSamples::open_rings(std::size_t pages, RingsOfThread& rings) noexcept {
    const std::uint64_t bytes = 2 * (1 + pages) * page_bytes();
    if (taken_.fetch_add(bytes) + bytes > budget_) {
        taken_.fetch_sub(bytes);
        return ENOMEM;
    }
    int error = kernel_.open_sampler(faults_of_caller(period_), 0, pages, rings.fine);
    if (error) {
        taken_.fetch_sub(bytes);
        return error;
    }
    error = kernel_.open_sampler(faults_of_caller(std::uint64_t{period_} * coarse), 0, pages, rings.coarse);
    if (!error) return 0;
    kernel_.close_sampler(rings.fine);
    taken_.fetch_sub(bytes);
    return error;
}

/// The limit on locked memory shows as EPERM.
int FaultSamples::open_fitting_rings(std::size_t bytes, RingsOfThread& rings) noexcept {
    std::size_t pages = std::max<std::size_t>(1, bytes / page_bytes());
    for (;; pages /= 2) {
        const int error = open_rings(pages, rings);
        if ((error != EPERM && error != ENOMEM) || pages == 1) return error;
    }
}

void FaultSamples::close_rings(RingsOfThread& rings) noexcept {
    if (!rings.fine.map) return;
    taken_.fetch_sub(rings.fine.bytes + rings.coarse.bytes);
    kernel_.close_sampler(rings.fine);
    kernel_.close_sampler(rings.coarse);
}

int FaultSamples::open(bool huge, std::uint64_t budget, double now) {
    close();
    period_ = huge ? period_of_huge_pages : period;
    budget_ = std::min(budget, most_ring_bytes);
    opened_ = now;
    admitted_ = 0;
    RingsOfThread& rings = rings_.emplace_back();
    const int error = open_fitting_rings(first_ring_bytes, rings);
    if (error)
        rings_.clear();
    else
        open_.store(true, std::memory_order_release);
    return error;
}

FaultSamples::RingsOfThread* FaultSamples::begin_thread(double now) noexcept {
    if (!is_open()) return nullptr;
    if (static_cast<double>(admitted_.fetch_add(1)) >= threads_at_once + (now - opened_) / seconds_each) {
        admitted_.fetch_sub(1);
        refused_.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
    }
    RingsOfThread rings;
    if (open_fitting_rings(ring_bytes, rings) != 0) {
        refused_.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
    }
    try {
        const Locked locked(mutex_);
        if (is_open()) return &rings_.emplace_back(rings);
    } catch (...) {
        refused_.fetch_add(1, std::memory_order_relaxed);
    }
    close_rings(rings);
    return nullptr;
}

void FaultSamples::end_thread(RingsOfThread* rings) noexcept {
    if (!is_open()) return; // the lock may be held for ever, by a thread that this process does not have
    std::list<RingsOfThread> ended;
    {
        const Locked locked(mutex_);
        if (!is_open()) return;
        const auto at =
            std::ranges::find_if(rings_, [rings](const RingsOfThread& one) { return &one == rings; });
        if (at == rings_.end()) return;
        ended.splice(ended.begin(), rings_, at);
        try {
            drain_rings(ended.front(), kept_);
        } catch (...) {
            lost_ += period_;
        }
        if (kept_.size() > most_kept) {
            for (std::size_t i = most_kept; i < kept_.size(); ++i)
                lost_ += kept_[i].stands_for;
            kept_.resize(most_kept);
        }
    }
    close_rings(ended.front());
}

void FaultSamples::close() {
    const Locked locked(mutex_);
    open_.store(false, std::memory_order_release);
    for (RingsOfThread& rings : rings_)
        close_rings(rings);
    rings_.clear();
    kept_.clear();
}

void FaultSamples::sample(const Sample& sample) {
    newest_ = std::max(newest_, sample.time);
    if (sample.time <= later_than_) return;
    out_->push_back({static_cast<Address>(sample.address), static_cast<Address>(sample.instruction),
                     static_cast<Address>(sample.stack_top), static_cast<std::int32_t>(sample.thread),
                     static_cast<std::int32_t>(sample.cpu), 1e-9 * static_cast<double>(sample.time),
                     stands_for_});
}

void FaultSamples::drain_rings(const RingsOfThread& rings, std::vector<FaultSample>& out) {
    RingStatistics fine, rough;
    out_ = &out;
    later_than_ = newest_ = 0;
    stands_for_ = period_;
    drain_ring(rings.fine, false, *this, fine, true);
    if (fine.lost == 0) {
        clear_ring(rings.coarse);
        return;
    }
    later_than_ = newest_;
    stands_for_ = period_ * coarse;
    drain_ring(rings.coarse, false, *this, rough, true);
    lost_ += rough.lost * stands_for_;
}

void FaultSamples::drain(std::vector<FaultSample>& out) {
    if (!is_open()) return;
    const std::size_t before = out.size();
    {
        const Locked locked(mutex_);
        out.insert(out.end(), kept_.begin(), kept_.end());
        kept_.clear();
        for (const RingsOfThread& rings : rings_)
            drain_rings(rings, out);
    }
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(),
              [](const FaultSample& a, const FaultSample& b) {
                  return std::tie(a.time, a.address) < std::tie(b.time, b.address);
              });
}

} // namespace homing
