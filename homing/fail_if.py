"""`homing run --fail-if` where no machine is described: over what the guest counted (`--on lab --count`), or
over the estimate of a run on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homing.errors import UserError
from homing.report.area_lines import interval
from homing.report.remote import Share
from homing.report.results import Results
from homing.simulate.expressions import Expression, exit_status


def judged(conditions: Sequence[Expression], results: Results | None, status: int) -> int:
    """The exit status of a run that ended with `status`: a program that failed has the last word."""
    return exit_status(conditions, status, lambda one: figures(one, results))


def figures(expression: Expression, results: Results | None) -> dict[str, Any]:
    """What the condition may speak of: the guest's counts of the run where it counted, else the estimate of
    where touches came from, with pages where they are at the end. UserError where nothing is known."""
    if results is None or not results.processes:
        raise UserError(f"--fail-if {expression.text}: nothing is known of this run")
    run: dict[str, Any] = {}
    areas: list[dict[str, Any]] = []
    if results.counts is not None:
        run = results.counts["run"]
        areas = results.counts.get("areas", [])
    else:
        if len(results.processes) != 1:
            raise UserError(f"--fail-if {expression.text}: the run had {len(results.processes)} processes")
        found = results.processes[0].remote
        if found is None or not found.enough:
            seen = 0 if found is None else round(found.touches)
            raise UserError(f"--fail-if {expression.text}: too few touches were sampled ({seen})")
        run = {"remote_fraction": found.after.fraction, "estimate": _estimate(found.after)}
    areas = areas or _areas(results)
    moved = sum(process.moved for process in results.processes)
    return {"run": run, "areas": areas, "moved_pages": moved}


def _estimate(share: Share) -> str:
    return f"estimated (95 % interval {interval(share)} %)"


def _areas(results: Results) -> list[dict[str, Any]]:
    """Arrays whose remote share is estimated; their share of the touches stands for that of misses. too_few:
    why nothing can be said of one."""
    process = results.processes[0]
    traffic = sum(one.traffic for one in process.record.samples.values())
    areas = []
    for area in process.areas:
        remote = area.remote
        if remote is None or traffic <= 0:
            continue
        share = sum(one.traffic for one in area.samples) / traffic
        too_few = {"too_few": f"too few of its touches were sampled ({round(remote.touches)})"}
        areas.append(
            {
                "name": area.area.name or area.name.title,
                "title": area.name.title,
                "variable": area.name.variable or None,
                "members": [one.name for one in area.name.members],
                "share": share,
                "remote_fraction": remote.after.fraction,
                "estimate": _estimate(remote.after),
                **({} if remote.enough else too_few),
            }
        )
    return areas
