#include "policy/freezing.hpp"

#include <algorithm>

namespace homing::policy {

bool Freezer::Entry::same_history(const Entry& other) const {
    return round == other.round && want_round == other.want_round && from == other.from && to == other.to &&
           want == other.want && returns == other.returns && want_streak == other.want_streak &&
           frozen == other.frozen;
}

Freezer::Freezer(const FreezingOptions& options) : options_(options) {
    options_.capacity = std::max<std::size_t>(options_.capacity, 16);
    options_.most_returns = std::max(options_.most_returns, 1);
    // One operation may split an entry at both ends and fill a gap between; room is made before it starts.
    entries_.reserve(options_.capacity + 4);
}

std::size_t Freezer::lower(std::uint64_t page) const {
    // Sweeps in page order are the rule: appending after everything known must not cost a search.
    if (entries_.empty() || entries_.back().end <= page) return entries_.size();
    return static_cast<std::size_t>(std::partition_point(entries_.begin(), entries_.end(),
                                                         [&](const Entry& e) { return e.end <= page; }) -
                                    entries_.begin());
}

void Freezer::insert(std::size_t index, const Entry& entry) {
    entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(index), entry);
}

void Freezer::split_at(std::uint64_t page) {
    const std::size_t index = lower(page);
    if (index == entries_.size() || entries_[index].first >= page) return;
    Entry right = entries_[index];
    right.first = page;
    entries_[index].end = page;
    insert(index + 1, right);
}

void Freezer::join_around(std::uint64_t first, std::uint64_t end) {
    std::size_t index = lower(first > 0 ? first - 1 : 0);
    std::size_t kept = index;
    std::size_t next = index + 1;
    for (; next < entries_.size() && entries_[next].first <= end; ++next) {
        if (entries_[kept].end == entries_[next].first && entries_[kept].same_history(entries_[next]))
            entries_[kept].end = entries_[next].end;
        else
            entries_[++kept] = entries_[next];
    }
    if (next > kept + 1)
        entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(kept + 1),
                       entries_.begin() + static_cast<std::ptrdiff_t>(next));
}

void Freezer::make_room() {
    if (entries_.size() + 3 <= options_.capacity) return;
    // Forget the older half of what is not frozen; if nearly all is frozen, the frozen ranges of longest ago
    // thaw (they will freeze again if they still ping-pong).
    std::vector<Entry>::iterator kept;
    const auto drop_older = [&](bool frozen) {
        std::uint32_t oldest = ~std::uint32_t{0}, newest = 0;
        for (const Entry& e : entries_)
            if (e.frozen == frozen) oldest = std::min(oldest, e.round), newest = std::max(newest, e.round);
        if (oldest > newest) return;
        const std::uint32_t limit = oldest + (newest - oldest) / 2;
        // Rounds may all be one: then every second range goes.
        bool every_second = oldest == newest, odd = false;
        kept = std::remove_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
            if (e.frozen != frozen) return false;
            if (every_second) return odd = !odd;
            return e.round <= limit;
        });
        entries_.erase(kept, entries_.end());
    };
    drop_older(false);
    if (entries_.size() + 3 > options_.capacity) drop_older(true);
}

void Freezer::moved(PageRange pages, Node from, Node to, std::uint32_t round) {
    if (pages.first >= pages.end || from == to) return;
    make_room();
    split_at(pages.first);
    split_at(pages.end);
    std::uint64_t page = pages.first;
    for (std::size_t index = lower(pages.first); page < pages.end; ++index) {
        if (index == entries_.size() || entries_[index].first > page) {
            // A stretch that never moved so far.
            const std::uint64_t end =
                index == entries_.size() ? pages.end : std::min(pages.end, entries_[index].first);
            if (entries_.size() < options_.capacity + 4)
                insert(index, {page, end, round, 0, from, to, unknown_node, 0, 0, false});
            else
                break; // more gaps than room: the rest is not remembered
            page = end;
            continue;
        }
        Entry& entry = entries_[index];
        const bool recent = round - entry.round <= options_.memory;
        if (recent && entry.from == to && entry.to == from) {
            if (entry.returns < 0xffff) ++entry.returns;
            if (entry.returns >= options_.most_returns) entry.frozen = true;
        } else if (!recent) {
            entry.returns = 0;
        }
        entry.from = from;
        entry.to = to;
        entry.round = round;
        entry.want = unknown_node;
        entry.want_streak = 0;
        page = entry.end;
    }
    join_around(pages.first, pages.end);
}

bool Freezer::frozen(std::uint64_t page) const {
    const std::size_t index = lower(page);
    return index < entries_.size() && entries_[index].first <= page && entries_[index].frozen;
}

std::uint64_t Freezer::frozen_pages() const {
    std::uint64_t pages = 0;
    for (const Entry& entry : entries_)
        if (entry.frozen) pages += entry.end - entry.first;
    return pages;
}

PageRange Freezer::first_movable(PageRange range) const {
    std::size_t index = lower(range.first);
    std::uint64_t first = range.first;
    for (; first < range.end; ++index) {
        if (index == entries_.size() || entries_[index].first > first) break;
        if (!entries_[index].frozen) break;
        first = entries_[index].end;
    }
    if (first >= range.end) return {range.end, range.end};
    std::uint64_t end = range.end;
    for (; index < entries_.size() && entries_[index].first < range.end; ++index) {
        if (entries_[index].frozen) {
            end = entries_[index].first;
            break;
        }
    }
    return {first, end};
}

void Freezer::wanted(PageRange pages, Node node, std::uint32_t round) {
    if (pages.first >= pages.end) return;
    make_room();
    split_at(pages.first);
    split_at(pages.end);
    for (std::size_t index = lower(pages.first); index < entries_.size() && entries_[index].first < pages.end;
         ++index) {
        Entry& entry = entries_[index];
        if (!entry.frozen) continue;
        const bool next_in_row = entry.want == node && entry.want_round + 1 == round && entry.want_streak > 0;
        if (entry.want == node && entry.want_round == round && entry.want_streak > 0) continue;
        entry.want_streak =
            next_in_row ? static_cast<std::uint16_t>(entry.want_streak + 1) : std::uint16_t{1};
        entry.want = node;
        entry.want_round = round;
        if (entry.want_streak >= options_.thaw_after) {
            entry.frozen = false;
            entry.returns = 0;
            entry.from = unknown_node; // the next move is not a return
            entry.want_streak = 0;
        }
    }
    join_around(pages.first, pages.end);
}

void Freezer::forget(PageRange pages) {
    if (pages.first >= pages.end) return;
    make_room();
    split_at(pages.first);
    split_at(pages.end);
    const auto from = entries_.begin() + static_cast<std::ptrdiff_t>(lower(pages.first));
    const auto to =
        std::partition_point(from, entries_.end(), [&](const Entry& e) { return e.first < pages.end; });
    entries_.erase(from, to);
}

} // namespace homing::policy
