// Every constant of the model and of the engine, with its unit and the measurement that it comes from. "By
// reason" heads those that were chosen and never measured against others.
//
// "Spike" means the Python model (belief.py) and its touches of LULESH, HPCCG, miniFE and CoMD, recorded with
// 4 threads on 4 nodes; "table" means `homing bench sampling` (benchmarks/results/sampling.md), which
// measures this code on areas whose owners are known.
#pragma once

#include "base/pace.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace homing::model::tuning {

/// Prior of each family of distributions, in the order of model::Family. Spike: a flat prior sent 9 % of the
/// pages of areas with borders at random to a wrong node; without HOME 11 % of the pages of irregular areas
/// were moved in vain, with it none.
inline constexpr std::array<double, 11> family_prior{.34, .12, .06, .06, .05, .02, .10, .08, .12, .02, .03};

/// The same of BLOCK in each of the arrays that are known to lie in an area, in shares of GRIDS': with it as
/// likely as half of BLOCK's. LULESH (20^3): 40 arrays of 16 pages share the heap, and each is BLOCK.
inline constexpr double each_prior = 3;

/// What a touch may be besides one by the owner of its page: `uniform` of all touches are by any thread,
/// `master` by the team's first thread, which serial code runs on. Weights are prior probabilities. Spike:
/// the first three, with weights .5, .35, .15; without the fourth, areas of which the master makes 30 % of
/// the touches lost up to 21 points.
struct Stray {
    double uniform, master, weight;
};
inline constexpr std::array<Stray, 4> strays{{{.02, 0, .45}, {.10, 0, .30}, {.40, 0, .13}, {.05, .30, .12}}};
/// The place of the one with the most strays: the crisp part of a belief leaves it out.
inline constexpr std::size_t many_strays = 2;
static_assert(strays[many_strays].uniform > .2);

/// How far a neighbour's touches reach over a border, in blocks: the probability falls as exp(-distance /
/// reach). Spike. Writes reach less far than reads do: halos are read, not written.
struct Reach {
    double reads, writes, weight;
};
inline constexpr std::array<Reach, 3> reaches{{{.03, .01, .60}, {.30, .10, .25}, {2.0, .30, .15}}};
inline constexpr std::size_t nuisances = strays.size() * reaches.size();

/// Changes of owner along an area without any order, per node, and the counts of even and uneven sharing
/// (Polya's urn). Spike.
inline constexpr std::array<double, 3> switches_per_node{.5, 2, 8};
inline constexpr std::array<double, 2> urn_counts{1, 30};

/// A page that is touched again is touched by the same node with this probability where each page has its own
/// owner. Spike.
inline constexpr double own_page_again = .95;

/// A page moves when it is likelier to belong there than here by this, and so much more of its touches would
/// become local. Table: a lead of .5 sends 3.3 % of the pages of tiles wrong after 8 touches, .65 sends 0.5
/// %, and .8 leaves 10 % of them where they are.
inline constexpr double least_lead = .6;
inline constexpr double least_gain = .1;
/// Pages that all nodes use alike with this probability belong evenly on all of them. Spike.
inline constexpr double certainly_spread = .8;

/// Touches of an area that are kept: as many as any pattern of the table needs (100), and some for drift.
inline constexpr std::size_t most_touches = 160;
/// Touches since a change of owners that can show it, and the log of its prior probability, at each question.
/// Test (TouchesTest.StableOwnersAreHardlyEverTakenForChanged): no false alarm in 480
/// questions; -3 gave 7.
inline constexpr std::size_t least_since_change = 8;
inline constexpr double change_log_prior = -7;
/// So many times as many touches as the leading place has make another one lead: which of them a round shows
/// varies. Guest, transpose from parallel initialisation: 37.5 and 37.7 % remote in two runs, as the oracle.
inline constexpr std::size_t lead_of_place = 2;

/// Touches by windows after which the engine decides: a quarter of all that there were, within limits. The
/// least decide BLOCK for two areas (8 touches each, benchmarks/results/sampling.md). Guest, whole run: with
/// 48 a run of 8 iterations stayed 35 % remote, so 5 %. At the most as many as were waited for before that.
inline constexpr std::uint64_t round_share = 4;
inline constexpr std::uint64_t least_of_round = 16;
inline constexpr std::uint64_t most_of_round = 48;

/// One touch in so many goes by traffic, whatever is believed. Table, 60 areas (`homing bench sampling`).
inline constexpr unsigned check_interval = 10;
/// The first touches of an area lie evenly, and this share of those behind; the others lie where the least is
/// known of so many candidates. Table, 60 areas.
inline constexpr unsigned even_touches = 4;
inline constexpr double even_share_of_touches = .5;
inline constexpr unsigned candidates_to_ask = 8;
/// Parts of an area that are weighed for one round at most. LULESH, 20^3, on this machine: weighing 8 pages
/// for each of a round's 1,024 took 8.5 % of the run.
inline constexpr unsigned most_candidates = 256;

/// Where knowing all owners would make less than this share of an area's touches local, there is nothing to
/// ask: what asking costs a run, and what staying awake does, is more.
inline constexpr double least_ignorance = .005;

/// Pages from which it is estimated how often one comes from the same node again: a standard error of 6
/// points at most.
inline constexpr unsigned looks_at_users = 64;

/// A formula whose posterior is below this share of the best one's is dropped. e^-18 = 1.5e-8: four
/// contradicting touches more than any rounding.
inline constexpr double negligible_log = -18;
/// Formulas of less than this share of the posterior are left out of a page's prospects (spike), and of those
/// that are left the last ones, which together hold so much: a page's prospects ask for each formula, and
/// after two touches hundreds are left. Table: see benchmarks/results/sampling.md; .01 changes no column by
/// more than its scatter.
inline constexpr double negligible_share = 1e-4;
inline constexpr double negligible_rest = .01;
/// The same of one formula with one reach: a page's prospects ask for each.
inline constexpr double negligible_reach = 1e-6;

/// Of the weight of runs in any order: equal blocks in any order. Table (unordered): right after 100 touches
/// 90 -> 99 %.
inline constexpr double even_share = .3;

/// Cuts, offsets and rows are refined in so many steps a level, and so many levels. Table (two_grids).
inline constexpr int refined_steps = 8;
inline constexpr int refinements = 3;

/// Log of the prior odds that an array is aligned to a page within its allocation. Guest: with even odds the
/// wavefront's right borders were given up for a page off after few touches (0.8 -> 3.8 % remote); tiles that
/// are aligned so are told by 230 touches with 3 as with 0.
inline constexpr double aligned_log_prior = -3;

/// Touches between two looks at which formulas are ruled out: a look costs as much as a touch.
inline constexpr std::size_t batch = 8;

/// Formulas and runs of less of the posterior make no borders of stretches: a move of so little is nobody's
/// gain.
inline constexpr double negligible_border = 1e-3;
/// A gap between touches on different nodes is cut into so many stretches: its borders are known no better.
inline constexpr int pieces_of_gap = 4;

/// Touches from which on tiles and drifting borders are tried at all (they are most of the formulas, and no
/// fewer touches decide them: spike, tiles 43 % right after 4, 91 % after 8), and the probability of a
/// simpler formula that makes them needless.
inline constexpr std::size_t least_for_fine = 6;
inline constexpr double simple_enough = .97;

/// Threads that formulas are made for: more stand in groups. A fit to 160 touches takes 4 ms for 32 threads,
/// and four times that for 64.
inline constexpr int most_team_threads = 32;
/// After so many touches a thread of the team, in so many rounds, one that has made none is not of it. The
/// touches: of a team whose threads touch alike each has then made one but for e^-8. The rounds: touches of
/// one round hang together (neighbours are asked for in runs, and a thread that the system lets wait comes
/// after its windows have closed). In the guest on a busy machine, with 4 threads, the first lost its block
/// in 7 of 9 runs; in the one that was looked at it had touched nothing in three rounds.
inline constexpr std::uint64_t touches_of_member = 8;
inline constexpr std::uint32_t rounds_of_member = 8;

/// Areas of one size or allocation site that tell of each other, and the weight of what they show beside what
/// is true of any area. Table, 60 areas (siblings_*): after 100 touches 92 to 93 % of the possible gain with
/// 0 to .6, and 88 % with 1.
inline constexpr std::size_t most_siblings = 8;
inline constexpr double trust_in_siblings = .5;

/// A touch from a node of which less than this share of the page's touches was expected is a surprise; so
/// many of them, and a quarter of the new touches, make it worth while to ask whether the owners changed.
inline constexpr double surprising_share = .15;
inline constexpr std::size_t least_surprising = 2;
/// A belief is made anew when so many touches came, as a share of those that it rests on: some 15 fits on the
/// way to 160 touches.
inline constexpr double news_share = .25;
/// Pages that came again, of which the older half is forgotten; and so many that came by chance alone are
/// taken to have been before the first.
inline constexpr double most_repeats = 1000;
inline constexpr double repeats_for_chance = 8;
/// Pages that come from another node than their distribution says, as a share of those of which it is known,
/// that say nothing (twice as many say all): who comes first to a page at a border is often the neighbour,
/// for a few bytes of it. In the guest the blocks of CG's matrix, 306 pages known, were called NONE without
/// this.
inline constexpr double most_neighbours = .1;
/// Touched pages that lay elsewhere than their neighbours, which one node uses, from which on they tell
/// whether such pages are the neighbours' or where they lie. With 4 of 4 an unknown one moves by its lead.
/// Guest: of a pool of four arrays 6.7 % of the misses stayed remote, of pages between known ones that HOME,
/// right for 95 % of the pages, kept where they were.
inline constexpr double least_between_neighbours = 4;
/// Writes that say whose pages are that all nodes read.
inline constexpr std::size_t least_writes = 4;

// The outer iteration (model/period, cycle, anchor, iteration). By reason, but for what tests/sequences
// holds: recorded sequences of programs, whose iterations are to be found.

/// One foreign region in ten is the most that is tolerated within a period.
inline constexpr std::uint64_t least_between_foreign = 9;
/// Cycles after which an exact period is the program now, and no chance: of the sequence itself, and of
/// iterations around it.
inline constexpr std::uint64_t lasting_cycles = 8;
/// A cycle is around another if it is so many times as long; else they are the same one.
inline constexpr double least_enclosing = 1.5;
/// Iterations differ by this factor at the most where a cycle is taken for the outer one.
inline constexpr std::uint64_t most_unlike = 4;
/// Before it replaces an anchor, which is not given up for what may be chance: so many times its length, and
/// so many iterations.
inline constexpr double least_around_anchor = 3;
inline constexpr std::uint64_t least_stable = 4;
/// The outer cycle has gone if it does not come again in so many times its longest iteration, and so many
/// events.
inline constexpr std::uint64_t patient_iterations = 4;
inline constexpr std::uint64_t least_patience = 64;

// Where no iteration is found (engine/events). By reason.

/// Events without a period before time may decide, and iterations that may be guessed before that, and anew
/// where the program does something new.
inline constexpr std::uint64_t events_before_time = 48;
inline constexpr std::uint32_t most_guesses = 12;
/// Seconds between two decisions: so much longer each time, up to this; and while there is something to
/// learn. (UPMlib's sampling engine needs a few hundred milliseconds: Nikolopoulos et al. 2000, section 2.1.)
inline constexpr double tick_growth = 1.5;
inline constexpr double longest_tick = 10;
inline constexpr double longest_unsettled_tick = 1;
/// A part of a region that is shorter (seconds) is no unit of observation: the next one belongs to it.
inline constexpr double least_part_of_region = 1e-3;
/// Teams come with the first regions: for so many events their threads are looked for at each.
inline constexpr std::uint64_t team_events = 64;
/// Seconds between the helper's looks, and looks outside of regions after which it goes.
inline constexpr double helper_look = 0.05;
inline constexpr int most_idle_looks = 4;

// A round of observation (engine/engine, engine/sampling). By reason, unless said.

/// What ends a round where sources sample by themselves: references; and what ends it without them.
/// Seconds: some scans of the kernel, and without any reference, where nothing large is used.
inline constexpr std::uint64_t enough_sampled = 4096;
inline constexpr std::uint32_t most_round_iterations = 4;
inline constexpr double longest_round = 5;
inline constexpr double longest_silence = 15;
/// Rounds of windows that saw little last so long (seconds): very short iterations are no time to decide.
inline constexpr double least_round = 0.01;
/// Rounds without any reference before the engine rests; and rounds that saw others touched and an area not,
/// after which it is taken for unused. What is unknown is asked for first, so that it has most of these
/// rounds' questions.
inline constexpr std::uint32_t most_silent_rounds = 8;
/// Granules that a round asks for, of all areas together: more than windows can arm in it, so that each
/// region finds some that it touches. A check asks for few: windows take what they can afford of it. Of an
/// area that exists in part each granule that is asked for is looked at first.
inline constexpr std::uint32_t asked_in_round = 1024;
inline constexpr std::uint32_t asked_in_check = 96;
inline constexpr std::uint32_t asked_of_part = 256;
/// What may change with every region (what a round asks for, what small blocks cover) is looked at anew after
/// so many times what the last look took: half a percent of the run.
inline constexpr double look_interval = 200;
/// Processor seconds that learning owners may take at first, and its share of the run beyond them, where a
/// fit of seconds_of_fit()'s size takes `usual_fit` seconds. Measured (benchmarks/belief, AMD EPYC): 0.17 to
/// 0.23 ms for 8 touches of blocks. What is meant is an amount of work: the first seconds are as many times
/// more as a fit takes longer, up to a limit. In the guest, where floating point is emulated, that is 40
/// times, and the runs of many arrays ended with half of them unjudged.
inline constexpr Pace inferring_pace{1, 0.01};
inline constexpr double usual_fit = 0.2e-3;
inline constexpr double most_slowness = 50;
/// Seconds that a reference which comes by itself (a hint fault, a sample of the PMU) costs the thread that
/// makes it.
inline constexpr double reference_cost = 2e-6;
/// Seconds between two looks at which areas there are, where a source scans: the kernel's scans come no
/// oftener.
inline constexpr double adoption_interval = 1;
/// Seconds between two looks at what forbids windows outside of regions; a look takes some microseconds.
inline constexpr double window_look = 0.01;
/// So many windows in turn that could not open, over so many seconds, are worth a word.
inline constexpr std::uint32_t many_refusals = 32;
inline constexpr double long_refusal = 2;
/// Iterations that what should have been in a window is put off where none can be opened (next touch).
inline constexpr std::uint32_t most_put_off = 16;

// A decision (engine/iterative, judgement, allocations). By reason, unless said.

/// One pause for moving at the end of an iteration: this share of the iteration, within these seconds.
inline constexpr double pause_share = 0.5;
inline constexpr double least_pause = 1.0;
inline constexpr double most_pause = 2.0;
/// Pages that are looked at to judge areas: of all areas together, and of each: of few areas many, of many
/// areas few.
inline constexpr std::uint64_t looks_of_round = 2048;
inline constexpr std::uint64_t least_looks = 32;
inline constexpr std::uint64_t most_looks = 192;
/// Asking where a page is costs this part of moving it; what a move has to ask for beyond the pages it moves
/// counts (the first few are in what a move was measured to cost).
inline constexpr double look_share = 0.2;
/// A run is expected to last as long again as it has, and so many iterations at the least: what a touch tells
/// brings its gain so often.
inline constexpr double least_iterations_to_come = 16;
/// More of an area than borders that are not known well: pages that would go back to where they came from.
inline constexpr double much_held = 0.05;
/// A placement is even when no node holds more than so many times its share: then pages that all nodes use
/// stay where they are.
inline constexpr double uneven = 1.5;
/// Temporaries are looked at when they come back for the first time, and so many seconds apart: a look at one
/// takes some 20 us. Of the pages that are looked at (least_looks) a quarter must exist, and such a part of
/// these lie elsewhere than they belong, for a plan to be worth its system calls.
inline constexpr double temporaries_look = 0.02;
inline constexpr double much_astray = 0.2;
/// A run's system call takes as long as the faults of some four pages: of fewer pages it would be seen.
inline constexpr std::uint64_t least_run_pages = 16;
/// One over the share of a first move's price that must have been paid for remote accesses: with the lab's
/// stated costs one sweep of four threads pays for 400 of the 1500 ns that moving a page takes (64 lines,
/// 100 ns more each, four in flight a thread).
inline constexpr double advance = 4;
/// The allocator's memory of more granules (64 MiB) is not looked through for the arrays in it: blocks that
/// are too small to be areas are hundreds there.
inline constexpr std::uint64_t most_granules_with_blocks = std::uint64_t{1} << 14;
/// So many times as many threads that touched something have gone as there are, or as there are nodes: teams
/// are made anew. A team that changes its size once, or twice, is not that.
inline constexpr std::size_t most_gone = 2;

} // namespace homing::model::tuning
