// The header of a record file (record.hpp has its layout).
#pragma once

#include <cstddef>
#include <string_view>

namespace homing::record {

inline constexpr std::size_t header_bytes = 16384;
inline constexpr std::string_view header_line = "homing-record 1\n";

/// Fill `header` (zeros, `bytes` long). False where it does not fit.
bool write_header(char* header, std::size_t bytes) noexcept;

} // namespace homing::record
