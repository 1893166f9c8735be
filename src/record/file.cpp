// The file of a record: its name, how it is made, how it grows.
#include "record/file.hpp"

#include "base/raw_calls.hpp"
#include "record/header.hpp"
#include "record/rank.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <sys/resource.h>
#include <sys/stat.h>

namespace homing::record {
namespace {

/// May the file grow to `bytes`? Beyond the limit the kernel sends SIGXFSZ, which ends most programs.
bool within_file_limit(std::size_t bytes) noexcept {
    rlimit limit{};
    return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           bytes <= limit.rlim_cur;
}

/// %p: process id, %r: rank (0 outside MPI), %%: a percent sign; made absolute, so that the program may
/// change its directory. False where it does not fit.
bool expand_path(const char* pattern, char* out, std::size_t bytes) noexcept {
    std::size_t used = 0;
    const auto put = [&](std::string_view text) {
        if (used + text.size() >= bytes) return false;
        std::memcpy(out + used, text.data(), text.size());
        used += text.size();
        out[used] = '\0';
        return true;
    };
    if (pattern[0] != '/') {
        const long length = raw::call(SYS_getcwd, out, bytes);
        if (length <= 1 || out[0] != '/') return false; // "(unreachable)"
        used = static_cast<std::size_t>(length) - 1;
        if (out[used - 1] != '/' && !put("/")) return false;
    }
    for (const char* at = pattern; *at; ++at) {
        if (*at == '%' && (at[1] == 'p' || at[1] == 'r' || at[1] == '%')) {
            ++at;
            if (*at == '%') {
                if (!put("%")) return false;
                continue;
            }
            const int rank = process_rank();
            const long value = *at == 'p' ? long{raw::process_id()} : rank < 0 ? 0 : rank;
            char digits[24];
            const auto result = std::to_chars(digits, digits + sizeof digits, value);
            if (!put({digits, static_cast<std::size_t>(result.ptr - digits)})) return false;
        } else if (!put({at, 1})) {
            return false;
        }
    }
    return true;
}

/// Is the folder of this path the one that the launcher knows by this name? 0, or a negative errno. Changes
/// `path` for a moment.
int in_folder(char* path, const Expected& expected) noexcept {
    if (expected.folder_inode == 0) return 0;
    char* const slash = std::strrchr(path, '/');
    const char kept = slash[1];
    slash[1] = '\0';
    struct stat folder{};
    const int error = raw::status(path, folder);
    slash[1] = kept;
    if (error != 0) return error;
    return folder.st_dev == expected.folder_device && folder.st_ino == expected.folder_inode ? 0 : -ENOTDIR;
}

/// What lies at the path may be replaced if it is an empty file or a record of an earlier run: never a user's
/// data, never a device, nor what a process of this run has left (one of this number in another PID
/// namespace, or this one before its exec). 0, or a negative errno.
int may_replace(const char* path, const Expected& expected) noexcept {
    struct stat there{};
    if (const int error = raw::link_status(path, there)) return error == -ENOENT ? 0 : error;
    if (!S_ISREG(there.st_mode)) return -EEXIST;
    if (there.st_size == 0) return 0;
    const std::int64_t written = there.st_mtim.tv_sec * 1'000'000'000 + there.st_mtim.tv_nsec;
    if (expected.start_ns > 0 && written >= expected.start_ns) return -EEXIST;
    char first[header_line.size()];
    const int descriptor = raw::open(path, O_RDONLY | O_NOFOLLOW);
    if (descriptor < 0) return descriptor;
    const long got = raw::read_at(descriptor, first, sizeof first, 0);
    raw::close(descriptor);
    return std::string_view(first, got > 0 ? static_cast<std::size_t>(got) : 0) == header_line ? 0 : -EEXIST;
}

} // namespace

int create(File& file, const char* pattern, const Expected& expected) noexcept {
    file.device = file.inode = 0;
    if (!expand_path(pattern, file.path, sizeof file.path)) return -ENAMETOOLONG;
    if (const int refused = in_folder(file.path, expected)) return refused;
    if (const int refused = may_replace(file.path, expected)) return refused;
    // A new file, not the old one truncated: a process of the same run that writes a record by the same name
    // goes on with its own (nameless) file instead of being killed by a SIGBUS.
    raw::call(SYS_unlinkat, AT_FDCWD, file.path, 0);
    const int descriptor = raw::open(file.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
    struct stat made{};
    if (descriptor >= 0 && raw::status(descriptor, made) == 0) {
        file.device = made.st_dev;
        file.inode = made.st_ino;
    }
    return descriptor;
}

int reopen(const File& file) noexcept {
    const int descriptor = raw::open(file.path, O_RDWR | O_NOFOLLOW);
    if (descriptor < 0) return descriptor;
    struct stat now_there{};
    if (raw::status(descriptor, now_there) == 0 && now_there.st_dev == file.device &&
        now_there.st_ino == file.inode) {
        return descriptor;
    }
    raw::close(descriptor);
    return -ESTALE;
}

int reserve(int descriptor, std::size_t offset, std::size_t bytes) noexcept {
    if (!within_file_limit(offset + bytes)) return -EFBIG;
    long result = 0;
    do {
        result = raw::call(SYS_fallocate, descriptor, 0, offset, bytes);
    } while (result == -EINTR);
    if (result != -EOPNOTSUPP && result != -ENOSYS) return static_cast<int>(result);
    // A file system without reservations: writing zeros reserves everywhere.
    static constexpr char zeros[4096] = {};
    for (std::size_t done = 0; done < bytes; done += sizeof zeros) {
        const long written = raw::call(SYS_pwrite64, descriptor, zeros, sizeof zeros, offset + done);
        if (written != static_cast<long>(sizeof zeros))
            return written < 0 ? static_cast<int>(written) : -ENOSPC;
    }
    return 0;
}

} // namespace homing::record
