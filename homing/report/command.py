"""`homing report FILE...`: the summary of runs again, from their records, merged over MPI ranks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from homing.area_rules import rule_notes
from homing.errors import MISUSE, UserError
from homing.outputs import STANDARD_OUTPUT, Output, check_outputs, file_name, summary_output
from homing.report.results import Results, read_results
from homing.report.summary import END_MISSING, print_lines, print_summary
from homing.streams import OutputError


@contextmanager
def _progress() -> Iterator[Callable[[str], None] | None]:
    """A line on the terminal while debug information is read; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    status: Any = Console(stderr=True).status("reading records")
    with status:
        yield status.update


def command(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE...", help="record files of one run")
    ] = None,
    json: Annotated[
        str | None, typer.Option(help="write the results here, for programs", metavar="FILE")
    ] = None,
    html: Annotated[
        str | None, typer.Option(help="write the report here, for a browser (one file)", metavar="FILE")
    ] = None,
    perfetto: Annotated[
        str | None, typer.Option(help="write a trace here, for ui.perfetto.dev", metavar="FILE")
    ] = None,
    map: Annotated[
        bool, typer.Option("--map", help="show where the pages of each area lie, in Unicode blocks")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="what changed from one run (FILE) to another (FILE)")
    ] = False,
    summary: Annotated[
        str | None, typer.Option(help="where the summary goes", metavar="stdout|stderr|FILE|none")
    ] = None,
) -> int:
    """Print the summary of runs again, from their records.

    Several files are the processes of one run: they are merged, with a line each. The status is 2 where the
    end of a file is missing.
    """
    if not files:
        raise UserError("which records? homing report FILE...")
    asked = [("--json", json, "results"), ("--html", html, "page"), ("--perfetto", perfetto, "trace")]
    named = [(flag, file_name(flag, path), kind) for flag, path, kind in asked]
    outputs = [Output(flag, name, kind, name) for flag, name, kind in named if name]
    summary = file_name("--summary", summary)
    if compare:
        return _compare(files, summary or "stdout", [*(one.flag for one in outputs), *["--map"] * map])
    # Where nobody said it: standard output, unless a file has that for itself.
    taken = any(one.path == STANDARD_OUTPUT for one in outputs) and not map
    where = summary or ("none" if taken else "stdout")
    if map and where == "none":
        raise UserError("--map: not with --summary none: it is printed where the summary goes")
    printed = summary_output("--summary" if summary or not map else "--map", where, where)
    check_outputs([*outputs, *printed], files)
    with _progress() as tell:
        results = read_results(files, strict=True, progress=tell)
    _refuse_doubles(results)
    results.names = True
    results.notes += rule_notes(results, list)
    errors: list[UserError] = []
    for one in outputs:
        with _kept(errors):
            _write(results, one)
    with _kept(errors):
        if map:
            _print_map(results, where)
        elif where != "none":
            print_summary(results, where)
    status = _tell_damaged(results)
    _raise(errors)
    return status


@contextmanager
def _kept(errors: list[UserError]) -> Iterator[None]:
    """Around one of several outputs: where it cannot be written, the others are written all the same."""
    try:
        yield
    except UserError as error:
        errors.append(error)


def _raise(errors: list[UserError]) -> None:
    """Say them all; standard output's is the last: nothing may be printed after it."""
    errors.sort(key=lambda error: isinstance(error, OutputError))
    for error in errors[:-1]:
        print(f"homing report: {error.message}", file=sys.stderr)
    if errors:
        raise errors[-1]


def _write(results: Results, one: Output) -> None:
    if one.kind == "results":
        from homing.report.json import write_json as write
    elif one.kind == "page":
        from homing.report.html import write_html as write
    else:
        from homing.report.perfetto import write_perfetto as write
    write(results, one.path)


def _print_map(results: Results, where: str) -> None:
    from homing.report.blocks import page_blocks

    processes = results.processes
    print_lines(lambda width: (line for one in processes for line in page_blocks(one, width)), where)


def _refuse_doubles(results: Results) -> None:
    """UserError where one process would be counted twice."""
    paths: dict[object, str] = {}
    for record in (process.record for process in results.processes):
        who = (record.host, record.pid, record.rank, record.start, record.program)
        if who in paths:
            raise UserError(f"{record.path}: is of the same process as {paths[who]}: give each record once")
        paths[who] = record.path


def _tell_damaged(*all_results: Results) -> int:
    """Say which records' ends are missing; the exit status."""
    processes = [one for results in all_results for one in results.processes]
    damaged = [one.record.path for one in processes if one.record.truncated]
    for path in damaged:
        print(f"homing report: {path}: {END_MISSING}", file=sys.stderr)
    return MISUSE if damaged else 0


def _compare(files: list[str], summary: str, others: list[str]) -> int:
    """Two records, one of each run, beside each other."""
    from homing.report.compare import comparison

    if others:
        raise UserError(f"{', '.join(others)}: not with --compare, which prints")
    if len(files) != 2:
        raise UserError("--compare: two records, one of each run: homing report --compare A B")
    if summary == "none":
        raise UserError("--compare: not with --summary none: it is printed where the summary goes")
    check_outputs(summary_output("--summary", summary, summary), files)
    with _progress() as tell:
        before, after = (read_results([file], strict=True, progress=tell) for file in files)
    print_lines(lambda _: comparison(before, after, (files[0], files[1])), summary)
    return _tell_damaged(before, after)
