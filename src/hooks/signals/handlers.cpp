// On x86-64 the program's handler gets the kernel's own frame, or a copy of it on the interrupted stack where
// the kernel used an alternate stack that is not the program's; then the kernel is made to enter the handler,
// by a return from a signal that never was. So the handler may do all that it may do without us: jump out,
// change to another stack, throw, and come back late. (Called as a function it would stand on our frame, and
// perhaps on our stack, which the next fault takes.) Elsewhere it is called.
#include "hooks/signals/handlers.hpp"

#include "base/raw_calls.hpp"
#include "hooks/signals/masks.hpp"
#include "hooks/signals/stacks.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ucontext.h>

namespace homing::hooks {
namespace {

/// What is blocked while the program's handler of SIGSEGV runs: what was blocked before, what its action asks
/// for, and SIGSEGV itself, in the eyes of the program.
Mask mask_during(const struct sigaction& action, Mask before) noexcept {
    Mask mask = before | for_kernel(get_mask(action.sa_mask));
    if (!(action.sa_flags & SA_NODEFER)) mask |= stand_in;
    return mask & ~segv;
}

void call_handler(const struct sigaction& action, int signal, siginfo_t* info, void* context) noexcept {
    const Mask mask = mask_during(action, get_mask(static_cast<const ucontext_t*>(context)->uc_sigmask));
    raw::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(signal, info, context);
    else
        action.sa_handler(signal);
    // The kernel restores the mask of the interrupted code.
}

#if defined(__x86_64__)

/// The front of the C library's ucontext_t, all that the kernel has of it.
struct Context {
    unsigned long flags;
    void* link;
    stack_t stack;
    mcontext_t registers;
    Mask mask;
};
static_assert(offsetof(Context, registers) == offsetof(ucontext_t, uc_mcontext));
static_assert(offsetof(Context, mask) == offsetof(ucontext_t, uc_sigmask));

/// What the kernel puts on the stack. The floating-point registers lie above it, and `registers` tells where.
struct Frame {
    void* returns_to; ///< code that calls rt_sigreturn
    Context context;
    siginfo_t info;
};

constexpr std::size_t red_zone = 128;

std::uint32_t word_at(const void* memory, std::size_t offset) noexcept {
    std::uint32_t word = 0;
    std::memcpy(&word, static_cast<const char*>(memory) + offset, sizeof word);
    return word;
}

/// Bytes of the floating-point state of a frame.
std::size_t floating_point_bytes(const void* state) noexcept {
    constexpr std::size_t legacy = 512; // FXSAVE's area, at whose end the kernel says whether there is more
    constexpr std::size_t software = 464;
    constexpr std::uint32_t extended = 0x46505853; // FP_XSTATE_MAGIC1
    return word_at(state, software) == extended ? word_at(state, software + 4) : legacy;
}

/// A shadow stack knows the frame by its place. The loader switches it on for all threads, or never.
bool has_shadow_stack() noexcept {
    enum Answer : int { unasked, no, yes };
    static constinit std::atomic<int> answer{unasked};
    if (const int known = answer.load(std::memory_order_relaxed)) return known == yes;
    constexpr int shadow_stack_status = 0x5005; // ARCH_SHSTK_STATUS
    std::uint64_t features = 0;
    const bool has = raw::call(SYS_arch_prctl, shadow_stack_status, &features) == 0 && features != 0;
    answer.store(has ? yes : no, std::memory_order_relaxed);
    return has;
}

/// Is this a frame of the kernel's and nothing else (an emulator's), with a way back that can be gone as well
/// from a copy of it?
bool is_kernels(const Frame* frame, const siginfo_t* info) noexcept {
    static constexpr unsigned char calls_sigreturn[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    if (info != &frame->info || !frame->context.registers.fpregs) return false;
    if (std::memcmp(frame->returns_to, calls_sigreturn, sizeof calls_sigreturn) != 0) return false;
    if (floating_point_bytes(frame->context.registers.fpregs) > 65536) return false;
    return !has_shadow_stack();
}

bool lies_in(const stack_t& stack, std::uintptr_t address) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(stack.ss_sp);
    return stack.ss_size > 0 && address > begin && address <= begin + stack.ss_size;
}

/// The frame on the stack that was interrupted. Where that has no room, this is a fault like any other, which
/// ends the process, as it would be without us.
Frame* copy_to_interrupted_stack(const Frame& frame) noexcept {
    const void* state = frame.context.registers.fpregs;
    const std::size_t bytes = floating_point_bytes(state);
    const auto stack = static_cast<std::uintptr_t>(frame.context.registers.gregs[REG_RSP]) - red_zone;
    const std::uintptr_t state_copy = (stack - bytes) & ~std::uintptr_t{63};
    // As after a call: 8 bytes off a multiple of 16.
    auto* copy = reinterpret_cast<Frame*>(((state_copy - sizeof frame) & ~std::uintptr_t{15}) - 8);
    std::memcpy(reinterpret_cast<void*>(state_copy), state, bytes);
    std::memcpy(static_cast<void*>(copy), &frame, sizeof frame);
    copy->context.registers.fpregs = reinterpret_cast<fpregset_t>(state_copy);
    return copy;
}

/// Enter the handler with this frame, as the kernel does: with the registers that the interrupted code had,
/// but for those that a handler gets. (Those of floating point are anyone's; their modes are as new.)
[[noreturn]] void enter(const struct sigaction& action, int signal, Frame* frame) noexcept {
    const Mask mask = mask_during(action, frame->context.mask);
    raw::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
    const greg_t* registers = frame->context.registers.gregs;
    register auto function asm("r8") = action.sa_sigaction;
    asm volatile(
        "mov %c[rbx](%[from]), %%rbx\n\t"
        "mov %c[r12](%[from]), %%r12\n\t"
        "mov %c[r13](%[from]), %%r13\n\t"
        "mov %c[r14](%[from]), %%r14\n\t"
        "mov %c[r15](%[from]), %%r15\n\t"
        "mov %c[rbp](%[from]), %%rbp\n\t"
        "mov %[frame], %%rsp\n\t"
        "xor %%eax, %%eax\n\t"
        "jmp *%%r8"
        :
        : [from] "c"(registers), [frame] "a"(frame), "r"(function), "D"(static_cast<long>(signal)),
          "S"(&frame->info), "d"(&frame->context), [rbx] "i"(8 * REG_RBX), [r12] "i"(8 * REG_R12),
          [r13] "i"(8 * REG_R13), [r14] "i"(8 * REG_R14), [r15] "i"(8 * REG_R15), [rbp] "i"(8 * REG_RBP)
        : "memory");
    __builtin_unreachable();
}

#endif

} // namespace

void run_handler(const struct sigaction& action, int signal, siginfo_t* info, void* context) noexcept {
#if defined(__x86_64__)
    auto* frame = reinterpret_cast<Frame*>(static_cast<char*>(context) - offsetof(Frame, context));
    if (is_kernels(frame, info)) {
        const stack_t& stack = frame->context.stack;
        const bool elsewhere =
            lies_in(stack, reinterpret_cast<std::uintptr_t>(frame)) &&
            !lies_in(stack, static_cast<std::uintptr_t>(frame->context.registers.gregs[REG_RSP]));
        const bool wanted = (action.sa_flags & SA_ONSTACK) && !is_own_stack(stack.ss_sp);
        enter(action, signal, elsewhere && !wanted ? copy_to_interrupted_stack(*frame) : frame);
    }
#endif
    call_handler(action, signal, info, context);
}

} // namespace homing::hooks
