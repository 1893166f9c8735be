// The names of UPMlib (Nikolopoulos et al. 2000, Figures 1 and 2), for C and for Fortran without an
// interface: calls that tell nothing of how they went, so what they could not do is said.
#include "homing/homing.h"

#include "base/inside.hpp"
#include "base/kept_errno.hpp"
#include "base/raw_calls.hpp"
#include "base/uncancelled.hpp"
#include "hooks/api.hpp"
#include "record/record.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <sys/uio.h>

namespace {

using namespace homing;

/// What a call with a result tells, these say once: that they came from a region. What else can be wrong the
/// engine says.
void tell(const char* call, int status, std::atomic<bool>& said) noexcept {
    if (status != HOMING_IN_REGION || said.exchange(true, std::memory_order_relaxed)) return;
    const KeptErrno kept;
    const Inside inside;
    const Uncancelled uncancelled;
    try {
        record::message(record::Level::warning,
                        std::string(call) + " was called inside a parallel region, where it does nothing: it "
                                            "belongs into serial code");
    } catch (...) {
        return; // no memory for a line
    }
}

/// The integer at an address that may be none: the kernel answers EFAULT where reading it would be a signal.
bool read_integer(const void* address, std::int32_t& value) noexcept {
    iovec here{&value, sizeof value};
    iovec there{const_cast<void*>(address), sizeof value};
    return raw::call(SYS_process_vm_readv, raw::process_id(), &here, 1, &there, 1, 0) == sizeof value;
}

/// stated: the size as the program has it, which may be negative.
void refuse(const void* start, std::int64_t stated, int status) noexcept {
    const Inside inside;
    const Uncancelled uncancelled;
    try {
        const char* why = status == HOMING_FULL        ? "there are too many registered areas"
                          : stated == 0                ? "0 bytes are no array"
                          : status == HOMING_IN_REGION ? "the call belongs into serial code"
                          : stated < 0 ? "the size is negative (one that needs 8 bytes: `use homing`)"
                                       : "the program has no such memory (the size is in bytes)";
        char address[24];
        std::snprintf(address, sizeof address, "%p", start);
        record::message(record::Level::warning, std::string("upmlib_memrefcnt(") + address + ", " +
                                                    std::to_string(stated) + ") registers nothing: " + why);
    } catch (...) {
        return;
    }
}

void tell_refused(const void* start, std::int64_t stated, int status) noexcept {
    const KeptErrno kept;
    if (status != HOMING_OK && status != HOMING_ASIDE) refuse(start, stated, status);
}

/// A default integer: sizes from 2 to 4 GiB are negative.
int watch_default(const void* start, std::int32_t size, Address site) noexcept {
    return watch_registered(start, static_cast<std::uint32_t>(size), site);
}

void register_hot(const void* start, std::size_t bytes, Address site) noexcept {
    const int status = watch_registered(start, bytes, site);
    // Fortran that is compiled without underscores calls C's name, and gives the address of the size.
    std::int32_t size = 0;
    if (status == HOMING_INVALID && bytes % alignof(std::int32_t) == 0 &&
        read_integer(reinterpret_cast<const void*>(bytes), size))
        return tell_refused(start, size, watch_default(start, size, site));
    tell_refused(start, static_cast<std::int64_t>(bytes), status);
}

void register_default(const void* start, std::int32_t size, Address site) noexcept {
    tell_refused(start, size, watch_default(start, size, site));
}

constinit std::atomic<bool> migrate_said{false}, record_said{false}, replay_said{false}, undo_said{false};

} // namespace

// Where the program goes on behind the call.
#define SITE reinterpret_cast<Address>(__builtin_return_address(0))

extern "C" {

void upmlib_init(void) {}
void upmlib_memrefcnt(const void* start, size_t bytes) { register_hot(start, bytes, SITE); }
void upmlib_migrate_memory(void) { tell("upmlib_migrate_memory", homing_iteration(), migrate_said); }
void upmlib_record(void) { tell("upmlib_record", homing_record(), record_said); }
void upmlib_replay(void) { tell("upmlib_replay", homing_replay(), replay_said); }
void upmlib_undo(void) { tell("upmlib_undo", homing_undo(), undo_said); }

// As Fortran calls them without an interface: by reference, the size a default integer; with one underscore,
// and with two (-fsecond-underscore).
#define HOMING_FORTRAN_NAMES(name, parameters, call)                                                         \
    HOMING_API void name##_ parameters { call; }                                                             \
    HOMING_API void name##__ parameters { call; }
HOMING_FORTRAN_NAMES(upmlib_init, (void), upmlib_init())
HOMING_FORTRAN_NAMES(upmlib_memrefcnt, (const void* start, const int32_t* bytes),
                     register_default(start, *bytes, SITE))
HOMING_FORTRAN_NAMES(upmlib_migrate_memory, (void), upmlib_migrate_memory())
HOMING_FORTRAN_NAMES(upmlib_record, (void), upmlib_record())
HOMING_FORTRAN_NAMES(upmlib_replay, (void), upmlib_replay())
HOMING_FORTRAN_NAMES(upmlib_undo, (void), upmlib_undo())
#undef HOMING_FORTRAN_NAMES
#undef SITE

} // extern "C"
