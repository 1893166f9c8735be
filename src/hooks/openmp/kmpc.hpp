// The hooks of LLVM's OpenMP runtime (clang, flang, Intel, AMD, Arm compilers): what its parts share.
#pragma once

#include <atomic>
#include <dlfcn.h>

union ompt_data_t;
struct ompt_frame_t;

namespace homing::hooks {

/// The next definition of `name`, else the one that the code at `caller` would have got (a runtime that came
/// by dlopen with RTLD_LOCAL); that runtime then stays loaded. Null: none.
void* next_or_callers(const char* name, void* caller) noexcept;

/// A function of the runtime, the same for all callers: two LLVM runtimes do not bear each other in one
/// process.
template <class Function> class Kmpc {
  public:
    constexpr explicit Kmpc(const char* name) noexcept : name_(name) {}
    Function* get(void* caller) noexcept {
        Function* function = function_.load(std::memory_order_relaxed);
        if (__builtin_expect(function != nullptr, 1)) return function;
        function = reinterpret_cast<Function*>(next_or_callers(name_, caller));
        function_.store(function, std::memory_order_relaxed);
        return function;
    }

  private:
    const char* name_;
    std::atomic<Function*> function_{nullptr};
};

/// Another function of the runtime that `known` belongs to: names such as omp_in_final exist in every
/// runtime. Null: it has none.
template <class Function> Function* beside(void* known, const char* name) noexcept {
    Dl_info info{};
    if (!::dladdr(known, &info)) return nullptr;
    void* handle = ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void* function = handle ? ::dlsym(handle, name) : nullptr;
    if (handle) ::dlclose(handle);
    return reinterpret_cast<Function*>(function);
}

/// Is a tool other than homing in charge of the runtime's OMPT interface, or likely to be? Known once the
/// runtime has started.
bool another_tool() noexcept;

/// ompt_get_task_info of the runtime that took us as its tool (only where tasks are to follow their affinity
/// clauses); null: none did.
using GetTaskInfo = int(int level, int* flags, ompt_data_t** task, ompt_frame_t** frame,
                        ompt_data_t** parallel, int* thread);
GetTaskInfo* get_task_info() noexcept;

} // namespace homing::hooks
