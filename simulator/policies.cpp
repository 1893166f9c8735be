// What a program itself asks of the kernel about its memory: mbind, set_mempolicy, get_mempolicy, move_pages
// and getcpu, by name (they are libnuma's and the C library's) or by number through syscall(). They are
// answered for the described machine, as the kernel would.
//
// libnuma's own functions (numa_alloc_onnode, numa_run_on_node) look at this computer's nodes before they ask
// the kernel: the record says so where libnuma is loaded (simulation.cpp).
#include "base/inside.hpp"
#include "base/raw_calls.hpp"
#include "hooks/export.hpp"
#include "machine/simulation.hpp"
#include "model.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace homing::simulator {
namespace {

constexpr Address smallest_page = 4096; ///< the program asks this computer for its page
constexpr int mode_mask = ~(MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES | MPOL_F_NUMA_BALANCING);

bool answers() noexcept { return simulation() && !is_inside(); }

std::uint64_t all_nodes() noexcept {
    return described().nodes() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << described().nodes()) - 1;
}

/// The program's memory as the kernel reads and writes it: false, and no signal, where it cannot be.
bool copy(long direction, void* ours, const void* programs, std::size_t bytes) noexcept {
    const iovec here{ours, bytes};
    const iovec there{const_cast<void*>(programs), bytes};
    const long done = raw::call(direction, ::getpid(), &here, 1L, &there, 1L, 0L);
    if (done != -ENOSYS && done != -EPERM) return done == static_cast<long>(bytes);
    const bool reads = direction == SYS_process_vm_readv; // a container forbids the call
    std::memcpy(reads ? ours : there.iov_base, reads ? programs : ours, bytes);
    return true;
}
template <class T> bool get(T* to, const T* programs, std::size_t count = 1) noexcept {
    return copy(SYS_process_vm_readv, to, programs, count * sizeof *to);
}
template <class T> bool put(T* programs, const T* from, std::size_t count = 1) noexcept {
    return copy(SYS_process_vm_writev, const_cast<T*>(from), programs, count * sizeof *from);
}

/// The mode and the nodes of a system call's arguments: 0, or an errno.
int read_policy(int given_mode, const unsigned long* mask, unsigned long bits, int& mode,
                std::uint64_t& nodes) noexcept {
    mode = given_mode & mode_mask;
    unsigned long word = 0; // of the first 64 nodes
    if (mask && bits > 1 && !get(&word, mask)) return EFAULT;
    nodes = word & all_nodes();
    if (mask && bits > 1 && bits <= 64) nodes &= (std::uint64_t{1} << (bits - 1)) - 1;
    const bool takes_none = mode == MPOL_DEFAULT || mode == MPOL_LOCAL;
    if (mode < 0 || mode > 6 || (takes_none && nodes != 0)) return EINVAL;
    // MPOL_PREFERRED without nodes is local allocation.
    if (!takes_none && mode != MPOL_PREFERRED && nodes == 0) return EINVAL;
    return 0;
}

int bind(Address begin, std::size_t bytes, int given_mode, const unsigned long* mask, unsigned long bits,
         unsigned flags) noexcept {
    int mode = 0;
    std::uint64_t nodes = 0;
    if (const int error = read_policy(given_mode, mask, bits, mode, nodes)) return error;
    if (begin % smallest_page != 0) return EINVAL;
    if (bytes == 0) return 0;
    const Range range{align_down(begin, page_bytes()), align_up(begin + bytes, page_bytes())};
    const Inside inside; // what is kept for it is not the program's
    try {
        bind_range(range, mode, nodes);
    } catch (...) {
        return ENOMEM;
    }
    if (nodes == 0 || (flags & (MPOL_MF_MOVE | MPOL_MF_MOVE_ALL)) == 0) return 0;
    for (Address page = range.begin; page < range.end; page += page_bytes()) {
        const int home = home_of(page);
        if (home >= 0 && (nodes >> home & 1) == 0) send(page, preferred_home(page, home, mode, nodes));
    }
    return 0;
}

int tell_policy(int* mode, unsigned long* mask, unsigned long bits, Address address,
                unsigned long flags) noexcept {
    int found = MPOL_DEFAULT;
    std::uint64_t nodes = 0;
    if ((flags & MPOL_F_MEMS_ALLOWED) != 0) {
        if (flags != MPOL_F_MEMS_ALLOWED) return EINVAL;
        nodes = all_nodes();
    } else if ((flags & MPOL_F_ADDR) != 0) {
        policy_of(address, found, nodes);
        if ((flags & MPOL_F_NODE) != 0) { // where the page is; the kernel would touch it
            const Thread* one = current_thread();
            populate(address, one ? one->node : 0);
            found = home_of(address);
        }
    } else if (address != 0 || (flags & MPOL_F_NODE) != 0) {
        return EINVAL;
    } else {
        task_policy_of_caller(found, nodes);
    }
    if (mask && bits < static_cast<unsigned long>(described().nodes())) return EINVAL;
    if (mode && !put(mode, &found)) return EFAULT;
    if (!mask) return 0;
    const unsigned long words = (bits - 1 + 63) / 64; // the last bit is not counted
    if (words * sizeof *mask > smallest_page) return EINVAL;
    std::array<unsigned long, smallest_page / sizeof *mask> written{};
    written[0] = nodes;
    return put(mask, written.data(), words) ? 0 : EFAULT;
}

int move(long process, unsigned long count, void* const* pages, const int* nodes, int* status) noexcept {
    if (process != 0 && process != ::getpid()) return ESRCH;
    constexpr unsigned long most = 64; // at a time
    std::array<void*, most> addresses{};
    std::array<int, most> targets{};
    std::array<int, most> found{};
    for (unsigned long done = 0; done < count;) {
        const unsigned long some = std::min(most, count - done);
        if (!get(addresses.data(), pages + done, some)) return EFAULT;
        if (nodes && !get(targets.data(), nodes + done, some)) return EFAULT;
        for (unsigned long i = 0; i < some; ++i) {
            const auto address = reinterpret_cast<Address>(addresses[i]);
            if (nodes && (targets[i] < 0 || targets[i] >= described().nodes())) return ENODEV;
            const int error = home_of(address) < 0 ? ENOENT : nodes ? send(address, targets[i]) : 0;
            found[i] = error ? -error : home_of(address);
        }
        if (!put(status + done, found.data(), some)) return EFAULT;
        done += some;
    }
    return 0;
}

int set_policy(int given_mode, const unsigned long* mask, unsigned long bits) noexcept {
    int mode = 0;
    std::uint64_t nodes = 0;
    if (const int error = read_policy(given_mode, mask, bits, mode, nodes)) return error;
    set_task_policy(mode, nodes);
    return 0;
}

int tell_place(unsigned* cpu, unsigned* node) noexcept {
    const int here = current_cpu();
    if (here < 0) return ENOSYS;
    const auto its_cpu = static_cast<unsigned>(here);
    const auto its_node = static_cast<unsigned>(described().node_of_cpu(here));
    return (cpu && !put(cpu, &its_cpu)) || (node && !put(node, &its_node)) ? EFAULT : 0;
}

template <class T> T as(long argument) noexcept { return reinterpret_cast<T>(argument); }

/// The errno of a system call, or -1: it is not one of these.
int answer(long number, const long* a) noexcept {
    switch (number) {
    case SYS_mbind:
        return bind(static_cast<Address>(a[0]), static_cast<std::size_t>(a[1]), static_cast<int>(a[2]),
                    as<const unsigned long*>(a[3]), static_cast<unsigned long>(a[4]),
                    static_cast<unsigned>(a[5]));
    case SYS_set_mempolicy:
        return set_policy(static_cast<int>(a[0]), as<const unsigned long*>(a[1]),
                          static_cast<unsigned long>(a[2]));
    case SYS_get_mempolicy:
        return tell_policy(as<int*>(a[0]), as<unsigned long*>(a[1]), static_cast<unsigned long>(a[2]),
                           static_cast<Address>(a[3]), static_cast<unsigned long>(a[4]));
    case SYS_move_pages:
        return move(a[0], static_cast<unsigned long>(a[1]), as<void* const*>(a[2]), as<const int*>(a[3]),
                    as<int*>(a[4]));
    case SYS_getcpu:
        return tell_place(as<unsigned*>(a[0]), as<unsigned*>(a[1]));
    default:
        return -1;
    }
}

/// By name: the model's answer, or the system call where there is no model.
long call(long number, const std::array<long, 6>& a) noexcept {
    const int error = answers() ? answer(number, a.data()) : -1;
    // ENOSYS: a thread that is not simulated.
    if (error < 0 || error == ENOSYS) {
        const long result = raw::call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (result >= 0) return result;
        errno = static_cast<int>(-result);
        return -1;
    }
    if (error == 0) return 0;
    errno = error;
    return -1;
}

} // namespace
} // namespace homing::simulator

using homing::simulator::call;

extern "C" {

/// syscall()'s hook asks first.
bool homing_simulated_call(long number, const long* arguments, long* result) noexcept {
    if (!homing::simulator::answers()) return false;
    const int error = homing::simulator::answer(number, arguments);
    if (error < 0 || error == ENOSYS) return false;
    if (error > 0) errno = error;
    *result = error > 0 ? -1 : 0;
    return true;
}

HOMING_EXPORT long mbind(void* start, unsigned long bytes, int mode, const unsigned long* mask,
                         unsigned long bits, unsigned flags) noexcept {
    return call(SYS_mbind, {reinterpret_cast<long>(start), static_cast<long>(bytes), mode,
                            reinterpret_cast<long>(mask), static_cast<long>(bits), static_cast<long>(flags)});
}

HOMING_EXPORT long set_mempolicy(int mode, const unsigned long* mask, unsigned long bits) noexcept {
    return call(SYS_set_mempolicy, {mode, reinterpret_cast<long>(mask), static_cast<long>(bits), 0, 0, 0});
}

HOMING_EXPORT long get_mempolicy(int* mode, unsigned long* mask, unsigned long bits, void* address,
                                 unsigned flags) noexcept {
    return call(SYS_get_mempolicy,
                {reinterpret_cast<long>(mode), reinterpret_cast<long>(mask), static_cast<long>(bits),
                 reinterpret_cast<long>(address), static_cast<long>(flags), 0});
}

HOMING_EXPORT long move_pages(int process, unsigned long count, void** pages, const int* nodes, int* status,
                              int flags) noexcept {
    return call(SYS_move_pages, {process, static_cast<long>(count), reinterpret_cast<long>(pages),
                                 reinterpret_cast<long>(nodes), reinterpret_cast<long>(status), flags});
}

HOMING_EXPORT int getcpu(unsigned* cpu, unsigned* node) noexcept {
    return static_cast<int>(
        call(SYS_getcpu, {reinterpret_cast<long>(cpu), reinterpret_cast<long>(node), 0, 0, 0, 0}));
}

} // extern "C"
