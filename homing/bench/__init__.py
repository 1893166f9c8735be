"""`homing bench NAME`: measure, and write benchmarks/results/NAME.md and NAME.json."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from homing.errors import UserError


@dataclass(frozen=True)
class Bench:
    """A benchmark: the module that has a function `run(size, only, tell, redo)`, and its line in the list.
    One that runs programs of the user's takes `programs`, too, the file that describes them."""

    module: str
    summary: str
    sizes: tuple[str, ...] = ("small", "full")  #: the smallest first
    takes_programs: bool = False


BENCHES = {
    "convergence": Bench(
        "homing.bench.convergence", "counted remote misses in the guest, against other mechanisms"
    ),
    "patterns": Bench("homing.bench.patterns", "remote misses of programs whose distributions are known"),
    "foreign": Bench(
        "homing.bench.foreign",
        "remote misses of the programs that --programs FILE describes",
        ("small",),
        takes_programs=True,
    ),
    "sampling": Bench("homing.bench.sampling", "touches that it takes to know who owns an area"),
    "chapman": Bench("homing.bench.chapman", "directives translated: speed, instructions, messages, bytes"),
    "treadmarks": Bench(
        "homing.bench.treadmarks", "Jacobi, LU and LBE on shared memory between processes: messages, bytes"
    ),
    "overhead": Bench("homing.bench.overhead", "time that homing costs programs that gain nothing from it"),
    "launcher": Bench("homing.bench.launcher", "how much longer a whole command takes under homing run"),
    "scale": Bench("homing.bench.scale", "what the engine takes with 64 nodes, 1,024 threads and 10 TiB"),
    "report": Bench("homing.bench.report", "the report: its page, the summary, first touches, advice"),
    "simulator_speed": Bench(
        "homing.bench.simulator_speed",
        "the simulator's speed and misses, beside cachegrind and lackey",
        ("tiny", "small", "full"),
    ),
    "agreement": Bench(
        "homing.bench.agreement", "remote fractions of the simulator and of the guest's counter"
    ),
    "lof": Bench(
        "homing.bench.lof",
        "the tables and figures of Löf, Nordén, Holmgren 2004 on simulated machines",
        ("small", "medium", "paper"),
    ),
    "upmlib": Bench(
        "homing.bench.upmlib",
        "Figures 3 to 6 of Nikolopoulos et al. 2000 on a simulated machine, or counted in the guest",
        ("small", "guest", "medium", "paper"),
    ),
    "tasks": Bench("homing.bench.tasks", "locality queues: cost a task, throughput, share of tasks at home"),
    "wittmann": Bench("homing.bench.wittmann", "blocked Jacobi by every way of Wittmann and Hager 2010"),
    "wittmann_why": Bench("homing.bench.wittmann_why", "experiments on what `wittmann` does not confirm"),
}
SIZES = tuple(dict.fromkeys(size for bench in BENCHES.values() for size in bench.sizes))


def command(
    name: Annotated[
        str | None, typer.Argument(help="which benchmark; none: list them", metavar="[NAME]")
    ] = None,
    size: Annotated[str, typer.Option(help="how large", metavar="|".join(SIZES))] = "small",
    only: Annotated[str, typer.Option(help="only these parts", metavar="PART,...")] = "",
    redo: Annotated[
        bool, typer.Option("--redo", help="measure again what was kept of an earlier run")
    ] = False,
    programs: Annotated[
        str, typer.Option(help="for foreign: describes the programs (docs/foreign.md)", metavar="FILE")
    ] = "",
    output: Annotated[
        str,
        typer.Option(
            help="where the results go (default: benchmarks/results of the source tree, else here)",
            metavar="FOLDER",
        ),
    ] = "",
    all_: Annotated[bool, typer.Option("--all", help="every benchmark")] = False,
) -> int:
    """Measure, and write benchmarks/results/NAME.md for people and NAME.json for programs.

    A benchmark that was interrupted goes on where it was (build/bench/).
    """
    if name is None and not all_:
        for each, bench in BENCHES.items():
            print(f"{each:<12} {bench.summary}")
        return 0
    if name is not None and name not in BENCHES:
        raise UserError(f"no benchmark '{name}'; there are {', '.join(BENCHES)}")
    allowed = BENCHES[name].sizes if name is not None else SIZES
    if size not in allowed:
        raise UserError(f"--size {size}: must be one of {', '.join(allowed)}")
    if programs and name is not None and not BENCHES[name].takes_programs:
        raise UserError(f"--programs {programs}: homing bench {name} has programs of its own")
    parts = [part for part in only.split(",") if part]
    chosen = (
        [name]
        if name is not None
        else [each for each in BENCHES if programs or not BENCHES[each].takes_programs]
    )
    failed = [each for each in chosen if not measure(each, size, parts, redo, output, programs)]
    return 1 if failed else 0


def measure(name: str, size: str, only: list[str], redo: bool, output: str = "", programs: str = "") -> bool:
    """Run one benchmark and write its results. False where a requirement is not met."""
    from homing.bench.places import results_folder
    from homing.bench.results import Results, format_value, write

    folder = Path(output) if output else results_folder()
    if size not in BENCHES[name].sizes:  # --all: the largest that it has
        size = BENCHES[name].sizes[-1]
    module: Any = importlib.import_module(BENCHES[name].module)

    def tell(words: list[str]) -> str:
        extra = ["--size", size] if size != SIZES[0] else []
        return " ".join(["homing bench", *words, *extra, *(["--only", ",".join(only)] if only else [])])

    more = {"programs": programs} if BENCHES[name].takes_programs else {}
    results: Results = module.run(size, only, tell, redo, **more)
    for text in results.texts:
        print(f"{text}\n")
    for row in results.rows:
        beside = "" if row.paper is None else f" (paper {format_value(row.paper)})"
        print(f"{row.name:<34} {format_value(row.value):>14} {row.unit}{beside}")
    for check in results.checks:
        print(f"{'PASS' if check.passed else 'FAIL'}: {check.name}: {check.text}")
    paths = write(results, folder)
    print(f"written: {', '.join(str(path) for path in paths)}", file=sys.stderr)
    return all(check.passed for check in results.checks)
