#include "launcher/channel_memory.hpp"

#include "base/fnv_hash.hpp"
#include "launcher/files.hpp"
#include "launcher/unusual.hpp"
#include "record/channel.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x8u
#endif

namespace homing::launcher {
namespace {

namespace channel = record::channel;

/// What a process at work reserves at a time (src/record/record.cpp, homing/record_format.py).
constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr std::size_t memory_bytes = channel::head_bytes + channel::most_pieces * piece_bytes;
/// No descriptor's number is higher: the kernel's table grows with it (homing/channel.py).
constexpr rlim_t highest = 4096;

rlimit limit_of(__rlimit_resource_t what) {
    rlimit limit{};
    if (getrlimit(what, &limit) != 0) leave_to_python();
    return limit;
}

int make_memory() {
    constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int file = memfd_create("homing-channel", flags | MFD_NOEXEC_SEAL);
    if (file < 0) file = memfd_create("homing-channel", flags); // kernels before 6.3
    if (file < 0 || file > 2) return file;
    // Standard streams that the user has closed stay closed.
    const int above = fcntl(file, F_DUPFD_CLOEXEC, 3);
    close(file);
    return above;
}

/// Device and inode of the folder of the records; zeros where it is not one folder (%p in its name).
void find_folder(const std::string& pattern, channel::Head& head) {
    const std::string stated = folder_of(pattern);
    std::string path;
    for (std::size_t at = 0; at < stated.size(); ++at) {
        path += stated[at];
        if (stated[at] == '%' && stated.compare(at++, 2, "%%") != 0) return;
    }
    struct stat there{};
    if (path.empty() || stat(path.c_str(), &there) != 0) return;
    head.folder_device = there.st_dev;
    head.folder_inode = there.st_ino;
}

} // namespace

ChannelMemory::ChannelMemory(const std::string& pattern) {
    if (const rlimit files = limit_of(RLIMIT_FSIZE);
        files.rlim_cur != RLIM_INFINITY && files.rlim_cur < memory_bytes)
        leave_to_python();
    descriptor_ = make_memory();
    if (descriptor_ < 0) leave_to_python();
    channel::Head head{};
    std::copy(channel::magic.begin(), channel::magic.end(), head.magic);
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (getrandom(&token_, sizeof token_, 0) != sizeof token_) leave_to_python();
    head.token = token_;
    head.pattern_hash = fnv_hash(pattern);
    find_folder(pattern, head);
    head.start_ns = now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
    head.piece_count = channel::most_pieces;
    head.piece_bytes = piece_bytes;
    // Nobody can shrink what others have mapped.
    constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (ftruncate(descriptor_, memory_bytes) != 0 ||
        pwrite(descriptor_, &head, offsetof(channel::Head, programs), 0) < 0 ||
        fcntl(descriptor_, F_ADD_SEALS, seals) != 0)
        leave_to_python();
}

ChannelMemory::~ChannelMemory() {
    take_back();
    if (descriptor_ >= 0) close(descriptor_);
}

std::string ChannelMemory::lend() {
    const rlimit limit = limit_of(RLIMIT_NOFILE);
    // A number that no program would get from open(): the first one beyond the soft limit, ...
    if (limit.rlim_cur > 2 && limit.rlim_cur < highest) {
        const rlimit more{limit.rlim_cur + 1, std::max(limit.rlim_max, limit.rlim_cur + 1)};
        if (setrlimit(RLIMIT_NOFILE, &more) == 0) {
            lent_ = fcntl(descriptor_, F_DUPFD, static_cast<int>(limit.rlim_cur));
            setrlimit(RLIMIT_NOFILE, &limit);
        }
    }
    // ... else the last one below it. From above: other launchers, which started this one, have theirs there.
    for (int number = static_cast<int>(std::min(limit.rlim_cur, highest)) - 1; lent_ < 0 && number > 2;
         --number)
        if (fcntl(number, F_GETFD) < 0) lent_ = fcntl(descriptor_, F_DUPFD, number);
    struct stat there{};
    if (lent_ < 0 || fstat(lent_, &there) != 0) leave_to_python();
    std::string value = std::to_string(lent_);
    for (const std::uint64_t part : {static_cast<std::uint64_t>(getpid()), std::uint64_t{there.st_dev},
                                     std::uint64_t{there.st_ino}, token_}) {
        const std::string digits = std::to_string(part); // as many in all runs, as homing/channel.py has them
        value += ":" + std::string(20 - digits.size(), '0') + digits;
    }
    return value;
}

void ChannelMemory::take_back() {
    if (lent_ >= 0) close(lent_);
    lent_ = -1;
}

ChannelMemory::Said ChannelMemory::said() const {
    Said found;
    channel::Head head{};
    if (pread(descriptor_, &head, sizeof head, 0) != sizeof head) leave_to_python();
    found.programs = head.programs;
    found.declined = head.declined;
    channel::Slot slots[channel::most_slots];
    if (pread(descriptor_, slots, sizeof slots, channel::slots_begin) != sizeof slots) leave_to_python();
    found.at_work = std::any_of(std::begin(slots), std::end(slots),
                                [](const channel::Slot& slot) { return slot.place != 0; });
    return found;
}

} // namespace homing::launcher
