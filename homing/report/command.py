"""`homing report FILE...`: the summary of runs again, from their records, merged over MPI ranks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from homing.errors import MISUSE, UserError
from homing.files import STANDARD_OUTPUT


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
    outputs = {"--json": json, "--html": html, "--perfetto": perfetto}
    if compare:
        return _compare(files, summary or "stdout", outputs)
    summary = summary or _where_summary_goes(outputs, map)
    from homing.area_rules import rule_notes
    from homing.report.json import write_json
    from homing.report.results import read_results
    from homing.report.summary import END_MISSING, print_lines, print_summary

    with _progress() as tell:
        results = read_results(files, strict=True, progress=tell)
    results.names = True
    results.notes += rule_notes(results, list)
    if json:
        write_json(results, json)
    if html:
        from homing.report.html import write_html

        write_html(results, html)
    if perfetto:
        from homing.report.perfetto import write_perfetto

        write_perfetto(results, perfetto)
    if map:
        from homing.report.blocks import page_blocks

        processes = results.processes
        print_lines(lambda width: (line for one in processes for line in page_blocks(one, width)), summary)
    elif summary != "none":
        print_summary(results, summary)
    damaged = [process.record.path for process in results.processes if process.record.truncated]
    for path in damaged:
        print(f"homing report: {path}: {END_MISSING}", file=sys.stderr)
    return MISUSE if damaged else 0


def _where_summary_goes(outputs: dict[str, str | None], map: bool) -> str:
    """Where nobody said it: standard output, unless a file has that for itself."""
    takers = [flag for flag, path in outputs.items() if path == STANDARD_OUTPUT]
    if map and takers:
        takers.append("--map")
    if len(takers) > 1:
        raise UserError(f"{', '.join(takers)}: only one of them can have standard output")
    return "none" if takers else "stdout"


def _compare(files: list[str], summary: str, others: dict[str, str | None]) -> int:
    """Two records, one of each run, beside each other."""
    from homing.report.compare import comparison
    from homing.report.results import read_results
    from homing.report.summary import print_lines

    if given := [flag for flag, value in others.items() if value]:
        raise UserError(f"{', '.join(given)}: not with --compare, which prints")
    if len(files) != 2:
        raise UserError("--compare: two records, one of each run: homing report --compare A B")
    with _progress() as tell:
        before, after = (read_results([file], strict=True, progress=tell) for file in files)
    if summary != "none":
        print_lines(lambda _: comparison(before, after, (files[0], files[1])), summary)
    return 0
