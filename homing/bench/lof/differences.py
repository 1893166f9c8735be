"""Why ours is more than 5 points, or more than a factor of 1.5, from the paper's tables: what runs of the
benchmark tell about it."""

from __future__ import annotations

from collections.abc import Mapping

from homing.bench.lof import paper
from homing.bench.lof.runs import Outcome

#: Behind a run's name: of the process from its start to its end, not of its last iteration; and that of a
#: process which makes as many iterations as the paper's.
_WHOLE, _LENGTH = ":whole", ":length"
#: Program, the runs whose remote fractions stand in the text in this order, and the text.
_REASONS = (
    (
        "nas_cg",
        ("pi", "pi_own"),
        "**NAS-CG, PI.** The standard code touches the elements in parallel before entries with the "
        "same column are added up, and the columns in serial. With that (`--initialise published`) "
        "{0} of the misses are remote; where each thread touches its own rows, {1}. The paper's 35.9 "
        "% comes from that loop, not from parallel initialisation as such.",
    ),
    (
        "nas_cg",
        ("si_mig", "si_mig@1MiB:2", "si_mig@4MiB:1", "pi_own"),
        "**NAS-CG, SI+MIG.** It follows the cache: {0} are remote with one way, {1} with two ways, {2} with "
        "four times the size (paper 6.17 % with its size of problem and cache), and {3} without migration "
        "where each thread touches its own rows: what is left is the vector that all threads read, and how "
        "often it is displaced.",
    ),
    (
        "nas_mg",
        ("pi", "pi_own"),
        "**NAS-MG, PI.** The paper does not say what its code initialises in parallel. With u and v "
        "touched by one thread, and r where it is computed first (`--initialise first-use`), {0} are "
        "remote (paper 48.5 %); where each thread touches its own planes, {1}. So the paper's "
        "fraction is that of arrays which were left serial; which ones, an experiment can suggest but "
        "not prove.",
    ),
    (
        "nas_mg",
        ("si_mig", "si_mig_without_v", "t12"),
        "**NAS-MG, SI+MIG.** The paper does not say which arrays its directive names. With all three, {0} "
        "are remote with us; with u and r, which hold all grids, and v, the right side on the finest grid "
        "that is only read, left where the serial thread put it, {1} (paper 11.0 %). So an array that was "
        "left out, or a part of it, makes a difference of this size; which one the paper's was, it does not "
        "tell. Caches (below) and more threads a node ({2}) change little.",
    ),
    (
        "i_cg",
        ("si_mig@rcm", "si_mig", "si_mig@random", "pi"),
        "**I-CG, SI+MIG.** The paper's mesh and numbering are not published, and the fraction depends "
        "on the numbering: {0} with reverse Cuthill-McKee, {1} as gmsh and scikit-fem number, {2} at "
        "random. The paper's 31.4 % lies between. Without migration and each thread touching its own "
        "part it is {3}: pages of p go to whichever thread gathers from them first in the armed "
        "iteration, which differs from run to run.",
    ),
    (
        "i_cg",
        ("si@rcm", "si", "si@random", f"si_whole@rcm{_WHOLE}", f"si_whole{_WHOLE}"),
        "**I-CG, SI.** The paper's 67.9 % is of the whole process, in which one thread reads the file and "
        "misses locally. Of an iteration's misses {0}, {1} and {2} are remote in the three numberings; of 47 "
        "iterations and the reading together {3} with reverse Cuthill-McKee, where all threads miss alike "
        "often, and {4} as gmsh and scikit-fem number, where the first thread's part misses less than the "
        "others'.",
    ),
    (
        "nas_mg",
        ("si_mig", f"si_mig{_LENGTH}", f"si_mig_without_v{_LENGTH}"),
        "**NAS-MG, SI+MIG, the whole process.** A counter of the processor sees the iteration in which pages "
        "move, too: {1} in 20 iterations, and {2} with v left alone, where the last iteration has {0}. The "
        "paper's 11.0 % counts it.",
    ),
    (
        "i_mg",
        ("pi", "si_mig", f"pi{_LENGTH}", f"si_mig{_LENGTH}", "t12"),
        "**I-MG, PI and SI+MIG.** Remote are the planes at the borders of the threads' parts: {0} and {1} of "
        "the last iteration's misses (paper 4.28 and 3.58 %), with three threads a node {4}. Of the process "
        "with 10 iterations they are {2} and {3}: the iteration in which pages move counts. What is left "
        "follows the number of planes, with half as many cells a side twice as many are remote; and what "
        "else than the states is read.",
    ),
    (
        "i_mg",
        (
            "pi",
            "pi_vertices",
            "pi_bare",
            "pi_wide",
            "si_mig",
            "si_mig_vertices",
            "si_mig_bare",
            "si_mig_wide",
        ),
        "**I-MG, an experiment.** Only what lies beyond a border can be remote, and how much of an "
        "iteration's misses that is depends on what else a cell keeps, of which the paper says nothing. PI "
        "with us has {0}; with vertices kept in place of face areas {1}; also without a right side on the "
        "finest level, where the equations have none, {2}; also of second order, reading two planes beyond, "
        "{3}. SI+MIG: {4}, {5}, {6}, {7}; in these its pages go to whoever comes first at the border. "
        "The paper's 4.28 and 3.58 % are of 128 cells a side.",
    ),
)


def differences(outcomes: Mapping[str, Mapping[str, Outcome]]) -> list[str]:
    """A paragraph for each difference about which all its runs are there."""
    notes = []
    for program, names, text in _REASONS:
        runs = outcomes.get(program, {})
        found = [_fraction(runs, name, paper.ITERATIONS.get(program, 0)) for name in names]
        if None not in found:
            notes.append(text.format(*(f"{value:.1%}" for value in found)))
    return notes + _large_pages(outcomes)


def _large_pages(outcomes: Mapping[str, Mapping[str, Outcome]]) -> list[str]:
    """Why one cost a page and a byte cannot give Table 3's column of large pages."""
    each = {}
    for program, known in paper.MIGRATION.items():
        if one := outcomes.get(program, {}).get("t12_large"):
            moved = one.moved_bytes * paper.BYTES[program] / one.bytes
            each[program] = known["t12_large"] / moved * 1e9 if moved else 0.0
    if len(each) < len(paper.PROGRAMS) or max(each.values()) <= 1.5 * min(each.values()):
        return []
    told = ", ".join(f"{paper.TITLES[program]} {seconds:.1f}" for program, seconds in each.items())
    return [
        "**Table 3, large pages.** There are so few of them that bytes alone cost, and the paper's seconds a "
        f"GB that moves with us are {told}: no one cost a byte gives all four, and what makes the difference "
        "is not in counts of misses and pages."
    ]


def _fraction(runs: Mapping[str, Outcome], name: str, iterations: int) -> float | None:
    """Remote share of a run's last iteration, or of a process; None where it was not simulated."""
    run, _, what = name.partition(":")
    outcome = runs.get(run)
    if outcome is None or not what:
        return None if outcome is None else outcome.fraction
    if outcome.whole is None:
        return None
    return outcome.whole.fraction if f":{what}" == _WHOLE else outcome.whole_run(iterations)
