// One loaded ELF object and the arrays in it (areas.hpp has static_areas(), which asks for all objects).
#pragma once

#include "areas/areas.hpp"

#include <link.h>
#include <string>
#include <vector>

namespace homing {

struct LoadedObject {
    std::string file;                ///< to open: a path, or /proc/self/exe
    std::string path;                ///< to show, and for readers of the record
    Address bias = 0;                ///< what the loader added to the file's addresses
    std::vector<ElfW(Phdr)> headers; ///< the program headers as they are in memory

    /// The lowest address it occupies: identifies it while it is loaded.
    Address begin() const noexcept;
};

/// The arrays of `minimum` bytes or more of an object, in order of address, appended to `out`. The file is
/// data that anybody may have written: whatever is wrong with it costs names, never more. A file that is not
/// the one that was loaded (its program headers differ) is not believed at all.
void object_areas(const LoadedObject& object, std::size_t minimum, std::vector<AreaEntry>& out);

/// Objects whose data is no array of the program: the loader, the C and OpenMP runtimes, homing itself.
bool is_runtime_object(std::string_view path) noexcept;

} // namespace homing
