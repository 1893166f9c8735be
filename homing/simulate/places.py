"""OMP_PLACES and OMP_PROC_BIND on the described machine (OpenMP API 5.2, sections 21.1.4 and 21.1.6)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from homing.errors import UserError
from homing.simulate.machines import Machine

#: What is taken from the program: its runtime must not look for these CPUs on this computer.
VARIABLES = ("OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_DISPLAY_AFFINITY")

MOST_PLACES = 4096


def binding(environment: Mapping[str, str]) -> str:
    """spread, close or primary. The outermost level of a list counts; without the variable threads are
    spread."""
    text = environment.get("OMP_PROC_BIND", "").split(",")[0].strip().lower()
    if text in ("", "spread", "true", "false"):
        return "spread"
    if text == "close":
        return "close"
    if text in ("primary", "master"):
        return "primary"
    raise UserError(f"OMP_PROC_BIND={text}: must be spread, close, primary, true or false")


def places(environment: Mapping[str, str], machine: Machine) -> list[list[int]]:
    """The places, each a list of CPUs of the machine."""
    text = environment.get("OMP_PLACES", "").strip()
    if not text:
        return [[cpu] for cpu in range(machine.cpu_count)]
    named = re.fullmatch(r"([a-z_]+)\s*(?:\(\s*([0-9]+)\s*\))?", text.lower())
    if named:
        found = _named(named[1], machine)
        if found is None:
            raise UserError(
                f"OMP_PLACES={text}: must be threads, cores, ll_caches, numa_domains, sockets, or a list"
            )
        return found[: int(named[2])] if named[2] else found
    return _listed(text, machine)


def _named(name: str, machine: Machine) -> list[list[int]] | None:
    if name in ("threads", "cores"):
        return [[cpu] for cpu in range(machine.cpu_count)]
    parts: list[list[int]] = []
    first = 0
    if name not in ("ll_caches", "numa_domains", "sockets"):
        return None
    for count in machine.cpus:
        width = machine.shared.cpus if machine.shared else 1
        step = width if name == "ll_caches" else count
        parts += [list(range(first + at, first + min(at + step, count))) for at in range(0, count, step)]
        first += count
    return parts


def _listed(text: str, machine: Machine) -> list[list[int]]:
    """{0,1,2}, {0:4}, {0:4:2}, !{3} left out, and PLACE:COUNT:STRIDE."""
    found: list[list[int]] = []
    left = text.replace(" ", "")
    while left:
        part = re.match(r"(!?)\{([^{}]*)\}(?::([0-9]+)(?::(-?[0-9]+))?)?(,|$)", left)
        if not part:
            raise UserError(f"OMP_PLACES={text}: cannot be read at {left!r}")
        place = _numbers(part[2], text)
        count = int(part[3]) if part[3] else 1
        stride = int(part[4]) if part[4] else len(place)
        for step in range(min(count, MOST_PLACES)):
            shifted = [cpu + step * stride for cpu in place]
            if part[1]:
                found = [one for one in found if one != shifted]
            else:
                found.append(shifted)
        left = left[part.end() :]
    for place in found:
        for cpu in place:
            if not 0 <= cpu < machine.cpu_count:
                raise UserError(
                    f"OMP_PLACES={text}: {machine.name} has no CPU {cpu}, only 0 to {machine.cpu_count - 1}"
                )
    if not found:
        raise UserError(f"OMP_PLACES={text}: names no place")
    return found


def _numbers(text: str, whole: str) -> list[int]:
    numbers: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(!?)([0-9]+)(?::([0-9]+)(?::(-?[0-9]+))?)?", part)
        if not found:
            raise UserError(f"OMP_PLACES={whole}: {part!r} is no interval of CPUs")
        first, count, stride = int(found[2]), int(found[3] or 1), int(found[4] or 1)
        run = [first + at * stride for at in range(min(count, MOST_PLACES))]
        numbers = [one for one in numbers if one not in run] if found[1] else numbers + run
    return numbers
