// The file of a record: its name, how it is made, how it grows. No descriptor stays open between two calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace homing::record {

/// A file that create() made: what lies at its path later is it only where device and inode are the same.
struct File {
    char path[4096];
    std::uint64_t device;
    std::uint64_t inode;
};

/// What the launcher of this run knows (channel.hpp). Zeros: there is none, or this name is not the
/// launcher's.
struct Expected {
    std::uint64_t folder_device;
    std::uint64_t folder_inode; ///< of the folder that the launcher will look into
    std::int64_t start_ns;      ///< when the run began, since the epoch; younger records are this run's
};

/// Make the file that `pattern` names (%p: process id, %r: rank, 0 outside MPI, %%: a percent sign); its path
/// is made absolute, so that the program may change its directory. A descriptor, or a negative errno: EEXIST
/// where something lies there that must stay, ENOTDIR where the folder is not the launcher's (a private /tmp,
/// another root).
int create(File& file, const char* pattern, const Expected& expected) noexcept;

/// The same file again: a descriptor, or a negative errno; ESTALE where another file has its name.
int reopen(const File& file) noexcept;

/// Grow the file with real space behind it; a store into a hole of a full disk would be a SIGBUS. 0, or a
/// negative errno. Never more than the limit on file sizes allows (SIGXFSZ).
int reserve(int descriptor, std::size_t offset, std::size_t bytes) noexcept;

} // namespace homing::record
