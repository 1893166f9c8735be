"""How fast the simulator is, and whether its misses are right: beside cachegrind and lackey, in one run."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from homing.bench import simulated
from homing.bench.progress import Progress
from homing.bench.results import Check, Results, Row, check_only
from homing.errors import UserError

#: The last level that both model where misses are compared: bytes and ways.
CACHE_BYTES, CACHE_WAYS = 1 << 20, 16
NOISE = 0.02


@dataclass(frozen=True)
class Part:
    """A program, its arguments by size of the bench, and the least accesses a second that are required."""

    program: str
    arguments: dict[str, list[str]]
    speed: bool = True


PARTS = {
    "jacobi": Part(
        "jacobi",
        {
            "tiny": ["--n", "64", "--iterations", "4"],
            "small": ["--n", "128", "--iterations", "20"],
            "full": ["--n", "192", "--iterations", "30"],
        },
    ),
    "cg": Part(
        "cg",
        {
            "tiny": ["--class", "S", "--iterations", "2"],
            "small": ["--class", "W", "--iterations", "15"],
            "full": ["--class", "A", "--iterations", "15"],
        },
    ),
    "mg": Part(
        "mg",
        {
            "tiny": ["--class", "S", "--iterations", "2"],
            "small": ["--class", "W", "--iterations", "4"],
            "full": ["--class", "A", "--iterations", "4"],
        },
        speed=False,
    ),
    "lu": Part("lu", {"tiny": ["200"], "small": ["500"], "full": ["1000"]}, speed=False),
}
LACKEY = ["--n", "40", "--iterations", "2"]
REPEATS = {"tiny": 1, "small": 3, "full": 5}


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: names in PARTS."""
    check_only(only, PARTS)
    if shutil.which("valgrind") is None:
        raise UserError("simulator_speed: needs valgrind (cachegrind and lackey)")
    results = Results(
        "simulator_speed",
        "The simulator's speed and misses, beside cachegrind and lackey",
        tell(["simulator_speed"]),
        notes=[
            "Millions of data accesses a second of processor time of the whole program (its start and its "
            "serial parts included), one thread, sf15k's model: private cache, directory, homes, arrays, "
            "regions. cachegrind and lackey run the same source as an ordinary compiler makes it; their rate "
            "is their own data references a second. Runs alternate; medians.",
            "Misses: of the last level of 1 MiB and 16 ways, one thread; cachegrind has a first level of "
            "32 KiB and 8 ways in front of it. It sees what is not instrumented, too (libraries, registers "
            "that were spilled).",
        ],
    )
    chosen = [name for name in PARTS if not only or name in only]
    progress = Progress("simulator_speed", [3.0 if PARTS[name].speed else 1.0 for name in chosen])
    try:
        for name in chosen:
            progress.step(name)
            part = PARTS[name]
            path = simulated.build(part.program, "gcc", True)
            plain = simulated.build(part.program, "gcc", False)
            arguments = part.arguments[size]
            if part.speed:
                _speed(results, name, path, plain, arguments, REPEATS[size])
            _misses(results, name, path, plain, arguments)
            progress.finished()
    finally:
        progress.close()
    return results


def _speed(results: Results, name: str, path: str, plain: str, arguments: list[str], repeats: int) -> None:
    ours, grinds = [], []
    for _ in range(repeats):
        measured = simulated.run(path, arguments, 1)
        ours.append(measured.counts["run"]["accesses"] / measured.seconds)
        grind = simulated.cachegrind(plain, arguments, CACHE_BYTES, CACHE_WAYS)
        grinds.append(grind.references / grind.seconds)
    rate, other = statistics.median(ours), statistics.median(grinds)
    ratio = statistics.median(a / b for a, b in zip(ours, grinds, strict=True))
    spread = f"{min(ours) / 1e6:.0f} to {max(ours) / 1e6:.0f} in {repeats} runs"
    results.rows += [
        Row(f"{name}.gcc", rate / 1e6, "million accesses a second", spread),
        Row(f"{name}.cachegrind", other / 1e6, "million accesses a second"),
        Row(f"{name}.gcc.vs_cachegrind", ratio, "times", "median of the pairs"),
    ]
    results.checks += [
        Check(f"{name}: at least 150 million accesses a second", rate >= 150e6, f"{rate / 1e6:.0f} million"),
        Check(f"{name}: at least 2 times cachegrind", ratio >= 2, f"{ratio:.2f} times"),
    ]
    if name == "jacobi":
        _clang(results, name, arguments, repeats)
        small = simulated.run(path, LACKEY, 1).counts["run"]["accesses"] / simulated.lackey(plain, LACKEY)
        results.rows += [
            Row(f"{name}.lackey", small / 1e6, "million accesses a second", f"jacobi {' '.join(LACKEY)}"),
            Row(f"{name}.gcc.vs_lackey", rate / small, "times"),
        ]
        results.checks.append(
            Check(f"{name}: at least 100 times lackey", rate >= 100 * small, f"{rate / small:.0f} times")
        )


def _clang(results: Results, name: str, arguments: list[str], repeats: int) -> None:
    try:
        path = simulated.build(name, "clang", True)
    except UserError as error:
        results.notes.append(f"{name}.clang was not measured: {error.message}")
        return
    rates = []
    for _ in range(repeats):
        measured = simulated.run(path, arguments, 1)
        rates.append(measured.counts["run"]["accesses"] / measured.seconds)
    rate = statistics.median(rates)
    note = f"{min(rates) / 1e6:.0f} to {max(rates) / 1e6:.0f} in {repeats} runs"
    results.rows.append(Row(f"{name}.clang", rate / 1e6, "million accesses a second", note))
    results.checks.append(
        Check(
            f"{name}: at least 300 million accesses a second where clang inlines",
            rate >= 300e6,
            f"{rate / 1e6:.0f} million",
        )
    )


def _misses(results: Results, name: str, path: str, plain: str, arguments: list[str]) -> None:
    cache = f"{CACHE_BYTES // 1024}KiB:{CACHE_WAYS}"
    ours = simulated.run(path, arguments, 1, cache=cache).counts["run"]["total_misses"]
    theirs = simulated.cachegrind(plain, arguments, CACHE_BYTES, CACHE_WAYS).misses
    difference = ours / theirs - 1
    results.rows += [
        Row(f"{name}.misses", ours, "misses"),
        Row(f"{name}.misses.cachegrind", theirs, "misses"),
        Row(f"{name}.misses.difference", difference, "of cachegrind's"),
    ]
    results.checks.append(
        Check(
            f"{name}: misses within 2 % of cachegrind's",
            abs(difference) <= NOISE,
            f"{100 * difference:+.2f} %",
        )
    )
