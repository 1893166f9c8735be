// References from the kernel's NUMA hint faults. The balancer makes pages inaccessible from time to time so
// that it sees who touches them; the faults show as software page-fault events of perf, with address, thread
// and CPU. They are exact, and safe for system calls, but the kernel would also migrate the pages: MPOL_BIND
// | MPOL_F_NUMA_BALANCING with one node keeps the faults and stops (almost) all migration, because a page may
// only go to a node of its policy. So each piece of a watched range is bound to the node where most of it
// lies already.
//
// First touches of pages that did not exist show as well; they are references, too. From Linux 6.4 the
// balancer scans only areas that a thread has used lately, so that the first faults come one scan later than
// before.
#include "references/references.hpp"

#include "areas/policies.hpp"
#include "base/raw_calls.hpp"
#include "references/samplers.hpp"
#include "references/watched.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <linux/perf_event.h>
#include <memory>

namespace homing {
namespace {

constexpr std::size_t probes_of_piece = 16;   ///< pages looked at in each piece
constexpr std::size_t pieces_of_range = 64;   ///< at most, so that a range gets few mappings
constexpr std::size_t pieces_of_retry = 1024; ///< probed again in one drain
constexpr unsigned longest_retry = 8; ///< drains: an array may be filled at any time, and is few probes
constexpr std::uint64_t free_reserve = std::uint64_t{64}
                                       << 20; ///< a node keeps this much free, or is not bound to

SamplerEvent page_faults() noexcept {
    SamplerEvent event;
    event.type = PERF_TYPE_SOFTWARE;
    event.config = PERF_COUNT_SW_PAGE_FAULTS;
    event.period = 1;
    return event;
}

class HintFaults final : public ReferenceSource, private SampleVisitor {
  public:
    HintFaults(Kernel& kernel, const Machine& machine, const char* proc, PolicyKeeper* keeper)
        : kernel_(kernel), proc_(proc), samplers_(kernel, proc), targets_(machine.targets()),
          own_keeper_(keeper ? nullptr : std::make_unique<PolicyKeeper>(kernel)),
          keeper_(keeper ? *keeper : *own_keeper_) {}
    ~HintFaults() override { stop(); }

    const char* name() const noexcept override { return "hint-faults"; }
    std::string unavailable() override;
    bool start(std::span<const WatchedRange> ranges) override;
    void stop() override;
    void follow_threads() override { samplers_.follow_threads(); }
    void pause() override;
    void drain(std::vector<Reference>& out) override;
    void abandon() noexcept override;
    std::uint64_t lost() const noexcept override { return samplers_.statistics().lost; }
    std::string reason() const override { return reason_; }
    bool scans() const noexcept override { return true; }

  private:
    /// Part of a watched range that gets one policy.
    struct Piece {
        Range range;
        std::size_t populated = 0; ///< of the probes
        std::size_t probes = 0;
        std::array<std::uint8_t, max_nodes> on{}; ///< probes that lie on each node
    };

    void sample(std::size_t event, const Sample& sample) override;
    void cut(Range range, std::vector<Piece>& pieces) const;
    void probe(std::vector<Piece>& pieces);
    bool present(Address address);
    int node_for(const Piece& piece, int fallback) noexcept;
    void observe(std::vector<Piece> pieces);
    void retry();

    Kernel& kernel_;
    std::string proc_;
    ThreadSamplers samplers_;
    NodeSet targets_;
    std::unique_ptr<PolicyKeeper> own_keeper_;
    PolicyKeeper& keeper_;
    WatchedRanges watched_;
    std::vector<Piece> waiting_; ///< not populated when last probed
    unsigned retry_in_ = 0;      ///< drains until some of them are probed again
    unsigned retry_after_ = 4;
    int pagemap_ = -1; ///< open only while probing
    std::vector<Reference>* out_ = nullptr;
    std::string reason_;
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

    // Does the kernel know the policy that keeps hint faults coming? Tried on a page of our own.
    const std::size_t bytes = page_bytes();
    void* const page = std::aligned_alloc(bytes, bytes);
    if (!page) return "no memory";
    const Address address = reinterpret_cast<Address>(page);
    NodeSet allowed;
    int error = kernel_.allowed_nodes(allowed);
    MemoryPolicy before;
    if (!error) error = kernel_.policy_at(address, before);
    if (!error) error = kernel_.bind({address, address + bytes}, observed_policy(allowed.first()));
    const bool unknown = error == EINVAL;
    if (!error) error = kernel_.bind({address, address + bytes}, before);
    std::free(page);
    if (unknown) return "Linux 5.12 or later is needed";
    if (error) return std::string("memory policies cannot be set here: ") + std::strerror(error);
    return {};
}

/// Whole granules, so that no huge page is cut by a policy's border.
Range whole_granules(const WatchedRange& watched) noexcept {
    const Range pages = whole_pages(watched.range);
    if (!std::has_single_bit(watched.granule) || watched.granule <= page_bytes()) return pages;
    const Range inner{align_up(pages.begin, watched.granule), align_down(pages.end, watched.granule)};
    return inner.empty() ? Range{pages.begin, pages.begin} : inner;
}

/// Pieces of 2 MiB, or larger ones so that they are not too many; borders inside the range are those of huge
/// pages.
void HintFaults::cut(Range range, std::vector<Piece>& pieces) const {
    const std::size_t step =
        std::max(huge_page_bytes, align_up(range.bytes() / pieces_of_range + 1, huge_page_bytes));
    for (Address begin = range.begin; begin < range.end;) {
        const Address end =
            std::min(range.end, align_up(begin + 1, huge_page_bytes) + step - huge_page_bytes);
        pieces.push_back({.range = {begin, end}});
        begin = end;
    }
}

/// Is there a page, in memory or swapped out, whatever query() says? (Kernels up to 6.5 answer ENOENT for a
/// page that is armed for a hint fault.)
bool HintFaults::present(Address address) {
    if (pagemap_ < 0) pagemap_ = raw::open((proc_ + "/self/pagemap").c_str(), O_RDONLY);
    if (pagemap_ < 0) return false;
    std::uint64_t entry = 0;
    const long got = raw::read_at(pagemap_, &entry, sizeof entry, address / page_bytes() * sizeof entry);
    return got == sizeof entry && (entry >> 62) != 0;
}

void HintFaults::probe(std::vector<Piece>& pieces) {
    std::vector<void*> pages;
    std::vector<int> nodes;
    std::vector<std::size_t> of;
    constexpr std::size_t batch = 4096;
    const auto flush = [&] {
        nodes.assign(pages.size(), -ENOENT);
        if (!pages.empty() && kernel_.query(pages, nodes) == 0) {
            for (std::size_t i = 0; i < pages.size(); ++i) {
                Piece& piece = pieces[of[i]];
                if (nodes[i] >= 0 && nodes[i] < max_nodes) {
                    ++piece.populated;
                    ++piece.on[static_cast<std::size_t>(nodes[i])];
                } else if (nodes[i] == -ENOENT && present(reinterpret_cast<Address>(pages[i]))) {
                    ++piece.populated;
                }
            }
        }
        pages.clear();
        of.clear();
    };
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        Piece& piece = pieces[i];
        piece.populated = 0;
        piece.on = {};
        const std::size_t count = piece.range.bytes() / page_bytes();
        piece.probes = std::min(count, probes_of_piece);
        for (std::size_t n = 0; n < piece.probes; ++n) {
            // In the middle of equal parts.
            const std::size_t page = (2 * n + 1) * count / (2 * piece.probes);
            pages.push_back(reinterpret_cast<void*>(piece.range.begin + page * page_bytes()));
            of.push_back(i);
        }
        if (pages.size() >= batch) flush();
    }
    flush();
    raw::close(pagemap_);
    pagemap_ = -1;
}

/// Where most of the piece lies, if that node can still take the pages that are missing; else -1.
int HintFaults::node_for(const Piece& piece, int fallback) noexcept {
    const auto most = std::max_element(piece.on.begin(), piece.on.end());
    const int node = *most > 0 ? static_cast<int>(most - piece.on.begin()) : fallback;
    if (node < 0) return -1;
    const std::uint64_t free = kernel_.free_bytes(node);
    const std::uint64_t missing = piece.range.bytes() / piece.probes * (piece.probes - piece.populated);
    return free == 0 || free >= free_reserve + missing ? node : -1;
}

/// Bind what is populated; the rest waits until it is.
void HintFaults::observe(std::vector<Piece> pieces) {
    probe(pieces);
    std::vector<PolicyKeeper::Request> requests;
    waiting_.clear();
    int before = targets_.first();
    for (const Piece& piece : pieces) {
        const int node = piece.probes && 2 * piece.populated >= piece.probes ? node_for(piece, before) : -1;
        if (node < 0) {
            if (piece.probes) waiting_.push_back(piece);
            continue;
        }
        before = node;
        const bool goes_on = !requests.empty() && requests.back().range.end == piece.range.begin &&
                             requests.back().policy == observed_policy(node);
        if (goes_on)
            requests.back().range.end = piece.range.end;
        else
            requests.push_back({piece.range, observed_policy(node)});
    }
    const auto outcome = keeper_.set(PolicyKeeper::Layer::observed, requests);
    if (outcome.error)
        reason_ = std::to_string(outcome.failed) + " of " + std::to_string(requests.size()) +
                  " ranges cannot be observed: " + std::strerror(outcome.error);
}

bool HintFaults::start(std::span<const WatchedRange> ranges) {
    reason_.clear();
    if (!samplers_.is_open()) {
        const SamplerEvent event = page_faults();
        if (const int error = samplers_.open(std::span(&event, 1))) {
            reason_ = explain_sampler_error(error, proc_.c_str());
            return false;
        }
    }
    // What is not watched any more gets its policy back; what still is must not blink: the balancer would
    // start anew.
    std::vector<Range> gone;
    std::size_t next = 0;
    for (const WatchedRange& old : watched_.all()) {
        Address at = old.range.begin;
        while (next < ranges.size() && ranges[next].range.end <= at)
            ++next;
        for (std::size_t i = next; i < ranges.size() && ranges[i].range.begin < old.range.end; ++i) {
            if (ranges[i].range.begin > at) gone.push_back({at, ranges[i].range.begin});
            at = std::max(at, ranges[i].range.end);
        }
        if (at < old.range.end) gone.push_back({at, old.range.end});
    }
    keeper_.clear(PolicyKeeper::Layer::observed, gone);
    watched_.assign(ranges);

    std::vector<Piece> pieces;
    for (const WatchedRange& watched : ranges)
        cut(whole_granules(watched), pieces);
    const bool wanted = !pieces.empty();
    observe(std::move(pieces));
    retry_after_ = retry_in_ = 4;
    if (samplers_.refused() > 0 && reason_.empty())
        reason_ = std::to_string(samplers_.refused()) + " threads cannot be observed: " +
                  explain_sampler_error(samplers_.refused_error(), proc_.c_str());
    if (wanted && waiting_.empty() && keeper_.bytes(PolicyKeeper::Layer::observed) == 0 && !reason_.empty()) {
        const std::string why = reason_;
        stop();
        reason_ = why;
        return false;
    }
    return true;
}

/// Without the policy that keeps hint faults coming: under it, what we touch would go where we run.
void HintFaults::pause() {
    std::vector<Range> ranges;
    for (const WatchedRange& watched : watched_.all())
        ranges.push_back(watched.range);
    const auto outcome = keeper_.clear(PolicyKeeper::Layer::observed, ranges);
    if (outcome.error)
        reason_ = std::string("a memory policy could not be given back: ") + std::strerror(outcome.error);
}

void HintFaults::stop() {
    pause();
    samplers_.close();
    watched_.clear();
    waiting_.clear();
}

void HintFaults::abandon() noexcept {
    samplers_.abandon();
    watched_.clear();
    waiting_.clear();
}

void HintFaults::sample(std::size_t, const Sample& sample) {
    if (!watched_.contains(sample.address)) return;
    Reference reference;
    reference.address = sample.address;
    reference.node = static_cast<std::int16_t>(kernel_.node_of_cpu(static_cast<int>(sample.cpu)));
    if (reference.node >= 0) out_->push_back(reference);
}

void HintFaults::drain(std::vector<Reference>& out) {
    out_ = &out;
    samplers_.drain(*this);
    out_ = nullptr;
    if (!waiting_.empty() && retry_in_-- == 0) retry();
}

/// Memory that is populated by now can be bound. What stays unpopulated is asked ever more rarely.
void HintFaults::retry() {
    const std::size_t before = waiting_.size();
    const std::size_t count = std::min(before, pieces_of_retry);
    const auto middle = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<Piece> pieces(waiting_.begin(), middle);
    std::vector<Piece> rest(middle, waiting_.end());
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.range.begin < b.range.begin; });
    observe(std::move(pieces));
    waiting_.insert(waiting_.begin(), rest.begin(), rest.end());
    retry_after_ = waiting_.size() < before ? 4 : std::min(longest_retry, 2 * retry_after_);
    retry_in_ = retry_after_;
}

} // namespace

ReferenceSource* make_hint_fault_source(Kernel& kernel, const Machine& machine, const char* proc,
                                        PolicyKeeper* keeper) {
    return new HintFaults(kernel, machine, proc, keeper);
}

} // namespace homing
