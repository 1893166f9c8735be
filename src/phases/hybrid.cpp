#include "phases/hybrid.hpp"

#include "base/options.hpp"
#include "counters/by_counters.hpp"
#include "engine/guarded.hpp"
#include "model/tuning.hpp"
#include "phases/recorder.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <utility>

namespace homing::replay {
namespace {

/// A placement that has not settled after so many iterations, and a decision, is recorded as it is.
constexpr std::uint32_t most_iterations_before = 2 * model::tuning::chances;

constinit Hybrid* the_hybrid = nullptr; ///< of the process, once it has begun

} // namespace

Hybrid::Hybrid(std::unique_ptr<Mechanism> iterative, std::size_t most, double threshold, bool guarded,
               Records what)
    : iterative_(std::move(iterative)), replayer_(most, threshold, true), guarded_(guarded), what_(what) {}

/// What moves at iterations looks for the homes of pages, not for where a phase needs them.
void Hybrid::bring_back(Engine& engine) {
    if (std::exchange(displaced_, no_phase) != no_phase) replayer_.bring_back(engine);
}

void Hybrid::iteration_observed(Engine& engine, bool check) {
    bring_back(engine);
    iterative_->iteration_observed(engine, check);
    decided_ = true;
    if (state_ == State::settles && !engine.is_guess() && engine.stability().settled())
        state_ = State::records;
}

void Hybrid::iteration_begins(Engine& engine) {
    bring_back(engine);
    iterative_->iteration_begins(engine);
    // Rounds of observation may have many iterations each.
    iterations_ += state_ == State::settles && !engine.is_guess();
    const bool enough =
        what_ == Records::first ? iterations_ >= 1 : decided_ && iterations_ >= most_iterations_before;
    if (state_ == State::settles && enough) state_ = State::records;
    if (recorder_)
        end_recording(engine);
    else if (state_ == State::records)
        begin_recording(engine);
}

void Hybrid::begin_recording(Engine& engine) {
    recordings_.clear();
    if (engine.prepare_windows().empty()) {
        engine.follow_changes();
        engine.windows()->start(engine.watch().ranges());
    }
    recorder_ = make_recorder([this] { return running_; });
}

bool Hybrid::region_begins(Engine& engine, std::uint32_t region) {
    if (recorder_) {
        // The boundary that began the iteration may have put the source to rest.
        if (engine.samples_itself()) engine.begin_observing(policy::Activity::observe);
        engine.take_in(); // of serial code
        running_ = &recordings_.try_emplace(region, engine.nodes().count()).first->second;
        armed_ = recorder_->region_begins(engine, region);
        return armed_;
    }
    if (state_ != State::replays || engine.regions()[region].is_barrier) return false;
    const auto at = moved_.find(region);
    const std::size_t number = at == moved_.end() ? no_phase : at->second;
    if (number == no_phase) {
        bring_back(engine);
    } else if (number != displaced_) {
        replayer_.replay_phase(engine, number);
        displaced_ = number;
    }
    return false;
}

void Hybrid::region_ended(Engine& engine) {
    if (!recorder_) return;
    if (std::exchange(armed_, false)) recorder_->references_came(engine); // touches in the window
    if (engine.samples_itself()) {
        engine.take_in();
        recorder_->references_came(engine);
    }
    running_ = nullptr;
}

/// What replaying the phase saves in one iteration, in elapsed nanoseconds.
double Hybrid::gain_ns(Engine& engine, std::size_t number, std::uint32_t region) const {
    const Replayer::Phase& phase = replayer_.phases()[number];
    const policy::Costs& costs = engine.guard().costs();
    if (engine.counts_misses()) {
        const double saved = static_cast<double>(phase.share.remote - phase.share.remote_with_plan);
        return saved * std::max(costs.remote_ns - costs.local_ns, 0.0) / std::max(1, engine.threads());
    }
    // A page of the plan is swept once by the thread that touches it.
    const double region_ns = 1e9 * engine.regions()[region].longest;
    const std::map<std::uint32_t, std::uint64_t> planned = replayer_.planned_granules(number);
    double gain = 0;
    for (const auto& area : engine.watch().areas())
        if (planned.contains(area->id))
            gain += engine.touch_model(*area).excess_ns(planned.at(area->id), costs, region_ns);
    return std::min(gain, region_ns);
}

void Hybrid::end_recording(Engine& engine) {
    engine.take_in();
    recorder_.reset();
    running_ = nullptr;
    std::vector<std::uint32_t> regions;
    std::vector<Recording> recordings;
    for (auto& [region, recording] : recordings_) {
        if (recording.trace.empty()) continue;
        regions.push_back(region);
        recordings.push_back(std::move(recording));
    }
    recordings_.clear();
    replayer_.adopt(engine, std::move(recordings));
    moved_.clear();
    for (std::size_t number = 0; number < regions.size(); ++number) {
        const std::uint64_t pages = replayer_.phases()[number].planned;
        const double gain = gain_ns(engine, number, regions[number]);
        const double price = pages > 0 ? engine.guard().costs().move_ns(2 * pages, 2) : 0;
        const bool whole = !engine.regions()[regions[number]].is_barrier;
        const bool moves = pages > 0 && whole && (!guarded_ || gain > price);
        if (moves) moved_[regions[number]] = number;
        record::phase_worth_row row;
        row.number = static_cast<record::u32>(number);
        row.region = regions[number];
        row.gain = gain;
        row.price = price;
        row.moves = moves;
        record::append(row);
    }
    replayer_.write_rows();
    state_ = moved_.empty() ? State::rests : State::replays;
}

void Hybrid::process_ends(Engine& engine) {
    if (state_ == State::settles || state_ == State::records)
        record::message(record::Level::note,
                        "no phase was recorded: the run ended after " + std::to_string(iterations_) +
                            " iterations, before its placement was stable or an iteration was recorded");
    replayer_.write_rows();
    iterative_->process_ends(engine);
}

void begin_hybrid(Engine& engine) noexcept {
    const bool first = option_is(Option::mechanism, "record-replay");
    if (!first && !option_is(Option::mechanism, "hybrid")) return;
    engine.guarded([&] {
        auto one = std::make_unique<Hybrid>(
            first ? make_iterative(false, engine.team()) : counters::make_for_iterations(engine),
            static_cast<std::size_t>(option_number(Option::replay_pages)), option_number(Option::threshold),
            option_is(Option::guard, "on"), first ? Hybrid::Records::first : Hybrid::Records::stable);
        the_hybrid = one.get(); // nothing takes its place
        engine.move_by(std::move(one));
    });
}

void memory_placed_under_hybrid(Engine& engine, Range range) noexcept {
    if (the_hybrid) engine.guarded([&] { the_hybrid->placed(engine, range); });
}

} // namespace homing::replay
