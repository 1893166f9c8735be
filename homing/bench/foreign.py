"""Programs that are not part of homing, in the guest: those that a file describes (docs/foreign.md)."""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from homing.bench import compared
from homing.bench.balancing import STEP_TIMEOUT
from homing.bench.compared import Case, Comparison, Required
from homing.bench.guest_runs import GuestRuns, Outcome
from homing.bench.places import kept_folder
from homing.bench.programs import Output
from homing.bench.results import Parts, Results, check_only, content_key
from homing.errors import UserError, os_reason
from homing.installation import find_library
from homing.lab.built import find_built
from homing.lab.errors import LAB_FAILED, LabError
from homing.lab.options import CountOptions, LabOptions
from homing.lab.steps import StepResult

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NODES = 4
#: Of eight programs.
REQUIRED = {"windows": Required((6, 8), (6, 8)), "hint_faults": Required((1, 1), (1, 1))}
_MARKS = "libhoming_region_marks.so"


@dataclass(frozen=True)
class Program:
    """One of the file."""

    name: str
    command: tuple[str, ...]  #: the program's path is absolute
    folder: str
    iterations: int
    threads: int = NODES
    regions_before: int = 0  #: parallel regions before the first iteration
    marks: str = "regions"  #: or "program": it marks its phases itself
    first: tuple[str, ...] = ()  #: the command for few iterations
    first_iterations: int = 0
    results: str = ""  #: a regular expression: lines of its output that are the same in every run
    environment: Mapping[str, str] = field(default_factory=dict)

    def case(self) -> Case:
        return Case(self.name, self.name, self.command, first=self.first or self.command)


_KINDS: dict[str, type] = {
    "name": str,
    "command": list,
    "folder": str,
    "iterations": int,
    "threads": int,
    "regions_before": int,
    "marks": str,
    "first": list,
    "first_iterations": int,
    "results": str,
    "environment": dict,
}


def read_programs(path: str) -> list[Program]:
    """The programs of a file. UserError where it is not what docs/foreign.md says."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {os_reason(error)}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not TOML: {error}") from error
    entries = data.get("program")
    if not isinstance(entries, list) or not entries or set(data) != {"program"}:
        raise UserError(
            f"{path}: must have one or more tables [[program]] and nothing else (docs/foreign.md)"
        )
    programs = [_program(entry, path, number) for number, entry in enumerate(entries, 1)]
    names = [program.name for program in programs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UserError(f"{path}: program '{min(twice)}' is there twice")
    return programs


def _program(entry: Any, path: str, number: int) -> Program:
    where = f"{path}: program {number}"
    if not isinstance(entry, dict):
        raise UserError(f"{where}: must be a table [[program]]")
    for key, value in entry.items():
        kind = _KINDS.get(key)
        if kind is None:
            raise UserError(f"{where}: unknown key '{key}'; there are {', '.join(_KINDS)}")
        held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        texts = all(isinstance(one, str) for one in held)
        if not isinstance(value, kind) or isinstance(value, bool) or not texts:
            raise UserError(f"{where}: {key}: wants {_wanted(kind)}")
    if missing := [key for key in ("name", "command", "iterations") if not entry.get(key)]:
        raise UserError(f"{where}: {missing[0]} is missing")
    where = f"{path}: program '{entry['name']}'"
    if not re.fullmatch(r"[A-Za-z0-9_-]+", entry["name"]):
        raise UserError(f"{where}: name: only letters, digits, - and _")
    if entry.get("marks", "regions") not in ("regions", "program"):
        raise UserError(f"{where}: marks: must be regions or program")
    threads = entry.get("threads", NODES)
    if threads < NODES or threads % NODES != 0:
        raise UserError(f"{where}: threads: must be a multiple of {NODES}, the nodes of the guest")
    if bool(entry.get("first")) != bool(entry.get("first_iterations")):
        raise UserError(f"{where}: first and first_iterations belong together")
    for key in ("iterations", "first_iterations", "regions_before"):
        if entry.get(key, 0) < 0:
            raise UserError(f"{where}: {key}: must not be negative")
    try:
        re.compile(entry.get("results", ""))
    except re.error as error:
        raise UserError(f"{where}: results: not a regular expression: {error}") from error
    folder = os.path.join(os.path.dirname(os.path.abspath(path)), entry.get("folder", ""))
    if not os.path.isdir(folder):
        raise UserError(f"{where}: folder: {folder} is not there")
    values: dict[str, Any] = dict(entry, folder=os.path.normpath(folder))
    for key in ("command", "first"):
        if entry.get(key):
            program, *arguments = entry[key]
            values[key] = (_find(program, folder, where), *arguments)
    return Program(**values)


def _wanted(kind: type) -> str:
    names = {str: "text", int: "a whole number", list: "a list of words", dict: "names and texts"}
    return names[kind]


def _find(program: str, folder: str, where: str) -> str:
    """The path of a program: with a slash in it, seen from the folder."""
    found = os.path.join(folder, program) if "/" in program else shutil.which(program)
    if found is None or not os.access(found, os.X_OK) or os.path.isdir(found):
        raise UserError(f"{where}: command: {program} is no program that can be run")
    return os.path.normpath(found)


class ForeignRuns(GuestRuns):
    """Runs programs that know nothing of the lab: their phases are marked for them."""

    def __init__(self, programs: Sequence[Program], parts: Parts) -> None:
        count = LabOptions(count=CountOptions(), cpus_per_node=programs[0].threads // NODES)
        super().__init__(options=count)
        self._programs = {program.name: program for program in programs}
        self._parts = parts

    def run(self, name: str, command: Sequence[str], **more: Any) -> Outcome:
        """name: PROGRAM.WAY."""
        program = self._programs[name.partition(".")[0]]
        whole = tuple(command) == program.command
        iterations = program.iterations if whole else program.first_iterations
        variables = {}
        if program.marks == "regions" and whole:
            begin, regions = program.regions_before, self._regions(program)
            variables["HOMING_MARK_ITERATIONS"] = str(begin)
            variables["HOMING_MARK_LAST_HALF"] = str(begin + max(regions - begin, 0) // 2)

        def read(result: StepResult) -> Output:
            return output_of(program, result, iterations)

        env = _environment(program, variables)
        return super().run(name, command, env=env, cwd=program.folder, read=read, **more)

    def _regions(self, program: Program) -> int:
        """How many parallel regions a run has."""
        key = f"{program.name} {content_key(program.command[0])} {' '.join(program.command[1:])} regions"
        if (kept := self._parts.get(key)) is not None:
            return int(kept)
        path = os.path.join(self._folder, "regions")
        super().run(
            f"{program.name}.regions",
            program.command,
            env=_environment(program, {"HOMING_MARK_REGIONS": path}),
            cwd=program.folder,
            timeout=STEP_TIMEOUT,
            read=lambda result: output_of(program, result, program.iterations),
        )
        try:
            regions = int(Path(path).read_text())
            os.unlink(path)
        except (OSError, ValueError) as error:
            raise LabError(
                f"{program.name}: no parallel region was seen: only programs built by GCC have theirs "
                'counted; let it mark its phases itself, and say marks = "program"',
                LAB_FAILED,
            ) from error
        self._parts.put(key, regions)
        return regions


def _environment(program: Program, marking: Mapping[str, str]) -> dict[str, str]:
    """The program's environment. marking: what its regions are counted for; nothing: they are not."""
    variables = {**program.environment, **marking, "OMP_NUM_THREADS": str(program.threads)}
    if marking:
        own = variables.get("LD_PRELOAD", "").split()
        variables["LD_PRELOAD"] = " ".join([str(find_built(_MARKS)), *own])
    return variables


def output_of(program: Program, result: StepResult, iterations: int) -> Output:
    """What a program of apps/ would have printed. LabError where the program failed."""
    if result.exit_status != 0:
        words = " ".join(result.stderr.decode(errors="replace").split()[-30:])
        why = "was stopped at its time limit" if result.timed_out else f"ended with {result.exit_status}"
        raise LabError(f"{result.label}: {' '.join(result.step.command)} {why}: {words}", LAB_FAILED)
    pages = result.counts.pages if result.counts is not None else 0
    fields = {
        "bytes": str(4096 * max(pages, 1)),
        "iterations": str(iterations),
        "time total": f"{result.seconds:.6f} s",
        "time iteration least, median, most": " ".join(3 * [f"{result.seconds / iterations:.6f}"]) + " s",
    }
    lines = result.stdout.decode(errors="replace").splitlines()
    same = [line for line in lines if program.results and re.search(program.results, line)]
    return Output({**fields, **{f"result {number}": line for number, line in enumerate(same, 1)}})


def run(
    size: str,
    only: Sequence[str],
    tell: Callable[[list[str]], str],
    redo: bool = False,
    programs: str = "",
) -> Results:
    """The benchmark. only: names of programs, and of ways; programs: the file."""
    if not programs:
        raise UserError("homing bench foreign wants --programs FILE: what to run (docs/foreign.md)")
    described = read_programs(programs)
    check_only(only, [*(program.name for program in described), *compared.WAYS])
    chosen = [program for program in described if program.name in only] or described
    ways = [way for way in compared.WAYS if way in only] or compared.WAYS

    def wanted(_case: Case, way: str) -> bool:
        return way in ways

    key = {"counter": content_key(str(find_built("libhoming_counter_plugin.so")))}
    parts = Parts(kept_folder() / "foreign.json", key)
    comparison = Comparison([program.case() for program in chosen])
    if redo:
        again = [step for step in compared.steps_of(comparison.cases) if step.way in ways]
        parts.drop([part for part in parts.names() if compared.is_of(part, again)])
    library = content_key(find_library())
    for threads in dict.fromkeys(program.threads for program in chosen):
        alike = [program for program in chosen if program.threads == threads]
        group = Comparison([program.case() for program in alike], comparison.runs)
        guest = functools.partial(ForeignRuns, alike, parts)
        compared.measure("foreign", group, wanted, parts, library, guest)
    results = Results(
        "foreign",
        "Programs that homing was not made for: remote cache misses in a guest with 4 nodes",
        tell(["foreign", "--programs", "FILE"]),
        notes=[
            *compared.NOTES,
            "The last half begins with half of the parallel regions of the iterations. The footprint is "
            "that of all pages that missed.",
        ],
    )
    compared.fill(results, comparison, REQUIRED)
    return results
