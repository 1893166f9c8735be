"""Programs that call homing by name, on described machines: its C interface, locality queues, the names of
UPMlib and the Fortran module. They are linked with homing's library, as everywhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.python.hwloc_files import beside_hbm, write
from tests.python.test_simulator import COMPILERS, FOUR, TREE, build, homing, simulate

__all__ = ["build"]

OBSERVE = ("--mechanism", "observe")
BUILD = Path(os.environ.get("HOMING_BUILD_DIR", TREE / "build" / "release"))
LINK = (f"-I{TREE / 'include'}", f"-L{BUILD}", "-lhoming", f"-Wl,-rpath,{BUILD}")
FORTRAN = str(TREE / "fortran" / "homing.f90")


@pytest.mark.parametrize("machine", [FOUR, "hbm", "numa:8 core:2"], ids=["four", "hbm", "synthetic"])
def test_calls_tell_of_the_described_machine(
    tmp_path: Path, build: Callable[..., Path], machine: str
) -> None:
    if machine == "hbm":  # four nodes of 16 CPUs, and four beside them that have no CPUs of their own
        machine = write(tmp_path, beside_hbm())
    nodes = "8" if ":" in machine else "4"
    program = build("interface.c", "gcc", *LINK)
    run = simulate(tmp_path, program, nodes, on=machine, flags=OBSERVE, OMP_NUM_THREADS=nodes)
    assert run["output"] == "done\n", run["said"]
    assert run["status"] == 0
    assert [len(row) for row in run["counts"]["run"]["misses"]] == [int(nodes)] * int(nodes)
    assert "mine" in [area["name"] for area in run["counts"]["areas"]]


def test_every_call_keeps_its_promise_on_a_described_machine(
    tmp_path: Path, build: Callable[..., Path]
) -> None:
    """One homing is in the process, the simulator's: a second one would not know of the first one's areas."""
    run = simulate(tmp_path, build("../api/calls.c", "gcc", *LINK), "4", LD_DEBUG="files")
    assert run["output"] == "passed\n"
    started = {line.split()[-1] for line in run["said"].splitlines() if "calling init:" in line}
    assert [os.path.basename(one) for one in started if "libhoming" in one] == ["libhoming_simulator.so"]
    mapped = next(area for area in run["counts"]["areas"] if area["name"] == "mapped")
    assert mapped["total_misses"] > 0
    assert len(run["counts"]["iterations"]) >= 12, "iterations are those that were called"


def told_apart(text: str) -> tuple[str, list[float]]:
    """The words of a line of the summary, and its numbers but for microseconds (of the simulation)."""
    text = re.sub(r"[\d.]+ us", "some us", text)
    number = r"\d[\d,.]*\d|\d"
    return " ".join(re.sub(number, "#", text).split()), [
        float(one.replace(",", "")) for one in re.findall(number, text)
    ]


def test_the_worked_example_of_phases_is_as_its_page_says(tmp_path: Path, build: Callable[..., Path]) -> None:
    page = (TREE / "docs/phases.md").read_text()
    commands = re.findall(r"^    homing run (--on .*) -- ./phases ?(.*)$", page, re.MULTILINE)
    shown = re.findall(r"^    phases {5}(.*\n(?: {15}.*\n)*)", page, re.MULTILINE)
    assert len(commands) == len(shown) == 2
    program = build(str(TREE / "examples/phases.c"), "gcc", *LINK)
    for (flags, words), told in zip(commands, shown, strict=True):
        machine, *options = flags.split()[1:]
        more = {"OMP_NUM_THREADS": "16", "OMP_PROC_BIND": "spread", "OMP_PLACES": "cores"}
        run = simulate(tmp_path, program, *words.split(), on=machine, flags=tuple(options), **more)
        assert run["output"].startswith("sum ")
        found = next(line for line in run["said"].splitlines() if line.startswith("phases "))
        text, numbers = told_apart(told)
        found_text, found_numbers = told_apart(found.removeprefix("phases"))
        assert found_text.startswith(text), (told, found)
        assert found_numbers[: len(numbers)] == pytest.approx(numbers, abs=2), (told, found)


@pytest.mark.parametrize(
    "source", [("figure1.f90", "gfortran"), ("figure1.c", "gcc")], ids=lambda one: one[0]
)
def test_figure_1_of_upmlib_sends_pages_home(
    tmp_path: Path, build: Callable[..., Path], source: tuple[str, str]
) -> None:
    run = simulate(tmp_path, build(f"../api/{source[0]}", source[1], *LINK))
    assert run["output"].split()[0] == "sum"
    assert float(run["output"].split()[1]) == 5 * 64**3 * (1 + 20 * 1.0)
    named = [area for area in run["counts"]["areas"] if area["name"].startswith("upmlib")]
    assert len(named) == 3, "the three arrays"
    assert run["counts"]["moved_pages"] > 1000
    iterations = run["counts"]["iterations"]
    assert iterations[0]["remote_fraction"] > 0.3, "the arrays were initialised by one thread"
    assert iterations[-2]["remote_fraction"] < 0.05, "after the last call one thread sums up"


def test_the_fortran_module_on_a_described_machine(tmp_path: Path, build: Callable[..., Path]) -> None:
    program = build("../api/module.f90", "gfortran", FORTRAN, f"-J{tmp_path}", *LINK)
    run = simulate(tmp_path, program)
    assert run["status"] == 0, run["said"]
    lines = run["output"].splitlines()
    assert lines[0] == "active 1"
    assert lines[1].split() == ["sum", f"{512 * sum(10 * j for j in range(1, 513)):.1f}"]
    assert [area["name"] for area in run["counts"]["areas"]] == ["upmlib", "kept"], "named last so"


def test_fortran_queues_on_a_described_machine(tmp_path: Path, build: Callable[..., Path]) -> None:
    program = build("../api/queues.f90", "gfortran", FORTRAN, f"-J{tmp_path}", *LINK)
    run = simulate(tmp_path, program, flags=OBSERVE)
    assert (run["output"], run["status"]) == ("32 32\n", 0), run["said"]


def test_tasks_from_queues_run_where_their_data_are(tmp_path: Path, build: Callable[..., Path]) -> None:
    run = simulate(tmp_path, build("../../examples/tasks.c", "gcc", *LINK), flags=OBSERVE)
    assert (run["output"], run["status"]) == ("sum 5000000\n", 0), run["said"]


@pytest.mark.parametrize(
    ("compiler", "libraries"),
    [
        ("gcc", ["-lhoming"]),
        ("g++", ["-lhoming"]),
        ("gfortran", ["-lhoming"]),
        ("gfortran", ["-lhoming_fortran", "-lhoming"]),
        ("clang", ["-l", "homing"]),
        ("flang", ["-lhoming"]),
    ],
)
def test_programs_that_call_homing_need_no_folders(
    tmp_path: Path, compiler: str, libraries: list[str]
) -> None:
    """The header, the Fortran module and the library are found in a source tree and in a wheel, too."""
    if shutil.which(COMPILERS[compiler]) is None:
        pytest.skip(f"{compiler} is not installed")
    fortran = compiler in ("gfortran", "flang")
    source = "tests/api/figure2.f90" if fortran else "examples/phases.c"
    language: list[str | Path] = ["-x", "c++", "-fpermissive", "-w"] if compiler == "g++" else []
    if compiler == "flang":  # the module that is built is gfortran's
        language = ["-module-dir", tmp_path, TREE / "fortran" / "homing.f90"]
    use = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "LIBRARY_PATH": "", "CPATH": ""}
    words = ["-O2", "-fopenmp", *libraries, *language, TREE / source]
    made = homing("cc", COMPILERS[compiler], *words, "-o", tmp_path / "program", **use)
    assert made.returncode == 0, made.stderr
    loaded = subprocess.run(["ldd", tmp_path / "program"], capture_output=True, text=True).stdout
    assert re.search(r"libhoming\.so\S* => /", loaded), loaded
    result = simulate(tmp_path, tmp_path / "program")
    assert result["status"] == 0, result["said"]
    assert result["processes"][0]["phases"], "the calls reached homing"


def test_calls_take_memory_that_begins_and_ends_within_pages_of_the_machine(
    tmp_path: Path, build: Callable[..., Path]
) -> None:
    program = build("between_holes.c", "gcc", "-lhoming")
    result = simulate(tmp_path, program, flags=("--page-size", "64KiB"))
    assert result["status"] == 0, result["said"]
    taken, refused = result["output"].splitlines()
    assert taken.split() == ["0", "0", "0", "0", "1"]
    assert len(set(refused.split())) == 1 and "0" not in refused.split()
