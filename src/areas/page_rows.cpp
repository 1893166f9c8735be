#include "areas/page_rows.hpp"

#include "record/record.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

namespace homing {
namespace {

/// Kinds of owners as rows have them.
record::u32 kind_of(const model::Belief& belief) {
    enum : record::u32 { none, block, cyclic, shared, mixed };
    switch (belief.likeliest()) {
    case model::Family::block:
    case model::Family::single:
    case model::Family::drift:
    case model::Family::ordered:
        return block;
    case model::Family::cyclic:
        return cyclic;
    case model::Family::shared:
        return shared;
    case model::Family::grids:
    case model::Family::tiles:
    case model::Family::runs:
        return mixed;
    case model::Family::none:
    case model::Family::home:
        break;
    }
    return none;
}

/// Where an area's sampled granules lie: the page map of the report, at no call beyond those of the sample.
void record_page_map(const WatchedArea& area, std::span<const std::uint64_t> granules,
                     std::span<const int> homes, std::uint32_t when) {
    if (granules.empty() || area.granules > UINT32_MAX) return;
    const std::uint64_t step = (area.granules + granules.size() - 1) / granules.size();
    record::page_map_row row;
    row.area = area.id;
    row.when = when;
    row.time = record::now();
    row.step = static_cast<record::u32>(step);
    int last = -2; // no node
    const auto begin_run = [&](std::uint64_t granule, int node) {
        if (node == last) return;
        last = node;
        if (row.count == std::size(row.first)) {
            record::append(row);
            row.at += row.count;
            row.count = 0;
        }
        row.first[row.count] = static_cast<record::u32>(granule);
        row.node[row.count++] = node;
    };
    std::uint64_t known = 0; // granules below it
    for (std::size_t i = 0; i < granules.size(); ++i) {
        if (granules[i] >= known + step)
            begin_run(known, -1); // what was never populated lies between samples
        begin_run(granules[i], homes[i]);
        known = granules[i] + step;
    }
    if (known + step < area.granules) begin_run(known, -1);
    record::append(row);
}

} // namespace

bool record_pages_by_node(WatchedArea& area, Mover& mover, int nodes, LookedAt at, std::uint64_t most) {
    // Evenly spread over what exists.
    const PageSet& there = area.there();
    const std::uint64_t count = area.seen ? std::min(there.size(), most) : 0;
    std::vector<std::uint64_t> granules;
    // Quotient and remainder apart, so that nothing overflows.
    for (std::uint64_t i = 0; i < count; ++i)
        granules.push_back(there.at(there.size() / count * i + there.size() % count * i / count));
    std::vector<int> homes;
    mover.homes(area, granules, homes);
    std::vector<std::uint64_t> held(static_cast<std::size_t>(nodes), 0);
    std::uint64_t absent = 0;
    for (const int home : homes) {
        if (home >= 0)
            ++held[static_cast<std::size_t>(home)];
        else
            ++absent;
    }
    const std::uint64_t looked_at = std::min(there.size() * area.granule, area.range.bytes()) / page_bytes();
    const double scale =
        static_cast<double>(looked_at) / static_cast<double>(std::max<std::uint64_t>(1, count));
    const auto pages = [&](std::uint64_t sampled) {
        return static_cast<std::uint64_t>(static_cast<double>(sampled) * scale + 0.5);
    };
    // What is not there was looked at, too.
    const std::uint64_t elsewhere = area.base_pages() - (count > 0 ? looked_at : 0);
    if (at.when == 1 && absent == count) return true; // not populated yet: nothing was found
    if (at.when == 3 && 2 * absent > count) return false;
    area.found_granules = there.size();
    if (at.when != 2) record_page_map(area, granules, homes, at.when);
    for (std::size_t first = 0; first < held.size(); first += 8) {
        record::placement_row row;
        row.area = area.id;
        row.time = record::now();
        row.when = at.when;
        row.first = static_cast<record::u32>(first);
        row.sampled = count < there.size() || area.in_part;
        row.iteration = at.iteration;
        for (std::size_t k = first; k < std::min(held.size(), first + 8); ++k)
            row.pages[k - first] = pages(held[k]);
        row.absent = pages(absent) + elsewhere;
        record::append(row);
    }
    return true;
}

void record_references(const WatchedArea& area, int node_count, std::uint32_t iteration) {
    const auto nodes = static_cast<std::size_t>(node_count);
    // By node of the thread and home of the page.
    std::vector<double> matrix(nodes * nodes, 0);
    double references = 0;
    for (const FreshTouch& touch : area.learnt.fresh) {
        if (touch.home < 0) continue;
        matrix[static_cast<std::size_t>(touch.node) * nodes + static_cast<std::size_t>(touch.home)] +=
            touch.weight;
        references += touch.weight;
    }
    if (references <= 0) return;
    for (std::size_t from = 0; from < nodes; ++from)
        for (std::size_t first = 0; first < nodes; first += 8) {
            const double* row_of = matrix.data() + from * nodes;
            if (std::all_of(row_of + first, row_of + std::min(nodes, first + 8),
                            [](double x) { return x == 0; }))
                continue;
            record::references_row row;
            row.area = area.id;
            row.iteration = iteration;
            row.from = static_cast<record::u32>(from);
            row.first = static_cast<record::u32>(first);
            row.time = record::now();
            for (std::size_t k = first; k < std::min(nodes, first + 8); ++k)
                row.to[k - first] = row_of[k];
            record::append(row);
        }
}

void record_belief(const WatchedArea& area, std::uint32_t iteration, std::uint64_t pages_to_move) {
    const model::Belief& belief = *area.learnt.belief;
    record::ownership_row row;
    row.area = area.id;
    row.iteration = iteration;
    row.time = record::now();
    row.kind = kind_of(belief);
    row.confidence = belief.probability(belief.likeliest());
    row.samples = area.references;
    row.wanted = pages_to_move;
    row.cold = area.cold;
    record::append(row);
    record::distribution_row words;
    words.area = area.id;
    words.iteration = iteration;
    words.time = row.time;
    words.family = static_cast<record::u32>(belief.likeliest());
    words.probability = row.confidence;
    words.ignorance = area.learnt.ignorance;
    words.words = record::text(belief.words());
    words.known = area.learnt.users.known();
    record::append(words);
}

void record_estimate(WatchedArea& area, Mover& mover, std::uint32_t iteration, bool by_access,
                     double traffic) {
    std::vector<int> homes;
    mover.homes(area, area.remote_share.granules(), homes);
    const RemoteSums sums = area.remote_share.sums(homes, area.there(), by_access);
    if (sums.granules == 0) return;
    record::estimate_row row;
    row.area = area.id;
    row.iteration = iteration;
    row.granules = static_cast<record::u32>(sums.granules);
    row.by_access = by_access;
    row.time = record::now();
    row.touches = sums.touches;
    row.traffic = traffic;
    row.weight = sums.weight;
    row.weight2 = sums.weight2;
    row.before = sums.before.share;
    row.before1 = sums.before.share1;
    row.before2 = sums.before.share2;
    row.after = sums.after.share;
    row.after1 = sums.after.share1;
    row.after2 = sums.after.share2;
    record::append(row);
}

} // namespace homing
