"""Programs in the guest: without homing, with each of its sources, and under the kernel's balancing; and what
homing is required to do for all of them. Common to the benchmarks `patterns` and `foreign`."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from homing.bench.balancing import (
    FIRST,
    STEP_TIMEOUT,
    Runs,
    describe_rate,
    knobs_of,
    run_at_rate,
    run_scanned,
)
from homing.bench.guest_runs import LAST_HALF, RUN, Outcome
from homing.bench.progress import Progress
from homing.bench.results import Check, Parts, Results, Row, content_key

PLAIN, ORACLE, BALANCING = "plain", "oracle", "balancing_1"
#: homing's sources of references in the guest.
SOURCES = {"windows": "windows", "hint_faults": "hint-faults"}
RATES = {"balancing_0.1": 0.1, BALANCING: 1.0, "balancing_10": 10.0}
#: In the order in which they are run: others depend on the plain run, and hint faults on balancing's knobs.
WAYS = (PLAIN, "windows", BALANCING, "hint_faults", "balancing_0.1", "balancing_10")
#: The kernel's scans are this source: it has balancing's knobs at one footprint an iteration.
_SCANNED = "hint_faults"

#: Near to the oracle: in the last half, and where the oracle's whole run is so far below the plain one. Where
#: pages have no owner it is not: it only knows afterwards who came most often.
_NEAR_POINTS = 0.03
_LEAST_GAIN = 0.1
_NO_WORSE_POINTS = 0.001
#: More remote misses than the plain run's, as a share of those; or of this share of all misses where they are
#: fewer: what homing itself misses is no hundredth of next to nothing. Equal runs differ, too: between the
#: last two limits it takes up to so many runs in turn, of which the middle one counts.
_HARM, _CLEARLY_NO_HARM, _CLEARLY_HARM = 0.01, 0.003, 0.1
_LEAST_REMOTE = 0.1
_TURNS = 5

NOTES = [
    "Counted in an emulated guest with 4 nodes by the lab's counter: user-space misses of a 1 MiB "
    "16-way cache, private to each CPU, threads bound. Times mean nothing there, so nothing here is a "
    "time. Every row is the remote share of all misses: of the whole run with its initialisation, and "
    "of the last half of the iterations.",
    f"{PLAIN}: without homing; windows and hint_faults: with homing and this source of references; "
    "balancing_N: under the kernel's NUMA balancing, which scans N footprints an iteration in the "
    f"first iterations (its scan period is chosen so); hint_faults has the knobs of {BALANCING}, for "
    f"the kernel's scans are its source. {ORACLE}: every page on its majority node of the whole run "
    "(last_half: of the last half), from the counts of the plain run.",
]


@dataclass(frozen=True)
class Case:
    """A program and an initialisation. `program` is what several cases of one program have in common."""

    name: str
    program: str
    command: tuple[str, ...]
    ways: tuple[str, ...] = WAYS
    first: tuple[str, ...] = ()  #: the command for the first iterations; empty: `command` with --iterations
    #: The case in whose run under BALANCING the kernel's knobs are found; empty: this one.
    knobs_from: str = ""


@dataclass(frozen=True)
class Required:
    """How many programs of how many a source has to serve: near to the oracle in the last half, and no worse
    than the kernel's balancing in the whole run."""

    near_oracle: tuple[int, int]
    no_worse: tuple[int, int]


@dataclass(frozen=True)
class Step:
    case: Case
    way: str
    turn: int = 0  #: again, where it is unclear whether there is harm


Found = dict[tuple[str, str], list[Outcome]]  # (case, way): its runs in turn


@dataclass
class Comparison:
    """The cases, and the runs of them that there are."""

    cases: Sequence[Case]
    runs: Found = field(default_factory=dict)

    def get(self, case: Case, way: str) -> Outcome | None:
        """The middle one of the runs by their remote misses."""
        turns = sorted(self.runs.get((case.name, way), []), key=Outcome.remote_misses)
        return turns[len(turns) // 2] if turns else None

    def remote(self, case: Case, way: str, phases: Sequence[int] = RUN) -> float | None:
        """Remote misses as a share of the plain run's misses: homing's own misses, most of them local, would
        make the share of all misses smaller."""
        plain, found = self.get(case, PLAIN), self.get(case, way)
        if plain is None or found is None:
            return None
        return found.remote_misses(phases) / max(sum(plain.misses.get(phase, 0) for phase in phases), 1)

    def harm(self, case: Case, way: str) -> float | None:
        """By how much the remote misses are more than the plain run's, as a share."""
        plain, homed = self.remote(case, PLAIN), self.remote(case, way)
        if plain is None or homed is None:
            return None
        return (homed - plain) / max(plain, _LEAST_REMOTE)

    def by_program(self) -> Iterator[tuple[str, list[Case]]]:
        for program in dict.fromkeys(case.program for case in self.cases):
            yield program, [case for case in self.cases if case.program == program]


def steps_of(cases: Sequence[Case]) -> list[Step]:
    """The first turn of all runs: what is needed most of every case before the rest of any."""
    return [Step(case, way) for way in WAYS for case in cases if way in case.ways]


def _repeated(comparison: Comparison) -> Iterator[Step]:
    """The further runs that tell harm from chance, as long as that is unclear."""
    for case in comparison.cases:
        for way in SOURCES:
            for turn in range(1, _TURNS):
                harm = comparison.harm(case, way)
                if harm is None or not _CLEARLY_NO_HARM < harm < _CLEARLY_HARM:
                    break
                for again in (PLAIN, way):
                    if len(comparison.runs[case.name, again]) <= turn:
                        yield Step(case, again, turn)


def _with_needed(steps: Sequence[Step]) -> set[tuple[str, str]]:
    """These steps, and those without which they cannot be run; by case and way."""
    needed = set()
    for step in steps:
        needed |= {(step.case.name, step.way), (step.case.name, PLAIN)}
        if step.way == _SCANNED or (step.case.knobs_from and step.way in RATES):
            other = step.case.knobs_from or step.case.name
            needed |= {(other, BALANCING), (other, PLAIN)}
    return needed


def _run(runs: Runs, step: Step, comparison: Comparison) -> Outcome:
    case, way = step.case, step.way
    homing = {"HOMING_REFERENCES": SOURCES[way]} if way in SOURCES else None
    name = f"{case.name}.{way}"
    if way != _SCANNED and way not in RATES:
        return runs.run(name, case.command, homing=homing, timeout=STEP_TIMEOUT)
    plain = comparison.runs[case.name, PLAIN][0]
    if way == _SCANNED or case.knobs_from:
        knobs = knobs_of(comparison.runs[case.knobs_from or case.name, BALANCING][0])
        return run_scanned(runs, name, case.command, plain, knobs, homing)
    return run_at_rate(runs, name, case.command, RATES[way], plain, case.first)


def measure(
    title: str,
    comparison: Comparison,
    wanted: Callable[[Case, str], bool],
    parts: Parts,
    library: str,
    guest: Callable[[], AbstractContextManager[Runs]],
) -> None:
    """The runs of the cases under the ways that are wanted: those that are kept in `parts`, and the others in
    one boot of the guest; and of all others what is kept."""
    steps = steps_of(comparison.cases)
    needed = _with_needed([step for step in steps if wanted(step.case, step.way)])
    progress = Progress(title, [1.0] * len(needed))
    with contextlib.ExitStack() as stack:
        stack.callback(progress.close)
        runs: Runs | None = None
        for step in itertools.chain(steps, _repeated(comparison)):
            key = part_key(step, library)
            outcome = None if (kept := parts.get(key)) is None else Outcome.from_dict(kept)
            is_needed = (step.case.name, step.way) in needed
            if outcome is None and is_needed:
                if runs is None:
                    progress.step("booting the guest")
                    runs = stack.enter_context(guest())
                again = f", run {step.turn + 1}" if step.turn else ""
                progress.step(f"{step.case.name}.{step.way}{again}")
                outcome = _run(runs, step, comparison)
                parts.put(key, outcome.to_dict())
                progress.finished()
            elif is_needed:
                progress.finished(skipped=True)
            if outcome is not None:
                comparison.runs.setdefault((step.case.name, step.way), []).append(outcome)


def part_key(step: Step, library: str) -> str:
    """What a run depends on. library: tells one build of homing from another."""
    program, *words = step.case.command
    built = [library] if step.way in SOURCES else []
    return " ".join([step.case.name, content_key(program), *words, step.way, *built, str(step.turn)])


def is_of(part: str, steps: Sequence[Step]) -> bool:
    """Is this the key of a run of one of the steps, in whichever turn and with whichever build?"""
    words = part.split()
    return any(words[0] == step.case.name and step.way in words for step in steps)


# What is shown


def fill(results: Results, comparison: Comparison, required: Mapping[str, Required]) -> None:
    """The table, the rows, the details of every run, and what is required of each source."""
    results.texts.append(_table(comparison))
    for case in comparison.cases:
        results.rows += _rows(case, comparison)
        words = case.command[1:]
        for way in WAYS:
            if (found := comparison.get(case, way)) is not None:
                results.details[f"{case.name}.{way}"] = {
                    **found.to_dict(),
                    "command": [
                        case.program,
                        *(Path(word).name if word.startswith("/") else word for word in words),
                    ],
                    "runs": [one.remote_misses() for one in comparison.runs[case.name, way]],
                }
    results.checks += _checks(comparison, required)


def _rows(case: Case, comparison: Comparison) -> list[Row]:
    """Remote fractions of the whole run and of its last half."""
    rows = []
    for way in WAYS:
        found = comparison.get(case, way)
        if found is None:
            continue
        turns = len(comparison.runs[case.name, way])
        note = f"{found.remote_misses():,} remote misses"
        note += f", the middle one of {turns} runs" if turns > 1 else ""
        note += f"; {describe_rate(found)}" if FIRST in found.settings else ""
        rows.append(Row(f"{case.name}.{way}", found.remote_fraction(), "remote fraction", note))
        rows.append(Row(f"{case.name}.{way}.last_half", found.remote_fraction(LAST_HALF), "remote fraction"))
    if (plain := comparison.get(case, PLAIN)) is not None:
        rows.append(Row(f"{case.name}.{ORACLE}", plain.oracle_fraction(), "remote fraction"))
        rows.append(Row(f"{case.name}.{ORACLE}.last_half", plain.oracle_last_half, "remote fraction"))
    return rows


def _table(comparison: Comparison) -> str:
    """Remote per cent of all misses of every case under every way, of the whole run and of its last half."""
    columns = [PLAIN, ORACLE, *RATES, *SOURCES]
    width = max([len("remote %"), *(len(case.name) for case in comparison.cases)])
    lines = [f"{'remote %':<{width}}" + "".join(f"{name:>15}" for name in columns)]
    for case in comparison.cases:
        plain = comparison.get(case, PLAIN)
        if plain is None:
            continue
        cells = []
        for way in columns:
            found = plain if way == ORACLE else comparison.get(case, way)
            if found is None:
                cells.append("-")
                continue
            oracle = (found.oracle_fraction(), found.oracle_last_half)
            whole, last = (
                oracle if way == ORACLE else (found.remote_fraction(), found.remote_fraction(LAST_HALF))
            )
            cells.append(f"{100 * whole:.1f} {100 * last:6.1f}")
        lines.append(f"{case.name:<{width}}" + "".join(f"{cell:>15}" for cell in cells))
    return "\n".join(lines)


# What is required


def _checks(comparison: Comparison, required: Mapping[str, Required]) -> list[Check]:
    checks = []
    for way in SOURCES:
        checks += _share(
            f"{way}: last half within 3 points of the oracle, where that is 10 points below plain",
            comparison,
            required[way].near_oracle,
            lambda case, way=way: _excess_over_oracle(comparison, case, way),  # type: ignore[misc]
            _NEAR_POINTS,
        )
        checks += _share(
            f"{way}: the whole run no worse than under {BALANCING}",
            comparison,
            required[way].no_worse,
            lambda case, way=way: _excess_over_balancing(comparison, case, way),  # type: ignore[misc]
            _NO_WORSE_POINTS,
        )
        harms = {
            case.name: harm for case in comparison.cases if (harm := comparison.harm(case, way)) is not None
        }
        bad = [f"{name} {100 * harm:+.1f} %" for name, harm in harms.items() if harm > _HARM]
        if harms:
            checks.append(
                Check(
                    f"{way}: no harm (at most 1 % more remote misses than plain, or 0.1 % of all)",
                    not bad,
                    ", ".join(bad) or f"none of {len(harms)}",
                )
            )
    differ = [name for name, cases in comparison.by_program() if _results_differ(comparison, cases)]
    checks.append(Check("same results in all runs", not differ, ", ".join(differ) or "all digits"))
    return checks


def _share(
    name: str,
    comparison: Comparison,
    share: tuple[int, int],
    excess: Callable[[Case], float | None],
    limit: float,
) -> list[Check]:
    """A line that a share of the programs has to meet, each in all its cases; none where nothing is known."""
    met, missed = 0, []
    for program, cases in comparison.by_program():
        known = [value for case in cases if (value := excess(case)) is not None]
        if not known:
            continue
        if max(known) <= limit:
            met += 1
        else:
            missed.append(f"{program} {100 * max(known):+.1f}")
    total = met + len(missed)
    if not total:
        return []
    wanted = math.ceil(share[0] * total / share[1])
    text = f"{met} of {total}, {wanted} are required" + (
        f"; points above: {', '.join(missed)}" if missed else ""
    )
    return [Check(name, met >= wanted, text)]


def _excess_over_oracle(comparison: Comparison, case: Case, way: str) -> float | None:
    plain, homed = comparison.get(case, PLAIN), comparison.remote(case, way, LAST_HALF)
    if plain is None or homed is None:
        return None
    if plain.remote_fraction() - plain.oracle_fraction() < _LEAST_GAIN:
        return None
    return homed - plain.oracle_last_half


def _excess_over_balancing(comparison: Comparison, case: Case, way: str) -> float | None:
    balanced, homed = comparison.remote(case, BALANCING), comparison.remote(case, way)
    return None if balanced is None or homed is None else homed - balanced


def _results_differ(comparison: Comparison, cases: Sequence[Case]) -> bool:
    outcomes = [one for case in cases for way in WAYS for one in comparison.runs.get((case.name, way), [])]
    return len({str(one.output.results) for one in outcomes}) > 1
