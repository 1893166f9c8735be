// Which of the loaded ELF objects has an address, told from what dl_iterate_phdr shows of one.
#pragma once

#include "base/pages.hpp"

#include <link.h>

namespace homing {

/// The object's loaded segment that an address lies in; empty where it lies in none.
inline Range segment_of(const dl_phdr_info& object, Address address) noexcept {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = object.dlpi_phdr[i];
        const Address begin = object.dlpi_addr + header.p_vaddr;
        const Range segment{begin, begin + header.p_memsz};
        if (header.p_type == PT_LOAD && segment.contains(address)) return segment;
    }
    return {};
}

/// Is it this library (or the program that it is linked into), whatever its file is called?
inline bool is_this_library(const dl_phdr_info& object) noexcept {
    static const char here = 0;
    return !segment_of(object, reinterpret_cast<Address>(&here)).empty();
}

} // namespace homing
