"""Finds the hot arrays and the time loop of a program, and puts UPMlib's calls into it.

Hot are the shared arrays that parallel constructs both read and write, possibly different ones. They are
registered before the outer sequential loop that repeats the parallel computation, and the engine is called at
the end of each of its iterations (Figure 1). Where that loop lies inside a parallel region, the arrays are
registered before the region, and its master thread calls; no barrier is added, because the engine does its
work when that thread comes to the next one. With phases, the regions in that loop that go through the arrays
along another dimension than the others are put between calls that record, replay and undo (Figure 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from homing.translate.plan.model import HotPlan, PhasePlan, UpmPlan
from homing.translate.positions import Problem
from homing.translate.source import Edits
from homing.translate.targets.upm.calls import Calls
from homing.translate.targets.upm.hot import Found, hot_arrays
from homing.translate.targets.upm.program import Program
from homing.translate.targets.upm.timeloop import TimeLoop, refused, time_loop
from homing.translate.tree import Unit


@dataclass
class Report:
    """What was found and why, for the user; problems: why nothing can be done although something should."""

    lines: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    plan: UpmPlan = field(default_factory=UpmPlan)


def translate_upm(units: Sequence[Unit], edits: dict[int, Edits], phases: bool) -> Report:
    """Edit the files with the time loop and its phases. Nothing is edited when there is no hot array or no
    such loop."""
    program = Program(units)
    found = hot_arrays(program)
    report = Report(found.lines)
    loop = time_loop(program)
    report.plan = _plan(found, loop, None)
    if not found.hot:
        report.problems = found.unfollowed
        report.lines.append(
            "upm: no shared array is both read and written in parallel constructs: nothing inserted"
        )
        return report
    if loop is None:
        report.lines.append("upm: no sequential loop repeats parallel constructs: nothing inserted")
        return report
    reason = refused(program, loop, phases)
    if reason:
        report.lines.append(f"upm: {loop.where}: {reason}: nothing inserted")
        return report
    report.lines.append(loop.line)
    by_source = {id(unit.source): edits[id(unit)] for unit in units}
    calls = Calls(program, loop, found.hot, by_source, report.lines)
    calls.insert(phases)
    report.plan = _plan(found, loop, calls)
    return report


def _plan(found: Found, loop: TimeLoop | None, calls: Calls | None) -> UpmPlan:
    registered = calls.registered if calls is not None else set()
    hot = tuple(
        HotPlan(
            identity[1],
            identity[0],
            tuple(sorted(set(use.reads))),
            tuple(sorted(set(use.writes))),
            identity in registered,
        )
        for identity, use in sorted(found.hot.items())
    )
    if loop is None:
        return UpmPlan(hot)
    routine, start = loop.start
    return UpmPlan(
        hot,
        loop.routine.source.place(loop.loop.begin),
        loop.routine.name,
        loop.loop.variable,
        loop.constructs,
        routine.source.place(start.begin) if loop.around else None,
        tuple(
            PhasePlan(one.routine.source.place(one.first.begin), one.routine.name)
            for one in (calls.phases if calls is not None else ())
        ),
    )
