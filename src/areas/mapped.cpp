#include "areas/mapped.hpp"

#include <algorithm>
#include <utility>

namespace homing {

void MappingLog::Span::widen(Range range) noexcept {
    for (Address first = begin_.load(std::memory_order_relaxed);
         range.begin < first && !begin_.compare_exchange_weak(first, range.begin);) {
    }
    for (Address last = end_.load(std::memory_order_relaxed);
         range.end > last && !end_.compare_exchange_weak(last, range.end);) {
    }
}

bool MappingLog::add(const Entry& entry) noexcept {
    if (entry.event == Event::mapped) mapped_.widen(entry.range);
    std::uint64_t number = claimed_.load(std::memory_order_seq_cst);
    do {
        if (number - taken_.load(std::memory_order_acquire) >= capacity) {
            if (entry.event == Event::gone) lost_gone_.widen(entry.range);
            lost_.fetch_add(1, std::memory_order_seq_cst);
            return false;
        }
    } while (!claimed_.compare_exchange_weak(number, number + 1, std::memory_order_seq_cst));
    Slot& slot = slots_[number % capacity];
    slot.entry = entry;
    slot.written.store(number + 1, std::memory_order_release);
    return true;
}

bool MappingLog::take(Entry& entry, bool& lost) noexcept {
    const std::uint64_t number = taken_.load(std::memory_order_relaxed);
    const Slot& slot = slots_[number % capacity];
    if (slot.written.load(std::memory_order_acquire) != number + 1) {
        // Not while an entry is being written: what it, or one behind it, maps may be what was lost.
        const std::uint64_t now = lost_.load(std::memory_order_seq_cst);
        if (claimed_.load(std::memory_order_seq_cst) == number) lost |= std::exchange(seen_lost_, now) != now;
        return false;
    }
    entry = slot.entry;
    taken_.store(number + 1, std::memory_order_release);
    return true;
}

MappingLog& mapping_log() noexcept {
    static constinit MappingLog log;
    return log;
}

std::vector<MappedMemory::Gone> MappedMemory::follow() {
    std::vector<Gone> gone;
    MappingLog::Entry entry;
    bool lost = false;
    while (log_.take(entry, lost)) {
        cut(entry.range);
        switch (entry.event) {
        case MappingLog::Event::gone:
            gone.push_back({entry.range, entry.stays, entry.newest_block});
            break;
        case MappingLog::Event::moved:
            if (const auto before = std::ranges::find(went_, entry.from, &std::pair<Address, Mapping>::first);
                before != went_.end())
                add(entry.range, before->second);
            break;
        case MappingLog::Event::mapped: {
            Mapping mapping;
            mapping.owner = entry.owner;
            for (const Address frame : entry.origin)
                if (frame) mapping.origin.push_back(frame);
            add(entry.range, std::move(mapping));
        }
        }
    }
    // What went without a word may be anything by now, be it mapped or not: a thread's stack, say.
    if (lost) {
        cut(log_.lost_gone());
        went_.clear();
    }
    return gone;
}

void MappedMemory::add(Range range, Mapping mapping) {
    mapping.end = range.end;
    mapping.generation = ++generation_;
    mappings_.insert_or_assign(range.begin, std::move(mapping));
}

void MappedMemory::cut(Range gone) {
    constexpr std::size_t most_remembered = 16; // between the two entries of one that moves
    auto at = mappings_.upper_bound(gone.begin);
    if (at != mappings_.begin()) --at;
    while (at != mappings_.end() && at->first < gone.end) {
        const Range there{at->first, at->second.end};
        if (!there.overlaps(gone)) {
            ++at;
            continue;
        }
        const Mapping mapping = at->second;
        at = mappings_.erase(at);
        went_.emplace_front(there.begin, mapping);
        if (went_.size() > most_remembered) went_.pop_back();
        if (there.begin < gone.begin) {
            Mapping before = mapping;
            before.end = gone.begin;
            mappings_.emplace(there.begin, std::move(before));
        }
        if (gone.end < there.end) mappings_.emplace(gone.end, mapping);
    }
}

std::vector<AreaEntry> MappedMemory::areas(std::span<const AreaEntry> others, std::size_t smallest) const {
    std::vector<AreaEntry> found;
    auto other = others.begin();
    for (const auto& placed : mappings_) {
        const Mapping& mapping = placed.second;
        const auto add = [&](Range part) {
            part = whole_pages(part);
            if (part.bytes() < smallest) return;
            AreaEntry entry;
            entry.range = part;
            entry.kind = AreaKind::mapping;
            entry.generation = mapping.generation;
            std::copy(mapping.origin.begin(), mapping.origin.end(), entry.origin);
            found.push_back(entry);
        };
        Address at = placed.first;
        while (other != others.end() && other->range.end <= at)
            ++other;
        for (auto within = other; within != others.end() && within->range.begin < mapping.end; ++within) {
            add({at, std::max(at, within->range.begin)});
            at = std::max(at, within->range.end);
        }
        add({at, std::max(at, mapping.end)});
    }
    return found;
}

std::optional<MappingLog::Owner> MappedMemory::owner(Address address) const noexcept {
    auto at = mappings_.upper_bound(address);
    if (at == mappings_.begin()) return std::nullopt;
    --at;
    if (address >= at->second.end) return std::nullopt;
    return at->second.owner;
}

} // namespace homing
