// Calls that start another program: the kernel reads arguments and environment from anywhere, in a child or
// here. Rare and short: no window while they run. The other program inherits of SIGSEGV what this one has
// made of it.
#include "hooks/signals/signals.hpp"
#include "hooks/syscalls/calls.hpp"
#include "hooks/syscalls/other_loaders.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>
#include <wordexp.h>

// The static arrays of an object go with it.
HOMING_CALL1(dlclose, everything{})

namespace {

/// A child of vfork shares our memory until it is another program, and never comes back.
struct everything_of_child {
    [[gnu::always_inline]] void lend(homing::InFlight& call) const noexcept {
        call.add_for_child(homing::all_memory);
    }
};

template <class Memory, class Function, class... Arguments>
[[gnu::always_inline]] inline auto start(Memory memory, homing::hooks::Real<Function>& real,
                                         Arguments... arguments) {
    if (!real.is_ready()) return homing::hooks::early(real, arguments...);
    homing::InFlight call;
    homing::hooks::begin(call, memory);
    const homing::hooks::Inheritance inheritance;
    return homing::hooks::finish(call, real, arguments...);
}

} // namespace

#define HOMING_START(name, memory, parameters, ...)                                                          \
    static homing::hooks::Signature<&::name>::Result through_##name parameters {                             \
        using namespace homing::hooks;                                                                       \
        static constinit Real<Signature<&::name>::Function> real{#name};                                     \
        return start(memory{}, real, __VA_ARGS__);                                                           \
    }                                                                                                        \
    HOMING_HOOK(name, parameters) { return through_##name(__VA_ARGS__); }
// The same with an environment: `names`, given on as `given`. is_other: can homing's library not be in it?
#define HOMING_START_WITH(name, memory, parameters, is_other, ...)                                           \
    static homing::hooks::Signature<&::name>::Result through_##name parameters {                             \
        using namespace homing::hooks;                                                                       \
        static constinit Real<Signature<&::name>::Function> real{#name};                                     \
        return with_environment([&] { return is_other; }, names,                                             \
                                [&](char* const* given) { return start(memory{}, real, __VA_ARGS__); });     \
    }                                                                                                        \
    HOMING_HOOK(name, parameters) {                                                                          \
        char* const* const given = names;                                                                    \
        return through_##name(__VA_ARGS__);                                                                  \
    }
#define HOMING_SPAWN(name, is_other)                                                                         \
    HOMING_START_WITH(name, everything,                                                                      \
                      (pid_t * child, const char* path, const posix_spawn_file_actions_t* actions,           \
                       const posix_spawnattr_t* attributes, char* const* list, char* const* names),          \
                      is_other, child, path, actions, attributes, list, given)
HOMING_SPAWN(posix_spawn, has_other_loader(AT_FDCWD, path))
HOMING_SPAWN(posix_spawnp, has_other_loader_in_path(path))
extern "C" FILE* _IO_popen(const char*, const char*);
HOMING_START(system, everything, (const char* command), command)
HOMING_START(popen, everything, (const char* command, const char* mode), command, mode)
HOMING_START(_IO_popen, everything, (const char* command, const char* mode), command, mode)
HOMING_START(wordexp, everything, (const char* words, wordexp_t* found, int flags), words, found, flags)

HOMING_START_WITH(execve, everything_of_child, (const char* path, char* const* list, char* const* names),
                  has_other_loader(AT_FDCWD, path), path, list, given)
HOMING_START_WITH(execvpe, everything_of_child, (const char* file, char* const* list, char* const* names),
                  has_other_loader_in_path(file), file, list, given)
HOMING_START_WITH(fexecve, everything_of_child, (int file, char* const* list, char* const* names),
                  has_other_loader(file), file, list, given)
#if __GLIBC_PREREQ(2, 34)
HOMING_START_WITH(execveat, everything_of_child,
                  (int folder, const char* path, char* const* list, char* const* names, int flags),
                  path && *path ? has_other_loader(folder, path) : has_other_loader(folder), folder, path,
                  list, given, flags)
#endif

// Those that give their own environment on.
#define HOMING_START_WITHOUT(name, with, is_other)                                                           \
    static int through_##name(const char* file, char* const* list) {                                         \
        using namespace homing::hooks;                                                                       \
        static constinit Real<Signature<&::name>::Function> real{#name};                                     \
        if (is_relocated() && preload_with_ours(environ) && is_other)                                        \
            return through_##with(file, list, environ);                                                      \
        return start(everything_of_child{}, real, file, list);                                               \
    }                                                                                                        \
    HOMING_HOOK(name, (const char* file, char* const* list)) { return through_##name(file, list); }
HOMING_START_WITHOUT(execv, execve, has_other_loader(AT_FDCWD, file))
HOMING_START_WITHOUT(execvp, execvpe, has_other_loader_in_path(file))

// Those with a list of arguments call the C library's execve inside it: they become the ones above, not by
// their exported names, which are found in a table that need not be relocated yet.
namespace {
/// work(arguments, what follows them): of a list that ends with null, after the first one.
template <class Work> int with_list(const char* first, va_list list, Work&& work) {
    va_list counted;
    va_copy(counted, list);
    std::size_t count = 1;
    for (const char* next = first; next; next = va_arg(counted, const char*))
        ++count;
    va_end(counted);
    // As the C library does it: no memory but the stack's between vfork and exec.
    auto** arguments = static_cast<char**>(__builtin_alloca(count * sizeof(char*)));
    std::size_t at = 0;
    for (const char* next = first; next; next = va_arg(list, const char*))
        arguments[at++] = const_cast<char*>(next);
    arguments[at] = nullptr;
    return work(arguments, list);
}
} // namespace

HOMING_HOOK(execl, (const char* path, const char* first, ...)) {
    va_list list;
    va_start(list, first);
    const int result =
        with_list(first, list, [&](char** arguments, va_list) { return through_execv(path, arguments); });
    va_end(list);
    return result;
}
HOMING_HOOK(execlp, (const char* file, const char* first, ...)) {
    va_list list;
    va_start(list, first);
    const int result =
        with_list(first, list, [&](char** arguments, va_list) { return through_execvp(file, arguments); });
    va_end(list);
    return result;
}
HOMING_HOOK(execle, (const char* path, const char* first, ...)) {
    va_list list;
    va_start(list, first);
    const int result = with_list(first, list, [&](char** arguments, va_list rest) {
        char* const* const environment = va_arg(rest, char* const*);
        return through_execve(path, arguments, environment);
    });
    va_end(list);
    return result;
}
