// The kernel is asked before the first window, when threads have come or gone, and now and then, so that
// looking takes a small share of the time whatever it costs: each thread has a file of its own to be read.
#include "hooks/surroundings.hpp"

#include "base/clock.hpp"
#include "base/helper_thread.hpp"
#include "base/raw_calls.hpp"
#include "hooks/each_piece.hpp"
#include "hooks/look_pace.hpp"
#include "hooks/signals/kernel_actions.hpp"
#include "hooks/signals/masks.hpp"
#include "hooks/signals/thread_masks.hpp"
#include "hooks/syscalls/own_calls.hpp"
#include "record/record.hpp"
#include "sources/windows.hpp"

#include <algorithm>
#include <charconv>
#include <link.h>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <utility>

namespace homing::hooks {
namespace {

/// A thread that is just being created or ended, or that creates another one, blocks all signals for a
/// moment: for so many looks, over so long.
constexpr int momentary_looks = 3;
constexpr double moment = 0.02; // seconds
/// The mappings, and opening files, take as long as so many threads.
constexpr std::uint64_t parts_beside_threads = 8;

/// Mappings by which the kernel, or a device, has the program's memory to itself.
struct Mark {
    std::string_view name;
    const char* reason;
};
constexpr Mark marks[] = {
    {"anon_inode:[io_uring]", "io_uring is used"},
    {"/[aio]", "the kernel's asynchronous input is used"},
    {"/dev/infiniband/", "an RDMA device is used"},
    {"/dev/nvidia", "a GPU is used"},
    {"/dev/kfd", "a GPU is used"},
};

const char* find_mark() noexcept {
    const char* reason = nullptr;
    each_piece(raw::open("/proc/self/maps", O_RDONLY), SYS_read, [&](std::string_view lines) {
        for (const Mark& mark : marks)
            if (lines.find(mark.name) != lines.npos) reason = mark.reason;
        return reason == nullptr;
    });
    return reason;
}

/// Differs when threads of the program came or went, in most cases.
std::uint64_t count_threads() noexcept {
    struct stat task{};
    if (raw::call(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &task, 0) != 0) return 0;
    return task.st_nlink - std::min<std::uint64_t>(task.st_nlink, HelperThread::count());
}

/// Differs when the program has mapped something, in most cases: a ring of the kernel's comes so, and no hook
/// sees that where the program makes its own system calls.
std::uint64_t mapped_pages() noexcept {
    char text[64];
    std::uint64_t pages = 0;
    const long got = raw::read_file("/proc/self/statm", text, sizeof text);
    if (got > 0) std::from_chars(text, text + got, pages);
    return pages;
}

int count_objects(dl_phdr_info* info, std::size_t, void* count) noexcept {
    *static_cast<std::uint64_t*>(count) = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

bool data_is_limited() noexcept {
    struct rlimit limit{};
    return raw::call(SYS_prlimit64, 0, RLIMIT_DATA, nullptr, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/// What was found last.
struct {
    std::uint64_t objects = ~std::uint64_t{0};
    std::uint64_t threads = 0;
    std::uint64_t mapped = 0;
    LookPace pace;
    double took_each = 1e3; ///< seconds for a thread's part of a look, undisturbed
    long blocked = 0;       ///< a thread, seen in so many looks in turn, first then
    int looks = 0;
    double since = 0;
    bool said = false;
} last;

/// More than a moment?
bool stays_blocked(long thread, double now) noexcept {
    if (thread != last.blocked) {
        last.blocked = thread;
        last.since = now;
        last.looks = 0;
    }
    return thread && ++last.looks >= momentary_looks && now - last.since > moment;
}

/// What forbids windows for good, or empty.
std::string forbidding(Windows& windows) {
    if (data_is_limited())
        return "the data of the process is limited (RLIMIT_DATA): the kernel might not give back the right "
               "to "
               "access pages";
    std::uint64_t objects = 0;
    ::dl_iterate_phdr(count_objects, &objects);
    if (objects == last.objects) return {};
    last.objects = objects;
    object_comes();
    return windows.unavailable();
}

/// Reasons are kept as long as the process lives.
bool forbid(Windows& windows, const std::string& reason) {
    windows.forbid((new std::string(reason))->c_str());
    return false;
}

} // namespace

bool surroundings_allow(Windows& windows) noexcept {
    if (windows.forbidden()) return false;
    try {
        if (const std::string reason = forbidding(windows); !reason.empty()) return forbid(windows, reason);
        const double now = clock_seconds();
        const std::uint64_t threads = count_threads();
        const double parts = static_cast<double>(threads + parts_beside_threads);
        const double cost = last.took_each * parts;
        const std::uint64_t mapped = makes_own_calls() ? mapped_pages() : 0;
        const bool changed = threads != last.threads || mapped != last.mapped || last.blocked;
        if (!last.pace.due(now, cost, changed)) return !changed;
        last.threads = threads;
        last.mapped = mapped;
        last.pace.looked(now, cost);
        const char* mark = find_mark();
        const auto [blocked, caught] = look_at_threads(blocks_faults);
        let_faults_through_handlers(caught); // that were installed past the C library
        last.took_each = std::min(last.took_each, (clock_seconds() - now) / parts);
        if (mark) return forbid(windows, mark);
        if (stays_blocked(blocked, now) && !std::exchange(last.said, true))
            record::message(record::Level::warning,
                            "a thread blocks SIGSEGV, past the C library or since before the first parallel "
                            "region: no windows as long as it does");
        return !blocked;
    } catch (...) {
        return false; // no memory: not now
    }
}

} // namespace homing::hooks
