#include "kernel/mover.hpp"

#include "record/record.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace homing {
namespace {

// One system call stays well under 20 ms: batches shrink when a call took longer than the first, grow below
// the second.
constexpr double long_call = 8e-3;
constexpr double short_call = 2e-3;
constexpr std::size_t smallest_batch = 32;
constexpr std::size_t largest_batch = 8192;
constexpr std::size_t first_batch_bytes = std::size_t{2} << 20;
/// Calls for one batch: each goes on behind the first run of pages that the one before could not move.
constexpr int most_calls = 64;
/// Kept free on every node for everybody else.
constexpr std::uint64_t reserve_bytes = std::uint64_t{32} << 20;

/// The granules of pages that come one after the other, put together into runs that follow one another and
/// were on one node.
template <class Function> class Runs {
  public:
    explicit Runs(Function ended) : ended_(std::move(ended)) {}

    void add(std::uint64_t granule, int node) {
        if (granule != run_.end || node != node_) {
            end();
            run_ = {granule, granule};
            node_ = node;
        }
        ++run_.end;
    }

    void end() {
        if (run_.first < run_.end) ended_(run_, node_);
        run_ = {};
    }

  private:
    Function ended_;
    policy::PageRange run_;
    int node_ = -1;
};

} // namespace

Moves& Moves::operator+=(const Moves& others) {
    moved += others.moved;
    refused += others.refused;
    calls += others.calls;
    seconds += others.seconds;
    longest_call = std::max(longest_call, others.longest_call);
    for (const auto& [error, pages] : others.errors)
        errors[error] += pages;
    return *this;
}

Mover::Mover(Kernel& kernel, const NodeMap& nodes)
    : kernel_(kernel), nodes_(nodes), batch_(std::max(smallest_batch, first_batch_bytes / page_bytes())) {
    pages_.reserve(largest_batch);
    room_round_.fill(~std::uint32_t{0});
}

bool Mover::has_room(int position, std::uint64_t bytes, std::uint32_t round) {
    const auto at = static_cast<std::size_t>(position);
    if (room_round_[at] != round) {
        room_round_[at] = round;
        const std::uint64_t free = kernel_.free_bytes(nodes_.system(position));
        // 0: not known. The kernel itself refuses (ENOMEM) then, page by page, and we count that.
        room_[at] = free == 0 ? ~std::uint64_t{0} : free > reserve_bytes ? free - reserve_bytes : 0;
    }
    if (room_[at] < bytes) return false;
    if (room_[at] != ~std::uint64_t{0}) room_[at] -= bytes;
    return true;
}

/// Of pages_ (and granules_), whose nodes are in status_: those that lie on one of the nodes `from`. Where
/// they are goes into from_. Returns how many; what is at home is remembered.
std::size_t Mover::keep_misplaced(MovableMemory& memory, int position, policy::NodeSet from,
                                  MoveResult& result) {
    const int target = nodes_.system(position);
    const std::uint64_t pages_each = memory.granule_bytes() / page_bytes();
    // Of huge pages the first base page tells nothing about the last: they are looked at each time.
    Runs at_home([&](policy::PageRange run, int) {
        if (memory.granule_bytes() == page_bytes()) memory.lies_at(run, position);
    });
    std::size_t wanted = 0;
    from_.clear();
    for (std::size_t i = 0; i < pages_.size(); ++i) {
        // Not populated: EFAULT up to Linux 6.5, ENOENT later. Up to 6.5 ENOENT is a page that is armed for a
        // hint fault and could not be revealed: its owner's next touch shows it again, and the next iteration
        // sends it.
        if (status_[i] == -ENOENT || status_[i] == -EFAULT) result.absent += pages_each;
        if (status_[i] == target) {
            at_home.add(granules_[i], target);
            if (pages_each == 1) memory.forget_refusal(granules_[i]);
            continue;
        }
        const int home = status_[i] < 0 ? -1 : nodes_.position(status_[i]);
        if (!policy::contains(from, static_cast<policy::Node>(home))) {
            continue;
        }
        from_.push_back(home);
        pages_[wanted] = pages_[i];
        granules_[wanted++] = granules_[i];
    }
    at_home.end();
    pages_.resize(wanted);
    granules_.resize(wanted);
    return wanted;
}

/// One or more calls for these pages, until each was tried. status_: where each is now, or minus an errno.
/// Returns the errno of a call that failed as a whole.
int Mover::move_batch(std::span<void*> pages, int target, MoveResult& result) {
    targets_.assign(pages.size(), target);
    status_.assign(pages.size(), -EINVAL);
    std::size_t done = 0;
    for (int calls = 0; done < pages.size() && calls < most_calls; ++calls) {
        const std::span<void*> rest = pages.subspan(done);
        const std::span<int> status(status_.data() + done, rest.size());
        const double begin = record::now();
        const int error = kernel_.move(rest, {targets_.data() + done, rest.size()}, status);
        const double seconds = record::now() - begin;
        ++result.calls;
        result.longest_call = std::max(result.longest_call, seconds);
        if (seconds > long_call)
            batch_ = std::max(smallest_batch, batch_ / 2);
        else if (seconds < short_call && rest.size() == batch_)
            batch_ = std::min(largest_batch, batch_ * 2);
        if (error) {
            std::fill(status.begin(), status.end(), -error);
            return error;
        }
        const auto untried = std::find(status.begin(), status.end(), -EAGAIN);
        if (untried == status.begin()) break; // no progress
        done += static_cast<std::size_t>(untried - status.begin());
    }
    return 0;
}

/// A huge page moves whole by any one address. Whether a granule really is one shows afterwards: where some
/// of it is elsewhere, its base pages are sent singly. Before and after that, how many of them are on the
/// target.
Mover::Parts Mover::move_parts(const MovableMemory& memory, std::uint64_t granule, int target,
                               policy::NodeSet from, MoveResult& result) {
    const Range range = memory.granule_range(granule);
    std::vector<void*> pages;
    for (Address page = range.begin; page < range.end; page += page_bytes())
        pages.push_back(reinterpret_cast<void*>(page));
    // The ends and the middle: a huge page is in one place.
    std::array<void*, 3> some{pages.front(), pages[pages.size() / 2], pages.back()};
    std::array<int, some.size()> at{};
    if (kernel_.query(some, at) == 0 && std::ranges::all_of(at, [&](int node) { return node == target; }))
        return {pages.size(), pages.size()};
    std::vector<int> where(pages.size(), -ENOENT);
    const auto count_there = [&] {
        const bool known = kernel_.query(pages, where) == 0;
        return known ? static_cast<std::uint64_t>(std::ranges::count(where, target)) : 0;
    };
    Parts parts{count_there(), 0};
    std::vector<void*> behind;
    for (std::size_t i = 0; i < pages.size(); ++i) {
        const int home = where[i] < 0 ? -1 : nodes_.position(where[i]);
        if (where[i] != target && policy::contains(from, static_cast<policy::Node>(home)))
            behind.push_back(pages[i]);
    }
    move_batch(behind, target, result);
    parts.after = count_there();
    return parts;
}

void Mover::send_batch(MovableMemory& memory, std::span<const std::uint64_t> granules, int position,
                       policy::NodeSet from, std::uint32_t round, MoveResult& result) {
    const int target = nodes_.system(position);
    const std::uint64_t pages_each = memory.granule_bytes() / page_bytes();
    const bool huge = pages_each > 1;
    pages_.clear();
    granules_.assign(granules.begin(), granules.end());
    for (const std::uint64_t granule : granules)
        pages_.push_back(reinterpret_cast<void*>(memory.granule_range(granule).begin));
    const auto refuse = [&](std::uint64_t granule, std::uint64_t pages, int error) {
        if (!memory.was_refused(granule, round, error)) return;
        result.errors[error] += pages;
        result.refused += pages;
    };
    // Of a huge page, a few base pages that stay behind do not matter.
    const auto arrived = [&](std::uint64_t granule, std::uint64_t there, int error) {
        if (2 * there > pages_each)
            memory.forget_refusal(granule);
        else
            refuse(granule, pages_each - there, error);
    };
    status_.assign(pages_.size(), -ENOENT);
    if (const int error = query_revealed(kernel_, pages_, status_, before_reveal_)) {
        for (const std::uint64_t granule : granules_)
            refuse(granule, pages_each, error);
        return;
    }
    result.considered += pages_.size() * pages_each;
    if (huge)
        for (std::size_t i = 0; i < granules.size(); ++i) {
            if (status_[i] != target) continue; // its first page is there; the others may have stayed behind
            const Parts parts = move_parts(memory, granules[i], target, from, result);
            result.wanted += parts.after - std::min(parts.before, parts.after);
            result.moved += parts.after - std::min(parts.before, parts.after);
            arrived(granules[i], parts.after, EBUSY);
        }
    const std::size_t wanted = keep_misplaced(memory, position, from, result);
    if (wanted == 0) return;
    result.wanted += wanted * pages_each;
    if (!has_room(position, wanted * memory.granule_bytes(), round)) {
        for (const std::uint64_t granule : granules_)
            refuse(granule, pages_each, ENOMEM);
        return;
    }
    move_batch(pages_, target, result);
    const std::vector<int> reasons = status_; // what follows moves more
    // The second query decides. Kernels report some huge pages oddly, and a hint fault may hide a page.
    now_.assign(wanted, -ENOENT);
    const int query_error = kernel_.query(pages_, now_);
    Runs moved([&](policy::PageRange run, int home) {
        if (!huge) memory.lies_at(run, position);
        memory.moved_from(run, static_cast<policy::Node>(home));
    });
    for (std::size_t i = 0; i < wanted; ++i) {
        std::uint64_t there = query_error == 0 && now_[i] == target;
        if (huge && there) there = move_parts(memory, granules_[i], target, from, result).after;
        result.moved += there;
        if (there > 0) moved.add(granules_[i], from_[i]);
        const int reason = reasons[i] < 0 ? -reasons[i]
                           : query_error  ? query_error
                           : now_[i] < 0  ? -now_[i]
                                          : EBUSY;
        arrived(granules_[i], there, reason);
    }
    moved.end();
}

void Mover::send(MovableMemory& memory, std::span<const std::uint64_t> granules, int position,
                 policy::NodeSet from, std::uint32_t round, double deadline, MoveResult& result) {
    const double begin = record::now();
    const bool huge = memory.granule_bytes() > page_bytes();
    while (!granules.empty()) {
        if (record::now() > deadline) {
            result.complete = false;
            break;
        }
        const std::size_t most = huge ? std::max<std::size_t>(1, batch_ / 128) : batch_;
        const std::span<const std::uint64_t> some = granules.first(std::min(granules.size(), most));
        send_batch(memory, some, position, from, round, result);
        granules = granules.subspan(some.size());
    }
    result.seconds += record::now() - begin;
}

void Mover::homes(MovableMemory& memory, std::span<const std::uint64_t> granules,
                  std::vector<int>& positions) {
    positions.assign(granules.size(), -1);
    constexpr std::size_t chunk = 2048;
    std::vector<void*> pages;
    std::vector<int> status;
    for (std::size_t at = 0; at < granules.size(); at += chunk) {
        const std::size_t count = std::min(chunk, granules.size() - at);
        pages.clear();
        for (std::size_t i = 0; i < count; ++i)
            pages.push_back(reinterpret_cast<void*>(memory.granule_range(granules[at + i]).begin));
        status.assign(count, -ENOENT);
        if (query_revealed(kernel_, pages, status, before_reveal_) != 0) return;
        for (std::size_t i = 0; i < count; ++i) {
            positions[at + i] = status[i] < 0 ? -1 : nodes_.position(status[i]);
            const int seen = memory.seen_home(granules[at + i]);
            if (seen >= 0 && seen != positions[at + i]) memory.forget_homes();
        }
    }
}

} // namespace homing
