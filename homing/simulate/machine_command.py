"""`homing machine [NAME]`: the machines that programs can be simulated on."""

from __future__ import annotations

import json as json_module
import os
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from homing.report.lines import terminal_width
from homing.simulate import machines
from homing.simulate.machines import Cache, Machine
from homing.sizes import show_size


def command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME|FILE]", help="draw this one (a name, NAME.toml or NAME.xml)"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="write what is known, for programs")] = False,
) -> int:
    """List the machines of `homing run --on MACHINE`, or draw one of them."""
    width = terminal_width(sys.stdout, os.environ)
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    if name is None:
        known = [machines.find(one) for one in machines.names()]
        if json:
            print(json_module.dumps([as_json(one) for one in known], indent=1))
            return 0
        for one in known:
            console.print(Text(f"{one.name:<16}{one.title}"), soft_wrap=True)
            console.print(Text(" " * 16 + _figures(one), "dim"), soft_wrap=True)
        return 0
    machine = machines.find(name)
    if json:
        print(json_module.dumps(as_json(machine), indent=1))
        return 0
    for line in draw(machine):
        console.print(Text(line), soft_wrap=True)
    return 0


def as_json(machine: Machine) -> dict[str, object]:
    """A machine as JSON values; schema homing-machine/1."""
    return {"schema": "homing-machine/1", **asdict(machine)}


def _figures(machine: Machine) -> str:
    shared = f", {_cache(machine.shared)} shared by {machine.shared.cpus}" if machine.shared else ""
    return (
        f"{machine.nodes} nodes, {machine.cpu_count} CPUs with {_cache(machine.private)}{shared}; "
        f"pages of {show_size(machine.page)}; R = {machine.time.ratio:g}"
    )


def _cache(cache: Cache) -> str:
    ways = "direct-mapped" if cache.ways == 1 else f"{cache.ways}-way"
    return f"{show_size(cache.bytes)} {ways}"


#: Nodes that are drawn side by side; more are told in words.
MOST_DRAWN = 8
#: Runs of CPU numbers that are written out.
MOST_RUNS = 3
_WIDTH = 25


def draw(machine: Machine) -> list[str]:
    """A picture: a box for each node, then distances and the model's figures."""
    lines = [f"{machine.name}: {machine.title}", ""]
    shown = min(machine.nodes, MOST_DRAWN)
    for first in range(0, shown, 4):
        boxes = [_node(machine, node) for node in range(first, min(first + 4, shown))]
        lines += ["  ".join(parts) for parts in zip(*boxes, strict=True)]
    if shown < machine.nodes:
        lines.append(f"... and {machine.nodes - shown} nodes more like these")
    lines += ["", *_distance_lines(machine), ""]
    model = machine.time
    lines += [
        f"pages    {show_size(machine.page)}, lines of {machine.line} bytes",
        f"memory   {machine.local_ns:g} ns local, {machine.local_ns * model.ratio:g} ns remote; "
        f"{machine.bandwidth_gbs:g} GB/s a node, {machine.link_gbs:g} GB/s a link",
        f"time     T = 1 + m (R - 1) f with R = {model.ratio:g}, m from {model.m[0]:g} to {model.m[1]:g}; "
        f"a move {model.migration_call_us:g} us a call and {model.migration_page_us:g} us a page",
        *([f"file     {machine.path}"] if machine.path else []),
        *(f"note     {remark}" for remark in machine.remarks),
    ]
    return lines


def _numbers(cpus: tuple[int, ...]) -> str:
    """0 to 15; 0, 2 and 10 more; 0 to 7, 64 to 71."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    if len(runs) > MOST_RUNS:
        return f"{cpus[0]}, {cpus[1]} and {len(cpus) - 2} more"
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in runs)


def _node(machine: Machine, node: int) -> list[str]:
    count = machine.cpus[node]
    memory = machine.memory[node]
    rows = [
        f"node {node}",
        f"CPU{'' if count == 1 else 's'} {_numbers(machine.node_cpus[node])}",
        f"each {_cache(machine.private)}",
    ]
    if machine.shared:
        caches = -(-count // machine.shared.cpus)
        rows.append(
            f"{caches if caches > 1 else 'all'} x {_cache(machine.shared)}"
            if caches > 1
            else f"all {_cache(machine.shared)}"
        )
    rows.append(f"memory {'unknown' if memory is None else show_size(memory)}")
    width = max(_WIDTH, *(len(row) for row in rows))
    return [
        "+" + "-" * (width + 2) + "+",
        *(f"| {row:<{width}} |" for row in rows),
        "+" + "-" * (width + 2) + "+",
    ]


def _distance_lines(machine: Machine) -> list[str]:
    far = sorted({one for row in machine.distances for one in row if one > 10})
    if len(far) <= 1 or machine.nodes > 16:
        text = ", ".join(f"{one:g}" for one in far) or "none"
        return [f"distance 10 local, {text} remote"]
    lines = ["distance " + " ".join(f"{node:>4}" for node in range(machine.nodes))]
    lines += [
        f"{node:>8} " + " ".join(f"{one:>4g}" for one in row) for node, row in enumerate(machine.distances)
    ]
    return lines
