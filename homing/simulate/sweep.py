"""`--sweep cache`: how remote fractions depend on the cache of the model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from homing.simulate.machines import Cache, Machine, cache_problem
from homing.sizes import show_size

#: The private cache's size over the machine's own, and its ways.
SIZES = (0.125, 0.5, 1.0, 2.0)
WAYS = (1, 2, 16)


def caches(machine: Machine) -> list[Cache]:
    """The caches of the sweep, the machine's own among them."""
    own = machine.private
    found = [own]
    for scale in SIZES:
        for ways in sorted({*WAYS, own.ways}):
            # Sizes go with the number of sets, which must be a power of two.
            near = own.bytes if ways == own.ways else 1 << (own.bytes.bit_length() - 1)
            cache = Cache(int(near * scale), ways, own.cpus)
            if cache not in found and cache.bytes >= machine.line * ways:
                if cache_problem(cache.bytes, ways, machine.line):
                    continue
                found.append(cache)
    return sorted(found, key=lambda one: (one.bytes, one.ways))


def sweep(machine: Machine, run: Callable[[Machine, int], dict[str, Any] | None]) -> list[dict[str, Any]]:
    """Run with each cache; a row for each: kib, ways, own (is it the machine's?), and the run's figures.
    KeyboardInterrupt of `run` ends it, with the rows so far."""
    rows = []
    wanted = caches(machine)
    terminal = sys.stderr.isatty()
    for at, cache in enumerate(wanted):
        text = f"homing run: sweep, {at + 1} of {len(wanted)}: {show_size(cache.bytes)} {cache.ways}-way"
        print(
            f"\r\033[K{text}" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True
        )
        try:
            counts = run(replace(machine, private=cache), at)
        except KeyboardInterrupt:
            print("homing run: the sweep was interrupted", file=sys.stderr)
            break
        if counts is None:
            continue
        rows.append(
            {
                "kib": cache.bytes / 1024,
                "ways": cache.ways,
                "own": cache == machine.private,
                **{
                    name: counts["run"][name]
                    for name in (
                        "accesses",
                        "total_misses",
                        "remote_misses",
                        "remote_fraction",
                        "home_shares",
                    )
                },
            }
        )
    if terminal:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    return rows
