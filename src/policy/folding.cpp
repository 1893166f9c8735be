#include "policy/folding.hpp"

#include <algorithm>
#include <cmath>

#include "policy/segmentation.hpp"

namespace homing::policy {

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

// Cuts the circle into pieces of one owner. False: one owner only.
bool Folding::fold(Cycle& cycle, const Chosen& chosen) const {
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

std::size_t Folding::matches(const Cycle& cycle, double period, const Chosen& chosen) const {
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
void Folding::refit(Cycle& cycle, const Chosen& chosen, double radius, double slack,
                    double resolution) const {
    const double piece = cycle.period / static_cast<double>(cycle.pieces.size());
    const double turns = std::max(radius / cycle.period, 1.0);
    const int steps = static_cast<int>(std::ceil(slack / resolution));
    const double step = resolution * piece / turns;
    std::vector<std::size_t> scores(2 * static_cast<std::size_t>(steps) + 1);
    for (std::size_t k = 0; k < scores.size(); ++k) {
        const double period = cycle.period + (static_cast<double>(k) - steps) * step;
        scores[k] = period > 1 ? matches(cycle, period, chosen) : 0;
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
void Folding::simplify(Cycle& cycle, const Chosen& chosen) const {
    for (int power = 0; power <= 10; ++power) {
        const double denominator = 1 << power;
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
std::size_t Folding::adjust_borders(Cycle& cycle, const Chosen& chosen) const {
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
void Folding::climb(Cycle& cycle, const Chosen& chosen, double reach) const {
    const double piece = cycle.period / static_cast<double>(cycle.pieces.size());
    // With short pieces and a period of (nearly) whole pages all phases fall together, and there is nothing
    // to adjust.
    const double fraction = std::abs(cycle.period - std::round(cycle.period));
    if (piece < 8 && fraction < 0.02) return;
    const double turns = std::max(reach / cycle.period, 1.0);
    std::size_t best = adjust_borders(cycle, chosen);
    // Steps of a quarter of a piece at the reach, down to a sixty-fourth.
    for (int power = 2; power <= 6; ++power) {
        const double drift = piece / (1 << power);
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

// A new table for the period, if it is no worse.
void Folding::refold(Cycle& cycle, const Chosen& chosen, double anchor) const {
    Cycle again = cycle;
    // The seam of the circle stays near the anchor: differences of the period shift far samples, not near
    // ones.
    again.origin = anchor + phase_of(again.origin, anchor, again.period);
    if (fold(again, chosen) && matches(again, again.period, chosen) >= matches(cycle, cycle.period, chosen))
        cycle = again;
}

} // namespace homing::policy
