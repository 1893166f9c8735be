#include "policy/cycle_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "policy/segmentation.hpp"

namespace homing::policy {

namespace {

constexpr std::size_t least_in_window = 24;   // sightings in the smallest window
constexpr std::size_t most_in_spectrum = 192; // sightings that a periodogram looks at
constexpr std::size_t most_in_fit = 384;      // and a fit of the period
constexpr int frequencies = 384;              // of a periodogram, 1 / (4 radius) apart
constexpr int first_frequency = 5;            // 2.5 periods in the window
constexpr std::size_t least_predicted = 16;   // sightings that must have been predicted, not fitted
constexpr int most_multiple = 12;             // the peak may be a harmonic of so high an order
constexpr int most_anchors = 3;

double middle(const Sighting& sighting) { return static_cast<double>(sighting.page) + 0.5; }

double phase_of(double position, double origin, double period) {
    const double turns = (position - origin) / period;
    double phase = (turns - std::floor(turns)) * period;
    if (phase >= period) phase = 0;
    return phase;
}

Node node_at(const Cycle& cycle, double phase) {
    const auto after = std::upper_bound(cycle.pieces.begin(), cycle.pieces.end(), phase,
                                        [](double p, const Cycle::Piece& piece) { return p < piece.begin; });
    return after == cycle.pieces.begin() ? cycle.pieces.back().node : std::prev(after)->node;
}

// Within a tenth of the mean piece of a border.
bool near_border(const Cycle& cycle, double phase) {
    const double margin = 0.1 * cycle.period / static_cast<double>(cycle.pieces.size());
    const auto after = std::upper_bound(cycle.pieces.begin(), cycle.pieces.end(), phase,
                                        [](double p, const Cycle::Piece& piece) { return p < piece.begin; });
    const double end = after == cycle.pieces.end() ? cycle.period : after->begin;
    const double begin = after == cycle.pieces.begin() ? 0 : std::prev(after)->begin;
    return phase - begin < margin || end - phase < margin;
}

class Search {
  public:
    Search(std::span<const Sighting> sightings, int nodes, double noise, double least_agreement,
           const Gain& gain)
        : all_(sightings), nodes_(nodes), noise_(noise), least_agreement_(least_agreement), gain_(gain) {}

    std::optional<FoundCycle> run(double hint);

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
        bool holds(double least) const {
            return static_cast<double>(matched) + 1 >= least * static_cast<double>(tested);
        }
    };

    std::vector<double> anchors() const;
    Window window_between(double from, double to) const;
    Window window(double anchor, double radius) const {
        return window_between(anchor - radius, anchor + radius);
    }
    std::vector<std::size_t> thinned(Window window, std::size_t most) const;
    std::vector<double> peaks(double anchor, double radius, Window window) const;
    double neighbours_agree(const std::vector<std::size_t>& chosen, double anchor, double period) const;
    bool fold(Cycle& cycle, const std::vector<std::size_t>& chosen) const;
    std::size_t matches(const Cycle& cycle, double period, const std::vector<std::size_t>& chosen) const;
    void refit(Cycle& cycle, const std::vector<std::size_t>& chosen, double radius, double slack,
               double resolution) const;
    std::size_t adjust_borders(Cycle& cycle, const std::vector<std::size_t>& chosen) const;
    void climb(Cycle& cycle, const std::vector<std::size_t>& chosen, double reach) const;
    Tally tally(const Cycle& cycle, double from, double to) const;
    void refold(Cycle& cycle, const std::vector<std::size_t>& chosen, double anchor) const;
    bool track(Tracked& state, double anchor, double radius) const;
    Window extent(const Cycle& cycle, double anchor) const;
    std::optional<FoundCycle> find_best(double anchor, double radius, double period) const;
    std::optional<FoundCycle> find(double anchor, double radius, double period) const;
    void simplify(Cycle& cycle, const std::vector<std::size_t>& chosen) const;

    std::span<const Sighting> all_;
    int nodes_;
    double noise_;
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

// Candidate periods from a periodogram of the owners (one indicator a node), strongest first.
std::vector<double> Search::peaks(double anchor, double radius, Window range) const {
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
    const auto bins = static_cast<std::size_t>(last + 1);
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
    const double threshold = 1 + 6 / std::sqrt(std::max(nodes_ - 1, 1));
    std::vector<std::pair<double, double>> found;
    for (std::size_t j = first_frequency; j < bins; ++j) {
        const double before = j > first_frequency ? power[j - 1] : 0, after = power[j + 1];
        if (power[j] < threshold || power[j] < before || power[j] < after) continue;
        // The top of the parabola through the three highest points.
        double shift = 0;
        if (before > 0 && after > 0) {
            const double bend = before - 2 * power[j] + after;
            if (bend < 0) shift = std::clamp(0.5 * (before - after) / bend, -0.5, 0.5);
        }
        found.emplace_back(power[j], 1 / (step * (static_cast<double>(j) + shift)));
    }
    std::sort(found.begin(), found.end(), std::greater<>());
    std::vector<double> periods;
    for (std::size_t k = 0; k < std::min<std::size_t>(found.size(), 3); ++k)
        periods.push_back(found[k].second);
    return periods;
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

// Cuts the circle into pieces of one owner. False: one owner only.
bool Search::fold(Cycle& cycle, const std::vector<std::size_t>& chosen) const {
    // Equal phases in page order, not by owner: wrong samples must stay scattered.
    std::vector<std::pair<double, std::size_t>> folded;
    folded.reserve(chosen.size());
    for (const std::size_t i : chosen)
        folded.emplace_back(phase_of(middle(all_[i]), cycle.origin, cycle.period), i);
    std::sort(folded.begin(), folded.end());
    std::vector<Node> labels(folded.size());
    for (std::size_t k = 0; k < folded.size(); ++k)
        labels[k] = all_[folded[k].second].node;
    const std::vector<Segment> segments = segment_labels(labels, nodes_, std::max(noise_, 0.05));
    if (segments.size() < 2) return false;
    cycle.pieces.clear();
    // Within a gap of a page there is nothing left to find.
    const auto doubtful = [](double gap) { return std::max(gap - 1, 0.0); };
    double gaps = 0;
    for (const Segment& segment : segments) {
        double begin = 0;
        if (segment.first > 0) {
            const double before = folded[segment.first - 1].first, after = folded[segment.first].first;
            begin = (before + after) / 2;
            gaps += doubtful(after - before);
        }
        cycle.pieces.push_back({begin, static_cast<Node>(segment.state)});
    }
    if (cycle.pieces.front().node == cycle.pieces.back().node) {
        // One piece reaches over the seam: turn the circle so that the seam lies at a border.
        cycle.pieces.erase(cycle.pieces.begin());
        const double turn = cycle.pieces.front().begin;
        cycle.origin += turn;
        for (Cycle::Piece& piece : cycle.pieces)
            piece.begin -= turn;
    } else if (folded.front().first > 0) {
        // The seam is a border, somewhere between the last and the first sample.
        const double gap = folded.front().first + cycle.period - folded.back().first;
        const double turn = folded.front().first - gap / 2;
        gaps += doubtful(gap);
        cycle.origin += turn;
        for (Cycle::Piece& piece : cycle.pieces)
            piece.begin = std::max(piece.begin - turn, 0.0);
        cycle.pieces.front().begin = 0;
    }
    // A border lies in the middle half of its gap on average.
    cycle.border_error = gaps / (4 * cycle.period);
    return true;
}

std::size_t Search::matches(const Cycle& cycle, double period, const std::vector<std::size_t>& chosen) const {
    std::size_t count = 0;
    // The table was measured near the origin; another period stretches it in proportion.
    const double stretch = cycle.period / period;
    for (const std::size_t i : chosen) {
        const double phase = phase_of(middle(all_[i]), cycle.origin, period) * stretch;
        count += node_at(cycle, phase) == all_[i].node;
    }
    return count;
}

// Sets the period that explains most of the chosen samples, all within `radius` of the origin. Tries periods
// that shift the pattern at the radius by up to `slack` pieces, in steps of `resolution` pieces.
void Search::refit(Cycle& cycle, const std::vector<std::size_t>& chosen, double radius, double slack,
                   double resolution) const {
    const double piece = cycle.period / static_cast<double>(cycle.pieces.size());
    const double turns = std::max(radius / cycle.period, 1.0);
    const int steps = static_cast<int>(std::ceil(slack / resolution));
    const double step = resolution * piece / turns;
    std::vector<std::size_t> scores(static_cast<std::size_t>(2 * steps + 1));
    for (int k = -steps; k <= steps; ++k) {
        const double period = cycle.period + k * step;
        scores[static_cast<std::size_t>(k + steps)] = period > 1 ? matches(cycle, period, chosen) : 0;
    }
    // Of equally good periods the middle of the longest row of them.
    const std::size_t best = *std::max_element(scores.begin(), scores.end());
    std::size_t first = 0, end = 0;
    for (std::size_t k = 0; k < scores.size();) {
        std::size_t until = k;
        while (until < scores.size() && scores[until] == best)
            ++until;
        if (until - k > end - first) first = k, end = until;
        k = until + 1;
    }
    const double shift = 0.5 * static_cast<double>(first + end - 1) - steps;
    const double period = cycle.period + shift * step;
    const double stretch = period / cycle.period;
    for (Cycle::Piece& p : cycle.pieces)
        p.begin *= stretch;
    cycle.period = period;
    cycle.period_error = 0.5 * static_cast<double>(end - first + 1) * step;
}

// Periods come from rows of 4- or 8-byte elements, often of whole pages: a binary fraction of a page that
// lies so near that it is hardly there by chance, and explains the samples as well.
void Search::simplify(Cycle& cycle, const std::vector<std::size_t>& chosen) const {
    for (double denominator = 1; denominator <= 1024; denominator *= 2) {
        if (cycle.period_error * denominator > 0.02) return;
        const double simple = std::round(cycle.period * denominator) / denominator;
        if (simple < 1 || std::abs(simple - cycle.period) > 2 * cycle.period_error) continue;
        if (matches(cycle, simple, chosen) < matches(cycle, cycle.period, chosen)) continue;
        const double stretch = simple / cycle.period;
        for (Cycle::Piece& piece : cycle.pieces)
            piece.begin *= stretch;
        cycle.period = simple;
        cycle.period_error = 0;
        return;
    }
}

// Moves every border between pieces to where it explains most samples, up to half a piece; returns how many
// samples the cycle explains then. Cheaper than fold(), which also asks how many pieces there are.
std::size_t Search::adjust_borders(Cycle& cycle, const std::vector<std::size_t>& chosen) const {
    const std::size_t count = cycle.pieces.size();
    // Put the seam into the middle of the last piece, so that every border can move.
    const double turn = (cycle.period - cycle.pieces.back().begin) / 2;
    cycle.origin -= turn;
    for (Cycle::Piece& piece : cycle.pieces)
        piece.begin += turn;
    std::vector<std::pair<double, Node>> folded;
    folded.reserve(chosen.size());
    for (const std::size_t i : chosen)
        folded.emplace_back(phase_of(middle(all_[i]), cycle.origin, cycle.period), all_[i].node);
    std::sort(folded.begin(), folded.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const std::vector<Cycle::Piece> before = cycle.pieces;
    for (std::size_t k = 0; k < count; ++k) {
        const Node left = before[(k + count - 1) % count].node, right = before[k].node;
        const double last = k > 0 ? before[k - 1].begin : 0;
        const double next = k + 1 < count ? before[k + 1].begin : cycle.period;
        const double low = (last + before[k].begin) / 2, high = (before[k].begin + next) / 2;
        auto it = std::lower_bound(folded.begin(), folded.end(), low,
                                   [](const auto& entry, double phase) { return entry.first < phase; });
        // The gain of every place against `low`; of equally good ones the middle.
        double previous = low, best_begin = low, best_end = low;
        int gain = 0, best = 0;
        bool open = true;
        for (; it != folded.end() && it->first < high; ++it) {
            if (it->first - previous > 1e-6) {
                if (gain > best) best = gain, best_begin = previous, open = true;
                if (open && gain == best) best_end = it->first;
                if (gain < best) open = false;
            }
            gain += (it->second == left) - (it->second == right);
            previous = it->first;
        }
        if (gain > best)
            best_begin = previous, best_end = high;
        else if (open && gain == best)
            best_end = high;
        cycle.pieces[k].begin = (best_begin + best_end) / 2;
    }
    const double first = cycle.pieces.front().begin;
    cycle.origin += first;
    for (Cycle::Piece& piece : cycle.pieces)
        piece.begin -= first;
    return matches(cycle, cycle.period, chosen);
}

// Climbs to the best period with the borders adjusted at each step: fitting one with the other fixed gets
// stuck, since a table of borders adapts to a wrong period.
void Search::climb(Cycle& cycle, const std::vector<std::size_t>& chosen, double reach) const {
    const double piece = cycle.period / static_cast<double>(cycle.pieces.size());
    if (piece < 8) return; // borders of few pages were found exactly, or have nothing to adjust
    const double turns = std::max(reach / cycle.period, 1.0);
    std::size_t best = adjust_borders(cycle, chosen);
    // Steps of a quarter of a piece at the reach, down to a hundredth.
    for (double drift = piece / 4; drift > 0.01 * piece; drift /= 2) {
        for (const double direction : {1.0, -1.0}) {
            while (true) {
                Cycle next = cycle;
                next.period += direction * drift / turns;
                const double stretch = next.period / cycle.period;
                for (Cycle::Piece& p : next.pieces)
                    p.begin *= stretch;
                const std::size_t score = adjust_borders(next, chosen);
                if (score <= best) break;
                best = score;
                cycle = next;
            }
        }
        cycle.period_error = drift / turns;
    }
}

// How many sightings between two places the cycle explains. Those next to a border tell little about whether
// it holds (they wait for a better fit) and are left out.
Search::Tally Search::tally(const Cycle& cycle, double from, double to) const {
    Tally result;
    const Window range{window_between(from, to)};
    for (std::size_t i = range.first; i < range.end; ++i) {
        const double phase = phase_of(middle(all_[i]), cycle.origin, cycle.period);
        if (near_border(cycle, phase)) continue;
        ++result.tested;
        result.matched += node_at(cycle, phase) == all_[i].node;
    }
    return result;
}

// A new table for the period, if it is no worse.
void Search::refold(Cycle& cycle, const std::vector<std::size_t>& chosen, double anchor) const {
    Cycle again = cycle;
    // The seam of the circle stays near the anchor: differences of the period shift far samples, not near
    // ones.
    again.origin = anchor + phase_of(again.origin, anchor, again.period);
    if (fold(again, chosen) && matches(again, again.period, chosen) >= matches(cycle, cycle.period, chosen))
        cycle = again;
}

// Doubles the window while the cycle predicts what lies outside, fitting period and table again each time.
bool Search::track(Tracked& state, double anchor, double radius) const {
    Cycle& cycle = state.cycle;
    const auto fitted = thinned(window(anchor, radius), most_in_fit);
    cycle.origin = anchor;
    if (!fold(cycle, fitted)) return false;
    refit(cycle, fitted, radius, 1, 0.125);
    cycle.origin = anchor + phase_of(cycle.origin, anchor, cycle.period);
    if (!fold(cycle, fitted)) return false;
    if (static_cast<double>(matches(cycle, cycle.period, fitted)) <
        least_agreement_ * static_cast<double>(fitted.size()))
        return false;

    const double to_first = anchor - middle(all_.front()) + 1, to_last = middle(all_.back()) - anchor + 1;
    state.left = state.right = radius;
    bool open_left = state.left < to_first, open_right = state.right < to_last;
    while (open_left || open_right) {
        const double left = open_left ? std::min(2 * state.left, to_first) : state.left;
        const double right = open_right ? std::min(2 * state.right, to_last) : state.right;
        const Cycle before = cycle;
        refit(cycle, thinned(window_between(anchor - left, anchor + right), most_in_fit),
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
        refold(cycle, thinned(window_between(anchor - state.left, anchor + state.right), most_in_fit),
               anchor);
        open_left = open_left && state.left < to_first;
        open_right = open_right && state.right < to_last;
    }
    return state.predicted >= least_predicted &&
           static_cast<double>(state.confirmed) >= least_agreement_ * static_cast<double>(state.predicted);
}

// How far the cycle reaches, to the sample: outwards from the anchor, the ends with the highest likelihood
// ratio against disorder.
Search::Window Search::extent(const Cycle& cycle, double anchor) const {
    const double noise = std::max(noise_, 0.05);
    const double gain = std::log(nodes_ * (1 - noise));
    const double loss = std::log(noise * nodes_ / std::max(nodes_ - 1, 1));
    const auto ratio = [&](std::size_t i) {
        const double phase = phase_of(middle(all_[i]), cycle.origin, cycle.period);
        if (node_at(cycle, phase) == all_[i].node) return gain;
        return near_border(cycle, phase) ? 0 : loss;
    };
    const std::size_t centre = window(anchor, 0.75).first;
    Window result{centre, centre};
    double score = 0, best = 0;
    for (std::size_t i = centre; i < all_.size(); ++i)
        if ((score += ratio(i)) > best) best = score, result.end = i + 1;
    score = best = 0;
    for (std::size_t i = centre; i-- > 0;)
        if ((score += ratio(i)) > best) best = score, result.first = i;
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
        inside.resize(range.end - range.first);
        std::iota(inside.begin(), inside.end(), range.first);
        reach = std::max({anchor - middle(all_[range.first]), middle(all_[range.end - 1]) - anchor, radius});
        refit(cycle, inside, reach, slack, slack / 10);
        refold(cycle, inside, anchor);
        if (slack < 0.5) climb(cycle, inside, reach);
        simplify(cycle, inside);
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
        const double found_gain = found ? gain_(*found) : 0;
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

std::optional<FoundCycle> Search::run(double hint) {
    if (nodes_ < 2 || all_.size() < least_in_window + least_predicted) return std::nullopt;
    for (const double anchor : anchors()) {
        if (hint > 0) {
            if (auto found = find_best(anchor, std::max(1.25 * hint, 6.0), hint)) return found;
            continue;
        }
        const double whole = std::max(anchor - middle(all_.front()), middle(all_.back()) - anchor) + 1;
        double radius = 6;
        while (radius < whole && window(anchor, radius).end - window(anchor, radius).first < least_in_window)
            radius *= 1.25;
        for (; radius < 2 * whole; radius *= 2) {
            const Window range = window(anchor, radius);
            const auto chosen = thinned(range, most_in_spectrum);
            std::vector<std::pair<double, double>> candidates; // agreement of neighbours, period
            for (const double peak : peaks(anchor, radius, range)) {
                for (int multiple = 1; multiple <= most_multiple; ++multiple) {
                    const double period = peak * multiple;
                    if (period > radius) break;
                    candidates.emplace_back(neighbours_agree(chosen, anchor, period), period);
                }
            }
            if (candidates.empty()) continue;
            // Agreement of neighbours on the circle, well above that of neighbours in memory order by chance.
            std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
                return a.first != b.first ? a.first > b.first : a.second < b.second;
            });
            const double best = candidates.front().first;
            if (best < 1.5 / nodes_ && best < 0.6) continue;
            int tried = 0;
            // A multiple of the true period agrees nearly as well: the smallest of the good ones goes first.
            std::vector<double> order;
            for (const auto& [agreement, period] : candidates)
                if (agreement >= best - 0.08) order.push_back(period);
            std::sort(order.begin(), order.end());
            for (const double period : order) {
                if (++tried > 4) break;
                if (auto found = find_best(anchor, radius, period)) return found;
            }
        }
    }
    return std::nullopt;
}

} // namespace

Node Cycle::owner(std::uint64_t page) const {
    if (pieces.empty() || !(period > 0)) return unknown_node;
    return node_at(*this, phase_of(static_cast<double>(page) + 0.5, origin, period));
}

std::uint64_t Cycle::stretch_end(std::uint64_t page) const {
    if (pieces.empty() || !(period > 0)) return page + 1;
    const double phase = phase_of(static_cast<double>(page) + 0.5, origin, period);
    const auto next = std::upper_bound(pieces.begin(), pieces.end(), phase,
                                       [](double p, const Piece& piece) { return p < piece.begin; });
    const double end = next == pieces.end() ? period : next->begin;
    std::uint64_t until = page + static_cast<std::uint64_t>(std::max(std::ceil(end - phase), 1.0));
    // Rounding at the border may have reached one page too far.
    const Node node = owner(page);
    while (until > page + 1 && owner(until - 1) != node)
        --until;
    return until;
}

std::optional<FoundCycle> find_cycle(std::span<const Sighting> sightings, int nodes, double noise,
                                     double least_agreement, const Gain& gain, double hint) {
    return Search(sightings, nodes, noise, least_agreement, gain).run(hint);
}

} // namespace homing::policy
