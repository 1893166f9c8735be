#include "hooks/syscalls/other_loaders.hpp"

#include "base/raw_calls.hpp"
#include "sources/in_flight.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <elf.h>
#include <link.h>
#include <string_view>
#include <unistd.h>

namespace homing::hooks {
namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);

#if defined(__x86_64__)
constexpr int own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int own_machine = EM_AARCH64;
#else
constexpr int own_machine = EM_NONE; // not known: every machine is taken for ours
#endif
constexpr int own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;

/// The kernel reads so much of a script's first line.
constexpr std::size_t line_bytes = 256;

class File {
  public:
    File(int folder, const char* path) noexcept
        : descriptor_(static_cast<int>(
              raw::call(SYS_openat, folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0))) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() { raw::close(descriptor_); }
    int descriptor() const noexcept { return descriptor_; }

  private:
    int descriptor_;
};

/// A segment of each program names its loader.
bool is_of_musl(int file, const Header& header) noexcept {
    constexpr int most_segments = 64;
    if (header.e_phentsize != sizeof(Segment)) return false;
    for (int i = 0; i < std::min<int>(header.e_phnum, most_segments); ++i) {
        Segment segment{};
        const std::uint64_t place = header.e_phoff + static_cast<std::uint64_t>(i) * sizeof segment;
        if (raw::read_at(file, &segment, sizeof segment, place) != sizeof segment) return false;
        if (segment.p_type != PT_INTERP) continue;
        char name[line_bytes];
        const long got =
            raw::read_at(file, name, std::min<std::size_t>(segment.p_filesz, sizeof name), segment.p_offset);
        return got > 0 && std::string_view(name, static_cast<std::size_t>(got)).find("/ld-musl") !=
                              std::string_view::npos;
    }
    return false;
}

/// `scripts`: so many programs may still be scripts, whose interpreter is looked at.
bool is_other(int file, int scripts) noexcept {
    alignas(Header) char begin[line_bytes] = {};
    if (file < 0 || raw::read_at(file, begin, sizeof begin - 1, 0) < 2) return false;
    if (begin[0] == '#' && begin[1] == '!') {
        char* const name = begin + 2 + std::strspn(begin + 2, " \t");
        name[std::strcspn(name, " \t\n")] = '\0';
        return scripts > 0 && is_other(File(AT_FDCWD, name).descriptor(), scripts - 1);
    }
    if (std::memcmp(begin, ELFMAG, SELFMAG) != 0) return false;
    if (begin[EI_CLASS] != own_class) return true;
    Header header;
    std::memcpy(&header, begin, sizeof header);
    if (own_machine != EM_NONE && header.e_machine != own_machine) return true;
    return is_of_musl(file, header);
}

constexpr int most_scripts = 4; // the kernel's own limit

constexpr std::string_view separators = ": ";

bool is_ours(std::string_view entry) noexcept {
    const std::size_t slash = entry.rfind('/');
    if (slash != entry.npos) entry.remove_prefix(slash + 1);
    return entry.starts_with("libhoming");
}

/// Calls visit(entry) for each library of a value of LD_PRELOAD, until one answers false.
template <class Visit> bool each_entry(std::string_view value, Visit&& visit) noexcept {
    while (!value.empty()) {
        const std::size_t end = std::min(value.find_first_of(separators), value.size());
        if (end > 0 && !visit(value.substr(0, end))) return false;
        value.remove_prefix(std::min(end + 1, value.size()));
    }
    return true;
}

} // namespace

bool has_other_loader(int file) noexcept { return is_other(file, most_scripts); }

bool has_other_loader(int folder, const char* path) noexcept {
    return is_other(File(folder, path).descriptor(), most_scripts);
}

bool has_other_loader_in_path(const char* file) noexcept {
    if (!file) return false;
    if (std::strchr(file, '/')) return has_other_loader(AT_FDCWD, file);
    const char* const path = std::getenv("PATH");
    std::string_view left = path ? path : "/bin:/usr/bin";
    const std::size_t file_bytes = std::strlen(file) + 1;
    for (;;) {
        const std::size_t end = std::min(left.find(':'), left.size());
        char name[4096];
        if (end + 1 + file_bytes <= sizeof name) {
            std::memcpy(name, left.data(), end);
            name[end] = '/';
            std::memcpy(name + (end ? end + 1 : 0), file, file_bytes);
            if (raw::call(SYS_faccessat, AT_FDCWD, name, X_OK) == 0) return has_other_loader(AT_FDCWD, name);
        }
        if (end == left.size()) return false;
        left.remove_prefix(end + 1);
    }
}

const char* preload_with_ours(char* const* names) noexcept {
    constexpr std::string_view name = "LD_PRELOAD=";
    // What is no memory is for the kernel to say: a first pointer has a zero byte, as a path ends with one.
    if (!names || in_flight::makes_no_calls() || raw::call(SYS_faccessat, AT_FDCWD, names, F_OK) == -EFAULT)
        return nullptr;
    for (; *names; ++names) {
        if (std::strncmp(*names, name.data(), name.size()) != 0) continue;
        const char* const value = *names + name.size();
        const bool none = each_entry(value, [](std::string_view entry) { return !is_ours(entry); });
        return none ? nullptr : value;
    }
    return nullptr;
}

bool write_preload_without_ours(const char* value, char* to) noexcept {
    constexpr std::string_view name = "LD_PRELOAD=";
    std::memcpy(to, name.data(), name.size());
    char* end = to + name.size();
    each_entry(value, [&](std::string_view entry) {
        if (is_ours(entry)) return true;
        if (end != to + name.size()) *end++ = ':';
        std::memcpy(end, entry.data(), entry.size());
        end += entry.size();
        return true;
    });
    *end = '\0';
    return end != to + name.size();
}

} // namespace homing::hooks
