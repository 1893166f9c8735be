// Record, replay and undo (Nikolopoulos et al. 2000, section 2.2, Figure 2): the program records at all phase
// transitions of one iteration; from then on replay moves the most critical pages of a phase before it, and
// undo sends them home behind it.
//
// What the program asks for is done, whatever the guard would say, and it is accounted (rows `phase`). From
// its first record on pages do not move at iterations, unless the program calls for these, too (the paper's
// hybrid).
#pragma once

#include "counters/criterion.hpp"
#include "engine/engine.hpp"
#include "kernel/page_moves.hpp"
#include "phases/positions.hpp"
#include "phases/recording.hpp"

#include <map>
#include <memory>
#include <vector>

namespace homing::replay {

using counters::PlannedMove;
using counters::Share;

/// What a call came to.
enum class Outcome { done, refused, nothing };

/// One at a time: all calls within Engine::guarded().
class Replayer {
  public:
    /// most: pages that move for a phase; moves: false where nothing is to be moved, only accounted.
    Replayer(std::size_t most, double threshold, bool moves)
        : most_(most), threshold_(threshold), moves_(moves) {}

    Outcome record(Engine& engine);
    Outcome replay(Engine& engine);
    Outcome undo(Engine& engine);
    /// An iteration ends, by the program's word.
    void iteration_called(Engine& engine);
    /// The program itself has placed this memory: what replay has moved there has its home now.
    void placed(Engine& engine, Range range);
    /// Pages that move for a phase: of the plans that are made from now on.
    void set_most(std::size_t most) noexcept { most_ = most; }
    /// Rows of all phases, as they are now.
    void write_rows() const;

    // Phases that nobody has marked (phases/hybrid).

    /// These are the phases now, and nothing was replayed yet.
    void adopt(Engine& engine, std::vector<Recording> recordings);
    /// Moves the pages of this phase; those of another one go home first.
    void replay_phase(Engine& engine, std::size_t number);
    Outcome bring_back(Engine& engine);
    /// Granules of the phase's plan, by their area's number.
    std::map<std::uint32_t, std::uint64_t> planned_granules(std::size_t number) const;

    struct Phase {
        explicit Phase(int nodes) : recording(nodes) {}
        Recording recording;
        std::vector<PlannedMove> plan;
        std::size_t accessed = 0; ///< pages
        std::size_t eligible = 0;
        std::size_t planned = 0;
        std::uint64_t refused = 0;
        std::uint64_t replays = 0;
        std::uint64_t moved = 0;
        std::uint64_t undone = 0;
        Share share;
        double seconds = 0;
        std::uint32_t calls = 0;
    };
    /// Those of the newest recording; the last one, behind the last record, is none.
    const std::vector<Phase>& phases() const noexcept { return phases_; }

  private:
    /// A page that replay has moved since the last undo.
    struct Displaced {
        policy::Node original;
        policy::Node now;
        std::size_t phase;
    };
    enum class Said : unsigned {
        nothing_recorded = 1,
        one_record = 2,
        no_phase = 4,
        nothing_replayed = 8,
        too_many_records = 16
    };

    Recording* running_recording() noexcept { return phases_.empty() ? nullptr : &phases_.back().recording; }
    std::unique_ptr<Mechanism> begin_recorder();
    void stop_recording(Engine& engine);
    void make_plans(Engine& engine);
    Outcome move_for(Engine& engine, std::size_t number);
    Moves send(Engine& engine, std::vector<PageMove>& moves);
    void say_once(Said what, const char* text);
    static void write_row(const Phase& phase, std::size_t number, std::size_t phases);

    std::size_t most_;
    double threshold_;
    bool moves_;
    Positions positions_;
    std::vector<Phase> phases_;
    std::weak_ptr<Replayer*> recorder_; ///< lives as long as the recorder that the engine has of us
    std::map<PageId, Displaced> displaced_;
    std::map<std::uint32_t, std::size_t> granule_bytes_; ///< by area, when plans were made
    bool planned_ = false;
    bool iterations_called_ = false; ///< by the program
    bool held_back_ = false;         ///< pages do not move at iterations
    unsigned said_ = 0;
};

// For the program's own calls (hooks/api).
Outcome record_called(Engine& engine) noexcept;
Outcome replay_called(Engine& engine) noexcept;
Outcome undo_called(Engine& engine) noexcept;
void iteration_called(Engine& engine) noexcept;
void memory_placed(Engine& engine, Range range) noexcept;
void set_most(std::size_t most) noexcept;
/// At the end of the process.
void write_rows() noexcept;

} // namespace homing::replay
