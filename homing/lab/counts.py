"""What the counter plugin (lab/counter_plugin.c) counted, a phase at a time.

That is cache misses by (node of the CPU, home node of the page), of user-space loads and stores in a
*stated* cache (Counts.cache), private to each CPU. The oracle is computed from the same counts: every page
lies on the node that missed on it most, so its remote misses are the fewest that any placement without
migration can have, for the phases asked for together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import LAB_FAILED, LabError

FORMAT_VERSION = 1
Matrix = list[list[int]]  # [node of the CPU][home node of the page]


@dataclass(frozen=True)
class CacheModel:
    """The cache that the counts are stated for."""

    kib: int
    ways: int
    line: int  # bytes
    coherent: bool  # a remote store invalidates other CPUs' copies

    def __str__(self) -> str:
        coherent = "coherent" if self.coherent else "not coherent"
        return f"{self.kib} KiB {self.ways}-way LRU, {self.line}-byte lines, private to each CPU, {coherent}"


@dataclass(frozen=True)
class PhaseCounts:
    phase: int
    accesses: int
    misses: Matrix
    unknown_home_misses: int  # home not found: not in the matrix
    invalidation_misses: int  # the part of the misses that remote stores caused
    upgrades: int  # stores that hit a line of which others had copies: not misses
    untracked_misses: int  # the part of the matrix that the oracle leaves out (page index full)
    run_oracle_remote: int  # remote misses here, with every page on its majority node of the whole run


@dataclass(frozen=True)
class _OracleRange:
    first_phase: int
    last_phase: int
    misses: int
    remote: int


@dataclass(frozen=True)
class Counts:
    """One counted run. Every method takes phase numbers, or None for all phases that counted something."""

    nodes: int
    cpus: int
    cpus_per_node: int
    cache: CacheModel
    nodes_verified: int  # by the self-test at boot; a lab that counts has them all
    self_test_mismatches: int
    pages: int  # different pages that missed
    phases: dict[int, PhaseCounts]
    oracle: tuple[_OracleRange, ...]

    def _chosen(self, phases: Iterable[int] | None) -> list[PhaseCounts]:
        if phases is None:
            return list(self.phases.values())
        return [self.phases[phase] for phase in sorted(set(phases)) if phase in self.phases]

    def accesses(self, phases: Iterable[int] | None = None) -> int:
        return sum(phase.accesses for phase in self._chosen(phases))

    def matrix(self, phases: Iterable[int] | None = None) -> Matrix:
        chosen = self._chosen(phases)
        nodes = range(self.nodes)
        return [[sum(phase.misses[cpu][home] for phase in chosen) for home in nodes] for cpu in nodes]

    def misses(self, phases: Iterable[int] | None = None) -> int:
        return sum(map(sum, self.matrix(phases)))

    def remote(self, phases: Iterable[int] | None = None) -> int:
        """Misses on pages whose home is another node than the CPU's."""
        matrix = self.matrix(phases)
        return sum(map(sum, matrix)) - sum(matrix[node][node] for node in range(self.nodes))

    def remote_fraction(self, phases: Iterable[int] | None = None) -> float:
        """remote / misses, 0 where nothing missed."""
        return _ratio(self.remote(phases), self.misses(phases))

    def home_shares(self, phases: Iterable[int] | None = None) -> list[float]:
        """Each node's share of the misses that it served: tells serial from round-robin placement."""
        matrix = self.matrix(phases)
        total = sum(map(sum, matrix))
        return [_ratio(sum(row[home] for row in matrix), total) for home in range(self.nodes)]

    def _oracle_range(self, phases: Iterable[int] | None) -> _OracleRange | None:
        chosen = [phase.phase for phase in self._chosen(phases)]
        if not chosen:
            return None
        for entry in self.oracle:
            if (entry.first_phase, entry.last_phase) == (chosen[0], chosen[-1]):
                between = [phase for phase in self.phases if chosen[0] <= phase <= chosen[-1]]
                if between == chosen:
                    return entry
        raise ValueError(
            f"no oracle for phases {chosen}: there is one for single phases, the last ones, and all"
        )

    def oracle_remote(self, phases: Iterable[int] | None = None) -> int:
        """Remote misses with every page on its majority node of these phases (ValueError if with gaps)."""
        entry = self._oracle_range(phases)
        return entry.remote if entry else 0

    def oracle_remote_fraction(self, phases: Iterable[int] | None = None) -> float:
        entry = self._oracle_range(phases)
        return _ratio(entry.remote, entry.misses) if entry else 0.0

    def run_oracle_remote(self, phases: Iterable[int] | None = None) -> int:
        """Remote misses in these phases under one placement for the whole run, the oracle's."""
        return sum(phase.run_oracle_remote for phase in self._chosen(phases))

    def run_oracle_remote_fraction(self, phases: Iterable[int] | None = None) -> float:
        return _ratio(self.run_oracle_remote(phases), self.misses(phases))

    def to_dict(self) -> dict[str, Any]:
        """Everything, with the derived fractions, for `--json` files."""
        return {
            "version": FORMAT_VERSION,
            "machine": {"nodes": self.nodes, "cpus": self.cpus, "cpus_per_node": self.cpus_per_node},
            "cache": {
                "kib": self.cache.kib,
                "ways": self.cache.ways,
                "line": self.cache.line,
                "coherent": self.cache.coherent,
                "indexed": "virtual",
                "replacement": "LRU",
                "private_to": "cpu",
            },
            "pages": self.pages,
            "run": self._summary(None),
            "phases": [{"phase": phase, **self._summary([phase])} for phase in self.phases],
            "oracle": [
                {
                    "first_phase": entry.first_phase,
                    "last_phase": entry.last_phase,
                    "misses": entry.misses,
                    "remote": entry.remote,
                    "remote_fraction": _ratio(entry.remote, entry.misses),
                }
                for entry in self.oracle
            ],
        }

    def _summary(self, phases: list[int] | None) -> dict[str, Any]:
        chosen = self._chosen(phases)
        return {
            "accesses": self.accesses(phases),
            "misses": self.matrix(phases),
            "total_misses": self.misses(phases),
            "remote_misses": self.remote(phases),
            "remote_fraction": self.remote_fraction(phases),
            "oracle_remote_misses": self.oracle_remote(phases),
            "oracle_remote_fraction": self.oracle_remote_fraction(phases),
            "run_oracle_remote_misses": self.run_oracle_remote(phases),
            "home_shares": self.home_shares(phases),
            "invalidation_misses": sum(phase.invalidation_misses for phase in chosen),
            "upgrades": sum(phase.upgrades for phase in chosen),
            "unknown_home_misses": sum(phase.unknown_home_misses for phase in chosen),
            "untracked_misses": sum(phase.untracked_misses for phase in chosen),
        }


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def recorded(text: str) -> dict[str, Any] | None:
    """The dictionary of `to_dict` from its JSON in a record; None where it is damaged."""
    try:
        data = json.loads(text)
        for one in (data["run"], *data["phases"]):
            if not math.isfinite(one["remote_fraction"]) or not math.isfinite(one["oracle_remote_fraction"]):
                return None
            if not isinstance(one["total_misses"], int):
                return None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return dict(data)


def parse(text: str, where: str = "counts") -> Counts:
    """Counts from the plugin's JSON. LabError if it is not that."""
    try:
        data = json.loads(text)
        if data["version"] != FORMAT_VERSION:
            raise LabError(
                f"{where}: version {data['version']} of the counts, this homing reads {FORMAT_VERSION}"
            )
        machine, cache, self_test = data["machine"], data["cache"], data["self_test"]
        nodes = int(machine["nodes"])
        phases = {}
        for entry in data["phases"]:
            phase = PhaseCounts(
                phase=int(entry["phase"]),
                accesses=int(entry["accesses"]),
                misses=[[int(count) for count in row] for row in entry["misses"]],
                unknown_home_misses=int(entry["unknown_home_misses"]),
                invalidation_misses=int(entry["invalidation_misses"]),
                upgrades=int(entry["upgrades"]),
                untracked_misses=int(entry["untracked_misses"]),
                run_oracle_remote=int(entry["run_oracle_remote"]),
            )
            if len(phase.misses) != nodes or any(len(row) != nodes for row in phase.misses):
                raise LabError(f"{where}: phase {phase.phase} has no {nodes} x {nodes} matrix of misses")
            phases[phase.phase] = phase
        return Counts(
            nodes=nodes,
            cpus=int(machine["cpus"]),
            cpus_per_node=int(machine["cpus_per_node"]),
            cache=CacheModel(
                int(cache["kib"]), int(cache["ways"]), int(cache["line"]), bool(cache["coherent"])
            ),
            nodes_verified=int(self_test["nodes_verified"]),
            self_test_mismatches=int(self_test["mismatches"]),
            pages=int(data["pages"]),
            phases=dict(sorted(phases.items())),
            oracle=tuple(
                _OracleRange(
                    int(entry["first_phase"]),
                    int(entry["last_phase"]),
                    int(entry["misses"]),
                    int(entry["remote"]),
                )
                for entry in data["oracle"]
            ),
        )
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise LabError(f"{where}: not a file of the counter plugin ({error})", LAB_FAILED) from None


def read(path: Path) -> Counts:
    try:
        text = path.read_text()
    except OSError as error:
        raise LabError(f"{path}: the counter wrote no counts ({error.strerror})", LAB_FAILED) from None
    return parse(text, str(path))
