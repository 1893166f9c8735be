"""The flags of `homing run --on MACHINE` that describe the simulation."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from homing.lab_flags import parameter

SIMULATION_FLAGS: dict[str, tuple[Any, Any]] = {
    "page_size": (str | None, typer.Option(help="machine: size of its pages, 4KiB to 2MiB", metavar="SIZE")),
    "shared_cache": (
        str | None,
        typer.Option(help="machine: the last level that CPUs of a node share; 0: none", metavar="SIZE:WAYS"),
    ),
    "lines": (bool, typer.Option("--lines", help="machine: count by source line, too")),
    "distribute": (
        str | None,
        typer.Option(
            help="machine: pages of an array go to the nodes in blocks or by turns of K pages",
            metavar="ARRAY=block|cyclic|cyclic(K),...",
        ),
    ),
    "deterministic": (
        bool,
        typer.Option(
            "--deterministic", help="machine: threads take turns, so that every run counts the same"
        ),
    ),
    "turn": (int | None, typer.Option(help="machine: accesses of a turn (default 1000)", metavar="N")),
    "balancing_scan": (
        str | None,
        typer.Option(
            help="machine with --balancing 1: it marks SIZE whenever the threads have made so many accesses "
            "each (default 256MiB:1000000000)",
            metavar="SIZE:ACCESSES",
        ),
    ),
    "sweep": (
        str | None,
        typer.Option(help="machine: run again with other caches, and compare", metavar="cache"),
    ),
    "fail_if": (
        list[str] | None,
        typer.Option(
            help="exit status 96 where this, or another one, is true (remote_fraction > 0.1)",
            metavar="EXPRESSION",
        ),
    ),
    "calibrate": (
        str | None,
        typer.Option(
            help="machine: a measured time over that with all pages local, and the remote fraction it had",
            metavar="TIME:FRACTION",
        ),
    ),
}


def simulation_parameters() -> list[inspect.Parameter]:
    """All flags of a simulated machine."""
    return [
        parameter(name, kind, info, False if kind is bool else None)
        for name, (kind, info) in SIMULATION_FLAGS.items()
    ]
