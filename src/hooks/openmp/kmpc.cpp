// The hooks of LLVM's OpenMP runtime: its entry points for parallel regions and barriers, which kmpc_stubs.S
// interposes. The identity of a region is the outlined function (microtask); of a region that the compiler
// left in place because its if clause may be false, the call site.
//
// Not OMPT, which ompt.cpp keeps for runtimes that no stub stands before: a tool that listens to nothing at
// all costs an empty region 60 to 100 ns, twice what the stubs cost, and there is one seat only, which a
// program's own tool (Score-P, TAU, Archer) has to find free.
#include "hooks/openmp/kmpc.hpp"

#include "base/regions.hpp"
#include "base/uncancelled.hpp"
#include "hooks/export.hpp"
#include "record/record.hpp"

#include <cstdint>

using homing::Address;
using homing::hooks::Kmpc;
namespace phases = homing::phases;

namespace {

enum Call : int {
    fork_call,
    fork_call_if,
    fork_teams,
    serialized_parallel,
    end_serialized_parallel,
    barrier
};

using Any = void();
constinit Kmpc<Any> entries[] = {
    Kmpc<Any>{"__kmpc_fork_call"},
    Kmpc<Any>{"__kmpc_fork_call_if"},
    Kmpc<Any>{"__kmpc_fork_teams"},
    Kmpc<Any>{"__kmpc_serialized_parallel"},
    Kmpc<Any>{"__kmpc_end_serialized_parallel"},
    Kmpc<Any>{"__kmpc_barrier"},
};

/// Who hears of the ends of regions: the stub does, unless another tool listens to the runtime. That tool has
/// to see the program's calls, not ours.
enum class Ends : int { undecided, told, unknown };
constinit std::atomic<Ends> ends{Ends::undecided};

/// The runtime looks for its tool when it starts, which it is made to do here in the way that its fork call
/// would do it a moment later.
Ends decide_ends(Any* fork) noexcept {
    using ThreadNumber = std::int32_t(void*);
    const homing::Uncancelled uncancelled; // the runtime reads files
    if (auto* start =
            homing::hooks::beside<ThreadNumber>(reinterpret_cast<void*>(fork), "__kmpc_global_thread_num"))
        start(nullptr);
    const Ends decided = homing::hooks::another_tool() ? Ends::unknown : Ends::told;
    ends.store(decided, std::memory_order_release);
    return decided;
}

/// Whether the stub must tell of the end.
bool begin(Any* fork, Address microtask) noexcept {
    if (phases::aside()) return false;
    Ends now = ends.load(std::memory_order_acquire);
    if (now == Ends::undecided) now = decide_ends(fork);
    if (__builtin_expect(now == Ends::told, 1)) return phases::begin(microtask);
    static constinit std::atomic<bool> said{false};
    if (phases::begin_without_end(microtask) && !said.exchange(true))
        homing::record::message(homing::record::Level::warning,
                                "another OMPT tool is in charge of this OpenMP runtime: homing sees only "
                                "where regions begin");
    return false;
}

} // namespace

extern "C" {

/// What a stub does when the runtime's function has returned.
enum Leave : std::uintptr_t { nothing, region_end, barrier_end };

struct HomingWay {
    Any* function;
    std::uintptr_t leave; ///< not 0: what to call homing_kmpc_leave with
};

__attribute__((visibility("hidden"))) HomingWay homing_kmpc_enter(int call, void* microtask,
                                                                  void* caller) noexcept {
    Any* function = entries[call].get(caller);
    switch (call) {
    case serialized_parallel:
        phases::begin(reinterpret_cast<Address>(caller));
        return {function, nothing};
    case end_serialized_parallel:
        phases::end();
        return {function, nothing};
    case barrier:
        // Another tool is to see the program's call.
        if (phases::barrier(reinterpret_cast<Address>(caller)) && phases::ends_are_known())
            return {function, barrier_end};
        return {function, nothing};
    default:
        return {function, begin(function, reinterpret_cast<Address>(microtask)) ? region_end : nothing};
    }
}

__attribute__((visibility("hidden"))) void homing_kmpc_leave(std::uintptr_t leave) noexcept {
    if (leave == barrier_end)
        phases::barrier_passed();
    else
        phases::end();
}

} // extern "C"

namespace homing::hooks {

void* next_or_callers(const char* name, void* caller) noexcept {
    if (void* function = next_definition(name)) return function;
    Dl_info info{};
    if (!::dladdr(caller, &info)) return nullptr;
    void* handle = ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void* function = handle ? ::dlsym(handle, name) : nullptr;
    if (function &&
        ::dladdr(function, &info)) // the runtime must stay as long as we may jump there; its user need not
        ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle) ::dlclose(handle);
    return function;
}

} // namespace homing::hooks
