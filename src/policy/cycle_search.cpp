#include "policy/cycle_search.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "policy/folding.hpp"

namespace homing::policy {

namespace {

constexpr std::size_t least_in_window = 24;    // sightings in the smallest window
constexpr std::size_t most_in_spectrum = 192;  // sightings that a periodogram looks at
constexpr std::size_t most_in_fit = 384;       // and a fit of the period
constexpr std::size_t most_in_last_fit = 2560; // and the last one
constexpr int frequencies = 384;               // of a periodogram, 1 / (4 radius) apart
constexpr int first_frequency = 5;             // 2.5 periods in the window
constexpr std::size_t least_predicted = 16;    // sightings that must have been predicted, not fitted
constexpr int most_multiple = 12;              // the peak may be a harmonic of so high an order
constexpr std::size_t most_candidates = 4;     // periods to fit in a window
constexpr int most_anchors = 5;

// So many nodes of equal shares would mix as much.
double mixed(std::span<const Sighting> sightings, int nodes) {
    std::vector<double> count(static_cast<std::size_t>(nodes), 0.0);
    for (const Sighting& sighting : sightings)
        ++count[static_cast<std::size_t>(sighting.node)];
    double squares = 0;
    for (const double c : count)
        squares += c * c;
    const auto all = static_cast<double>(sightings.size());
    return squares > 0 ? all * all / squares : 1;
}

class Search {
  public:
    Search(std::span<const Sighting> sightings, int nodes, double noise, double least_agreement,
           const Gain& gain)
        : folding_(sightings, nodes, noise), all_(sightings), nodes_(nodes), mixed_(mixed(sightings, nodes)),
          noise_(noise), log_match_(std::log(1 - std::max(noise, 0.05))),
          log_miss_(std::log(std::max(noise, 0.05) / std::max(nodes - 1, 1))),
          least_agreement_(least_agreement), gain_(gain) {}

    std::optional<FoundCycle> run(double hint, bool beside);

  private:
    struct Window {
        std::size_t first, end;
    };
    struct Tracked {
        Cycle cycle;
        double left = 0, right = 0; // reach on either side of the anchor
        std::size_t predicted = 0;  // sightings outside the window that the cycle was fitted in
        std::size_t confirmed = 0;
    };
    struct Tally {
        std::size_t tested = 0, matched = 0;
        double ratio = 0; // log-likelihood ratio against disorder
        bool holds(double least) const {
            return static_cast<double>(matched) + 1 >= least * static_cast<double>(tested) && ratio >= 0;
        }
    };

    std::vector<double> anchors() const;
    Window window_between(double from, double to) const;
    Window window(double anchor, double radius) const {
        return window_between(anchor - radius, anchor + radius);
    }
    std::vector<std::size_t> thinned(Window window, std::size_t most) const;
    struct Peaks {
        std::vector<double> clear, faint; // periods, strongest first
    };
    Peaks peaks(double anchor, double radius, Window window) const;
    double neighbours_agree(const std::vector<std::size_t>& chosen, double anchor, double period) const;
    Tally tally(const Cycle& cycle, double from, double to) const;
    double ratio(std::size_t i, bool matches) const;
    bool track(Tracked& state, double anchor, double radius) const;
    Window extent(const Cycle& cycle, double anchor) const;
    std::vector<double> candidates(double anchor, double radius, std::vector<double>& faint) const;
    std::optional<FoundCycle> find_best(double anchor, double radius, double period) const;
    std::optional<FoundCycle> find(double anchor, double radius, double period) const;
    std::optional<FoundCycle> find_beside(double period) const;

    Folding folding_;
    std::span<const Sighting> all_;
    int nodes_;
    double mixed_;
    double noise_;
    double log_match_, log_miss_;
    double least_agreement_;
    const Gain& gain_;
};

// The places with the densest samples, densest first, far from each other.
std::vector<double> Search::anchors() const {
    constexpr std::size_t half = 8;
    std::vector<double> places;
    if (all_.size() < 2 * half + 1) return places;
    std::vector<std::pair<std::uint64_t, std::size_t>> spans;
    for (std::size_t i = half; i + half < all_.size(); ++i)
        spans.emplace_back(all_[i + half].page - all_[i - half].page, i);
    for (int k = 0; k < most_anchors && !spans.empty(); ++k) {
        const auto densest = *std::min_element(spans.begin(), spans.end());
        // Where all pages are sampled, the middle of the densest stretch is the best place.
        std::size_t last = densest.second;
        for (const auto& [span, i] : spans)
            if (span == densest.first && i == last + 1) last = i;
        const std::size_t centre = (densest.second + last) / 2;
        // On a border between pages: their middles then stay away from the seam of the circle.
        places.push_back(static_cast<double>(all_[centre].page));
        const std::size_t apart = std::max<std::size_t>(all_.size() / 8, 32) + (last - densest.second) / 2;
        std::erase_if(spans, [&](const auto& entry) {
            return entry.second + apart > centre && entry.second < centre + apart;
        });
    }
    return places;
}

Search::Window Search::window_between(double from, double to) const {
    const auto before = [](const Sighting& s, double x) { return middle(s) < x; };
    const auto begin = std::lower_bound(all_.begin(), all_.end(), from, before);
    const auto end = std::lower_bound(begin, all_.end(), to, before);
    return {static_cast<std::size_t>(begin - all_.begin()), static_cast<std::size_t>(end - all_.begin())};
}

// At most so many sightings of a window, spread evenly over its pages as far as they go.
std::vector<std::size_t> Search::thinned(Window range, std::size_t most) const {
    std::vector<std::size_t> chosen;
    const std::size_t count = range.end - range.first;
    chosen.reserve(std::min(count, most));
    if (count <= most) {
        chosen.resize(count);
        std::iota(chosen.begin(), chosen.end(), range.first);
        return chosen;
    }
    // Half of them one a stratum of pages, the other half by rank (which follows the density).
    const double begin = middle(all_[range.first]);
    const double width = (middle(all_[range.end - 1]) - begin + 1) / (static_cast<double>(most) / 2);
    double next = begin;
    std::size_t taken = 0;
    for (std::size_t i = range.first; i < range.end; ++i) {
        const bool by_place = middle(all_[i]) >= next;
        const bool by_rank = (i - range.first) * (most / 2) >= taken * count;
        if (by_place) next += width * std::ceil((middle(all_[i]) - next + 1e-9) / width);
        if (by_rank) ++taken;
        if (by_place || by_rank) chosen.push_back(i);
    }
    return chosen;
}

// Candidate periods from a periodogram of the owners (one indicator a node).
Search::Peaks Search::peaks(double anchor, double radius, Window range) const {
    const std::vector<std::size_t> chosen = thinned(range, most_in_spectrum);
    const std::size_t count = chosen.size();
    // Weights make unevenly dense samples stand for the pages around them.
    std::vector<double> weight(count);
    for (std::size_t k = 0; k < count; ++k) {
        const double left = k > 0 ? middle(all_[chosen[k]]) - middle(all_[chosen[k - 1]]) : 1;
        const double right = k + 1 < count ? middle(all_[chosen[k + 1]]) - middle(all_[chosen[k]]) : 1;
        weight[k] = std::min(left + right, radius / 4);
    }
    const auto width = static_cast<std::size_t>(nodes_);
    std::vector<double> mean(width, 0.0);
    double sum = 0, squares = 0;
    for (std::size_t k = 0; k < count; ++k) {
        mean[static_cast<std::size_t>(all_[chosen[k]].node)] += weight[k];
        sum += weight[k];
        squares += weight[k] * weight[k];
    }
    double variance = 0;
    for (double& m : mean) {
        m /= sum;
        variance += m * (1 - m);
    }
    if (variance * squares <= 0) return {};

    const double step = 1 / (4 * radius);
    // Owners of whole pages cannot change faster than every page.
    const int last = std::min(frequencies, static_cast<int>(0.5 / step) + 1);
    if (last <= first_frequency) return {};
    struct Sum {
        double re, im;
    };
    const std::size_t bins = static_cast<std::size_t>(last) + 1;
    std::vector<Sum> sums(width * bins, Sum{0, 0});
    std::vector<Sum> total(bins, Sum{0, 0});
    for (std::size_t k = 0; k < count; ++k) {
        const double angle = 2 * std::numbers::pi * step * (middle(all_[chosen[k]]) - anchor);
        const double turn_re = std::cos(angle), turn_im = std::sin(angle);
        double re = weight[k] * std::cos(angle * first_frequency);
        double im = weight[k] * std::sin(angle * first_frequency);
        Sum* into = sums.data() + static_cast<std::size_t>(all_[chosen[k]].node) * bins;
        for (std::size_t j = first_frequency; j < bins; ++j) {
            into[j].re += re;
            into[j].im += im;
            total[j].re += re;
            total[j].im += im;
            const double next = re * turn_re - im * turn_im;
            im = re * turn_im + im * turn_re;
            re = next;
        }
    }
    std::vector<double> power(bins + 1, 0.0);
    for (std::size_t j = first_frequency; j < bins; ++j) {
        for (std::size_t n = 0; n < width; ++n) {
            const Sum& own = sums[n * bins + j];
            const double re = own.re - mean[n] * total[j].re, im = own.im - mean[n] * total[j].im;
            power[j] += re * re + im * im;
        }
        power[j] /= variance * squares; // about 1 without a period
    }
    const double spread = 1 / std::sqrt(std::max(mixed_ - 1, 1.0));
    const double threshold = 1 + 6 * spread, faint = 1 + 3 * spread;
    std::vector<std::pair<double, double>> found;
    for (std::size_t j = first_frequency; j < bins; ++j) {
        const double before = j > first_frequency ? power[j - 1] : 0, after = power[j + 1];
        if (power[j] < faint || power[j] < before || power[j] < after) continue;
        // The top of the parabola through the three highest points.
        double shift = 0;
        if (before > 0 && after > 0) {
            const double bend = before - 2 * power[j] + after;
            if (bend < 0) shift = std::clamp(0.5 * (before - after) / bend, -0.5, 0.5);
        }
        found.emplace_back(power[j], 1 / (step * (static_cast<double>(j) + shift)));
    }
    std::sort(found.begin(), found.end(), std::greater<>());
    Peaks result;
    for (std::size_t k = 0; k < std::min<std::size_t>(found.size(), 3); ++k)
        (found[k].first >= threshold ? result.clear : result.faint).push_back(found[k].second);
    return result;
}

// Share of neighbours on the folded circle that have the same owner.
double Search::neighbours_agree(const std::vector<std::size_t>& chosen, double anchor, double period) const {
    std::vector<std::pair<double, Node>> folded;
    folded.reserve(chosen.size());
    for (const std::size_t i : chosen)
        folded.emplace_back(phase_of(middle(all_[i]), anchor, period), all_[i].node);
    std::sort(folded.begin(), folded.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::size_t same = folded.front().second == folded.back().second;
    for (std::size_t k = 1; k < folded.size(); ++k)
        same += folded[k].second == folded[k - 1].second;
    return static_cast<double>(same) / static_cast<double>(folded.size());
}

// How many sightings between two places the cycle explains. Those next to a border tell little about whether
// it holds (they wait for a better fit) and are left out.
Search::Tally Search::tally(const Cycle& cycle, double from, double to) const {
    Tally result;
    const Window range{window_between(from, to)};
    for (std::size_t i = range.first; i < range.end; ++i) {
        const double phase = phase_of(middle(all_[i]), cycle.origin, cycle.period);
        if (near_border(cycle, phase)) continue;
        const bool matches = node_at(cycle, phase) == all_[i].node;
        ++result.tested;
        result.matched += matches;
        result.ratio += ratio(i, matches);
    }
    return result;
}

// Log-likelihood ratio of a sighting that a cycle explains, or not, against disorder.
double Search::ratio(std::size_t i, bool matches) const {
    return all_[i].surprise + (matches ? log_match_ : log_miss_);
}

// Doubles the window while the cycle predicts what lies outside, fitting period and table again each time.
bool Search::track(Tracked& state, double anchor, double radius) const {
    Cycle& cycle = state.cycle;
    const auto fitted = thinned(window(anchor, radius), most_in_fit);
    cycle.origin = anchor;
    if (!folding_.fold(cycle, fitted)) return false;
    folding_.refit(cycle, fitted, radius, 1, 0.125);
    cycle.origin = anchor + phase_of(cycle.origin, anchor, cycle.period);
    if (!folding_.fold(cycle, fitted)) return false;
    Tally inside;
    for (const std::size_t i : fitted) {
        const bool matches =
            node_at(cycle, phase_of(middle(all_[i]), cycle.origin, cycle.period)) == all_[i].node;
        ++inside.tested;
        inside.matched += matches;
        inside.ratio += ratio(i, matches);
    }
    if (!inside.holds(least_agreement_)) return false;

    const double to_first = anchor - middle(all_.front()) + 1, to_last = middle(all_.back()) - anchor + 1;
    state.left = state.right = radius;
    bool open_left = state.left < to_first, open_right = state.right < to_last;
    while (open_left || open_right) {
        const double left = open_left ? std::min(2 * state.left, to_first) : state.left;
        const double right = open_right ? std::min(2 * state.right, to_last) : state.right;
        const Cycle before = cycle;
        folding_.refit(cycle, thinned(window_between(anchor - left, anchor + right), most_in_fit),
                       std::max(left, right), 1, 0.125);
        const Tally on_left = tally(cycle, anchor - left, anchor - state.left);
        const Tally on_right = tally(cycle, anchor + state.right, anchor + right);
        open_left = open_left && on_left.holds(least_agreement_);
        open_right = open_right && on_right.holds(least_agreement_);
        if (!open_left && !open_right) {
            cycle = before;
            break;
        }
        if (open_left) {
            state.left = left;
            state.predicted += on_left.tested;
            state.confirmed += on_left.matched;
        }
        if (open_right) {
            state.right = right;
            state.predicted += on_right.tested;
            state.confirmed += on_right.matched;
        }
        folding_.refold(
            cycle, thinned(window_between(anchor - state.left, anchor + state.right), most_in_fit), anchor);
        open_left = open_left && state.left < to_first;
        open_right = open_right && state.right < to_last;
    }
    return state.predicted >= least_predicted &&
           static_cast<double>(state.confirmed) >= least_agreement_ * static_cast<double>(state.predicted);
}

// How far the cycle reaches, to the sample: outwards from the anchor, the ends with the highest likelihood
// ratio against disorder.
Search::Window Search::extent(const Cycle& cycle, double anchor) const {
    const auto gained = [&](std::size_t i) {
        const double phase = phase_of(middle(all_[i]), cycle.origin, cycle.period);
        const bool matches = node_at(cycle, phase) == all_[i].node;
        return matches || !near_border(cycle, phase) ? ratio(i, matches) : 0;
    };
    const std::size_t centre = window(anchor, 0.75).first;
    Window result{centre, centre};
    double score = 0, best = 0;
    for (std::size_t i = centre; i < all_.size(); ++i)
        if ((score += gained(i)) > best) best = score, result.end = i + 1;
    score = best = 0;
    for (std::size_t i = centre; i-- > 0;)
        if ((score += gained(i)) > best) best = score, result.first = i;
    return result;
}

std::optional<FoundCycle> Search::find(double anchor, double radius, double period) const {
    Tracked state;
    state.cycle.period = period;
    if (!track(state, anchor, radius)) return std::nullopt;
    // Period, table and extent depend on each other: each is fitted again with the others.
    Cycle& cycle = state.cycle;
    Window range = window_between(anchor - state.left, anchor + state.right);
    std::vector<std::size_t> inside;
    double reach = radius;
    for (const double slack : {0.5, 0.5, 0.1}) {
        if (range.end <= range.first) return std::nullopt;
        inside = thinned(range, std::max(most_in_last_fit, 96 * static_cast<std::size_t>(nodes_)));
        reach = std::max({anchor - middle(all_[range.first]), middle(all_[range.end - 1]) - anchor, radius});
        folding_.refit(cycle, inside, reach, slack, slack / 10);
        folding_.refold(cycle, inside, anchor);
        if (slack < 0.5) folding_.climb(cycle, inside, reach);
        folding_.simplify(cycle, inside);
        range = extent(cycle, anchor);
    }
    // An error of the period moves the borders further, the further they are from the anchor.
    const double drift = cycle.period_error * reach / cycle.period;
    if (drift > 0.5)
        cycle.border_error += static_cast<double>(cycle.pieces.size()) * drift / (4 * cycle.period);
    FoundCycle found;
    found.sampled = {all_[range.first].page, all_[range.end - 1].page + 1};
    found.samples = static_cast<std::uint32_t>(range.end - range.first);
    for (std::size_t i = range.first; i < range.end; ++i)
        found.matches +=
            node_at(cycle, phase_of(middle(all_[i]), cycle.origin, cycle.period)) == all_[i].node;
    const double periods = static_cast<double>(found.sampled.size()) / cycle.period;
    if (found.matches < least_agreement_ * found.samples || periods < 3) return std::nullopt;
    found.cycle = cycle;
    return found;
}

// Of a period and its near multiples and parts, the one with the highest gain: half of a period may explain
// three quarters of the samples, and twice the period explains all, with twice as many pieces.
std::optional<FoundCycle> Search::find_best(double anchor, double radius, double period) const {
    auto best = find(anchor, radius, period);
    if (!best) return best;
    double gain = gain_(*best);
    const auto attempt = [&](double other) {
        auto found = find(anchor, std::max(radius, 1.25 * other), other);
        if (!found) return;
        const double found_gain = gain_(*found);
        if (found_gain > gain) {
            best = std::move(found);
            gain = found_gain;
        }
    };
    const double agreement = static_cast<double>(best->matches) / best->samples;
    if (agreement < 1 - std::max(noise_, 0.02) - 0.06) {
        const double found = best->cycle.period;
        for (const int multiple : {2, 3})
            attempt(found * multiple);
    }
    const Cycle cycle = best->cycle;
    const std::size_t pieces = cycle.pieces.size();
    for (const std::size_t part : {2u, 3u}) {
        if (pieces % part != 0 || pieces / part < 2) continue;
        bool repeats = true;
        for (std::size_t k = 0; k + pieces / part < pieces; ++k)
            repeats = repeats && cycle.pieces[k].node == cycle.pieces[k + pieces / part].node;
        if (repeats) attempt(cycle.period / static_cast<double>(part));
    }
    if (gain <= 0) return std::nullopt;
    return best;
}

// Periods worth fitting in a window, the smallest first: the peaks of the periodogram and their multiples
// under which neighbours on the circle agree much more often than by chance. faint: the weak peaks of the
// next smaller window, and then of this one: what is seen in both is no chance.
std::vector<double> Search::candidates(double anchor, double radius, std::vector<double>& faint) const {
    const Window range = window(anchor, radius);
    const auto chosen = thinned(range, most_in_spectrum);
    Peaks found = peaks(anchor, radius, range);
    for (const double period : found.faint)
        for (const double before : faint)
            if (std::abs(1 / period - 1 / before) < 1 / (4 * radius)) {
                found.clear.push_back(period);
                break;
            }
    faint.swap(found.faint);
    std::vector<std::pair<double, double>> rated; // agreement, period
    double best = 0;
    for (const double peak : found.clear) {
        for (int multiple = 1; multiple <= most_multiple && peak * multiple <= radius; ++multiple) {
            rated.emplace_back(neighbours_agree(chosen, anchor, peak * multiple), peak * multiple);
            best = std::max(best, rated.back().first);
        }
    }
    std::vector<double> periods;
    if (best < std::min(1.5 / mixed_, 0.6)) return periods;
    // A multiple of the true period agrees nearly as well.
    for (const auto& [agreement, period] : rated)
        if (agreement >= best - 0.08) periods.push_back(period);
    std::sort(periods.begin(), periods.end());
    periods.erase(
        std::unique(periods.begin(), periods.end(), [](double a, double b) { return b < 1.005 * a; }),
        periods.end());
    if (periods.size() > most_candidates) periods.resize(most_candidates);
    return periods;
}

// A cycle of a period that is known well enough to fold scattered sightings at once: the row of another
// cycle. Beside that one it begins at one end or the other.
std::optional<FoundCycle> Search::find_beside(double period) const {
    for (std::size_t count = least_in_window; count <= all_.size(); count *= 2)
        for (const std::size_t first : {std::size_t{0}, all_.size() - count}) {
            const double begin = middle(all_[first]), end = middle(all_[first + count - 1]);
            const double radius = std::max((end - begin) / 2 + 1, 1.25 * period);
            if (auto found = find_best(std::floor((begin + end) / 2), radius, period)) return found;
        }
    return std::nullopt;
}

std::optional<FoundCycle> Search::run(double hint, bool beside) {
    if (nodes_ < 2 || all_.size() < least_in_window + least_predicted) return std::nullopt;
    if (beside) return find_beside(hint);
    for (const double anchor : anchors()) {
        if (hint > 0) {
            if (auto found = find_best(anchor, std::max(1.25 * hint, 6.0), hint)) return found;
            continue;
        }
        const double whole = std::max(anchor - middle(all_.front()), middle(all_.back()) - anchor) + 1;
        double radius = 6;
        while (radius < whole && window(anchor, radius).end - window(anchor, radius).first < least_in_window)
            radius *= 1.25;
        std::vector<double> faint;
        while (radius < 2 * whole) {
            for (const double period : candidates(anchor, radius, faint))
                if (auto found = find_best(anchor, radius, period)) return found;
            radius *= 2;
        }
    }
    return std::nullopt;
}

} // namespace

std::optional<FoundCycle> find_cycle(std::span<const Sighting> sightings, int nodes, double noise,
                                     double least_agreement, const Gain& gain, double hint, bool beside) {
    return Search(sightings, nodes, noise, least_agreement, gain).run(hint, beside);
}

} // namespace homing::policy
