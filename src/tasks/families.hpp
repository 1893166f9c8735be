// Tasks with a home that wait for their submission (docs/task_affinity.md): for each parent task locality
// queues of its children, and couriers, small sibling tasks that submit them on a thread of the right domain.
// Knows nothing of a runtime but the two functions that allocate and submit a task.
#pragma once

#include "homing/tasks.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace homing {

/// What tasks are to LLVM's OpenMP runtime (kmp_task_t begins with these fields, which compilers read and
/// write).
using TaskEntry = std::int32_t(std::int32_t gtid, void* task);
struct TaskRuntime {
    void* (*allocate)(void* location, std::int32_t gtid, std::int32_t flags, std::size_t bytes,
                      std::size_t shared_bytes, TaskEntry* entry) = nullptr;
    std::int32_t (*submit)(void* location, std::int32_t gtid, void* task) = nullptr;
};

struct TaskCounts {
    std::uint64_t at_home = 0;   ///< submitted by a thread of their domain
    std::uint64_t elsewhere = 0; ///< by another one
};

class Families {
  public:
    Families(TaskRuntime runtime, Domains domains);
    Families(const Families&) = delete;
    Families& operator=(const Families&) = delete;

    /// Take charge of a task that the current task `parent` (any address that is unique while its children
    /// live) has allocated on this thread and would submit now. `threads`: of its team. False: no memory; the
    /// caller submits it.
    bool submit(std::uintptr_t parent, int threads, void* location, std::int32_t gtid, void* task,
                int domain) noexcept;

    /// Of all families so far.
    TaskCounts counts() noexcept;

    /// Tasks that a family holds at most (its producer then submits some itself).
    static constexpr std::size_t most_waiting = 32768;

  private:
    struct Waiting {
        void* task;
        void* location;
    };
    struct Family {
        explicit Family(Domains domains) : queues({domains, "tasks with an affinity clause", 0}) {}
        LocalityQueues<Waiting> queues;
        Families* owner = nullptr;
        std::uintptr_t parent = 0;
        std::atomic<int> users{0};   ///< couriers that have not ended, and threads inside submit()
        detail::BriefLock lock;      ///< of what follows
        std::vector<void*> couriers; ///< allocated, not submitted
        int under_way = 0;           ///< submitted, not begun
        int most_under_way = 2;
    };
    struct alignas(64) Shard {
        detail::BriefLock lock;
        std::vector<Family*> live; ///< few: parents that have children now
        std::vector<std::unique_ptr<Family>> all;
        std::vector<Family*> idle;
    };
    static constexpr std::size_t shard_count = 64;
    static std::int32_t run_courier(std::int32_t gtid, void* task);

    Shard& shard(std::uintptr_t parent) noexcept;
    Family* enter(std::uintptr_t parent, int threads);
    void leave(Family& family) noexcept;
    void add_courier(Family& family, void* location, std::int32_t gtid) noexcept;

    TaskRuntime runtime_;
    Domains domains_;
    std::unique_ptr<Shard[]> shards_ = std::make_unique<Shard[]>(shard_count);
};

} // namespace homing
