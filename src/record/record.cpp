// The record: rows appended through a shared mapping of its last piece, in a file or, where the file will not
// do, in the launcher's channel. No memory of the program's malloc, no descriptor that stays open, and
// nothing that the program does to its descriptors, its working directory or the file can bring a signal upon
// it: space is reserved before it is mapped (a full disk), the limit on file sizes is asked first (SIGXFSZ),
// and a file is never truncated that another process may have mapped (SIGBUS).
#include "record/record.hpp"

#include "base/clock.hpp"
#include "base/fnv_hash.hpp"
#include "base/raw_calls.hpp"
#include "record/channel.hpp"
#include "record/file.hpp"
#include "record/header.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <sched.h>

namespace homing::record {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20; // mapped at a time; a multiple of every page size
constexpr std::size_t most_kept = channel::most_pieces;
constexpr std::size_t longest_text = std::size_t{64} << 10;
constexpr std::size_t most_messages = 256;
/// Messages that wait for a record, and bytes of the text of one. By reason: a program that registers its
/// arrays wrongly does so a few times, and a path and what is wrong with it fit.
constexpr std::size_t most_early = 16;
constexpr std::size_t longest_early = 500;
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

/// What was said before a record is open: a program registers its arrays before its first parallel region.
struct EarlyMessage {
    std::size_t at; ///< in State::messages
    std::size_t length;
    char text[longest_early];
};

struct State {
    File file;
    channel::Slot* slot;     ///< of this process in the launcher's channel, nullptr: none
    bool in_channel;         ///< the pieces are the channel's, not the file's
    char* piece;             ///< the mapped piece that is written, nullptr: none
    std::size_t piece_count; ///< with it
    std::size_t piece_use;   ///< bytes of it in use
    char* kept[most_kept];   ///< the pieces: a file that loses its name can still go to the channel
    KnownText* texts;        ///< open addressing, a power of two slots
    std::size_t text_slots;
    u32 text_count;
    KnownMessage messages[most_messages];
    std::size_t message_count;
    EarlyMessage early[most_early];
    std::size_t early_count;
    u64 level_counts[4];
};

constinit State state{};
constinit std::atomic<bool> opened{false};
constinit std::atomic<long> owner{0}; ///< the process that opened it; 0: none, or it was closed
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
            raw::call(SYS_sched_yield);
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
    const long process = owner.load(std::memory_order_relaxed);
    return process != 0 && raw::call(SYS_getpid) != process;
}

std::int64_t monotonic_ns() noexcept { return static_cast<std::int64_t>(clock_seconds() * 1e9); }

/// A further piece, of the file or of the channel. No more are kept than there is a place for: the record can
/// then go to the channel no more.
void add_piece(char* piece) noexcept {
    if (state.piece_count < most_kept)
        state.kept[state.piece_count] = piece;
    else if (state.piece_count > most_kept && !state.in_channel)
        raw::unmap(state.piece, piece_bytes);
    state.piece = piece;
    ++state.piece_count;
    state.piece_use = 0;
}

void unmap_pieces() noexcept {
    if (!state.in_channel) {
        for (std::size_t i = 0; i < std::min(state.piece_count, most_kept); ++i)
            raw::unmap(state.kept[i], piece_bytes);
        if (state.piece_count > most_kept) raw::unmap(state.piece, piece_bytes);
    }
    state.piece = nullptr;
    state.piece_count = 0;
}

/// 0, or a negative errno.
int grow_file(int descriptor) noexcept {
    const std::size_t offset = state.piece_count * piece_bytes;
    if (const int error = reserve(descriptor, offset, piece_bytes)) return error;
    int error = 0;
    auto* map = static_cast<char*>(
        raw::map(piece_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, offset, error));
    if (map) add_piece(map);
    return -error;
}

std::size_t used_bytes() noexcept {
    return state.piece_count ? (state.piece_count - 1) * piece_bytes + state.piece_use : 0;
}

/// What the launcher may read at any moment.
void tell_place(channel::Place place) noexcept {
    channel::Slot* const slot = state.slot;
    if (!slot) return;
    slot->device = state.file.device;
    slot->inode = state.file.inode;
    std::atomic_ref<u32>(slot->place).store(static_cast<u32>(place), std::memory_order_release);
}

/// The record goes on in the launcher's channel, with all that it has; `error` (a negative errno) is why the
/// file would not do. False: not possible, and the slot says why.
bool enter_channel(int error) noexcept {
    channel::Slot* const slot = state.slot;
    if (!slot) return false;
    slot->file_error = -error;
    int problem = state.piece_count > most_kept ? -EOVERFLOW : channel::prepare();
    char* pieces[most_kept] = {};
    const std::size_t count = std::max<std::size_t>(state.piece_count, 1);
    for (std::size_t i = 0; i < count && problem == 0; ++i) {
        pieces[i] = channel::take_piece(piece_bytes);
        if (!pieces[i])
            problem = -ENOSPC;
        else if (i < state.piece_count)
            std::memcpy(pieces[i], state.kept[i], i + 1 == count ? state.piece_use : piece_bytes);
    }
    slot->channel_error = -problem;
    if (problem != 0) return false;
    const std::size_t use = state.piece_use;
    const bool was_empty = state.piece_count == 0;
    unmap_pieces();
    state.in_channel = true;
    for (std::size_t i = 0; i < count; ++i)
        add_piece(pieces[i]);
    state.piece_use = was_empty ? 0 : use;
    std::atomic_ref<u64>(slot->used).store(used_bytes(), std::memory_order_release);
    tell_place(channel::Place::channel);
    return true;
}

bool next_piece() noexcept {
    if (!state.in_channel) {
        const int descriptor = reopen(state.file);
        const int error = descriptor < 0 ? descriptor : grow_file(descriptor);
        raw::close(descriptor);
        if (error == 0) return true;
        if (!enter_channel(error)) return false;
    }
    char* const piece = channel::take_piece(piece_bytes);
    if (piece)
        add_piece(piece);
    else
        state.slot->channel_error = ENOSPC;
    return piece;
}

void stop_writing() noexcept {
    opened.store(false, std::memory_order_release);
    unmap_pieces();
}

void append_row(const void* row, std::size_t bytes) noexcept {
    if (!opened.load(std::memory_order_relaxed) || !state.piece) return;
    if (bytes < sizeof(u32) || bytes > row_bytes) return;
    if (state.piece_use == piece_bytes && !next_piece()) return stop_writing();
    // The row's kind goes in last: a process that is killed here leaves an unused row, never half a row.
    char* slot = state.piece + state.piece_use;
    std::memcpy(slot + sizeof(u32), static_cast<const char*>(row) + sizeof(u32), bytes - sizeof(u32));
    u32 kind = 0;
    std::memcpy(&kind, row, sizeof kind);
    std::atomic_ref<u32>(*reinterpret_cast<u32*>(slot)).store(kind, std::memory_order_release);
    state.piece_use += row_bytes;
    if (state.in_channel)
        std::atomic_ref<u64>(state.slot->used).store(used_bytes(), std::memory_order_release);
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
    // With the length compared as well: among the few thousand texts of a run two different ones of one
    // length and hash do not happen by chance (1e7 / 2^64).
    const u64 hash = fnv_hash(value);
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

void keep_early(std::size_t at, std::string_view text) noexcept {
    const auto end = state.early + state.early_count;
    const bool known = std::any_of(state.early, end, [=](const EarlyMessage& one) { return one.at == at; });
    if (known || state.early_count == most_early) return;
    EarlyMessage& one = state.early[state.early_count++];
    one.at = at;
    one.length = text.copy(one.text, longest_early);
}

void write_early() noexcept {
    for (std::size_t i = 0; i < state.early_count; ++i) {
        const EarlyMessage& one = state.early[i];
        KnownMessage& known = state.messages[one.at];
        known.text = text_id({one.text, one.length});
        write_message(known);
    }
    state.early_count = 0;
}

/// Forget the record, but not what was said and counted.
void forget() noexcept {
    stop_writing();
    state.in_channel = false;
    state.file.device = state.file.inode = 0;
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
    if (const Turn turn; turn && !opened.load(std::memory_order_relaxed)) {
        forget();
        if (!path) path = "";
        owner.store(raw::call(SYS_getpid), std::memory_order_relaxed);
        state.slot = channel::slot(path);
        if (state.slot) state.slot->closed = 0;
        int descriptor = *path ? create(state.file, path, channel::expected(path)) : -ENOENT;
        const int error = descriptor < 0 ? descriptor : grow_file(descriptor);
        if (error == 0)
            tell_place(channel::Place::file);
        else
            enter_channel(error);
        done = state.piece && write_header(state.piece, header_bytes);
        if (done) {
            state.piece_use = header_bytes;
            opened.store(true, std::memory_order_release);
            const progress_row
                row; // the first row, in the first piece: it stays where it can be written anew
            append_row(&row, sizeof row);
            write_early();
        } else {
            stop_writing();
            tell_place(channel::Place::nowhere);
        }
        // Without a channel an empty file, which costs no space and obeys every limit on sizes, tells the
        // launcher that homing is at work here all the same.
        if (descriptor >= 0 && !done) raw::call(SYS_ftruncate, descriptor, 0);
        if (descriptor >= 0 && error != 0 && state.slot)
            raw::call(SYS_unlinkat, AT_FDCWD, state.file.path, 0);
        raw::close(descriptor);
    }
    errno = saved;
    return done;
}

void append_bytes(const void* row, std::size_t bytes) noexcept {
    if (owner.load(std::memory_order_relaxed) == 0 || is_anothers()) return;
    const int saved = errno;
    if (const Turn turn; turn) {
        channel::count(row, bytes);
        append_row(row, bytes);
    }
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

void progress(u32 iterations) noexcept {
    if (!opened.load(std::memory_order_relaxed) || is_anothers()) return;
    if (const Turn turn; turn && state.kept[0]) {
        char* field = state.kept[0] + header_bytes + offsetof(progress_row, iterations);
        std::atomic_ref<u32>(*reinterpret_cast<u32*>(field)).store(iterations, std::memory_order_relaxed);
    }
}

void message_of_each_line(Level level, std::string_view lines) noexcept {
    while (!lines.empty()) {
        const std::size_t end = std::min(lines.find('\n'), lines.size());
        message(level, lines.substr(0, end));
        lines.remove_prefix(std::min(end + 1, lines.size()));
    }
}

void message(Level level, std::string_view value) noexcept {
    if (is_anothers()) return;
    const int saved = errno;
    if (const Turn turn; turn) {
        ++state.level_counts[static_cast<u32>(level) & 3];
        const u64 hash = fnv_hash(value) + static_cast<u32>(level);
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
        } else if (!crowded) {
            keep_early(at, value);
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
    if (const Turn turn; turn) {
        forget();
        state.slot = nullptr;
        channel::abandon();
        owner.store(0, std::memory_order_relaxed);
    }
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
        if (complete && !state.in_channel) {
            const int descriptor = reopen(state.file);
            if (descriptor >= 0) raw::call(SYS_ftruncate, descriptor, used_bytes());
            raw::close(descriptor);
            // The file has lost its name: its folder was removed, or another file took its place.
            if (descriptor == -ENOENT || descriptor == -ENOTDIR || descriptor == -ESTALE)
                enter_channel(descriptor);
        }
        if (complete && state.slot)
            std::atomic_ref<u32>(state.slot->closed).store(1, std::memory_order_release);
        forget();
    }
    // No system call from here on: the program may be about to forbid them (seccomp).
    owner.store(0, std::memory_order_relaxed);
    errno = saved;
}

} // namespace homing::record
