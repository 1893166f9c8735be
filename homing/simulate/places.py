"""Where a program's own OpenMP runtime would place its threads on the described machine: OMP_PLACES,
OMP_PROC_BIND and GOMP_CPU_AFFINITY, by the rules of GCC's libgomp and of LLVM's libomp.

The rules are those of OpenMP API 5.2, sections 21.1.4 and 21.1.6, and where that leaves a choice, what GCC 12
and LLVM 14 do (seen by omp_get_place_proc_ids): PLACE:COUNT without a stride counts on by one; CPUs that are
not there are left out; a value that cannot be read is said, and as good as none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from homing.simulate.machines import Machine

#: What is taken from the program: its runtime must not look for these CPUs on this computer.
VARIABLES = (
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "KMP_HW_SUBSET",
    "OMP_DISPLAY_AFFINITY",
)
#: Of these the ones that a described machine has no use for.
_NOT_USED = ("KMP_AFFINITY", "KMP_HW_SUBSET")

GCC, LLVM = "libgomp", "libomp"
RUNTIMES = (GCC, LLVM)

MOST_PLACES = 65536
#: CPU numbers that libgomp can name on every machine.
_MOST_CPUS = 1024
_POLICIES = {"primary": "primary", "master": "primary", "close": "close", "spread": "spread"}

Places = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Placement:
    """places: CPUs by number. bindings: by nesting level (the last one counts on): primary, close, spread,
    turns (thread i on place i, and round again), or even: not bound, and spread over all CPUs. remarks: what
    the user must know."""

    places: Places
    bindings: tuple[str, ...]
    remarks: tuple[str, ...] = ()


class _Unreadable(Exception):
    """Why a value is as good as none, in words."""


def placement(environment: Mapping[str, str], machine: Machine, runtime: str) -> Placement:
    """The placement by the rules of a runtime, GCC or LLVM."""
    remarks: list[str] = []
    unbound = Placement(tuple((cpu,) for cpus in machine.node_cpus for cpu in cpus), ("even",))
    stated = _bindings(environment, runtime, remarks)
    found = _placed(environment, machine, runtime, stated, remarks)
    for name in _NOT_USED:
        if environment.get(name):
            remarks.append(
                f"{name}={environment[name]} is not used on a described machine: say it with OMP_PLACES and "
                "OMP_PROC_BIND"
            )
    places, bindings = (unbound.places, unbound.bindings) if found is None else found
    return Placement(places, bindings, tuple(remarks))


def _placed(
    environment: Mapping[str, str],
    machine: Machine,
    runtime: str,
    stated: tuple[str, ...] | None,
    remarks: list[str],
) -> tuple[Places, tuple[str, ...]] | None:
    """Places and bindings; None: threads are not bound."""
    listed = "GOMP_CPU_AFFINITY" in environment
    if runtime == LLVM and listed:
        # It takes the place of OpenMP's variables.
        found = _read(environment, "GOMP_CPU_AFFINITY", machine, runtime, remarks)
        overruled = [name for name in ("OMP_PLACES", "OMP_PROC_BIND") if name in environment]
        if overruled:
            remarks.append(f"{' and '.join(overruled)}: {LLVM} goes by GOMP_CPU_AFFINITY instead")
        return (found, ("turns",)) if found else None
    if stated == ("false",):
        return None
    bindings = stated or ("true",)
    # What "true" is, is the runtime's choice.
    bindings = tuple(("close" if runtime == GCC else "spread") if one == "true" else one for one in bindings)
    if "OMP_PLACES" in environment:
        if found := _read(environment, "OMP_PLACES", machine, runtime, remarks):
            return found, bindings
        if runtime == LLVM:
            return _named("cores", machine, runtime), bindings
    if listed and (found := _read(environment, "GOMP_CPU_AFFINITY", machine, runtime, remarks)):
        return found, bindings
    if stated is None:
        return None
    return _named("threads" if runtime == GCC else "cores", machine, runtime), bindings


def _bindings(environment: Mapping[str, str], runtime: str, remarks: list[str]) -> tuple[str, ...] | None:
    """Of OMP_PROC_BIND: false, true, or policies by nesting level; None where it is not set."""
    value = environment.get("OMP_PROC_BIND")
    if value is None:
        return None
    words = [word.strip().lower() for word in value.split(",")]
    if words[0] in ("true", "false") and (len(words) == 1 or runtime == LLVM):
        return (words[0],)
    if all(word in _POLICIES for word in words):
        return tuple(_POLICIES[word] for word in words)
    remarks.append(
        f"OMP_PROC_BIND={value}: {runtime} ignores it (it must be true, false, or a list of spread, close "
        "and primary)"
    )
    return None


def _read(
    environment: Mapping[str, str], name: str, machine: Machine, runtime: str, remarks: list[str]
) -> Places | None:
    """The places of a variable; None, and a remark, where it cannot be used."""
    value = environment[name]
    instead = "takes cores" if runtime == LLVM and name == "OMP_PLACES" else "does without it"
    try:
        if name == "GOMP_CPU_AFFINITY":
            wanted = _cpu_list(value)
        else:
            named = re.fullmatch(r"\s*([a-z_]+)\s*(?:\(\s*([0-9]{1,9})\s*\)\s*)?", value.lower())
            if named:
                return _named(named[1], machine, runtime, None if named[2] is None else int(named[2]))
            wanted = _PlaceList(value, machine, runtime).places()
        there = {cpu for cpus in machine.node_cpus for cpu in cpus}
        absent = sorted({cpu for place in wanted for cpu in place} - there)
        found = tuple(kept for place in wanted if (kept := tuple(cpu for cpu in place if cpu in there)))
        if not found:
            raise _Unreadable(
                f"{machine.name} has none of these CPUs" if absent else "there is no place in it"
            )
    except _Unreadable as error:
        remarks.append(f"{name}={value}: {error}; {runtime} {instead}")
        return None
    if absent:
        shown = ", ".join(map(str, absent[:4])) + (", ..." if absent[4:] else "")
        remarks.append(
            f"{name}={value}: {machine.name} has no CPU {shown}: left out, {len(found)} of {len(wanted)} "
            "places remain"
        )
    return found


def _named(name: str, machine: Machine, runtime: str, count: int | None = None) -> Places:
    """Places by the name of a level. libgomp goes by CPU numbers, libomp by neighbourhood."""
    cpus = [(cpu,) for of_node in machine.node_cpus for cpu in of_node]
    levels = {
        "threads": cpus,
        "cores": machine.cores or cpus,
        "ll_caches": machine.cache_groups,
        "numa_domains": machine.node_cpus,
        "sockets": machine.sockets or machine.node_cpus,
    }
    if name not in levels:
        raise _Unreadable(f"must be {', '.join(levels)}, or a list of places")
    if count == 0 and runtime == GCC:
        raise _Unreadable("asks for no place")
    found = tuple(tuple(sorted(place)) for place in levels[name])
    return (tuple(sorted(found)) if runtime == GCC else found)[: count or len(found)]


def _cpu_list(text: str) -> list[tuple[int, ...]]:
    """GOMP_CPU_AFFINITY: numbers and ranges FIRST-LAST:STRIDE, behind commas or blanks; a place each."""
    found: list[tuple[int, ...]] = []
    for part in re.split(r"\s*,\s*|\s+", text.strip()):
        match = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5})(?::([0-9]{1,5}))?)?", part, re.ASCII)
        if not match:
            raise _Unreadable(f"{part!r} is neither a CPU nor a range of CPUs")
        first, last, stride = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or stride == 0:
            raise _Unreadable(f"{part!r} is no range of CPUs")
        found += [(cpu,) for cpu in range(first, last + 1, stride)]
    return found


class _PlaceList:
    """OpenMP's lists of places: PLACE, PLACE:COUNT, PLACE:COUNT:STRIDE and !PLACE behind commas, where PLACE
    is {CPUS} or a CPU, and CPUS are N, N:COUNT and N:COUNT:STRIDE."""

    def __init__(self, text: str, machine: Machine, runtime: str) -> None:
        self.machine, self.runtime = machine, runtime
        self.words = re.findall(r"[0-9]+|\S", text, re.ASCII)
        self.at = 0

    def places(self) -> list[tuple[int, ...]]:
        """All places; CPUs that the machine does not have are in them."""
        found: list[tuple[int, ...]] = []
        while True:
            negative = self._take("!")
            place = self._place()
            count, stride = self._repeats()
            if negative and self.runtime == GCC:
                if count != 1 or tuple(place) not in found:
                    raise _Unreadable("a place that is not in the list cannot be taken out of it")
                found.remove(tuple(place))
            elif negative:
                everything = {cpu for cpus in self.machine.node_cpus for cpu in cpus}
                found.append(tuple(sorted(everything - set(place))))
            else:
                found += self._shifted(place, count, stride)
            if len(found) > MOST_PLACES:
                raise _Unreadable(f"makes more than {MOST_PLACES} places")
            if self.at == len(self.words):
                return found
            self._need(",")

    def _shifted(self, place: list[int], count: int, stride: int) -> Iterator[tuple[int, ...]]:
        for step in range(count):
            moved = [cpu + step * stride for cpu in place]
            if min(moved, default=0) < 0:
                if self.runtime == GCC:
                    raise _Unreadable("counts below CPU 0")
                moved = [cpu for cpu in moved if cpu >= 0]
            self._check(moved)
            yield tuple(moved)

    def _check(self, cpus: list[int]) -> None:
        most = max(_MOST_CPUS, 1 + max(max(one) for one in self.machine.node_cpus))
        if self.runtime == GCC and max(cpus, default=0) >= most:
            raise _Unreadable(f"counts beyond CPU {most - 1}")

    def _place(self) -> list[int]:
        if not self._take("{"):
            return [self._number()]
        added: set[int] = set()
        taken: list[int] = []
        while True:
            negative = self.runtime == GCC and self._take("!")
            first = self._number()
            count, stride = self._repeats()
            run = [first + at * stride for at in range(count)]
            if negative:
                if count != 1:
                    raise _Unreadable("one CPU at a time can be taken out of a place")
                taken.append(first)
            else:
                if min(run, default=0) < 0 and self.runtime == GCC:
                    raise _Unreadable("counts below CPU 0")
                self._check(run)
                added.update(cpu for cpu in run if cpu >= 0)
            if self._take("}"):
                break
            self._need(",")
        for cpu in taken:
            if cpu not in added:
                raise _Unreadable(f"CPU {cpu} is not in the place that it is taken out of")
            added.remove(cpu)
        return sorted(added)

    def _repeats(self) -> tuple[int, int]:
        """:COUNT:STRIDE, 1 and 1 without them."""
        if not self._take(":"):
            return 1, 1
        count = self._number()
        if count >= MOST_PLACES or (count == 0 and self.runtime == GCC):
            raise _Unreadable(f"cannot repeat {count} times")
        if not self._take(":"):
            return count, 1
        sign = 1
        while self._next() in ("+", "-"):
            sign *= -1 if self._next() == "-" else 1
            self.at += 1
            if self.runtime == GCC:
                break
        return count, sign * self._number()

    def _next(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def _take(self, word: str) -> bool:
        found = self._next() == word
        self.at += found
        return found

    def _need(self, word: str) -> None:
        if not self._take(word):
            raise self._wrong()

    def _number(self) -> int:
        if self.runtime == GCC:
            self._take("+")
        word = self._next()
        if not word.isascii() or not word.isdigit() or len(word) > 9:
            raise self._wrong()
        self.at += 1
        return int(word)

    def _wrong(self) -> _Unreadable:
        where = f"at {''.join(self.words[self.at :])!r}" if self._next() else "at its end"
        return _Unreadable(f"cannot be read {where}")
