"""The C interface, the Fortran module and the names of UPMlib, as programs use them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from homing.records import read_record
from homing.report.results import read_results
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HOMING_BUILD_DIR", ROOT / "build" / "release"))
SOURCES = ROOT / "tests" / "api"


def compile_program(compiler: str, source: str, folder: Path, *more: str) -> Path:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    program = folder / Path(source).stem
    command = [compiler, "-O1", "-g", "-fopenmp", *more, str(SOURCES / source), "-o", str(program)]
    command += [f"-I{ROOT / 'include'}", f"-L{BUILD}", "-lhoming", f"-Wl,-rpath,{BUILD}"]
    subprocess.run(command, check=True, cwd=folder)
    return program


def run(
    program: Path,
    *arguments: str,
    nodes: int,
    record: Path | None = None,
    homing: str = "on",
    options: Mapping[str, str] = MappingProxyType({}),
    said: str = "",
) -> str:
    environment = dict(os.environ, OMP_NUM_THREADS="2", OMP_WAIT_POLICY="passive", OMP_PROC_BIND="true")
    environment["HOMING_ASSUME_NODES"] = str(nodes)
    environment["HOMING_COSTS"] = ""
    environment["HOMING"] = homing
    environment.update(options)
    if record:
        environment["HOMING_RECORD"] = str(record)
    done = subprocess.run(
        [str(program), *arguments], env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == said
    return done.stdout


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
@pytest.mark.parametrize("nodes", [4, 0])
def test_every_call_keeps_its_promise(compiler: str, nodes: int, tmp_path: Path) -> None:
    program = compile_program(compiler, "calls.c", tmp_path)
    assert run(program, str(nodes), nodes=nodes) == "passed\n"


def one_node() -> bool:
    return len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) < 2


def test_what_is_no_memory_is_refused_and_what_goes_is_not_watched(tmp_path: Path) -> None:
    program = compile_program("gcc", "ranges.c", tmp_path)
    record = tmp_path / "r.homing"
    assert run(program, "several", nodes=4, record=record) == "passed\n"
    seen = read_record(record)
    ended = {area.name: area.id in seen.area_ends for area in seen.areas if area.kind == "named"}
    assert ended.pop("kept") is False
    assert set(ended) >= {"unmapped", "remapped"}
    assert all(ended.values()), ended
    assert sum(move.moved for move in seen.moves) >= 256, "what was placed is in the summary"
    assert sum(one.bytes for one in seen.unwatched) < 64 << 20, "homing's own tables are no memory of its"


def test_where_there_is_one_node_calls_succeed(tmp_path: Path) -> None:
    if not one_node():
        pytest.skip("this machine has several nodes")
    assert run(compile_program("gcc", "ranges.c", tmp_path), "one", nodes=0) == "passed\n"


@pytest.mark.parametrize("nodes", [4, 0])
def test_where_homing_is_switched_off_calls_say_so(nodes: int, tmp_path: Path) -> None:
    if not nodes and not one_node():
        pytest.skip("this machine has several nodes")
    program = compile_program("gcc", "ranges.c", tmp_path)
    assert run(program, "several" if nodes else "one", "off", nodes=nodes, homing="off") == "passed\n"


#: As the paper's program is compiled; names with two underscores, and with none.
NAMES = [(), ("-fsecond-underscore",), ("-fno-underscoring",)]
FIGURE_1 = [
    *(("gfortran", "figure1.f90", *flags) for flags in NAMES),
    ("flang-new-19", "figure1.f90"),
    ("gcc", "figure1.c"),
    ("g++", "figure1.c", "-xc++"),
]


@pytest.mark.parametrize("words", FIGURE_1, ids="_".join)
def test_figure_1_of_upmlib_works_as_printed(words: tuple[str, ...], tmp_path: Path) -> None:
    program = compile_program(words[0], words[1], tmp_path, *words[2:])
    record = tmp_path / "r.homing"
    alone = run(program, nodes=0)
    # With the guard nothing would move: what each node uses fits into its cache.
    assert run(program, nodes=4, record=record, options={"HOMING_GUARD": "off"}) == alone
    seen = read_record(record)
    # Before the first call homing may guess.
    bases = [one.basis for one in seen.iterations]
    while bases[0] == "guess":
        bases.pop(0)
    assert set(bases[1:]) == {"call"}
    assert sum(area.name == "upmlib" for area in seen.areas) == 3, "the three arrays are named"
    assert sum(move.moved for move in seen.moves) > 1000, "a half of them goes to the second thread's node"


@pytest.mark.parametrize("flags", NAMES, ids=lambda flags: "".join(flags) or "plain")
def test_figure_2_of_upmlib_moves_pages_and_brings_them_back(flags: tuple[str, ...], tmp_path: Path) -> None:
    module = str(ROOT / "fortran" / "homing.f90")
    program = compile_program("gfortran", "figure2.f90", tmp_path, module, f"-J{tmp_path}", *flags)
    alone, record = run(program, nodes=0).splitlines(), tmp_path / "r.homing"
    moved = run(program, nodes=4, record=record).splitlines()
    assert moved[-1] == alone[-1], "the sum"
    assert moved[0] == "step 1: 0 then 0"
    for line in moved[1:-1]:
        assert re.fullmatch(r"step \d: [1-9]\d* then 0", line), moved
    (phase,) = read_record(record).phases
    assert (phase.replays, phase.refused) == (7, 0)
    assert 1 <= phase.planned <= 20
    assert phase.moved == phase.undone == 7 * phase.planned


def test_replay_moves_so_many_pages_as_were_asked_for(tmp_path: Path) -> None:
    program = compile_program("gcc", "phases.c", tmp_path)
    assert run(program, nodes=4).split() == ["0", "0", *3 * ["8", "0"], "passed"]


def test_undo_leaves_what_the_program_has_placed_since(tmp_path: Path) -> None:
    program = compile_program("gcc", "phases.c", tmp_path)
    assert run(program, "place", nodes=4).splitlines()[4:] == ["512 there", "passed"]


def test_calls_of_phases_that_mean_nothing_have_a_line_each(tmp_path: Path) -> None:
    program = compile_program("gcc", "phases.c", tmp_path)
    record = tmp_path / "r.homing"
    assert run(program, "misuse", nodes=4, record=record) == "passed\n"
    said = [message.text for message in read_record(record).messages]
    for part in (
        "upmlib_replay moves nothing: no call of upmlib_record came before it",
        "upmlib_replay moves nothing: a phase lies between two calls of upmlib_record",
        "upmlib_undo moves nothing",
        "upmlib_record was called inside a parallel region",
        "upmlib_migrate_memory was called inside a parallel region",
        ") registers nothing: the call belongs into serial code",
        ") registers nothing: 0 bytes are no array",
        ") registers nothing: the program has no such memory",
        ", -8) registers nothing: the size is negative",
        ", -16) registers nothing: the size is negative",
    ):
        assert sum(part in text for text in said) >= 1, (part, said)


ALL_HOT = ["first 1", "second 1", "in_program 1"]


@pytest.mark.parametrize("arm", ["first-iteration", "every-region"])
def test_next_touch_moves_hot_memory_only(arm: str, tmp_path: Path) -> None:
    program = compile_program("gcc", "hot.c", tmp_path)
    options = {"HOMING_GUARD": "off", "HOMING_MECHANISM": "next-touch", "HOMING_ARM": arm}
    found = run(program, "later", "99", nodes=4, options=options).splitlines()
    assert found == ["first 1", "second 0", "in_program 0"]


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        (("later", "0"), ALL_HOT),
        (("later", "3"), ALL_HOT),
        (("later", "30"), ALL_HOT),
        (("later", "99"), ["first 1", "second 0", "in_program 0"]),
        (("renamed",), ["first 1", "second 1", "in_program 0"]),
        (("given up", "3"), ALL_HOT),
    ],
    ids=" ".join,
)
def test_memory_may_become_hot_at_any_time(
    scenario: tuple[str, ...], expected: list[str], tmp_path: Path
) -> None:
    """Before the first decision, after it, and where homing rests; under another name; and all memory once
    none is hot."""
    program = compile_program("gcc", "hot.c", tmp_path)
    record = tmp_path / "r.homing"
    options = {"HOMING_GUARD": "off"}
    assert run(program, *scenario, nodes=4, record=record, options=options).splitlines() == expected
    names = {area.id: area.name for area in read_record(record).areas}
    assert ("velocity" if scenario == ("renamed",) else "first") in names.values()
    if scenario[0] == "later":
        assert ("second" in names.values()) == (scenario[1] != "99")
    for id_, ownership in read_record(record).ownerships.items():
        if names[id_] == "in_program":
            assert ownership.cold == (expected[2] == "in_program 0"), "the report says why it stays"


def test_memory_that_is_registered_again_is_one_area_and_replayed(tmp_path: Path) -> None:
    program = compile_program("gcc", "hot.c", tmp_path)
    record = tmp_path / "r.homing"
    run(program, "phases", nodes=4, record=record)
    seen = read_record(record)
    assert sum(area.name == "first" for area in seen.areas) == 1
    (phase,) = seen.phases
    assert (phase.replays, phase.planned) == (39, 20)
    assert phase.moved == phase.undone == 39 * 20


SMALL = r"""
#include <homing/homing.h>
#include <stdlib.h>
static double little[8192]; /* 64 KiB: what is smaller than --area-minimum is an area by the call alone */
int main(void) {
    double *first = calloc(8192, 8), *second = calloc(8192, 8);
    upmlib_memrefcnt(little, sizeof little);
    upmlib_memrefcnt(first, 65536);
    upmlib_memrefcnt(&second[0], 65536);
#pragma omp parallel for
    for (int i = 0; i < 8192; ++i) little[i] += first[i] + second[i];
    return 0;
}
"""


def test_small_arrays_that_are_registered_keep_their_names(tmp_path: Path) -> None:
    (tmp_path / "small.c").write_text(SMALL)
    program, record = compile_program("gcc", str(tmp_path / "small.c"), tmp_path), tmp_path / "r.homing"
    run(program, nodes=4, record=record)
    (process,) = read_results([str(record)]).processes
    names = {area.name.shown for area in process.areas}
    assert names == {"little (small.c:4)", "first (small.c:8)", "second (small.c:9)"}


WILD = ("order", "unbalanced", "freed", "thousand", "forked", "thread", "period")
#: With `--guard off` pages move at once, by whatever moves them.
MECHANISMS = ("iterative", "hybrid", "record-replay", "sampling", "next-touch")


@pytest.mark.parametrize("words", [("gcc",), ("g++", "-xc++")], ids="".join)
def test_whatever_the_calls_are_the_program_is_as_it_was(words: tuple[str, ...], tmp_path: Path) -> None:
    """Any order, unbalanced, nested, from other threads, in forked children, of memory that goes, a thousand
    phases, phases of no length, periods that break: the arrays keep their values."""
    program = compile_program(words[0], "wild.c", tmp_path, *words[1:])
    for at, scenario in enumerate(WILD):
        turn = MECHANISMS[at % len(MECHANISMS)]
        for mechanism in {"iterative", turn} if words == ("gcc",) else {turn}:
            options = {
                "HOMING_MECHANISM": mechanism,
                "HOMING_GUARD": "off",
                "HOMING_SAMPLING_INTERVAL": "0.01",
            }
            assert run(program, scenario, nodes=4, options=options) == "passed\n", (scenario, mechanism)


def test_the_fortran_module(tmp_path: Path) -> None:
    program = compile_program(
        "gfortran", "module.f90", tmp_path, str(ROOT / "fortran" / "homing.f90"), f"-J{tmp_path}"
    )
    record = tmp_path / "r.homing"
    said = "homing: locality queues: blocks that nobody took: 1 without a home\n"
    lines = run(program, nodes=4, record=record, said=said).splitlines()
    assert lines[0] == "active 1"
    assert lines[1].split() == ["sum", f"{512 * sum(10 * j for j in range(1, 513)):.1f}"]
    names = {area.name for area in read_record(record).areas}
    assert any(name.startswith("kept") for name in names), f"a blank name renames nothing: {names}"


@pytest.mark.parametrize("compiler", ["gfortran", "flang-new-19"])
def test_fortran_procedures_work_on_the_blocks_of_queues(compiler: str, tmp_path: Path) -> None:
    module = str(ROOT / "fortran" / "homing.f90")
    program = compile_program(compiler, "queues.f90", tmp_path, module, f"-J{tmp_path}")
    assert run(program, nodes=4) == "32 32\n"


@pytest.mark.parametrize("compiler", ["g++", "clang++-19"])
@pytest.mark.parametrize(
    ("flags", "why"),
    [(("-std=c++20", "-fno-exceptions"), "needs exceptions"), (("-std=c++17",), "needs C++20")],
)
def test_what_the_header_of_queues_needs_is_one_error(
    compiler: str, flags: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    source = tmp_path / "tasks.cpp"
    source.write_text("#include <homing/tasks.hpp>\n")
    done = subprocess.run(
        [compiler, *flags, "-fsyntax-only", f"-I{ROOT / 'include'}", str(source)],
        capture_output=True,
        text=True,
    )
    (error,) = [line for line in done.stderr.splitlines() if "error:" in line]
    assert why in error


def test_queues_by_cache_take_no_block_by_its_memory(tmp_path: Path) -> None:
    program = compile_program("g++", "caches.cpp", tmp_path, "-std=c++20")
    assert "memory is at home on nodes" in run(program, nodes=4)
