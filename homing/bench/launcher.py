"""`homing bench launcher`: how much longer a whole command takes under `homing run`, against numactl in the
same minutes; and where the time of a summary goes."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence

from homing.bench.places import find_program
from homing.bench.progress import Progress
from homing.bench.results import Check, Results, Row, check_only
from homing.bench.undisturbed import Timed, kept_alone, others_share, timed
from homing.errors import UserError
from homing.installation import find_launcher, python_path

TURNS = {"small": 9, "full": 60}
#: The issue's bounds, in milliseconds.
MOST_PLAIN, MOST_SUMMARY, MOST_HELP, MOST_CG = 10.0, 30.0, 100.0, 40.0
PLAIN, SUMMARY, CG, HELP = "plain", "summary", "cg", "help"
#: A program with parallel regions that ends at once: what follows it is the summary.
_SHORT = ("jacobi_gcc", "--n", "64", "--iterations", "10")
#: Python starts for a summary, and does this first (src/launcher/python.cpp).
_IMPORTS = (
    "from homing import bundle; bundle.use(); "
    "import homing.run_finish, homing.report.results, homing.report.summary, homing.report.names"
)


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: plain, summary, cg, help."""
    check_only(only, (PLAIN, SUMMARY, CG, HELP))
    launcher = find_launcher()
    if launcher is None:
        raise UserError("the native launcher was not built with this homing", 1)
    results = Results(
        "launcher",
        "The launcher: what a whole command takes longer under homing run",
        tell(["launcher"]),
        notes=[
            "Milliseconds that pass from the start of a command to its end, less those of the program alone: "
            "medians of commands in turn, of those during which others had at most 2 % of the CPUs where "
            "there are any. .cpu: the same of processor time, which a busy machine changes less.",
        ],
    )
    python = [sys.executable, "-m", "homing"]
    native = [launcher, f"--homing-python={sys.executable}"]
    numactl = shutil.which("numactl")
    with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
        own = {"TMPDIR": folder, "OMP_NUM_THREADS": "2", "PYTHONPATH": python_path()}
        variables = {**os.environ, **own}
        assumed = {**variables, "HOMING_ASSUME_NODES": "4"}
        short, cg = [find_program(_SHORT[0]), *_SHORT[1:]], [find_program("cg_gfortran"), "--class", "A"]
        quiet = ["run", "--summary", "none", "--"]
        true = shutil.which("true") or "/bin/true"
        parts: dict[str, list[tuple[str, list[str], dict[str, str]]]] = {
            PLAIN: [
                ("alone", [true], variables),
                ("launcher.plain", [*native, "run", "--", true], variables),
                ("launcher.plain_python", [*python, "run", "--", true], variables),
                *([("launcher.numactl", [numactl, "--localalloc", true], variables)] if numactl else []),
            ],
            SUMMARY: [
                ("alone", short, variables),
                ("launcher.summary", [*native, "run", "--", *short], assumed),
                ("launcher.summary_none", [*native, *quiet, *short], assumed),
                ("launcher.summary_python", [*python, "run", "--", *short], assumed),
                *([("launcher.summary_numactl", [numactl, "-l", *short], variables)] if numactl else []),
            ],
            CG: [
                ("alone", cg, variables),
                ("launcher.cg", [*native, "run", "--", *cg], assumed),
                ("launcher.cg_none", [*native, *quiet, *cg], assumed),
            ],
            HELP: [
                ("nothing", [true], variables),
                ("launcher.help", [*native, "--help"], variables),
                ("launcher.run_help", [*native, "run", "--help"], variables),
                ("launcher.python_start", [sys.executable, "-S", "-c", "pass"], variables),
                ("launcher.python_imports", [sys.executable, "-S", "-c", _IMPORTS], variables),
            ],
        }
        turns = TURNS[size]
        chosen = [part for part in parts if not only or part in only]
        progress = Progress("launcher", [1.0] * len(chosen))
        try:
            for part in chosen:
                progress.step(part)
                _part(results, parts[part], turns)
                progress.finished()
        finally:
            progress.close()
    load = os.getloadavg()[0]
    busy = "" if load < 2.5 else ": it was BUSY, so what passes is disturbed; processor time (.cpu) less so"
    results.notes.append(f"Load of the machine at the end: {load:.1f}{busy}.")
    _check(results)
    return results


def _part(results: Results, commands: list[tuple[str, list[str], dict[str, str]]], turns: int) -> None:
    found: dict[str, list[tuple[Timed, float]]] = {name: [] for name, _, _ in commands}
    for _ in range(turns):
        for name, command, variables in commands:
            found[name].append(others_share(lambda one=command, given=variables: timed(one, given)))  # type: ignore[misc]
    kept = {name: kept_alone(runs) for name, runs in found.items()}
    base = [statistics.median(values) for values in zip(*kept[commands[0][0]], strict=True)]
    for name, _, _ in commands[1:]:
        passed, worked = (statistics.median(values) for values in zip(*kept[name], strict=True))
        note = f"{len(kept[name])} of {turns} runs; the program alone {1e3 * base[0]:.1f} ms"
        results.rows.append(Row(f"{name}_ms", 1e3 * (passed - base[0]), "ms", note))
        results.rows.append(Row(f"{name}.cpu_ms", 1e3 * (worked - base[1]), "ms", note))
    rows = {row.name: row.value for row in results.rows}
    if "launcher.plain_ms" in rows and rows.get("launcher.numactl_ms", 0) > 0 and PLAIN in commands[1][0]:
        ratio = rows["launcher.plain_ms"] / rows["launcher.numactl_ms"]
        results.rows.append(Row("launcher.plain_to_numactl", ratio, "ratio"))


def _check(results: Results) -> None:
    values = {row.name: row.value for row in results.rows}
    for name, most in (
        ("launcher.plain_ms", MOST_PLAIN),
        ("launcher.summary_ms", MOST_SUMMARY),
        ("launcher.cg_ms", MOST_CG),
        ("launcher.help_ms", MOST_HELP),
    ):
        if name in values:
            text = f"{values[name]:.1f} ms, at most {most:g} wanted"
            results.checks.append(Check(name, values[name] <= most, text))
