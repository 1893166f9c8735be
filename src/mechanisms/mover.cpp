#include "mechanisms/mover.hpp"

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
constexpr std::size_t most_refused = 8192;
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

Mover::Mover(Kernel& kernel, const NodeMap& nodes) : kernel_(kernel), nodes_(nodes) {
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

void Mover::send_batch(WatchedArea& area, std::span<void*> pages, int position, std::uint32_t round,
                       bool retry, MoveResult& result) {
    const int target = nodes_.system(position);
    const std::size_t unit = area.granule > page_bytes() ? area.granule : page_bytes();
    const std::uint64_t pages_each = unit / page_bytes();
    status_.assign(pages.size(), -ENOENT);
    if (const int error = query_revealed(kernel_, pages, status_, before_reveal_)) {
        result.errors[error] += pages.size();
        result.refused += pages.size();
        return;
    }
    result.considered += pages.size() * pages_each;
    // Of huge pages the first base page tells nothing about the last: they are looked at each time.
    const auto seen_there = [&](policy::PageRange run) {
        if (area.granule == page_bytes()) area.seen_homes.saw(run.first, run.end, position);
    };
    Runs at_home([&](policy::PageRange run, int) { seen_there(run); });
    std::size_t wanted = 0;
    from_.clear();
    for (std::size_t i = 0; i < pages.size(); ++i) {
        // Not populated: EFAULT up to Linux 6.5, ENOENT later. Up to 6.5 ENOENT is a page that is armed for a
        // hint fault and could not be revealed: its owner's next touch shows it again, and the next iteration
        // sends it.
        if (status_[i] == -ENOENT || status_[i] == -EFAULT) result.absent += pages_each;
        if (status_[i] == target) at_home.add(area.granule_of(reinterpret_cast<Address>(pages[i])), target);
        if (status_[i] < 0 || status_[i] == target) continue;
        from_.push_back(status_[i]);
        pages[wanted++] = pages[i];
    }
    at_home.end();
    if (wanted == 0) return;
    if (!retry) result.wanted += wanted * pages_each;
    pages = pages.first(wanted);
    if (!has_room(position, wanted * unit, round)) {
        result.errors[ENOMEM] += wanted * pages_each;
        result.refused += wanted * pages_each;
        return;
    }
    targets_.assign(wanted, target);
    status_.assign(wanted, -EINVAL);
    const double begin = record::now();
    const int error = kernel_.move(pages, targets_, status_);
    const double seconds = record::now() - begin;
    ++result.calls;
    result.longest_call = std::max(result.longest_call, seconds);
    if (seconds > long_call)
        batch_ = std::max(smallest_batch, batch_ / 2);
    else if (seconds < short_call && pages.size() == batch_)
        batch_ = std::min(largest_batch, batch_ * 2);
    if (error) status_.assign(wanted, -error);
    const std::vector<int>& reasons = status_;
    // The second query decides. Kernels report some huge pages oddly, and a hint fault may hide a page.
    now_.assign(wanted, -ENOENT);
    const int query_error = kernel_.query(pages, now_);
    Runs moved([&](policy::PageRange run, int from) {
        seen_there(run);
        if (area.freezer)
            area.freezer->moved(run, static_cast<policy::Node>(nodes_.position(from)),
                                static_cast<policy::Node>(position), round);
    });
    for (std::size_t i = 0; i < wanted; ++i) {
        const bool there = query_error == 0 && now_[i] == target;
        if (there) {
            result.moved += pages_each;
            moved.add(area.granule_of(reinterpret_cast<Address>(pages[i])), from_[i]);
            continue;
        }
        const int reason = reasons[i] < 0 ? -reasons[i]
                           : query_error  ? query_error
                           : now_[i] < 0  ? -now_[i]
                                          : EBUSY;
        if (retry || refused_.size() >= most_refused) {
            result.errors[reason] += pages_each;
            result.refused += pages_each;
        } else {
            refused_.push_back({reinterpret_cast<Address>(pages[i]), position});
        }
    }
    moved.end();
}

/// A huge page moves whole by any one address. Whether a granule really is one shows afterwards: where its
/// last page stayed behind, the granule's base pages are sent singly.
void Mover::send_stragglers(WatchedArea& area, std::span<const std::uint64_t> granules, int position,
                            MoveResult& result) {
    const int target = nodes_.system(position);
    std::vector<void*> pages;
    for (const std::uint64_t granule : granules)
        pages.push_back(reinterpret_cast<void*>(area.granule_range(granule).end - page_bytes()));
    now_.assign(pages.size(), -ENOENT);
    if (kernel_.query(pages, now_) != 0) return;
    const std::vector<int> where = now_;
    for (std::size_t i = 0; i < granules.size(); ++i) {
        if (where[i] < 0 || where[i] == target) continue;
        const Range range = area.granule_range(granules[i]);
        pages.clear();
        for (Address page = range.begin; page < range.end; page += page_bytes())
            pages.push_back(reinterpret_cast<void*>(page));
        targets_.assign(pages.size(), target);
        status_.assign(pages.size(), -EINVAL);
        ++result.calls;
        kernel_.move(pages, targets_, status_);
    }
}

void Mover::send(WatchedArea& area, std::span<const std::uint64_t> granules, int position,
                 std::uint32_t round, double deadline, MoveResult& result) {
    const double begin = record::now();
    const bool huge = area.granule > page_bytes();
    unseen_.clear();
    std::copy_if(granules.begin(), granules.end(), std::back_inserter(unseen_),
                 [&](std::uint64_t granule) { return area.seen_homes.home(granule) != position; });
    granules = unseen_;
    while (!granules.empty()) {
        if (record::now() > deadline) {
            result.complete = false;
            break;
        }
        const std::size_t count =
            std::min(granules.size(), huge ? std::max<std::size_t>(1, batch_ / 128) : batch_);
        const std::span<const std::uint64_t> some = granules.first(count);
        pages_.clear();
        for (const std::uint64_t granule : some)
            pages_.push_back(reinterpret_cast<void*>(area.granule_range(granule).begin));
        send_batch(area, pages_, position, round, false, result);
        if (huge) send_stragglers(area, some, position, result);
        granules = granules.subspan(count);
    }
    result.seconds += record::now() - begin;
}

void Mover::homes(WatchedArea& area, std::span<const std::uint64_t> granules, std::vector<int>& positions) {
    positions.assign(granules.size(), -1);
    constexpr std::size_t chunk = 2048;
    std::vector<void*> pages;
    std::vector<int> status;
    for (std::size_t at = 0; at < granules.size(); at += chunk) {
        const std::size_t count = std::min(chunk, granules.size() - at);
        pages.clear();
        for (std::size_t i = 0; i < count; ++i)
            pages.push_back(reinterpret_cast<void*>(area.granule_range(granules[at + i]).begin));
        status.assign(count, -ENOENT);
        if (query_revealed(kernel_, pages, status, before_reveal_) != 0) return;
        for (std::size_t i = 0; i < count; ++i) {
            positions[at + i] = status[i] < 0 ? -1 : nodes_.position(status[i]);
            const int seen = area.seen_homes.home(granules[at + i]);
            if (seen >= 0 && seen != positions[at + i]) area.seen_homes.forget();
        }
    }
}

void Mover::retry_refused(WatchList& watch, std::uint32_t round, double deadline, MoveResult& result) {
    const double begin = record::now();
    std::vector<Refused> again;
    again.swap(refused_);
    for (const Refused& refused : again) {
        WatchedArea* area = watch.find(refused.page);
        if (!area || record::now() > deadline) continue;
        void* page = reinterpret_cast<void*>(refused.page);
        send_batch(*area, std::span<void*>(&page, 1), refused.position, round, true, result);
    }
    result.seconds += record::now() - begin;
}

} // namespace homing
