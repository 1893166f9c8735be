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

class Search {
  public:
    Search(std::span<const Sighting> sightings, int nodes, double noise, double least_agreement)
        : all_(sightings), nodes_(nodes), noise_(noise), least_agreement_(least_agreement) {}

    std::optional<FoundCycle> run();

  private:
    struct Window {
        std::size_t first, end;
    };
    struct Tracked {
        Cycle cycle;
        double radius = 0;
    };

    std::vector<double> anchors() const;
    Window window(double anchor, double radius) const;
    std::vector<std::size_t> thinned(Window window, std::size_t most) const;
    std::vector<double> peaks(double anchor, double radius, Window window) const;
    double neighbours_agree(const std::vector<std::size_t>& chosen, double anchor, double period) const;
    bool fold(Cycle& cycle, const std::vector<std::size_t>& chosen) const;
    std::size_t matches(const Cycle& cycle, double period, const std::vector<std::size_t>& chosen) const;
    double refit(Cycle& cycle, const std::vector<std::size_t>& chosen, double radius, double slack) const;
    std::optional<FoundCycle> track(double anchor, double radius, double period) const;
    static void simplify(Cycle& cycle);

    std::span<const Sighting> all_;
    int nodes_;
    double noise_;
    double least_agreement_;
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
        places.push_back(middle(all_[centre]));
        const std::size_t apart = std::max<std::size_t>(all_.size() / 8, 32) + (last - densest.second) / 2;
        std::erase_if(spans, [&](const auto& entry) {
            return entry.second + apart > centre && entry.second < centre + apart;
        });
    }
    return places;
}

Search::Window Search::window(double anchor, double radius) const {
    const auto before = [](const Sighting& s, double x) { return middle(s) < x; };
    const auto from = std::lower_bound(all_.begin(), all_.end(), anchor - radius, before);
    const auto to = std::lower_bound(from, all_.end(), anchor + radius, before);
    return {static_cast<std::size_t>(from - all_.begin()), static_cast<std::size_t>(to - all_.begin())};
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
    std::sort(folded.begin(), folded.end());
    std::size_t same = folded.front().second == folded.back().second;
    for (std::size_t k = 1; k < folded.size(); ++k)
        same += folded[k].second == folded[k - 1].second;
    return static_cast<double>(same) / static_cast<double>(folded.size());
}

// Cuts the circle into pieces of one owner. False: one owner only.
bool Search::fold(Cycle& cycle, const std::vector<std::size_t>& chosen) const {
    std::vector<std::pair<double, Node>> folded;
    folded.reserve(chosen.size());
    for (const std::size_t i : chosen)
        folded.emplace_back(phase_of(middle(all_[i]), cycle.origin, cycle.period), all_[i].node);
    std::sort(folded.begin(), folded.end());
    std::vector<Node> labels(folded.size());
    for (std::size_t k = 0; k < folded.size(); ++k)
        labels[k] = folded[k].second;
    const std::vector<Segment> segments = segment_labels(labels, nodes_, std::max(noise_, 0.05));
    if (segments.size() < 2) return false;
    cycle.pieces.clear();
    for (const Segment& segment : segments) {
        const double begin =
            segment.first == 0 ? 0 : (folded[segment.first].first + folded[segment.first - 1].first) / 2;
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
        cycle.origin += turn;
        for (Cycle::Piece& piece : cycle.pieces)
            piece.begin = std::max(piece.begin - turn, 0.0);
        cycle.pieces.front().begin = 0;
    }
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

// Sets the period that explains most of the chosen samples, all within `radius` of the origin. The search
// covers the periods that shift the pattern by up to slack pieces at the radius. Returns the half-width of
// the best plateau.
double Search::refit(Cycle& cycle, const std::vector<std::size_t>& chosen, double radius,
                     double slack) const {
    const double piece = cycle.period / static_cast<double>(cycle.pieces.size());
    const double turns = std::max(radius / cycle.period, 1.0);
    constexpr double resolution = 0.125; // of a piece, at the radius
    const int steps = static_cast<int>(std::ceil(slack / resolution));
    const double step = resolution * piece / turns;
    std::size_t best = 0;
    std::vector<std::size_t> scores(static_cast<std::size_t>(2 * steps + 1));
    for (int k = -steps; k <= steps; ++k) {
        const double period = cycle.period + k * step;
        const std::size_t score = period > 1 ? matches(cycle, period, chosen) : 0;
        scores[static_cast<std::size_t>(k + steps)] = score;
        best = std::max(best, score);
    }
    // Ties and near-ties around the best: their middle.
    const std::size_t near = best - std::min<std::size_t>(best, best / 200);
    double sum = 0;
    int count = 0, lowest = steps, highest = -steps;
    for (int k = -steps; k <= steps; ++k) {
        if (scores[static_cast<std::size_t>(k + steps)] < near) continue;
        sum += k;
        ++count;
        lowest = std::min(lowest, k);
        highest = std::max(highest, k);
    }
    const double period = cycle.period + sum / count * step;
    const double stretch = period / cycle.period;
    for (Cycle::Piece& p : cycle.pieces)
        p.begin *= stretch;
    cycle.period = period;
    cycle.period_error = (highest - lowest + 1) * 0.5 * step;
    return cycle.period_error;
}

// Periods come from rows of 4- or 8-byte elements: the simplest binary fraction of a page within the error.
void Search::simplify(Cycle& cycle) {
    for (double denominator = 1; denominator <= 1024; denominator *= 2) {
        const double simple = std::round(cycle.period * denominator) / denominator;
        if (simple >= 1 && std::abs(simple - cycle.period) <= cycle.period_error) {
            const double stretch = simple / cycle.period;
            for (Cycle::Piece& piece : cycle.pieces)
                piece.begin *= stretch;
            cycle.period = simple;
            cycle.period_error = 0;
            return;
        }
    }
}

// Doubles the window while the pattern predicts what lies outside, refining period and table each time.
std::optional<FoundCycle> Search::track(double anchor, double radius, double period) const {
    Tracked state;
    state.cycle.period = period;
    // The seam of the circle lies at the anchor: differences of the period shift far samples, not near ones.
    state.cycle.origin = anchor;
    const auto fitted = thinned(window(anchor, radius), most_in_fit);
    if (!fold(state.cycle, fitted)) return std::nullopt;
    refit(state.cycle, fitted, radius, 1);
    state.cycle.origin = anchor + phase_of(state.cycle.origin, anchor, state.cycle.period);
    if (!fold(state.cycle, fitted)) return std::nullopt;
    if (static_cast<double>(matches(state.cycle, state.cycle.period, fitted)) <
        least_agreement_ * static_cast<double>(fitted.size()))
        return std::nullopt;

    double left = radius, right = radius; // reach on either side
    bool open_left = true, open_right = true;
    const double first = middle(all_.front()), last = middle(all_.back());
    std::size_t predicted = 0, confirmed = 0;
    const auto side = [&](double from, double to, std::size_t& tested, std::size_t& matched) {
        const auto before = [](const Sighting& s, double x) { return middle(s) < x; };
        const auto begin = std::lower_bound(all_.begin(), all_.end(), from, before);
        const auto end = std::lower_bound(begin, all_.end(), to, before);
        tested = static_cast<std::size_t>(end - begin);
        matched = 0;
        for (auto it = begin; it != end; ++it)
            matched += node_at(state.cycle, phase_of(middle(*it), state.cycle.origin, state.cycle.period)) ==
                       it->node;
    };
    while ((open_left && anchor - left > first) || (open_right && anchor + right < last)) {
        const double new_left = open_left ? std::min(2 * left, anchor - first + 1) : left;
        const double new_right = open_right ? std::min(2 * right, last - anchor + 1) : right;
        const double reach = std::max(new_left, new_right);
        Window wider{window(anchor, new_left).first, window(anchor, new_right).end};
        const auto chosen = thinned(wider, most_in_fit);
        const Cycle kept = state.cycle;
        refit(state.cycle, chosen, reach, 1);
        std::size_t left_tested, left_matched, right_tested, right_matched;
        side(anchor - new_left, anchor - left, left_tested, left_matched);
        side(anchor + right, anchor + new_right + 1, right_tested, right_matched);
        const auto holds = [&](std::size_t tested, std::size_t matched) {
            return static_cast<double>(matched) + 1 >= least_agreement_ * static_cast<double>(tested);
        };
        const bool left_holds = holds(left_tested, left_matched),
                   right_holds = holds(right_tested, right_matched);
        if (!left_holds && !right_holds) {
            state.cycle = kept;
            open_left = open_right = false;
            break;
        }
        if (left_holds) {
            predicted += left_tested;
            confirmed += left_matched;
            left = new_left;
        } else {
            open_left = false;
        }
        if (right_holds) {
            predicted += right_tested;
            confirmed += right_matched;
            right = new_right;
        } else {
            open_right = false;
        }
        const auto accepted = thinned({window(anchor, left).first, window(anchor, right).end}, most_in_fit);
        Cycle again = state.cycle;
        again.origin = anchor + phase_of(again.origin, anchor, again.period);
        if (fold(again, accepted) &&
            matches(again, again.period, accepted) >= matches(state.cycle, state.cycle.period, accepted))
            state.cycle = again;
    }
    if (predicted < least_predicted ||
        static_cast<double>(confirmed) < least_agreement_ * static_cast<double>(predicted))
        return std::nullopt;

    // How far it reaches, to the sample: outwards from the anchor, the end with the highest likelihood ratio
    // against disorder.
    const double gain = std::log(nodes_ * (1 - std::max(noise_, 0.05)));
    const double loss = std::log(std::max(noise_, 0.05) * nodes_ / std::max(nodes_ - 1, 1));
    const auto ratio = [&](std::size_t i) {
        const double phase = phase_of(middle(all_[i]), state.cycle.origin, state.cycle.period);
        return node_at(state.cycle, phase) == all_[i].node ? gain : loss;
    };
    const std::size_t centre = window(anchor, 0.75).first;
    std::size_t begin = centre, end = centre;
    const std::size_t most_left = window(anchor, 2 * left + 1).first,
                      most_right = window(anchor, 2 * right + 1).end;
    double score = 0, best = 0;
    for (std::size_t i = centre; i < most_right; ++i)
        if ((score += ratio(i)) > best) best = score, end = i + 1;
    score = best = 0;
    for (std::size_t i = centre; i-- > most_left;)
        if ((score += ratio(i)) > best) best = score, begin = i;
    if (end <= begin) return std::nullopt;

    std::vector<std::size_t> inside(end - begin);
    std::iota(inside.begin(), inside.end(), begin);
    const double reach = std::max(anchor - middle(all_[begin]), middle(all_[end - 1]) - anchor);
    refit(state.cycle, inside, std::max(reach, radius), 0.75);
    simplify(state.cycle);
    Cycle final_fold = state.cycle;
    final_fold.origin = anchor + phase_of(final_fold.origin, anchor, final_fold.period);
    if (fold(final_fold, inside) &&
        matches(final_fold, final_fold.period, inside) >= matches(state.cycle, state.cycle.period, inside))
        state.cycle = final_fold;
    FoundCycle found;
    found.cycle = state.cycle;
    found.sampled = {all_[begin].page, all_[end - 1].page + 1};
    found.samples = static_cast<std::uint32_t>(end - begin);
    found.matches = static_cast<std::uint32_t>(matches(state.cycle, state.cycle.period, inside));
    const double periods = static_cast<double>(found.sampled.size()) / state.cycle.period;
    if (found.matches < least_agreement_ * found.samples || periods < 3) return std::nullopt;
    return found;
}

std::optional<FoundCycle> Search::run() {
    if (nodes_ < 2 || all_.size() < least_in_window + least_predicted) return std::nullopt;
    for (const double anchor : anchors()) {
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
                if (auto found = track(anchor, radius, period)) return found;
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
                                     double least_agreement) {
    return Search(sightings, nodes, noise, least_agreement).run();
}

} // namespace homing::policy
