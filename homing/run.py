"""`homing run [options] -- COMMAND ARGS`: start the program with the library, and say afterwards what was
done."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from homing import costs, environment, killed, launch, temporary
from homing.elf import Verdict, judge
from homing.errors import UserError, os_reason, unexpected
from homing.installation import find_library
from homing.lab_flags import LAB_FLAGS, flag_of, lab_parameters, parameter, with_signature
from homing.launchers import task
from homing.machine_facts import one_node_reason
from homing.options import Option, check_environment, load_options, only_variables
from homing.run_files import (
    WORDS,
    Records,
    absolute,
    check_record,
    check_writable,
    file_name,
    is_memory_file,
    record_pattern,
    with_rank,
)
from homing.simulate.flags import SIMULATION_FLAGS, simulation_parameters

if TYPE_CHECKING:
    from homing.channel import Report
    from homing.records import Record
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
    #: The files that got a rank in their names because this is one of several tasks: flag and name.
    ranked: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        """What the user should know of the names of files."""
        mine = task(os.environ)
        if not self.ranked or mine is None:
            return []
        of = f" of {mine.size}" if mine.size else ""
        return [f"task {mine.rank}{of} ({mine.launcher}) has files of its own: {', '.join(self.ranked)}"]

    def option(self, variable: str) -> str:
        """A value of the table: the flag's, else the environment's; empty where neither says anything."""
        return self.options.get(variable) or os.environ.get(variable, "")


def _run(**given: Any) -> int:
    """Run an OpenMP program; its pages are sent home while it runs.

    The program's output and exit status are those it has without homing.
    """
    table = load_options()
    lab = {name: given.pop(name) for name in LAB_FLAGS}
    simulation = {name: given.pop(name) for name in SIMULATION_FLAGS}
    place = given.pop("on")
    request = Request(
        command=list(given.pop("command") or []),
        summary=file_name("--summary", given.pop("summary")),
        json=file_name("--json", given.pop("json")),
        bind=given.pop("bind"),
    )
    for option in table:
        value = given.get(option.name)
        if option.flag and value is not None and value is not False:
            text = "1" if option.kind == "flag" else str(value)
            if text == "--":
                raise UserError(f"{option.flag}: its value is missing (-- begins the command)")
            if option.kind == "file":
                file_name(option.flag, text)
            option.check(text)
            request.options[option.env] = text
    check_environment(table, os.environ)
    if not request.command:
        raise UserError("no command given: homing run [options] -- COMMAND ARGS")
    _check_files(request)
    _look_up_areas(request)

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
        return _end_like(lambda: on_machine.run(request, place, {**simulation, "cache": cache}))
    if _given(lab):
        raise UserError(f"{', '.join(_given(lab))}: only with --on lab")
    return _end_like(lambda: _run_here(request))


def _end_like(run: Callable[[], int]) -> NoReturn:
    """End as the run's wait status tells, or by the signal that came before its program was started."""
    try:
        status = run()
    except launch.Interrupted as error:
        name = signal.Signals(error.signal_number).name
        print(f"homing run: interrupted ({name})", file=sys.stderr)
        status = error.signal_number
    launch.end_like(status)


def _check_files(request: Request) -> None:
    """What can be known about the files before the program starts. They are a flag's or a variable's."""

    def ranked(flag: str, name: str) -> str:
        here = with_rank(name)
        if here != name:
            request.ranked.append(f"{flag} {here}")
        return here

    if record := request.option("HOMING_RECORD"):
        request.record = ranked("--record", record)
        stated = request.options.pop("HOMING_RECORD", "")
        check_record("--record" if stated else "HOMING_RECORD", request.record)
    if request.json:
        request.json = ranked("--json", request.json)
        check_writable("--json", request.json)
    if request.summary not in WORDS:
        request.summary = ranked("--summary", request.summary)
        check_writable("--summary", request.summary)
    mine = task(os.environ)
    # Where no summary says it, the first task does so for all.
    if request.summary == "none" and mine is not None and mine.rank == 0:
        for note in request.notes():
            print(f"homing run: {note}", file=sys.stderr)
    # A path means the same wherever the program goes.
    if "/" in (only := request.option("HOMING_ONLY")):
        request.options["HOMING_ONLY"] = absolute("--only", only)
    if stated := request.option("HOMING_COSTS"):
        flag = "--costs" if "HOMING_COSTS" in request.options else "HOMING_COSTS"
        costs.check_costs(flag, stated)
        request.options["HOMING_COSTS"] = absolute(flag, stated)


def _look_up_areas(request: Request) -> None:
    """What the rules of --areas say of variables and source lines, for the library."""
    if rules := request.option("HOMING_AREAS"):
        from homing.area_rules import area_code

        with afterwards("--areas"):  # what is not known there costs rules, not the run
            request.options["HOMING_AREA_CODE"] = area_code(
                rules, request.command, lambda text: print(f"homing run: {text}", file=sys.stderr)
            )


def _given(flags: dict[str, Any]) -> list[str]:
    return [flag_of(name) for name, value in flags.items() if value is not None and value is not False]


def _run_here(request: Request) -> int:
    """Run the command on this machine; returns its wait status."""
    path = launch.find_command(request.command[0])
    library = find_library()
    verdict = judge(path, library)
    with launch.put_off(), temporary_folder(request) as folder:
        variables = dict(os.environ)
        notes = request.notes()
        cpus = None
        if request.bind:
            cpus, said = bind(request, variables)
            notes.append(f"threads: {said}")
        variables.update(request.options)
        records = Records(request.record, folder)
        say_room(request, records)
        if not variables.get("HOMING_COSTS"):
            variables["HOMING_COSTS"] = costs.costs_file(instead=folder)
        if verdict.preload:
            environment.preload(variables, library, folder)
        reason = aside(verdict, variables)

        begin = time.monotonic()
        with records.lent(variables):
            child, status = launch.run_child(path, request.command, variables, cpus)
        seconds = time.monotonic() - begin
        ended = Ended(launch.exit_status(status), child, seconds, notes, reason)
        finish(request, records, ended)
        return status


def bind(request: Request, variables: dict[str, str]) -> tuple[set[int] | None, str]:
    """Bind the program's threads where the user did not: the CPUs that it is to keep to (None: those it has),
    and a line for the user."""
    from homing import binding

    if environment.is_bound(variables):
        return None, environment.bind_threads(variables)
    if refused := binding.starter(request.command):
        return None, refused
    allowed = os.sched_getaffinity(0)
    mine = binding.share(variables, allowed, binding.job_cpus(), binding.cores_of(allowed))
    if mine.refused:
        return None, mine.text
    said = environment.bind_threads(variables)
    return mine.cpus, f"{said}, {mine.text}" if mine.text else said


def aside(verdict: Verdict, variables: dict[str, str]) -> str:
    """Why nothing could be done for the program itself, as far as the launcher knows; empty: no reason
    known."""
    if verdict.reason:
        return verdict.reason
    if variables.get("HOMING") == "off":
        return "HOMING=off is set"
    assumed = variables.get("HOMING_ASSUME_NODES", "0") or "0"
    return one_node_reason() if float(assumed) < 2 else ""


@dataclass
class Ended:
    """A run that has ended: the exit status, the process (0: unknown), its seconds, and what the launcher
    knows: notes, why nothing could be done, what a counter counted."""

    status: int
    process: int
    seconds: float
    notes: list[str]
    aside: str = ""
    counts: dict[str, Any] | None = None
    #: No process of the run is left (it was in a guest).
    gone: bool = False


def finish(request: Request, records: Records, ended: Ended) -> None:
    """The records, the summary and the JSON file of a run that has ended. Never raises: the program's status
    is the answer, whatever becomes of these."""
    with afterwards("the records"):
        kept, lost = records.written()
        _tell_records(kept, ended)
        results = None
        with afterwards("the summary"):
            if request.summary != "none" or request.json:
                results = _results(request, records, kept, lost, ended)
                report(request, results, ended.process)
        keep(records, kept, results, ended.gone)


def _tell_records(kept: list[str], ended: Ended) -> None:
    """What only the launcher knows goes into the records: the signal that ended the run, a guest's counts."""
    from homing.records import LAB_COUNTS

    counts = {}
    if ended.counts is not None:
        counts[LAB_COUNTS] = json.dumps(ended.counts, separators=(",", ":"))
    tell_records(kept, ended.status, counts, ended.gone)


def tell_records(kept: list[str], status: int, facts: dict[str, str], gone: bool = False) -> None:
    """Add facts to the records; to those of processes that did not end in order also the signal that ended
    the run, where `status` tells of one."""
    from homing.record_additions import add_to_record
    from homing.records import ENDED_BY, read_record

    name = launch.signal_name(status)
    for path in [path for path in kept if not is_memory_file(path)] if facts or name else []:
        with afterwards(path):
            early = bool(name) and not (record := read_record(path)).ended_by and record.end is None
            add_to_record(path, {**facts, ENDED_BY: name} if early else facts, gone=gone)


def _results(request: Request, records: Records, kept: list[str], lost: str, ended: Ended) -> Results:
    from homing.area_rules import known_variables, rule_notes
    from homing.report.results import read_results

    # Source lines are worth two seconds; `homing report` takes its time.
    results = read_results(kept, budget=2.0)
    results.unreadable += [lost] if lost else []
    results.command = request.command
    results.status = ended.status
    results.seconds = ended.seconds
    # What the reader remarks is about names in the table: without one it is of no use.
    working = any(not process.record.stepped_aside for process in results.processes)
    results.notes = [*ended.notes, *(results.notes if working else [])]
    results.aside = ended.aside
    if not ended.aside and not results.processes and not results.unreadable:
        known, text = unseen(request, records.said)
        if known:
            results.aside = text
        else:
            results.unreadable.append(text)
    results.names = bool(request.option("HOMING_AREAS"))
    results.counts = ended.counts or results.counts
    results.notes += [text] if (text := missing_tasks(one.record for one in results.processes)) else []
    results.notes += rule_notes(results, lambda: known_variables(request.command))
    return results


def unseen(request: Request, said: Report | None) -> tuple[bool, str]:
    """What to say where no process left a record, and the launcher saw no reason for it; and whether that is
    known. `said`: by the programs of the run; None: nobody could."""
    from homing import binding

    others = "static, set-uid or started without LD_PRELOAD"
    if said is None:
        return False, (
            f"no record came back (no OpenMP, HOMING=off, {others}, or of a user who cannot write it)"
        )
    deaf = (
        "without HOMING_CHANNEL in its environment, of another user with its inherited descriptors closed, "
        "or on another host"
    )
    if only := request.option("HOMING_ONLY"):
        if said.programs > said.declined:
            return True, f"no process named {only} (--only) reported a parallel region"
        return True, f"no process named {only} (--only) was seen"
    if said.programs == 0:
        return False, f"no program of the run reached homing (each was {others}, {deaf})"
    if said.programs == said.declined:
        return True, "HOMING=off is set"
    where = "the one program" if said.programs == 1 else f"{said.programs} programs"
    off = f", in {said.declined} of them switched off" if said.declined else ""
    heard = f"homing was in {where} of the run{off}"
    text = f"no process reported a parallel region ({heard}; not heard of: one that is {others}, {deaf})"
    if binding.starts_tasks(request.command):
        # Its tasks may be anywhere.
        name = os.path.basename(request.command[0])
        return False, f"{text}; {name} ... homing run -- PROGRAM hears of each task"
    return True, text


def missing_tasks(records: Iterable[Record]) -> str:
    """A line where some tasks of a job left a record here and others did not; empty: nothing to say."""
    known = [record for record in records if record.rank >= 0 and record.ranks > 0]
    # Of several jobs in one run nothing can be said, nor by a launcher that is a task itself.
    if len({record.ranks for record in known}) != 1 or task(os.environ) is not None:
        return ""
    size = known[0].ranks
    missing = size - len({record.rank for record in known if record.rank < size})
    if missing <= 0:
        return ""
    return (
        f"{missing} of {size} tasks left no record here, what was done in them is not known: without a "
        "parallel region, or on another host (MPIRUN ... homing run -- PROGRAM hears of each task)"
    )


def report(request: Request, results: Results, process: int) -> None:
    """Write what the user asked for: --summary, then --json; one that fails does not hold up the other."""
    if request.summary != "none":
        with afterwards("the summary"):
            from homing.report.summary import print_summary

            print_summary(results, environment.expand_name(request.summary, process, os.environ))
    if request.json:
        with afterwards("the results"):
            from homing.report.json import write_json

            write_json(results, environment.expand_name(request.json, process, os.environ))


def say_room(request: Request, records: Records) -> None:
    """Say before the start that there will be no summary. The program runs all the same."""
    if (request.summary != "none" or request.json) and (problem := records.no_room()):
        print(f"homing run: no record can be written: {problem}; there will be no summary", file=sys.stderr)


def keep(records: Records, kept: list[str], results: Results | None, gone: bool = False) -> None:
    """The names of areas go into the records that stay, and a single record gets the name that the user
    gave it. results: what the summary was made from, if it was made; gone: no process of the run is left."""
    if records.name:
        from homing.record_additions import add_to_record
        from homing.report.keep import look_up

        for path in [path for path in kept if not is_memory_file(path)]:
            with afterwards("the names of areas"):
                known = results.sources.get(path) if results is not None else None
                add_to_record(path, sources=look_up(path) if known is None else known, gone=gone)
    if said := records.keep(kept):
        print(f"homing: {said}", file=sys.stderr)


@contextmanager
def afterwards(what: str, where: str = "homing run") -> Iterator[None]:
    """Around what is not the program's run: its exit status is the answer, so whatever fails here is one
    line and nothing more."""
    try:
        yield
    except UserError as error:
        print(f"{where}: {error.message}", file=sys.stderr)
    except KeyboardInterrupt:
        pass
    except SystemExit:  # Rich's way to say that the reader of a pipe has gone
        print(f"{where}: {what}: nobody reads any more", file=sys.stderr)
    except Exception as error:
        print(f"{where}: {what}: {unexpected(error)}", file=sys.stderr)


@contextmanager
def temporary_folder(request: Request, needed: bool = False) -> Iterator[str]:
    """A folder for the records of one run; empty where none can be made and none is `needed`. Those of runs
    whose launcher was killed go, and what became of them is said."""
    with afterwards("earlier runs"):
        killed.clean()
    try:
        folder = temporary.make_folder(killed.PREFIX)
    except OSError as error:
        if needed:
            raise UserError(f"no temporary folder can be made (TMPDIR): {os_reason(error)}") from error
        yield ""
        return
    try:
        pattern = record_pattern(request.record, "")
        with suppress(OSError):
            killed.note(folder, request.command, pattern, quiet=request.summary == "none")
        yield str(folder.path)
    finally:
        folder.remove()


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
            "json",
            str | None,
            typer.Option(help="write the results here, for programs (%p, %r as in --record)", metavar="FILE"),
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
epilog = only_variables(load_options())
