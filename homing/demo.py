"""`python -m homing.demo` (make demo): a program's pages are sent home, and counted.

The program is the NAS benchmark CG as published: one thread touches all arrays first. It runs
with serial initialisation, the same with homing, and with parallel initialisation, which the programmer would
have to write.

- On a machine with one NUMA node it runs in the lab's guest with four, whose counter counts every cache miss
  by the node of the CPU and the node of the page. The oracle is no run: it is the fewest remote misses that
  any fixed placement could have had, from the counts of the serial run.
- On a machine with several nodes it runs there. Nothing counts all misses there: the numbers are the remote
  share of the references that homing sampled (`--mechanism observe` where it must not move anything), so
  there is no oracle, and homing is compared with parallel initialisation instead.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from homing import costs
from homing.bench.guest_runs import LAST_HALF, RUN, GuestRuns, Outcome
from homing.bench.places import find_program
from homing.bench.programs import parse_output
from homing.bench.progress import Progress
from homing.errors import MISUSE, UserError, os_reason
from homing.installation import python_path
from homing.report.lines import terminal_width

SERIAL_LEAST = 0.70
POINTS = 0.03
_TITLES = {
    "serial": "serial initialisation",
    "homing": "the same with homing",
    "parallel": "parallel initialisation",
    "oracle": "oracle: best fixed placement",
}
#: How the arrays are initialised.
_HOW = {"serial": "serial", "homing": "serial", "parallel": "parallel"}


@dataclass
class DemoRow:
    """A line of the table. last_half: after homing has settled; NaN where it is not known."""

    name: str
    title: str
    whole: float
    last_half: float
    misses: int | None = None
    remote: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """remote_fraction is that of the last half for all rows, so that they can be compared."""
        return {
            "name": self.name,
            "remote_fraction": None if math.isnan(self.last_half) else self.last_half,
            "remote_fraction_whole_run": None if math.isnan(self.whole) else self.whole,
            "misses": self.misses,
            "remote_misses": self.remote,
        }


def in_guest(command: list[str]) -> tuple[list[DemoRow], list[str]]:
    """The rows, counted in the guest, and remarks."""
    progress = Progress("demo", [1.0, 2.0, 2.0, 2.0])
    outcomes: dict[str, Outcome] = {}
    try:
        progress.step("booting Linux with 4 NUMA nodes")
        with GuestRuns() as runs:
            progress.finished()
            for name, how in _HOW.items():
                progress.step(_doing(name, how))
                outcomes[name] = runs.run(
                    name,
                    [*command, "--initialise", how],
                    homing={} if name == "homing" else None,
                    timeout=900,
                )
                progress.finished()
    finally:
        progress.close()
    rows = [
        DemoRow(
            name,
            _TITLES[name],
            one.remote_fraction(RUN),
            one.remote_fraction(LAST_HALF),
            sum(one.misses.values()),
            one.remote_misses(RUN),
        )
        for name, one in outcomes.items()
    ]
    serial, homed = outcomes["serial"], outcomes["homing"]
    rows.append(
        DemoRow(
            "oracle",
            _TITLES["oracle"],
            serial.oracle_fraction(),
            serial.oracle_last_half,
            sum(serial.misses.values()),
            serial.oracle_remote,
        )
    )
    if len({json.dumps(one.output.results) for one in outcomes.values()}) != 1:
        raise UserError("the runs' results differ: homing changed what the program computes", 1)
    facts = homed.homing or {}
    remarks = [
        f"homing moved {facts.get('moved', 0):,} pages, found by {facts.get('source', '?').split(' ')[0]}; "
        f"results have the same digits in all runs, verification {homed.output.verification}",
        "counted: cache misses of a 1 MiB cache a CPU in an emulated guest, whose time means nothing",
    ]
    return rows, remarks


def here(command: list[str]) -> tuple[list[DemoRow], list[str]]:
    """The rows, sampled on this machine, and remarks."""
    from homing.records import read_record
    from homing.report.remote import estimate

    progress = Progress("demo", [1.0] * len(_HOW))
    rows = []
    verified = set()
    try:
        with tempfile.TemporaryDirectory(prefix="homing-demo-") as folder:
            for name, how in _HOW.items():
                progress.step(_doing(name, how))
                path = os.path.join(folder, f"{name}.homing")
                mechanism = "iterative" if name == "homing" else "observe"
                words = [sys.executable, "-m", "homing", "run", "--bind", "--summary", "none"]
                words += ["--mechanism", mechanism, "--record", path]
                run = subprocess.run(
                    [*words, "--", *command, "--initialise", how],
                    env={**os.environ, "PYTHONPATH": python_path()},
                    stdout=subprocess.PIPE,
                    text=True,
                    check=False,
                )
                if run.returncode != 0:
                    raise UserError(f"{command[0]} ended with {run.returncode}", 1)
                verified.add(parse_output(run.stdout).verification)
                record = read_record(path)
                if record.stepped_aside:
                    raise UserError(f"homing did nothing: {record.stepped_aside}", 1)
                found = estimate(list(record.samples.values()))
                if found is None or not found.enough:
                    raise UserError(f"homing saw too little of {command[0]} to estimate its remote share", 1)
                # Where nothing moves, the estimate is of the whole run; else of where pages are at the end.
                whole = math.nan if found.changed else found.after.fraction
                rows.append(DemoRow(name, _TITLES[name], whole, found.after.fraction))
                progress.finished()
    finally:
        progress.close()
    rows.append(DemoRow("oracle", _TITLES["oracle"], math.nan, math.nan))
    return rows, [
        "estimated: the remote share of the page touches that homing sampled, held against where the pages "
        "were and where they are at the end; not of misses, so there is no oracle (--on lab counts them)",
        f"verification {', '.join(sorted(verified))}",
    ]


def _doing(name: str, how: str) -> str:
    return f"CG, {how} initialisation" + (", with homing" if name == "homing" else "")


def verdict(rows: list[DemoRow]) -> tuple[bool, str]:
    """Whether the demonstration shows what it should, and the line that says so."""
    by_name = {row.name: row for row in rows}
    serial, homed = by_name["serial"].last_half, by_name["homing"].last_half
    known = not math.isnan(by_name["oracle"].last_half)
    best = by_name["oracle" if known else "parallel"].last_half
    against = "the oracle" if known else "parallel initialisation"
    first, second = serial > SERIAL_LEAST, homed - best <= POINTS
    text = (
        f"serial {percent(serial)} remote ({'over' if first else 'NOT over'} {SERIAL_LEAST:.0%}), "
        f"homing {percent(homed)} after it settled, {100 * (homed - best):+.1f} points from {against} "
        f"({'within' if second else 'NOT within'} {100 * POINTS:.0f})"
    )
    return first and second, text


def percent(fraction: float) -> str:
    """0.0471 -> 4.7 %"""
    return "-" if math.isnan(fraction) else f"{100 * fraction:.1f} %"


def print_table(rows: list[DemoRow], where: str, last: str) -> None:
    """The table of the README."""
    terminal = sys.stdout.isatty()
    width = terminal_width(sys.stdout, os.environ) if terminal else 110
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    table = Table(title=where, title_justify="left", box=None, pad_edge=False, title_style="bold")
    table.add_column("CG", no_wrap=True)
    table.add_column("remote, whole run", justify="right")
    table.add_column(f"remote, {last}", justify="right")
    counted = any(row.misses is not None for row in rows)
    if counted:
        table.add_column("remote misses", justify="right")
        table.add_column("of", justify="right")
    for row in rows:
        cells = [row.title, percent(row.whole), percent(row.last_half)]
        if counted:
            cells += [f"{row.remote:,}", f"{row.misses:,}"]
        table.add_row(*cells)
    console.print(table)


def _demo(
    size: Annotated[str, typer.Option("--class", help="CG's class", metavar="S|W|A|B|C")] = "W",
    iterations: Annotated[int | None, typer.Option(help="CG's iterations; then nothing verifies")] = None,
    on: Annotated[
        str, typer.Option(help="where; auto: here if there are several nodes", metavar="auto|here|lab")
    ] = "auto",
    json_file: Annotated[
        str, typer.Option("--json", help="write the rows here", metavar="FILE")
    ] = os.path.join("build", "demo.json"),
) -> int:
    """Run CG with serial initialisation, the same with homing, with parallel initialisation, and compare."""
    if on not in ("auto", "here", "lab"):
        raise UserError(f"--on {on}: must be one of auto, here, lab")
    if size not in "SWABC" or len(size) != 1:
        raise UserError(f"--class {size}: must be one of S, W, A, B, C")
    # Class W is 6 MB: it takes seconds in an emulated guest. Its five vectors of 56 KiB are too small to be
    # watched and stay where the first touch put them, which is most of what is left to the oracle.
    command = [find_program("cg_gfortran"), "--class", size]
    if iterations is not None:
        command += ["--iterations", str(iterations)]
    local = on == "here" or (on == "auto" and costs.nodes_with_cpus() > 1)
    rows, remarks = here(command) if local else in_guest(command)
    where = "this machine" if local else "a guest with 4 NUMA nodes, 1 CPU each"
    print_table(rows, f"NAS CG class {size} on {where}", "last quarter" if local else "last half")
    for remark in remarks:
        print(remark)
    passed, text = verdict(rows)
    print(f"{'PASS' if passed else 'FAIL'}: {text}")
    write_rows(rows, Path(json_file), command, where, passed)
    return 0 if passed else 1


def write_rows(rows: list[DemoRow], path: Path, command: list[str], where: str, passed: bool) -> None:
    """build/demo.json. UserError where it cannot be written."""
    data = {
        "schema": 1,
        "where": where,
        "command": command,
        "passed": passed,
        "rows": [row.to_dict() for row in rows],
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: {os_reason(error)}") from error


def main() -> int:
    """The exit status."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(_demo)
    try:
        result = typer.main.get_command(app).main(prog_name="python -m homing.demo", standalone_mode=False)
    except UserError as error:
        print(f"homing demo: {error.message}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt as error:
        print("homing demo: interrupted", file=sys.stderr)
        return 128 + int(getattr(error, "signal_number", 2))
    except Exception as error:
        # Typer's own errors, known by their shape: their base class moved between Typer's versions.
        describe = getattr(error, "format_message", None)
        if describe is None:
            raise
        print(f"homing demo: {' '.join(str(describe()).split())}", file=sys.stderr)
        return MISUSE
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
