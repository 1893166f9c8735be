"""The flags that describe the lab's guest, shared by `homing lab` and `homing run --on lab`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.errors import UserError
from homing.progress import Line
from homing.sizes import LEAST_CACHE, show_size, size

if TYPE_CHECKING:
    from homing.lab.options import LabOptions

LAB_FLAGS: dict[str, tuple[Any, Any]] = {
    "nodes": (int | None, typer.Option(help="guest: number of NUMA nodes (default 4)", metavar="N")),
    "cpus_per_node": (int | None, typer.Option(help="guest: CPUs of each node (default 1)", metavar="N")),
    "memory_per_node": (
        str | None,
        typer.Option(help="guest: memory of each node, as 512MiB or 2GiB (default 1024MiB)", metavar="SIZE"),
    ),
    "kernel": (
        str | None,
        typer.Option(
            help="guest: a series such as 6.12, or an image (default 6.1, else the newest)", metavar="VERSION"
        ),
    ),
    "count": (bool, typer.Option("--count", help="guest: count cache misses by nodes of CPU and page")),
    "cache": (
        str | None,
        typer.Option(
            help="guest with --count, machine: a CPU's own cache (default 1MiB:16; the machine's)",
            metavar="SIZE:WAYS",
        ),
    ),
    "balancing": (
        int | None,
        typer.Option(help="guest, machine: kernel.numa_balancing (default 0)", metavar="0|1"),
    ),
}


def flag_of(name: str) -> str:
    """memory_per_node -> --memory-per-node"""
    return "--" + name.replace("_", "-")


def parameter(name: str, kind: Any, info: Any, default: Any = None) -> inspect.Parameter:
    """A parameter as Typer reads it from a function's signature."""
    annotation = Annotated[kind, info]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def with_signature(function: Callable[..., int], parameters: list[inspect.Parameter]) -> Callable[..., int]:
    """Give `function(**given)` the signature that Typer reads."""
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {one.name: one.annotation for one in parameters}
    return function


def lab_parameters() -> list[inspect.Parameter]:
    """All flags of the guest."""
    return [
        parameter(name, kind, info, False if kind is bool else None)
        for name, (kind, info) in LAB_FLAGS.items()
    ]


def lab_options(given: dict[str, Any], line: Line | None, writable: list[str]) -> LabOptions:
    """LabOptions from the values of the flags (None: not given). UserError where a value is not possible."""
    from homing.lab.options import CountOptions, LabOptions

    options = LabOptions(progress=line.say if line else None, line=line, writable=writable)
    if given["nodes"] is not None:
        options.nodes = given["nodes"]
    if given["cpus_per_node"] is not None:
        options.cpus_per_node = given["cpus_per_node"]
    if given["memory_per_node"] is not None:
        options.memory_per_node_mib = _mebibytes(given["memory_per_node"])
    if given["kernel"] is not None:
        options.kernel = given["kernel"]
    if given["balancing"] is not None:
        options.numa_balancing = given["balancing"]
    if given["cache"] is not None and not given["count"]:
        raise UserError("--cache: only with --count")
    if given["count"]:
        options.count = CountOptions()
        if given["cache"] is not None:
            options.count.cache_kib, options.count.ways = _cache(given["cache"])
    options.check()
    return options


def _mebibytes(text: str) -> int:
    """MiB of a size, without loss."""
    try:
        mebibytes, rest = divmod(size(text), 1 << 20)
    except ValueError:
        mebibytes, rest = 0, 0
    if mebibytes == 0 or rest:
        raise UserError(f"--memory-per-node {text}: must be a size of 128MiB or more, such as 512MiB or 2GiB")
    return mebibytes


def _cache(text: str) -> tuple[int, int]:
    """(KiB, ways) of SIZE:WAYS."""
    found = re.fullmatch(r"([^:]+):([0-9]{1,9})", text, re.ASCII)
    try:
        kib, rest = divmod(size(found[1]), 1 << 10) if found else (0, 0)
    except ValueError:
        kib = rest = 0
    if found is None or kib < LEAST_CACHE >> 10 or rest:
        raise UserError(
            f"--cache {text}: must be SIZE:WAYS of {show_size(LEAST_CACHE)} or more, such as 1MiB:16"
        )
    return kib, int(found[2])
