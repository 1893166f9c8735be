// References from the kernel's NUMA hint faults. The balancer makes pages inaccessible from time to time so
// that it sees who touches them; the faults show as software page-fault events of perf, with address, thread
// and CPU. They are exact, and safe for system calls; that the kernel would also migrate the pages is kept
// off by a memory policy (sources/observed_memory.hpp).
//
// First touches of pages that did not exist show as well; they are references, too. From Linux 6.4 the
// balancer scans only areas that a thread has used lately, so that the first faults come one scan later than
// before.
#include "sources/references.hpp"

#include "sources/observed_memory.hpp"
#include "sources/samplers.hpp"
#include "sources/watched.hpp"

#include <linux/perf_event.h>

namespace homing {
namespace {

SamplerEvent page_faults() noexcept {
    SamplerEvent event;
    event.type = PERF_TYPE_SOFTWARE;
    event.config = PERF_COUNT_SW_PAGE_FAULTS;
    event.period = 1;
    event.monotonic = true;
    return event;
}

class HintFaults final : public ReferenceSource, private SampleVisitor {
  public:
    HintFaults(Kernel& kernel, const Machine& machine, const char* proc, PolicyKeeper* keeper)
        : kernel_(kernel), proc_(proc), samplers_(kernel, proc), observed_(kernel, machine, proc, keeper) {}
    ~HintFaults() override { stop(); }

    const char* name() const noexcept override { return "hint-faults"; }
    std::string unavailable() override;
    bool start(std::span<const WatchedRange> ranges) override;
    void stop() override;
    void follow_threads() override { samplers_.follow_threads(); }
    /// Without the policy that keeps hint faults coming: under it, what we touch would go where we run.
    void pause() override { observed_.release(); }
    void drain(std::vector<Reference>& out) override;
    std::uint64_t lost() const noexcept override { return samplers_.statistics().lost; }
    std::string reason() const override { return observed_.reason().empty() ? refused_ : observed_.reason(); }
    bool scans() const noexcept override { return true; }

  private:
    void sample(std::size_t event, const Sample& sample) override;

    Kernel& kernel_;
    std::string proc_;
    ThreadSamplers samplers_;
    ObservedMemory observed_;
    WatchedRanges watched_;
    std::vector<Reference>* out_ = nullptr;
    std::string refused_; ///< why threads are not observed
};

std::string HintFaults::unavailable() {
    long balancing = 0;
    if (!read_number(proc_ + "/sys/kernel/numa_balancing", balancing))
        return "the kernel has no NUMA balancing";
    // Bit 1 alone (memory tiering) makes hint faults on slow memory only.
    if ((balancing & 1) == 0) return "kernel.numa_balancing is " + std::to_string(balancing);
    SamplerRing ring;
    if (const int error = kernel_.open_sampler(page_faults(), 0, 1, ring))
        return explain_sampler_error(error, proc_.c_str());
    kernel_.close_sampler(ring);

    return observed_.unavailable();
}

bool HintFaults::start(std::span<const WatchedRange> ranges) {
    refused_.clear();
    observed_.forget_reason();
    if (!samplers_.is_open()) {
        const SamplerEvent event = page_faults();
        if (const int error = samplers_.open(std::span(&event, 1))) {
            refused_ = explain_sampler_error(error, proc_.c_str());
            return false;
        }
    }
    if (samplers_.refused() > 0)
        refused_ = std::to_string(samplers_.refused()) + " threads cannot be observed: " +
                   explain_sampler_error(samplers_.refused_error(), proc_.c_str());
    watched_.assign(ranges);
    if (observed_.assign(ranges)) return true;
    stop();
    return false;
}

void HintFaults::stop() {
    pause();
    samplers_.close();
    watched_.clear();
}

void HintFaults::sample(std::size_t, const Sample& sample) {
    if (!watched_.contains(sample.address)) return;
    Reference reference;
    reference.address = sample.address;
    reference.node = static_cast<std::int16_t>(kernel_.node_of_cpu(static_cast<int>(sample.cpu)));
    reference.thread = static_cast<std::int32_t>(sample.thread);
    reference.instruction = sample.instruction;
    reference.time = 1e-9 * static_cast<double>(sample.time);
    if (reference.node >= 0) out_->push_back(reference);
}

void HintFaults::drain(std::vector<Reference>& out) {
    out_ = &out;
    samplers_.drain(*this);
    out_ = nullptr;
    observed_.look();
}

} // namespace

ReferenceSource* make_hint_fault_source(Kernel& kernel, const Machine& machine, const char* proc,
                                        PolicyKeeper* keeper) {
    return new HintFaults(kernel, machine, proc, keeper);
}

} // namespace homing
