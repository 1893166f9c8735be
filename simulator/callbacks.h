// The fast path of an access, as callbacks.c and the LLVM bitcode that clang inlines use it.
#pragma once

#include "context.h"

#define HOMING_NOT_INSTRUMENTED __attribute__((no_sanitize_thread))

/// The calling thread's context; null until its first access.
extern __attribute__((visibility("hidden"),
                      tls_model("initial-exec"))) _Thread_local struct homing_context* homing_self;

/// The first access of a thread, and all that the filter does not know.
__attribute__((visibility("hidden"), noinline, cold)) void homing_first(uintptr_t address, int write,
                                                                        const void* pc);
__attribute__((visibility("hidden"), noinline)) void
homing_slow(struct homing_context* self, uintptr_t address, int write, const void* pc);

static inline __attribute__((always_inline)) HOMING_NOT_INSTRUMENTED void
homing_access(uintptr_t address, int write, const void* pc) {
    struct homing_context* self = homing_self;
    if (__builtin_expect(!self, 0)) {
        homing_first(address, write, pc);
        return;
    }
    const uint64_t line = address >> HOMING_FILTER_SHIFT;
    const uint64_t entry = self->filter[homing_filter_slot(line, self->mask)];
    const uint64_t wanted = line << 1 | 1;
    if (__builtin_expect(--self->left >= 0 && (write ? entry : entry | 1) == wanted, 1)) return;
    homing_slow(self, address, write, pc);
}

/// An access that may lie on two lines.
static inline __attribute__((always_inline)) HOMING_NOT_INSTRUMENTED void
homing_access_unaligned(uintptr_t address, uintptr_t bytes, int write, const void* pc) {
    homing_access(address, write, pc);
    const uintptr_t last = address + bytes - 1;
    if (__builtin_expect((address ^ last) >> HOMING_FILTER_SHIFT != 0, 0)) {
        // One access, two lines: the second look at the filter is not another access.
        struct homing_context* self = homing_self;
        if (self) ++self->left;
        homing_access(last, write, pc);
    }
}
