#include "engine/engine.hpp"
#include "engine/learner.hpp"

#include "areas/allocation_plans.hpp"
#include "base/options.hpp"
#include "base/pace.hpp"
#include "base/random.hpp"
#include "engine/guarded.hpp"
#include "machine/simulation.hpp"
#include "model/tuning.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <utility>

namespace homing {
namespace {

using namespace model::tuning;

/// Touches of an area that wait for a decision: a round that is put off for long forgets the later ones. As
/// many as end a round of sampling.
constexpr std::size_t most_fresh = enough_sampled;

} // namespace

Engine::Engine(Kernel& kernel, Machine machine, HookServices services)
    : kernel_(kernel), machine_(std::move(machine)), nodes_(machine_.targets()), services_(services),
      watch_(nodes_, static_cast<std::uint64_t>(option_number(Option::seed))), team_(nodes_),
      survey_(kernel, static_cast<std::uint64_t>(option_number(Option::seed))), mover_(kernel, nodes_),
      initial_(kernel, nodes_, mover_, machine_.targets()),
      plan_(option_number(Option::observe_share), static_cast<std::uint64_t>(option_number(Option::seed))),
      touch_record_(static_cast<std::uint64_t>(option_number(Option::record_samples))), policies_(kernel) {}

Engine::~Engine() = default;

void Engine::step_aside(const std::string& reason) noexcept {
    if (windows_) windows_->abandon();
    helper_.stop();
    allocation_plans().withdraw();
    try {
        if (sampled_) sampled_->stop();
        policies_.clear_all();
    } catch (...) {
        record::message(record::Level::note, "memory policies stay until the process ends (out of memory)");
    }
    record::message(record::Level::not_done, reason + ": it stepped aside");
    phases::step_aside();
}

/// The region, or the part of it that a barrier ends, is over.
void Engine::open_region_ends(double now) {
    double seconds = 0;
    if (scans()) region_log_.enter(RegionLog::nowhere, now);
    if (!resting_) { // at rest no clock is read where a region begins
        RegionInfo& info = regions_[open_.region];
        seconds = now - region_begin_;
        if (info.timed > 0) scale_ = seconds / std::max(seconds, info.longest);
        info.took(seconds);
        places_.timed(seconds);
        round_region_seconds_ += seconds;
        parallel_seconds_ += seconds;
    }
    window_region_ends(seconds);
    plan_.region_ended(seconds);
    mechanism_->region_ended(*this);
    if (called_touch_) called_touch_->region_ended(*this);
}

bool Engine::next_touch_called(Range range) noexcept {
    bool possible = false;
    guarded([&] {
        const std::string reason = prepare_windows();
        // Beside another source the areas may not have been looked at for long.
        if (reason.empty()) follow_changes();
        possible = reason.empty() && windows_->start(watch_.ranges());
        if (!possible) {
            record::message(record::Level::not_done,
                            "next touch needs windows, which are not possible here: " +
                                (reason.empty() ? "no memory" : reason));
            return;
        }
        pages_placed();
        if (called_touch_ && called_touch_->takes_in(*this, range)) return void(resting_ = false);
        work_beside(make_next_touch_of(range));
    });
    return possible;
}

void Engine::work_beside(std::unique_ptr<Mechanism> work) {
    close_window();
    if (called_touch_ && work)
        record::message(record::Level::warning,
                        std::string(called_touch_->name()) + " ends: " + work->name());
    called_touch_ = std::move(work);
    if (!called_touch_) return;
    called_touch_->iteration_begins(*this);
    resting_ = false;
}

void Engine::take_in() {
    close_window();
    if (source_running_ && samples_itself()) take_references();
}

void Engine::iteration_boundary(Basis basis) {
    const double now = record::now();
    const bool was_active = activity_ != policy::Activity::rest;
    say_threads();
    basis_ = basis;
    ++round_iterations_;
    if (was_active && samples_itself()) take_references();
    if (was_active && !round_is_over(now)) {
        if (samples_itself()) follow_changes_within_round(now);
        next_iteration();
        return;
    }
    if (was_active) {
        close_window(); // what is decided now looks at pages and moves them
        const std::uint64_t moved_before = statistics_.moved;
        end_observing();
        record_round(now, round_references_, statistics_.moved - moved_before);
        stability_.cost((observation_cost() - round_cost_begin_) / slowness_);
    }
    next_iteration();
    round_references_ = 0;
    round_iterations_ = 0;
    round_region_seconds_ = 0;
    round_begin_ = iteration_begin_;
    round_cost_begin_ = observation_cost();
    if (stability_.settled() && statistics_.settled_at == 0)
        statistics_.settled_at = std::max<std::uint64_t>(1, statistics_.iterations);
    else if (!stability_.settled())
        statistics_.settled_at = 0;
    const policy::Activity next = stability_.begin_iteration(stated_seconds(iteration_begin_));
    if (next == policy::Activity::rest && was_active) regions_known_ = regions_.all().size();
    if (next != policy::Activity::rest || was_active) begin_observing(next);
    // While a longer period is still being looked for, every region is an event; then only boundaries are.
    resting_ = next == policy::Activity::rest && !called_ && !mechanism_->needs_windows() && !called_touch_ &&
               (basis == Basis::period || basis == Basis::anchor || basis == Basis::barriers);
}

/// Seconds that observing and deciding have cost the run so far: ours, and what the program's threads were
/// held up.
double Engine::observation_cost() const {
    const double faults = reference_cost * static_cast<double>(sampled_references_) + plan_.faults_cost();
    return statistics_.observing + statistics_.deciding + faults;
}

/// Have windows shown enough to decide? At first little is enough: what was seen first tells most.
bool Engine::has_enough_references() const noexcept {
    const auto share = static_cast<std::uint64_t>(news_share * static_cast<double>(statistics_.references));
    return round_references_ >= std::clamp<std::uint64_t>(share, 2 * telling_touches, most_of_round);
}

/// Decisions need enough references. Windows give them in an iteration or a few; the kernel scans for hint
/// faults at its own pace, over many short iterations.
bool Engine::round_is_over(double now) {
    if (mechanism_->needs_windows() || moves_wait_) return true;
    if (!may_infer(0)) return false;
    if (asks_)
        return has_enough_references() ||
               (round_iterations_ >= few_iterations && now - round_begin_ >= short_time);
    std::uint64_t granules = 0;
    for (const auto& area : watch_.areas())
        granules += area->granules;
    const double seconds = now - round_begin_;
    if (round_references_ >= std::min<std::uint64_t>(granules / 2 + 1, enough_sampled)) return true;
    return seconds > (round_references_ > 0 ? longest_round : longest_wait);
}

void Engine::next_iteration() {
    regions_.iteration_ended();
    ++iteration_;
    statistics_.iterations += !is_guess();
    record::progress(static_cast<std::uint32_t>(statistics_.iterations));
    events_in_iteration_ = 0;
    spent_in_iteration_ = 0;
    iteration_begin_ = record::now();
    if (mechanism_->needs_windows() || called_touch_) survey_.look_at_all(watch_);
    if (activity_ != policy::Activity::rest) place_initially();
    mechanism_->iteration_begins(*this);
    if (called_touch_) {
        close_window();
        pages_placed();
        called_touch_->iteration_begins(*this);
        if (!called_touch_->needs_windows()) called_touch_.reset(); // its iteration is over
    }
}

void Engine::enter(std::uint32_t region) {
    open_ = {region, called_ ? PlaceTable::nowhere : places_.enter(finder_.exact_period(), finder_.newest())};
}

void Engine::place_initially() {
    if (initial_.wanted() != "first-touch") close_window(); // it moves pages
    initial_.place(watch_, iteration_);
}

/// Takes in which areas came or went. Returns whether any did.
bool Engine::synchronise_areas() {
    if (!watch_.synchronise(record::now())) return false;
    ++area_changes_;
    place_initially();
    if (windows_) windows_->start(watch_.ranges());
    plan_allocations();
    return true;
}

/// Areas come and go between regions. What is gone must never be armed: plans forget it in time.
void Engine::follow_changes() {
    if (windows_ && services_.makes_own_calls)
        if (const char* reason = services_.makes_own_calls(); reason && watch_.leave_room_for_stacks()) {
            close_window();
            record::message(record::Level::note,
                            std::string("windows look at blocks from --area-minimum on and "
                                        "at static arrays only: ") +
                                reason);
        }
    const bool changed = synchronise_areas();
    if (mechanism_->needs_windows() || called_touch_) survey_.look_at_all(watch_);
    // Programs that allocate in every iteration, or have begun to use what they had: that wants samples, too,
    // before the next boundary.
    const bool more = survey_.look(watch_);
    if (!asks_) return;
    plan_is_old_ |= changed || more;
    const double now = record::now();
    if (plan_is_old_ && now >= next_plan_)
        plan_samples(activity_ == policy::Activity::check, true);
    else if (plan_is_old_ && now >= next_of_new_)
        plan_samples(activity_ == policy::Activity::check, false);
    else if (changed)
        plan_.gather(watch_);
}

void Engine::take_references() {
    references_.clear();
    sampled_->drain(references_);
    forget_asked_for();
    count_references(Origin::sampled);
}

/// The fault of an armed granule is a page fault like any other, which the kernel's events show once more.
void Engine::forget_asked_for() {
    if (asked_for_.empty()) return;
    const auto byte_and_thread = [](const Reference& one) { return std::pair{one.address, one.thread}; };
    std::ranges::sort(asked_for_, {}, byte_and_thread);
    std::erase_if(references_, [&](const Reference& one) {
        return std::ranges::binary_search(asked_for_, byte_and_thread(one), {}, byte_and_thread);
    });
    asked_for_.clear();
}

/// Is the reference a touch for the learner, which weighs all touches alike? Where one reference stands for
/// all misses of a node in a page, the node with the most is, and any other as often as it has their number:
/// once in eight times where it has one for each eight.
bool Engine::is_touch(std::size_t at) const noexcept {
    if (!counts_misses()) return true;
    const Reference& one = references_[at];
    std::uint32_t most = one.weight;
    for (std::size_t i = at; i-- > 0 && references_[i].address == one.address;)
        most = std::max(most, references_[i].weight);
    for (std::size_t i = at + 1; i < references_.size() && references_[i].address == one.address; ++i)
        most = std::max(most, references_[i].weight);
    const std::uint64_t of_page = one.address / page_bytes() * splitmix_step + iteration();
    const auto of_node = static_cast<std::uint64_t>(one.node + 1);
    return fraction_of(mixed(mixed(of_page) + of_node * splitmix_step)) * most < one.weight;
}

/// What was seen, by area.
void Engine::count_references(Origin origin) {
    const bool asked = origin == Origin::asked;
    const double now = touch_record_.enabled() ? record::now() : 0;
    const double since_start = asked ? 0 : record::now() - clock_seconds();
    if (!asked) sampled_references_ += references_.size();
    for (std::size_t at = 0; at < references_.size(); ++at) {
        const Reference& reference = references_[at];
        WatchedArea* area = watch_.find(reference.address);
        const int position = nodes_.position(reference.node);
        if (!area || position < 0) continue;
        if (!area->seen) survey_.look_at(watch_, *area);
        const std::uint32_t region = asked                ? open_.region
                                     : reference.time > 0 ? region_log_.at(reference.time + since_start)
                                                          : RegionLog::nowhere;
        if (touch_record_.enabled()) record_touch(*area, reference, position, origin, region, now);
        const std::uint64_t granule = area->granule_of(reference.address);
        if (!asked && scans()) scan_rounds_.saw(*area, granule);
        if (area->learnt.fresh.size() < most_fresh && is_touch(at))
            area->learnt.fresh.push_back({granule, team_.touched(reference.thread, position), reference.write,
                                          reference.weight, static_cast<model::Node>(position),
                                          model::unknown_node, region,
                                          area->within_granule(reference.address)});
        // A window shows one touch, whatever it weighs for the owners. Pages that move as they are touched
        // say nothing of where accesses go.
        if (mechanism_->samples() && !called_touch_)
            area->remote_share.touched(granule, position, asked ? 1 : reference.weight);
        ++area->references;
        ++round_references_;
        ++statistics_.references;
    }
    if (counts_misses()) count_remote_misses();
    mechanism_->references_came(*this);
    if (called_touch_) called_touch_->references_came(*this);
}

/// How many of the misses that were just taken went to another node.
void Engine::count_remote_misses() {
    pages_.clear();
    for (const Reference& reference : references_)
        pages_.push_back(reinterpret_cast<void*>(reference.address));
    homes_.assign(pages_.size(), -1);
    if (kernel_.query(pages_, homes_) != 0) return;
    for (std::size_t i = 0; i < references_.size(); ++i)
        if (homes_[i] >= 0 && homes_[i] != references_[i].node)
            if (WatchedArea* area = watch_.find(references_[i].address))
                area->remote_misses += references_[i].weight;
}

/// Before a source gives its policies back: pages of which it has armed hint faults would go wherever they
/// are touched next. Who only looks on leaves the kernel to its work.
void Engine::keep_balancing_off() {
    if (mechanism_->moves()) own_areas();
}

void Engine::pause_source() {
    if (!source_running_ || source_paused_) return;
    keep_balancing_off();
    source_->pause();
    source_paused_ = true;
}

void Engine::begin_observing(policy::Activity activity) {
    activity_ = activity;
    if (activity == policy::Activity::rest) {
        stop_sampling();
        return;
    }
    synchronise_areas();
    survey_.look(watch_);
    if (!source_) return;
    const bool is_check = activity == policy::Activity::check;
    // The kernel scans as rarely as it has come to: a check that waited for that would not end.
    if (samples_itself() && is_check && asks_)
        stop_sampling();
    else if (samples_itself() && (source_areas_ != area_changes_ || !source_running_ || source_paused_))
        start_source();
    if (asks_) plan_samples(is_check, true);
}

void Engine::stop_sampling() {
    if (!source_running_ || !samples_itself()) return;
    keep_balancing_off();
    sampled_->stop();
    source_running_ = false;
}

void Engine::start_source() {
    source_running_ = source_->start(watch_.ranges());
    source_paused_ = false;
    source_areas_ = area_changes_;
}

/// Rounds of sources that sample by themselves may take many iterations: what came since is theirs, too, and
/// what was left alone for a placement is theirs again. Not at every boundary: to begin anew, a source looks
/// at all of its memory.
void Engine::follow_changes_within_round(double now) {
    if (now < next_adoption_) return;
    next_adoption_ = now + scan_interval;
    follow_changes();
    if (source_running_ && (source_areas_ != area_changes_ || source_paused_)) start_source();
}

void Engine::end_observing() {
    record_placements(1);
    estimate_traffic();
    // Where windows ask, what no scan has come to is asked for.
    to_come_ = scans() && !asks_ ? scan_rounds_.round_ended(watch_) : 0;
    const double begin = record::now();
    const double moving = statistics_.moving;
    mechanism_->iteration_observed(*this, activity_ == policy::Activity::check);
    record_estimates(false);
    statistics_.deciding += record::now() - begin - (statistics_.moving - moving);
}

/// How often the pages of each area are touched in an iteration (at least once, where that is not known), and
/// the bytes that an iteration uses.
void Engine::estimate_traffic() {
    footprint_ = watch_.bytes_gone_since(iteration_begin_);
    for (const auto& area : watch_.areas()) {
        if (area->references > 0) footprint_ += area->used_bytes();
        double touches = 0;
        if (asks_)
            for (std::uint32_t region = 0; region < regions_.all().size(); ++region)
                touches += plan_.touch_estimate(region, area->id) * regions_.all()[region].in_iteration;
        area->touches_in_iteration = std::max(1.0, touches);
    }
}

double Engine::touches_in_round(const WatchedArea& area) const {
    return area.touches_in_iteration * round_iterations();
}

double Engine::traffic(const WatchedArea& area) const {
    if (samples_accesses()) return static_cast<double>(area.remote_share.accesses());
    return static_cast<double>(area.used_bytes()) * area.touches_in_iteration;
}

policy::TouchModel Engine::touch_model(const WatchedArea& area) const {
    return {.page_size = area.granule,
            .line_size = cache_line_bytes,
            .cache_bytes = cache_bytes_,
            .footprint_bytes = footprint_ / static_cast<std::uint64_t>(std::max(1, nodes_.count())),
            .threads = threads_,
            .nodes = nodes_.count()};
}

double Engine::traffic_ns(const WatchedArea& area) const {
    const double touches = static_cast<double>(area.there().size()) * area.touches_in_iteration;
    const double region_ns = 1e9 * round_region_seconds_ / round_iterations();
    return touch_model(area).excess_ns(static_cast<std::uint64_t>(touches), guard_.costs(), region_ns);
}

double Engine::touch_cost_ns() const {
    if (!asks_) return 1e9 * reference_cost;
    const double stated = guard_.costs().touch_us;
    return stated > 0 ? 1e3 * stated : 1e9 * plan_.touch_cost();
}

/// Seconds of the run as what homing does is held against them, which counts as if it ran on the machine
/// whose costs are stated: where all is slow a long run is not slowed as many times.
double Engine::stated_seconds(double now) {
    const double elapsed = running_.seconds(now), early = std::min(elapsed, longest_wait);
    return early + (elapsed - early) / slowness_;
}

bool Engine::may_infer(double spent) {
    const double stated = stated_seconds(record::now()), early = std::min(stated, longest_wait);
    const Pace pace{share_of_run * early + (called_ ? longest_pause : first_inferring), share_of_run};
    return pace.allows((statistics_.inferring + spent) / slowness_, stated);
}

void Engine::own_areas() {
    if (!(simulation() ? simulation()->balances() : kernel_balances()))
        return; // nobody moves pages behind our back
    std::vector<Range> ranges;
    for (const WatchedRange& watched : watch_.ranges())
        ranges.push_back(watched.range);
    NodeSet allowed;
    if (kernel_.allowed_nodes(allowed) != 0) return;
    const PolicyKeeper::Outcome outcome = policies_.own(ranges, allowed);
    if (outcome.failed)
        record::message(record::Level::not_done,
                        "kernel NUMA balancing could not be kept off some areas (mbind: errno " +
                            std::to_string(outcome.error) + ")");
}

} // namespace homing
