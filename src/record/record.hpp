// The record file: one header that describes itself, then rows of a fixed size, appended through a shared mapping,
// so that a record can be read after the process was killed. No descriptor stays open.
//
// Layout: 16,384 bytes of header: the line "homing-record 1\n", then JSON (terminated by a newline, padded with
// zeros), then rows. Unused rows at the end of the file are zero (kind 0). The JSON has: format, row_bytes,
// header_bytes, rows {name: {kind, fields: [[name, type, length, offset]...]}}, pid, rank, program, arguments,
// host, start (seconds since the epoch), homing (version), page_bytes.
#pragma once

#include "record/rows.hpp"

#include <cstddef>
#include <string_view>

namespace homing::record {

/// Open the record of this process at `path` (%p, %r expanded). False: not possible, said once to nobody: homing
/// works on without a record. An empty path: no record.
bool open(const char* path) noexcept;

/// Append one row. Any row struct of rows.hpp. Driver thread only; silently nothing where no record is open.
void append_bytes(const void* row, std::size_t bytes) noexcept;
template <class Row> void append(const Row& row) noexcept { append_bytes(&row, sizeof row); }

/// The id of a text in this record (written at its first use; 0 for the empty text).
u32 text(std::string_view value) noexcept;

void fact(std::string_view key, std::string_view value) noexcept;

/// Say something to the user, through the record: the launcher prints it. Equal texts are written once and counted.
enum class Level : u32 { note = 1, warning = 2, not_done = 3 };
void message(Level level, std::string_view value) noexcept;

/// Seconds since open() (or since the first call).
double now() noexcept;

bool is_open() noexcept;

/// After fork the child must not write into the parent's record.
void abandon() noexcept;

/// Trim the file to what was used.
void close() noexcept;

} // namespace homing::record
