// The launcher's channel: memory (a memfd) that `homing run` makes and every program of the run inherits as
// an open descriptor, so that what homing did is known where no record can be written as a file: the program
// is another user, its /tmp is its own, its folder was removed, the disk is full.
//
// A process at work has a slot with what became of its record and the few numbers that count most, and takes
// pieces for its record where the file fails. HOMING_CHANNEL=DESCRIPTOR:PROCESS:DEVICE:INODE:TOKEN tells
// where it is: the descriptor of that number, and where a program has closed it, the launcher's own
// (/proc/PROCESS/fd/DESCRIPTOR); device, inode and token tell it from anything else that has this number.
// homing/channel.py is the other end.
#pragma once

#include "record/file.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace homing::record::channel {

inline constexpr std::size_t head_bytes = std::size_t{64} << 10; // a multiple of every page size
inline constexpr std::size_t slots_begin = 4096;
inline constexpr std::uint32_t most_slots = 240;
inline constexpr std::uint32_t most_pieces = 256;

/// Where the record of a process is.
enum class Place : std::uint32_t {
    nowhere = 1, ///< in no file and not in the channel
    file = 2,    ///< in the file with this device and inode
    channel = 3, ///< in the pieces that this slot owns, in their order
};

/// One process at work. Other processes read it at any moment, also after a kill.
struct Slot {
    std::uint32_t place;        ///< Place; 0: an unused slot. Written last
    std::uint32_t closed;       ///< 1: the record is whole
    std::int32_t process;       ///< its id, as it sees itself
    std::uint32_t user;         ///< its effective user
    std::int32_t file_error;    ///< errno: why there is no file, or no whole one; 0: there is
    std::int32_t channel_error; ///< errno: why the record is not in the channel, where it should be
    std::int32_t rank;          ///< -1: none
    std::uint32_t other_name;   ///< 1: HOMING_RECORD is not what the launcher set
    std::uint64_t device;       ///< of the file, while there is one
    std::uint64_t inode;
    std::uint64_t used; ///< bytes of the record in the channel
    std::uint64_t iterations;
    std::uint64_t moved;   ///< base pages
    std::uint64_t refused; ///< base pages
    char program[176];     ///< the executable's name, terminated
};
static_assert(sizeof(Slot) == 256 && slots_begin + most_slots * sizeof(Slot) <= head_bytes);

inline constexpr std::string_view magic = "homing-channel 1\n";

/// What the launcher writes (the upper part), and what all processes count.
struct Head {
    char magic[32];
    std::uint64_t token;
    std::uint64_t pattern_hash; ///< FNV-1a of HOMING_RECORD as the launcher set it
    std::uint64_t folder_device;
    std::uint64_t folder_inode;
    std::int64_t start_ns;
    std::uint32_t piece_count;
    std::uint32_t piece_bytes;
    std::uint32_t programs; ///< program images that found the channel
    std::uint32_t declined; ///< of these, where the user does not want homing
    std::uint32_t next_slot;
    std::uint32_t next_piece;
    std::uint32_t reserved[8];
    std::uint32_t owners[most_pieces]; ///< of each piece: its slot's index + 1
};
static_assert(offsetof(Head, owners) == 128 && sizeof(Head) <= slots_begin);

/// Look for the channel. Once, when the library comes into a process, before the program can close anything.
void join() noexcept;

/// homing works not in this process, because its user said so (HOMING=off, --only).
void decline() noexcept;

/// What the launcher knows about the file that `pattern` names; zeros where it did not set this name.
Expected expected(const char* pattern) noexcept;

/// The slot of this process, claimed at the first call; nullptr: there is no channel, or no slot is left.
Slot* slot(const char* pattern) noexcept;

/// Can this process take pieces? 0, or a negative errno. What it needs of the descriptor is done here.
int prepare() noexcept;

/// The next piece for this process's record, `piece_bytes` of zeros with memory behind them; nullptr: none.
char* take_piece(std::size_t piece_bytes) noexcept;

/// Numbers for the slot, from a row of the record (rows.hpp).
void count(const void* row, std::size_t bytes) noexcept;

/// In a child: the slot is its parent's.
void abandon() noexcept;

} // namespace homing::record::channel
