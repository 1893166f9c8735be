"""How many cache misses go to remote nodes, counted in the guest: under nothing, kernel mechanisms, homing.

Every run starts with all pages on one node (serial initialisation), except those called parallel_init.
A run's remote misses are those of the whole run: initialisation, first and last half of the iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homing.bench.balancing import (
    SCANNED,
    STEP_TIMEOUT,
    describe_rate,
    knobs_of,
    run_at_rate,
    run_scanned,
)
from homing.bench.guest_runs import LAST_HALF, GuestRuns, Outcome
from homing.bench.places import find_program, kept_folder
from homing.bench.progress import Progress
from homing.bench.results import Check, Parts, Results, Row, check_only, library_key
from homing.installation import find_library
from homing.lab.built import find_built

_BALANCING = {"balancing_0.1": 0.1, "balancing_1": 1.0, "balancing_10": 10.0}
#: Their owners change all the time: pages follow as long as the program runs.
_NEVER_SETTLES = ("drift",)


@dataclass(frozen=True)
class Variant:
    """How a program is run. None for `homing`: without it."""

    initialise: str = "serial"
    homing: Mapping[str, str] | None = None
    prefix: tuple[str, ...] = ()
    footprints: float = 0.0
    as_scanned_in: str = ""  #: with the kernel's knobs of this variant


VARIANTS = {
    "none": Variant(),
    "interleave": Variant(prefix=("numactl", "-i", "all")),
    **{name: Variant(footprints=footprints) for name, footprints in _BALANCING.items()},
    "next_touch": Variant(homing={"HOMING_MECHANISM": "next-touch", "HOMING_GRANULE": "4KiB"}),
    "homing": Variant(homing={}),
    # The kernel's scans are its source: at the rate of balancing_1, so that an iteration is about a scan.
    "homing_hint_faults": Variant(homing={"HOMING_REFERENCES": "hint-faults"}, as_scanned_in="balancing_1"),
    "parallel_init": Variant("parallel"),
    "parallel_init_homing": Variant("parallel", homing={}),
}
#: In this order: the first tells how long an iteration takes, the last ones are the least needed.
_ORDER = [
    "none",
    "homing",
    "parallel_init",
    "parallel_init_homing",
    "balancing_0.1",
    "next_touch",
    "interleave",
    "balancing_1",
    "homing_hint_faults",
    "balancing_10",
]

#: Harm is to be seen at 1 %, which is what equal runs may differ by: where two threads share a page of a
#: small array, the one that happens to be first decides its node, and in CG one such page is worth 1 % of a
#: run. So runs in turn, the middle one counts: of so many where there is clearly no harm, of so many where
#: that is less clear, and of up to so many where the plain ones differ by more than 1 %: medians of 15 still
#: differed by 0.4 % for no reason (standard deviation), those of 31 do by 0.25 %. What homing samples
#: depends on time, so its runs scatter, too.
_FEW, _MORE, _MOST = 3, 7, 31
_REPEATED = {"parallel_init": _MOST, "parallel_init_homing": _MOST, "homing": 3}
_ALIKE = 0.01
_CLEARLY_NO_HARM = 0.005

#: Arguments by size, such that the guest, which is 5 to 40 times slower than the host, needs about half a
#: minute for a run.
PROGRAMS: dict[str, dict[str, tuple[str, ...]]] = {
    "small": {
        "cg": ("cg_gfortran", "--class", "W"),
        "mg": ("mg_gfortran", "--class", "W", "--iterations", "32"),
        "jacobi": ("jacobi_gcc", "--n", "96", "--iterations", "160"),
        "drift": ("drift_gcc", "--bytes", "32M", "--iterations", "240"),
    },
    "full": {
        "cg": ("cg_gfortran", "--class", "A"),
        "mg": ("mg_gfortran", "--class", "W", "--iterations", "64"),
        "jacobi": ("jacobi_gcc", "--n", "128", "--iterations", "160"),
        "drift": ("drift_gcc", "--bytes", "64M", "--iterations", "240"),
    },
}


_STEPS = [
    (variant, turn)
    for turn in range(max(_REPEATED.values()))
    for variant in _ORDER
    if turn < _REPEATED.get(variant, 1)
]


@dataclass
class ProgramRuns:
    """All runs of one program."""

    name: str
    command: list[str]
    runs: dict[str, Outcome] = field(default_factory=dict)


def run_variant(
    runs: GuestRuns, name: str, command: Sequence[str], found_before: Mapping[str, Outcome]
) -> Outcome:
    """One run of a program under VARIANTS[name].

    found_before: the runs so far, by variant: the one under nothing tells balancing's knobs.
    """
    variant = VARIANTS[name]
    none = found_before.get("none")
    words = [*variant.prefix, *command, "--initialise", variant.initialise]
    if not variant.as_scanned_in and not variant.footprints:
        return runs.run(name, words, homing=variant.homing, timeout=STEP_TIMEOUT)
    assert none is not None
    if variant.as_scanned_in:
        knobs = knobs_of(found_before[variant.as_scanned_in])
        return run_scanned(runs, name, words, none, knobs, variant.homing)
    return run_at_rate(runs, name, words, variant.footprints, none)


def _is_enough(found: Mapping[tuple[str, int], Outcome], turns: int) -> bool:
    """Of parallel initialisation in so many turns: do the plain runs differ by little? And is the middle one
    with homing, where the turns are few, clearly no worse than the plain one?"""

    def misses(variant: str) -> list[int]:
        steps = [(variant, turn) for turn in range(turns)]
        return sorted(found[step].remote_misses() for step in steps if step in found)

    plain, homing = misses("parallel_init"), misses("parallel_init_homing")
    if len(plain) < turns or len(homing) < turns or plain[-1] - plain[0] > _ALIKE * plain[0]:
        return False
    middle = turns // 2
    return turns >= _MORE or homing[middle] - plain[middle] <= _CLEARLY_NO_HARM * plain[middle]


def _next_step(found: Mapping[tuple[str, int], Outcome]) -> tuple[str, int] | None:
    """What is to be run next; None: enough was."""
    for step in _STEPS:
        if step[1] >= _FEW and _is_enough(found, _MORE if step[1] >= _MORE else _FEW):
            return None
        if step not in found:
            return step
    return None


def measure(
    size: str, only: Sequence[str], parts: Parts, progress: Progress, library: Sequence[float]
) -> list[ProgramRuns]:
    """All runs, from the parts where they are kept. One boot for each program, so that nobody waits long."""
    programs = []
    for name, (binary, *arguments) in PROGRAMS[size].items():
        if name not in only:
            continue
        entry = ProgramRuns(name, [find_program(binary), *arguments])

        def key(step: tuple[str, int], entry: ProgramRuns = entry) -> str:
            variant, turn = step
            built = "" if VARIANTS[variant].homing is None else str(list(library))
            again = f" {turn}" if turn else ""
            return f"{entry.name} {' '.join(entry.command[1:])} {variant} {built}{again}"

        found = {
            step: Outcome.from_dict(kept) for step in _STEPS if (kept := parts.get(key(step))) is not None
        }
        measured = 0
        if _next_step(found) is not None:
            progress.step(f"{name}: booting the guest")
            with GuestRuns() as runs:
                while (step := _next_step(found)) is not None:
                    progress.step(f"{name} {step[0]}")
                    so_far = {one[0]: outcome for one, outcome in found.items() if one[1] == 0}
                    found[step] = run_variant(runs, step[0], entry.command, so_far)
                    parts.put(key(step), found[step].to_dict())
                    progress.finished()
                    measured += 1
        for _ in range(len(_STEPS) - measured):
            progress.finished(skipped=True)
        for variant in VARIANTS:
            turns = sorted(
                (one for step, one in found.items() if step[0] == variant), key=Outcome.remote_misses
            )
            entry.runs[variant] = turns[len(turns) // 2]
        programs.append(entry)
    return programs


def rows_of(program: ProgramRuns) -> list[Row]:
    """The rows of one program."""
    runs, name = program.runs, program.name
    none = runs["none"]
    rows = []
    for variant in VARIANTS:
        found = runs[variant]
        note = f"{found.remote_fraction():.1%} of all misses"
        if VARIANTS[variant].footprints:
            note += f"; {describe_rate(found)}"
        elif VARIANTS[variant].as_scanned_in:
            note += f"; {found.settings[SCANNED]:.2g} footprints an iteration were scanned"
        rows.append(Row(f"{name}.{variant}", found.remote_misses(), "remote misses", note))
    rows.append(
        Row(
            f"{name}.oracle",
            none.oracle_remote,
            "remote misses",
            f"{none.oracle_fraction():.1%} of all misses",
        )
    )
    for variant in ("homing", "homing_hint_faults", "parallel_init"):
        rows.append(
            Row(f"{name}.{variant}.last_half", runs[variant].remote_fraction(LAST_HALF), "remote fraction")
        )
    rows.append(Row(f"{name}.oracle.last_half", none.oracle_last_half, "remote fraction"))
    for variant in ("homing", "homing_hint_faults"):
        record = runs[variant].homing or {}
        rows.append(
            Row(
                f"{name}.{variant}.settle",
                record.get("settled_after", 0),
                "iterations",
                "after the period was known and the guard permitted an area's moves, until 95 % of them "
                f"were made, of the last area; {_when(record)}",
            )
        )
    return rows


def _when(record: Mapping[str, Any]) -> str:
    at = int(record.get("settled_at", 0))
    rested = f"from iteration {at} of {record.get('iterations', 0)} on" if at else "at no time"
    return (
        f"the period was known at iteration {record.get('known_at', 0)}, the last move of 1 % or more came "
        f"{record.get('last_move_after', 0)} after the last permission, homing rested {rested}"
    )


def _scans_to_settle(found: Outcome) -> float:
    """Scans of the footprint that the kernel made until homing had settled (as in the row `settle`)."""
    return int((found.homing or {}).get("settled_after", 0)) * float(found.settings.get(SCANNED, 0.0))


def checks_of(program: ProgramRuns) -> list[Check]:
    """What is required of one program's runs."""
    runs, name = program.runs, program.name
    none, homed = runs["none"], runs["homing"]
    last, best = homed.remote_fraction(LAST_HALF), none.oracle_last_half
    excess = homed.remote_misses() - none.oracle_remote
    others = runs["balancing_0.1"].remote_misses() - none.oracle_remote
    plain, harmless = runs["parallel_init"].remote_misses(), runs["parallel_init_homing"].remote_misses()
    settle = int((homed.homing or {}).get("settled_after", 0))
    moved = int((homed.homing or {}).get("moved", 0))
    same = len({str(one.output.results) for one in runs.values()}) == 1
    checks = [
        Check(
            f"{name}: settles within 2 iterations",
            settle <= 2 and moved > 0,
            f"{settle} iterations, {moved:,} pages moved",
        )
    ]
    scanned = runs["homing_hint_faults"]
    scans = _scans_to_settle(scanned)
    checks.append(
        Check(
            f"{name}: settles within 2 scans with hint-faults",
            scans <= 2 and int((scanned.homing or {}).get("moved", 0)) > 0,
            f"{scans:.1f} scans",
        )
    )
    if name in _NEVER_SETTLES:
        checks = []
    says_nothing = ": both are below the best fixed placement, which says nothing here" if others <= 0 else ""
    return [
        *checks,
        Check(
            f"{name}: last half within 3 points of the oracle",
            last - best <= 0.03,
            f"{last:.2%} and {best:.2%}: {100 * (last - best):+.2f} points",
        ),
        Check(
            f"{name}: excess over the oracle at most a tenth of balancing's at 0.1",
            excess <= max(0.0, others / 10),
            f"{excess:,} and {others:,}" + (f": {excess / others:.1%}" if others > 0 else says_nothing),
        ),
        Check(
            f"{name}: no harm to parallel initialisation (at most 1 % more)",
            harmless <= 1.01 * plain,
            f"{harmless:,} and {plain:,}: {100 * (harmless / plain - 1) if plain else 0:+.2f} %",
        ),
        Check(f"{name}: same results in all runs", same, "all digits" if same else "they differ"),
    ]


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. tell: the command's words for the results' header."""
    names = list(PROGRAMS[size])
    check_only(only, names)
    chosen = [name for name in names if not only or name in only]
    library = library_key(find_library())
    key = {"size": size, "counter": library_key(str(find_built("libhoming_counter_plugin.so")))}
    parts = Parts(kept_folder() / f"convergence-{size}.json", key)
    if redo:
        parts.drop([name for name in parts.names() if name.split()[0] in chosen])
    progress = Progress("convergence", [1.0] * (len(chosen) * len(_STEPS)))
    try:
        programs = measure(size, chosen, parts, progress, library)
    finally:
        progress.close()
    results = Results(
        "convergence",
        "Convergence: counted remote cache misses in a guest with 4 nodes",
        tell(["convergence"]),
        notes=[
            "Counted in an emulated guest with 4 nodes of 1 CPU by the lab's counter: user-space misses of a "
            "1 MiB 16-way cache, private to each CPU. Times mean nothing there, so nothing here is a time. "
            "Serial initialisation unless the row says parallel_init; the oracle puts every page on its "
            "majority node of the whole run (its last_half: of the last half), from the counts of `none`. "
            f"homing is the middle one of {_REPEATED['homing']} runs, parallel_init and parallel_init_homing "
            f"each of {_FEW} in turn, of {_MORE} where homing's of {_FEW} is more than 0.5 % worse, "
            f"and of {_MOST} where the plain ones differ by more than 1 %.",
            "Sizes: long enough that what a run costs once (start, first windows: some 10,000 misses) is "
            "less than 1 % of what parallel initialisation leaves; drift slow enough to be followed by 3 % "
            "of the run time (0.4 % of a block an iteration).",
            "Kernel NUMA balancing depends on time, so it is shown with its scan rate set to 0.1, 1 and 10 "
            "footprints an iteration of this guest in the first iterations (later it scans less, because "
            "nothing moves any more); what it really scanned is in its row. homing_hint_faults runs with the "
            "knobs of balancing_1: the kernel's scans are its source there.",
        ],
    )
    for program in programs:
        results.rows += rows_of(program)
        results.checks += checks_of(program)
        results.notes.append(f"{program.name}: `{' '.join([program.name, *program.command[1:]])}`")
    results.details = details(programs)
    return results


def details(programs: Sequence[ProgramRuns]) -> dict[str, Any]:
    """Every run in full."""
    kept: dict[str, Any] = {}
    for program in programs:
        for variant, found in program.runs.items():
            entry = found.to_dict()
            entry["command"] = [*VARIANTS[variant].prefix, program.name, *program.command[1:]]
            kept[f"{program.name}.{variant}"] = entry
    return kept
