#include "areas/remote_share.hpp"

#include <algorithm>
#include <numeric>

namespace homing {
namespace {

void add(RemoteSums::End& end, double weight, double share) {
    end.share += weight * share;
    end.share1 += weight * weight * share;
    end.share2 += weight * weight * share * share;
}

} // namespace

void RemoteShare::reset(std::uint64_t granules, int nodes, std::uint64_t seed) {
    counters_.reset(granules, nodes, most_granules, seed);
    origins_.reset(granules);
    told_ = 0;
    news_ = false;
}

void RemoteShare::touched(std::uint64_t granule, int position, std::uint32_t accesses) {
    counters_.add(granule, position, accesses);
}

std::uint64_t RemoteShare::accesses() const noexcept {
    const auto totals = counters_.totals();
    return std::accumulate(totals.begin(), totals.end(), std::uint64_t{0});
}

std::vector<std::uint64_t> RemoteShare::granules() {
    std::vector<std::uint64_t> granules;
    granules.reserve(counters_.size());
    counters_.for_each_sorted([&](std::uint64_t granule, auto) { granules.push_back(granule); });
    return granules;
}

RemoteSums RemoteShare::sums(std::span<const int> homes, const PageSet& there, bool by_access) {
    told_ = accesses();
    news_ = false;
    struct Sampled {
        std::uint64_t granule;
        int now;
        double touches;
        double before, after; ///< remote touches
    };
    std::vector<Sampled> sampled;
    sampled.reserve(homes.size());
    std::size_t at = 0;
    counters_.for_each_sorted([&](std::uint64_t granule, auto counts) {
        const int now = at < homes.size() ? homes[at] : -1;
        ++at;
        if (now < 0) return; // it went away: nobody knows whose touches were remote
        const int origin = origins_.home(granule);
        const int first = origin >= 0 ? origin : now;
        const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
        const auto by = [&](int node) { return static_cast<double>(counts[static_cast<std::size_t>(node)]); };
        if (all > 0) sampled.push_back({granule, now, all, all - by(first), all - by(now)});
    });
    RemoteSums sums;
    sums.granules = sampled.size();
    for (std::size_t i = 0; i < sampled.size(); ++i) {
        const Sampled& one = sampled[i];
        // From half-way behind the one before to half-way before the next, or to the area's ends.
        const std::uint64_t begin = i > 0 ? (sampled[i - 1].granule + one.granule + 1) / 2 : 0;
        const std::uint64_t end =
            i + 1 < sampled.size() ? (one.granule + sampled[i + 1].granule + 1) / 2 : counters_.granules();
        const double weight =
            by_access ? one.touches : std::max(1.0, static_cast<double>(there.count({begin, end})));
        sums.touches += one.touches;
        sums.weight += weight;
        sums.weight2 += weight * weight;
        add(sums.before, weight, one.before / one.touches);
        add(sums.after, weight, one.after / one.touches);
    }
    return sums;
}

} // namespace homing
