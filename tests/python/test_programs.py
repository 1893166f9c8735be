"""Hostile programs (tests/programs), each run with and without homing: same stdout, same exit status or
signal.

The library is preloaded; HOMING_ASSUME_NODES=4 makes observation and decisions real on any machine. Each run
is also judged by its record: where homing should have worked, it must have, so that no test passes because
the library slept.

The short selection runs every case once, with compilers and mechanisms in rotation; marked `full`, every case
runs with every compiler and mechanism.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from homing.options import load_options
from homing.records import Record, read_record
from tests.compilers import why_not
from tests.patience import PATIENCE
from tests.programs.build import VARIANTS, CannotBuild, build, build_all
from tests.programs.cases import CASES, Case

TREE = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("HOMING_LIBRARY", TREE / "build" / "release" / "libhoming.so"))

#: Of the run time: what observation may take by default.
USUAL_SHARE = float(next(option.default for option in load_options() if option.name == "observe_share"))
COMMON = {"HOMING_ASSUME_NODES": "4", "HOMING_OBSERVE_SHARE": "1"}
MECHANISMS: dict[str, dict[str, str]] = {
    # As many windows as there can be: a deed meets one in most iterations.
    "windows": {**COMMON, "HOMING_REFERENCES": "windows"},
    "first-iteration": {**COMMON, "HOMING_MECHANISM": "next-touch", "HOMING_ARM": "first-iteration"},
    "every-region": {  # the guard would leave out regions by the time that they take
        **COMMON,
        "HOMING_MECHANISM": "next-touch",
        "HOMING_ARM": "every-region",
        "HOMING_GUARD": "off",
    },
    "observe": {**COMMON, "HOMING_MECHANISM": "observe", "HOMING_REFERENCES": "windows"},
    "auto": {"HOMING_ASSUME_NODES": "4"},
}
#: Of which every region wants a window: what ends them, or is said of them, must show.
THOROUGH = "every-region"


@dataclass(frozen=True)
class Outcome:
    """What a user sees of a run."""

    status: int
    stdout: str

    def __str__(self) -> str:
        return f"status {self.status}\n{self.stdout[-3000:]}"


def environment(extra: dict[str, str]) -> dict[str, str]:
    """The tests' own environment without what would change a run, and few threads that do not spin."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("OMP_", "GOMP_", "KMP_", "HOMING")) and key != "LD_PRELOAD"
    }
    return {**kept, "OMP_NUM_THREADS": "3", "OMP_WAIT_POLICY": "passive", **extra}


def run(
    command: list[str | Path], extra: dict[str, str], folder: Path, stdin: str = ""
) -> tuple[Outcome, str]:
    """One run and what it said on stderr."""
    try:
        ended = subprocess.run(
            command,
            env=environment(extra),
            cwd=folder,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired as error:
        pytest.fail(
            f"{' '.join(map(str, command))} did not end within {PATIENCE} s; stdout: {error.stdout!r}"
        )
    return Outcome(ended.returncode, ended.stdout), ended.stderr


def records(folder: Path) -> list[Record]:
    """All records that a run left, the longest observation first."""
    found = [read_record(str(path)) for path in folder.glob("*.homing")]
    return sorted(found, key=lambda record: -len(record.iterations))


def did(record: Record) -> str:
    """What homing did, for a message."""
    states = [iteration.state for iteration in record.iterations]
    return (
        f"facts {record.facts}; {len(states)} iterations {sorted(set(states))}; "
        f"{sum(iteration.references for iteration in record.iterations)} references; "
        f"{record.overhead.faults} faults; {sum(move.moved for move in record.moves)} pages moved; "
        f"messages {[message.text for message in record.messages]}"
    )


def assert_lasted(best: Record) -> None:
    """References came in to the end of a run of which every region is observed."""
    last = best.iterations[-len(best.iterations) // 4 :]
    assert sum(iteration.references for iteration in last) > 0, did(best)


def assert_worked(found: list[Record], mechanism: str) -> None:
    """Homing found the program's iteration and learnt from it."""
    assert found, "the library left no record"
    best = found[0]
    assert best.iterations, did(best)
    if MECHANISMS[mechanism].get("HOMING_MECHANISM") == "next-touch":
        assert best.overhead.faults > 0, did(best)
    else:
        # A first window that was held up has spent what a short run has for observation by default.
        spent = "HOMING_OBSERVE_SHARE" not in MECHANISMS[mechanism] and (
            best.overhead.observing > USUAL_SHARE * best.iterations[-1].time
        )
        assert sum(iteration.references for iteration in best.iterations) > 0 or spent, did(best)
        assert any(iteration.state != "searching" for iteration in best.iterations), did(best)


@cache
def plain(
    program: Path, arguments: tuple[str, ...], extra: tuple[tuple[str, str], ...], stdin: str, folder: Path
) -> Outcome:
    """The run without homing: once for each program."""
    return run([program, *arguments], dict(extra), folder, stdin)[0]


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def pairs(selected: list[tuple[Case, str, str]]) -> set[tuple[str, str]]:
    return {(case.program, variant) for case, variant, _ in selected}


def short_selection() -> list[tuple[Case, str, str]]:
    """Each case once; each mechanism in turn, windows more often than others (they are what can break), and
    each compiler by program, so that few have to be built twice."""
    order = ("windows", "windows", "every-region", "windows", "first-iteration", "windows", "observe", "auto")
    chosen: list[tuple[Case, str, str]] = []
    programs = list(dict.fromkeys(case.program for case in CASES))
    for number, case in enumerate(CASES):
        if (
            case.program == "regions" and not case.environment
        ):  # the plain case: with every compiler, in short too
            chosen += [(case, variant, "windows") for variant in case.variants]
            continue
        variant = case.variants[programs.index(case.program) % len(case.variants)]
        mechanism = case.mechanism or (THOROUGH if case.lasts or case.says else order[number % len(order)])
        chosen.append((case, variant, mechanism if mechanism not in case.limits else "observe"))
    return chosen


SHORT = short_selection()
_SHORT = set(SHORT)
FULL = [
    (case, variant, mechanism)
    for case in CASES
    for variant in case.variants
    for mechanism in MECHANISMS
    if (case, variant, mechanism) not in _SHORT and mechanism not in case.limits
]


def name_of(selected: tuple[Case, str, str]) -> str:
    case, variant, mechanism = selected
    extra = "".join(f"-{key}={value}" for key, value in case.environment.items())
    return f"{case.name}{extra}-{variant}-{mechanism}"


@pytest.fixture(scope="session")
def built(request: pytest.FixtureRequest) -> None:
    """Everything that the selected tests need, two at a time, before the first of them."""
    wanted = {
        (item.callspec.params["selected"][0].program, item.callspec.params["selected"][1])
        for item in request.session.items
        if hasattr(item, "callspec") and "selected" in item.callspec.params
    }
    build_all(wanted)


def compare(selected: tuple[Case, str, str], scratch: Path, tmp_path: Path) -> None:
    case, variant, mechanism = selected
    assert LIBRARY.is_file(), f"{LIBRARY} is not built"
    if VARIANTS[variant].compiler is None:
        pytest.skip(why_not(VARIANTS[variant].compilers[0]) or "no compiler")
    try:
        program = build(case.program, variant)
    except CannotBuild as error:
        pytest.fail(str(error))
    extra = dict(case.environment)
    expected = plain(program, case.arguments, tuple(extra.items()), case.stdin, scratch)
    assert expected.status == case.status, f"without homing: {expected}"
    assert "wrong" not in expected.stdout, f"without homing: {expected}"
    with_homing = {
        **extra,
        **MECHANISMS[mechanism],
        "LD_PRELOAD": str(LIBRARY),
        "HOMING_RECORD": str(tmp_path / "%p.homing"),
    }
    outcome, errors = run([program, *case.arguments], with_homing, tmp_path, case.stdin)
    found = records(tmp_path)
    told = "\n".join(did(record) for record in found) or "no record"
    assert outcome == expected, (
        f"with homing: {outcome}\nwithout: {expected}\nstderr: {errors[-2000:]}\n{told}"
    )
    if case.works:
        assert_worked(found, mechanism)
    if mechanism == THOROUGH:
        if case.lasts:
            assert_lasted(found[0])
        if case.says:
            assert any(case.says in message.text for record in found for message in record.messages), told


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("selected", SHORT, ids=name_of)
def test_survives(selected: tuple[Case, str, str], scratch: Path, tmp_path: Path) -> None:
    compare(selected, scratch, tmp_path)


@pytest.mark.full
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("selected", FULL, ids=name_of)
def test_survives_in_every_way(selected: tuple[Case, str, str], scratch: Path, tmp_path: Path) -> None:
    compare(selected, scratch, tmp_path)


@pytest.mark.parametrize("variant", ["gcc", "clang"])
def test_little_lies_on_the_heap_behind_the_first_region(variant: str, tmp_path: Path) -> None:
    """What homing and the libraries that it opens allocate when it starts is not the program's heap's. In the
    middle of several runs: a block that is longer by some bytes (the loader's, of each thread) may just fit
    into a hole of the heap or just not. Clang's runtime puts a copy of the environment there."""
    program = build("heap", variant)

    def behind(variable: str, others: int) -> int:
        extra = {variable: str(LIBRARY), **{f"ANOTHER_{i}": "" for i in range(others)}}
        outcome, errors = run([program, "behind"], {**MECHANISMS["auto"], **extra}, tmp_path)
        assert outcome.status == 0, errors
        return int(outcome.stdout)

    # Names of one length, so that both environments are of the same size.
    more = [behind("LD_PRELOAD", others) - behind("LD_PRELOAX", others) for others in range(0, 45, 5)]
    assert abs(median(more)) < 512, more


def test_what_the_c_library_allocates_for_itself_is_no_area(tmp_path: Path) -> None:
    program = build("library_blocks")
    extra = {"LD_PRELOAD": str(LIBRARY), "HOMING_RECORD": str(tmp_path / "%p.homing")}
    assert run([program], {**MECHANISMS["windows"], **extra}, tmp_path)[0].status == 0
    found = records(tmp_path)
    assert_worked(found, "windows")
    assert {area.bytes for area in found[0].areas} == {2 << 20}, [area.name for area in found[0].areas]


def test_memory_that_is_advised_is_an_area(tmp_path: Path) -> None:
    """Prefaulted by MADV_POPULATE_WRITE, say: it is the same memory as before."""
    program = build("advised")
    extra = {"LD_PRELOAD": str(LIBRARY), "HOMING_RECORD": str(tmp_path / "%p.homing")}
    assert run([program], {**MECHANISMS["windows"], **extra}, tmp_path)[0].status == 0
    areas = records(tmp_path)[0].areas
    assert sum(area.bytes for area in areas if area.kind == "mapping") == 2 * (2 << 20), areas


def test_every_source_is_run() -> None:
    """No program is forgotten: each source belongs to a case, or to the hooks' tests."""
    run_elsewhere = {
        "library",
        "library_user",
        "plugin_host",
        "own_tool",
        "no_openmp",
        "closed",
        "user_preload",
        "affinity",
        "affinity_objects",
        "queues",
        "static_runtime",
        "tool_library",
        "serial",
        "fortran_serial",
        "short_regions",
        "library_raw",
        "library_names",
        "names_user",
        "footprint",
    }
    sources = {
        path.stem for path in (TREE / "tests" / "programs").iterdir() if path.suffix in (".c", ".cpp", ".f90")
    }
    assert sources - {case.program for case in CASES} - run_elsewhere == set()
