"""`homing bench lof`: the tables and figures of Löf, Nordén, Holmgren 2004 on simulated machines."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from homing.bench.lof import lean, paper, threads
from homing.bench.lof.differences import differences
from homing.bench.lof.pictures import draw
from homing.bench.lof.runs import (
    OTHER_ORDERS,
    SIZES,
    Case,
    Outcome,
    Program,
    build_programs,
    cases,
    file_of,
    measured_with,
    run_case,
)
from homing.bench.lof.tables import Tables
from homing.bench.places import kept_folder
from homing.bench.progress import Progress
from homing.bench.results import Check, Parts, Results, check_only, library_key

#: How long the runs of a program take relative to each other, roughly.
_WEIGHTS = {"nas_cg": 4.0, "nas_mg": 4.0, "i_cg": 2.0, "i_mg": 12.0, "drift": 1.0}

NOTES = [
    "Programs of apps/ built by `homing cc gfortran`, run by `homing run --on sf15k` (Figure 3: wildfire). "
    "Counted are misses of each thread's private cache, by the node of the thread and the home of the page. "
    "Fractions are those of the last iteration that was simulated; UMA: all threads on one node (the paper's "
    ".01 to .09 % there are the operating system's, which its counter sees, too).",
    "Times are a model, not measured. T = 1 + m (R - 1) f with R = 2 and one m a program, calibrated so "
    "that SI takes as long as in the paper's Table 1: SI agrees by construction, PI and SI+MIG are "
    "predictions. The cost of migration is so much a page that is touched again and so much a byte that "
    "moves; each program's Table 3 is predicted from the other programs' numbers.",
    "Figure 3: iterations take the SF15K's seconds by clock rates, R = 6 (three times the SF15K's). Replicas "
    "that a node keeps are a shared cache that holds everything: remote remain the first read after another "
    "node's write, and writes. The daemon is `--mechanism sampling`: it looks at "
    f"{paper.DAEMON_PAGES} pages a second, in turn, and a node keeps replicas of those that it has looked "
    "at; the paper does not say how many. No one number makes it active for several iterations in both "
    "programs: an iteration of I-MG takes 26 times as long as one of I-CG. "
    "p replicated: REPLICATE(p) before the product, translated (`--to pages`), the other data touched "
    "first by its thread; the copies are made in every iteration, and the copying's misses count. Its time "
    "is T = 1 + m (L / n - 1), L: local misses, and R times the remote ones; n: the misses without copies.",
]


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: programs."""
    wanted = SIZES[size]
    check_only(only, wanted.programs)
    programs = {name: program for name, program in wanted.programs.items() if not only or name in only}
    title = "Löf, Nordén, Holmgren 2004: geographical locality, on simulated machines"
    # Of the sizes, one is the committed page; the others must not replace it.
    results = Results("lof" if size == "medium" else f"lof_{size}", title, tell(["lof"]), notes=list(NOTES))
    results.notes.append(_sizes(size, programs))
    steps = [(program, name, case) for program in programs for name, case in cases(program, wanted).items()]
    timed = [program for program in programs if wanted.threads and program in paper.PROGRAMS]
    progress = Progress("lof", [20.0, *(_WEIGHTS[program] for program, _, _ in steps), *(5.0 for _ in timed)])
    kept = kept_folder()
    key = {"size": size, **measured_with()}
    parts = {program: Parts(kept / f"lof-{size}-{program}.json", key) for program in programs}
    outcomes: dict[str, dict[str, Outcome]] = {}
    measured: dict[str, dict[int, float]] = {}
    folder = Path()
    try:
        progress.step("building the programs with homing cc")
        folder = build_programs(programs.values())
        progress.finished()
        for program, name, case in steps:
            known = outcomes.get(program, {}).get("wildfire_si")
            bytes_of_run = known.bytes if known is not None else 0
            outcome = _outcome(
                parts[program], programs[program], name, case, folder, progress, redo, bytes_of_run
            )
            outcomes.setdefault(program, {})[name] = outcome
        for program in timed:
            progress.step(f"{program}, migration by threads")
            measured[program] = _by_threads(parts[program], programs[program], progress, redo)
            progress.finished()
    except KeyboardInterrupt:
        for program, name, case in steps:
            kept_one = parts[program].get(_key(programs[program], name, case, folder))
            if kept_one is not None:
                outcomes.setdefault(program, {})[name] = Outcome.from_dict(kept_one)
        made = sum(map(len, outcomes.values()))
        results.notes.append(f"**Interrupted**: {made} of {len(steps)} runs. The same command goes on.")
    finally:
        progress.close()
    results.notes += differences(outcomes)
    tables = Tables(outcomes).fill()
    results.rows, results.texts = tables.rows, tables.texts
    if measured:
        rows, text = threads.table(measured)
        results.rows += rows
        results.texts.append(text)
    results.pictures = draw(tables.curves)
    results.checks = _checks(outcomes) + _as_in_the_paper(tables)
    results.details = {
        program: {name: outcome.to_dict() for name, outcome in runs.items()}
        for program, runs in outcomes.items()
    }
    return results


def _sizes(size: str, programs: Mapping[str, Program]) -> str:
    """What was run: programs, arguments, iterations, caches."""
    texts = []
    for name, program in programs.items():
        words = [*program.arguments, *([f"{program.unknowns:,} unknowns"] if program.unknowns else [])]
        cache = program.cache or "the machine's own cache"
        texts.append(f"{name} {' '.join(words)}, {program.iterations} iterations, {cache}")
    page = SIZES[size].page >> 10
    return f"Size {size}, pages of {page} KiB: {'; '.join(texts)}."


def _key(program: Program, name: str, case: Case, folder: Path) -> str:
    """Under which a run's outcome is kept."""
    binary = library_key(str(folder / file_of(case, program)))[0]
    iterations = case.iterations or program.iterations
    made = f"{program.file} {program.arguments} {iterations} {program.unknowns}"
    daemon = f" {case.daemon:.4f}" if case.daemon else ""
    return f"{name} {case.words()} {case.threads} {made} {binary:.0f}{daemon}"


def _outcome(
    parts: Parts,
    program: Program,
    name: str,
    case: Case,
    folder: Path,
    progress: Progress,
    redo: bool,
    bytes_of_run: int,
) -> Outcome:
    """The run's outcome: kept from an earlier time under the same program, or made now."""
    key = _key(program, name, case, folder)
    progress.step(f"{case.program} {name}")
    kept = None if redo else parts.get(key)
    if kept is not None:
        progress.finished(skipped=True)
        return Outcome.from_dict(kept)
    outcome = run_case(case, program, folder, progress.note, bytes_of_run)
    parts.put(key, outcome.to_dict())
    progress.finished()
    return outcome


def _by_threads(parts: Parts, program: Program, progress: Progress, redo: bool) -> dict[int, float]:
    """Seconds of migration by threads: kept from an earlier time, or measured now."""
    found = {}
    for count in threads.THREADS:
        key = f"threads {count} {program.file} {program.arguments}"
        kept = None if redo else parts.get(key)
        found[count] = kept if kept is not None else threads.measure(program, count, progress.note)
        parts.put(key, found[count])
    return found


def _as_in_the_paper(tables: Tables) -> list[Check]:
    """SI+MIG beats PI, the time that migration takes included, where it does in the paper's Table 1."""
    checks = []
    for program in tables.programs("pi", "si_mig", "si"):
        known = paper.RELATIVE[program]
        if known["si_mig"] >= known.get("pi", 0):
            continue
        moved, parallel = (tables.time_of(program, one) or 0.0 for one in ("si_mig", "pi"))
        text = f"{moved:.3f} to {parallel:.3f} of UMA (paper {known['si_mig']:.2f} to {known['pi']:.2f})"
        checks.append(Check(f"{program}: SI+MIG beats PI", moved < parallel, text))
    return checks


def _checks(outcomes: dict[str, dict[str, Outcome]]) -> list[Check]:
    """What must hold whatever the size: the programs' answers, and the order of the placements."""
    checks = []
    for program, runs in outcomes.items():
        # Another numbering is another matrix, of which the known solution has another right side; and more
        # iterations come nearer to it. So has another discretisation.
        alike = [
            one
            for name, one in runs.items()
            if name.partition("@")[2] not in OTHER_ORDERS and not name.endswith(lean.VARIANTS)
        ]
        answers = {(len(one.iterations), str(sorted(one.results.items()))) for one in alike}
        lengths = {len(one.iterations) for one in alike}
        right = all(outcome.verification != "FAILED" for outcome in runs.values())
        checks.append(
            Check(
                f"{program}: the same answer in all runs",
                right and len(answers) == len(lengths),
                f"{len(alike)} runs",
            )
        )
        if program not in paper.PROGRAMS:
            continue
        found = [one for one in ("uma", "si_mig", "si") if one in runs]
        text = ", ".join(f"{paper.PLACEMENT_TITLES[one]} {runs[one].fraction:.1%}" for one in found)
        rising = all(runs[a].fraction < runs[b].fraction for a, b in itertools.pairwise(found))
        checks.append(Check(f"{program}: UMA, SI+MIG, SI in this order", rising, text))
    return checks
