#include "hooks/signals/thread_masks.hpp"

#include "base/raw_calls.hpp"
#include "hooks/each_piece.hpp"

#include <charconv>
#include <cstddef>
#include <cstring>

namespace homing::hooks {
namespace {

/// Of a thread that is gone nothing is blocked.
Mask mask_of_thread(long thread) noexcept {
    char path[64] = "/proc/self/task/";
    char* end = std::to_chars(path + std::strlen(path), path + sizeof path, thread).ptr;
    std::strcpy(end, "/status");
    static char status[4096]; // driver only
    if (raw::read_file(path, status, sizeof status) <= 0) return 0;
    const char* line = std::strstr(status, "\nSigBlk:\t");
    if (!line) return 0;
    line += std::strlen("\nSigBlk:\t");
    Mask mask = 0;
    std::from_chars(line, line + 16, mask, 16);
    return mask;
}

} // namespace

long find_thread(bool (*fits)(Mask)) noexcept {
    struct Entry { // linux_dirent64
        std::uint64_t inode;
        std::int64_t offset;
        std::uint16_t bytes;
        std::uint8_t type;
        char name[1];
    };
    long found = 0;
    each_piece(raw::open("/proc/self/task", O_RDONLY | O_DIRECTORY), SYS_getdents64,
               [&](std::string_view entries) {
                   while (!entries.empty() && !found) {
                       Entry entry;
                       std::memcpy(&entry, entries.data(), offsetof(Entry, name));
                       const char* name = entries.data() + offsetof(Entry, name);
                       long thread = 0;
                       std::from_chars(name, entries.data() + entry.bytes, thread);
                       if (thread > 0 && fits(mask_of_thread(thread))) found = thread;
                       entries.remove_prefix(entry.bytes);
                   }
                   return !found;
               });
    return found;
}

} // namespace homing::hooks
