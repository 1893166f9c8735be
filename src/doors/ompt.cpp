// The OMPT door: LLVM's OpenMP runtime (clang, flang, Intel, AMD, Arm compilers) looks for ompt_start_tool at
// its start. Only the begin and end of parallel regions are registered: all callbacks together cost ten times
// as much. Identity of a region is the microtask that kmpc_stubs.S noted; the call site only where there is
// none.
//
// The few declarations of the OMPT interface (OpenMP API 5.0, chapter 4) that are used stand here, because no
// package that every build machine has ships omp-tools.h.
#include "doors/export.hpp"
#include "doors/kmpc.hpp"
#include "phases/regions.hpp"
#include "record/record.hpp"

#include <cstdint>

union ompt_data_t {
    std::uint64_t value;
    void* ptr;
};
using ompt_callback_t = void (*)();
using ompt_interface_fn_t = void (*)();
using ompt_function_lookup_t = ompt_interface_fn_t (*)(const char*);
struct ompt_start_tool_result_t {
    int (*initialize)(ompt_function_lookup_t, int, ompt_data_t*);
    void (*finalize)(ompt_data_t*);
    ompt_data_t tool_data;
};

namespace {

constexpr int callback_parallel_begin = 3; // ompt_callbacks_t of the standard
constexpr int callback_parallel_end = 4;

constinit std::atomic<bool> asked{false};
constinit std::atomic<homing::doors::GetTaskInfo*> task_info{nullptr};

} // namespace

extern "C" {
// Used by kmpc_stubs.S. Functions of the runtime by index: fork_call, fork_call_if, fork_teams.
__attribute__((visibility("hidden"))) void* homing_kmpc_real[3] = {};
__attribute__((visibility("hidden"))) thread_local void* homing_microtask = nullptr;
__attribute__((visibility("hidden"))) void* homing_kmpc_resolve(int index, void* caller) noexcept;
}

namespace {

void parallel_begin(ompt_data_t*, const void*, ompt_data_t*, unsigned, int, const void* call_site) {
    const void* microtask = homing_microtask;
    homing_microtask = nullptr;
    homing::phases::begin(reinterpret_cast<homing::Address>(microtask ? microtask : call_site));
}

void parallel_end(ompt_data_t*, ompt_data_t*, int, const void*) { homing::phases::end(); }

int initialize(ompt_function_lookup_t look_up, int, ompt_data_t*) {
    using SetCallback = int (*)(int, ompt_callback_t);
    auto* set_callback = reinterpret_cast<SetCallback>(look_up("ompt_set_callback"));
    if (!set_callback) return 0;
    set_callback(callback_parallel_begin, reinterpret_cast<ompt_callback_t>(parallel_begin));
    set_callback(callback_parallel_end, reinterpret_cast<ompt_callback_t>(parallel_end));
    task_info.store(reinterpret_cast<homing::doors::GetTaskInfo*>(look_up("ompt_get_task_info")),
                    std::memory_order_release);
    return 1;
}

void finalize(ompt_data_t*) {}

} // namespace

namespace homing::doors {

GetTaskInfo* get_task_info() noexcept { return task_info.load(std::memory_order_acquire); }

void* next_or_callers(const char* name, void* caller) noexcept {
    if (void* function = ::dlsym(RTLD_NEXT, name)) return function;
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

} // namespace homing::doors

using homing::doors::next_or_callers;

void* homing_kmpc_resolve(int index, void* caller) noexcept {
    static constexpr const char* names[3] = {"__kmpc_fork_call", "__kmpc_fork_call_if", "__kmpc_fork_teams"};
    static constinit std::atomic<int> calls{0};
    void* real = next_or_callers(names[index], caller);
    if (asked.load(std::memory_order_acquire)) {
        homing_kmpc_real[index] = real;
        return real;
    }
    // The runtime starts within its first fork call and asks for a tool then. If it has not asked us by the
    // second call, another tool is in charge: the stubs tell where regions begin; where they end stays
    // unknown.
    if (calls.fetch_add(1) > 0 && !homing::phases::aside()) {
        static constinit std::atomic<bool> said{false};
        const bool first = !said.exchange(true);
        homing::phases::begin_without_end(reinterpret_cast<homing::Address>(homing_microtask));
        if (first)
            homing::record::message(
                homing::record::Level::warning,
                "another OMPT tool is in charge of this OpenMP runtime: homing sees only where "
                "regions begin");
    }
    return real;
}

extern "C" HOMING_EXPORT ompt_start_tool_result_t* ompt_start_tool(unsigned, const char*) {
    static ompt_start_tool_result_t result{initialize, finalize, {0}};
    asked.store(true, std::memory_order_release);
    return homing::phases::aside() ? nullptr : &result;
}

// LLVM's barrier: what a program that is one giant region shows.
extern "C" HOMING_EXPORT void __kmpc_barrier(void* location, std::int32_t thread) {
    static constinit homing::doors::Real<void(void*, std::int32_t)> real{"__kmpc_barrier"};
    homing::phases::barrier(reinterpret_cast<homing::Address>(__builtin_return_address(0)));
    if (auto* function = real.get(); __builtin_expect(function != nullptr, 1)) {
        function(location, thread);
        return;
    }
    void* function = next_or_callers("__kmpc_barrier", __builtin_return_address(0));
    reinterpret_cast<void (*)(void*, std::int32_t)>(function)(location, thread);
}
