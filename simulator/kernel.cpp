#include "kernel.hpp"

#include "model.hpp"

#include <algorithm>
#include <cerrno>
#include <linux/mempolicy.h>

namespace homing::simulator {
namespace {

constinit std::atomic<bool> protections{false};

class ModelKernel final : public Kernel {
  public:
    int query(std::span<void* const> pages, std::span<int> nodes) noexcept override {
        for (std::size_t i = 0; i < pages.size(); ++i) {
            const int home = home_of(reinterpret_cast<Address>(pages[i]));
            nodes[i] = home >= 0 ? home : -EFAULT;
        }
        return 0;
    }

    int move(std::span<void* const> pages, std::span<const int> targets,
             std::span<int> status) noexcept override {
        std::uint64_t moved = 0;
        for (std::size_t i = 0; i < pages.size(); ++i) {
            const auto address = reinterpret_cast<Address>(pages[i]);
            const int before = home_of(address);
            const int error = send(address, targets[i]);
            status[i] = error == 0 ? targets[i] : -error;
            moved += error == 0 && before != targets[i];
        }
        move_totals().calls.fetch_add(1, std::memory_order_relaxed);
        move_totals().pages.fetch_add(moved, std::memory_order_relaxed);
        return 0;
    }

    int bind(Range range, MemoryPolicy policy) noexcept override {
        try {
            bind_range(range, policy.mode, policy.mode == MPOL_DEFAULT ? 0 : policy.nodes.bits);
        } catch (...) {
            return ENOMEM;
        }
        return 0;
    }

    int policy_at(Address address, MemoryPolicy& policy) noexcept override {
        policy = {};
        policy_of(address, policy.mode, policy.nodes.bits);
        return 0;
    }

    int task_policy(MemoryPolicy& policy) noexcept override {
        policy = {};
        task_policy_of_caller(policy.mode, policy.nodes.bits);
        return 0;
    }

    int allowed_nodes(NodeSet& nodes) noexcept override {
        nodes = {};
        for (int node = 0; node < described().nodes(); ++node)
            nodes.add(node);
        return 0;
    }

    int protect(Range range, Access access) noexcept override {
        set_protection(range, access == Access::none);
        if (access == Access::none) protections.store(true, std::memory_order_release);
        return 0;
    }

    int current_node() noexcept override {
        const simulator::Thread* one = simulator::current_thread();
        return one ? one->node : 0;
    }

    std::uint64_t free_bytes(int node) noexcept override { return free_bytes_of(node); }

    int open_sampler(const SamplerEvent&, int, std::size_t, SamplerRing& ring) noexcept override {
        ring = {};
        return ENOENT;
    }
    void close_sampler(SamplerRing& ring) noexcept override { ring = {}; }
    int node_of_cpu(int cpu) noexcept override { return described().node_of_cpu(cpu); }
};

class ModelSource final : public ReferenceSource {
  public:
    const char* name() const noexcept override { return "simulator"; }
    std::string unavailable() override { return {}; }
    bool counts_misses() const noexcept override { return true; }

    bool start(std::span<const WatchedRange> ranges) override {
        ranges_.assign(ranges.begin(), ranges.end());
        look([](Address, int, std::uint32_t) {}); // what was missed before is not seen
        return true;
    }
    void stop() override { ranges_.clear(); }

    void drain(std::vector<Reference>& out) override {
        look([&](Address address, int node, std::uint32_t misses) {
            out.push_back({address, static_cast<std::int16_t>(node), false, misses});
        });
    }

  private:
    template <class Visit> void look(Visit&& visit) {
        const int nodes = described().nodes();
        for (const WatchedRange& watched : ranges_)
            for (Address page = watched.range.begin; page < watched.range.end; page += page_bytes()) {
                if (home_of(page) < 0) continue;
                const std::uint32_t* now = page_misses(page);
                std::uint32_t* seen = page_misses_seen(page);
                for (int node = 0; node < nodes; ++node) {
                    const std::uint32_t count = now[node] - seen[node];
                    seen[node] = now[node];
                    if (count != 0) visit(page, node, count);
                }
            }
    }

    std::vector<WatchedRange> ranges_;
};

} // namespace

MoveTotals& move_totals() noexcept {
    static constinit MoveTotals totals;
    return totals;
}

Kernel& model_kernel() noexcept {
    static ModelKernel kernel;
    return kernel;
}

bool take_protections() noexcept { return protections.exchange(false, std::memory_order_acq_rel); }

ReferenceSource* make_model_source() { return new ModelSource; }

} // namespace homing::simulator
