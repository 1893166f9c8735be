"""`homing run [options] -- COMMAND ARGS`: start the program with the library, and say afterwards what was
done."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from homing import costs, environment, launch
from homing.elf import Verdict, judge
from homing.errors import UserError, os_reason
from homing.installation import find_library
from homing.lab_flags import LAB_FLAGS, flag_of, lab_parameters, parameter, with_signature
from homing.options import Option, check_environment, load_options
from homing.simulate.flags import SIMULATION_FLAGS, simulation_parameters

if TYPE_CHECKING:
    from homing.report.results import Results


@dataclass
class Request:
    """What the user asked for. `options`: values of the table's flags by variable, only those given."""

    command: list[str]
    options: dict[str, str] = field(default_factory=dict)
    summary: str = "stderr"
    json: str = ""
    record: str = ""
    bind: bool = False


def _run(**given: Any) -> int:
    """Run an OpenMP program; its pages are sent home while it runs.

    The program's output and exit status are those it has without homing.
    """
    table = load_options()
    lab = {name: given.pop(name) for name in LAB_FLAGS}
    simulation = {name: given.pop(name) for name in SIMULATION_FLAGS}
    request = Request(
        command=list(given.pop("command") or []),
        summary=given.pop("summary"),
        json=given.pop("json") or "",
        bind=given.pop("bind"),
    )
    place = given.pop("on")
    for option in table:
        value = given.get(option.name)
        if option.flag and value is not None and value is not False:
            text = "1" if option.kind == "flag" else str(value)
            option.check(text)
            if option.kind == "file" and option.name != "record":
                _readable(option.flag, text)
                text = os.path.abspath(text)
            request.options[option.env] = text
    request.record = request.options.pop("HOMING_RECORD", "")
    if request.record and environment.mpi_rank(os.environ) is not None and "%r" not in request.record:
        # Each rank has a launcher of its own: they must not take each other's files.
        request.record += ".%r"
    check_environment(table, os.environ)
    if not request.command:
        raise UserError("no command given: homing run [options] -- COMMAND ARGS")
    for flag, path in (
        ("--record", request.record),
        ("--json", request.json),
        ("--summary", request.summary),
    ):
        if path and not (flag == "--summary" and path in ("stderr", "none")):
            _writable(flag, path)

    if place in ("here", "lab") and _given(simulation):
        flags = ", ".join(_given(simulation))
        raise UserError(f"{flags}: only with --on MACHINE (homing machine lists them)")
    if place == "lab":
        from homing import on_lab

        return on_lab.run(request, lab)
    if place != "here":
        from homing.simulate import on_machine

        cache = lab.pop("cache")
        if _given(lab):
            raise UserError(f"{', '.join(_given(lab))}: only with --on lab")
        return launch.end_like(on_machine.run(request, place, {**simulation, "cache": cache}))
    if _given(lab):
        raise UserError(f"{', '.join(_given(lab))}: only with --on lab")
    return launch.end_like(_run_here(request))


def _given(flags: dict[str, Any]) -> list[str]:
    return [flag_of(name) for name, value in flags.items() if value is not None and value is not False]


def _run_here(request: Request) -> int:
    """Run the command on this machine; returns its wait status."""
    path = launch.find_command(request.command[0])
    library = find_library()
    verdict = judge(path, library)
    folder = tempfile.mkdtemp(prefix="homing-")
    try:
        variables = dict(os.environ)
        notes = []
        if request.bind:
            notes.append("threads: " + environment.bind_threads(variables))
        variables.update(request.options)
        pattern = record_pattern(request.record, folder)
        variables["HOMING_RECORD"] = pattern
        if not variables.get("HOMING_COSTS"):
            variables["HOMING_COSTS"] = costs.costs_file(variables)
        if verdict.preload:
            environment.preload(variables, library, folder)

        before = {path: os.stat(path).st_ino for path in find_records(pattern)}
        begin = time.monotonic()
        child, status = launch.run_child(path, request.command, variables)
        seconds = time.monotonic() - begin
        try:
            # A file from an earlier run is not ours: the library replaces files, it never writes into them.
            kept = [path for path in find_records(pattern) if os.stat(path).st_ino != before.get(path)]
            finish(
                request, kept, child, launch.exit_status(status), seconds, notes, aside(verdict, variables)
            )
            keep_records(request.record, kept)
        except UserError as error:
            # The program has run: its status is the answer, whatever becomes of the summary.
            print(f"homing run: {error.message}", file=sys.stderr)
        except KeyboardInterrupt:
            pass
        return status
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def aside(verdict: Verdict, variables: dict[str, str]) -> str:
    """Why nothing could be done for the program itself, as far as the launcher knows; empty: no reason
    known."""
    if verdict.reason:
        return verdict.reason
    if variables.get("HOMING") == "off":
        return "HOMING=off is set"
    assumed = variables.get("HOMING_ASSUME_NODES", "0") or "0"
    if float(assumed) < 2 and costs.nodes_with_cpus() < 2:
        return "this machine has one NUMA node, so every page is at home"
    return ""


def record_pattern(record: str, folder: str) -> str:
    """HOMING_RECORD for the processes: every process needs a file of its own. Where the user's name has
    neither %p nor %r, they are written beside it, as FILE.PID, and a single one gets the name in the end."""
    if not record:
        return os.path.join(folder.replace("%", "%%"), "%p.homing")
    path = os.path.join(os.getcwd().replace("%", "%%"), record)
    return path if re.search("%[pr]", path.replace("%%", "")) else path + ".%p"


def find_records(pattern: str) -> list[str]:
    """The files that the processes wrote, in the order of their names. A launcher that is one of several MPI
    ranks looks for its own rank's files only."""
    rank = environment.mpi_rank(os.environ)
    wild = {"%p": "[0-9]*", "%r": "[0-9]*" if rank is None else str(rank), "%%": "%"}
    parts = re.split("(%[pr%])", pattern)
    return sorted(glob.glob("".join(wild.get(part, glob.escape(part)) for part in parts)))


def keep_records(record: str, kept: list[str]) -> None:
    """A single record gets the name that the user gave."""
    name = record.replace("%%", "")
    if record and "%p" not in name and "%r" not in name:
        try:
            if len(kept) == 1:
                os.replace(kept[0], record.replace("%%", "%"))
            elif kept:
                print(f"homing: {len(kept)} processes left records: {record}.PID", file=sys.stderr)
        except OSError as error:
            raise UserError(f"{record}: {os_reason(error)}; the record is {kept[0]}") from error


def finish(
    request: Request,
    records: list[str],
    process: int,
    status: int,
    seconds: float,
    notes: list[str],
    reason: str,
    counts: dict[str, Any] | None = None,
) -> None:
    """The summary and the JSON file of a run that has ended."""
    if request.summary == "none" and not request.json:
        return
    from homing.report.results import read_results

    # Source lines are worth two seconds; `homing report` takes its time.
    results = read_results(records, budget=2.0)
    results.command = request.command
    results.status = status
    results.seconds = seconds
    results.notes = notes
    results.aside = reason
    results.counts = counts or results.counts
    report(request, results, process)


def report(request: Request, results: Results, process: int) -> None:
    """Write what the user asked for: --summary and --json."""
    if request.json:
        from homing.report.json import write_json

        write_json(results, environment.expand_name(request.json, process, os.environ))
    if request.summary != "none":
        from homing.report.summary import print_summary

        print_summary(results, environment.expand_name(request.summary, process, os.environ))


def _readable(flag: str, path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise UserError(f"{flag} {path}: {os_reason(error)}") from error


def _writable(flag: str, path: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UserError(f"{flag} {path}: there is no folder {folder}")
    if os.path.isdir(path):
        raise UserError(f"{flag} {path}: is a folder")
    if not os.access(folder, os.W_OK):
        raise UserError(f"{flag} {path}: the folder {folder} cannot be written to")


def _table_parameter(option: Option) -> Any:
    if option.kind == "flag":
        return parameter(option.name, bool, typer.Option(option.flag, help=option.help), False)
    info = typer.Option(option.flag, help=option.help, metavar=option.kind.upper())
    return parameter(option.name, str | None, info)


def _with_flags(function: Callable[..., int]) -> Callable[..., int]:
    """Give `function` the signature that Typer reads: the fixed flags, and one for each row of the options
    table."""
    parameters = [
        parameter("command", list[str] | None, typer.Argument(metavar="COMMAND ARGS...", help="what to run")),
        *(_table_parameter(option) for option in load_options() if option.flag),
        parameter(
            "summary",
            str,
            typer.Option(help="where the summary goes at the end", metavar="stderr|FILE|none"),
            "stderr",
        ),
        parameter(
            "json", str | None, typer.Option(help="write the results here, for programs", metavar="FILE")
        ),
        parameter(
            "bind",
            bool,
            typer.Option("--bind", help="bind threads to cores (where you did not), spread over nodes"),
            False,
        ),
        parameter(
            "on",
            str,
            typer.Option(
                help="this machine, a guest with several nodes, or a simulated machine (homing machine)",
                metavar="here|lab|MACHINE",
            ),
            "here",
        ),
        *lab_parameters(),
        *simulation_parameters(),
    ]
    return with_signature(function, parameters)


command = _with_flags(_run)
