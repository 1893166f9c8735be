"""The mechanisms of Nikolopoulos et al. 2000 counted on Linux: small classes in the guest, the kernel's own
migration (theirs was IRIX's) beside homing's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homing.bench.balancing import STEP_TIMEOUT, balancing_settings
from homing.bench.guest_runs import LAST_HALF, RUN, GuestRuns, Outcome
from homing.bench.places import find_program, kept_folder
from homing.bench.programs import Output
from homing.bench.progress import Progress
from homing.bench.results import Check, Parts, Results, Row, check_only, content_key
from homing.bench.upmlib import paper
from homing.installation import find_library
from homing.lab.built import find_built
from homing.lab.options import CountOptions, LabOptions

#: Of the sampling thread in the time of an iteration.
_SCANS = 4
NOTES = [
    "Programs of apps/nas, 4 bound threads, in an emulated guest with 4 nodes (pages of 4 KiB). Counted by "
    "the lab's counter are user-space misses of a 128 KiB 2-way cache, private to each CPU, by the node of "
    "the CPU and of the page, as a share of the misses of the run without homing (homing's own are mostly "
    "local). Times mean nothing there. Whole run: initialisation, too.",
    "First touch: initialised in parallel; worst case: in serial; round robin and random: initialised in "
    "parallel, and the program itself moves its pages before the first iteration (`--place`). Kernel "
    "migration: NUMA balancing whose scan period is set so that it scans the arrays once an iteration of the "
    "run without it. Iterative: `--guard off`; its source are windows, since the guest has no PMU, so pages "
    "go by estimated owners, not by counts. Sampling: the same source, `--guard off`, "
    f"{_SCANS} scans in the time of an iteration of the run without it, each of an equal part of the pages. "
    "Record/replay and hybrid: `--upmlib replay|hybrid`, 20 pages, around z_solve of BT and SP; of the "
    "others: `--mechanism record-replay|hybrid`, by phases that homing finds.",
]
#: Large enough that a plan of 20 pages is not most of the arrays, small enough for an emulated processor.
_CLASSES = {"bt": "W", "sp": "W", "cg": "W", "mg": "S", "ft": "S"}
_ITERATIONS = 12
_CACHE_KIB, _WAYS = 128, 2
_HOMING = {"HOMING_GUARD": "off", "HOMING_AREA_MINIMUM": "32KiB"}
_PLACE = {"rr": "round-robin", "rand": "random"}


@dataclass(frozen=True)
class Case:
    """One run."""

    program: str
    placement: str
    mechanism: str

    @property
    def name(self) -> str:
        """As rows name it."""
        return f"{self.program}.{self.placement}.{self.mechanism}"

    @property
    def has_homing(self) -> bool:
        """Is it at work? What is counted without it holds for other builds of it, too."""
        return self.mechanism not in ("nothing", "kernel")

    @property
    def command(self) -> list[str]:
        """The program and its arguments."""
        words = [find_program(f"{self.program}_gfortran"), "--class", _CLASSES[self.program]]
        words += ["--iterations", str(_ITERATIONS)]
        words += ["--initialise", "serial" if self.placement == "wc" else "parallel"]
        if self.placement in _PLACE:
            words += ["--place", _PLACE[self.placement]]
        own = self.program in paper.PHASED and self.mechanism in ("replay", "hybrid")
        return words + (["--upmlib", self.mechanism] if own else ["--mark-iterations"])


def cases(programs: Sequence[str]) -> list[Case]:
    """The runs, each once; what is needed for the others first."""
    found = []
    for program in programs:
        for placement in paper.PLACEMENTS:
            found += [Case(program, placement, one) for one in paper.MECHANISMS]
    return found


def run(only: Sequence[str], tell: Callable[[list[str]], str], redo: bool) -> Results:
    """The benchmark. only: programs."""
    check_only(only, _CLASSES)
    programs = [one for one in _CLASSES if not only or one in only]
    title = "Nikolopoulos et al. 2000: its mechanisms, counted on Linux in a guest"
    results = Results("upmlib_guest", title, tell(["upmlib"]), notes=list(NOTES))
    classes = ", ".join(f"{one.upper()} {_CLASSES[one]}" for one in programs)
    results.notes.append(f"Classes: {classes}, {_ITERATIONS} iterations.")
    steps = cases(programs)
    parts = Parts(
        kept_folder() / "upmlib-guest.json",
        {
            "counter": content_key(str(find_built("libhoming_counter_plugin.so"))),
            "programs": [content_key(find_program(f"{one}_gfortran")) for one in _CLASSES],
        },
    )
    library = content_key(find_library())
    keys = {case: f"{case.name} {library}" if case.has_homing else case.name for case in steps}
    if redo:
        parts.drop(list(keys.values()))
    found = {case: Outcome.from_dict(kept) for case in steps if (kept := parts.get(keys[case])) is not None}
    missing = [case for case in steps if case not in found]
    if missing:
        progress = Progress("upmlib", [20.0, *(10.0 for _ in missing)])
        count = CountOptions(cache_kib=_CACHE_KIB, ways=_WAYS)
        try:
            progress.step("booting the guest")
            with GuestRuns(options=LabOptions(count=count)) as guest:
                progress.finished()
                for case in missing:
                    progress.step(case.name)
                    found[case] = _run(guest, case, found)
                    parts.put(keys[case], found[case].to_dict())
                    progress.finished()
        except KeyboardInterrupt:
            results.notes.append(
                f"**Interrupted**: {len(found)} of {len(steps)} runs. The same command goes on."
            )
        finally:
            progress.close()
    _fill(results, {case: found[case] for case in steps if case in found})
    return results


def _run(guest: GuestRuns, case: Case, found: dict[Case, Outcome]) -> Outcome:
    env = {"OMP_NUM_THREADS": "4", "OMP_WAIT_POLICY": "passive"}
    output = (
        found[Case(case.program, case.placement, "nothing")].output if case.mechanism != "nothing" else None
    )
    if case.mechanism == "kernel":
        assert output is not None
        settings: dict[str, Any] = balancing_settings(1.0, output.median, output.bytes)
        return guest.run(case.name, case.command, env=env, timeout=STEP_TIMEOUT, **settings)
    homing = None
    if output is not None:
        homing = {"HOMING_MECHANISM": "iterative", **_HOMING}
        if case.mechanism == "sampling":
            homing |= _sampling(output)
        if case.program not in paper.PHASED:
            homing["HOMING_MECHANISM"] = paper.FOUND_PHASES.get(case.mechanism, homing["HOMING_MECHANISM"])
    return guest.run(case.name, case.command, env=env, homing=homing, timeout=STEP_TIMEOUT)


def _sampling(output: Output) -> dict[str, str]:
    """The management thread looks at all pages in the time of an iteration, piece by piece."""
    pages = max(1, math.ceil(output.bytes / 4096 / _SCANS))
    return {
        "HOMING_MECHANISM": "sampling",
        "HOMING_SAMPLING_INTERVAL": f"{output.median / _SCANS:.4f}",
        "HOMING_SAMPLING_PAGES": str(pages),
    }


def _share(found: dict[Case, Outcome], case: Case, phases: Sequence[int] = RUN) -> float:
    """Remote misses as a share of the misses of the run without homing: homing's own, most of them local,
    would make the share of all misses smaller."""
    plain = found[Case(case.program, case.placement, "nothing")]
    return found[case].remote_misses(phases) / max(1, sum(plain.misses.get(phase, 0) for phase in phases))


def _fill(results: Results, found: dict[Case, Outcome]) -> None:
    """Rows, the table, and what must hold."""
    lines = [
        "Remote misses of the whole run and of the last half of its iterations; pages that homing moved",
        "",
    ]
    lines.append(f"{'':<36} whole  last half   moved")
    before = ""
    for case, one in found.items():
        if before not in ("", case.program):
            lines.append("")
        before = case.program
        whole, half = _share(found, case), _share(found, case, LAST_HALF)
        moved = one.homing["moved"] if one.homing else None
        results.rows += [
            Row(f"{case.name}.remote", whole, "of misses"),
            Row(f"{case.name}.last_half", half, "of misses"),
        ]
        if moved is not None:
            results.rows.append(Row(f"{case.name}.pages", moved, "pages"))
        placement, mechanism = paper.PLACEMENTS[case.placement], paper.MECHANISMS[case.mechanism]
        label = f"{case.program.upper()}, {placement}, {mechanism}"
        shown = "" if moved is None else f"{moved:,}"
        lines.append(f"{label:<36}{whole:>6.1%} {half:>9.1%} {shown:>7}")
    results.texts = ["\n".join(lines)]
    for program in dict.fromkeys(case.program for case in found):
        own = {case: one for case, one in found.items() if case.program == program}
        answers = {str(sorted(one.output.results.items())) for one in own.values()}
        results.checks.append(
            Check(f"{program}: the same answer in all runs", len(answers) == 1, f"{len(own)} runs")
        )
        ways = [Case(program, "wc", one) for one in ("nothing", "iterative")]
        if all(one in own for one in ways):
            plain, moved_ = (_share(found, one, LAST_HALF) for one in ways)
            text = f"{plain:.1%} -> {moved_:.1%} in the last half"
            results.checks.append(Check(f"{program}: iterative mends the worst case", moved_ < plain, text))
    # Where the programs lie on this machine is nothing for a result.
    results.details = {
        case.name: {**one.to_dict(), "command": [Path(one.command[0]).name, *one.command[1:]]}
        for case, one in found.items()
    }
