#include "hooks/signals/thread_masks.hpp"

#include "base/raw_calls.hpp"
#include "hooks/each_piece.hpp"

#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <system_error>

namespace homing::hooks {
namespace {

/// A mask of /proc/.../status. False: it is not there.
bool find_mask(const char* status, std::string_view name, Mask& mask) noexcept {
    const char* line = std::strstr(status, name.data());
    if (!line) return false;
    line += name.size();
    return std::from_chars(line, line + 16, mask, 16).ec == std::errc();
}

/// A thread that is gone blocks nothing.
void look_at_thread(long thread, bool (*fits)(Mask), ThreadSignals& signals) noexcept {
    char path[64] = "/proc/self/task/";
    char* end = std::to_chars(path + std::strlen(path), path + sizeof path, thread).ptr;
    std::strcpy(end, "/status");
    static char status[4096]; // driver only
    if (raw::read_file(path, status, sizeof status) <= 0) return;
    Mask mask = 0;
    if (find_mask(status, "\nSigBlk:\t", mask) && fits(mask)) signals.found = thread;
    if (find_mask(status, "\nSigCgt:\t", mask)) signals.caught = mask; // of the whole process
}

} // namespace

ThreadSignals look_at_threads(bool (*fits)(Mask)) noexcept {
    struct Entry { // linux_dirent64
        std::uint64_t inode;
        std::int64_t offset;
        std::uint16_t bytes;
        std::uint8_t type;
        char name[1];
    };
    ThreadSignals signals;
    each_piece(raw::open("/proc/self/task", O_RDONLY | O_DIRECTORY), SYS_getdents64,
               [&](std::string_view entries) {
                   while (!entries.empty() && !signals.found) {
                       Entry entry;
                       std::memcpy(&entry, entries.data(), offsetof(Entry, name));
                       const char* name = entries.data() + offsetof(Entry, name);
                       long thread = 0;
                       std::from_chars(name, entries.data() + entry.bytes, thread);
                       if (thread > 0) look_at_thread(thread, fits, signals);
                       entries.remove_prefix(entry.bytes);
                   }
                   return !signals.found;
               });
    return signals;
}

} // namespace homing::hooks
