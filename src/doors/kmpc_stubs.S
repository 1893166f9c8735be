// Stubs on the fork calls of LLVM's OpenMP runtime: each notes its third argument, the outlined function (microtask),
// in a thread-local variable and jumps on. OMPT's parallel_begin gives the call site only, which compilers duplicate
// and unroll. The calls are variadic: no register and no stack slot may change, so this cannot be C++.
//
// The real functions are found at the first call by homing_kmpc_resolve(index, caller), which may leave the pointer
// null to be asked again.

#if defined(__x86_64__)

.macro STUB name index
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
    endbr64
    movq homing_microtask@gottpoff(%rip), %r11
    movq %rdx, %fs:(%r11)
    movq 8*\index+homing_kmpc_real(%rip), %r11
    testq %r11, %r11
    je 1f
    jmp *%r11
1:
    pushq %rax
    .cfi_adjust_cfa_offset 8
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    pushq %r8
    .cfi_adjust_cfa_offset 8
    pushq %r9
    .cfi_adjust_cfa_offset 8
    subq $128, %rsp
    .cfi_adjust_cfa_offset 128
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    movl $\index, %edi
    movq 184(%rsp), %rsi
    call homing_kmpc_resolve
    movq %rax, %r11
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    addq $128, %rsp
    .cfi_adjust_cfa_offset -128
    popq %r9
    .cfi_adjust_cfa_offset -8
    popq %r8
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    popq %rax
    .cfi_adjust_cfa_offset -8
    jmp *%r11
    .cfi_endproc
    .size \name, .-\name
.endm

#elif defined(__aarch64__)

.macro STUB name index
    .globl \name
    .type \name, %function
\name:
    .cfi_startproc
    hint #34
    adrp x16, :gottprel:homing_microtask
    ldr x16, [x16, :gottprel_lo12:homing_microtask]
    mrs x17, tpidr_el0
    str x2, [x17, x16]
    adrp x16, homing_kmpc_real
    add x16, x16, :lo12:homing_kmpc_real
    ldr x16, [x16, #8*\index]
    cbz x16, 1f
    br x16
1:
    stp x29, x30, [sp, #-208]!
    .cfi_adjust_cfa_offset 208
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    stp q0, q1, [sp, #80]
    stp q2, q3, [sp, #112]
    stp q4, q5, [sp, #144]
    stp q6, q7, [sp, #176]
    mov w0, #\index
    mov x1, x30
    bl homing_kmpc_resolve
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldp q0, q1, [sp, #80]
    ldp q2, q3, [sp, #112]
    ldp q4, q5, [sp, #144]
    ldp q6, q7, [sp, #176]
    ldp x29, x30, [sp], #208
    .cfi_adjust_cfa_offset -208
    .cfi_restore x29
    .cfi_restore x30
    br x16
    .cfi_endproc
    .size \name, .-\name
.endm

#endif

#if defined(__x86_64__) || defined(__aarch64__)
    .text
    .hidden homing_kmpc_real
    .hidden homing_kmpc_resolve
    .hidden homing_microtask
STUB __kmpc_fork_call 0
STUB __kmpc_fork_call_if 1
STUB __kmpc_fork_teams 2
#endif
    .section .note.GNU-stack, "", %progbits
