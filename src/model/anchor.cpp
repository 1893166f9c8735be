#include "model/anchor.hpp"

#include <algorithm>
#include <bit>

namespace homing::phases {

namespace {

std::uint32_t hash_of(std::uint32_t id) {
    id ^= id >> 16;
    id *= 0x7feb352du;
    id ^= id >> 15;
    id *= 0x846ca68bu;
    return id ^ (id >> 16);
}

template <typename Set> void set_bit(Set& set, std::uint32_t bit) {
    set[bit / 64] |= std::uint64_t{1} << (bit % 64);
}
template <typename Set> int members(const Set& set) {
    int count = 0;
    for (const std::uint64_t word : set)
        count += std::popcount(word);
    return count;
}
template <typename Set> double jaccard(const Set& a, const Set& b) {
    int both = 0, either = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        both += std::popcount(a[i] & b[i]);
        either += std::popcount(a[i] | b[i]);
    }
    return either ? static_cast<double>(both) / either : 1.0;
}

} // namespace

void AnchorFinder::reset() {
    oldest_ = size_ = 0;
    pushed_ = 0;
    next_search_ = first_search;
    gram_length_ = 0;
    since_anchor_ = last_gap_ = longest_gap_ = 0;
    mean_gap_ = 0;
    iterations_ = 0;
    unlike_ = 0;
    set_ = previous_ = IdSet{};
}

bool AnchorFinder::at_anchor() const {
    for (int i = 0; i < gram_length_; ++i)
        if (at(size_ - static_cast<std::uint32_t>(gram_length_ - i)) != gram_[static_cast<std::size_t>(i)])
            return false;
    return true;
}

Step AnchorFinder::push(std::uint32_t id) {
    if (size_ < window) {
        ring_[(oldest_ + size_++) % window] = id;
    } else {
        ring_[oldest_] = id;
        oldest_ = (oldest_ + 1) % window;
    }
    ++pushed_;
    if (gram_length_ == 0) {
        if (pushed_ < next_search_) return {};
        next_search_ += std::min<std::uint64_t>(next_search_, window);
        if (!search()) return {};
        return {PeriodEvent::found, since_anchor_ == 0, last_gap_};
    }
    ++since_anchor_;
    if (at_anchor() && since_anchor_ >= static_cast<std::uint32_t>(gram_length_)) {
        // The sets of neighbouring iterations stay alike; three that are not mean another phase of the
        // program.
        unlike_ = iterations_ > 1 && jaccard(set_, previous_) < 0.5 ? unlike_ + 1 : 0;
        previous_ = set_;
        set_ = IdSet{};
        set_bit(set_, hash_of(id) % 256);
        last_gap_ = since_anchor_;
        since_anchor_ = 0;
        ++iterations_;
        if (unlike_ < 3) return {PeriodEvent::iteration_boundary, true, last_gap_};
    } else {
        set_bit(set_, hash_of(id) % 256);
        if (since_anchor_ <= std::max(4 * longest_gap_, 64u)) return {PeriodEvent::none, false, last_gap_};
    }
    reset();
    return {PeriodEvent::broken, false, 0};
}

bool AnchorFinder::same_gram(std::uint32_t end, std::uint32_t other_end, int length) const {
    for (int i = 0; i < length; ++i)
        if (ids_[end - static_cast<std::uint32_t>(i)] != ids_[other_end - static_cast<std::uint32_t>(i)])
            return false;
    return true;
}

// Collects the occurrences of all grams of one length in grams_[0..gram_count_).
void AnchorFinder::count_grams(int length, std::uint32_t size) {
    slots_.fill(0);
    gram_count_ = 0;
    constexpr std::uint32_t mask = 2 * window - 1;
    for (std::uint32_t end = static_cast<std::uint32_t>(length) - 1; end < size; ++end) {
        std::uint32_t hash = 0;
        for (int i = 0; i < length; ++i)
            hash = hash_of(hash + ids_[end - static_cast<std::uint32_t>(i)]);
        std::uint32_t slot = hash & mask;
        while (slots_[slot] != 0 && !same_gram(end, grams_[slots_[slot] - 1u].last, length))
            slot = (slot + 1) & mask;
        if (slots_[slot] == 0) {
            grams_[gram_count_] = {1, end, end, 0, length};
            slots_[slot] = static_cast<std::uint16_t>(++gram_count_);
        } else {
            Gram& gram = grams_[slots_[slot] - 1u];
            const std::uint64_t gap = end - gram.last;
            gram.gap_squares += gap * gap;
            gram.last = end;
            ++gram.count;
        }
    }
}

// How well the occurrences of a gram cut the window into like iterations: coverage x likeness x fullness /
// (1 + variation of the lengths), 0 where it does not qualify.
AnchorFinder::Rating AnchorFinder::rate(const Gram& gram, std::uint32_t size, int ids) const {
    IdSet current{}, previous{};
    int segments = 0;
    std::uint32_t start = gram.first;
    Rating rating{0, 0, 0};
    double likeness = 0, fullness = 0;
    set_bit(current, bit_[start]);
    IdSet all{};
    for (std::uint32_t end = gram.first + 1; end <= gram.last; ++end) {
        if (same_gram(end, gram.first, gram.length)) {
            for (std::size_t i = 0; i < all.size(); ++i)
                all[i] |= current[i];
            if (segments > 0) likeness += jaccard(current, previous);
            fullness += members(current);
            ++segments;
            rating.longest_gap = std::max(rating.longest_gap, end - start);
            start = end;
            previous = current;
            current = IdSet{};
        }
        set_bit(current, bit_[end]);
    }
    if (segments < 3) return rating;
    likeness /= segments - 1;
    fullness /= static_cast<double>(segments) * members(all);
    rating.mean_gap = static_cast<double>(gram.last - gram.first) / segments;
    const double coverage = std::min((gram.last - gram.first + rating.mean_gap) / size, 1.0);
    if (likeness < 0.85 || fullness < 0.7 || coverage < 0.6 || ids < 2) return rating;
    const double mean_square = static_cast<double>(gram.gap_squares) / segments;
    const double variance = std::max(mean_square - rating.mean_gap * rating.mean_gap, 0.0);
    const double relative = variance > 0 ? __builtin_sqrt(variance) / rating.mean_gap : 0;
    rating.score = coverage * likeness * fullness / (1 + relative);
    return rating;
}

bool AnchorFinder::search() {
    const std::uint32_t size = size_;
    for (std::uint32_t i = 0; i < size; ++i)
        ids_[i] = at(i);
    // Small dense numbers for the ids (by way of the grams of length 1); beyond 256 different ids they share
    // bits.
    count_grams(1, size);
    const int ids = static_cast<int>(gram_count_);
    constexpr std::uint32_t mask = 2 * window - 1;
    for (std::uint32_t i = 0; i < size; ++i) {
        std::uint32_t slot = hash_of(ids_[i]) & mask;
        while (ids_[grams_[slots_[slot] - 1u].last] != ids_[i])
            slot = (slot + 1) & mask;
        bit_[i] = static_cast<std::uint8_t>((slots_[slot] - 1u) % 256);
    }
    // Rate those with the highest bound (likeness and fullness are at most 1) first, and only so many.
    struct Bound {
        double score;
        Gram gram;
    };
    std::array<Bound, most_evaluated> top;
    const bool regions = !std::all_of(ids_.begin(), ids_.begin() + size, is_within_region);
    int kept = 0;
    for (int length = 1; length <= longest_gram; ++length) {
        if (length > 1) count_grams(length, size);
        for (std::uint32_t i = 0; i < gram_count_; ++i) {
            const Gram& gram = grams_[i];
            if (gram.count < 4 || (regions && is_within_region(ids_[gram.last]))) continue;
            const double span = gram.last - gram.first;
            const double mean = span / (gram.count - 1);
            if (span + mean < 0.6 * size) continue;
            const double variance =
                std::max(static_cast<double>(gram.gap_squares) / (gram.count - 1) - mean * mean, 0.0);
            const double score = std::min((span + mean) / size, 1.0) / (1 + __builtin_sqrt(variance) / mean);
            if (kept == most_evaluated && score <= top[most_evaluated - 1].score) continue;
            int place = kept < most_evaluated ? kept++ : most_evaluated - 1;
            for (; place > 0 && top[static_cast<std::size_t>(place - 1)].score < score; --place)
                top[static_cast<std::size_t>(place)] = top[static_cast<std::size_t>(place - 1)];
            top[static_cast<std::size_t>(place)] = {score, gram};
        }
    }
    Rating best{0, 0, 0};
    const Gram* chosen = nullptr;
    for (int i = 0; i < kept && top[static_cast<std::size_t>(i)].score > best.score; ++i) {
        const Rating rating = rate(top[static_cast<std::size_t>(i)].gram, size, ids);
        if (rating.score > best.score + 1e-9) {
            best = rating;
            chosen = &top[static_cast<std::size_t>(i)].gram;
        }
    }
    if (!chosen) return false;
    gram_length_ = chosen->length;
    for (int i = 0; i < gram_length_; ++i)
        gram_[static_cast<std::size_t>(i)] =
            ids_[chosen->last + 1 - static_cast<std::uint32_t>(gram_length_ - i)];
    since_anchor_ = size - 1 - chosen->last;
    mean_gap_ = best.mean_gap;
    longest_gap_ = best.longest_gap;
    last_gap_ = static_cast<std::uint32_t>(__builtin_lround(mean_gap_));
    // The set of the iteration that is under way is incomplete: the first comparison is made at the second
    // anchor.
    iterations_ = 1;
    unlike_ = 0;
    set_ = previous_ = IdSet{};
    for (std::uint32_t i = chosen->last; i < size; ++i)
        set_bit(set_, hash_of(ids_[i]) % 256);
    return true;
}

} // namespace homing::phases
