#include "areas/policies.hpp"

#include "areas/proc_maps.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <linux/mempolicy.h>

// Headers before Linux 5.12 do not have it.
#ifndef MPOL_F_NUMA_BALANCING
#define MPOL_F_NUMA_BALANCING (1 << 13)
#endif

namespace homing {
namespace {

/// MPOL_PREFERRED_MANY, which headers before Linux 5.15 do not have.
constexpr int preferred_many = 5;

Range intersection(Range a, Range b) noexcept { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

/// Does the balancer scan memory of this policy, that of the task being `task`? (mm/mempolicy.c,
/// vma_policy_mof: only the default policy and those that ask for it.)
bool balanced(const MemoryPolicy& policy, const MemoryPolicy& task) noexcept {
    const MemoryPolicy& in_force = policy.plain_mode() == MPOL_DEFAULT ? task : policy;
    return in_force.plain_mode() == MPOL_DEFAULT || (in_force.mode & MPOL_F_NUMA_BALANCING) != 0;
}

} // namespace

bool read_mappings(const char* path, std::span<const Range> ranges, std::vector<MappedRange>& mappings) {
    mappings.clear();
    auto wanted = ranges.begin();
    std::vector<char> buffer(64 * 1024);
    return each_mapping(path, buffer, [&](const Mapping& mapping) {
        while (wanted != ranges.end() && wanted->end <= mapping.range.begin)
            ++wanted;
        if (wanted != ranges.end() && mapping.range.overlaps(*wanted))
            mappings.push_back({mapping.range, mapping.shared});
    });
}

MemoryPolicy owned_policy(NodeSet allowed) noexcept { return {MPOL_BIND | MPOL_F_STATIC_NODES, allowed}; }

// Under MPOL_F_NUMA_BALANCING a page that faults may go to the node of the thread that touched it if that is
// one of the policy's (mm/mempolicy.c, mpol_misplaced), whichever of the two modes the policy has. What
// differs is how strictly pages to come are held to those nodes.
MemoryPolicy observed_policy(int node) noexcept {
    NodeSet one;
    one.add(node);
    return {preferred_many | MPOL_F_STATIC_NODES | MPOL_F_NUMA_BALANCING, one};
}

MemoryPolicy strictly_observed_policy(int node) noexcept {
    NodeSet one;
    one.add(node);
    return {MPOL_BIND | MPOL_F_STATIC_NODES | MPOL_F_NUMA_BALANCING, one};
}

PolicyKeeper::PolicyKeeper(Kernel& kernel, std::string maps) : kernel_(kernel), maps_(std::move(maps)) {}

/// Make `address` a border of pieces; returns the first piece that begins at or after it.
PolicyKeeper::Pieces::iterator PolicyKeeper::split_at(Address address) {
    const auto after = pieces_.lower_bound(address);
    if (after == pieces_.begin()) return after;
    const auto before = std::prev(after);
    if (before->second.end <= address) return after;
    Piece right = before->second;
    before->second.end = address;
    return pieces_.emplace_hint(after, address, right);
}

/// After this each piece in the range lies in one mapping or in none.
void PolicyKeeper::split_at_borders(Range range, std::span<const MappedRange> mappings) {
    split_at(range.begin);
    split_at(range.end);
    for (const MappedRange& mapping : mappings) {
        const Range part = intersection(mapping.range, range);
        if (part.empty()) continue;
        split_at(part.begin);
        split_at(part.end);
    }
}

void PolicyKeeper::merge_around(Range range) {
    auto piece = pieces_.lower_bound(range.begin);
    if (piece != pieces_.begin()) --piece;
    while (piece != pieces_.end() && piece->first <= range.end) {
        const auto next = std::next(piece);
        if (next == pieces_.end()) return;
        if (piece->second.end == next->first && piece->second.same_state(next->second)) {
            piece->second.end = next->second.end;
            pieces_.erase(next);
        } else {
            piece = next;
        }
    }
}

PolicyKeeper::Pieces::const_iterator PolicyKeeper::piece_at(Address address) const noexcept {
    auto piece = pieces_.upper_bound(address);
    if (piece == pieces_.begin()) return pieces_.end();
    --piece;
    return address < piece->second.end ? piece : pieces_.end();
}

/// A block that mremap moved here with our policy on it had another policy before ours.
MemoryPolicy PolicyKeeper::read_as_found(const MemoryPolicy& read) const noexcept {
    for (const Ours& ours : ours_)
        if (ours.in_force == read) return ours.found;
    return read;
}

void PolicyKeeper::remember(const Piece& piece) {
    for (Ours& ours : ours_)
        if (ours.in_force == piece.in_force) {
            ours.found = piece.found;
            return;
        }
    if (piece.in_force != piece.found) ours_.push_back({piece.in_force, piece.found});
}

/// Pieces for all private memory of the range: old ones where our policy is still in force, new ones with the
/// policy that is found elsewhere.
int PolicyKeeper::cover(Range range, std::span<const MappedRange> mappings, Outcome& outcome) {
    split_at_borders(range, mappings);
    Address at = range.begin;
    const auto drop = [this, &outcome](Range gone) {
        auto piece = pieces_.lower_bound(gone.begin);
        while (piece != pieces_.end() && piece->first < gone.end)
            piece = pieces_.erase(piece);
        outcome.left_alone += gone.bytes();
    };
    for (const MappedRange& mapping : mappings) {
        const Range part = intersection(mapping.range, range);
        if (part.empty()) continue;
        if (at < part.begin) drop({at, part.begin});
        at = part.end;
        if (mapping.shared) {
            drop(part);
            continue;
        }
        // One private mapping has one policy: it is read once.
        MemoryPolicy read;
        if (const int error = kernel_.policy_at(part.begin, read)) return error;
        Address begin = part.begin;
        auto piece = pieces_.lower_bound(part.begin);
        while (begin < part.end) {
            if (piece != pieces_.end() && piece->first == begin) {
                if (piece->second.in_force != read) {
                    // The program bound it, or mapped it anew.
                    piece->second.found = read_as_found(read);
                    piece->second.in_force = read;
                    piece->second.wanted = {};
                }
            } else {
                const Address end =
                    piece == pieces_.end() ? part.end : std::min<Address>(part.end, piece->first);
                Piece fresh;
                fresh.end = end;
                fresh.found = read_as_found(read);
                fresh.in_force = read;
                piece = pieces_.emplace_hint(piece, begin, fresh);
            }
            begin = piece->second.end;
            ++piece;
        }
    }
    if (at < range.end) drop({at, range.end});
    return 0;
}

/// Bring what should be in force into force.
int PolicyKeeper::put(Address begin, Piece& piece) {
    const MemoryPolicy policy = piece.top();
    if (const int error = kernel_.bind({begin, piece.end}, policy)) return error;
    // The kernel may tell it in other words (nodes outside the cpuset left out); those will be compared.
    if (!piece.any() || kernel_.policy_at(begin, piece.in_force) != 0) piece.in_force = policy;
    if (piece.any()) remember(piece);
    return 0;
}

int PolicyKeeper::set_one(std::size_t layer, Range range, const MemoryPolicy& policy,
                          std::span<const MappedRange> mappings, Outcome& outcome) {
    if (range.empty()) return 0;
    Outcome this_one;
    int error = cover(range, mappings, this_one);

    struct Undo {
        Pieces::iterator piece;
        std::array<std::optional<MemoryPolicy>, layers> wanted;
        bool touched;
    };
    std::vector<Undo> done;
    const auto first = pieces_.lower_bound(range.begin);
    for (auto piece = first; !error && piece != pieces_.end() && piece->first < range.end; ++piece) {
        const MemoryPolicy before = piece->second.top();
        const bool fresh = !piece->second.any();
        done.push_back({piece, piece->second.wanted, false});
        piece->second.wanted[layer] = policy;
        if (fresh || !(piece->second.top() == before)) {
            done.back().touched = true;
            error = put(piece->first, piece->second);
        }
        if (!error) this_one.bytes += piece->second.end - piece->first;
    }
    if (error) {
        // A call over several mappings may have changed some before it failed: undo that one, too.
        for (auto undo = done.rbegin(); undo != done.rend(); ++undo) {
            undo->piece->second.wanted = undo->wanted;
            if (undo->touched) put(undo->piece->first, undo->piece->second);
        }
        this_one.bytes = 0;
    }
    // Pieces that hold nothing: covered but not set, or set back.
    for (auto piece = pieces_.lower_bound(range.begin); piece != pieces_.end() && piece->first < range.end;) {
        piece = piece->second.idle() ? pieces_.erase(piece) : std::next(piece);
    }
    merge_around(range);
    outcome.bytes += this_one.bytes;
    outcome.left_alone += this_one.left_alone;
    return error;
}

PolicyKeeper::Outcome PolicyKeeper::set(Layer layer, std::span<Request> requests) {
    const std::lock_guard holding(mutex_);
    Outcome outcome;
    std::vector<Range> ranges;
    ranges.reserve(requests.size());
    for (Request& request : requests) {
        request.range = whole_pages(request.range);
        ranges.push_back(request.range);
    }
    std::vector<MappedRange> mappings;
    const bool known = read_mappings(maps_.c_str(), ranges, mappings);
    auto first = mappings.cbegin();
    for (Request& request : requests) {
        while (first != mappings.cend() && first->range.end <= request.range.begin)
            ++first;
        auto last = first;
        while (last != mappings.cend() && last->range.begin < request.range.end)
            ++last;
        request.error = known ? set_one(static_cast<std::size_t>(layer), request.range, request.policy,
                                        std::span<const MappedRange>(first, last), outcome)
                              : EIO;
        if (request.error) {
            ++outcome.failed;
            if (!outcome.error) outcome.error = request.error;
        }
    }
    return outcome;
}

PolicyKeeper::Outcome PolicyKeeper::own(std::span<const Range> ranges, NodeSet allowed) {
    const std::lock_guard holding(mutex_);
    Outcome outcome;
    std::vector<Range> whole;
    whole.reserve(ranges.size());
    for (Range range : ranges)
        whole.push_back(whole_pages(range));
    std::vector<MappedRange> mappings;
    if (!read_mappings(maps_.c_str(), whole, mappings)) {
        outcome.failed = ranges.size();
        outcome.error = EIO;
        return outcome;
    }
    MemoryPolicy task;
    if (kernel_.task_policy(task) != 0) task = {};
    auto first = mappings.cbegin();
    for (Range range : whole) {
        while (first != mappings.cend() && first->range.end <= range.begin)
            ++first;
        int error = 0;
        std::size_t mapped = 0;
        for (auto mapping = first; mapping != mappings.cend() && mapping->range.begin < range.end;
             ++mapping) {
            const Range part = intersection(mapping->range, range);
            mapped += part.bytes();
            if (mapping->shared) {
                outcome.left_alone += part.bytes();
                continue;
            }
            MemoryPolicy read;
            if (const int unread = kernel_.policy_at(part.begin, read)) {
                if (!error) error = unread;
                continue;
            }
            // Under a layer of ours the mapping shows ours; what counts is what lies below, piece by piece.
            for (Range piece{part.begin, 0}; piece.begin < part.end; piece.begin = piece.end) {
                MemoryPolicy below = read_as_found(read);
                const auto known = piece_at(piece.begin);
                if (known != pieces_.end()) {
                    piece.end = std::min<Address>(part.end, known->second.end);
                    if (known->second.in_force == read) below = known->second.found;
                } else {
                    const auto next = pieces_.lower_bound(piece.begin);
                    piece.end = next == pieces_.end() ? part.end : std::min<Address>(part.end, next->first);
                }
                if (!balanced(below, task)) {
                    outcome.left_alone += piece.bytes();
                    continue;
                }
                const int refused =
                    set_one(static_cast<std::size_t>(Layer::owned), piece, owned_policy(allowed),
                            std::span<const MappedRange>(mapping, mapping + 1), outcome);
                if (!error) error = refused;
            }
        }
        outcome.left_alone += range.bytes() - mapped;
        if (error) {
            ++outcome.failed;
            if (!outcome.error) outcome.error = error;
        }
    }
    return outcome;
}

/// Without `mappings` (they could not be read) every piece counts as mapped.
void PolicyKeeper::clear_one(unsigned which, Range range, const std::vector<MappedRange>* mappings,
                             Outcome& outcome) {
    std::span<const MappedRange> known; // those of the range alone: there may be thousands of both
    if (mappings) {
        const auto first = std::ranges::partition_point(
            *mappings, [&](const MappedRange& one) { return one.range.end <= range.begin; });
        known = {first, std::partition_point(first, mappings->end(), [&](const MappedRange& one) {
                     return one.range.begin < range.end;
                 })};
    }
    split_at_borders(range, known);
    auto mapping = known.begin();
    for (auto at = pieces_.lower_bound(range.begin); at != pieces_.end() && at->first < range.end;) {
        Piece& piece = at->second;
        const std::size_t bytes = piece.end - at->first;
        bool live = true;
        if (mappings) {
            while (mapping != known.end() && mapping->range.end <= at->first)
                ++mapping;
            live = mapping != known.end() && mapping->range.contains(at->first) && !mapping->shared;
        }
        MemoryPolicy read;
        const int unread = live ? kernel_.policy_at(at->first, read) : 0;
        if (!live || (!unread && read != piece.in_force)) {
            outcome.left_alone += bytes;
            at = pieces_.erase(at);
            continue;
        }
        if (piece.idle()) {
            at = pieces_.erase(at);
            continue;
        }
        const bool was_stuck = !piece.any();
        bool asked = was_stuck;
        for (std::size_t layer = 0; layer < layers; ++layer) {
            if ((which >> layer & 1) == 0 || !piece.wanted[layer]) continue;
            piece.wanted[layer].reset();
            asked = true;
        }
        if (!asked) {
            ++at;
            continue;
        }
        // in_force may be told in other words than wanted; binding once more than needed does no harm.
        const int error = unread ? unread : put(at->first, piece);
        if (error) {
            ++outcome.failed;
            if (!outcome.error) outcome.error = error;
            ++at;
        } else {
            outcome.bytes += bytes;
            at = piece.any() ? std::next(at) : pieces_.erase(at);
        }
    }
    merge_around(range);
}

PolicyKeeper::Outcome PolicyKeeper::clear_layers(unsigned which, std::span<const Range> ranges) {
    Outcome outcome;
    if (pieces_.empty()) return outcome;
    std::vector<MappedRange> mappings;
    const bool known = read_mappings(maps_.c_str(), ranges, mappings);
    for (Range range : ranges)
        if (!range.empty()) clear_one(which, range, known ? &mappings : nullptr, outcome);
    return outcome;
}

PolicyKeeper::Outcome PolicyKeeper::clear(Layer layer, std::span<const Range> ranges) {
    std::vector<Range> whole;
    whole.reserve(ranges.size());
    for (Range range : ranges)
        whole.push_back(whole_pages(range));
    const std::lock_guard holding(mutex_);
    return clear_layers(1u << static_cast<unsigned>(layer), whole);
}

PolicyKeeper::Outcome PolicyKeeper::clear_all() {
    const std::lock_guard holding(mutex_);
    std::vector<Range> all;
    all.reserve(pieces_.size());
    for (const auto& [begin, piece] : pieces_) {
        if (!all.empty() && all.back().end == begin)
            all.back().end = piece.end;
        else
            all.push_back({begin, piece.end});
    }
    return clear_layers((1u << layers) - 1, all);
}

std::size_t PolicyKeeper::bytes(Layer layer) const noexcept {
    const std::lock_guard holding(mutex_);
    std::size_t sum = 0;
    for (const auto& [begin, piece] : pieces_)
        if (piece.wanted[static_cast<std::size_t>(layer)]) sum += piece.end - begin;
    return sum;
}

bool PolicyKeeper::holds(Layer layer, Range range) const noexcept {
    const std::lock_guard holding(mutex_);
    for (Address at = range.begin; at < range.end;) {
        const auto piece = piece_at(at);
        if (piece == pieces_.end() || !piece->second.wanted[static_cast<std::size_t>(layer)]) return false;
        at = piece->second.end;
    }
    return true;
}

std::optional<MemoryPolicy> PolicyKeeper::found(Address address) const noexcept {
    const std::lock_guard holding(mutex_);
    const auto piece = piece_at(address);
    if (piece == pieces_.end() || piece->second.idle()) return std::nullopt;
    return piece->second.found;
}

bool PolicyKeeper::bound_by_program(Address address) const noexcept {
    MemoryPolicy policy;
    if (found(address) || kernel_.policy_at(address, policy) != 0) return false;
    MemoryPolicy task;
    return policy.plain_mode() == MPOL_BIND && (kernel_.task_policy(task) != 0 || task != policy);
}

std::size_t PolicyKeeper::stuck_bytes() const noexcept {
    const std::lock_guard holding(mutex_);
    std::size_t sum = 0;
    for (const auto& [begin, piece] : pieces_)
        if (!piece.any() && !piece.idle()) sum += piece.end - begin;
    return sum;
}

std::size_t PolicyKeeper::pieces() const noexcept {
    const std::lock_guard holding(mutex_);
    return pieces_.size();
}

} // namespace homing
