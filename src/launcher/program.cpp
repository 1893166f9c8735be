// ELF as in the System V ABI, chapters 4 and 5: headers, program headers, dynamic section, no more.
#include "launcher/program.hpp"

#include "launcher/environment.hpp"
#include "launcher/files.hpp"
#include "launcher/unusual.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <vector>

namespace homing::launcher {
namespace {

/// Nobody's dynamic string table is larger (homing/elf.py).
constexpr std::size_t most_strings = std::size_t{64} << 20;
constexpr std::size_t most_dynamic = std::size_t{1} << 20;

/// Symbols and libraries of sanitizers.
constexpr std::string_view sanitizers[] = {
    "__asan_init",      "__hwasan_init", "__tsan_init", "__msan_init",  "__lsan_init", "libasan.",
    "libclang_rt.asan", "libhwasan.",    "libtsan.",    "libclang_rt.", "liblsan.",
};

/// A regular file that is open for reading; -1: there is none.
class Opened {
  public:
    explicit Opened(const std::string& path)
        : file_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
        struct stat there{};
        if (file_ >= 0 && (fstat(file_, &there) != 0 || !S_ISREG(there.st_mode))) {
            close(file_);
            file_ = -1;
        }
    }
    ~Opened() {
        if (file_ >= 0) close(file_);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

    explicit operator bool() const { return file_ >= 0; }
    bool read(void* into, std::size_t bytes, std::uint64_t offset) const {
        return pread(file_, into, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
    }

  private:
    int file_;
};

bool is_elf(const Opened& file, Elf64_Ehdr& header) {
    return file && file.read(&header, sizeof header, 0) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
}

/// The same kind of machine, of 64 bits: the others are for Python.
bool is_alike(const Elf64_Ehdr& a, const Elf64_Ehdr& b) {
    return a.e_ident[EI_CLASS] == ELFCLASS64 && b.e_ident[EI_CLASS] == ELFCLASS64 &&
           a.e_ident[EI_DATA] == b.e_ident[EI_DATA] && a.e_machine == b.e_machine;
}

/// The dynamic string table; Unusual where the file's tables make no sense.
std::string dynamic_strings(const Opened& file, const std::vector<Elf64_Phdr>& segments) {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    for (const Elf64_Phdr& segment : segments) {
        if (segment.p_type != PT_DYNAMIC) continue;
        std::vector<Elf64_Dyn> tags(std::min<std::size_t>(segment.p_filesz, most_dynamic) /
                                    sizeof(Elf64_Dyn));
        if (!file.read(tags.data(), tags.size() * sizeof(Elf64_Dyn), segment.p_offset)) leave_to_python();
        for (const Elf64_Dyn& tag : tags) {
            if (tag.d_tag == DT_STRTAB) address = tag.d_un.d_ptr;
            if (tag.d_tag == DT_STRSZ) size = tag.d_un.d_val;
        }
    }
    if (size > most_strings) leave_to_python();
    for (const Elf64_Phdr& segment : segments) {
        if (segment.p_type != PT_LOAD || address < segment.p_vaddr ||
            address - segment.p_vaddr >= segment.p_filesz)
            continue;
        std::string strings(size, '\0');
        if (!file.read(strings.data(), size, segment.p_offset + (address - segment.p_vaddr)))
            leave_to_python();
        return strings;
    }
    leave_to_python();
}

void check_privileges(const std::string& program) {
    struct stat there{};
    if (stat(program.c_str(), &there) != 0 || (there.st_mode & (S_ISUID | S_ISGID)) != 0) leave_to_python();
    if (getuid() != 0 && getxattr(program.c_str(), "security.capability", nullptr, 0) > 0) leave_to_python();
}

} // namespace

std::string find_program(const std::string& name, const Environment& environment) {
    const auto is_executable = [](const std::string& path) {
        struct stat there{};
        return stat(path.c_str(), &there) == 0 && !S_ISDIR(there.st_mode) && access(path.c_str(), X_OK) == 0;
    };
    if (name.find('/') != std::string::npos) {
        if (!is_executable(name)) leave_to_python();
        return name;
    }
    const std::string path = environment.has("PATH") ? environment.get("PATH") : "/bin:/usr/bin";
    for (std::size_t at = 0; !name.empty() && at <= path.size();) {
        const auto end = std::min(path.find(':', at), path.size());
        std::string file = end > at ? path.substr(at, end - at) : ".";
        file += (file.ends_with("/") ? "" : "/") + name;
        if (is_executable(file)) return file;
        at = end + 1;
    }
    leave_to_python();
}

void check_program(const std::string& program, const std::string& library) {
    const Opened file(program);
    Elf64_Ehdr header{};
    if (!is_elf(file, header)) return; // a script, or something that the kernel will judge
    Elf64_Ehdr own{};
    if (!is_elf(Opened(library), own) || !is_alike(header, own)) leave_to_python();
    if (header.e_phentsize != sizeof(Elf64_Phdr)) leave_to_python();
    std::vector<Elf64_Phdr> segments(header.e_phnum);
    if (!file.read(segments.data(), segments.size() * sizeof(Elf64_Phdr), header.e_phoff)) leave_to_python();
    const auto interpreter = std::find_if(segments.begin(), segments.end(),
                                          [](const Elf64_Phdr& one) { return one.p_type == PT_INTERP; });
    if (interpreter == segments.end()) leave_to_python();
    std::string loader(std::min<std::size_t>(interpreter->p_filesz, 4096), '\0');
    if (!file.read(loader.data(), loader.size(), interpreter->p_offset)) leave_to_python();
    if (loader.find("ld-musl") != std::string::npos) leave_to_python();
    const std::string strings = dynamic_strings(file, segments);
    for (const std::string_view one : sanitizers)
        if (strings.find(one) != std::string::npos) leave_to_python();
    check_privileges(program);
}

} // namespace homing::launcher
