"""`homing run [options] -- COMMAND ARGS`: start the program with the library, and say afterwards what was
done."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NoReturn

import typer

from homing import costs, environment, killed, launch, temporary
from homing.elf import Verdict, judge
from homing.errors import UserError, os_reason
from homing.installation import find_library
from homing.lab_flags import LAB_FLAGS, flag_of, lab_parameters, parameter, with_signature
from homing.launchers import task
from homing.machine_facts import one_node_reason
from homing.options import Option, check_environment, load_options, only_variables
from homing.outputs import WORDS, Output, absolute, check_outputs, file_name, summary_output
from homing.progress import QUIET, duration
from homing.run_end import Ended, Request, afterwards, finish, say_room
from homing.run_files import Records, check_record, record_pattern, with_rank
from homing.simulate.flags import SIMULATION_FLAGS, simulation_parameters


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
        html=file_name("--html", given.pop("html")),
        bind=given.pop("bind"),
        compare=given.pop("compare"),
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

    conditions = simulation.pop("fail_if") or []
    if place in ("here", "lab") and _given(simulation):
        flags = ", ".join(_given(simulation))
        raise UserError(f"{flags}: only with --on MACHINE (homing machine lists them)")
    if place == "lab":
        from homing import on_lab

        return _with_conditions(
            conditions, request, lambda: compared(request, lambda one: on_lab.run(one, lab))
        )
    if place != "here":
        from homing.simulate import on_machine

        shared = {name: lab.pop(name) for name in ("cache", "balancing")}
        if _given(lab):
            raise UserError(f"{', '.join(_given(lab))}: only with --on lab")
        if request.compare:
            raise UserError(f"--compare: not with --on {place}: its counts are exact, one run tells (oracle)")
        return _end_like(lambda: on_machine.run(request, place, {**simulation, **shared}, conditions))
    if _given(lab):
        raise UserError(f"{', '.join(_given(lab))}: only with --on lab")
    if not conditions:
        return _end_like(lambda: compared(request, _run_here))

    def exit_status() -> int:
        return launch.exit_status(compared(request, _run_here))

    try:
        return _with_conditions(conditions, request, exit_status)
    except launch.Interrupted as error:
        print(f"homing run: interrupted ({signal.Signals(error.signal_number).name})", file=sys.stderr)
        launch.end_like(error.signal_number)


def _with_conditions(texts: list[str], request: Request, run: Callable[[], int]) -> int:
    """Run, and judge the results by the conditions of --fail-if, if there are any; the exit status."""
    if not texts:
        return run()
    from homing.fail_if import judged
    from homing.simulate.expressions import Expression

    conditions = [Expression.parse(text) for text in texts]
    request.condition = True
    status = run()
    return judged(conditions, request.results, status)


def compared(request: Request, run: Callable[[Request], int]) -> int:
    """Run the command; with --compare once before, where nothing is moved."""
    if request.compare:
        if request.option("HOMING_MECHANISM") == "observe":
            raise UserError("--compare: not with --mechanism observe: neither run would move anything")
        options = {**request.options, "HOMING_MECHANISM": "observe"}
        first = replace(request, options=options, first=True)
        print("homing run: first without moves (--mechanism observe)", file=sys.stderr)
        begin = time.monotonic()
        status = run(first)
        if status != 0:
            return status
        request.before = first.results
        took = time.monotonic() - begin
        # A line that follows the time would break the program's own ones.
        so_far = f" (it took {duration(took)} without)" if took > QUIET else ""
        print(f"homing run: now with them{so_far}", file=sys.stderr)
    return run(request)


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

    outputs = []

    def asked(flag: str, name: str, kind: str) -> None:
        outputs.append(Output(flag, name, kind, environment.expand_name(name, None, os.environ)))

    if record := request.option("HOMING_RECORD"):
        request.record = ranked("--record", record)
        flag = "--record" if request.options.pop("HOMING_RECORD", "") else "HOMING_RECORD"
        check_record(flag, request.record)
        asked(flag, request.record, "")
    if request.json:
        request.json = ranked("--json", request.json)
        asked("--json", request.json, "results")
    if request.html:
        request.html = ranked("--html", request.html)
        asked("--html", request.html, "page")
    if request.summary not in WORDS:
        request.summary = ranked("--summary", request.summary)
    path = environment.expand_name(request.summary, None, os.environ)
    check_outputs([*outputs, *summary_output("--summary", request.summary, path)])
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
            "html",
            str | None,
            typer.Option(help="write the report here, for a browser (%p, %r as in --record)", metavar="FILE"),
        ),
        parameter(
            "bind",
            bool,
            typer.Option("--bind", help="bind threads to cores (where you did not), spread over nodes"),
            False,
        ),
        parameter(
            "compare",
            bool,
            typer.Option("--compare", help="run twice, first without moves, and say what changed"),
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
