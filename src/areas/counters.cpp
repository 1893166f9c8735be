#include "areas/counters.hpp"

#include "base/random.hpp"

#include <bit>

namespace homing {
namespace {

/// Neighbouring granules get unrelated hashes.
constexpr std::uint64_t mix(std::uint64_t x) noexcept { return mixed(x + splitmix_step); }

/// Room for so many comes with the first one.
constexpr std::size_t fewest_rows = 32;

} // namespace

void ReferenceCounters::reset(std::uint64_t granules, int nodes, std::size_t rows, std::uint64_t seed) {
    granules_ = granules;
    nodes_ = std::max(nodes, 0);
    capacity_ = static_cast<std::size_t>(std::min<std::uint64_t>(granules, rows));
    used_ = 0;
    halvings_ = 0;
    seed_ = mix(seed);
    const auto give_back = [](auto& vector) { std::decay_t<decltype(vector)>().swap(vector); };
    give_back(slots_);
    give_back(keys_);
    give_back(counts_);
    give_back(order_);
    totals_.assign(width(), 0);
    totals_.shrink_to_fit();
}

/// Room for twice as many rows. Where there is no memory, all is as it was.
void ReferenceCounters::grow() {
    const std::size_t room = std::min(capacity_, std::max<std::size_t>(fewest_rows, 2 * keys_.size()));
    std::vector<std::uint32_t> slots(std::bit_ceil(2 * room + 1));
    counts_.resize(room * width());
    keys_.resize(room);
    slots_.swap(slots);
    fill_slots();
}

void ReferenceCounters::fill_slots() noexcept {
    std::fill(slots_.begin(), slots_.end(), no_row);
    for (std::size_t index = 0; index < used_; ++index)
        slots_[slot_of(keys_[index], hash(keys_[index]))] = static_cast<std::uint32_t>(index);
}

std::uint64_t ReferenceCounters::hash(std::uint64_t granule) const noexcept { return mix(granule ^ seed_); }

std::size_t ReferenceCounters::slot_of(std::uint64_t granule, std::uint64_t hash) const noexcept {
    // The threshold looks at the highest bits, the slot at the lowest: a sub-sample still spreads over all
    // slots.
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = static_cast<std::size_t>(hash) & mask;
    while (slots_[slot] != no_row && keys_[slots_[slot]] != granule)
        slot = (slot + 1) & mask;
    return slot;
}

bool ReferenceCounters::add(std::uint64_t granule, int node, std::uint32_t weight) {
    if (granule >= granules_ || node < 0 || node >= nodes_ || capacity_ == 0) return false;
    totals_[static_cast<std::size_t>(node)] += weight;
    const std::uint64_t h = hash(granule);
    if (!kept(h)) return false;
    if (slots_.empty()) grow();
    std::size_t slot = slot_of(granule, h);
    if (slots_[slot] == no_row) {
        while (used_ == capacity_) {
            ++halvings_;
            compact([this](std::size_t index) { return kept(hash(keys_[index])); });
            if (!kept(h)) return false;
        }
        if (used_ == keys_.size()) grow();
        slot = slot_of(granule, h);
        slots_[slot] = static_cast<std::uint32_t>(used_);
        keys_[used_] = granule;
        std::fill_n(row(used_), width(), 0u);
        ++used_;
    }
    std::uint32_t& count = row(slots_[slot])[node];
    count = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{count} + weight, saturation));
    return true;
}

template <class Keep> void ReferenceCounters::compact(Keep&& keep) noexcept {
    std::size_t kept_rows = 0;
    for (std::size_t index = 0; index < used_; ++index) {
        if (!keep(index)) continue;
        if (kept_rows != index) {
            keys_[kept_rows] = keys_[index];
            std::copy_n(row(index), width(), row(kept_rows));
        }
        ++kept_rows;
    }
    if (kept_rows == used_) return;
    used_ = kept_rows;
    fill_slots();
}

void ReferenceCounters::forget(std::uint64_t first, std::uint64_t end) noexcept {
    compact([this, first, end](std::size_t index) { return keys_[index] < first || keys_[index] >= end; });
}

std::uint32_t ReferenceCounters::count(std::uint64_t granule, int node) const noexcept {
    if (granule >= granules_ || node < 0 || node >= nodes_ || used_ == 0) return 0;
    const std::uint32_t index = slots_[slot_of(granule, hash(granule))];
    return index == no_row ? 0u : row(index)[node];
}

std::size_t ReferenceCounters::memory_bytes() const noexcept {
    return slots_.capacity() * sizeof slots_[0] + keys_.capacity() * sizeof keys_[0] +
           counts_.capacity() * sizeof counts_[0] + order_.capacity() * sizeof order_[0] +
           totals_.capacity() * sizeof totals_[0];
}

void ReferenceCounters::sort_rows() {
    order_.resize(keys_.size());
    for (std::size_t i = 0; i < used_; ++i)
        order_[i] = static_cast<std::uint32_t>(i);
    std::sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(used_),
              [this](std::uint32_t a, std::uint32_t b) { return keys_[a] < keys_[b]; });
}

} // namespace homing
