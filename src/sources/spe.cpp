#include "sources/spe.hpp"

namespace homing {
namespace {

enum class Kind { bad, padding, end, timestamp, events, source, operation, address, counter, context };

struct Packet {
    Kind kind = Kind::bad;
    unsigned index = 0; ///< which address or counter, or class of the operation
    std::uint64_t payload = 0;
    std::size_t bytes = 0; ///< 0: more than there are
};

Packet packet_at(std::span<const std::uint8_t> bytes, std::size_t offset) noexcept {
    const std::span<const std::uint8_t> rest = bytes.subspan(offset);
    Packet packet;
    packet.bytes = 1;
    std::uint8_t header = rest[0];
    if (header == 0x00) {
        packet.kind = Kind::padding;
        return packet;
    }
    if (header == 0x01) {
        packet.kind = Kind::end;
        return packet;
    }
    std::size_t header_bytes = 1;
    unsigned high_index = 0;
    if ((header & 0xfc) == 0x20) { // extended format
        if (rest.size() < 2) {
            packet.bytes = 0;
            return packet;
        }
        high_index = (header & 3u) << 3;
        header = rest[1];
        header_bytes = 2;
        if (header == 0x00) {
            // Alignment: padding up to the next multiple of a power of two; pieces of the buffer begin
            // aligned.
            const std::size_t unit = std::size_t{2} << (rest[0] & 0xf);
            const std::size_t skipped = unit - offset % unit;
            packet.kind = Kind::padding;
            packet.bytes = skipped <= rest.size() ? skipped : 0;
            return packet;
        }
    }
    if (header_bytes == 1 && header == 0x71)
        packet.kind = Kind::timestamp;
    else if (header_bytes == 1 && (header & 0xcf) == 0x42)
        packet.kind = Kind::events;
    else if (header_bytes == 1 && (header & 0xcf) == 0x43)
        packet.kind = Kind::source;
    else if (header_bytes == 1 && (header & 0xfc) == 0x64)
        packet.kind = Kind::context;
    else if (header_bytes == 1 && (header & 0xfc) == 0x48)
        packet.kind = Kind::operation;
    else if ((header & 0xf8) == 0xb0)
        packet.kind = Kind::address;
    else if ((header & 0xf8) == 0x98)
        packet.kind = Kind::counter;
    else
        return packet; // bad
    packet.index = packet.kind == Kind::operation ? header & 3u : high_index | (header & 7u);

    const std::size_t size = std::size_t{1} << (header >> 4 & 3);
    if (rest.size() < header_bytes + size) {
        packet.bytes = 0;
        return packet;
    }
    for (std::size_t i = 0; i < size; ++i)
        packet.payload |= static_cast<std::uint64_t>(rest[header_bytes + i]) << 8 * i;
    packet.bytes = header_bytes + size;
    return packet;
}

} // namespace

void decode_spe(std::span<const std::uint8_t> bytes, std::vector<SpeRecord>& records,
                SpeStatistics& statistics) {
    SpeRecord record;
    bool begun = false;
    bool spoiled = false;
    const auto finish = [&] {
        if (begun && !spoiled) {
            records.push_back(record);
            ++statistics.records;
        }
        record = {};
        begun = spoiled = false;
    };
    for (std::size_t at = 0; at < bytes.size();) {
        const Packet packet = packet_at(bytes, at);
        if (packet.bytes == 0) {
            ++statistics.malformed;
            return;
        }
        at += packet.bytes;
        switch (packet.kind) {
        case Kind::padding:
            continue;
        case Kind::bad:
            if (!spoiled) ++statistics.malformed;
            spoiled = true;
            continue;
        case Kind::end:
        case Kind::timestamp:
            finish();
            continue;
        case Kind::events:
            record.events = packet.payload;
            break;
        case Kind::source:
            record.has_source = true;
            record.source = static_cast<std::uint16_t>(packet.payload);
            break;
        case Kind::operation:
            record.memory_operation = packet.index == 1;
            record.store = record.memory_operation && (packet.payload & 1) != 0;
            break;
        case Kind::address:
            if (packet.index == 2) { // data, virtual; the highest byte may be a tag
                record.address = static_cast<Address>(packet.payload & ((std::uint64_t{1} << 56) - 1));
                record.has_address = true;
            }
            break;
        case Kind::counter:
            if (packet.index == 0) record.total_latency = static_cast<std::uint16_t>(packet.payload);
            break;
        case Kind::context:
            break;
        }
        begun = true;
    }
    if (begun) ++statistics.malformed;
}

bool spe_went_beyond_caches(const SpeRecord& record, bool neoverse) noexcept {
    if (neoverse && record.has_source) {
        // 0 first level, 8 second level, 9 peer core, 10 own cluster, 11 system cache, 12 peer cluster, 13
        // remote socket, 14 memory.
        if (record.source == 13 || record.source == 14) return true;
        if (record.source == 0 || (record.source >= 8 && record.source <= 12)) return false;
    }
    if ((record.events & (spe_last_level_miss | spe_remote_access)) != 0) return true;
    if ((record.events & spe_last_level_access) != 0) return false;
    return (record.events & spe_first_level_refill) != 0;
}

} // namespace homing
