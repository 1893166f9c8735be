#include "areas/allocation_plans.hpp"

#include "base/random.hpp"

#include <algorithm>
#include <linux/mempolicy.h>

namespace homing {
namespace {

std::uint64_t packed(AllocationPlans::Run run) noexcept {
    return std::uint64_t{run.end} << 32 | static_cast<std::uint32_t>(run.node);
}
AllocationPlans::Run unpacked(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::int32_t>(word & 0xffffffffu)};
}

} // namespace

std::uint64_t place_and_size(std::size_t bytes, const Address* origin) noexcept {
    std::uint64_t hash = bytes;
    for (int i = 0; i < max_origin_frames; ++i)
        hash = (hash ^ origin[i]) * splitmix_step ^ hash >> 31;
    return hash ? hash : 1;
}

void AllocationPlans::publish(std::uint64_t key, std::span<const Run> runs, Kernel& kernel) noexcept {
    if (runs.size() > most_runs) runs = {};
    kernel_.store(&kernel, std::memory_order_release);
    ++clock_;
    Plan* plan = nullptr;
    for (Plan& one : table_)
        if (one.key.load(std::memory_order_relaxed) == key) plan = &one;
    if (!plan) {
        if (runs.empty()) return;
        plan = std::ranges::min_element(table_, {}, &Plan::published);
    }
    const bool was = plan->key.load(std::memory_order_relaxed) != 0;
    const std::uint64_t version = plan->version.load(std::memory_order_relaxed);
    plan->version.store(version + 1, std::memory_order_relaxed);
    // Each store below is a release: whoever reads one of them, reads the odd version too.
    plan->key.store(runs.empty() ? 0 : key, std::memory_order_release);
    plan->count.store(static_cast<std::uint32_t>(runs.size()), std::memory_order_release);
    for (std::size_t i = 0; i < runs.size(); ++i)
        plan->runs[i].store(packed(runs[i]), std::memory_order_release);
    plan->version.store(version + 2, std::memory_order_release);
    plan->published = runs.empty() ? 0 : clock_;
    if (was != !runs.empty())
        was ? plans_.fetch_sub(1, std::memory_order_relaxed) : plans_.fetch_add(1, std::memory_order_relaxed);
}

bool AllocationPlans::read(std::uint64_t key, std::array<Run, most_runs>& runs,
                           std::size_t& count) const noexcept {
    for (const Plan& plan : table_) {
        const std::uint64_t before = plan.version.load(std::memory_order_acquire);
        if (before % 2 != 0 || plan.key.load(std::memory_order_acquire) != key) continue;
        count = std::min<std::size_t>(plan.count.load(std::memory_order_acquire), most_runs);
        for (std::size_t i = 0; i < count; ++i)
            runs[i] = unpacked(plan.runs[i].load(std::memory_order_acquire));
        // Acquire loads above keep their order with this one.
        return count > 0 && plan.version.load(std::memory_order_relaxed) == before;
    }
    return false;
}

void AllocationPlans::withdraw() noexcept {
    for (Plan& plan : table_)
        if (const std::uint64_t key = plan.key.load(std::memory_order_relaxed))
            publish(key, {}, *kernel_.load(std::memory_order_relaxed));
}

/// False where there is no room. A block whose end was missed, and in whose place another one begins, is
/// known.
bool AllocationPlans::remember(Address block) noexcept {
    for (const std::atomic<Address>& slot : blocks_)
        if (slot.load(std::memory_order_relaxed) == block) return true;
    for (std::atomic<Address>& slot : blocks_) {
        Address none = 0;
        if (!slot.compare_exchange_strong(none, block, std::memory_order_acq_rel)) continue;
        live_.fetch_add(1, std::memory_order_seq_cst);
        return true;
    }
    return false;
}

void AllocationPlans::begins(Range block, std::uint64_t key) noexcept {
    std::array<Run, most_runs> runs;
    std::size_t count = 0;
    const Range pages = whole_pages(block);
    Kernel* kernel = kernel_.load(std::memory_order_acquire);
    if (!kernel || pages.empty() || !read(key, runs, count)) return;
    if (!remember(block.begin)) return; // it would keep the policy for ever
    Address from = pages.begin;
    for (std::size_t i = 0; i < count && from < pages.end; ++i) {
        const Address to =
            i + 1 == count ? pages.end
                           : std::clamp<Address>(pages.begin + runs[i].end * page_bytes(), from, pages.end);
        MemoryPolicy policy{MPOL_PREFERRED | MPOL_F_STATIC_NODES, {}};
        policy.nodes.add(runs[i].node);
        if (from < to && runs[i].node >= 0 && kernel->bind({from, to}, policy) != 0) return;
        from = to;
    }
    placed_.fetch_add(1, std::memory_order_relaxed);
}

void AllocationPlans::ends(Range block) noexcept {
    if (live_.load(std::memory_order_seq_cst) == 0) return;
    for (std::atomic<Address>& slot : blocks_) {
        Address known = block.begin;
        if (slot.load(std::memory_order_acquire) != known ||
            !slot.compare_exchange_strong(known, 0, std::memory_order_acq_rel))
            continue;
        live_.fetch_sub(1, std::memory_order_relaxed);
        kernel_.load(std::memory_order_acquire)->bind(whole_pages(block), {});
        return;
    }
}

AllocationPlans& allocation_plans() noexcept {
    static constinit AllocationPlans plans;
    return plans;
}

} // namespace homing
