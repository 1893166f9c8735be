"""Advice about first touches: arrays that one thread touched first and that others use.

It names a loop only where the source shows one (touch_site.py); else it says what stands there, or nothing.
"""

from __future__ import annotations

import os

from homing.report.advised import LEAST_GAIN, LITTLE, SURE, Advice, Gain
from homing.report.first_touch import ON_ONE_NODE, FirstTouch
from homing.report.results import AreaResult, ProcessResult
from homing.report.statements import is_fortran
from homing.report.words import number, percents, size, some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from homing.report.touch_site import Site

#: Where the best pages still leave so much of an array's remote share, no thread owns them for good: its
#: first touch is not what is wrong (dynamic schedules, tasks).
_NO_OWNERS = 0.5
#: So many places are told.
_MOST = 5
#: Nobody has a part of his own in these: to touch them in parallel brings nothing.
_NO_PARTS = ("SHARED", "SINGLE")
#: Of code that is not known to be a loop.
_ORDER = ", if its order does not matter"
#: Pages that were moved one by one, without a pattern of owners: advised only where that has helped.
_NO_PATTERN = ("HOME", "NONE")


class _Touches:
    """The touches of a process, added up once: there may be ten thousand areas, each a change of its own."""

    def __init__(self, process: ProcessResult) -> None:
        estimate = process.remote
        self._known = estimate is not None and estimate.enough
        self._remote = self._all = 0.0
        self._saved: dict[int, float] = {}  # by area, where its pages are at the end
        for number_of, sample in process.record.samples.items():
            if sample.weight <= 0:
                continue
            found, now = sample.before.share / sample.weight, sample.after.share / sample.weight
            self._all += sample.traffic
            self._remote += sample.traffic * found
            self._saved[number_of] = sample.traffic * (found - now)

    def remote_with(self, changed: Iterable[AreaResult]) -> Gain | None:
        """The remote share of the touches with the pages as they were found, and with those of some areas
        where they are at the end. None where too little is known."""
        if not self._known or self._all <= 0:
            return None
        saved = sum(self._saved.get(one, 0.0) for area in changed for one in area.ids)
        return Gain(self._remote / self._all, max(0.0, self._remote - saved) / self._all)


def first_touch_advice(process: ProcessResult) -> list[Advice]:
    """Arrays that one thread touched first and that are used elsewhere, those of one function together where
    the same is to be done."""
    groups: dict[tuple[str, ...], list[int]] = {}
    sites: dict[int, Site] = {}
    for index, area in enumerate(process.areas):
        if _is_misplaced(area):
            first, one = _first_place(area), _site(area)
            sites[index] = one
            place = (one.file, first.function) if first is not None and one.kind else ("", str(index))
            loop = (str(one.directive), " ".join(one.shared), " ".join(one.private))
            key = (*place, str(one.kind), _directive(one.file, _distribution(area)), *loop)
            groups.setdefault(key, []).append(index)
    if not groups:
        return []
    touches = _Touches(process)
    found = []
    for indices in groups.values():
        areas = [process.areas[index] for index in indices]
        gain = touches.remote_with(areas)
        if gain is not None and gain.before - gain.after >= LEAST_GAIN:
            found.append(
                (gain.after, _touch_in_parallel(areas, [sites[one] for one in indices], indices[0], gain))
            )
    found.sort(key=lambda one: one[0])
    every = [index for indices in groups.values() for index in indices]
    together = touches.remote_with(process.areas[index] for index in every)
    advice = [one for _, one in found[:_MOST]]
    if len(advice) > 1 and together is not None:
        advice.append(
            Advice(
                "first-touch-all",
                f"All {len(found)} of these changes together.",
                f"{number(len(every))} arrays, {size(sum(process.areas[one].live_bytes for one in every))}.",
                gain=together,
            )
        )
    return advice


def _is_misplaced(area: AreaResult) -> bool:
    """Is it used by several threads, each its part, and lies where one thread touched it first?"""
    remote, owners = area.remote, area.ownership
    if remote is None or remote.before.fraction < LITTLE or owners is None:
        return False
    left = area.left
    if left is not None and left.reason in ("free", "cost") and left.account.remote <= 0:
        return False
    if area.moved and remote.after.fraction > _NO_OWNERS * remote.before.fraction:
        return False
    way = (owners.distribution or owners.kind).upper().split()[0]
    if way in _NO_PARTS:
        return False
    sure = bool(owners.distribution) and way not in _NO_PATTERN and owners.confidence >= SURE
    if not sure and not (area.moved and remote.after != remote.before):
        return False
    # Several threads touched it first: where it lies on one node all the same, something else put it there.
    shares = _by_thread(area).values()
    return (max(shares) if shares else _share_of_one_node(area)) >= ON_ONE_NODE


def _by_thread(area: AreaResult) -> dict[int, float]:
    """The share of the area's first touches by thread, those of a place in equal parts."""
    shares: dict[int, float] = {}
    for one in area.first_touch:
        for thread in one.threads:
            shares[thread] = shares.get(thread, 0.0) + one.share / len(one.threads)
    return shares


def _site(area: AreaResult) -> Site:
    """What stands in the source where it was first touched."""
    from homing.report.touch_site import Site, site  # only where there is something to advise

    first, name = _first_place(area), area.name
    if first is None:
        return Site()
    arrays = [name.variable, *(member.name for member in name.members)]
    return site(first, arrays, (name.file, name.line, name.text))


def _first_place(area: AreaResult) -> FirstTouch | None:
    return area.first_touch[0] if area.first_touch else None


def _touch_in_parallel(areas: Sequence[AreaResult], sites: Sequence[Site], index: int, gain: Gain) -> Advice:
    """The change of one place in the source, or of places of one kind in a function."""
    from homing.report import touch_site as kinds

    names = _names(areas)
    first, distribution = _first_place(areas[0]), _distribution(areas[0])
    one = min(sites, key=lambda some_of: some_of.line)
    lines = sorted({found.line for found in sites})
    where = one.where + "".join(f", {line}" for line in lines[1:3]) + (" ..." if len(lines) > 3 else "")
    if first is not None and first.function and first.file == one.file:
        where += f" ({first.function})"
    directive = _directive(one.file, distribution)
    schedule = directive[directive.index("schedule") :]
    one_only = len(areas) == 1
    as_used = f"as {'it is' if one_only else 'they are'} used"
    rest = {
        kinds.LOOP: _loop(one, where, directive),
        kinds.PARALLEL: f"{as_used}: the code at {where} is parallel already; share it out as the loops that "
        f"use {'it' if one_only else 'them'} later ({schedule}, the same bounds)",
        kinds.ONE_OF_REGION: f"in parallel, {as_used}: {where} lies in a parallel region, where one thread "
        f"runs it{_ORDER}",
        kinds.WHOLE: f"in parallel: put `!$omp parallel workshare` around the assignment at {where}",
        kinds.SOURCE: f"in parallel: leave SOURCE= out at {where}, and set the array in "
        "`!$omp parallel workshare`",
        kinds.FILL: f"in parallel: put a loop with `{directive}` in place of {one.what} at {where}",
        kinds.CONTAINER: f"in parallel: what is allocated at {where} is written there, by one thread; take "
        "storage that stays uninitialised (new T[n], an allocator that constructs nothing), and write it "
        f"first in a loop with `{directive}`",
    }.get(one.kind)
    if rest is None:
        known = distribution if distribution not in _NO_PATTERN else ""
        rest = f"in parallel, {as_used}" + (f" ({known})" if known else "") + _ORDER
    text = f"First touch {names} {rest}."
    if one.shared:
        text = (
            f"Let homing move {names}: the loop at {where} cannot be shared out as it is, its iterations "
            f"share {some(list(one.shared))}."
        )
    return Advice("first-touch", text, _evidence(areas), index, gain, one.file, one.line)


def _loop(site: Site, where: str, directive: str) -> str:
    """What to do about a loop."""
    if site.private:
        directive += f" private({', '.join(site.private)})"
    condition = "if its iterations do not need each other"
    if site.directive:
        at = f"{os.path.basename(site.file)}:{site.directive}"
        return f"in parallel: switch on the directive at {at} for the loop at {where}, {condition}"
    return f"in parallel: put `{directive}` on the loop at {where}, {condition}"


def _evidence(areas: Sequence[AreaResult]) -> str:
    """Who touched the areas first, and how they are used: those together of which the same is known."""
    touched: dict[int, list[AreaResult]] = {}
    used: dict[str, list[AreaResult]] = {}
    for area in areas:
        touched.setdefault(len(_by_thread(area)), []).append(area)
        used.setdefault(_used(_distribution(area)), []).append(area)
    one = len(areas) == 1
    if len(touched) == 1:
        text = _touched(areas, " of it" if one else " of each")
    else:
        text = "; ".join(f"{_names(some_of)}: {_touched(some_of, '')}" for some_of in touched.values())
    if len(used) == 1:
        return f"{text}, and {'it is' if one else 'they are'} used {next(iter(used))}."
    ways = "; ".join(f"{_names(some_of)} {how}" for how, some_of in used.items())
    return f"{text}; used: {ways}."


def _names(areas: Iterable[AreaResult]) -> str:
    return some([area.name.short for area in areas])


def _touched(areas: Sequence[AreaResult], of: str) -> str:
    """Which share of areas was touched first by how many threads, equally many of each."""
    by_thread = [_by_thread(area) for area in areas]
    threads = len(by_thread[0])
    if not threads:
        pages = {" of it": " of its pages", " of each": " of the pages of each"}.get(of, "")
        return f"{percents([_share_of_one_node(area) for area in areas])}{pages} were found on one node"
    text = f"{percents([sum(one.values()) for one in by_thread])}{of} was first touched by "
    if threads == 1:
        return text + "one thread"
    return f"{text}{threads} threads, {percents([max(one.values()) for one in by_thread])} by one of them"


def _distribution(area: AreaResult) -> str:
    return area.ownership.distribution if area.ownership is not None else ""


def _used(distribution: str) -> str:
    if distribution == "HOME":
        return "where homing has moved its pages"
    return f"as {distribution}" if distribution not in ("", "NONE") else "by other threads"


def _directive(file: str, distribution: str) -> str:
    """The directive that shares a loop out as the array is used."""
    words = distribution.split()
    schedule = "static"
    if words and words[0].startswith("CYCLIC"):
        schedule = "static, chunk"  # the words of the distribution tell pages, the loop has its own unit
    if is_fortran(file):
        return f"!$omp parallel do schedule({schedule})"
    return f"#pragma omp parallel for schedule({schedule})"


def _share_of_one_node(area: AreaResult) -> float:
    return area.before.largest_share if area.before is not None else 0.0
