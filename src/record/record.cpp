// The record file: rows appended through a shared mapping of the file's last piece. No memory of the
// program's malloc, no descriptor that stays open, and nothing that the program does to its descriptors, its
// working directory or the file can bring a signal upon it: space is reserved before it is mapped (a full
// disk), the limit on file sizes is asked first (SIGXFSZ), and a file is never truncated that another process
// may have mapped (SIGBUS).
#include "record/record.hpp"

#include "base/clock.hpp"
#include "base/raw_calls.hpp"
#include "record/header.hpp"

#include <atomic>
#include <charconv>
#include <cstring>
#include <ctime>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace homing::record {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20; // mapped at a time; a multiple of every page size
constexpr std::size_t longest_text = std::size_t{64} << 10;
constexpr std::size_t most_messages = 256;
static_assert(header_bytes % row_bytes == 0 && piece_bytes % row_bytes == 0);

struct KnownText {
    u64 hash;
    u32 length;
    u32 id; ///< 0: an empty slot
};

struct KnownMessage {
    u64 hash;
    u32 text; ///< 0 while no record is open
    u32 repeats;
    u32 written; ///< the number of repeats in the last row of it
    Level level;
};

struct State {
    char path[4096];
    dev_t device;
    ino_t inode;
    char* piece;           ///< the mapped piece of the file, nullptr: none
    std::size_t piece_at;  ///< its offset in the file
    std::size_t piece_use; ///< bytes of it in use
    KnownText* texts;      ///< open addressing, a power of two slots
    std::size_t text_slots;
    u32 text_count;
    KnownMessage messages[most_messages];
    std::size_t message_count;
    u64 level_counts[4];
};

constinit State state{};
constinit std::atomic<bool> opened{false};
constinit std::atomic<long> owner{0}; ///< the process that opened it
constinit std::atomic<std::int64_t> start_ns{0};

// The driver is one thread, but the end of the process may come from another: a lock, given up after a while
// (a thread that held it may be gone: fork, a handler that ended the thread). What could not be locked is not
// written.
constinit std::atomic_flag busy{};

class Turn {
  public:
    Turn() noexcept {
        for (int attempt = 0; attempt < 10'000; ++attempt) {
            if (!busy.test_and_set(std::memory_order_acquire)) {
                mine_ = true;
                return;
            }
            ::sched_yield();
        }
    }
    ~Turn() {
        if (mine_) busy.clear(std::memory_order_release);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const noexcept { return mine_; }

  private:
    bool mine_ = false;
};

/// Is a record open, and another process's? A child that was made past our fork handlers (_Fork, vfork,
/// clone) finds its parent's here, mapped, and perhaps all memory shared with it: nothing may be touched.
bool is_anothers() noexcept {
    return opened.load(std::memory_order_relaxed) &&
           raw::call(SYS_getpid) != owner.load(std::memory_order_relaxed);
}

std::int64_t monotonic_ns() noexcept { return static_cast<std::int64_t>(clock_seconds() * 1e9); }

// FNV-1a, 64 bits, with the length compared as well: among the few thousand texts of a run two different ones
// of one length and hash do not happen by chance (1e7 / 2^64).
u64 hash_of(std::string_view text) noexcept {
    u64 hash = 14695981039346656037u;
    for (const char letter : text)
        hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211u;
    return hash;
}

/// May the file grow to `bytes`? Beyond the limit the kernel sends SIGXFSZ, which ends most programs.
bool within_file_limit(std::size_t bytes) noexcept {
    rlimit limit{};
    return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           bytes <= limit.rlim_cur;
}

/// Grow the file with real space behind it; a store into a hole of a full disk would be a SIGBUS.
bool reserve(int descriptor, std::size_t offset, std::size_t bytes) noexcept {
    if (!within_file_limit(offset + bytes)) return false;
    long result = 0;
    do {
        result = raw::call(SYS_fallocate, descriptor, 0, offset, bytes);
    } while (result == -EINTR);
    if (result == -EOPNOTSUPP || result == -ENOSYS) {
        // A file system without reservations: writing zeros reserves everywhere.
        static constexpr char zeros[4096] = {};
        for (std::size_t done = 0; done < bytes; done += sizeof zeros) {
            if (raw::call(SYS_pwrite64, descriptor, zeros, sizeof zeros, offset + done) !=
                static_cast<long>(sizeof zeros)) {
                return false;
            }
        }
        return true;
    }
    return result == 0;
}

bool map_piece(int descriptor, std::size_t offset) noexcept {
    if (!reserve(descriptor, offset, piece_bytes)) return false;
    int error = 0;
    auto* map = static_cast<char*>(
        raw::map(piece_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, offset, error));
    if (!map) return false;
    raw::unmap(state.piece, piece_bytes);
    state.piece = map;
    state.piece_at = offset;
    state.piece_use = 0;
    return true;
}

/// Our file again, or a negative errno: another file may have taken its name.
int reopen() noexcept {
    const int descriptor = raw::open(state.path, O_RDWR | O_NOFOLLOW);
    if (descriptor < 0) return descriptor;
    struct stat now_there{};
    if (::fstat(descriptor, &now_there) == 0 && now_there.st_dev == state.device &&
        now_there.st_ino == state.inode) {
        return descriptor;
    }
    raw::close(descriptor);
    return -ESTALE;
}

void stop_writing() noexcept {
    opened.store(false, std::memory_order_release);
    raw::unmap(state.piece, piece_bytes);
    state.piece = nullptr;
}

void append_row(const void* row, std::size_t bytes) noexcept {
    if (!opened.load(std::memory_order_relaxed) || !state.piece) return;
    if (bytes < sizeof(u32) || bytes > row_bytes) return;
    if (state.piece_use == piece_bytes) {
        const int descriptor = reopen();
        const bool mapped = descriptor >= 0 && map_piece(descriptor, state.piece_at + piece_bytes);
        raw::close(descriptor);
        if (!mapped) {
            stop_writing();
            return;
        }
    }
    // The row's kind goes in last: a process that is killed here leaves an unused row, never half a row.
    char* slot = state.piece + state.piece_use;
    std::memcpy(slot + sizeof(u32), static_cast<const char*>(row) + sizeof(u32), bytes - sizeof(u32));
    u32 kind = 0;
    std::memcpy(&kind, row, sizeof kind);
    std::atomic_ref<u32>(*reinterpret_cast<u32*>(slot)).store(kind, std::memory_order_release);
    state.piece_use += row_bytes;
}

bool grow_texts() noexcept {
    const std::size_t slots = state.text_slots ? 2 * state.text_slots : 1024;
    auto* texts = static_cast<KnownText*>(raw::map_memory(slots * sizeof(KnownText)));
    if (!texts) return false;
    for (std::size_t i = 0; i < state.text_slots; ++i) {
        const KnownText known = state.texts[i];
        if (known.id == 0) continue;
        std::size_t slot = known.hash & (slots - 1);
        while (texts[slot].id != 0)
            slot = (slot + 1) & (slots - 1);
        texts[slot] = known;
    }
    raw::unmap(state.texts, state.text_slots * sizeof(KnownText));
    state.texts = texts;
    state.text_slots = slots;
    return true;
}

u32 text_id(std::string_view value) noexcept {
    if (value.empty() || !opened.load(std::memory_order_relaxed)) return 0;
    value = value.substr(0, longest_text);
    if (2 * (std::size_t{state.text_count} + 1) > state.text_slots && !grow_texts()) return 0;
    const u64 hash = hash_of(value);
    const auto length = static_cast<u32>(value.size());
    std::size_t slot = hash & (state.text_slots - 1);
    for (; state.texts[slot].id != 0; slot = (slot + 1) & (state.text_slots - 1)) {
        if (state.texts[slot].hash == hash && state.texts[slot].length == length) return state.texts[slot].id;
    }
    const u32 id = ++state.text_count;
    state.texts[slot] = {hash, length, id};
    for (u32 offset = 0; offset < length;) {
        text_row row;
        row.id = id;
        row.offset = offset;
        row.total = length;
        const std::size_t part = value.copy(row.bytes, sizeof row.bytes, offset);
        append_row(&row, sizeof row);
        offset += static_cast<u32>(part);
    }
    return id;
}

void write_message(KnownMessage& known) noexcept {
    if (known.text == 0 || known.written == known.repeats) return;
    known.written = known.repeats;
    message_row row;
    row.text = known.text;
    row.time = now();
    row.level = static_cast<u32>(known.level);
    row.repeats = known.repeats;
    append_row(&row, sizeof row);
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
            const long value = *at == 'p' ? static_cast<long>(::getpid()) : rank < 0 ? 0 : rank;
            char digits[24];
            const auto result = std::to_chars(digits, digits + sizeof digits, value);
            if (!put({digits, static_cast<std::size_t>(result.ptr - digits)})) return false;
        } else if (!put({at, 1})) {
            return false;
        }
    }
    return true;
}

/// What lies at the path may be replaced if it is an empty file or a record: never a user's data, never a
/// device.
bool may_replace(const char* path) noexcept {
    struct stat there{};
    if (::lstat(path, &there) != 0) return errno == ENOENT;
    if (!S_ISREG(there.st_mode)) return false;
    if (there.st_size == 0) return true;
    char first[header_line.size()];
    const int descriptor = raw::open(path, O_RDONLY | O_NOFOLLOW);
    if (descriptor < 0) return false;
    const long got = raw::read_at(descriptor, first, sizeof first, 0);
    raw::close(descriptor);
    return std::string_view(first, got > 0 ? static_cast<std::size_t>(got) : 0) == header_line;
}

/// A new file, not the old one truncated: a process of the same run that writes a record by the same name
/// goes on with its own (nameless) file instead of being killed by a SIGBUS.
int create(const char* path) noexcept {
    if (!may_replace(path)) return -EEXIST;
    raw::call(SYS_unlinkat, AT_FDCWD, path, 0);
    return raw::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
}

/// Forget the record, but not what was said and counted.
void forget() noexcept {
    stop_writing();
    raw::unmap(state.texts, state.text_slots * sizeof(KnownText));
    state.texts = nullptr;
    state.text_slots = 0;
    state.text_count = 0;
    for (KnownMessage& known : state.messages)
        known.text = known.written = 0;
}

} // namespace

bool open(const char* path) noexcept {
    const int saved = errno;
    now();
    bool done = false;
    if (const Turn turn; turn && path && *path && !opened.load(std::memory_order_relaxed)) {
        forget();
        struct stat file{};
        const int descriptor =
            expand_path(path, state.path, sizeof state.path) ? create(state.path) : -ENAMETOOLONG;
        if (descriptor >= 0 && ::fstat(descriptor, &file) == 0) {
            state.device = file.st_dev;
            state.inode = file.st_ino;
            done = map_piece(descriptor, 0) && write_header(state.piece, header_bytes);
            if (done) {
                state.piece_use = header_bytes;
                owner.store(raw::call(SYS_getpid), std::memory_order_relaxed);
                opened.store(true, std::memory_order_release);
            } else {
                // An empty file costs no space and obeys every limit on sizes: it tells the launcher that
                // homing is at work here all the same.
                stop_writing();
                raw::call(SYS_ftruncate, descriptor, 0);
            }
        }
        raw::close(descriptor);
    }
    errno = saved;
    return done;
}

void append_bytes(const void* row, std::size_t bytes) noexcept {
    if (!opened.load(std::memory_order_relaxed) || is_anothers()) return;
    const int saved = errno;
    if (const Turn turn; turn) append_row(row, bytes);
    errno = saved;
}

u32 text(std::string_view value) noexcept {
    if (value.empty() || !opened.load(std::memory_order_relaxed) || is_anothers()) return 0;
    const int saved = errno;
    u32 id = 0;
    if (const Turn turn; turn) id = text_id(value);
    errno = saved;
    return id;
}

void fact(std::string_view key, std::string_view value) noexcept {
    fact_row row;
    row.key = text(key);
    row.time = now();
    row.value = text(value);
    append(row);
}

void message(Level level, std::string_view value) noexcept {
    if (is_anothers()) return;
    const int saved = errno;
    if (const Turn turn; turn) {
        ++state.level_counts[static_cast<u32>(level) & 3];
        const u64 hash = hash_of(value) + static_cast<u32>(level);
        std::size_t at = 0;
        while (at < state.message_count && state.messages[at].hash != hash)
            ++at;
        // A program that brings ever new messages about: the last place stands for all that have none of
        // their own.
        const bool crowded = at >= most_messages - 1;
        if (crowded) at = most_messages - 1;
        if (!crowded && at == state.message_count)
            state.messages[state.message_count++] = {hash, 0, 0, 0, level};
        KnownMessage& known = state.messages[at];
        if (crowded) known.level = Level::warning;
        ++known.repeats;
        if (opened.load(std::memory_order_relaxed)) {
            if (known.text == 0) known.text = text_id(crowded ? "more messages than are kept apart" : value);
            // Rows at 1, 2, 4, 8, ... repeats, the rest at the end: nobody can flood the record.
            if ((known.repeats & (known.repeats - 1)) == 0 || known.written == 0) write_message(known);
        }
    }
    errno = saved;
}

u64 messages(Level level) noexcept {
    const Turn turn;
    return turn ? state.level_counts[static_cast<u32>(level) & 3] : 0;
}

double now() noexcept {
    const std::int64_t time = monotonic_ns();
    std::int64_t start = start_ns.load(std::memory_order_relaxed);
    if (start == 0 && start_ns.compare_exchange_strong(start, time, std::memory_order_relaxed)) start = time;
    return static_cast<double>(time - start) * 1e-9;
}

bool is_open() noexcept { return opened.load(std::memory_order_relaxed); }

void abandon() noexcept {
    const int saved = errno;
    // The thread that had the lock stayed behind in the parent.
    busy.clear(std::memory_order_release);
    if (const Turn turn; turn) forget();
    start_ns.store(0, std::memory_order_relaxed);
    errno = saved;
}

void close() noexcept {
    if (is_anothers()) return;
    const int saved = errno;
    if (const Turn turn; turn && opened.load(std::memory_order_relaxed)) {
        for (std::size_t i = 0; i < state.message_count; ++i)
            write_message(state.messages[i]);
        const bool complete = opened.load(std::memory_order_relaxed); // the last rows may not have fitted
        const std::size_t used = state.piece_at + state.piece_use;
        forget();
        const int descriptor = complete ? reopen() : -1;
        if (descriptor >= 0) raw::call(SYS_ftruncate, descriptor, used);
        raw::close(descriptor);
    }
    errno = saved;
}

} // namespace homing::record
