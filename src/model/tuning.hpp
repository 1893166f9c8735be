// Every constant of the model and of the engine, with its unit and the measurement that it comes from. "By
// reason" heads those that were chosen and never measured against others.
//
// "Spike" means the Python model (belief.py) and its touches of LULESH, HPCCG, miniFE and CoMD, recorded with
// 4 threads on 4 nodes; "table" means `homing bench sampling` (benchmarks/results/sampling.md), which
// measures this code on areas whose owners are known.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace homing::model::tuning {

// Levels that several rules share, because they have one reason.

/// Touches that tell BLOCK and SINGLE (table: 99 % of the pages right after 8, 97 % with one stray touch in
/// ten). As many can show that owners changed, and so many are asked for of two areas before the first
/// decision. As many pages that came again by chance alone are taken to have been before the first.
inline constexpr std::size_t telling_touches = 8;
/// Touches that are too few to leave it to them what to ask next (the first lie evenly), to tell of an area's
/// writers, of whose the pages between known ones are, or of tiles and drifting borders (spike, tiles: 43 %
/// right after 4, 91 % after 8). With 4 of 4 an unknown one moves by its lead. Guest: of a pool of four
/// arrays 6.7 % of the misses stayed remote, of pages between known ones that HOME, right for 95 % of the
/// pages, kept where they were.
inline constexpr std::size_t few_touches = 4;
/// What has not shown itself in so many chances to, each as good as any, is not there: but for e^-8. A thread
/// that touches nothing while each of its team could have done so as often, or in as many rounds (touches of
/// one hang together; guest, busy machine: with 4 threads the first lost its block in 7 of 9 runs, having
/// touched nothing in three rounds); an area that is not touched in so many rounds that saw others; another
/// cycle beside the one that came so often.
inline constexpr std::uint32_t chances = 8;
/// From this probability on something is taken for certain: that all nodes use a page alike. What was as
/// improbable is a surprise. Spike (pages that all nodes use).
inline constexpr double certain = .8;
/// So much that is new, as a share of what was known, is worth to think again: touches for a new belief (some
/// 15 fits on the way to 160 touches), touches before the next decision, surprising ones among the new; and
/// pages of a temporary that lie elsewhere than they belong, for a plan to be worth its system calls. By
/// reason.
inline constexpr double news_share = .25;
/// Less than this is nothing: of a posterior, of an area's pages, or its touches that would become local
/// (what asking costs a run, and what staying awake does, is more), or of the run's time. By reason: half of
/// the percent that homing may cost a run.
inline constexpr double negligible_part = .005;

/// Borders are known no better than this. More of an area's pages that would go back to where they came from
/// are no border (by reason). Formulas that together hold no more of the posterior are taken for sharp at
/// theirs, for a page's prospects: after two touches they are most formulas, and how far they reach was three
/// quarters of what a prospect took. Table: changes no column by more than its scatter.
inline constexpr double border_share = .05;

// The belief.

/// Prior of each family of distributions, in the order of model::Family. Spike: a flat prior sent 9 % of the
/// pages of areas with borders at random to a wrong node; without HOME 11 % of the pages of irregular areas
/// were moved in vain, with it none.
inline constexpr std::array<double, 11> family_prior{.34, .12, .06, .06, .05, .02, .18, .08, .12, .02, .03};

/// The same of BLOCK in each of the arrays that are known to lie in an area, in shares of GRIDS': with it as
/// likely as half of BLOCK's. LULESH (20^3): 40 arrays of 16 pages share the heap, and each is BLOCK.
inline constexpr double each_prior = 3;

/// What a touch may be besides one by the owner of its page: `uniform` of all touches are by any thread,
/// `master` by the team's first thread, which serial code runs on. Weights are prior probabilities. Spike:
/// the first three, with weights .5, .35, .15; without the fourth, areas of which the master makes 30 % of
/// the touches lost up to 21 points.
struct Stray {
    double uniform, master, weight;
    constexpr double by_owner() const noexcept { return 1 - uniform - master; }
    /// P(touch by a thread | its share of the page's touches by owners), of a team of so many.
    constexpr double likelihood(double share, bool is_master, int threads) const noexcept {
        return by_owner() * share + uniform / threads + (is_master ? master : 0);
    }
};
inline constexpr std::array<Stray, 4> strays{{{.02, 0, .45}, {.10, 0, .30}, {.40, 0, .13}, {.05, .30, .12}}};
/// The place of the one with the most strays: the crisp part of a belief leaves it out.
inline constexpr auto many_strays =
    static_cast<std::size_t>(std::ranges::max_element(strays, {}, &Stray::uniform) - strays.begin());

/// How far a neighbour's touches reach over a border, in blocks: the probability falls as exp(-distance /
/// reach). Spike. Writes reach less far than reads do: halos are read, not written.
struct Reach {
    double reads, writes, weight;
};
inline constexpr std::array<Reach, 4> reaches{
    {{.001, .001, .30}, {.03, .01, .30}, {.30, .10, .25}, {2.0, .30, .15}}};
/// The first of them are no halo or a halo: the page is its owner's. Without the former each touch
/// at a block's first byte cost as much as if a neighbour had been as likely (guest: pool 2.4 % remote in the
/// last half, with it .2, and hint faults: tiles 3.5 -> .3; table: two_grids, 40 touches, 98.5 -> 99.1 %).
inline constexpr auto halos = static_cast<std::size_t>(
    std::ranges::count_if(reaches, [](const Reach& reach) { return reach.reads < border_share; }));
inline constexpr std::size_t nuisances = strays.size() * reaches.size();

/// Changes of owner along an area without any order, per node, and the counts of even and uneven sharing
/// (Polya's urn). Spike.
inline constexpr std::array<double, 3> switches_per_node{.5, 2, 8};
inline constexpr std::array<double, 2> urn_counts{1, 30};

/// A page that is touched again is touched by the same node with this probability where each page has its own
/// owner. Spike.
inline constexpr double own_page_again = .95;

/// A page moves when it is likelier to belong there than here by this. Table: a lead of .5 sends 3.3 % of the
/// pages of tiles wrong after 8 touches, .65 sends 0.5 %, and .8 leaves 10 % of them where they are.
inline constexpr double least_lead = .6;

/// Touches of an area that are kept: as many as any pattern of the table needs (100), and some for drift.
inline constexpr std::size_t most_touches = 160;
/// Log of the prior probability that owners have changed since any moment. Test
/// (TouchesTest.StableOwnersAreHardlyEverTakenForChanged): no false alarm in 480 questions; -3 gave 7.
inline constexpr double change_log_prior = -7;

/// Touches by windows after which the engine decides at the latest: a share of all that there were
/// (news_share), but at least what tells two areas apart. Guest, whole run: with 48 from the begin a run of 8
/// iterations stayed 35 % remote, so 5 %.
inline constexpr std::uint64_t most_of_round = 48;

/// One touch in so many goes by traffic, whatever is believed. Table, 60 areas (`homing bench sampling`).
inline constexpr unsigned check_interval = 10;
/// Where two have an equal right to something: borders that are nearly even or anywhere, with halos or not,
/// which both neighbours read; equal blocks in any order and runs (table, unordered: right after 100 touches
/// 90 -> 99 %); touches that lie evenly and (behind the first few) where the least is known of so many
/// candidates; and what is true of any area and what siblings have shown (table, 60 areas: after 100 touches
/// 92 to 93 % of the possible gain with 0 to .6 of the latter, and 88 % with 1).
inline constexpr double equal_share = .5;
inline constexpr unsigned candidates_to_ask = 8;
/// Pages of one area that are looked at for one round: weighed for what to ask, looked at for where they are,
/// and for whether they are there. A standard error of 3 points. LULESH, 20^3, on this machine: weighing 8
/// pages for each of a round's 1,024 took 8.5 % of the run.
inline constexpr unsigned most_looks = 256;
/// The same at the least, however many areas there are, and of known pages for how often one comes from the
/// same node again: a standard error of 6 points, by reason. Of a temporary that is looked at a quarter must
/// exist.
inline constexpr unsigned least_looks = 64;

/// Log of the share of the best formula's posterior below which one is dropped: four contradicting touches
/// more than any rounding, by reason.
inline constexpr double negligible_log = -18;
/// Hypotheses of less than this share of the posterior are left out of a page's prospects, and make no
/// borders of stretches (a move of so little is nobody's gain); so are the last formulas that together hold
/// no more than negligible_part: a page's prospects ask for each formula with each reach, and after two
/// touches hundreds are left. Table: changes no column by more than its scatter.
inline constexpr double negligible_share = 1e-4;

/// Nearly even borders and halos' ends lie at most so far from BLOCK's, in blocks. Table (uneven): after 32
/// touches 1.0 % of the pages do not lie right, 2.1 % where there is BLOCK and GEN_BLOCK alone.
inline constexpr double nearly_even_window = .2;

/// Cuts, offsets and rows are refined in so many steps a level, and so many levels. Table (two_grids).
inline constexpr int refined_steps = 8;
inline constexpr int refinements = 3;

/// Log of the prior odds that an array is aligned to a page within its allocation; even odds where it is
/// taken for that already. Guest: with -1 a wavefront's right borders were given up (0.8 -> 3.1 % remote).
inline constexpr double aligned_log_prior = -3;

/// A gap between touches on different nodes is cut into so many stretches, in which borders lie. By reason.
inline constexpr std::uint64_t pieces_of_gap = 4;

/// The probability of a simple formula that makes most of the others (tiles, drift) needless. Table.
inline constexpr double simple_enough = .97;

/// Threads that formulas are made for: more stand in groups. A fit to 160 touches was measured to take 4 ms
/// for 32 threads, and four times that for 64.
inline constexpr int most_team_threads = 32;

/// Areas of one size or allocation site that tell of each other. Table, 60 areas (siblings_*).
inline constexpr std::size_t most_siblings = 8;

/// Pages that come from another node than their distribution says, as a share of those of which it is known,
/// that say nothing (twice as many say all): who comes first to a page at a border is often the neighbour,
/// for a few bytes of it. In the guest the blocks of CG's matrix, 306 pages known, were called NONE without
/// this.
inline constexpr double most_neighbours = .1;

// The outer iteration (model/period, cycle, anchor, iteration). By reason, but for what tests/sequences
// holds: recorded sequences of programs, whose iterations are to be found.

/// Of two numbers one is more, and no scatter: cycles (one is around the other, or they are the same one);
/// pages of a node, of its share (then what all nodes use stays where it is).
inline constexpr std::uint32_t clearly_more = 2;
/// Iterations differ by this factor at the most. So where they do not they are no iterations; a cycle around
/// an anchor, which is not given up for what may be chance, is so many times its length; and one that does
/// not come again in so many times its longest iteration has gone.
inline constexpr std::uint64_t most_unlike = 4;
/// Iterations that tell: of a cycle that is to replace an anchor, and of a round in which little is seen.
inline constexpr std::uint32_t few_iterations = 4;
/// Events of a program's begin: its threads are looked for at each, time decides nothing yet, and no cycle is
/// given up. As many as the longest loop that may be within an iteration (model/loop_filter).
inline constexpr std::uint64_t first_events = 64;

// Where no iteration is found (engine/events). By reason.

/// Iterations that may be guessed before one is found, and anew where the program does something new.
inline constexpr std::uint32_t most_guesses = 12;
/// Waits become so many times as long where nothing has changed: between two decisions where time alone makes
/// them, and between two checks at rest; at the longest (seconds) so long.
inline constexpr std::uint32_t growth = 2;
inline constexpr double longest_wait = 10;
/// Seconds between two looks at which areas there are, where a source scans, and between two decisions by
/// time while there is something to learn: the kernel's scans come no oftener. (UPMlib's sampling engine
/// needs a few hundred milliseconds: Nikolopoulos et al. 2000, section 2.1.)
inline constexpr double scan_interval = 1;
/// A part of a region that is shorter (seconds) is no unit of observation: the next one belongs to it.
inline constexpr double least_part_of_region = 1e-3;

// A round of observation (engine/engine, engine/sampling). By reason, unless said.

/// What ends a round where sources sample by themselves: references; or seconds: some scans of the kernel.
inline constexpr std::uint64_t enough_sampled = 4096;
inline constexpr double longest_round = 5;
/// Seconds in which little changes: rounds of windows that saw little last so long (very short iterations are
/// no time to decide), what forbids windows outside of regions is looked at anew (some microseconds), and so
/// is a temporary of which pages lay where they do not belong (some 20 us; up to scan_interval where none
/// do).
inline constexpr double short_time = 0.02;
/// A round is calm in which no more pages than this (or negligible_part of an area) should move; the engine
/// rests after so many calm ones in a row, or, where nothing settles, after so many altogether. Checks come
/// no later than at so many times what their share of the run forces: a change of owners is to be noticed
/// even where they cost next to nothing.
inline constexpr std::uint64_t few_pages = 2;
inline constexpr int calm_rounds = 2;
inline constexpr int most_rounds = 64;
inline constexpr double slack = 4;
/// Granules that a round asks for, or looks at to judge, of all areas together: more than windows can arm in
/// it, so that each region finds some that it touches. A check asks for as many of these as go by traffic.
inline constexpr std::uint32_t granules_of_round = 1024;
/// The time that learning owners may take: at once so many seconds (five areas from eight touches each,
/// Xeon, seconds_of_fit()); a share of the run; and the same once more of its first seconds (longest_wait).
/// CG class A, half a second: with .46 s at once and .1 of the first seconds it took 9.5 % longer.
inline constexpr double first_inferring = 2e-3;
inline constexpr double share_of_run = 0.0025;
inline constexpr double share_of_checks = 0.01; ///< of the run: checks at rest
/// Seconds that a reference which comes by itself (a hint fault, a sample of the PMU) costs its thread.
inline constexpr double reference_cost = 2e-6;

// A decision (engine/iterative, judgement, allocations). By reason, unless said.

/// Seconds of one pause for moving at the end of an iteration: what is left has the next one.
inline constexpr double longest_pause = 2;
/// Asking where a page is costs this part of moving it; what a move has to ask for beyond the pages it moves
/// counts (the first few are in what a move was measured to cost).
inline constexpr double look_share = 0.2;
/// A run is expected to last as long again as it has, and so many iterations at the least: what a touch tells
/// brings its gain so often, and what should have been in a window is put off as long where none can be
/// opened (next touch).
inline constexpr std::uint32_t iterations_to_come = 16;
/// A run's system call takes as long as the faults of some four pages: of fewer pages it would be seen.
inline constexpr std::uint64_t least_run_pages = 16;
/// One over the share of a first move's price that must have been paid for remote accesses: with the lab's
/// stated costs one sweep of four threads pays for 400 of the 1500 ns that moving a page takes (64 lines,
/// 100 ns more each, four in flight a thread).
inline constexpr double advance = 4;

} // namespace homing::model::tuning
