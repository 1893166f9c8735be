#include "tasks/families.hpp"

#include "base/random.hpp"

#include <algorithm>
#include <cstring>

namespace homing {
namespace {

using Hold = detail::Hold;

/// kmp_task_t as compilers know it, and our word behind it.
struct CourierTask {
    void* shared;
    TaskEntry* entry;
    std::int32_t part;
    std::int32_t padding;
    void* data[2];
    void* family;
};
constexpr std::int32_t tied = 1;

/// False: no memory; the courier is under way at once.
bool keep_back(std::vector<void*>& couriers, void* courier) noexcept {
    try {
        couriers.push_back(courier);
        return true;
    } catch (...) {
        return false;
    }
}

} // namespace

Families::Families(TaskRuntime runtime, Domains domains) : runtime_(runtime), domains_(domains) {}

Families::Shard& Families::shard(std::uintptr_t parent) noexcept { return shards_[table_place(parent, 6)]; }

/// The family of a parent, found or made, with one user more. Throws where there is no memory.
Families::Family* Families::enter(std::uintptr_t parent, int threads) {
    static_assert(shard_count == std::size_t{1} << (64 - 58));
    Shard& place = shard(parent);
    const Hold hold(place.lock);
    for (Family* family : place.live)
        if (family->parent == parent) {
            family->users.fetch_add(1, std::memory_order_relaxed);
            return family;
        }
    if (place.idle.empty()) {
        auto made = std::make_unique<Family>(domains_);
        made->owner = this;
        place.idle.reserve(place.all.size() + 1);
        place.live.reserve(place.all.size() + 1);
        place.all.reserve(place.all.size() + 1);
        place.idle.push_back(made.get());
        place.all.push_back(std::move(made));
    }
    Family* family = place.idle.back();
    place.idle.pop_back();
    place.live.push_back(family);
    family->parent = parent;
    // Enough for every thread and those that finish early; few enough never to fill a deque of 256.
    family->most_under_way = std::clamp(2 * threads, 2, 128);
    family->users.store(1, std::memory_order_relaxed);
    return family;
}

/// One user less. A family without users has neither couriers nor tasks, and its parent may go: it serves
/// another one.
void Families::leave(Family& family) noexcept {
    Shard& place = shard(family.parent);
    const Hold hold(place.lock);
    if (family.users.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    place.live.erase(std::find(place.live.begin(), place.live.end(), &family));
    place.idle.push_back(&family); // room was reserved
}

bool Families::submit(std::uintptr_t parent, int threads, void* location, std::int32_t gtid, void* task,
                      int domain) noexcept {
    Family* family = nullptr;
    try {
        family = enter(parent, threads);
    } catch (...) {
        return false;
    }
    const bool full = family->queues.waiting() >= most_waiting;
    try {
        family->queues.put(Waiting{task, location}, domain);
    } catch (...) {
        leave(*family);
        return false;
    }
    if (!full) {
        add_courier(*family, location, gtid);
    } else if (const auto taken = family->queues.take()) {
        // One in, one out: there are as many couriers as before.
        runtime_.submit(taken->location, gtid, taken->task);
    }
    leave(*family);
    return true;
}

void Families::add_courier(Family& family, void* location, std::int32_t gtid) noexcept {
    void* courier = runtime_.allocate(location, gtid, tied, sizeof(CourierTask), 0, &Families::run_courier);
    static_cast<CourierTask*>(courier)->family = &family;
    family.users.fetch_add(1, std::memory_order_relaxed);
    {
        const Hold hold(family.lock);
        if (family.under_way >= family.most_under_way && keep_back(family.couriers, courier)) return;
        ++family.under_way;
    }
    runtime_.submit(location, gtid, courier);
}

std::int32_t Families::run_courier(std::int32_t gtid, void* task) {
    Family& family = *static_cast<Family*>(static_cast<CourierTask*>(task)->family);
    Families& self = *family.owner;
    const auto taken = family.queues.take();
    void* next = nullptr;
    {
        const Hold hold(family.lock);
        if (!family.couriers.empty()) {
            next = family.couriers.back();
            family.couriers.pop_back();
        } else {
            --family.under_way;
        }
    }
    // The thread takes its next task from the end where it appends: the one that was chosen for it comes
    // last.
    if (next) self.runtime_.submit(nullptr, gtid, next);
    if (taken) self.runtime_.submit(taken->location, gtid, taken->task);
    self.leave(family);
    return 0;
}

TaskCounts Families::counts() noexcept {
    TaskCounts sum;
    for (std::size_t i = 0; i < shard_count; ++i) {
        const Hold hold(shards_[i].lock);
        for (const auto& family : shards_[i].all) {
            sum.at_home += family->queues.taken_at_home();
            sum.elsewhere += family->queues.taken_elsewhere();
        }
    }
    return sum;
}

} // namespace homing
