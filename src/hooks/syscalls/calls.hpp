// The hooks of system calls: each function of the C library whose system call reads or writes memory of the
// program is one line of a table (calls_*.cpp), which says what memory that is. From a line comes a function
// of the same name and type, which tells the windows of the memory (sources/in_flight.hpp) and calls the
// C library's.
//
//     HOMING_CALL3(readlink, text(a), bytes(b, c))    readlink's first argument is a string, its second c
//     bytes
//
// A call is never made a second time: where it failed half-way, it has had its effect.
//
// What is not known exactly is taken for more. The memory itself is not looked at (it may be no memory: that
// is for the kernel to say), but for lists of buffers, where that cannot be avoided.
//
// tests/programs/entries.txt names the functions that have no line, and why they need none.
#pragma once

#include "hooks/export.hpp"
#include "hooks/shadowed.hpp"
#include "machine/simulation.hpp"
#include "sources/windows.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <tuple>
#include <type_traits>

// What a declaration says of the use of a function is not for us.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace homing::hooks {

template <class Pointer> struct SignatureOf;
template <class R, class... A> struct SignatureOf<R (*)(A...)> {
    using Function = R(A...);
    using Result = R;
    template <std::size_t number> using Argument = std::tuple_element_t<number, std::tuple<A...>>;
};
template <class R, class... A> struct SignatureOf<R (*)(A...) noexcept> : SignatureOf<R (*)(A...)> {};
template <class R, class... A> struct SignatureOf<R (*)(A..., ...)> : SignatureOf<R (*)(A...)> {
    using Function = R(A..., ...);
};
template <class R, class... A>
struct SignatureOf<R (*)(A..., ...) noexcept> : SignatureOf<R (*)(A..., ...)> {};
/// Of a declared function.
template <auto function> using Signature = SignatureOf<decltype(function)>;

// What an argument stands for. Null is no memory.

/// So many bytes.
struct bytes {
    const volatile void* memory;
    std::size_t count;
    [[gnu::always_inline]] void lend(InFlight& call) const noexcept {
        // What does not fit into the address space is an error that the kernel finds before it looks there.
        const auto begin = reinterpret_cast<Address>(memory);
        if (begin) call.add({begin, begin + count});
    }
};

/// The same, data that a program works on: under a simulation the call touches them.
struct data {
    const void* memory;
    std::size_t count;
    [[gnu::always_inline]] void lend(InFlight& call) const noexcept {
        bytes{memory, count}.lend(call);
        if (Simulation* simulated = simulation()) simulated->touched(memory, count);
    }
};

/// One object of the argument's type, or several.
template <class T> bytes object(T* memory) noexcept { return {memory, sizeof(T)}; }
template <class T> bytes objects(T* memory, std::size_t count) noexcept {
    std::size_t size = 0;
    return {memory, __builtin_mul_overflow(count, sizeof(T), &size) ? ~std::size_t{0} : size};
}

/// A count that is negative by mistake: the kernel says so.
inline std::size_t length(int given) noexcept { return given > 0 ? static_cast<std::size_t>(given) : 0; }

/// A set of descriptors below n: whole words, which may be more than an fd_set has.
inline bytes set(const fd_set* descriptors, int n) noexcept {
    constexpr int word = 8 * sizeof(long);
    return {descriptors, n > 0 ? static_cast<std::size_t>((n + word - 1) / word) * sizeof(long) : 0};
}

/// Memory of calls that take a while anyway: what is said of it need not be part of every hook.
struct seldom : bytes {};
/// A name that the kernel reads up to its end: at most so many bytes.
inline seldom text(const char* name) noexcept { return {name, PATH_MAX}; }
/// A structure whose size depends on other arguments.
inline seldom structure(const void* memory) noexcept { return {memory, 4096}; }
/// An argument that is a structure or a number, which nobody's memory lies at.
inline seldom structure(long argument) noexcept { return structure(reinterpret_cast<const void*>(argument)); }
/// A string that the C library looks for the end of, too.
inline bytes string(const char* characters) noexcept {
    return {characters, characters ? std::strlen(characters) : 0};
}

/// An address that the kernel writes, and its length.
struct address {
    const sockaddr* memory;
    const socklen_t* length;
    [[gnu::always_inline]] void lend(InFlight& call) const noexcept {
        bytes{memory, sizeof(sockaddr_storage)}.lend(call);
        bytes{length, sizeof *length}.lend(call);
    }
};

/// A value whose length the program gives as an object, which is not looked at: more than any has.
struct value {
    const void* memory;
    const socklen_t* length;
    [[gnu::always_inline]] void lend(InFlight& call) const noexcept {
        bytes{memory, 65536}.lend(call);
        bytes{length, sizeof *length}.lend(call);
    }
};

/// A list of buffers: each by itself, or of a long list what neighbours span.
struct pieces {
    const iovec* list;
    long count;
    [[gnu::always_inline]] void lend(InFlight& call) const noexcept {
        if (!list || count <= 0 || count > IOV_MAX) return;
        bytes{list, static_cast<std::size_t>(count) * sizeof *list}.lend(call);
        constexpr long most = 8;
        const long together = (count + most - 1) / most;
        for (long i = 0; i < count;) {
            Range span{~Address{0}, 0};
            for (const long end = std::min(count, i + together); i < end; ++i) {
                const Range piece = range_of(list[i].iov_base, list[i].iov_len);
                if (piece.empty()) continue;
                span = {std::min(span.begin, piece.begin), std::max(span.end, piece.end)};
            }
            call.add(span);
        }
    }
};

struct message {
    const msghdr* header;
    [[gnu::always_inline]] void lend(InFlight& call) const noexcept {
        if (!header) return;
        object(header).lend(call);
        pieces{header->msg_iov, static_cast<long>(header->msg_iovlen)}.lend(call);
        bytes{header->msg_name, header->msg_namelen}.lend(call);
        bytes{header->msg_control, header->msg_controllen}.lend(call);
    }
};

struct messages {
    const mmsghdr* list;
    unsigned count;
    [[gnu::always_inline]] void lend(InFlight& call) const noexcept {
        if (!list) return;
        objects(list, count).lend(call);
        for (unsigned i = 0; i < count && i < IOV_MAX; ++i)
            message{&list[i].msg_hdr}.lend(call);
    }
};

/// Anything: no window while the call runs.
struct everything {
    [[gnu::always_inline]] void lend(InFlight& call) const noexcept { call.add(all_memory); }
};

template <class Memory> [[gnu::noinline]] InFlight lend_apart(InFlight call, Memory memory) noexcept {
    memory.lend(call);
    return call;
}

/// Most calls have one range. The others' further ones are worth a call, not hundreds of copies of the code.
template <class First, class... Others>
[[gnu::always_inline]] inline void begin(InFlight& call, First first, Others... others) noexcept {
    if constexpr (std::is_same_v<First, seldom>)
        call = lend_apart(call, first);
    else
        first.lend(call);
    ((call = lend_apart(call, others)), ...);
    Windows::begin(call);
}

/// The C library's function, within a call that has begun. Nothing is done on the way of an exception: a
/// cancelled thread unwinds through here, from any instruction (InFlight).
template <class Function, class... Arguments>
[[gnu::always_inline]] inline auto finish(InFlight& call, Real<Function>& real, Arguments... arguments) {
    Function* const function = real.get();
    using Result = decltype(function(arguments...));
    if (__builtin_expect(!function, 0)) {
        call.end();
        return missing<Result>();
    }
    if constexpr (std::is_void_v<Result>) {
        function(arguments...);
        call.end();
    } else {
        const Result result = function(arguments...);
        call.end();
        return result;
    }
}

} // namespace homing::hooks

// A function of the C library's name and type, whatever its header adds to the declaration (exceptions, null
// pointers, a checking version): it has a name of our own, and a stub has the C library's.
#define HOMING_HOOK(name, parameters)                                                                        \
    HOMING_STUB(name)                                                                                        \
    extern "C" [[gnu::used, gnu::visibility("hidden")]] homing::hooks::Signature<&::name>::Result            \
        door_##name parameters __asm__("homing_door_" #name);                                                \
    homing::hooks::Signature<&::name>::Result door_##name parameters
#define HOMING_ARGUMENT(name, number) homing::hooks::Signature<&::name>::template Argument<number>
#define HOMING_CALL(name, parameters, memory, ...)                                                           \
    HOMING_HOOK(name, parameters) {                                                                          \
        using namespace homing::hooks;                                                                       \
        static constinit Real<Signature<&::name>::Function> real{#name};                                     \
        if (!real.is_ready()) return early(real, __VA_ARGS__);                                               \
        homing::InFlight call;                                                                               \
        begin(call, HOMING_LIST memory);                                                                     \
        return finish(call, real, __VA_ARGS__);                                                              \
    }
#define HOMING_LIST(...) __VA_ARGS__

// One line a function, its arguments called a, b, c, ...
#define HOMING_CALL1(name, ...) HOMING_CALL(name, (HOMING_ARGUMENT(name, 0) a), (__VA_ARGS__), a)
#define HOMING_CALL2(name, ...)                                                                              \
    HOMING_CALL(name, (HOMING_ARGUMENT(name, 0) a, HOMING_ARGUMENT(name, 1) b), (__VA_ARGS__), a, b)
#define HOMING_CALL3(name, ...)                                                                              \
    HOMING_CALL(name, (HOMING_ARGUMENT(name, 0) a, HOMING_ARGUMENT(name, 1) b, HOMING_ARGUMENT(name, 2) c),  \
                (__VA_ARGS__), a, b, c)
#define HOMING_CALL4(name, ...)                                                                              \
    HOMING_CALL(name,                                                                                        \
                (HOMING_ARGUMENT(name, 0) a, HOMING_ARGUMENT(name, 1) b, HOMING_ARGUMENT(name, 2) c,         \
                 HOMING_ARGUMENT(name, 3) d),                                                                \
                (__VA_ARGS__), a, b, c, d)
#define HOMING_CALL5(name, ...)                                                                              \
    HOMING_CALL(name,                                                                                        \
                (HOMING_ARGUMENT(name, 0) a, HOMING_ARGUMENT(name, 1) b, HOMING_ARGUMENT(name, 2) c,         \
                 HOMING_ARGUMENT(name, 3) d, HOMING_ARGUMENT(name, 4) e),                                    \
                (__VA_ARGS__), a, b, c, d, e)
#define HOMING_CALL6(name, ...)                                                                              \
    HOMING_CALL(name,                                                                                        \
                (HOMING_ARGUMENT(name, 0) a, HOMING_ARGUMENT(name, 1) b, HOMING_ARGUMENT(name, 2) c,         \
                 HOMING_ARGUMENT(name, 3) d, HOMING_ARGUMENT(name, 4) e, HOMING_ARGUMENT(name, 5) f),        \
                (__VA_ARGS__), a, b, c, d, e, f)
#define HOMING_CALL7(name, ...)                                                                              \
    HOMING_CALL(name,                                                                                        \
                (HOMING_ARGUMENT(name, 0) a, HOMING_ARGUMENT(name, 1) b, HOMING_ARGUMENT(name, 2) c,         \
                 HOMING_ARGUMENT(name, 3) d, HOMING_ARGUMENT(name, 4) e, HOMING_ARGUMENT(name, 5) f,         \
                 HOMING_ARGUMENT(name, 6) g),                                                                \
                (__VA_ARGS__), a, b, c, d, e, f, g)
