"""The tables of docs/distributions.md, made of the results of `homing bench chapman`: a test compares them.

`python -m homing.bench.chapman_tables` prints them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from homing.bench.places import results_folder

GUEST = {
    "serial": "as it is, pages touched first by one thread",
    "balancing": "the same, pages migrated by the kernel's balancing",
    "homing": "the same under `homing run`",
    "distribute": "`--to pages`",
    "first_touch": "as it is, each thread touching its own pages first",
    "spmd": "`--to spmd`",
}
CODES = {"jacobi": "Jacobi", "lu": "LU", "lbe": "lattice Boltzmann"}
HERE = {
    "shared": "as it is",
    "distribute": "`--to pages`",
    "spmd": "`--to spmd`",
    "hand": "SPMD written by hand after the paper",
}
ORIGIN = {
    "shared": "as it is, first touch",
    "distribute": "`--to pages`",
    "no_affinity": "`--to pages` without AFFINITY",
    "spmd": "`--to spmd`",
}
ORIGIN_THREADS = (4, 16, 32, 64, 128)


def read() -> dict[str, dict[str, Any]]:
    """The rows of the results, by name."""
    data = json.loads(Path(results_folder() / "chapman.json").read_text())
    return {row["name"]: row for row in data["rows"]}


def _table(head: str, lines: list[str]) -> str:
    columns = head.count("|") - 2
    return "\n".join([head, "|---|" + "---:|" * columns, *lines])


def guest(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Jacobi's misses in the guest."""
    lines = []
    for name, text in GUEST.items():
        fraction, misses = (
            rows[f"jacobi.fortran.guest.{name}.{what}"]["value"]
            for what in ("remote_fraction", "remote_misses")
        )
        lines.append(f"| {text} | {100 * fraction:.1f} % | {misses:,.0f} |")
    return _table("| | remote | remote misses |", lines)


def here(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Speed-ups of two threads, measured."""
    lines = [
        f"| {text} | "
        + " | ".join(f"{rows[f'{code}.fortran.{version}.speedup.t2']['value']:.2f}" for code in CODES)
        + " |"
        for version, text in HERE.items()
    ]
    return _table("| | " + " | ".join(CODES.values()) + " |", lines)


def origin(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Speed-ups on the described Origin 2000, by the model."""
    lines = []
    for code, title in CODES.items():
        for version, text in ORIGIN.items():
            names = [f"{code}.fortran.origin.{version}.speedup.t{count}" for count in ORIGIN_THREADS]
            if names[0] in rows:
                values = " | ".join(f"{rows[name]['value']:.3g}" if name in rows else "" for name in names)
                lines.append(f"| {title}, {text} | {values} |")
    return _table("| threads | " + " | ".join(map(str, ORIGIN_THREADS)) + " |", lines)


TABLES = (guest, here, origin)

if __name__ == "__main__":
    for make in TABLES:
        print(make(read()), end="\n\n")
