"""The counter's cache model, page counts and oracle against a slow model in Python."""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from homing.lab import counts
from homing.lab.counts import Counts

SHIM = Path(__file__).parents[1] / "lab" / "model_shim.c"


class Options(ctypes.Structure):
    _fields_ = (
        ("vcpus", ctypes.c_uint),
        ("nodes", ctypes.c_uint),
        ("cpus_per_node", ctypes.c_uint),
        ("cache_bytes", ctypes.c_size_t),
        ("ways", ctypes.c_uint),
        ("line_bytes", ctypes.c_uint),
        ("coherent", ctypes.c_bool),
        ("max_pages", ctypes.c_uint32),
    )


class CAccess(ctypes.Structure):
    _fields_ = (
        ("address", ctypes.c_uint64),
        ("cpu", ctypes.c_uint32),
        ("phase", ctypes.c_uint32),
        ("store", ctypes.c_uint32),
        ("home", ctypes.c_uint32),
    )


@dataclass(frozen=True)
class Access:
    address: int
    cpu: int
    store: bool
    phase: int = 1
    home: int = 0


class Model:
    """The compiled model."""

    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library))
        self.library.shim_create.restype = ctypes.c_char_p
        self.library.shim_report.restype = ctypes.c_char_p
        self.library.shim_run.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]

    def create(self, **changes: int | bool) -> str | None:
        options = Options(4, 4, 1, 4096, 4, 64, True, 1 << 16)
        for name, value in changes.items():
            setattr(options, name, value)
        error = self.library.shim_create(ctypes.byref(options))
        return error.decode() if error else None

    def run(self, accesses: list[Access]) -> list[bool]:
        array = (CAccess * len(accesses))(*((a.address, a.cpu, a.phase, a.store, a.home) for a in accesses))
        hits = (ctypes.c_uint8 * len(accesses))()
        self.library.shim_run(array, len(accesses), hits)
        return [bool(hit) for hit in hits]

    def report(self, path: Path) -> Counts:
        assert self.library.shim_report(str(path).encode()) is None
        return counts.read(path)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build the counter's model with")
    library = tmp_path_factory.mktemp("model") / "model.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, SHIM], check=True)
    return Model(library)


def slow_hits(accesses: list[Access], size: int, ways: int, line: int, coherent: bool) -> list[bool]:
    """LRU sets as lists, most recent first; valid copies as a set of (cpu, line)."""
    sets: dict[tuple[int, int], list[int]] = defaultdict(list)
    valid: set[tuple[int, int]] = set()
    cpus = {access.cpu for access in accesses}
    hits = []
    for access in accesses:
        number = access.address // line
        lines = sets[access.cpu, number % (size // (ways * line))]
        present = number in lines
        if present:
            lines.remove(number)
        lines.insert(0, number)
        del lines[ways:]
        hits.append(present and (not coherent or (access.cpu, number) in valid))
        valid.add((access.cpu, number))
        if access.store:
            valid.difference_update((cpu, number) for cpu in cpus if cpu != access.cpu)
    return hits


def random_accesses(seed: int, count: int, lines: int, cpus: int, phases: int = 1) -> list[Access]:
    """Clustered addresses, so that sets fill up and CPUs meet; homes by page."""
    random_ = random.Random(seed)
    homes = [random_.randrange(4) for _ in range(lines * 64 // 4096 + 1)]
    accesses = []
    for i in range(count):
        line = min(int(random_.expovariate(6 / lines)), lines - 1)
        accesses.append(
            Access(
                address=0x7F0000000000 + line * 64 + random_.randrange(64),
                cpu=random_.randrange(cpus),
                store=random_.random() < 0.3,
                phase=1 + i * phases // count,
                home=homes[line * 64 // 4096],
            )
        )
    return accesses


@pytest.mark.parametrize("coherent", [True, False])
@pytest.mark.parametrize(
    ("size", "ways", "line"), [(4096, 4, 64), (4096, 1, 64), (8192, 16, 32), (65536, 16, 64)]
)
def test_hits_are_those_of_a_plain_lru_model(
    model: Model, size: int, ways: int, line: int, coherent: bool
) -> None:
    for seed in range(3):
        accesses = random_accesses(seed, 8_000, lines=4 * size // 64, cpus=3)
        assert model.create(cache_bytes=size, ways=ways, line_bytes=line, coherent=coherent) is None
        assert model.run(accesses) == slow_hits(accesses, size, ways, line, coherent)


def test_a_remote_store_invalidates_and_a_remote_load_does_not(model: Model) -> None:
    steps = [(0, False), (1, False), (0, False), (1, True), (0, False), (0, True), (0, True), (1, False)]
    expected = [False, False, True, True, False, True, True, False]
    accesses = [Access(0x10000, cpu, store) for cpu, store in steps]
    assert model.create() is None
    assert model.run(accesses) == expected


def test_counts_matrix_and_oracle(model: Model, tmp_path: Path) -> None:
    accesses = random_accesses(7, 30_000, lines=2048, cpus=4, phases=3)
    assert model.create(cpus_per_node=2, nodes=2) is None
    accesses = [Access(a.address, a.cpu, a.store, a.phase, a.home % 2) for a in accesses]
    hits = model.run(accesses)
    result = model.report(tmp_path / "counts.json")

    misses = [access for access, hit in zip(accesses, hits, strict=True) if not hit]
    assert sorted(result.phases) == [1, 2, 3]
    assert result.accesses() == len(accesses)
    for phases in ([1], [2], [3], [1, 2], [2, 3], None):
        chosen = [access for access in misses if phases is None or access.phase in phases]
        matrix = [[0, 0], [0, 0]]
        by_page: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for access in chosen:
            matrix[access.cpu // 2][access.home] += 1
            by_page[access.address >> 12][access.cpu // 2] += 1
        assert result.matrix(phases) == matrix
        assert result.oracle_remote(phases) == sum(sum(nodes) - max(nodes) for nodes in by_page.values())
    # One placement for the run is never better than one for each phase, and the phases add up to the run.
    assert sum(result.run_oracle_remote([phase]) for phase in (1, 2, 3)) == result.oracle_remote()
    assert all(result.run_oracle_remote([phase]) >= result.oracle_remote([phase]) for phase in (1, 2, 3))
    assert 0 < sum(phase.invalidation_misses for phase in result.phases.values()) < len(misses)


def test_reset_forgets_everything(model: Model, tmp_path: Path) -> None:
    accesses = random_accesses(3, 5_000, lines=512, cpus=4)
    assert model.create() is None
    first = model.run(accesses)
    model.library.shim_reset()
    empty = model.report(tmp_path / "empty.json")
    assert empty.phases == {}
    assert empty.pages == 0
    assert empty.oracle_remote_fraction() == 0
    assert model.run(accesses) == first


def test_a_full_page_index_is_reported_not_hidden(model: Model, tmp_path: Path) -> None:
    assert model.create(max_pages=1024) is None
    model.run([Access(0x1000000 + page * 4096, page % 4, True) for page in range(3000)])
    result = model.report(tmp_path / "full.json")
    assert result.misses() == 3000
    assert result.phases[1].untracked_misses == 3000 - 1024
    assert result.pages == 1024


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": 17},
        {"vcpus": 33},
        {"cpus_per_node": 0},
        {"line_bytes": 48},
        {"ways": 3},
        {"cache_bytes": 100},
        {"max_pages": 1},
    ],
)
def test_bad_options_are_named(model: Model, wrong: dict[str, int]) -> None:
    error = model.create(**wrong)
    assert error is not None
    assert "\n" not in error
