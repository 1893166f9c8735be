// One observed touch of an area.
#pragma once

#include <cstdint>

namespace homing::model {

struct Touch {
    std::uint64_t page = 0;   ///< granule of the area, from 0
    std::uint32_t thread = 0; ///< of the team
    std::uint32_t age = 0;    ///< outer iterations that have passed since
    bool write = false;
};

} // namespace homing::model
