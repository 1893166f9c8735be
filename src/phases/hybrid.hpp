// The hybrid mechanism (Nikolopoulos et al. 2000, section 2.2) for a program that marks no phases: pages move
// at iterations until placement is stable; then one iteration is recorded, region by region. A region is a
// phase where its accesses want other homes than the iteration has given, and its most critical pages move
// before it and go back behind it where the guard says that this pays. It says of each phase what moving
// would bring and cost, whether or not it moves. Record and replay alone (the same section): no page moves at
// iterations, and the first one is recorded.
#pragma once

#include "engine/engine.hpp"
#include "phases/replayer.hpp"

#include <map>
#include <memory>
#include <vector>

namespace homing::replay {

class Hybrid final : public Mechanism {
  public:
    /// What is recorded.
    enum class Records {
        stable, ///< an iteration once placement is stable
        first   ///< the first iteration that is known to be one
    };
    /// iterative: what moves at iterations, or only observes. most: pages of a phase.
    Hybrid(std::unique_ptr<Mechanism> iterative, std::size_t most, double threshold, bool guarded,
           Records what = Records::stable);

    const char* name() const noexcept override {
        return what_ == Records::stable ? "hybrid" : "record-replay";
    }
    void iteration_observed(Engine& engine, bool check) override;
    void references_came(Engine& engine) override { iterative_->references_came(engine); }
    void iteration_begins(Engine& engine) override;
    bool region_begins(Engine& engine, std::uint32_t region) override;
    void region_ended(Engine& engine) override;
    void process_ends(Engine& engine) override;
    bool needs_windows() const noexcept override {
        return state_ == State::records || state_ == State::replays;
    }
    bool places_allocations() const noexcept override { return iterative_->places_allocations(); }

    const Replayer& replayer() const noexcept { return replayer_; }
    /// The program itself has placed this memory.
    void placed(Engine& engine, Range range) { replayer_.placed(engine, range); }
    /// By region: the number of its phase, those that are moved for.
    const std::map<std::uint32_t, std::size_t>& moved_phases() const noexcept { return moved_; }

  private:
    enum class State {
        settles, ///< pages move at iterations
        records, ///< from the iteration to come on
        replays,
        rests ///< no phase is worth a move
    };
    void bring_back(Engine& engine);
    void begin_recording(Engine& engine);
    void end_recording(Engine& engine);
    double gain_ns(Engine& engine, std::size_t number, std::uint32_t region) const;

    std::unique_ptr<Mechanism> iterative_;
    Replayer replayer_;
    bool guarded_;
    Records what_;
    State state_ = State::settles;
    std::uint32_t iterations_ = 0;                  ///< before the recording
    bool decided_ = false;                          ///< by the iterative mechanism, at least once
    std::unique_ptr<Mechanism> recorder_;           ///< while an iteration is recorded
    std::map<std::uint32_t, Recording> recordings_; ///< by region
    Recording* running_ = nullptr;
    bool armed_ = false; ///< a window is open for the region
    std::map<std::uint32_t, std::size_t> moved_;
    std::size_t displaced_ = no_phase; ///< the phase whose pages are elsewhere now
    static constexpr std::size_t no_phase = ~std::size_t{0};
};

/// `--mechanism hybrid`, `record-replay`: from now on pages of this engine move by it.
void begin_hybrid(Engine& engine) noexcept;
/// The program itself has placed this memory, whatever the mechanism.
void memory_placed_under_hybrid(Engine& engine, Range range) noexcept;

} // namespace homing::replay
