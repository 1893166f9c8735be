// What the functions of homing.h do, for those that stand for them under other names (upmlib.cpp).
#pragma once

#include "base/pages.hpp"

#include <cstddef>

namespace homing {

/// homing_watch_hot() for a call that gives no name: reports find the array's where the call is. site: the
/// address behind it.
int watch_registered(const void* start, std::size_t bytes, Address site) noexcept;

} // namespace homing
