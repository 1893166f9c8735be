// The OMPT hook: LLVM's OpenMP runtime looks for ompt_start_tool at its start. homing becomes its tool only
// where it must: for the regions of a runtime whose entry points the stubs do not reach (linked into the
// program statically, or a processor without stubs), and for the tasks of affinity clauses. For regions,
// only their begin and end are registered: all callbacks together cost ten times as much. Their identity
// is the call site.
//
// The few declarations of the OMPT interface (OpenMP API 5.0, chapter 4) that are used stand here, because no
// package that every build machine has ships omp-tools.h.
#include "base/options.hpp"
#include "base/regions.hpp"
#include "hooks/export.hpp"
#include "hooks/openmp/kmpc.hpp"

#include <cstdint>
#include <cstdlib>
#include <link.h>

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
using OmptStartTool = ompt_start_tool_result_t*(unsigned, const char*);

extern "C" HOMING_EXPORT OmptStartTool ompt_start_tool;

namespace {

constexpr int callback_parallel_begin = 3; // ompt_callbacks_t of the standard
constexpr int callback_parallel_end = 4;

constinit std::atomic<bool> other{false};
constinit std::atomic<homing::hooks::GetTaskInfo*> task_info{nullptr};

void parallel_begin(ompt_data_t*, const void*, ompt_data_t*, unsigned, int, const void* call_site) {
    homing::phases::begin(reinterpret_cast<homing::Address>(call_site));
}

void parallel_end(ompt_data_t*, ompt_data_t*, int, const void*) { homing::phases::end(); }

int initialize_tasks(ompt_function_lookup_t look_up, int, ompt_data_t*) {
    task_info.store(reinterpret_cast<homing::hooks::GetTaskInfo*>(look_up("ompt_get_task_info")),
                    std::memory_order_release);
    return 1;
}

int initialize(ompt_function_lookup_t look_up, int device, ompt_data_t* data) {
    using SetCallback = int (*)(int, ompt_callback_t);
    auto* set_callback = reinterpret_cast<SetCallback>(look_up("ompt_set_callback"));
    if (!set_callback) return 0;
    set_callback(callback_parallel_begin, reinterpret_cast<ompt_callback_t>(parallel_begin));
    set_callback(callback_parallel_end, reinterpret_cast<ompt_callback_t>(parallel_end));
    return initialize_tasks(look_up, device, data);
}

void finalize(ompt_data_t*) {}

/// Do the regions of the runtime that has `code` come through the stubs? They do if it is a shared object
/// of its own, with a fork call that others are bound to. (Unseen stay users of it that were opened with
/// RTLD_DEEPBIND.)
bool behind_stubs([[maybe_unused]] void* code) noexcept {
#if defined(__x86_64__) || defined(__aarch64__)
    Dl_info runtime{};
    link_map* map = nullptr;
    if (!::dladdr1(code, &runtime, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map) return false;
    const bool in_program = map->l_name[0] == '\0';
    void* fork = in_program ? nullptr : homing::hooks::beside<void>(code, "__kmpc_fork_call");
    Dl_info forks{};
    return fork && ::dladdr(fork, &forks) && forks.dli_fbase == runtime.dli_fbase;
#else
    return false;
#endif
}

} // namespace

namespace homing::hooks {

GetTaskInfo* get_task_info() noexcept { return task_info.load(std::memory_order_acquire); }

bool another_tool() noexcept {
    if (other.load(std::memory_order_acquire)) return true;
    // Whose ompt_start_tool does the runtime find? The address of ours would tell the same one.
    Dl_info first{};
    Dl_info own{};
    return ::dladdr(::dlsym(RTLD_DEFAULT, "ompt_start_tool"), &first) && ::dladdr(&other, &own) &&
           first.dli_fbase != own.dli_fbase;
}

} // namespace homing::hooks

/// Null: homing does not want to be the tool, the runtime may look for others (OMP_TOOL_LIBRARIES, Archer).
extern "C" ompt_start_tool_result_t* ompt_start_tool(unsigned version, const char* runtime) {
    static ompt_start_tool_result_t for_regions{initialize, finalize, {0}};
    static ompt_start_tool_result_t for_tasks{initialize_tasks, finalize, {0}};
    // A tool behind us has the seat that it has without us.
    static constinit homing::hooks::Real<OmptStartTool> next{"ompt_start_tool"};
    OmptStartTool* function = next.get();
    if (ompt_start_tool_result_t* its = function ? function(version, runtime) : nullptr) {
        other.store(true, std::memory_order_release);
        return its;
    }
    if (const char* libraries = std::getenv("OMP_TOOL_LIBRARIES"); libraries && *libraries) {
        other.store(true, std::memory_order_release);
        return nullptr;
    }
    if (homing::phases::aside()) return nullptr;
    if (!behind_stubs(__builtin_return_address(0))) return &for_regions;
    return homing::option_is(homing::Option::tasks, "affinity") ? &for_tasks : nullptr;
}
