#include "hooks/allocator/callers.hpp"

#include "areas/areas.hpp"
#include "base/kept_errno.hpp"
#include "base/loaded_object.hpp"
#include "hooks/allocator/heap.hpp"
#include "hooks/export.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <link.h>
#include <unwind.h>

namespace homing::hooks {
namespace {

using detail::c_library;
using detail::libraries;
using detail::loader;

struct Frames {
    Address* out;
    int count;
    Address first; ///< 0: it was met
};

_Unwind_Reason_Code collect(_Unwind_Context* context, void* data) {
    auto* frames = static_cast<Frames*>(data);
    const Address at = _Unwind_GetIP(context);
    if (frames->first != 0 && at != frames->first) return _URC_NO_REASON;
    frames->first = 0;
    if (frames->count == max_origin_frames) return _URC_END_OF_STACK;
    frames->out[frames->count++] = at;
    return _URC_NO_REASON;
}

constinit bool loader_asks_us = false;
/// The code of an allocator that stands in the C library's place: of a library behind us, or of the program,
/// which then calls that one and not us.
constinit Range allocator;
constinit bool allocator_is_first = false;

struct TwoPlaces {
    Address a, b;
    bool together;
};

int find_both(dl_phdr_info* object, std::size_t, void* data) noexcept {
    auto& places = *static_cast<TwoPlaces*>(data);
    if (segment_of(*object, places.a).empty()) return 0;
    places.together = !segment_of(*object, places.b).empty();
    return 1;
}

int find_code(dl_phdr_info* object, std::size_t, void* code) noexcept {
    auto& found = *static_cast<Range*>(code);
    const Range segment = segment_of(*object, found.begin);
    if (segment.empty()) return 0;
    found = segment;
    return 1;
}

/// Does this object, ours, have that function?
int is_ours(dl_phdr_info* object, std::size_t, void* function) noexcept {
    const auto address = reinterpret_cast<Address>(*static_cast<const void**>(function));
    return is_this_library(*object) && !segment_of(*object, address).empty();
}

} // namespace

bool same_object(const void* a, const void* b) noexcept {
    TwoPlaces places{reinterpret_cast<Address>(a), reinterpret_cast<Address>(b), false};
    ::dl_iterate_phdr(find_both, &places);
    return places.together;
}

int origin_of(Address from, Address* origin) noexcept {
    Frames frames{origin, 0, from};
    const KeptErrno kept;
    _Unwind_Backtrace(collect, &frames);
    return frames.count;
}

MappingLog::Owner owner_of_mappings(Address code) noexcept {
    if (!allocator.contains(code)) return MappingLog::Owner::program;
    return allocator_is_first ? MappingLog::Owner::unseen : MappingLog::Owner::hooked;
}

void know_c_library() noexcept {
    // One of its functions that no hook has taken the place of, nor a loader chooses at run time.
    Range code{reinterpret_cast<Address>(next_definition("gnu_get_libc_version")), 0};
    if (code.begin && ::dl_iterate_phdr(find_code, &code)) c_library = code;
    code = {reinterpret_cast<Address>(next_definition("__tls_get_addr")), 0};
    if (code.begin && ::dl_iterate_phdr(find_code, &code)) loader = code;
    libraries = {std::min(c_library.begin, loader.begin), std::max(c_library.end, loader.end)};
    if (c_library.empty()) libraries.begin = loader.begin;
    if (loader.empty()) libraries.begin = c_library.begin;
    const void* first = ::dlsym(RTLD_DEFAULT, "calloc");
    loader_asks_us = loader.bytes() > 0 && ::dl_iterate_phdr(is_ours, &first);
    first = ::dlsym(RTLD_DEFAULT, "malloc");
    allocator_is_first = !same_object(first, reinterpret_cast<const void*>(&find_code));
    if (!allocator_is_first) first = next_definition("malloc");
    code = {reinterpret_cast<Address>(first), 0};
    if (code.begin && !c_library.contains(code.begin) && ::dl_iterate_phdr(find_code, &code))
        allocator = code;
}

bool loader_uses_our_allocator() noexcept { return loader_asks_us; }

} // namespace homing::hooks
