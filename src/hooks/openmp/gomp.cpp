// The libgomp hook: GCC's OpenMP runtime has no OMPT, so its entry points for parallel regions are
// interposed. The identity of a region is the outlined function. Neither function nor data are replaced
// (reductions look into data).
//
// libgomp may arrive by dlopen with RTLD_LOCAL (every Python wheel brings its own): then no next definition
// is visible, and the real function is looked up through the link map of the caller. A program that is linked
// with this library, and needs nothing of libgomp but what is interposed here, has no libgomp at all (linkers
// leave out what nobody needs): it is loaded then.
#include "base/regions.hpp"
#include "hooks/export.hpp"

#include <cstdint>
#include <link.h>

namespace homing::hooks {
namespace {

using Outlined = void(void*);

/// Callers that reach a libgomp outside the global scope: return address -> function. Never removed: the
/// libgomp it leads to is kept loaded.
struct Local {
    std::atomic<std::uintptr_t> caller{0};
    std::atomic<const void*> name{nullptr};
    std::atomic<void*> function{nullptr};
};
constinit Local local_callers[1024];

/// Is it one of this library's own entry points?
bool is_ours(void* function) noexcept {
    Dl_info ours{}, its{};
    return ::dladdr(reinterpret_cast<void*>(&is_ours), &ours) && ::dladdr(function, &its) &&
           ours.dli_fbase == its.dli_fbase;
}

void* find_for_caller(const char* name, void* caller) noexcept {
    Dl_info info{};
    link_map* map = nullptr;
    if (!::dladdr1(caller, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map) return nullptr;
    void* handle = ::dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
    void* function = handle ? ::dlsym(handle, name) : nullptr;
    if (function && is_ours(function)) {
        void* libgomp = ::dlopen("libgomp.so.1", RTLD_LAZY); // never closed
        function = libgomp ? ::dlsym(libgomp, name) : nullptr;
    }
    if (function &&
        ::dladdr(function, &info)) // keep that libgomp for as long as we may call it: never closed
        ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle) ::dlclose(handle);
    return function;
}

/// One that was found before.
void* known_local_function(const char* name, void* caller) noexcept {
    const auto key = reinterpret_cast<std::uintptr_t>(caller);
    for (std::size_t i = 0; i < 16; ++i) {
        const Local& entry = local_callers[((key >> 2) + i) % 1024];
        const std::uintptr_t found = entry.caller.load(std::memory_order_acquire);
        if (found == 0) break;
        if (found == key && entry.name.load(std::memory_order_acquire) == name)
            return entry.function.load(std::memory_order_acquire);
    }
    return nullptr;
}

void* local_function(const char* name, void* caller) noexcept {
    const auto key = reinterpret_cast<std::uintptr_t>(caller);
    for (std::size_t i = 0; i < 16; ++i) {
        Local& entry = local_callers[((key >> 2) + i) % 1024];
        std::uintptr_t found = entry.caller.load(std::memory_order_acquire);
        if (found == key && entry.name.load(std::memory_order_acquire) == name)
            if (void* function = entry.function.load(std::memory_order_acquire)) return function;
        if (found == 0 && entry.caller.compare_exchange_strong(found, key)) {
            void* function = find_for_caller(name, caller);
            entry.function.store(function, std::memory_order_release);
            entry.name.store(name, std::memory_order_release);
            return function;
        }
    }
    return find_for_caller(name, caller); // table full: correct, only slower
}

/// An entry point of libgomp: the global one where there is one, else the caller's own.
template <class Function> class Entry {
  public:
    constexpr explicit Entry(const char* name) noexcept : name_(name), real_(name) {}
    Function* get(void* caller) noexcept {
        if (Function* function = real_.known(); __builtin_expect(function != nullptr, 1)) return function;
        if (void* function = known_local_function(name_, caller))
            return reinterpret_cast<Function*>(function);
        if (Function* function = real_.get()) return function;
        return reinterpret_cast<Function*>(local_function(name_, caller));
    }

  private:
    const char* name_;
    Real<Function> real_;
};

Address identity(Outlined* function) noexcept { return reinterpret_cast<Address>(function); }

/// Run a region through the real entry point, bracketed.
template <class Function, class... Arguments>
auto bracketed(Function* real, Outlined* function, Arguments... arguments) {
    struct Bracket {
        bool open;
        ~Bracket() {
            if (open) phases::end();
        }
    } bracket{phases::begin(identity(function))};
    return real(function, arguments...);
}

} // namespace
} // namespace homing::hooks

using homing::Address;
using homing::hooks::bracketed;
using homing::hooks::Entry;
using homing::hooks::identity;
using homing::hooks::Outlined;
namespace phases = homing::phases;

#define CALLER __builtin_return_address(0)

extern "C" {

HOMING_EXPORT void GOMP_parallel(Outlined* function, void* data, unsigned threads, unsigned flags) {
    static constinit Entry<decltype(GOMP_parallel)> entry{"GOMP_parallel"};
    bracketed(entry.get(CALLER), function, data, threads, flags);
}

HOMING_EXPORT unsigned GOMP_parallel_reductions(Outlined* function, void* data, unsigned threads,
                                                unsigned flags) {
    static constinit Entry<decltype(GOMP_parallel_reductions)> entry{"GOMP_parallel_reductions"};
    return bracketed(entry.get(CALLER), function, data, threads, flags);
}

HOMING_EXPORT void GOMP_parallel_sections(Outlined* function, void* data, unsigned threads, unsigned count,
                                          unsigned flags) {
    static constinit Entry<decltype(GOMP_parallel_sections)> entry{"GOMP_parallel_sections"};
    bracketed(entry.get(CALLER), function, data, threads, count, flags);
}

HOMING_EXPORT void GOMP_teams_reg(Outlined* function, void* data, unsigned teams, unsigned limit,
                                  unsigned flags) {
    static constinit Entry<decltype(GOMP_teams_reg)> entry{"GOMP_teams_reg"};
    bracketed(entry.get(CALLER), function, data, teams, limit, flags);
}

#define HOMING_LOOP_WITH_CHUNK(name)                                                                         \
    HOMING_EXPORT void name(Outlined* function, void* data, unsigned threads, long start, long stop,         \
                            long step, long chunk, unsigned flags) {                                         \
        static constinit Entry<decltype(name)> entry{#name};                                                 \
        bracketed(entry.get(CALLER), function, data, threads, start, stop, step, chunk, flags);              \
    }
HOMING_LOOP_WITH_CHUNK(GOMP_parallel_loop_static)
HOMING_LOOP_WITH_CHUNK(GOMP_parallel_loop_dynamic)
HOMING_LOOP_WITH_CHUNK(GOMP_parallel_loop_guided)
HOMING_LOOP_WITH_CHUNK(GOMP_parallel_loop_nonmonotonic_dynamic)
HOMING_LOOP_WITH_CHUNK(GOMP_parallel_loop_nonmonotonic_guided)

#define HOMING_LOOP_RUNTIME(name)                                                                            \
    HOMING_EXPORT void name(Outlined* function, void* data, unsigned threads, long start, long stop,         \
                            long step, unsigned flags) {                                                     \
        static constinit Entry<decltype(name)> entry{#name};                                                 \
        bracketed(entry.get(CALLER), function, data, threads, start, stop, step, flags);                     \
    }
HOMING_LOOP_RUNTIME(GOMP_parallel_loop_runtime)
HOMING_LOOP_RUNTIME(GOMP_parallel_loop_nonmonotonic_runtime)
HOMING_LOOP_RUNTIME(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

// Programs built by GCC before 4.9: the region runs between a start and GOMP_parallel_end.
HOMING_EXPORT void GOMP_parallel_start(Outlined* function, void* data, unsigned threads) {
    static constinit Entry<decltype(GOMP_parallel_start)> entry{"GOMP_parallel_start"};
    phases::begin(identity(function));
    entry.get(CALLER)(function, data, threads);
}

HOMING_EXPORT void GOMP_parallel_sections_start(Outlined* function, void* data, unsigned threads,
                                                unsigned count) {
    static constinit Entry<decltype(GOMP_parallel_sections_start)> entry{"GOMP_parallel_sections_start"};
    phases::begin(identity(function));
    entry.get(CALLER)(function, data, threads, count);
}

#define HOMING_LOOP_START(name)                                                                              \
    HOMING_EXPORT void name(Outlined* function, void* data, unsigned threads, long start, long stop,         \
                            long step, long chunk) {                                                         \
        static constinit Entry<decltype(name)> entry{#name};                                                 \
        phases::begin(identity(function));                                                                   \
        entry.get(CALLER)(function, data, threads, start, stop, step, chunk);                                \
    }
HOMING_LOOP_START(GOMP_parallel_loop_static_start)
HOMING_LOOP_START(GOMP_parallel_loop_dynamic_start)
HOMING_LOOP_START(GOMP_parallel_loop_guided_start)

HOMING_EXPORT void GOMP_parallel_loop_runtime_start(Outlined* function, void* data, unsigned threads,
                                                    long start, long stop, long step) {
    static constinit Entry<decltype(GOMP_parallel_loop_runtime_start)> entry{
        "GOMP_parallel_loop_runtime_start"};
    phases::begin(identity(function));
    entry.get(CALLER)(function, data, threads, start, stop, step);
}

HOMING_EXPORT void GOMP_parallel_end() {
    static constinit Entry<decltype(GOMP_parallel_end)> entry{"GOMP_parallel_end"};
    entry.get(CALLER)();
    phases::end();
}

// Barriers within a region: all that a program which is one giant region shows.
HOMING_EXPORT void GOMP_barrier() {
    static constinit Entry<decltype(GOMP_barrier)> entry{"GOMP_barrier"};
    const bool tells = phases::barrier(reinterpret_cast<Address>(CALLER));
    entry.get(CALLER)();
    if (tells) phases::barrier_passed();
}

HOMING_EXPORT void GOMP_loop_end() {
    static constinit Entry<decltype(GOMP_loop_end)> entry{"GOMP_loop_end"};
    const bool tells = phases::barrier(reinterpret_cast<Address>(CALLER));
    entry.get(CALLER)();
    if (tells) phases::barrier_passed();
}

} // extern "C"
