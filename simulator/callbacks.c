// The callbacks of -fsanitize=thread, as GCC and LLVM emit them, in place of libtsan's. Each access is looked
// up in the thread's filter (context.h); the rest is the simulator's work, if it is there. Volatile and
// atomic accesses count as others do; a read-modify-write is one access that writes, as it is one transaction
// of a coherence protocol.
//
// Linked into every module (programs, shared objects), with hidden names: a call to a function of one's own
// module is cheaper than one through the procedure linkage table. Built once more as libtsan.so.2
// (HOMING_DROP_IN), where the names are exported, for programs that were linked with GCC's sanitizer.
#include "callbacks.h"

#include <dlfcn.h>
#include <stddef.h>

#ifdef HOMING_DROP_IN
#define PUBLIC __attribute__((visibility("default")))
#else
#define PUBLIC __attribute__((visibility("hidden")))
#endif

_Thread_local struct homing_context* homing_self = NULL;

/// Accesses of threads that are not simulated end here: nothing is ever in this filter.
static struct homing_context nobody = {.left = INT64_MAX};

static const struct homing_simulator* simulator(void) {
    static const struct homing_simulator* found;
    static int asked;
    if (__atomic_load_n(&asked, __ATOMIC_ACQUIRE)) return found;
    homing_simulator_enter_function* enter = NULL;
    *(void**)&enter = dlsym(RTLD_DEFAULT, "homing_simulator_enter_1");
    const struct homing_simulator* answer = enter ? enter() : NULL;
    __atomic_store_n(&found, answer, __ATOMIC_RELAXED);
    __atomic_store_n(&asked, 1, __ATOMIC_RELEASE);
    return answer;
}

void homing_slow(struct homing_context* self, uintptr_t address, int write, const void* pc) {
    if (self == &nobody) return;
    if (!pc) pc = __builtin_return_address(0); // inlined
    simulator()->slow(self, address, write, pc);
}

void homing_first(uintptr_t address, int write, const void* pc) {
    const struct homing_simulator* there = simulator();
    struct homing_context* self = there ? there->attach() : NULL;
    if (!self) {
        homing_self = &nobody;
        return;
    }
    homing_self = self;
    if (!pc) pc = __builtin_return_address(0);
    --self->left;
    there->slow(self, address, write, pc);
}

#define HERE __builtin_return_address(0)

#define ACCESS(name, write)                                                                                  \
    PUBLIC void __tsan_##name(void* at) { homing_access((uintptr_t)at, write, HERE); }                       \
    PUBLIC void __tsan_##name##_pc(void* at, void* pc) { homing_access((uintptr_t)at, write, pc); }
#define UNALIGNED(name, bytes, write)                                                                        \
    PUBLIC void __tsan_##name(void* at) { homing_access_unaligned((uintptr_t)at, bytes, write, HERE); }
#define SIZES(name, write)                                                                                   \
    ACCESS(name##1, write)                                                                                   \
    ACCESS(name##2, write)                                                                                   \
    ACCESS(name##4, write)                                                                                   \
    ACCESS(name##8, write)                                                                                   \
    UNALIGNED(name##16, 16, write)                                                                           \
    UNALIGNED(unaligned_##name##2, 2, write)                                                                 \
    UNALIGNED(unaligned_##name##4, 4, write)                                                                 \
    UNALIGNED(unaligned_##name##8, 8, write)                                                                 \
    UNALIGNED(unaligned_##name##16, 16, write)
SIZES(read, 0)
SIZES(write, 1)
SIZES(volatile_read, 0)
SIZES(volatile_write, 1)
// Clang's compound accesses; `homing cc` asks for a read and a write instead, a drop-in library may still
// meet these.
SIZES(read_write, 1)

/// A range counts as one access for each line of 64 bytes.
static inline void range(uintptr_t begin, size_t bytes, int write, const void* pc) {
    const uintptr_t end = begin + bytes;
    for (uintptr_t at = begin; at < end; at = (at | ((1 << HOMING_FILTER_SHIFT) - 1)) + 1)
        homing_access(at, write, pc);
}
PUBLIC void __tsan_read_range(void* at, size_t bytes) { range((uintptr_t)at, bytes, 0, HERE); }
PUBLIC void __tsan_write_range(void* at, size_t bytes) { range((uintptr_t)at, bytes, 1, HERE); }
PUBLIC void __tsan_read_range_pc(void* at, size_t bytes, void* pc) { range((uintptr_t)at, bytes, 0, pc); }
PUBLIC void __tsan_write_range_pc(void* at, size_t bytes, void* pc) { range((uintptr_t)at, bytes, 1, pc); }

// LLVM calls these in place of the C library's; the C library's are counted by the simulator itself.
PUBLIC void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
    return __builtin_memcpy(to, from, bytes);
}
PUBLIC void* __tsan_memmove(void* to, const void* from, size_t bytes) {
    return __builtin_memmove(to, from, bytes);
}
PUBLIC void* __tsan_memset(void* to, int value, size_t bytes) { return __builtin_memset(to, value, bytes); }

PUBLIC void __tsan_vptr_update(void** at, void* value) {
    (void)value;
    homing_access((uintptr_t)at, 1, HERE);
}
PUBLIC void __tsan_vptr_read(void** at) { homing_access((uintptr_t)at, 0, HERE); }

PUBLIC void __tsan_init(void) {}
PUBLIC void __tsan_func_entry(void* pc) { (void)pc; }
PUBLIC void __tsan_func_exit(void) {}
PUBLIC void __tsan_ignore_thread_begin(void) {}
PUBLIC void __tsan_ignore_thread_end(void) {}
PUBLIC void __tsan_acquire(void* at) { (void)at; }
PUBLIC void __tsan_release(void* at) { (void)at; }
PUBLIC void* __tsan_external_register_tag(const char* name) {
    (void)name;
    return NULL;
}
PUBLIC void __tsan_external_read(void* at, void* pc, void* tag) {
    (void)tag;
    homing_access((uintptr_t)at, 0, pc);
}
PUBLIC void __tsan_external_write(void* at, void* pc, void* tag) {
    (void)tag;
    homing_access((uintptr_t)at, 1, pc);
}

// Atomic operations are done here, always in the strongest order: weaker ones only permit more.
#define ORDER __ATOMIC_SEQ_CST
#define FETCH(bits, type, name, builtin)                                                                     \
    PUBLIC type __tsan_atomic##bits##_fetch_##name(volatile type* at, type value, int order) {               \
        (void)order;                                                                                         \
        homing_access((uintptr_t)at, 1, HERE);                                                               \
        return __atomic_fetch_##builtin(at, value, ORDER);                                                   \
    }
#define ATOMICS(bits, type)                                                                                  \
    PUBLIC type __tsan_atomic##bits##_load(const volatile type* at, int order) {                             \
        (void)order;                                                                                         \
        homing_access((uintptr_t)at, 0, HERE);                                                               \
        return __atomic_load_n(at, ORDER);                                                                   \
    }                                                                                                        \
    PUBLIC void __tsan_atomic##bits##_store(volatile type* at, type value, int order) {                      \
        (void)order;                                                                                         \
        homing_access((uintptr_t)at, 1, HERE);                                                               \
        __atomic_store_n(at, value, ORDER);                                                                  \
    }                                                                                                        \
    PUBLIC type __tsan_atomic##bits##_exchange(volatile type* at, type value, int order) {                   \
        (void)order;                                                                                         \
        homing_access((uintptr_t)at, 1, HERE);                                                               \
        return __atomic_exchange_n(at, value, ORDER);                                                        \
    }                                                                                                        \
    FETCH(bits, type, add, add)                                                                              \
    FETCH(bits, type, sub, sub)                                                                              \
    FETCH(bits, type, and, and)                                                                              \
    FETCH(bits, type, or, or)                                                                                \
    FETCH(bits, type, xor, xor)                                                                              \
    FETCH(bits, type, nand, nand)                                                                            \
    PUBLIC int __tsan_atomic##bits##_compare_exchange_strong(volatile type* at, type* expected, type value,  \
                                                             int order, int failure) {                       \
        (void)order, (void)failure;                                                                          \
        homing_access((uintptr_t)at, 1, HERE);                                                               \
        return __atomic_compare_exchange_n(at, expected, value, 0, ORDER, ORDER);                            \
    }                                                                                                        \
    PUBLIC int __tsan_atomic##bits##_compare_exchange_weak(volatile type* at, type* expected, type value,    \
                                                           int order, int failure) {                         \
        (void)order, (void)failure;                                                                          \
        homing_access((uintptr_t)at, 1, HERE);                                                               \
        return __atomic_compare_exchange_n(at, expected, value, 1, ORDER, ORDER);                            \
    }                                                                                                        \
    PUBLIC type __tsan_atomic##bits##_compare_exchange_val(volatile type* at, type expected, type value,     \
                                                           int order, int failure) {                         \
        (void)order, (void)failure;                                                                          \
        homing_access((uintptr_t)at, 1, HERE);                                                               \
        __atomic_compare_exchange_n(at, &expected, value, 0, ORDER, ORDER);                                  \
        return expected;                                                                                     \
    }
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

// 128 bits by compare and exchange alone, as processors have them: a load of read-only memory would fault,
// and there is none in practice. (The builtins of above would become calls of libatomic.)
__extension__ typedef unsigned __int128 wide;
#ifdef __x86_64__
#define WIDE PUBLIC __attribute__((target("cx16")))
#else
#define WIDE PUBLIC
#endif
#define EXCHANGED(at, expected, value) __sync_val_compare_and_swap(at, expected, value)
#define WIDE_UPDATE(name, result)                                                                            \
    WIDE wide __tsan_atomic128_##name(volatile wide* at, wide value, int order) {                            \
        (void)order;                                                                                         \
        homing_access((uintptr_t)at, 1, HERE);                                                               \
        wide old = 0;                                                                                        \
        for (;;) {                                                                                           \
            const wide found = EXCHANGED(at, old, result);                                                   \
            if (found == old) return old;                                                                    \
            old = found;                                                                                     \
        }                                                                                                    \
    }
WIDE_UPDATE(exchange, value)
WIDE_UPDATE(fetch_add, old + value)
WIDE_UPDATE(fetch_sub, old - value)
WIDE_UPDATE(fetch_and, old& value)
WIDE_UPDATE(fetch_or, old | value)
WIDE_UPDATE(fetch_xor, old ^ value)
WIDE_UPDATE(fetch_nand, ~(old& value))
WIDE wide __tsan_atomic128_load(const volatile wide* at, int order) {
    (void)order;
    homing_access((uintptr_t)at, 0, HERE);
    return EXCHANGED((volatile wide*)at, 0, 0);
}
WIDE void __tsan_atomic128_store(volatile wide* at, wide value, int order) {
    (void)__tsan_atomic128_exchange(at, value, order);
}
WIDE wide __tsan_atomic128_compare_exchange_val(volatile wide* at, wide expected, wide value, int order,
                                                int failure) {
    (void)order, (void)failure;
    homing_access((uintptr_t)at, 1, HERE);
    return EXCHANGED(at, expected, value);
}
WIDE int __tsan_atomic128_compare_exchange_strong(volatile wide* at, wide* expected, wide value, int order,
                                                  int failure) {
    (void)order, (void)failure;
    homing_access((uintptr_t)at, 1, HERE);
    const wide wanted = *expected;
    const wide found = EXCHANGED(at, wanted, value);
    if (found == wanted) return 1;
    *expected = found;
    return 0;
}
WIDE int __tsan_atomic128_compare_exchange_weak(volatile wide* at, wide* expected, wide value, int order,
                                                int failure) {
    return __tsan_atomic128_compare_exchange_strong(at, expected, value, order, failure);
}

PUBLIC void __tsan_atomic_thread_fence(int order) {
    (void)order;
    __atomic_thread_fence(ORDER);
}
PUBLIC void __tsan_atomic_signal_fence(int order) {
    (void)order;
    __atomic_signal_fence(ORDER);
}
