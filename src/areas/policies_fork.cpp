// The keeper of policies around a fork(2), and around an mremap(2).
#include "areas/policies.hpp"

#include "areas/proc_maps.hpp"

#include <algorithm>

namespace homing {
namespace {

/// Holds the longest line of /proc/self/maps; small, because a child may have little stack.
constexpr std::size_t line_bytes = 5 * 1024;

} // namespace

/// The parts of the pieces that lie in one private mapping each, with the policy there. No memory is
/// allocated; the visitor may change a piece, but not which there are.
template <class Visit> void PolicyKeeper::each_part(Visit&& visit) noexcept {
    char buffer[line_bytes];
    auto piece = pieces_.begin();
    each_mapping(maps_.c_str(), buffer, [&](const Mapping& mapping) {
        if (mapping.shared) return;
        while (piece != pieces_.end() && piece->second.end <= mapping.range.begin)
            ++piece;
        for (auto at = piece; at != pieces_.end() && at->first < mapping.range.end; ++at) {
            const Range part{std::max(at->first, mapping.range.begin),
                             std::min(at->second.end, mapping.range.end)};
            MemoryPolicy read;
            if (kernel_.policy_at(part.begin, read) == 0) visit(part, read, at->first, at->second);
        }
    });
}

void PolicyKeeper::before_fork() noexcept {
    if (!mutex_.lock_for_fork()) return; // in the middle of the driver's work: the child keeps what it gets
    forks_.fetch_add(1, std::memory_order_release);
    if (std::none_of(pieces_.begin(), pieces_.end(),
                     [](const auto& piece) { return piece.second.wanted[observed].has_value(); }))
        return;
    each_part([this](Range part, const MemoryPolicy& read, Address begin, Piece& piece) {
        // A piece that the program has changed in part meanwhile is the driver's to take apart.
        const bool whole = part.begin == begin && part.end == piece.end;
        if (!piece.wanted[observed] || !whole || read != piece.in_force) return;
        Piece below = piece;
        below.wanted[observed].reset();
        if (kernel_.bind(part, below.top()) != 0) return;
        if (!below.any() || kernel_.policy_at(begin, below.in_force) != 0) below.in_force = below.top();
        piece = below;
    });
}

void PolicyKeeper::after_fork() noexcept { mutex_.unlock_after_fork(); }

void PolicyKeeper::after_fork_in_child() noexcept {
    if (!mutex_.held_for_fork()) return;
    if (!pieces_.empty())
        each_part([this](Range part, const MemoryPolicy& read, Address, const Piece& piece) {
            if (read == piece.in_force && read != piece.found) kernel_.bind(part, piece.found);
        });
    mutex_.unlock_after_fork();
}

bool PolicyKeeper::before_remap(Range range) noexcept {
    // In the driver's own work; or in a child that was made past our handlers, where nobody might unlock.
    if (mutex_.held_by_this_thread() || raw::process_id() != process_) return false;
    mutex_.lock();
    const auto lies_there = [range](Address begin, const Piece& piece) {
        return range.overlaps({begin, piece.end}) && !piece.idle();
    };
    if (std::none_of(pieces_.begin(), pieces_.end(),
                     [&](const auto& piece) { return lies_there(piece.first, piece.second); }))
        return true;
    bool complete = true;
    each_part([&](Range part, const MemoryPolicy& read, Address begin, const Piece& piece) {
        if (!lies_there(begin, piece) || read != piece.in_force) return;
        if (kernel_.bind(part, piece.found) != 0) complete = false;
    });
    for (auto& [begin, piece] : pieces_) {
        if (!lies_there(begin, piece)) continue;
        piece.wanted = {};
        if (complete) piece.in_force = piece.found; // else the driver tries again what is left
    }
    remaps_.fetch_add(1, std::memory_order_release);
    return true;
}

} // namespace homing
