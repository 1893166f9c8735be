#include "phases/recording.hpp"

#include "areas/area_shape.hpp"
#include "counters/hot_memory.hpp"
#include "model/belief.hpp"

#include <algorithm>
#include <cmath>

namespace homing::replay {
namespace {

namespace tuning = model::tuning;

/// What the touches of a page count together where they are expected: the criterion compares parts of it.
constexpr double parts_of_a_page = 1000;

/// The touches as a belief is to see them: existing granules by their number, threads by their position, and
/// of thousands an even part.
std::vector<model::Touch> shown(Engine& engine, const WatchedArea& area,
                                const std::vector<model::Touch>& touches) {
    std::vector<model::Touch> out;
    const std::size_t stride = (touches.size() + tuning::most_touches - 1) / tuning::most_touches;
    for (std::size_t i = 0; i < touches.size(); i += stride) {
        model::Touch touch = touches[i];
        touch.page = std::min(area.there().below(touch.page), area.there().size() - 1);
        touch.thread = engine.team().position(touch.thread);
        out.push_back(touch);
    }
    return out;
}

using Rows = std::map<std::uint64_t, std::span<const std::uint64_t>>; ///< counts by node, by granule

/// Who was seen on each page oftenest, where that is one node.
model::Users users_of(const Rows& rows, const PageSet& there) {
    model::Users users;
    for (const auto& [granule, counts] : rows) {
        const auto most = std::ranges::max_element(counts);
        std::uint64_t others = 0;
        for (auto at = counts.begin(); at != counts.end(); ++at)
            others += at == most ? 0 : *at;
        if (*most <= others) continue;
        const std::uint64_t page = std::min(there.below(granule), there.size() - 1);
        const auto lead = std::min<std::uint64_t>(*most - others, tuning::telling_touches);
        if (users.empty() || users.back().page != page)
            users.push_back({page, static_cast<model::Node>(most - counts.begin()), static_cast<int>(lead)});
    }
    return users;
}

void add_row(Trace& trace, PageId page, std::span<const std::uint64_t> counts) {
    for (std::size_t node = 0; node < counts.size(); ++node)
        if (counts[node] > 0) trace.add(page, static_cast<policy::Node>(node), counts[node]);
}

/// What is expected of the area's pages in the phase.
void add_expected(Engine& engine, const WatchedArea& area, const Recording& recording, const Rows& rows,
                  Trace& trace) {
    const TeamTable& team = engine.team();
    const std::vector<model::Touch> touches = shown(engine, area, recording.touches.at(area.id));
    model::Belief belief(*team.formulas(), team.team(), extent_of(area, team.team().threads()), touches,
                         team.prior());
    belief.know_users(users_of(rows, area.there()), {});
    const counters::HotMemory hot;
    model::Prospect prospect;
    std::uint64_t stretch_end = 0;
    for (std::uint64_t page = 0; page < area.there().size(); ++page) {
        const std::uint64_t granule = area.there().at(page);
        const auto row = rows.find(granule);
        if ((row == rows.end() && !recording.is_sample) || !hot.has(area, granule)) continue;
        if (row != rows.end() || page >= stretch_end) {
            belief.prospect(page, model::unknown_node, prospect);
            stretch_end = belief.stretch_end(page);
        }
        const PageId id{area.id, granule};
        if (!prospect.is_beyond) {
            for (std::size_t node = 0; node < prospect.local.size(); ++node)
                if (const double share = std::round(parts_of_a_page * prospect.local[node]); share > 0)
                    trace.add(id, static_cast<policy::Node>(node), static_cast<std::uint64_t>(share));
        } else if (row != rows.end()) {
            add_row(trace, id, row->second);
        }
    }
}

} // namespace

void Recording::add(Engine& engine, const WatchedArea& area, const Reference& reference) {
    const std::uint64_t granule = area.granule_of(reference.address);
    const int position = engine.nodes().position(reference.node);
    if (position < 0) return;
    trace.add({area.id, granule}, static_cast<policy::Node>(position), reference.weight);
    if (engine.counts_misses()) return;
    touches[area.id].push_back({granule, engine.team().slot(reference.thread, position), 0, reference.write,
                                area.within_granule(reference.address)});
}

Trace expected_trace(Engine& engine, const Recording& recording, std::size_t& left) {
    if (recording.touches.empty()) return recording.trace; // counted
    Trace expected(engine.nodes().count());
    std::map<std::uint32_t, Rows> rows;
    recording.trace.for_each(
        [&](PageId page, auto counts) { rows[page.area].emplace(page.granule, counts); });
    for (const auto& area : engine.watch().areas()) {
        const auto seen = rows.find(area->id);
        if (seen == rows.end()) continue;
        const auto touched = recording.touches.find(area->id);
        const bool tells = touched != recording.touches.end() &&
                           touched->second.size() >= tuning::few_touches && !area->there().empty();
        if (tells && left > 0) {
            --left;
            add_expected(engine, *area, recording, seen->second, expected);
            continue;
        }
        for (const auto& [granule, counts] : seen->second)
            add_row(expected, {area->id, granule}, counts);
    }
    return expected;
}

} // namespace homing::replay
