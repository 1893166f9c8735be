"""The columns of Figure 3 of Wittmann and Hager 2010, and ways of today: blocked_jacobi's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homing.bench.places import find_program


@dataclass(frozen=True)
class Way:
    """One column of Figure 3, or a way of today: the program's arguments, and its name in the rows."""

    name: str
    arguments: tuple[str, ...]
    compiler: str = "clang"
    clause: bool = False

    @property
    def bound(self) -> bool:
        """Does OpenMP bind the threads? It would bind the main thread, and TBB would see one CPU."""
        return not self.name.startswith("tbb")

    def command(self, size: Sequence[str]) -> list[str]:
        return [find_program(f"blocked_jacobi_{self.compiler}"), *self.arguments, *size]


def _ways() -> list[Way]:
    ways = [
        Way(f"static.{initialise}", ("--variant", "static", "--initialise", initialise))
        for initialise in ("serial", "round-robin", "s")
    ]
    ways += [Way(f"dynamic.{one}", ("--variant", "dynamic", "--initialise", one)) for one in ("s", "s1")]
    for variant in ("tasks", "paper", "queues", "clause"):
        for initialise in ("s", "s1"):
            for order in ("ijk", "kji"):
                arguments = ("--variant", variant, "--initialise", initialise, "--order", order)
                name = f"{variant}.{initialise}.{order}"
                ways.append(Way(name, arguments, clause=variant == "clause"))
    for variant in ("tasks-all", "paper-all"):  # all threads submit
        for order in ("ijk", "kji"):
            ways.append(Way(f"{variant}.s.{order}", ("--variant", variant, "--order", order)))
    for pin in ("no", "yes"):
        for partitioner in ("auto", "affinity"):
            pinned = "p" if pin == "yes" else "n-p"
            kind = "a" if partitioner == "affinity" else "n-a"
            more = ("--pin", pin, "--partitioner", partitioner)
            ways.append(Way(f"tbb.{pinned}.{kind}", ("--variant", "tbb", *more), "gcc"))
    for variant in ("tbb-paper", "tbb-queues", "tbb-for-each"):
        ways.append(Way(f"{variant}.p", ("--variant", variant, "--pin", "yes"), "gcc"))
    line = ("--pin", "yes", "--range", "1d")  # blocks as a line (section 3.2)
    for kind, partitioner in (("n-a", "auto"), ("a", "affinity")):
        words = ("--variant", "tbb", *line, "--partitioner", partitioner)
        ways.append(Way(f"tbb-1d.p.{kind}", words, "gcc"))
    ways.append(Way("tbb-1d-paper.p", ("--variant", "tbb-paper", *line), "gcc"))
    ways.append(Way("tbb-arena", ("--variant", "tbb-arena"), "gcc"))  # TBB binds an arena's threads itself
    ways.append(Way("nested.s", ("--variant", "nested", "--initialise", "s"), "gcc"))
    ways += [
        Way(f"{variant}.s.kji.gcc", ("--variant", variant, "--order", "kji"), "gcc")
        for variant in ("tasks", "queues")
    ]
    return ways


WAYS = {way.name: way for way in _ways()}
