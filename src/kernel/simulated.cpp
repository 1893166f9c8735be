#include "kernel/simulated.hpp"

#include <algorithm>
#include <cerrno>
#include <linux/mempolicy.h>
#include <numeric>

namespace homing {

SimulatedKernel::SimulatedKernel(std::vector<std::size_t> node_pages)
    : capacity_(std::move(node_pages)), used_(capacity_.size(), 0), absent_error_(ENOENT) {
    for (std::size_t node = 0; node < capacity_.size(); ++node) {
        if (capacity_[node] > 0) with_memory_.add(static_cast<int>(node));
        cpu_nodes_.push_back(static_cast<int>(node));
    }
    allowed_ = with_memory_;
}

SimulatedKernel::Page& SimulatedKernel::page(Address address) {
    std::unique_ptr<Chunk>& chunk = chunks_[address / huge_page_bytes];
    if (!chunk) chunk = std::make_unique<Chunk>();
    return (*chunk)[address % huge_page_bytes / page_bytes()];
}

const SimulatedKernel::Page* SimulatedKernel::find_page(Address address) const {
    const auto chunk = chunks_.find(address / huge_page_bytes);
    return chunk == chunks_.end() ? nullptr : &(*chunk->second)[address % huge_page_bytes / page_bytes()];
}

SimulatedKernel::Areas::const_iterator SimulatedKernel::area_of(Address address) const {
    auto area = areas_.upper_bound(address);
    if (area == areas_.begin()) return areas_.end();
    --area;
    return address < area->second.end ? area : areas_.end();
}

bool SimulatedKernel::is_mapped(Range range) const {
    for (Address at = range.begin; at < range.end;) {
        const auto area = area_of(at);
        if (area == areas_.end()) return false;
        at = area->second.end;
    }
    return true;
}

void SimulatedKernel::split(Address address) {
    const auto found = area_of(address);
    if (found == areas_.end() || found->first == address) return;
    Area& before = areas_.at(found->first);
    const Area after = before;
    before.end = address;
    areas_.emplace(address, after);
}

/// Join neighbours that are alike, as Linux does, around a range that has changed.
void SimulatedKernel::merge(Range range) {
    auto area = areas_.lower_bound(range.begin);
    if (area != areas_.begin()) --area;
    while (area != areas_.end() && area->first <= range.end) {
        const auto next = std::next(area);
        if (next != areas_.end() && area->second.end == next->first && area->second.same(next->second)) {
            area->second.end = next->second.end;
            areas_.erase(next);
        } else {
            area = next;
        }
    }
}

/// mbind and mprotect: change an attribute of a range, splitting mappings; ENOMEM where there are too many.
int SimulatedKernel::change(Range range, const MemoryPolicy* policy, const Access* access) {
    if (range.empty()) return 0;
    const auto apply = [&](const Range part) {
        for (auto area = areas_.lower_bound(part.begin); area != areas_.end() && area->first < part.end;
             ++area) {
            if (policy) area->second.policy = *policy;
            if (access) area->second.access = *access;
        }
    };
    split(range.begin);
    split(range.end);
    if (areas_.size() > most_mappings_) {
        merge(range);
        return ENOMEM;
    }
    apply(range);
    merge(range);
    return 0;
}

void SimulatedKernel::map(Range range, bool huge) {
    unmap(range);
    areas_.emplace(range.begin, Area{range.end, {}, Access::read_write, huge});
    merge(range);
}

void SimulatedKernel::unmap(Range range) {
    drop(range);
    split(range.begin);
    split(range.end);
    areas_.erase(areas_.lower_bound(range.begin), areas_.lower_bound(range.end));
}

void SimulatedKernel::release(Page& page) {
    if (page.node != absent) --used_[static_cast<std::size_t>(page.node)];
    page = {};
}

void SimulatedKernel::drop(Range range) {
    for (Address at = range.begin; at < range.end; at += page_bytes()) {
        if (find_page(at)) release(page(at));
    }
}

/// The node that the policy in force gives to a page that `node` touches first.
int SimulatedKernel::choose_node(Address address, int node) {
    MemoryPolicy policy = policy_of(address);
    if (policy.mode == MPOL_DEFAULT) policy = task_policy_;
    NodeSet nodes{policy.nodes.bits & allowed_.bits & with_memory_.bits};
    const auto has_room = [this](int candidate) { return free_pages(candidate) > 0; };
    const auto first_with_room = [&](NodeSet from, int best) {
        if (from.has(best) && has_room(best)) return best;
        for (int candidate = 0; candidate < static_cast<int>(capacity_.size()); ++candidate) {
            if (from.has(candidate) && has_room(candidate)) return candidate;
        }
        return absent;
    };
    const NodeSet all{allowed_.bits & with_memory_.bits};
    const int mode = policy.plain_mode();
    if (mode == MPOL_BIND) return first_with_room(nodes, node);
    if (mode == MPOL_PREFERRED && nodes.count() > 0) return first_with_room(all, nodes.first());
    if (mode == MPOL_INTERLEAVE && nodes.count() > 0) {
        // By the page's place in its mapping.
        auto turn = static_cast<int>((address - area_of(address)->first) / page_bytes() %
                                     static_cast<std::size_t>(nodes.count()));
        for (int candidate = 0; candidate < max_nodes; ++candidate) {
            if (nodes.has(candidate) && turn-- == 0) return first_with_room(all, candidate);
        }
    }
    return first_with_room(all, node);
}

bool SimulatedKernel::populate(Address address, int node, bool huge) {
    const std::size_t bytes = huge ? huge_page_bytes : page_bytes();
    const Address begin = align_down(address, bytes);
    if (free_pages(node) < bytes / page_bytes()) {
        if (huge) return populate(address, node, false); // Linux falls back to a small page
        return false;
    }
    for (Address at = begin; at < begin + bytes; at += page_bytes()) {
        Page& one = page(at);
        if (one.node != absent) continue;
        one.node = static_cast<std::int8_t>(node);
        ++used_[static_cast<std::size_t>(node)];
    }
    return true;
}

SimulatedKernel::Touch SimulatedKernel::touch(Address address, int node) {
    const auto area = area_of(address);
    if (area == areas_.end()) return Touch::unmapped;
    if (area->second.access == Access::none) return Touch::fault;
    Page& one = page(address);
    one.armed = false;
    if (one.zero) release(one);
    if (one.node != absent) return Touch::done;
    const int home = choose_node(address, node);
    if (home == absent) return Touch::no_memory;
    const Address block = align_down(address, huge_page_bytes);
    const bool huge =
        area->second.huge && area->first <= block && block + huge_page_bytes <= area->second.end;
    ++populated_;
    return populate(address, home, huge) ? Touch::done : Touch::no_memory;
}

void SimulatedKernel::touch_all(Range range, int node) {
    for (Address at = range.begin; at < range.end; at += page_bytes())
        touch(at, node);
}

void SimulatedKernel::place(Range range, int node) {
    for (Address at = range.begin; at < range.end; at += page_bytes()) {
        release(page(at));
        populate(at, node, false);
    }
}

void SimulatedKernel::make_busy(Range range, int times) {
    for (Address at = range.begin; at < range.end; at += page_bytes())
        page(at).busy = times;
}
void SimulatedKernel::make_shared(Range range) {
    for (Address at = range.begin; at < range.end; at += page_bytes())
        page(at).shared = true;
}
void SimulatedKernel::make_zero(Range range) {
    for (Address at = range.begin; at < range.end; at += page_bytes()) {
        release(page(at));
        page(at).zero = true;
    }
}
void SimulatedKernel::make_armed(Range range) {
    for (Address at = range.begin; at < range.end; at += page_bytes())
        page(at).armed = true;
}
void SimulatedKernel::scan(KernelCall after) {
    if (scans_.call != after || scans_.times == 0) return;
    --scans_.times;
    for (const auto& [begin, area] : areas_)
        for (Address at = std::max(begin, scans_.from); at < area.end; at += page_bytes())
            if (find_page(at) && page(at).node != absent) page(at).armed = true;
}

int SimulatedKernel::where(Address address) const {
    const Page* found = find_page(address);
    return found ? found->node : absent;
}

std::size_t SimulatedKernel::pages_on(Range range, int node) const {
    std::size_t pages = 0;
    for (Address at = range.begin; at < range.end; at += page_bytes())
        pages += where(at) == node;
    return pages;
}

std::size_t SimulatedKernel::free_pages(int node) const {
    const auto index = static_cast<std::size_t>(node);
    if (node < 0 || index >= capacity_.size() || used_[index] >= capacity_[index]) return 0;
    return capacity_[index] - used_[index];
}

bool SimulatedKernel::is_protected(Address address) const {
    const auto area = area_of(address);
    return area != areas_.end() && area->second.access == Access::none;
}

std::size_t SimulatedKernel::protected_pages() const {
    return std::accumulate(
        areas_.begin(), areas_.end(), std::size_t{0}, [](std::size_t sum, const auto& entry) {
            const auto& [begin, area] = entry;
            return area.access == Access::none ? sum + (area.end - begin) / page_bytes() : sum;
        });
}

MemoryPolicy SimulatedKernel::policy_of(Address address) const {
    const auto area = area_of(address);
    return area == areas_.end() ? MemoryPolicy{} : area->second.policy;
}

int SimulatedKernel::logged(Logged entry) {
    ++counts_[static_cast<std::size_t>(entry.call)];
    log_.push_back(entry);
    return entry.error;
}

/// As move_pages(2) says it: the node, or why there is none.
int SimulatedKernel::state_of(Address address) const {
    if (area_of(address) == areas_.end()) return -EFAULT;
    const Page* found = find_page(address);
    if (found && found->zero) return -EFAULT;
    if (!found || found->node == absent) return -absent_error_;
    if (found->armed) return -ENOENT;
    return found->node;
}

int SimulatedKernel::query(std::span<void* const> pages, std::span<int> nodes) noexcept {
    for (std::size_t i = 0; i < pages.size(); ++i)
        nodes[i] = state_of(reinterpret_cast<Address>(pages[i]));
    Logged entry{KernelCall::query, {}, pages.size()};
    if (!pages.empty()) {
        entry.range = {reinterpret_cast<Address>(pages.front()), reinterpret_cast<Address>(pages.back())};
    }
    return logged(entry);
}

int SimulatedKernel::populated(std::span<const Range> ranges, std::span<std::uint8_t> found) noexcept {
    Logged entry{KernelCall::populated, {}, ranges.size()};
    if (!tells_populated_) {
        entry.error = ENOSYS;
        return logged(entry);
    }
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        found[i] = 0;
        for (auto chunk = chunks_.lower_bound(ranges[i].begin / huge_page_bytes);
             chunk != chunks_.end() && chunk->first * huge_page_bytes < ranges[i].end && !found[i]; ++chunk)
            for (Address at = std::max(ranges[i].begin, chunk->first * huge_page_bytes);
                 at < std::min(ranges[i].end, (chunk->first + 1) * huge_page_bytes) && !found[i];
                 at += page_bytes()) {
                const Page& one = (*chunk->second)[at % huge_page_bytes / page_bytes()];
                found[i] = one.node != absent && !one.zero;
            }
    }
    return logged(entry);
}

int SimulatedKernel::reveal(std::span<void* const> pages) noexcept {
    for (void* address : pages)
        if (state_of(reinterpret_cast<Address>(address)) == -ENOENT)
            page(reinterpret_cast<Address>(address)).armed = false;
    scan(KernelCall::reveal);
    return logged({KernelCall::reveal, {}, pages.size()});
}

int SimulatedKernel::move(std::span<void* const> pages, std::span<const int> targets,
                          std::span<int> status) noexcept {
    Logged entry{KernelCall::move, {}, pages.size()};
    if (pages.empty()) return logged(entry);
    entry.range = {reinterpret_cast<Address>(pages.front()), reinterpret_cast<Address>(pages.back())};
    largest_move_ = std::max(largest_move_, pages.size());
    std::fill(status.begin(), status.end(), -EAGAIN);

    for (std::size_t begin = 0; begin < pages.size() && entry.error == 0;) {
        const int target = targets[begin];
        if (!with_memory_.has(target)) {
            entry.error = ENODEV;
            break;
        }
        if (!allowed_.has(target)) {
            entry.error = EACCES;
            break;
        }
        std::size_t end = begin;
        bool gave_up = false;
        for (; end < pages.size() && targets[end] == target; ++end) {
            const auto address = reinterpret_cast<Address>(pages[end]);
            status[end] = state_of(address);
            if (status[end] >= 0 && status[end] != target && page(address).shared) status[end] = -EACCES;
            if (status[end] < 0 || status[end] == target) {
                if (gave_up) break; // the end of a run
                continue;
            }
            Page& one = page(address);
            const auto area = area_of(address);
            const Address block = align_down(address, huge_page_bytes);
            const bool huge =
                area->second.huge && area->first <= block && block + huge_page_bytes <= area->second.end;
            const std::size_t bytes = huge ? huge_page_bytes : page_bytes();
            if (one.busy != 0) {
                if (one.busy > 0) --one.busy;
                status[end] = -EBUSY;
                gave_up = true;
            } else if (free_pages(target) < bytes / page_bytes()) {
                status[end] = -ENOMEM;
                entry.error = ENOMEM;
                gave_up = true;
            } else {
                const Address first = huge ? block : address;
                for (Address at = first; at < first + bytes; at += page_bytes()) {
                    Page& moved = page(at);
                    if (moved.node == absent) continue;
                    --used_[static_cast<std::size_t>(moved.node)];
                    ++used_[static_cast<std::size_t>(target)];
                    moved.node = static_cast<std::int8_t>(target);
                    ++pages_moved_;
                }
                status[end] = target;
            }
        }
        if (gave_up) break;
        begin = end;
    }
    // Linux leaves the pages behind the failed run alone. They are where they were.
    return logged(entry);
}

int SimulatedKernel::bind(Range range, MemoryPolicy policy) noexcept {
    Logged entry{KernelCall::bind, range, 0, policy};
    const int mode = policy.plain_mode();
    const bool wants_nodes = mode == MPOL_BIND || mode == MPOL_INTERLEAVE;
    const bool wants_none = mode == MPOL_DEFAULT || mode == MPOL_LOCAL;
    const NodeSet usable{policy.nodes.bits & allowed_.bits & with_memory_.bits};
    if (range.begin % page_bytes() != 0 || mode < 0 || mode > MPOL_PREFERRED_MANY ||
        (wants_nodes && usable.bits == 0) || (wants_none && policy.nodes.bits != 0)) {
        entry.error = EINVAL;
    } else if (!is_mapped(range)) {
        entry.error = EFAULT;
    } else {
        entry.error = change(range, &policy, nullptr);
    }
    return logged(entry);
}

int SimulatedKernel::policy_at(Address address, MemoryPolicy& policy) noexcept {
    Logged entry{KernelCall::policy_at, {address, address}};
    entry.error = area_of(address) == areas_.end() ? EFAULT : 0;
    if (!entry.error) policy = policy_of(address);
    return logged(entry);
}

int SimulatedKernel::task_policy(MemoryPolicy& policy) noexcept {
    policy = task_policy_;
    return logged({KernelCall::task_policy, {}});
}

int SimulatedKernel::allowed_nodes(NodeSet& nodes) noexcept {
    nodes = allowed_;
    return logged({KernelCall::allowed_nodes, {}});
}

int SimulatedKernel::protect(Range range, Access access) noexcept {
    Logged entry{KernelCall::protect, range};
    entry.access = access;
    if (range.begin % page_bytes() != 0) {
        entry.error = EINVAL;
    } else if (!is_mapped(range)) {
        entry.error = ENOMEM;
    } else {
        entry.error = change(range, nullptr, &access);
        if (access == Access::read_write) scan(KernelCall::protect);
    }
    return logged(entry);
}

int SimulatedKernel::current_node() noexcept {
    ++counts_[static_cast<std::size_t>(KernelCall::current_node)];
    return current_node_;
}

std::vector<Kernel::Thread> SimulatedKernel::threads() {
    std::vector<Thread> threads;
    for (int node = 0; node < static_cast<int>(capacity_.size()); ++node)
        threads.push_back({node + 1, node});
    return threads;
}

std::uint64_t SimulatedKernel::free_bytes(int node) noexcept {
    ++counts_[static_cast<std::size_t>(KernelCall::free_bytes)];
    return std::uint64_t{free_pages(node)} * page_bytes();
}

int SimulatedKernel::open_sampler(const SamplerEvent&, int, std::size_t, SamplerRing& ring) noexcept {
    ++counts_[static_cast<std::size_t>(KernelCall::open_sampler)];
    ring = {};
    return ENOENT; // there is no sampler here
}

void SimulatedKernel::close_sampler(SamplerRing& ring) noexcept {
    ++counts_[static_cast<std::size_t>(KernelCall::close_sampler)];
    ring = {};
}

int SimulatedKernel::node_of_cpu(int cpu) noexcept {
    ++counts_[static_cast<std::size_t>(KernelCall::node_of_cpu)];
    const auto index = static_cast<std::size_t>(cpu);
    return cpu < 0 || index >= cpu_nodes_.size() ? -1 : cpu_nodes_[index];
}

} // namespace homing
