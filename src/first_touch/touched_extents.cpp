#include "first_touch/touched_extents.hpp"

#include "base/pages.hpp"

#include <algorithm>
#include <iterator>

namespace homing {

bool TouchedExtents::is_first(Address address, double time) {
    if (!options_.hint_faults) return true;
    const auto [known, fresh] = first_.try_emplace(address / around, time);
    return fresh || time - known->second < seconds_of_one_touch;
}

void TouchedExtents::add(Address address, Address code, std::int32_t thread, std::int32_t node, double time,
                         std::uint32_t stands_for) {
    if (!is_first(address, time)) return;
    const std::uint64_t joined = options_.huge ? joined_bytes_of_huge_pages : joined_bytes;
    const Address page = address / page_bytes() * page_bytes();
    const Address end = page + page_bytes();
    auto& pieces = extents_[{code, thread}];
    const auto next = pieces.upper_bound(page);
    const auto before = next == pieces.begin() ? pieces.end() : std::prev(next);
    const auto take = [&](TouchedExtent& piece) {
        piece.range.begin = std::min(piece.range.begin, page);
        piece.range.end = std::max(piece.range.end, end);
        ++piece.samples;
        piece.faults += stands_for;
        piece.last = time;
    };
    if (before != pieces.end() && page < before->second.range.end + joined) {
        TouchedExtent& piece = before->second;
        take(piece);
        if (next != pieces.end() && next->second.range.begin < piece.range.end + joined) { // both are one now
            const TouchedExtent& other = next->second;
            if (other.first < piece.first) piece.node = other.node;
            piece.range.end = std::max(piece.range.end, other.range.end);
            piece.samples += other.samples;
            piece.faults += other.faults;
            piece.first = std::min(piece.first, other.first);
            pieces.erase(next);
            --count_;
        }
        return;
    }
    if (next != pieces.end() && next->second.range.begin < end + joined) {
        TouchedExtent piece = next->second;
        pieces.erase(next);
        take(piece);
        pieces.emplace(piece.range.begin, piece);
        return;
    }
    if (count_ == most) {
        left_out_ += stands_for;
        return;
    }
    ++count_;
    pieces.emplace(page, TouchedExtent{code, thread, node, {page, end}, 1, stands_for, time, time});
}

std::vector<TouchedExtent> TouchedExtents::extents() const {
    std::vector<TouchedExtent> all;
    all.reserve(count_);
    for (const auto& [who, pieces] : extents_)
        for (const auto& [begin, piece] : pieces)
            all.push_back(piece);
    return all;
}

} // namespace homing
