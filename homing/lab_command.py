"""`homing lab [options] -- COMMAND ARGS`: run a command in a Linux guest with several NUMA nodes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from homing import launch
from homing.errors import UserError
from homing.lab_flags import lab_options, lab_parameters, parameter, with_signature
from homing.outputs import Output, check_outputs, file_name, output
from homing.progress import Line
from homing.run_end import afterwards

if TYPE_CHECKING:
    from homing.lab.guest import LabResult


def _lab(**given: Any) -> int:
    """Run a command in a Linux guest with several NUMA nodes.

    The guest sees this machine's files; the current folder is written through. Times there mean nothing.
    """
    command, path = list(given.pop("command") or []), given.pop("json")
    line = Line("homing lab")
    if given.pop("setup"):
        if command:
            raise UserError("--setup: takes no command; it fetches what the guest needs")
        from homing.lab.setup import set_up

        status = set_up()
        if status == 0:
            line.say("everything is there: homing lab -- COMMAND ARGS")
        return status
    if not command:
        raise UserError("no command given: homing lab [options] -- COMMAND ARGS")
    if path is not None:
        if not given["count"]:
            raise UserError("--json: only with --count, whose counts it holds")
        check_outputs([Output("--json", file_name("--json", path), "counts", path)])
    from homing.lab import guest
    from homing.lab.errors import LabInterrupted

    with launch.put_off() as waiting:
        options = lab_options(given, line, [])
        try:
            if waiting.came:
                raise LabInterrupted(waiting.came[0], "interrupted before the guest booted")
            result = guest.run(command, options)
        except LabInterrupted as error:
            line.say(error.message)
            return error.status
        _say(result, path, line)
    return result.exit_status


def _say(result: LabResult, path: str | None, line: Line) -> None:
    """What the lab knows of the run. path: where the counts are written."""
    for problem in (result.lost, result.failed, *result.remarks):
        if problem:
            line.say(problem)
    if result.counts is not None:
        run = result.counts.to_dict()["run"]
        line.say(f"counted {run['total_misses']:,} cache misses, {100 * run['remote_fraction']:.2f} % remote")
        if path is not None:
            with afterwards(path, "homing lab"), output(path, "counts") as file:
                json.dump(result.counts.to_dict(), file, indent=1)
                file.write("\n")


command = with_signature(
    _lab,
    [
        parameter("command", list[str] | None, typer.Argument(metavar="COMMAND ARGS...", help="what to run")),
        *lab_parameters(),
        parameter(
            "setup", bool, typer.Option("--setup", help="fetch what the guest needs, and end"), default=False
        ),
        parameter("json", str | None, typer.Option(help="write the counts of --count here", metavar="FILE")),
    ],
)
