// Signal masks: what the program blocks of SIGSEGV, and what the kernel does.
//
// A thread that blocks SIGSEGV dies of a window's fault, so the kernel never gets to see SIGSEGV in a mask of
// the program's. A signal that nobody sends stands in for it there: the kernel keeps it for us, by thread,
// over siglongjmp(), setcontext() and the handlers of other signals, and hands it on to new threads.
//
// That begins with the first window. Until then, and for ever in a process that has none, nothing is changed.
#pragma once

#include <csignal>
#include <cstdint>
#include <cstring>

namespace homing::hooks {

/// A mask as the kernel has it.
using Mask = std::uint64_t;

constexpr Mask mask_of(int signal) noexcept { return Mask{1} << (signal - 1); }
constexpr Mask segv = mask_of(SIGSEGV);
constexpr Mask stand_in = mask_of(SIGSTKFLT); ///< no kernel sends it

inline Mask get_mask(const sigset_t& set) noexcept {
    Mask mask = 0;
    std::memcpy(&mask, &set, sizeof mask);
    return mask;
}
/// Only what the kernel knows of a set is written.
inline void put_mask(sigset_t& set, Mask mask) noexcept { std::memcpy(&set, &mask, sizeof mask); }

/// What the kernel gets for a mask of the program's.
constexpr Mask for_kernel(Mask program) noexcept {
    return (program & ~(segv | stand_in)) | (program & segv ? stand_in : 0);
}
/// What the program sees of a mask of the kernel's. Whether it blocks the stand-in itself is not known: a
/// mask with most of the signals was made by sigfillset(), or is all that BSD knows.
constexpr Mask for_program(Mask kernel) noexcept {
    constexpr int most = 24;
    if (!(kernel & stand_in)) return kernel;
    return __builtin_popcountll(kernel) > most ? kernel | segv : (kernel & ~stand_in) | segv;
}

/// Are masks translated in this process?
bool translates_masks() noexcept;

/// A set of the program's as the kernel gets it. The copy is ours: in a watched array, the program's would be
/// a bad address to the kernel.
class GivenMask {
  public:
    explicit GivenMask(const sigset_t* set) noexcept : there_(set != nullptr) {
        if (set) put_mask(set_, for_kernel(get_mask(*set)));
    }
    sigset_t* get() noexcept { return there_ ? &set_ : nullptr; }

  private:
    bool there_;
    sigset_t set_{};
};

/// A system call by its number that waits under a mask of the program's (sigsuspend, ppoll, ...): while it
/// lives, the arguments have the mask as the kernel gets it.
class MaskedWait {
  public:
    MaskedWait(long number, long* arguments) noexcept;

  private:
    void translate(long& set, long bytes) noexcept;

    GivenMask given_{nullptr};
    struct {
        long set;
        long bytes;
    } pair_{}; ///< pselect6(2) has six arguments without them
};

/// From now on. `stand_in_is_taken`: a thread of the program's blocks the stand-in itself, and SIGSEGV not.
void translate_masks(bool stand_in_is_taken) noexcept;
/// A thread that blocked SIGSEGV before masks were translated, or inherited that: its mask is translated now,
/// and what it blocks itself of the stand-in is let go. Once for each thread; what it does later past the C
/// library stays as it is.
void let_faults_through_here() noexcept;
/// The same of a thread that has just been made by one that has done it.
void let_faults_through_new_thread() noexcept;
/// Does this thread block SIGSEGV in the eyes of the program, where the kernel's mask is this?
bool blocks_for_program(Mask kernel) noexcept;
/// let_faults_through_here() by our handler: of the mask that it goes back to.
void let_faults_through(sigset_t& interrupted) noexcept;

/// rt_sigprocmask(2) as the program called it by its number: how, set, old, bytes. The result is the
/// kernel's.
long mask_call_by_number(const long* arguments) noexcept;

} // namespace homing::hooks
