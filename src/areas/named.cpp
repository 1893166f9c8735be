#include "areas/named.hpp"

#include "record/record.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <string>

namespace homing {
namespace {

/// Where an area lies, for hooks. begin is 0 in a place that is free or whose area has ended; an end never
/// changes while its area lives.
struct Place {
    std::atomic<Address> begin;
    std::atomic<Address> end;
};
constinit Place places[most_named_areas] = {};
constinit std::atomic<std::size_t> places_used{0}; ///< never falls

constinit std::atomic<std::uint64_t> version{0};

struct Named {
    AreaEntry entry;
    Place* place;
    bool hot;
};

struct Store {
    std::mutex mutex;
    std::vector<Named> areas;
    std::vector<Place*> free_places;
    /// All that there ever were, each once: rows and reports may still point to them.
    std::set<std::string, std::less<>> names;
    std::uint64_t generation = 0;

    Store() {
        for (std::size_t i = most_named_areas; i > 0; --i)
            free_places.push_back(&places[i - 1]);
    }
    template <class Which> std::size_t forget(Which&& which) {
        return std::erase_if(areas, [&](Named& named) {
            if (!which(named)) return false;
            named.place->begin.store(0, std::memory_order_release);
            free_places.push_back(named.place);
            return true;
        });
    }
    const char* name_of(std::string_view name) {
        if (name.empty()) return nullptr;
        const auto known = names.find(name);
        return (known != names.end() ? known : names.emplace(name).first)->c_str();
    }
    Named* find(Address start) {
        const auto at =
            std::ranges::find(areas, start, [](const Named& named) { return named.entry.range.begin; });
        return at == areas.end() ? nullptr : &*at;
    }
    /// Those whose memory went.
    void forget_ended() {
        forget([](const Named& named) { return named.place->begin.load(std::memory_order_acquire) == 0; });
    }
};

Store& store() {
    static Store* the_store = new Store; // never destroyed: used until the very end of the process
    return *the_store;
}

} // namespace

void end_named_areas(Range gone) noexcept {
    const std::size_t used = places_used.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < used; ++i) {
        Address begin = places[i].begin.load(std::memory_order_acquire);
        if (begin == 0 || !gone.overlaps({begin, places[i].end.load(std::memory_order_relaxed)})) continue;
        // Not what another thread has put there meanwhile.
        if (places[i].begin.compare_exchange_strong(begin, 0, std::memory_order_acq_rel))
            version.fetch_add(1, std::memory_order_acq_rel);
    }
}

bool forget_named_area(Address start) {
    Store& s = store();
    const std::lock_guard lock(s.mutex);
    s.forget_ended();
    if (s.forget([start](const Named& named) { return named.entry.range.begin == start; }) == 0) return false;
    version.fetch_add(1, std::memory_order_acq_rel);
    return true;
}

namespace {

/// The same memory once more, or less of what is hot: a name and the heat may be new. False: it is other
/// memory.
bool register_again(Named& known, Range range, const char* name, bool hot) {
    if (range.end > known.entry.range.end || (range.end < known.entry.range.end && !known.hot)) return false;
    const bool renames = name && name != known.entry.name && range.end == known.entry.range.end;
    const bool heats = hot && !known.hot;
    if (renames) known.entry.name = name;
    known.hot |= hot;
    if (renames || heats) version.fetch_add(1, std::memory_order_acq_rel);
    return true;
}

void say_smaller(const AreaEntry& before, Range range) {
    if (range.end >= before.range.end) return;
    record::message(record::Level::note,
                    std::string(before.name ? before.name : unnamed_area) + " is registered again, with " +
                        std::to_string(range.bytes()) + " of its " + std::to_string(before.range.bytes()) +
                        " bytes: what is behind them is no longer watched under that name");
}

} // namespace

bool name_area(Range range, std::string_view name, bool hot, Address site) {
    Store& s = store();
    const std::lock_guard lock(s.mutex);
    s.forget_ended();
    const char* const kept = s.name_of(name);
    if (Named* known = s.find(range.begin)) {
        if (register_again(*known, range, kept, hot)) return true;
        say_smaller(known->entry, range);
        hot |= known->hot; // until it is given up
        s.forget([&](const Named& one) { return one.entry.range.begin == range.begin; });
    }
    if (s.free_places.empty()) return false;
    Place& place = *s.free_places.back();
    s.free_places.pop_back();
    Named named;
    named.entry.range = range;
    named.entry.kind = AreaKind::named;
    named.entry.generation = ~std::uint64_t{0} - ++s.generation; // never the registry's
    named.entry.name = kept;
    named.entry.origin[0] = site;
    named.place = &place;
    named.hot = hot;
    s.areas.push_back(named);
    place.end.store(range.end, std::memory_order_relaxed);
    place.begin.store(range.begin, std::memory_order_release);
    const auto used = static_cast<std::size_t>(&place - places) + 1;
    places_used.store(std::max(places_used.load(std::memory_order_relaxed), used), std::memory_order_release);
    version.fetch_add(1, std::memory_order_acq_rel);
    return true;
}

bool is_named_so(Range range, std::string_view name, bool hot) {
    Store& s = store();
    const std::lock_guard lock(s.mutex);
    s.forget_ended();
    const Named* const known = s.find(range.begin);
    const bool same = known && known->entry.range.end == range.end && (known->hot || !hot);
    return same && (name.empty() || (known->entry.name && name == known->entry.name));
}

void named_areas(std::vector<AreaEntry>& out) {
    Store& s = store();
    const std::lock_guard lock(s.mutex);
    s.forget_ended();
    for (const Named& named : s.areas)
        out.push_back(named.entry);
}

std::vector<Range> hot_ranges() {
    Store& s = store();
    const std::lock_guard lock(s.mutex);
    s.forget_ended();
    std::vector<Range> ranges;
    for (const Named& named : s.areas)
        if (named.hot) ranges.push_back(named.entry.range);
    std::ranges::sort(ranges, {}, &Range::begin);
    return ranges;
}

std::uint64_t named_areas_version() noexcept { return version.load(std::memory_order_acquire); }

} // namespace homing
