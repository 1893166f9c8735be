// Migrate on next touch (Löf, Nordén, Holmgren 2004): the pages are armed, and each goes to the node of the
// thread that touches it next. `--arm first-iteration` arms everything once, when the outer iteration is
// known (again when a longer one is found); `--arm every-region` is their proposal for compilers, made at run
// time: all shared data before each parallel region, but for those that are over sooner than they are armed.
//
// A window holds so many granules only. Where there are more, they take turns over the iterations that
// follow: each is armed for all regions of one iteration, so that every region that could touch it has the
// chance, and then leaves, touched or not: memory that nobody touches keeps nothing going. What homing takes
// for an iteration at first may be a small part of it (a smoother's loop on a coarse grid): unless the
// program says what is one, none leaves before the run has lasted twice as long as when all were armed.
//
// A granule is 64 KiB unless the user says otherwise (one fault and one call for 16 pages), 2 MiB on huge
// pages. What no thread touches within the iteration stays where it is; it is armed in parallel regions only
// (sources/windows.hpp).
#include "engine/engine.hpp"

#include "areas/whole_granules.hpp"
#include "base/options.hpp"
#include "base/running_time.hpp"
#include "machine/simulation.hpp"
#include "model/tuning.hpp"
#include "record/record.hpp"
#include "sources/arming_ceiling.hpp"
#include "sources/sent_by_touches.hpp"

#include <algorithm>
#include <utility>

namespace homing {
namespace {

class NextTouch final : public Mechanism {
  public:
    explicit NextTouch(std::vector<Range> only = {})
        : only_(std::move(only)), every_region_(only_.empty() && option_is(Option::arm, "every-region")),
          granule_(option_size(Option::granule)) {
        granule_ = std::max(align_up(granule_, page_bytes()), page_bytes());
    }
    const char* name() const noexcept override { return "next-touch"; }
    bool samples() const noexcept override { return false; }
    bool needs_windows() const noexcept override { return every_region_ || !armed_once_ || goes_on(); }
    void iteration_begins(Engine& engine) override;
    void iteration_observed(Engine& engine, bool check) override;
    bool region_begins(Engine& engine, std::uint32_t region) override;
    bool takes_in(Engine& engine, Range range) override;
    void region_ended(Engine& engine) override;
    void process_ends(Engine& engine) override;

  private:
    struct Armed {
        Range granule;
        std::uint32_t until; ///< the iteration at whose end it was armed for a whole one
    };
    void collect(Engine& engine);
    void add(Engine& engine, Range range);
    void forget_gone(Engine& engine);
    void fill_window(Engine& engine);
    void put_off(std::uint32_t iteration);
    void take_part(Engine& engine, std::uint32_t region);
    bool goes_on() const noexcept { return !armed_.empty() || next_ < waiting_.size(); }
    void iteration_ended(Engine& engine, std::uint32_t iteration);
    void account(Engine& engine);

    std::vector<Range> only_; ///< empty: all areas
    bool every_region_;
    std::size_t granule_;
    double start_ = record::now(); ///< of the run
    double none_leaves_before_ = 0;
    bool armed_once_ = false;
    std::uint64_t kind_ = 0;     ///< of the iteration for which everything was armed
    std::vector<Range> waiting_; ///< for their turn, ascending: those from next_ on
    std::size_t next_ = 0;
    std::vector<Armed> armed_;        ///< for whoever touches them, ascending; all before those that wait
    std::uint32_t put_offs_ = 0;      ///< since everything was collected
    bool iteration_is_whole_ = false; ///< none of its regions has begun
    std::uint64_t area_changes_ = 0;
    std::vector<Address> turns_; ///< every region: the last granule that was armed in each
    std::vector<Range> open_;
    ArmingCeiling ceiling_; ///< every region; not where simulated, as what is simulated takes another time
    const bool has_ceiling_ = every_region_ && !simulation() && option_is(Option::guard, "on");
    std::uint32_t region_ = 0;      ///< that runs, since then, and what windows had cost
    double begin_ = 0, arming_ = 0; ///< processor seconds that it took to be armed
    Windows::Costs costs_;
    std::uint64_t granules_ = 0;
    std::uint64_t moved_ = 0;
    std::uint64_t told_moved_ = 0; ///< moved_ when placements were recorded last
};

/// All that is to be touched, from the begin.
void NextTouch::collect(Engine& engine) {
    waiting_ = only_.empty() ? whole_granules(engine.watch(), {}, granule_) : std::vector<Range>{};
    next_ = 0;
    put_offs_ = 0;
    armed_.clear();
    for (const Range& range : only_)
        add(engine, range);
    granules_ = waiting_.size();
    area_changes_ = engine.area_changes();
}

/// This range waits beside what has not been touched yet.
void NextTouch::add(Engine& engine, Range range) {
    std::vector<Range> all = whole_granules(engine.watch(), range, granule_);
    for (const Armed& armed : armed_)
        all.push_back(armed.granule);
    all.insert(all.end(), waiting_.begin() + static_cast<std::ptrdiff_t>(next_), waiting_.end());
    waiting_ = without_overlaps(std::move(all));
    next_ = 0;
    armed_.clear();
    granules_ = waiting_.size();
}

bool NextTouch::takes_in(Engine& engine, Range range) {
    if (only_.empty()) return false;
    only_.push_back(range);
    if (armed_once_) add(engine, range);
    return true;
}

/// What was armed for a whole iteration by now is not part of the computation where it was not touched.
void NextTouch::iteration_ended(Engine& engine, std::uint32_t iteration) {
    const bool told = engine.iteration_kind() >> 32 == static_cast<std::uint32_t>(Basis::call);
    if (!told && record::now() < none_leaves_before_) return;
    std::erase_if(armed_, [&](const Armed& armed) { return armed.until <= iteration; });
}

void NextTouch::iteration_begins(Engine& engine) {
    if (armed_once_) iteration_ended(engine, engine.iteration() - 1);
    iteration_is_whole_ = true;
    // What was armed for may have been a part of the iteration only: a smoother's loop, say.
    if (armed_once_ && only_.empty() && engine.iteration_kind() != kind_) armed_once_ = false;
    if (every_region_ || armed_once_) return;
    armed_once_ = true;
    kind_ = engine.iteration_kind();
    if (only_.empty()) none_leaves_before_ = 2 * record::now() - start_;
    engine.own_areas();
    collect(engine);
}

void NextTouch::forget_gone(Engine& engine) {
    if (area_changes_ == engine.area_changes()) return;
    area_changes_ = engine.area_changes();
    const auto gone = [&](const Range& granule) { return !engine.watch().find(granule.begin); };
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(next_));
    next_ = 0;
    std::erase_if(waiting_, gone);
    std::erase_if(armed_, [&](const Armed& armed) { return gone(armed.granule); });
}

/// What was touched leaves room for those that wait.
void NextTouch::fill_window(Engine& engine) {
    const std::uint32_t until = engine.iteration() + (iteration_is_whole_ ? 0 : 1);
    iteration_is_whole_ = false;
    for (; next_ < waiting_.size() && armed_.size() < engine.windows()->capacity(); ++next_)
        armed_.push_back({waiting_[next_], until});
    open_.clear();
    for (const Armed& armed : armed_)
        open_.push_back(armed.granule);
}

/// What was to be armed in all regions of this iteration was not in one.
void NextTouch::put_off(std::uint32_t iteration) {
    if (put_offs_ == model::tuning::iterations_to_come) return;
    bool any = false;
    for (Armed& armed : armed_) {
        if (armed.until > iteration) continue;
        armed.until = iteration + 1;
        any = true;
    }
    put_offs_ += any;
}

/// Where a region cannot have all, it has one part after the other, round and round.
void NextTouch::take_part(Engine& engine, std::uint32_t region) {
    if (turns_.size() <= region) turns_.resize(region + 1, 0);
    if (waiting_.size() > engine.windows()->capacity()) {
        const auto after =
            std::upper_bound(waiting_.begin(), waiting_.end(), turns_[region],
                             [](Address value, const Range& granule) { return value < granule.begin; });
        if (after != waiting_.end()) next_ = static_cast<std::size_t>(after - waiting_.begin());
    }
    fill_window(engine);
    if (!open_.empty()) turns_[region] = open_.back().begin;
}

bool NextTouch::region_begins(Engine& engine, std::uint32_t region) {
    if (!engine.windows() || (!every_region_ && !goes_on())) return false;
    region_ = region;
    if (has_ceiling_) begin_ = record::now();
    const double arming = has_ceiling_ ? thread_seconds() : 0;
    if (every_region_) {
        // Initialisation runs once, and places its pages by first touch anyway.
        if (engine.regions()[region].count < 2) return false;
        if (has_ceiling_ && !ceiling_.allows(region, granules_)) return false;
        costs_ = engine.windows()->costs();
        collect(engine);
        take_part(engine, region);
    } else {
        forget_gone(engine);
        fill_window(engine);
    }
    sent_by_touches::begin(engine.kernel(), engine.machine().targets(), *engine.windows());
    const bool opened = engine.open_window(open_) > 0;
    if (!opened && !every_region_) put_off(engine.iteration());
    if (!has_ceiling_) return opened;
    arming_ = thread_seconds() - arming;
    begin_ = record::now();
    return opened;
}

/// What the region took, and what arming cost: it is armed while nothing else runs, faults are the threads'.
void NextTouch::account(Engine& engine) {
    const double seconds = record::now() - begin_;
    if (open_.empty()) return ceiling_.took(region_, seconds);
    const Windows::Costs now = engine.windows()->costs();
    const double back = now.back_seconds - costs_.back_seconds;
    const double touches = static_cast<double>(now.touches - costs_.touches);
    const double faults = touches * engine.plan().touch_cost() / std::max(1, engine.threads());
    ceiling_.cost(region_, std::max(0.0, seconds - back - faults), granules_, arming_ + back + faults);
}

void NextTouch::process_ends(Engine&) {
    if (ceiling_.left_out() > 0) record::message(record::Level::note, ceiling_.what_was_left_out());
}

void NextTouch::region_ended(Engine& engine) {
    if (has_ceiling_) account(engine);
    if (open_.empty()) return;
    open_.clear();
    engine.windows()->set_touch_action(nullptr); // other windows only look
    // What was touched is not armed again; what moved is what a query finds on the toucher's node.
    std::vector<Address> touched; ///< granules, by their begin
    std::vector<void*> pages;
    std::vector<int> wanted;
    for (const Reference& reference : engine.references()) {
        const auto at =
            std::upper_bound(armed_.begin(), armed_.end(), reference.address,
                             [](Address value, const Armed& armed) { return value < armed.granule.begin; });
        if (at == armed_.begin()) continue;
        const Range granule = (at - 1)->granule;
        touched.push_back(granule.begin);
        for (Address page = granule.begin; page < granule.end; page += page_bytes()) {
            pages.push_back(reinterpret_cast<void*>(page));
            wanted.push_back(reference.node);
        }
    }
    std::vector<int> where(pages.size(), -1);
    std::uint64_t refused = 0;
    if (query_revealed(engine.kernel(), pages, where, [&engine] { engine.pause_source(); }) == 0)
        for (std::size_t i = 0; i < pages.size(); ++i)
            refused += where[i] >= 0 && where[i] != wanted[i];
    const std::uint64_t sent = sent_by_touches::take_pages();
    Moves moves;
    moves.moved = sent - std::min(sent, refused);
    moves.refused = refused;
    moved_ += moves.moved;
    std::sort(touched.begin(), touched.end());
    std::erase_if(armed_, [&](const Armed& armed) {
        return std::binary_search(touched.begin(), touched.end(), armed.granule.begin);
    });
    if (moves.moved + refused == 0) return;
    moves.calls = sent_by_touches::take_calls();
    engine.record_moves(Engine::many_areas, moves.moved + refused, moves);
}

void NextTouch::iteration_observed(Engine& engine, bool check) {
    if (check) engine.stability().checked(false); // it observes nothing: owners are whoever touches next
    if (every_region_ || !armed_once_) return;
    iteration_ended(engine, engine.iteration());
    if (goes_on()) return;
    // Areas may be freed before the end: the record shall know where their pages went.
    if (std::exchange(told_moved_, moved_) != moved_) engine.record_placements(2);
    engine.stability().observed(0, granules_);
    engine.stability().observed(0, granules_);
}

} // namespace

std::unique_ptr<Mechanism> make_next_touch_of(Range range) {
    return std::make_unique<NextTouch>(std::vector{range});
}
std::unique_ptr<Mechanism> make_next_touch() { return std::make_unique<NextTouch>(); }

} // namespace homing
