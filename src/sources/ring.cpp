#include "sources/ring.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <linux/perf_event.h>

namespace homing {
namespace {

struct Geometry {
    perf_event_mmap_page* control = nullptr;
    const std::uint8_t* data = nullptr;
    std::uint64_t size = 0; ///< of data, a power of two; 0: not usable
};

/// Kernels from 4.1 say where the data is; what they say is believed only as far as it fits the mapping.
Geometry geometry_of(const SamplerRing& ring) noexcept {
    Geometry geometry;
    if (!ring.map || ring.bytes < sizeof(perf_event_mmap_page)) return geometry;
    geometry.control = static_cast<perf_event_mmap_page*>(ring.map);
    std::uint64_t offset = geometry.control->data_offset;
    std::uint64_t size = geometry.control->data_size;
    if (offset == 0 || size == 0) {
        offset = page_bytes();
        size = ring.bytes > offset ? ring.bytes - offset : 0;
    }
    const bool fits =
        offset >= sizeof(perf_event_mmap_page) && offset <= ring.bytes && size <= ring.bytes - offset;
    if (!fits || size < 64 || (size & (size - 1)) != 0) return geometry;
    geometry.data = static_cast<const std::uint8_t*>(ring.map) + offset;
    geometry.size = size;
    return geometry;
}

/// Copy out of the circular buffer.
void copy_out(const Geometry& ring, std::uint64_t position, void* to, std::size_t bytes) noexcept {
    const std::uint64_t at = position & (ring.size - 1);
    const std::size_t first = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, ring.size - at));
    std::memcpy(to, ring.data + at, first);
    std::memcpy(static_cast<std::uint8_t*>(to) + first, ring.data, bytes - first);
}

/// Fields of a sample in the order in which the kernel writes them (perf_event_open(2), PERF_RECORD_SAMPLE).
struct SampleFields {
    std::uint64_t instruction;
    std::uint32_t process, thread;
    std::uint64_t time;
    std::uint64_t address;
    std::uint32_t cpu, reserved;
    std::uint64_t weight, data_source; ///< only where asked for
};
constexpr std::size_t plain_bytes = offsetof(SampleFields, weight);

/// What PERF_SAMPLE_STACK_USER of one word appends: the bytes that were asked for, the word, the bytes that
/// could be read. Where the thread has no user stack, only the first of them, which is 0 then.
struct StackFields {
    std::uint64_t asked, top, read;
};

/// What sample_id_all appends to other records for the same sample_type: TID, TIME, CPU.
struct SampleId {
    std::uint32_t process, thread;
    std::uint64_t time;
    std::uint32_t cpu, reserved;
};

struct AuxFields {
    std::uint64_t offset, size, flags;
    SampleId id;
};

struct LostFields {
    std::uint64_t id, lost;
};

} // namespace

void drain_ring(const SamplerRing& mapped, bool weight, RingVisitor& visitor, RingStatistics& statistics,
                bool stack_top) {
    const Geometry ring = geometry_of(mapped);
    if (ring.size == 0) return;
    // Acquire: records below the head are complete once the head is seen.
    const std::uint64_t head = __atomic_load_n(&ring.control->data_head, __ATOMIC_ACQUIRE);
    std::uint64_t tail = __atomic_load_n(&ring.control->data_tail, __ATOMIC_RELAXED);
    // Programs have hundreds of threads, most of whose rings are empty most of the time: where nothing came,
    // the cache line that their CPUs write is looked at, and stays theirs.
    if (head == tail) return;
    if (head - tail > ring.size) {
        // Cannot be with a writable mapping; if it is, nothing between is trustworthy.
        ++statistics.malformed;
        tail = head;
    }
    const std::size_t sample_bytes = weight ? sizeof(SampleFields) : plain_bytes;
    while (tail != head) {
        perf_event_header header;
        const std::uint64_t left = head - tail;
        if (left < sizeof header) {
            ++statistics.malformed;
            break;
        }
        copy_out(ring, tail, &header, sizeof header);
        if (header.size < sizeof header || header.size > left || header.size % 8 != 0) {
            // Where the next record begins is not known any more: give up what is left.
            ++statistics.malformed;
            break;
        }
        const std::size_t body = header.size - sizeof header;
        const std::uint64_t at = tail + sizeof header;
        switch (header.type) {
        case PERF_RECORD_SAMPLE:
            if (body >= sample_bytes) {
                SampleFields fields = {};
                copy_out(ring, at, &fields, sample_bytes);
                StackFields stack = {};
                if (stack_top && body >= plain_bytes + sizeof stack)
                    copy_out(ring, at + plain_bytes, &stack, sizeof stack);
                const bool readable = stack.asked == sizeof stack.top && stack.read == sizeof stack.top;
                ++statistics.samples;
                visitor.sample({fields.process, fields.thread, fields.time, fields.address, fields.cpu,
                                fields.weight, fields.data_source, fields.instruction,
                                readable ? stack.top : 0});
            } else {
                ++statistics.malformed;
            }
            break;
        case PERF_RECORD_LOST:
            if (body >= sizeof(LostFields)) {
                LostFields fields;
                copy_out(ring, at, &fields, sizeof fields);
                statistics.lost += fields.lost;
            } else {
                ++statistics.malformed;
            }
            break;
        case PERF_RECORD_LOST_SAMPLES:
            if (body >= sizeof(std::uint64_t)) {
                std::uint64_t lost;
                copy_out(ring, at, &lost, sizeof lost);
                statistics.lost += lost;
            } else {
                ++statistics.malformed;
            }
            break;
        case PERF_RECORD_AUX:
            if (body >= sizeof(AuxFields)) {
                AuxFields fields;
                copy_out(ring, at, &fields, sizeof fields);
                if (fields.flags & PERF_AUX_FLAG_TRUNCATED) ++statistics.lost;
                visitor.aux({fields.offset, fields.size, fields.flags, fields.id.cpu});
            } else {
                ++statistics.malformed;
            }
            break;
        case PERF_RECORD_THROTTLE:
            ++statistics.throttled;
            break;
        case PERF_RECORD_UNTHROTTLE:
            break;
        default:
            ++statistics.unknown;
        }
        tail += header.size;
    }
    // Release: the records were read before the kernel may overwrite them.
    __atomic_store_n(&ring.control->data_tail, head, __ATOMIC_RELEASE);
}

std::uint64_t clear_ring(const SamplerRing& mapped) {
    const Geometry ring = geometry_of(mapped);
    if (ring.size == 0) return 0;
    const std::uint64_t head = __atomic_load_n(&ring.control->data_head, __ATOMIC_ACQUIRE);
    const std::uint64_t tail = __atomic_load_n(&ring.control->data_tail, __ATOMIC_RELAXED);
    __atomic_store_n(&ring.control->data_tail, head, __ATOMIC_RELEASE);
    return head - tail;
}

} // namespace homing
