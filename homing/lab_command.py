"""`homing lab [options] -- COMMAND ARGS`: run a command in a Linux guest with several NUMA nodes."""

from __future__ import annotations

import json
import sys
from typing import Any

import typer

from homing.errors import UserError
from homing.lab_flags import lab_options, lab_parameters, parameter, with_signature
from homing.run import afterwards
from homing.run_files import check_writable, file_name


def _tell(text: str) -> None:
    print(f"homing lab: {text}", file=sys.stderr, flush=True)


def _lab(**given: Any) -> int:
    """Run a command in a Linux guest with several NUMA nodes.

    The guest sees this machine's files; the current folder is written through. Times there mean nothing.
    """
    command, path = list(given.pop("command") or []), given.pop("json")
    if not command:
        raise UserError("no command given: homing lab [options] -- COMMAND ARGS")
    if path is not None:
        if not given["count"]:
            raise UserError("--json: only with --count, whose counts it holds")
        check_writable("--json", file_name("--json", path).replace("%", "%%"))
    from homing.lab import guest

    result = guest.run(command, lab_options(given, _tell, []))
    if result.lost:
        _tell(result.lost)
    if result.counts is not None:
        run = result.counts.to_dict()["run"]
        _tell(f"counted {run['total_misses']:,} cache misses, {100 * run['remote_fraction']:.2f} % remote")
        if path is not None:
            with afterwards(path, "homing lab"), open(path, "w", encoding="utf-8") as file:
                json.dump(result.counts.to_dict(), file, indent=1)
                file.write("\n")
    return result.exit_status


command = with_signature(
    _lab,
    [
        parameter("command", list[str] | None, typer.Argument(metavar="COMMAND ARGS...", help="what to run")),
        *lab_parameters(),
        parameter("json", str | None, typer.Option(help="write the counts of --count here", metavar="FILE")),
    ],
)
