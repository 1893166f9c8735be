// The hook of the OpenMP affinity clause, for LLVM's runtime (docs/task_affinity.md): the four calls that
// compilers make of a task. Without `--tasks affinity` they jump on.
#include "hooks/openmp/affinity.hpp"
#include "base/inside.hpp"
#include "base/kept_errno.hpp"
#include "base/options.hpp"
#include "base/regions.hpp"
#include "hooks/export.hpp"
#include "hooks/openmp/kmpc.hpp"
#include "record/record.hpp"
#include "tasks/domains.hpp"
#include "tasks/families.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>

namespace homing::hooks {
namespace {

/// kmp_task_affinity_info_t: one item of a clause's list.
struct AffinityItem {
    std::intptr_t base;
    std::size_t bytes;
    std::uint64_t flags;
};

// Flags of __kmpc_omp_task_alloc.
constexpr std::int32_t flag_final = 0x2;
constexpr std::int32_t flag_priority = 0x20;
constexpr std::int32_t flag_detach = 0x40;

/// Why a hint is left to the runtime.
enum class Left {
    depend,
    if0,
    final,
    priority,
    detach,
    cancellation,
    one_thread,
    no_home,
    no_task_data,
    no_memory,
    lost,
    count
};
constexpr const char* left_names[] = {
    "depend",      "if(0)",          "final",
    "priority",    "detach",         "cancellation",
    "team of one", "no home",        "no task data (another OMPT tool is in charge)",
    "no memory",   "never submitted"};
static_assert(std::size(left_names) == static_cast<std::size_t>(Left::count));

struct alignas(64) Counter {
    std::atomic<std::uint64_t> value{0};
    void add() noexcept { value.fetch_add(1, std::memory_order_relaxed); }
};
constinit Counter given;
constinit Counter honoured;
constinit std::array<Counter, static_cast<std::size_t>(Left::count)> left;

void leave_to_runtime(Left reason) noexcept { left[static_cast<std::size_t>(reason)].add(); }

/// The runtime behind the calls, found when the first hint is given.
struct Clause {
    TaskRuntime runtime;
    int (*team_size)() = nullptr;
    int (*in_final)() = nullptr;
    bool cancellation = false;
    GetTaskInfo* task_info = nullptr;
    Locality& locality;
    Families families;

    Clause(TaskRuntime functions, Locality& here)
        : runtime(functions), locality(here),
          families(functions,
                   {here.by_node().count(),
                    [](const void* table) { return static_cast<const DomainTable*>(table)->here(); },
                    &here.by_node()}) {}
};

enum class State { unknown, off, on };
constinit std::atomic<State> state{State::unknown};
constinit std::atomic<Clause*> clause{nullptr};

/// Hints between registration and submission. Constructors of private data run in between and may create
/// tasks, too.
struct Hints {
    struct Hint {
        void* task = nullptr;
        int domain = -1;
        std::int32_t flags = 0;
    };
    static constexpr std::size_t most = 8;
    std::array<Hint, most> hints;
    std::size_t count = 0;
    void* newest = nullptr; ///< the task that this thread allocated last, and its flags
    std::int32_t newest_flags = 0;

    void add(const Hint& hint) noexcept {
        if (count == most) {
            leave_to_runtime(Left::lost);
            std::copy(hints.begin() + 1, hints.end(), hints.begin());
            --count;
        }
        hints[count++] = hint;
    }
    bool take(void* task, Hint& hint) noexcept {
        for (std::size_t i = count; i-- > 0;)
            if (hints[i].task == task) {
                hint = hints[i];
                std::copy(hints.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                          hints.begin() + static_cast<std::ptrdiff_t>(count),
                          hints.begin() + static_cast<std::ptrdiff_t>(i));
                --count;
                return true;
            }
        return false;
    }
};
constinit thread_local Hints own_hints;

using Alloc = void*(void*, std::int32_t, std::int32_t, std::size_t, std::size_t, TaskEntry*);
using Register = std::int32_t(void*, std::int32_t, void*, std::int32_t, AffinityItem*);
using Submit = std::int32_t(void*, std::int32_t, void*);
using SubmitWithDeps = std::int32_t(void*, std::int32_t, void*, std::int32_t, void*, std::int32_t, void*);
using Begin = void(void*, std::int32_t, void*);
constinit Kmpc<Alloc> alloc{"__kmpc_omp_task_alloc"};
constinit Kmpc<Register> register_hint{"__kmpc_omp_reg_task_with_affinity"};
constinit Kmpc<Submit> submit{"__kmpc_omp_task"};
constinit Kmpc<SubmitWithDeps> submit_with_deps{"__kmpc_omp_task_with_deps"};
constinit Kmpc<Begin> begin_if0{"__kmpc_omp_task_begin_if0"};

/// Decide once, at the first hint of the process.
Clause* start(void* caller) noexcept {
    static constinit detail::BriefLock lock;
    const detail::Hold hold(lock);
    if (state.load(std::memory_order_acquire) != State::unknown)
        return clause.load(std::memory_order_acquire);
    const Inside inside;
    State decided = State::off;
    try {
        Locality& here = locality();
        TaskRuntime functions{alloc.get(caller), submit.get(caller)};
        if (here.by_node().count() > 1 && functions.allocate && functions.submit) {
            auto* made = new Clause(functions, here);
            auto* known = reinterpret_cast<void*>(functions.submit);
            made->team_size = beside<int()>(known, "omp_get_num_threads");
            made->in_final = beside<int()>(known, "omp_in_final");
            auto* cancellation = beside<int()>(known, "omp_get_cancellation");
            made->cancellation = !cancellation || cancellation() != 0;
            made->task_info = get_task_info();
            clause.store(made, std::memory_order_release);
            if (made->team_size && made->in_final) decided = State::on;
        }
    } catch (...) {
        record::message(record::Level::not_done, "affinity clauses: no memory");
    }
    state.store(decided, std::memory_order_release);
    return clause.load(std::memory_order_acquire);
}

bool wanted() noexcept {
    static const bool asked = option_is(Option::tasks, "affinity");
    return asked && !phases::aside();
}

/// Are hints followed? Only after the first one.
bool active() noexcept {
    return __builtin_expect(state.load(std::memory_order_acquire) == State::on, 0) && !phases::aside();
}

/// The domain of most of what a clause names; up to eight items are looked at.
int home_of(Locality& locality, const AffinityItem* items, std::int32_t count) noexcept {
    constexpr std::int32_t most = 8;
    const auto looked_at = static_cast<std::size_t>(std::min(count, most));
    int domains[most];
    std::size_t bytes[most];
    for (std::size_t i = 0; i < looked_at; ++i) {
        const AffinityItem& item = items[i * static_cast<std::size_t>(count) / looked_at];
        domains[i] = locality.of_memory(static_cast<Address>(item.base), item.bytes);
        bytes[i] = std::max<std::size_t>(item.bytes, 1);
    }
    return heaviest_domain({domains, looked_at}, {bytes, looked_at});
}

void registered(void* task, std::int32_t count, const AffinityItem* items, void* caller) noexcept {
    const KeptErrno kept;
    given.add();
    const Clause* known = start(caller);
    if (known && state.load(std::memory_order_acquire) == State::on) {
        Hints& own = own_hints;
        Hints::Hint hint{task, home_of(known->locality, items, count), 0};
        if (own.newest == task) {
            hint.flags = own.newest_flags;
            own.add(hint);
        } else {
            leave_to_runtime(Left::lost); // allocated before the first hint: its flags are not known
        }
    }
}

/// Queue a task with a hint. False: the caller submits it.
bool taken_over(void* location, std::int32_t gtid, void* task, const Hints::Hint& hint) noexcept {
    Clause& known = *clause.load(std::memory_order_acquire);
    const auto leave = [](Left reason) {
        leave_to_runtime(reason);
        return false;
    };
    if (known.cancellation) return leave(Left::cancellation);
    if (hint.flags & flag_detach) return leave(Left::detach);
    if (hint.flags & flag_priority) return leave(Left::priority);
    if (hint.flags & flag_final || known.in_final()) return leave(Left::final);
    const int threads = known.team_size();
    if (threads < 2) return leave(Left::one_thread);
    if (hint.domain < 0) return leave(Left::no_home);
    ompt_data_t* parent = nullptr;
    int flags = 0;
    if (!known.task_info || known.task_info(0, &flags, &parent, nullptr, nullptr, nullptr) != 2 || !parent)
        return leave(Left::no_task_data);
    const Inside inside;
    if (!known.families.submit(reinterpret_cast<std::uintptr_t>(parent), threads, location, gtid, task,
                               hint.domain))
        return leave(Left::no_memory);
    honoured.add();
    return true;
}

} // namespace

void record_affinity() noexcept {
    if (!option_is(Option::tasks, "affinity")) return;
    const std::uint64_t hints = given.value.load(std::memory_order_relaxed);
    if (hints == 0) {
        const bool gcc = ::dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD) != nullptr;
        record::message(record::Level::note,
                        std::string("--tasks affinity: no task of this process had an affinity clause") +
                            (gcc ? " (gcc, whose libgomp is loaded, drops the clause; clang keeps it)" : ""));
    }
    record::tasks_row row;
    row.time = record::now();
    row.given = hints;
    row.honoured = honoured.value.load(std::memory_order_relaxed);
    if (Clause* known = clause.load(std::memory_order_acquire)) {
        const TaskCounts counts = known->families.counts();
        row.at_home = counts.at_home;
        row.elsewhere = counts.elsewhere;
    }
    record::append(row);
    for (std::size_t reason = 0; reason < left.size(); ++reason) {
        record::task_left_row entry;
        entry.count = left[reason].value.load(std::memory_order_relaxed);
        if (entry.count == 0) continue;
        entry.reason = record::text(left_names[reason]);
        record::append(entry);
    }
}

} // namespace homing::hooks

using namespace homing::hooks;

extern "C" {

HOMING_EXPORT void* __kmpc_omp_task_alloc(void* location, std::int32_t gtid, std::int32_t flags,
                                          std::size_t bytes, std::size_t shared_bytes,
                                          homing::TaskEntry* entry) {
    void* task = alloc.get(__builtin_return_address(0))(location, gtid, flags, bytes, shared_bytes, entry);
    if (__builtin_expect(wanted(), 0)) {
        Hints& own = own_hints;
        own.newest = task;
        own.newest_flags = flags;
        Hints::Hint stale; // the runtime recycles memory: a hint that nobody submitted is not this task's
        if (own.count > 0 && own.take(task, stale)) leave_to_runtime(Left::lost);
    }
    return task;
}

HOMING_EXPORT std::int32_t __kmpc_omp_reg_task_with_affinity(void* location, std::int32_t gtid, void* task,
                                                             std::int32_t count, AffinityItem* items) {
    if (wanted() && count > 0 && items) registered(task, count, items, __builtin_return_address(0));
    return register_hint.get(__builtin_return_address(0))(location, gtid, task, count, items);
}

HOMING_EXPORT std::int32_t __kmpc_omp_task(void* location, std::int32_t gtid, void* task) {
    Hints::Hint hint;
    if (active() && own_hints.count > 0 && own_hints.take(task, hint) &&
        taken_over(location, gtid, task, hint))
        return 0;
    return submit.get(__builtin_return_address(0))(location, gtid, task);
}

HOMING_EXPORT std::int32_t __kmpc_omp_task_with_deps(void* location, std::int32_t gtid, void* task,
                                                     std::int32_t count, void* list,
                                                     std::int32_t noalias_count, void* noalias_list) {
    Hints::Hint hint;
    if (active() && own_hints.count > 0 && own_hints.take(task, hint)) leave_to_runtime(Left::depend);
    return submit_with_deps.get(__builtin_return_address(0))(location, gtid, task, count, list, noalias_count,
                                                             noalias_list);
}

HOMING_EXPORT void __kmpc_omp_task_begin_if0(void* location, std::int32_t gtid, void* task) {
    Hints::Hint hint;
    if (active() && own_hints.count > 0 && own_hints.take(task, hint)) leave_to_runtime(Left::if0);
    begin_if0.get(__builtin_return_address(0))(location, gtid, task);
}

} // extern "C"
