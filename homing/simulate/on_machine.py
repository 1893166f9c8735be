"""`homing run --on MACHINE`: the same run on a described machine.

The program runs here, with the simulator's library preloaded; the records come back as from any run, with
the counts in them.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from homing import environment, launch
from homing.elf import read_elf
from homing.errors import UserError
from homing.installation import find_binary
from homing.run import temporary_folder
from homing.run_end import Request, afterwards, keep, report, save_unread, say_room, tell_records
from homing.run_files import Records
from homing.simulate import machines, places
from homing.simulate.description import (
    TURN,
    Distribution,
    Wishes,
    costs,
    description,
    parse_balancing,
    parse_distributions,
)
from homing.simulate.expressions import Expression, exit_status
from homing.simulate.machines import Machine
from homing.simulate.not_counted import why_not_counted
from homing.simulate.places import Placement
from homing.simulate.time_model import parse_calibration

if TYPE_CHECKING:
    from homing.report.results import Results

#: personality(2).
_ADDR_NO_RANDOMIZE = 0x0040000
_OVERCOMMIT = "/proc/sys/vm/overcommit_memory"

#: OMP_NUM_THREADS: a number for each nesting level.
_TEAMS = re.compile(r"\s*[1-9][0-9]*\s*(,\s*[1-9][0-9]*\s*)*", re.ASCII)

LIBRARY = "libhoming_simulator.so"


@dataclass
class Simulated:
    """One run: the child's wait status, its process id, its records and what was found in them."""

    status: int
    child: int
    records: Records
    results: Results
    kept: list[str] = field(default_factory=list)


def find_simulator() -> str:
    """The library with the simulator in it; HOMING_SIMULATOR_LIBRARY overrides."""
    path = os.environ.get("HOMING_SIMULATOR_LIBRARY") or find_binary(f"homing/{LIBRARY}")
    if path is None or not os.path.isfile(path):
        raise UserError(
            f"{LIBRARY} was not built with this homing: build it, or set HOMING_SIMULATOR_LIBRARY"
        )
    return os.path.abspath(path)


def run(request: Request, name: str, given: dict[str, Any], texts: list[str]) -> int:
    """Run the command on the machine; returns the exit status of `homing run` as a wait status.
    texts: the conditions of --fail-if."""
    machine = machines.changed(machines.find(name), given["page_size"], given["cache"], given["shared_cache"])
    conditions = [Expression.parse(text) for text in texts]
    if given["sweep"] not in (None, "cache"):
        raise UserError(f"--sweep {given['sweep']}: must be cache")
    turn = given["turn"]
    if turn is not None and not 1 <= turn <= 1_000_000_000:
        raise UserError(f"--turn {turn}: must be a number of accesses from 1 to 1,000,000,000")
    path = launch.find_command(request.command[0])
    placements, said = _placements(request, path, machine)
    wishes = Wishes(
        initial=request.option("HOMING_INITIAL") or "first-touch",
        placements=placements,
        distributions=parse_distributions(given["distribute"]),
        seed=int(float(request.option("HOMING_SEED") or "1")),
        turn=(turn or TURN) if given["deterministic"] or turn is not None else 0,
        lines=given["lines"],
        calibration=parse_calibration(given["calibrate"]),
        balancing=parse_balancing(given["balancing"], given["balancing_scan"]),
    )
    _check(path)
    library = find_simulator()
    for line in said:
        print(f"homing run: {line}", file=sys.stderr)
    with launch.put_off(), temporary_folder(request, needed=True) as folder:
        done = simulate(request, path, library, machine, wishes, folder)
        with afterwards("the summary"):
            done.results.notes = [*machine.remarks, *done.results.notes]
            _say_missing(request, done, path)
            for line in unmet(wishes.distributions, done.results):
                print(f"homing run: {line}", file=sys.stderr)
            interrupted = launch.signal_name(launch.exit_status(done.status))
            if given["sweep"] and done.results.counts is not None and not interrupted:
                from homing.simulate.sweep import sweep

                def run_with(other: Machine, at: int) -> dict[str, Any] | None:
                    at_folder = os.path.join(folder, str(at))
                    plain = replace(request, record="")
                    one = simulate(plain, path, library, other, wishes, at_folder, True)
                    if launch.signal_name(launch.exit_status(one.status)):
                        raise KeyboardInterrupt
                    return one.results.counts

                done.results.counts["sweep"] = sweep(machine, run_with)
            report(request, done.results, done.child)
        with afterwards("the records"):
            keep(done.records, done.kept, done.results)
            save_unread(done.records, done.kept, done.results)
        return _judge(conditions, request, done, path) if conditions else done.status


def _placements(
    request: Request, path: str, machine: Machine
) -> tuple[dict[str, Placement], tuple[str, ...]]:
    """Where threads are placed by the rules of each OpenMP runtime, and what the user is told: of the runtime
    that the program is linked with, of both where that is not known before it starts."""
    variables = dict(os.environ)
    if request.bind:
        environment.bind_threads(variables)
    placements = {one: places.placement(variables, machine, one) for one in places.RUNTIMES}
    elf = read_elf(path)
    needed = elf.needed if elf is not None else ()
    known = [
        runtime
        for runtime, names in ((places.GCC, (b"libgomp.",)), (places.LLVM, (b"libomp.", b"libiomp5.")))
        if any(one.startswith(names) for one in needed)
    ]
    said = [line for one in known or places.RUNTIMES for line in placements[one].remarks]
    return placements, (*dict.fromkeys(said), *_wrong_team(variables, machine))


def _wrong_team(variables: dict[str, str], machine: Machine) -> Iterator[str]:
    text = variables.get("OMP_NUM_THREADS")
    if text is not None and not _TEAMS.fullmatch(text):
        yield f"OMP_NUM_THREADS={text} is no list of numbers: there are {machine.cpu_count} threads"


def _judge(conditions: list[Expression], request: Request, done: Simulated, path: str) -> int:
    """The wait status where conditions were given."""

    def counts(condition: Expression) -> dict[str, Any]:
        if done.results.counts is None:
            raise UserError(f"--fail-if {condition.text}: {_why_missing(request, done, path)}")
        return done.results.counts

    status = exit_status(conditions, done.status, counts)
    return status if done.status != 0 else status << 8


def _check(path: str) -> None:
    """What is known before the start."""
    elf = read_elf(path)
    if elf is not None and not elf.interpreter:
        raise UserError(f"{path}: is statically linked, and cannot be simulated: link it dynamically")
    try:
        with open(_OVERCOMMIT) as file:
            if file.read().strip() == "2":
                raise UserError(
                    "the simulator reserves some 10 TiB of address space (not of memory), which "
                    "vm.overcommit_memory=2 refuses: sysctl vm.overcommit_memory=0"
                )
    except OSError:
        pass


def simulate(
    request: Request,
    path: str,
    library: str,
    machine: Machine,
    wishes: Wishes,
    folder: str,
    quiet: bool = False,
) -> Simulated:
    """One run with one machine. quiet: the program's output goes nowhere."""
    os.makedirs(folder, exist_ok=True)
    variables, notes = _environment(machine, wishes, folder, request.options)
    records = Records(request.record, folder)
    if not quiet:
        say_room(request, records)
    environment.preload(variables, library, folder)
    elf = read_elf(path)
    if elf is not None and any(needed.startswith(b"libtsan.so") for needed in elf.needed):
        # Linked with GCC's sanitizer: the loader finds our library of that name first.
        drop_in = os.path.join(os.path.dirname(library), "drop-in")
        others = variables.get("LD_LIBRARY_PATH", "")
        variables["LD_LIBRARY_PATH"] = f"{drop_in}:{others}" if others else drop_in
    begin = time.monotonic()
    with _silenced(quiet), fixed_addresses(wishes.turn > 0), records.lent(variables):
        child, status = launch.run_child(path, request.command, variables)
    seconds = time.monotonic() - begin
    # Not before the run: NumPy starts threads.
    from homing.report.results import Results, read_results

    done = Simulated(status, child, records, Results())
    with afterwards("the records"):
        done.kept, lost = records.written()
        tell_records(done.kept, launch.exit_status(status), {})
        done.results = read_results(done.kept, budget=None if wishes.lines else 5.0)
        done.results.unreadable += [lost] if lost else []
    results = done.results
    results.command = request.command
    results.status = launch.exit_status(status)
    results.seconds = seconds
    results.notes = [*request.notes(), *notes, *results.notes]
    return done


@contextmanager
def fixed_addresses(wanted: bool = True) -> Iterator[None]:
    """Children find their memory at the same addresses at every run: which lines share a set of a cache, and
    which data a page, depends on them."""
    libc = ctypes.CDLL(None)
    before = libc.personality(0xFFFFFFFF) if wanted else -1
    if before >= 0:
        libc.personality(before | _ADDR_NO_RANDOMIZE)
    try:
        yield
    finally:
        if before >= 0:
            libc.personality(before)


class _silenced:
    """stdout to nowhere while a child is started and waited for."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.saved = -1

    def __enter__(self) -> None:
        if self.wanted:
            sys.stdout.flush()
            self.saved = os.dup(1)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.close(nowhere)

    def __exit__(self, *_: object) -> None:
        if self.wanted:
            os.dup2(self.saved, 1)
            os.close(self.saved)


def _environment(
    machine: Machine, wishes: Wishes, folder: str, options: dict[str, str]
) -> tuple[dict[str, str], list[str]]:
    variables = dict(os.environ)
    for name in places.VARIABLES:
        variables.pop(name, None)
    variables.update(
        {
            # The runtime must not place threads on this computer, nor spin where threads outnumber its cores.
            "OMP_PROC_BIND": "false",
            "OMP_WAIT_POLICY": "passive",
            "OMP_DYNAMIC": "false",
            "KMP_BLOCKTIME": "0",
            # The simulator places pages at first touch; the engine need not place them once more.
            "HOMING_INITIAL": wishes.initial,
        }
    )
    if not _TEAMS.fullmatch(variables.get("OMP_NUM_THREADS", "")):
        variables["OMP_NUM_THREADS"] = str(machine.cpu_count)
    variables.setdefault("HOMING_GRANULE", str(machine.page))
    notes: list[str] = []
    if "HOMING_COSTS" not in variables:
        costs_path = os.path.join(folder, "costs.toml")
        with open(costs_path, "w", encoding="utf-8") as file:
            file.write(costs(machine))
        variables["HOMING_COSTS"] = costs_path
    variables.update(options)
    stated = os.path.join(folder, "machine.toml")
    with open(stated, "w", encoding="utf-8") as file:
        file.write(description(machine, wishes))
    variables["HOMING_SIMULATOR"] = stated
    return variables, notes


def unmet(distributions: Sequence[Distribution], results: Results) -> list[str]:
    """A line for each distribution of an array that there is not. The simulator compares symbols
    (src/base/options.hpp: glob_match)."""
    from homing.area_rules import no_array

    areas = [area for process in results.processes for area in process.record.areas]
    names = {area.name for area in areas if area.name}

    def is_there(pattern: str) -> bool:
        shape = pattern.replace("[", "[[]")
        return any(fnmatchcase(name, shape) for name in names)

    return [
        f"--distribute {one.area}: {no_array(one.area, names)}"
        for one in distributions
        if results.processes and not is_there(one.area)
    ]


def _say_missing(request: Request, done: Simulated, path: str) -> None:
    """Where nothing was counted there is a line that says why; beside the summary, if that goes
    elsewhere."""
    results = done.results
    if results.counts is None:
        results.aside = results.aside or _why_missing(request, done, path)
        if request.summary != "stderr":
            print(f"homing run: {results.aside}", file=sys.stderr)


def _why_missing(request: Request, done: Simulated, path: str) -> str:
    return why_not_counted(
        path,
        [process.record for process in done.results.processes],
        request.option("HOMING") == "off",
        request.option("HOMING_ONLY"),
        launch.signal_name(launch.exit_status(done.status)),
    )
