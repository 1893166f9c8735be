#include "hooks/syscalls/own_calls.hpp"

#include "base/loaded_object.hpp"
#include "hooks/allocator/heap.hpp"
#include "hooks/signals/signals.hpp"
#include "sources/windows.hpp"

#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <string>
#include <string_view>
#include <vector>

namespace homing::hooks {
namespace {

/// Objects whose calls of the kernel are known: those of the C library, which have hooks, and those of the
/// OpenMP runtimes, which wait on objects of their own. Names begin so.
constexpr const char* known_objects[] = {"libc.so", "libc-",   "ld-linux",   "ld-",      "libpthread",
                                         "librt",   "libgomp", "libomp",     "libiomp5", "libm.",
                                         "libm-",   "libmvec", "linux-vdso", "libdl",    "libgcc_s"};
/// Of more code than that nothing is known: looking through it would take too long.
constexpr std::size_t most_code = std::size_t{64} << 20;

constinit std::atomic<bool> unlooked{true}; ///< objects came since we looked

/// Code that was looked through, by where it begins.
struct Looked {
    const unsigned char* code;
    std::size_t bytes;
};

struct Search {
    std::vector<Looked>& looked;
    std::size_t bytes = 0;
    std::string found = {}; ///< why windows must end with their regions
};

/// Is it the handler that every program of gfortran's has? It takes no faults: it prints where the program
/// was, and ends it. A fault of the program's own ends the window before it runs (hooks/signals/signals).
bool only_reports(const void* handler) noexcept {
    static const void* asked = nullptr; // driver only
    static bool reports = false;
    if (handler == asked) return reports;
    asked = handler;
    Dl_info found{};
    const bool known = ::dladdr(handler, &found) != 0 && found.dli_fname;
    const char* slash = known ? std::strrchr(found.dli_fname, '/') : nullptr;
    reports = known && std::string_view(slash ? slash + 1 : found.dli_fname).starts_with("libgfortran.so");
    return reports;
}

bool is_known(const char* name) noexcept {
    for (const char* known : known_objects)
        if (std::strncmp(name, known, std::strlen(known)) == 0) return true;
    return false;
}

int look_at(dl_phdr_info* object, std::size_t, void* data) {
    auto& search = *static_cast<Search*>(data);
    const char* path = object->dlpi_name ? object->dlpi_name : "";
    const char* slash = std::strrchr(path, '/');
    const char* name = slash ? slash + 1 : path;
    if (is_known(name) || is_this_library(*object)) return 0; // whatever its file is called
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const auto& segment = object->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
        const auto* code = reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr);
        const std::size_t bytes = segment.p_filesz;
        bool known = false;
        for (const Looked& one : search.looked)
            known |= one.code == code && one.bytes == bytes;
        if (known) continue;
        const std::string who = *name ? name : "the program";
        search.bytes += bytes;
        if (search.bytes > most_code || !(segment.p_flags & PF_R)) {
            search.found = who + " has too much code to be looked through for system calls of its own";
            return 1;
        }
        if (calls_kernel({code, bytes})) {
            search.found = who + " makes system calls past the C library";
            return 1;
        }
        search.looked.push_back({code, bytes});
    }
    return 0;
}

/// Reasons are kept as long as the process lives. Null: none.
const char* look_at_objects() noexcept {
    try {
        // Never destroyed: used until the very end of the process.
        static auto* looked = new std::vector<Looked>;
        // Without that nobody tells us of objects that come (object_comes).
        if (!loader_uses_our_allocator()) return "the program brings an allocator of its own";
        Search search{*looked};
        ::dl_iterate_phdr(look_at, &search);
        return search.found.empty() ? nullptr : (new std::string(search.found))->c_str();
    } catch (...) {
        return "out of memory";
    }
}

} // namespace

#if defined(__x86_64__)
namespace {

/// syscall is 0f 05. Can these two bytes be nothing but a part of another instruction? Where both ways to
/// read them make sense they are a call.
bool is_part_of_another(std::span<const unsigned char> code, const unsigned char* at) noexcept {
    const auto byte = [&](std::ptrdiff_t offset) -> int {
        const std::ptrdiff_t place = at - code.data() + offset;
        return place >= 0 && place < static_cast<std::ptrdiff_t>(code.size()) ? at[offset] : -1;
    };
    // A small number, or a small negative one: no code goes on with zeros or ones.
    if (byte(2) == 0 || (byte(2) == 0xff && byte(3) == 0xff)) return true;
    // Unwinders look for a call: cmpw $0x50f, and the eight bytes of a handler's way back.
    for (const std::ptrdiff_t before : {-3, -4})
        if (byte(before) == 0x66 && byte(before + 1) == 0x81) return true;
    if (byte(-8) == 0x48 && (byte(-7) & 0xf8) == 0xb8 && byte(-6) == 0xc7 && byte(-5) == 0xc0 &&
        byte(-4) == 0x0f)
        return true;
    // A distance within the object: call, jmp; mov, lea and the like relative to the instruction.
    if (byte(3) != 0 && byte(3) != 0xff) return false;
    if (byte(-1) == 0xe8 || byte(-1) == 0xe9) return byte(-2) != 0x89 && byte(-2) != 0x8b;
    const int operation = byte(-2);
    return (byte(-1) & 0xc7) == 0x05 &&
           (operation == 0x8b || operation == 0x8d || operation == 0x89 || operation == 0x63);
}

} // namespace
#endif

bool calls_kernel(std::span<const unsigned char> code) noexcept {
    const unsigned char* const begin = code.data();
    const unsigned char* const end = begin + code.size();
#if defined(__x86_64__)
    for (const unsigned char* at = begin; at + 1 < end; ++at) {
        at = static_cast<const unsigned char*>(std::memchr(at, 0x0f, static_cast<std::size_t>(end - at - 1)));
        if (!at) break;
        if (at[1] == 0x05 && !is_part_of_another({begin, end}, at)) return true;
    }
    return false;
#elif defined(__aarch64__)
    constexpr std::uint32_t supervisor_call = 0xd4000001; // svc #0
    for (const unsigned char* at = begin; at + 4 <= end; at += 4) {
        std::uint32_t instruction = 0;
        std::memcpy(&instruction, at, sizeof instruction);
        if (instruction == supervisor_call) return true;
    }
    return false;
#else
    return begin != end;
#endif
}

void object_comes() noexcept {
    unlooked.store(true, std::memory_order_seq_cst);
    if (Windows* windows = armed_windows.load(std::memory_order_seq_cst)) windows->abandon();
}

const char* makes_own_calls() noexcept {
    static const char* found = nullptr; // driver only
    if (unlooked.load(std::memory_order_seq_cst)) {
        unlooked.store(false,
                       std::memory_order_seq_cst); // before the look: what comes meanwhile is seen next
        if (!found) found = look_at_objects();
    }
    return found;
}

const char* keeps_windows_in_regions() noexcept {
    if (const char* reason = makes_own_calls()) return reason;
    const void* handler = own_handler();
    return handler && !only_reports(handler) ? "the program has a handler of SIGSEGV of its own" : nullptr;
}

} // namespace homing::hooks
