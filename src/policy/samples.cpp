#include "policy/samples.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace homing::policy {

namespace {

// Counters saturate: a page hot enough to overflow has shown its owner long ago.
std::uint16_t saturated(std::uint32_t value) {
    return static_cast<std::uint16_t>(
        std::min<std::uint32_t>(value, std::numeric_limits<std::uint16_t>::max()));
}

} // namespace

Samples::Samples(int nodes) : nodes_(std::clamp(nodes, 1, most_nodes)) {}

void Samples::reserve(std::size_t pages) {
    pages_.reserve(pages);
    counts_.reserve(pages * static_cast<std::size_t>(nodes_));
}

void Samples::add(std::uint64_t page, std::span<const std::uint16_t> counts) {
    if (!pages_.empty() && page <= pages_.back()) settled_ = false;
    pages_.push_back(page);
    const auto width = static_cast<std::size_t>(nodes_);
    const std::size_t given = std::min(width, counts.size());
    counts_.insert(counts_.end(), counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(given));
    counts_.resize(pages_.size() * width);
}

void Samples::add(std::uint64_t page, Node node, std::uint16_t touches) {
    if (node < 0 || node >= nodes_) return;
    if (!pages_.empty() && page == pages_.back()) {
        auto& count = counts_[counts_.size() - static_cast<std::size_t>(nodes_ - node)];
        count = saturated(std::uint32_t{count} + touches);
        return;
    }
    if (!pages_.empty() && page < pages_.back()) settled_ = false;
    pages_.push_back(page);
    counts_.resize(pages_.size() * static_cast<std::size_t>(nodes_));
    counts_[counts_.size() - static_cast<std::size_t>(nodes_ - node)] = touches;
}

void Samples::settle() {
    if (settled_) return;
    const auto width = static_cast<std::size_t>(nodes_);
    std::vector<std::size_t> order(pages_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return pages_[a] != pages_[b] ? pages_[a] < pages_[b] : a < b;
    });
    std::vector<std::uint64_t> pages;
    std::vector<std::uint16_t> counts;
    pages.reserve(pages_.size());
    counts.reserve(counts_.size());
    for (const std::size_t index : order) {
        const std::uint16_t* row = counts_.data() + index * width;
        if (!pages.empty() && pages.back() == pages_[index]) {
            std::uint16_t* into = counts.data() + counts.size() - width;
            for (std::size_t n = 0; n < width; ++n)
                into[n] = saturated(std::uint32_t{into[n]} + row[n]);
        } else {
            pages.push_back(pages_[index]);
            counts.insert(counts.end(), row, row + width);
        }
    }
    pages_.swap(pages);
    counts_.swap(counts);
    settled_ = true;
}

Node Samples::dominant(std::size_t index) const {
    const auto row = counts(index);
    return static_cast<Node>(std::max_element(row.begin(), row.end()) - row.begin());
}

std::uint32_t Samples::touches(std::size_t index) const {
    const auto row = counts(index);
    return std::accumulate(row.begin(), row.end(), std::uint32_t{0});
}

double Samples::share(std::size_t index) const {
    const std::uint32_t total = touches(index);
    return total ? static_cast<double>(counts(index)[static_cast<std::size_t>(dominant(index))]) / total : 0;
}

bool Samples::seen_once(std::size_t index) const {
    const std::uint32_t total = touches(index);
    return total == 1 ||
           (total == touches_of_write && counts(index)[static_cast<std::size_t>(dominant(index))] == total);
}

std::size_t Samples::find(std::uint64_t page) const {
    const auto found = std::lower_bound(pages_.begin(), pages_.end(), page);
    return found != pages_.end() && *found == page ? static_cast<std::size_t>(found - pages_.begin())
                                                   : size();
}

void Samples::replace_by(const Samples& newer) {
    if (newer.nodes_ != nodes_) return;
    Samples joined(nodes_);
    joined.reserve(size() + newer.size());
    std::size_t i = 0, j = 0;
    while (i < size() || j < newer.size()) {
        if (j == newer.size() || (i < size() && pages_[i] < newer.pages_[j])) {
            joined.add(pages_[i], counts(i));
            ++i;
        } else {
            if (i < size() && pages_[i] == newer.pages_[j]) ++i;
            joined.add(newer.pages_[j], newer.counts(j));
            ++j;
        }
    }
    *this = std::move(joined);
}

void Samples::merge(const Samples& further) {
    if (further.nodes_ != nodes_) return;
    settled_ = false;
    pages_.insert(pages_.end(), further.pages_.begin(), further.pages_.end());
    counts_.insert(counts_.end(), further.counts_.begin(), further.counts_.end());
    settle();
}

void Samples::forget(PageRange range) {
    const auto width = static_cast<std::ptrdiff_t>(nodes_);
    const auto from = std::lower_bound(pages_.begin(), pages_.end(), range.first) - pages_.begin();
    const auto to = std::lower_bound(pages_.begin() + from, pages_.end(), range.end) - pages_.begin();
    pages_.erase(pages_.begin() + from, pages_.begin() + to);
    counts_.erase(counts_.begin() + from * width, counts_.begin() + to * width);
}

void Samples::clear() {
    pages_.clear();
    counts_.clear();
    settled_ = true;
}

} // namespace homing::policy
