"""`homing bench upmlib`: Figures 3 to 6 of Nikolopoulos et al. 2000 on a simulated Origin 2000."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from homing.bench.lof.runs import Program, build_programs, measured_with
from homing.bench.places import kept_folder
from homing.bench.progress import Progress
from homing.bench.results import Check, Parts, Results, Row, check_only, library_key
from homing.bench.upmlib import paper
from homing.bench.upmlib.pictures import Bars, draw
from homing.bench.upmlib.runs import (
    CRITERIA,
    MACHINE,
    NODES,
    PLANS,
    SIZES,
    THREADS,
    Case,
    Outcome,
    Size,
    cases,
    run_case,
    words_of,
)
from homing.bench.upmlib.statements import Found, statements

NOTES = [
    f"Programs of apps/nas built by `homing cc gfortran`, 16 threads, run by `homing run --on {MACHINE} "
    "--guard off`. Counted are misses of each CPU's cache by the node of the CPU and the home of the page, "
    "of the iterations alone (last half: of the last half of those that are simulated). First touch: "
    "initialised in parallel; worst case: in serial. Round robin and random: `--initial`. Kernel migration "
    "(theirs was IRIX's): NUMA balancing as Linux does it, `--balancing 1`, one footprint scanned in an "
    "iteration. Record/replay and hybrid of CG, MG and FT, of which the paper says no phase: "
    "`--mechanism record-replay|hybrid`, which find phases themselves.",
    "Times are a model, not measured: T = 1 + m (R - 1) f for each iteration, with R = "
    f"{paper.RATIO} and m = {paper.M} (assumed; the paper has no number), an iteration's seconds at first "
    "touch from the paper's words for class A, in proportion to the bytes of the arrays; iterations that "
    "were not simulated are as the last half. Moves are on the critical path (striped): "
    f"{1e3 * paper.PAGE_SECONDS:.2f} ms a page and {1e6 * paper.CALL_SECONDS:.0f} us a call; those of the "
    f"sampling thread are not, and the kernel's are shared by the {THREADS} threads, in whose faults they "
    "are made.",
    "Sampling: a scan at the end of each iteration. A simulated iteration stands for several of the "
    "published run (BT at the paper's size: 25), and as many pages are scanned as the paper's thread scans "
    "in their time. Record/replay and hybrid of BT and SP: `--upmlib replay|hybrid`, around z_solve, 20 "
    "pages.",
]


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: programs."""
    if size == "guest":
        from homing.bench.upmlib import counted

        return counted.run(only, tell, redo)
    wanted = SIZES[size]
    check_only(only, wanted.programs)
    title = "Nikolopoulos et al. 2000: Figures 3 to 6, on a simulated Origin 2000"
    results = Results(
        "upmlib" if size == "paper" else f"upmlib_{size}", title, tell(["upmlib"]), notes=list(NOTES)
    )
    results.notes.append(
        f"Size {size}: class {wanted.letter}, {wanted.iterations} iterations, {' '.join(wanted.options)}."
    )
    runs = cases(wanted, only)
    if size != "paper":
        results.notes.append(
            "At this size 20 pages are a large part of the arrays, and a page's move is as dear as at the "
            "paper's: times with record/replay say nothing."
        )
    outcomes = _outcomes(runs, size, wanted, redo)
    if len(outcomes) < len(runs):
        results.notes.append(
            f"**Interrupted**: {len(outcomes)} of {len(runs)} runs. The same command goes on with the others."
        )
    # Times are relative to first touch without anything.
    outcomes = {one: outcome for one, outcome in outcomes.items() if _base(one) in outcomes}
    found = Found(outcomes)
    results.notes += _why(found) if size == "paper" else []
    for case, outcome in outcomes.items():
        _rows(results, found, case, outcome)
    results.texts = [
        _table(found, outcomes),
        _iterations(outcomes),
        _phases(outcomes),
        _found_phases(outcomes),
        _said(found),
    ]
    results.pictures = draw(_figures(found, outcomes))
    results.checks = _checks(outcomes)
    results.details = {case.name: outcome.to_dict() for case, outcome in outcomes.items()}
    return results


def _outcomes(runs: Sequence[Case], size: str, wanted: Size, redo: bool) -> dict[Case, Outcome]:
    """Those that are kept from an earlier time, and the others made now, two at a time."""
    progress = Progress("upmlib", [3.0, *(1.0 for _ in runs)])
    parts = Parts(
        kept_folder() / f"upmlib-{size}.json",
        {"size": size, "iterations": wanted.iterations, **measured_with()},
    )
    outcomes: dict[Case, Outcome] = {}
    try:
        progress.step("building the programs with homing cc")
        folder = build_programs(
            Program(f"{one}_gfortran", (), 1) for one in sorted({r.program for r in runs})
        )
        progress.finished()

        def made(case: Case) -> Outcome:
            # What a scan looks at is a share of the arrays, whose bytes and accesses this run tells.
            first = outcomes.get(Case(case.program, "ft", "nothing"))
            key = f"{case.name} {' '.join(words_of(case, wanted, first))} {_binary(folder, case)}"
            kept = None if redo else parts.get(key)
            if kept is not None:
                return Outcome.from_dict(kept)
            outcome = run_case(case, wanted, folder, first)
            parts.put(key, outcome.to_dict())
            return outcome

        first = [case for case in runs if case == Case(case.program, "ft", "nothing")]
        rest = [case for case in runs if case not in first]
        pool = ThreadPoolExecutor(2)
        try:
            for group in (first, rest):
                for case, outcome in zip(group, pool.map(made, group), strict=True):
                    progress.step(case.name)
                    outcomes[case] = outcome
                    progress.finished()
        except KeyboardInterrupt:
            progress.note("interrupted: what was made is kept")
        finally:
            pool.shutdown(cancel_futures=True)
    finally:
        progress.close()
    return {case: outcomes[case] for case in runs if case in outcomes}


def _why(found: Found) -> list[str]:
    """What numbers tell of differences to the paper, at its size."""
    notes = []
    if names := found.names("cg."):
        remote = [found[name].remote[1] / 1e6 for name in names]
        size = found[names[0]].bytes / 2**20
        notes.append(
            f"**CG.** Its {size:.0f} MiB fit into the caches of 16 CPUs (4 MiB each). {min(remote):.2f} to "
            f"{max(remote):.2f} million misses of the last half are remote: the fewest where each thread has "
            "its own part, for then they are those of vectors that all threads read, which no placement "
            "mends. The local ones are conflicts in the cache, by where arrays lie: at the same addresses in "
            "all runs."
        )
    if {"bt.wc.iterative", "bt.wc.iterative@guard"} <= set(found.names("bt.wc.")):
        off, on = (found[name].iterations for name in ("bt.wc.iterative", "bt.wc.iterative@guard"))
        first = [", ".join(f"{share:.0%}" for share in one[1:4]) for one in (off, on)]
        notes.append(
            "**The guard.** With it off, as the paper's engine, BT from its worst case is "
            f"{first[0]} remote in its first three iterations; with it on (`@guard`), which waits until what "
            f"pages cost where they are has paid for their move, {first[1]}."
        )
    if "bt.ft.replay" in found and (phase := found["bt.ft.replay"].phase):
        share = phase["planned"] / max(1.0, phase["eligible"])
        before, after = (phase[one] / max(1.0, phase["references"]) for one in ("remote", "remote_with_plan"))
        notes.append(
            "**Critical pages.** z_solve goes through u and rhs along another dimension than all other "
            f"phases, so nearly all of their pages are used from other nodes in it: {phase['eligible']:.0f} "
            f"in BT, not 160 to 250. The {phase['planned']:.0f} pages of the plan are {share:.1%} of them, "
            f"and take the phase from {before:.1%} remote to {after:.1%}: so record/replay does not pay with "
            "quadrupled work either. " + _experiments(found)
        )
    return notes


def _experiments(found: Found) -> str:
    """About critical pages: what criterion, plan and size of a page make of them."""
    told = []
    by_criterion = [
        f"{found[name].phase['eligible']:.0f} with {one:g}"
        for one in CRITERIA
        if (name := Case("bt", "ft", "replay", threshold=one).name) in found
    ]
    if by_criterion:
        told.append(
            f"It is not the criterion: their number is {' and '.join(by_criterion)} in place of 1.5, so "
            "almost none is accessed from its home."
        )
    gains = []
    for one in PLANS:
        if (name := Case("bt", "ft", "replay", plan=one).name) in found:
            phase = found[name].phase
            gains.append(f"{(phase['remote'] - phase['remote_with_plan']) / phase['remote']:.1%} with {one}")
    if gains:
        told.append(
            "Nor are there a few that matter more: every page has each of its lines missed once, and a plan "
            f"takes away what it is of all critical pages, {', '.join(gains)} pages. The paper's 20 pages "
            "bring BT 10 % of its useful time, which with us all of them would not."
        )
    counted = [
        found[f"{one}.ft.replay"].phase["eligible"] for one in paper.PHASED if f"{one}.ft.replay" in found
    ]
    if len(counted) == 2:
        told.append(
            f"What fits is counting a node: ours are {counted[0] / NODES:.0f} in BT and "
            f"{counted[1] / NODES:.0f} in SP on each of {NODES} nodes. The paper does not say so."
        )
    return " ".join(told)


def _base(case: Case) -> Case:
    """What the case's times are relative to."""
    return Case(case.program, "ft", "nothing", case.work)


def _binary(folder: Path, case: Case) -> str:
    return f"{library_key(str(folder / f'{case.program}_gfortran'))[0]:.0f}"


def _rows(results: Results, found: Found, case: Case, outcome: Outcome) -> None:
    known = "bt4.ft.iterative" in found
    beside = {"bt4.ft.replay": paper.QUADRUPLED * found.time("bt4.ft.iterative")} if known else {}
    name = case.name
    results.rows += [
        Row(f"{name}.remote", outcome.fraction, "of misses"),
        Row(f"{name}.last_half", outcome.last_half, "of misses"),
        Row(f"{name}.time", found.time(name), "of first touch", "model", beside.get(name)),
        Row(f"{name}.pages", outcome.moved, "pages"),
        Row(f"{name}.calls", outcome.calls, "calls"),
    ]
    if case.mechanism == "replay" and case.calls_upmlib and outcome.phase:
        middle = sum(paper.CRITICAL) / 2
        results.rows.append(
            Row(f"{name}.critical", outcome.phase["eligible"], "pages", "paper: 160 to 250, class A", middle)
        )


def _table(found: Found, outcomes: dict[Case, Outcome]) -> str:
    lines = [
        "Figures 3 to 6: remote misses of all iterations and of their last half, model time, pages, calls",
        "",
    ]
    lines.append(f"{'program, placement, mechanism':<34} remote  last half   time  moves   pages  calls")
    before = ""
    for case, outcome in outcomes.items():
        if before not in ("", case.program + str(case.work)):
            lines.append("")
        before = case.program + str(case.work)
        total, moves = outcome.seconds(case)
        program = case.program.upper() + (f" x{case.work}" if case.work > 1 else "")
        label = f"{program}, {paper.PLACEMENTS[case.placement]}, {paper.MECHANISMS[case.mechanism]}"
        label += f", {case.page}K pages" if case.page else ""
        label += f", {case.plan} pages" if case.plan else ""
        label += f", thr {case.threshold:g}" if case.threshold else ""
        label += ", guard" if case.guard else ""
        lines.append(
            f"{label:<34} {outcome.fraction:>6.1%} {outcome.last_half:>9.1%} {found.time(case.name):>7.3f} "
            f"{moves / total:>5.1%} {outcome.moved:>7,} {outcome.calls:>6,}"
        )
    return "\n".join(lines)


def _iterations(outcomes: dict[Case, Outcome]) -> str:
    """Of programs whose iterations are all marked from the first one on: in CG and MG homing guesses some
    before that, which are in the JSON."""
    lines = ["Remote misses by iteration", ""]
    for case, outcome in outcomes.items():
        if case.calls_upmlib or not 1 <= len(outcome.iterations) - outcome.simulated <= 2:
            continue
        # Before the first mark lies initialisation, behind the last one verification.
        marked = outcome.iterations[1 : 1 + outcome.simulated]
        lines.append(f"{case.name:<20}" + "".join(f" {one:>6.1%}" for one in marked))
    return "\n".join(lines)


def _phases(outcomes: dict[Case, Outcome]) -> str:
    lines = ["Phase z_solve: its remote misses in the whole run, the plan, and what replaying it takes", ""]
    lines.append(
        f"{'':<20} remote  critical  planned  recorded: remote -> with the plan  moves an iteration  calls"
    )
    for case, outcome in outcomes.items():
        if not outcome.z_solve[0]:
            continue
        share = outcome.z_solve[1] / outcome.z_solve[0]
        line = f"{case.name:<20} {share:>6.1%}"
        if phase := outcome.phase:
            misses, replays = max(1.0, phase["references"]), max(1.0, phase["replays"])
            sent = (phase["moved"] + phase["undone"]) / replays
            line += (
                f" {phase['eligible']:>9.0f} {phase['planned']:>8.0f} {phase['remote'] / misses:>16.1%} -> "
                f"{phase['remote_with_plan'] / misses:<14.1%} {sent:>18.0f} "
                f"{phase['calls'] / replays:>6.1f}"
            )
        lines.append(line)
    return "\n".join(lines)


def _found_phases(outcomes: dict[Case, Outcome]) -> str:
    """The paper's conclusion, that moving for a phase often does not pay, as numbers for each."""
    lines = [
        "Phases that homing found (--mechanism record-replay and hybrid, first touch): what moving 20 pages",
        "there and back takes in an iteration, by the machine's costs, and what it saves",
        "",
    ]
    shown = [
        (f"{case.program.upper()}, {paper.MECHANISMS[case.mechanism]}, {name}", critical, price, gain, moves)
        for case, outcome in outcomes.items()
        if case.placement == "ft"
        for name, critical, price, gain, moves in outcome.found
    ]
    width = max((len(one[0]) for one in shown), default=0)
    lines.append(f"{'':<{width}}  critical      takes        saves  moves")
    for label, critical, price, gain, moves in shown:
        lines.append(
            f"{label:<{width}}  {critical:>8,.0f} {1e3 * price:>7.1f} ms {1e6 * gain:>9.1f} us "
            f"{'yes' if moves else 'no':>6}"
        )
    return "\n".join(lines)


def _said(found: Found) -> str:
    lines = ["What the paper says", ""]
    for one in statements(found):
        lines.append(f"{'holds' if one.holds else 'does not':<9} {one.text}: {one.found}")
    return "\n".join(lines)


def _figures(found: Found, outcomes: dict[Case, Outcome]) -> dict[str, dict[str, Bars]]:
    """The bars of each figure."""

    def bars(program: str, work: int, mechanisms: Sequence[str], others: bool) -> Bars:
        made = []
        for case, outcome in outcomes.items():
            if (case.program, case.work) != (program, work) or case.mechanism not in mechanisms:
                continue
            if case.is_experiment:
                continue
            if case.placement != "ft" and not others:
                continue
            total, moves = outcome.seconds(case)
            scale = found.time(case.name) / total
            made.append((f"{case.placement}-{case.mechanism}", (total - moves) * scale, moves * scale))
        return made

    programs = found.programs()
    shown = [one for one in ("bt", "cg") if one in programs]
    parts = {
        "figure3": {one.upper(): bars(one, 1, ("nothing", "kernel", "iterative"), True) for one in shown},
        "figure4": {one.upper(): bars(one, 1, ("iterative", "sampling"), True) for one in programs},
        "figure5": {
            one.upper(): bars(one, 1, ("nothing", "kernel", "iterative", "replay", "hybrid"), False)
            for one in paper.PHASED
            if f"{one}.ft.replay" in found
        },
        "figure6": {"BT, work x 4": bars("bt", 4, ("nothing", "iterative", "replay", "hybrid"), False)},
    }
    drawn = {name: {title: some for title, some in part.items() if some} for name, part in parts.items()}
    return {name: part for name, part in drawn.items() if part}


def _checks(outcomes: dict[Case, Outcome]) -> list[Check]:
    """What must hold whatever the size: answers, the order of placements, and that replayed pages go home."""
    checks = []
    for program in sorted({case.program for case in outcomes}):
        own = {case: one for case, one in outcomes.items() if case.program == program}
        answers = {str(sorted(one.results.items())) for case, one in own.items() if case.work == 1}
        right = all(one.verification != "FAILED" for one in own.values())
        checks.append(
            Check(f"{program}: the same answer in all runs", right and len(answers) == 1, f"{len(own)} runs")
        )
        first, worst = Case(program, "ft", "nothing"), Case(program, "wc", "nothing")
        if {first, worst} <= own.keys():
            text = f"{own[first].fraction:.1%}, {own[worst].fraction:.1%}"
            rising = own[first].fraction < own[worst].fraction
            checks.append(Check(f"{program}: first touch, worst case in this order", rising, text))
        for case, one in own.items():
            if case.mechanism in ("replay", "hybrid"):
                phase = one.phase
                # Phases that homing finds may be none that pages move for.
                home = bool(phase) and phase["moved"] == phase["undone"] >= (1 if case.calls_upmlib else 0)
                text = f"{phase.get('moved', 0):.0f} moved, {phase.get('undone', 0):.0f} went back"
                checks.append(Check(f"{case.name}: pages that replay moves go home", home, text))
                few = bool(phase) and phase["calls"] <= 2 * phase["replays"]
                text = f"{phase.get('calls', 0):.0f} calls for {phase.get('replays', 0):.0f} replays"
                checks.append(Check(f"{case.name}: a plan is one call each way", few, text))
    return checks
