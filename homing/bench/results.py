"""Results of a benchmark: NAME.json for programs, NAME.md for people; and parts kept while it runs."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import math
import os
import platform
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from homing import __version__
from homing.bench.progress import Progress
from homing.errors import UserError, os_reason

SCHEMA = 1


@dataclass(frozen=True)
class Row:
    """One number. `note` is for people; `paper` is the number of the paper that the bench repeats."""

    name: str
    value: float
    unit: str
    note: str = ""
    paper: float | None = None

    def to_dict(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"name": self.name, "value": self.value, "unit": self.unit}
        if self.paper is not None:
            entry["paper"] = self.paper
        return {**entry, "note": self.note} if self.note else entry


@dataclass(frozen=True)
class Check:
    """A requirement and whether it is met."""

    name: str
    passed: bool
    text: str


@dataclass
class Results:
    """What a benchmark found. details: whatever else programs may want. texts: tables for people, ready to
    print; pictures: PNG files by the name that they get beside the results, in which NAME_ is put before
    it."""

    name: str
    title: str
    command: str
    rows: list[Row] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    pictures: dict[str, bytes] = field(default_factory=dict)


def machine() -> dict[str, Any]:
    """This machine, in a few words."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    from homing.costs import nodes_with_cpus

    return {
        "cpu": model,
        "cpus": len(os.sched_getaffinity(0)),
        "nodes": nodes_with_cpus(),
        "kernel": platform.release(),
        "load": round(os.getloadavg()[0], 2),
    }


def write(results: Results, folder: Path) -> tuple[Path, Path]:
    """Write NAME.json and NAME.md into the folder and return their paths. UserError where that fails."""
    here = machine()
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    data = {
        "schema": SCHEMA,
        "bench": results.name,
        "title": results.title,
        "homing": __version__,
        "date": now,
        "command": results.command,
        "machine": here,
        "rows": [row.to_dict() for row in results.rows],
        "checks": [{"name": one.name, "passed": one.passed, "text": one.text} for one in results.checks],
        "notes": results.notes,
        "details": results.details,
    }
    json_path, text_path = folder / f"{results.name}.json", folder / f"{results.name}.md"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace(json_path, json.dumps(_known(data), indent=1, allow_nan=False) + "\n")
        _replace(text_path, "\n".join(_markdown(results, here, now)) + "\n")
        for name, png in results.pictures.items():
            _replace(folder / f"{results.name}_{name}.png", png)
    except OSError as error:
        raise UserError(f"{folder}: {os_reason(error)}") from error
    return json_path, text_path


def _known(value: Any) -> Any:
    """The same with null for numbers that are not known: JSON has no NaN."""
    if isinstance(value, Mapping):
        return {key: _known(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_known(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _markdown(results: Results, here: Mapping[str, Any], now: str) -> list[str]:
    lines = [
        f"# {results.title}",
        "",
        f"`{results.command}`, homing {__version__}, {now}",
        "",
        f"Machine: {here['cpu']}, {here['cpus']} CPUs, {here['nodes']} NUMA node(s), Linux {here['kernel']}, "
        f"load {here['load']} when it ended.",
        "",
    ]
    for note in results.notes:
        lines += [note, ""]
    for text in results.texts:
        lines += ["```", text, "```", ""]
    for name in results.pictures:
        lines += [f"![{name}]({results.name}_{name}.png)", ""]
    if results.checks:
        lines += ["| required | | found |", "|---|---|---|"]
        lines += [
            f"| {one.name} | {'yes' if one.passed else '**no**'} | {one.text} |" for one in results.checks
        ]
        lines.append("")
    noted = any(row.note for row in results.rows)
    compared = any(row.paper is not None for row in results.rows)
    lines.append("| row | value |" + (" paper |" if compared else "") + " unit |" + (" |" if noted else ""))
    lines.append("|---|---:|" + ("---:|" if compared else "") + "---|" + ("---|" if noted else ""))
    for row in results.rows:
        line = f"| {row.name} | {format_value(row.value)} |"
        if compared:
            line += f" {'' if row.paper is None else format_value(row.paper)} |"
        lines.append(line + f" {row.unit} |" + (f" {row.note} |" if noted else ""))
    return lines


def format_value(value: float) -> str:
    """Whole numbers with separators, others to four digits."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4g}"


def check_only(only: Sequence[str], names: Collection[str]) -> None:
    """UserError where `--only` asks for parts that a benchmark does not have."""
    if unknown := set(only) - set(names):
        raise UserError(f"--only {','.join(sorted(unknown))}: there are {', '.join(names)}")


class Parts:
    """Results of parts, kept in build/bench/NAME.json, so that a bench that was interrupted goes on.

    A part counts only under the same `key`: what was measured, and by which library. Any thread may keep one.
    """

    def __init__(self, path: Path, key: Mapping[str, Any]) -> None:
        self._path = path
        self._key = dict(key)
        self._parts: dict[str, Any] = {}
        self._writing = threading.Lock()
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            data = json.loads(path.read_text())
            if data["key"] == self._key:
                self._parts = dict(data["parts"])

    def get(self, name: str) -> Any | None:
        """The part, or None where it has to be measured."""
        return self._parts.get(name)

    def put(self, name: str, value: Any) -> None:
        """Keep a part."""
        with self._writing:
            self._parts[name] = value
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                _replace(self._path, json.dumps({"key": self._key, "parts": self._parts}) + "\n")
            except OSError as error:
                raise UserError(f"{self._path}: {os_reason(error)}") from error

    def measure(self, names: Sequence[str], progress: Progress, measure: Callable[[str], Any]) -> None:
        """Measure those of these parts that are not kept, a step of the progress each."""
        try:
            for name in names:
                if self.get(name) is None:
                    progress.step(name)
                    self.put(name, measure(name))
                    progress.finished()
                else:
                    progress.finished(skipped=True)
        finally:
            progress.close()

    def names(self) -> list[str]:
        """All parts that are kept."""
        return list(self._parts)

    def drop(self, names: Sequence[str]) -> None:
        """Forget parts, to measure them again."""
        for name in names:
            self._parts.pop(name, None)


def library_key(path: str) -> list[float]:
    """Tells one build of the library from the next."""
    facts = os.stat(path)
    return [facts.st_size, facts.st_mtime]


def content_key(path: str) -> str:
    """Tells one file's content from another's."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:12]


def _replace(path: Path, content: str | bytes) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")  # another process may write, too
    part.write_bytes(content.encode() if isinstance(content, str) else content)
    os.replace(part, path)
