// Stubs on the entry points of LLVM's OpenMP runtime. Each asks homing_kmpc_enter(call, microtask, caller) where to go
// and whether homing must hear of the end. If not, every register is as it was and the stub jumps: the runtime, and an
// OMPT tool that listens to it, sees the program's own call. If so, it calls, and tells homing_kmpc_leave(what) afterwards.
//
// The fork calls are variadic, so this cannot be C++: a pointer for each of the `argc` values that the outlined function
// (microtask) gets, the first of them in registers, the others on the stack, where they are copied for a call. They
// are pointers: no vector register carries an argument.
//
// STUB name, call as kmpc.cpp numbers them, 1 for one that is variadic.

#if defined(__x86_64__)

.macro RESTORE
    movq -8(%rbp), %rax
    movq -16(%rbp), %rdi
    movq -24(%rbp), %rsi
    movq -32(%rbp), %rdx
    movq -40(%rbp), %rcx
    movq -48(%rbp), %r8
    movq -56(%rbp), %r9
.endm

.macro STUB name call variadic
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
    endbr64
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $64, %rsp
    movq %rax, -8(%rbp)
    movq %rdi, -16(%rbp)
    movq %rsi, -24(%rbp)
    movq %rdx, -32(%rbp)
    movq %rcx, -40(%rbp)
    movq %r8, -48(%rbp)
    movq %r9, -56(%rbp)
    movl $\call, %edi
    movq %rdx, %rsi
    movq 8(%rbp), %rdx
    call homing_kmpc_enter
    movq %rax, %r11
    movq %rdx, -64(%rbp)
    testq %rdx, %rdx
    jne 1f
    RESTORE
    leave
    .cfi_remember_state
    .cfi_def_cfa %rsp, 8
    .cfi_restore %rbp
    jmp *%r11
1:
    .cfi_restore_state
.if \variadic
    movslq -24(%rbp), %rcx  // argc; the first three values came in registers
    subq $3, %rcx
    jle 3f
    leaq 1(%rcx), %rax      // the stack stays aligned to 16
    andq $-2, %rax
    shlq $3, %rax
    subq %rax, %rsp
2:
    movq 8(%rbp,%rcx,8), %rax
    movq %rax, -8(%rsp,%rcx,8)
    subq $1, %rcx
    jne 2b
3:
.endif
    RESTORE
    call *%r11
    movq -64(%rbp), %rdi
    call homing_kmpc_leave
    leave
    .cfi_def_cfa %rsp, 8
    .cfi_restore %rbp
    ret
    .cfi_endproc
    .size \name, .-\name
.endm

#elif defined(__aarch64__)

.macro RESTORE
    ldp x0, x1, [x29, #16]
    ldp x2, x3, [x29, #32]
    ldp x4, x5, [x29, #48]
    ldp x6, x7, [x29, #64]
.endm

.macro STUB name call variadic
    .globl \name
    .type \name, %function
\name:
    .cfi_startproc
    hint #34                // bti c
    stp x29, x30, [sp, #-96]!
    .cfi_def_cfa_offset 96
    .cfi_offset x29, -96
    .cfi_offset x30, -88
    mov x29, sp
    .cfi_def_cfa x29, 96
    stp x0, x1, [x29, #16]
    stp x2, x3, [x29, #32]
    stp x4, x5, [x29, #48]
    stp x6, x7, [x29, #64]
    mov w0, #\call
    mov x1, x2
    mov x2, x30
    bl homing_kmpc_enter
    mov x16, x0
    str x1, [x29, #80]
    cbnz x1, 1f
    RESTORE
    ldp x29, x30, [sp], #96
    .cfi_remember_state
    .cfi_def_cfa sp, 0
    .cfi_restore x29
    .cfi_restore x30
    br x16
1:
    .cfi_restore_state
.if \variadic
    ldrsw x9, [x29, #24]    // argc; the first five values came in registers
    subs x9, x9, #5
    b.le 3f
    add x10, x9, #1         // the stack stays aligned to 16
    and x10, x10, #-2
    sub sp, sp, x10, lsl #3
    add x10, x29, #96
    mov x11, sp
2:
    ldr x12, [x10], #8
    str x12, [x11], #8
    subs x9, x9, #1
    b.ne 2b
3:
.endif
    RESTORE
    blr x16
    ldr x0, [x29, #80]
    bl homing_kmpc_leave
    mov sp, x29
    ldp x29, x30, [sp], #96
    .cfi_def_cfa sp, 0
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size \name, .-\name
.endm

#endif

#if defined(__x86_64__) || defined(__aarch64__)
    .text
    .hidden homing_kmpc_enter
    .hidden homing_kmpc_leave
STUB __kmpc_fork_call 0 1
STUB __kmpc_fork_call_if 1 0
STUB __kmpc_fork_teams 2 1
STUB __kmpc_serialized_parallel 3 0
STUB __kmpc_end_serialized_parallel 4 0
STUB __kmpc_barrier 5 0
#endif
    .section .note.GNU-stack, "", %progbits
