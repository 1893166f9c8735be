// Areas that the program itself names (homing_watch, upmlib_memrefcnt). Called from ordinary code, where a
// lock is fine; only end_named_areas() is for hooks.
#pragma once

#include "areas/areas.hpp"

#include <string_view>
#include <vector>

namespace homing {

inline constexpr std::size_t most_named_areas = 4096;

/// What memory is called that was registered without a name.
inline constexpr const char* unnamed_area = "named";

/// False: there are too many. hot: pages move in such areas only, once there is one (upmlib_memrefcnt). The
/// same memory again gets the new name, if there is one; other memory of the same start replaces it. What is
/// hot stays so until it is forgotten, and less of it changes nothing. site: the address behind the program's
/// call, for reports; 0: its name is the program's.
bool name_area(Range range, std::string_view name, bool hot = false, Address site = 0);
/// Would name_area() change nothing?
bool is_named_so(Range range, std::string_view name, bool hot);
/// [any thread, hooks] This memory goes away, and with it every area that lies in part of it. No lock, no
/// allocation; one load where nothing is named.
void end_named_areas(Range gone) noexcept;
/// False: no such area.
bool forget_named_area(Address start);
/// Areas named so far whose memory did not go, in no order. Their names live as long as the process; null:
/// they have none.
void named_areas(std::vector<AreaEntry>& out);
/// Of those that are hot, ascending.
std::vector<Range> hot_ranges();
/// Differs whenever the set changed. Cheap.
std::uint64_t named_areas_version() noexcept;

} // namespace homing
