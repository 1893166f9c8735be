// The record file: one header that describes itself, then rows of a fixed size, appended through a shared
// mapping, so that a record can be read after the process was killed. No descriptor stays open.
//
// Layout: 16,384 bytes of header: the line "homing-record 1\n", then JSON (terminated by a newline, padded
// with zeros), then rows. Unused rows at the end of the file are zero (kind 0). The JSON has: format,
// row_bytes, header_bytes, rows {name: {kind, fields: [[name, type, length, offset]...]}}, pid, rank (null
// outside MPI), program, arguments, arguments_truncated, host, start (seconds since the epoch), homing
// (version), page_bytes. Bytes of names that are no UTF-8 are lone surrogates U+DCxx (Python: os.fsencode
// gives the bytes back). A row's first four bytes are its kind, written last; row fields begin at the offsets
// told, little end first.
#pragma once

#include "record/rows.hpp"

#include <cstddef>
#include <string_view>

namespace homing::record {

/// Open the record of this process at `path` (%p, %r, %% expanded; made absolute). False: not possible, and
/// homing works on without a record; where there is no room for one, an empty file stays and says so. An
/// empty path: no record. A file that is there already is replaced only if it is empty or a record (a new
/// file takes its name; another process that still writes the old one goes on).
bool open(const char* path) noexcept;

/// Append one row. Any row struct of rows.hpp. Driver thread only; silently nothing where no record is open.
void append_bytes(const void* row, std::size_t bytes) noexcept;
template <class Row> void append(const Row& row) noexcept { append_bytes(&row, sizeof row); }

/// The id of a text in this record (written at its first use; 0 for the empty text).
u32 text(std::string_view value) noexcept;

void fact(std::string_view key, std::string_view value) noexcept;

/// So many iterations have ended: in the row `progress`, in its place.
void progress(u32 iterations) noexcept;

/// Say something to the user, through the record: the launcher prints it. Equal texts are written once and
/// counted.
enum class Level : u32 { note = 1, warning = 2, not_done = 3 };
void message(Level level, std::string_view value) noexcept;
void message_of_each_line(Level level, std::string_view lines) noexcept;

/// How many messages of a level there were, with or without a record.
u64 messages(Level level) noexcept;

/// Seconds since open() (or since the first call).
double now() noexcept;

bool is_open() noexcept;

/// After fork the child must not write into the parent's record. (Without this call it does not either: all
/// functions but this one do nothing in another process than that which opened the record.)
void abandon() noexcept;

/// Trim the file to what was used.
void close() noexcept;

} // namespace homing::record
