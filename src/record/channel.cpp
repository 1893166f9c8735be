// The launcher's channel. Nothing here may end the program: the memory is sealed against shrinking, and its
// pages are made by the kernel on our behalf (a system call fails where a store would be a SIGBUS).
#include "record/channel.hpp"

#include "base/fnv_hash.hpp"
#include "base/raw_calls.hpp"
#include "record/rank.hpp"
#include "record/rows.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <sys/stat.h>

namespace homing::record::channel {
namespace {

struct State {
    int descriptor;
    long launcher;
    u64 device;
    u64 inode;
    u64 token;
    Head* head; ///< the mapped first part, nullptr: no channel
    Slot* slot;
    u32 number;   ///< of the slot, from 1
    long process; ///< that claimed it
    char* pieces; ///< all pieces, mapped; nullptr: not (yet)
    u32 piece_count;
    std::size_t piece_bytes;
};
constinit State state{};

bool is_ours(const struct stat& there) noexcept {
    return S_ISREG(there.st_mode) && there.st_dev == state.device && there.st_ino == state.inode;
}

/// A descriptor of the channel and whether it has to be closed after use; or a negative errno.
int borrow(bool& opened) noexcept {
    opened = false;
    struct stat there{};
    if (raw::status(state.descriptor, there) == 0 && is_ours(there)) return state.descriptor;
    char path[64] = "/proc/";
    char* at = std::to_chars(path + 6, path + 30, state.launcher).ptr;
    at = std::copy_n("/fd/", 4, at);
    *std::to_chars(at, path + sizeof path - 1, state.descriptor).ptr = '\0';
    // Looked at before it is opened: on another host this is somebody else's descriptor.
    if (const int error = raw::status(path, there)) return error;
    if (!is_ours(there)) return -EBADF;
    const int descriptor = raw::open(path, O_RDWR);
    opened = descriptor >= 0;
    return descriptor;
}

bool read_variable() noexcept {
    const char* text = std::getenv("HOMING_CHANNEL");
    if (!text) return false;
    const char* const end = text + std::strlen(text);
    u64 numbers[5] = {};
    for (u64& number : numbers) {
        const auto [rest, error] = std::from_chars(text, end, number);
        const bool last = &number == &numbers[4];
        if (error != std::errc() || (last ? rest != end : *rest != ':')) return false;
        text = rest + 1;
    }
    if (numbers[0] > 1u << 30 || numbers[1] > 1u << 30) return false;
    state.descriptor = static_cast<int>(numbers[0]);
    state.launcher = static_cast<long>(numbers[1]);
    state.device = numbers[2];
    state.inode = numbers[3];
    state.token = numbers[4];
    return true;
}

template <class Number> void add(Number& counter, Number more) noexcept {
    std::atomic_ref<Number>(counter).fetch_add(more, std::memory_order_relaxed);
}

/// The next number of a counter that ends at `most`; `most`: none is left.
u32 next_of(u32& counter, u32 most) noexcept {
    std::atomic_ref<u32> shared(counter);
    u32 number = shared.load(std::memory_order_relaxed);
    while (number < most && !shared.compare_exchange_weak(number, number + 1, std::memory_order_relaxed)) {
    }
    return std::min(number, most);
}

/// Memory behind a page of the mapping; false where the kernel has none (a store would be a SIGBUS).
bool make_page(char* page) noexcept {
    if (raw::call(SYS_clock_gettime, CLOCK_MONOTONIC, page) != 0) return false;
    std::memset(page, 0, sizeof(timespec));
    return true;
}

void name_program(Slot& slot) noexcept {
    char path[4096];
    const long length = raw::call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof path);
    std::string_view name(path, length > 0 ? static_cast<std::size_t>(length) : 0);
    name.remove_prefix(name.rfind('/') + 1); // npos + 1 is 0
    slot.program[name.copy(slot.program, sizeof slot.program - 1)] = '\0';
}

} // namespace

void join() noexcept {
    if (!read_variable()) return;
    bool opened = false;
    const int descriptor = borrow(opened);
    if (descriptor < 0) return;
    struct stat there{};
    int error = 0;
    void* map = raw::status(descriptor, there) == 0 && there.st_size >= static_cast<off_t>(head_bytes)
                    ? raw::map(head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0, error)
                    : nullptr;
    if (opened) raw::close(descriptor);
    if (!map) return;
    raw::call(SYS_madvise, map, head_bytes, MADV_DONTDUMP);
    auto* head = static_cast<Head*>(map);
    const auto room = static_cast<std::size_t>(there.st_size) - head_bytes;
    if (std::string_view(head->magic, magic.size()) != magic || head->token != state.token ||
        head->piece_count > most_pieces ||
        (head->piece_count > 0 && head->piece_bytes > room / head->piece_count)) {
        raw::unmap(map, head_bytes);
        return;
    }
    // Kept here: what is shared may be written by anybody in the run.
    state.piece_count = head->piece_count;
    state.piece_bytes = head->piece_bytes;
    state.head = head;
    add(head->programs, 1u);
}

void decline() noexcept {
    if (state.head) add(state.head->declined, 1u);
}

Expected expected(const char* pattern) noexcept {
    if (!state.head || fnv_hash(pattern) != state.head->pattern_hash) return {};
    return {state.head->folder_device, state.head->folder_inode, state.head->start_ns};
}

Slot* slot(const char* pattern) noexcept {
    if (state.slot || !state.head) return state.slot;
    const u32 number = next_of(state.head->next_slot, most_slots);
    char* const at = reinterpret_cast<char*>(state.head) + slots_begin + number * sizeof(Slot);
    // The slot's page may not exist yet, and memory may have run out.
    if (number == most_slots || !make_page(at)) return nullptr;
    auto* claimed = reinterpret_cast<Slot*>(at);
    state.process = raw::call(SYS_getpid);
    claimed->process = static_cast<std::int32_t>(state.process);
    claimed->user = static_cast<u32>(raw::call(SYS_geteuid));
    claimed->rank = process_rank();
    claimed->other_name = fnv_hash(pattern) != state.head->pattern_hash;
    name_program(*claimed);
    std::atomic_ref<u32>(claimed->place).store(static_cast<u32>(Place::nowhere), std::memory_order_release);
    state.number = number + 1;
    return state.slot = claimed;
}

int prepare() noexcept {
    if (state.pieces) return 0;
    if (!state.slot) return -ENOENT;
    if (state.piece_count == 0) return -EFBIG; // the limit on file sizes holds for the launcher's memory, too
    bool opened = false;
    const int descriptor = borrow(opened);
    if (descriptor < 0) return descriptor;
    // All of it at once: the program may close the descriptor the next moment. What is not taken takes no
    // memory.
    const std::size_t bytes = state.piece_count * state.piece_bytes;
    int error = 0;
    state.pieces = static_cast<char*>(
        raw::map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, head_bytes, error));
    if (opened) raw::close(descriptor);
    if (state.pieces) raw::call(SYS_madvise, state.pieces, bytes, MADV_DONTDUMP);
    return -error;
}

char* take_piece(std::size_t piece_bytes) noexcept {
    if (!state.pieces || piece_bytes != state.piece_bytes) return nullptr;
    const u32 index = next_of(state.head->next_piece, state.piece_count);
    if (index == state.piece_count) return nullptr;
    char* const piece = state.pieces + index * state.piece_bytes;
    for (std::size_t at = 0; at < piece_bytes; at += 4096)
        if (!make_page(piece + at)) return nullptr;
    std::atomic_ref<u32>(state.head->owners[index]).store(state.number, std::memory_order_release);
    return piece;
}

void count(const void* row, std::size_t bytes) noexcept {
    if (!state.slot || bytes < sizeof(u32)) return;
    u32 kind = 0;
    std::memcpy(&kind, row, sizeof kind);
    const auto is = [&](auto& known) {
        if (kind != known.row || bytes < sizeof known) return false;
        std::memcpy(&known, row, sizeof known);
        return true;
    };
    if (move_row move; is(move)) {
        state.slot->moved += move.moved;
    } else if (refusal_row refusal; is(refusal)) {
        state.slot->refused += refusal.pages;
    } else if (iteration_row iteration; is(iteration)) {
        state.slot->iterations = std::max<u64>(state.slot->iterations, iteration.number + 1);
    } else if (end_row end; is(end)) {
        state.slot->iterations = end.iterations;
    }
}

void abandon() noexcept {
    state.slot = nullptr;
    state.number = 0;
    if (state.pieces) raw::unmap(state.pieces, state.piece_count * state.piece_bytes);
    state.pieces = nullptr;
}

} // namespace homing::record::channel
