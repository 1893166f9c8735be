"""`homing report FILE...`: the summary of runs again, from their records, merged over MPI ranks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from homing.errors import MISUSE, UserError


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
    summary: Annotated[
        str, typer.Option(help="where the summary goes", metavar="stdout|stderr|FILE|none")
    ] = "stdout",
) -> int:
    """Print the summary of runs again, from their records.

    Several files are the processes of one run: they are merged, with a line each. The status is 2 where the
    end of a file is missing.
    """
    if not files:
        raise UserError("which records? homing report FILE...")
    from homing.area_rules import rule_notes
    from homing.report.json import write_json
    from homing.report.results import read_results
    from homing.report.summary import END_MISSING, print_summary

    with _progress() as tell:
        results = read_results(files, strict=True, progress=tell)
    results.names = True
    results.notes += rule_notes(results, list)
    if json:
        write_json(results, json)
    if summary != "none":
        print_summary(results, summary)
    damaged = [process.record.path for process in results.processes if process.record.truncated]
    for path in damaged:
        print(f"homing report: {path}: {END_MISSING}", file=sys.stderr)
    return MISUSE if damaged else 0
