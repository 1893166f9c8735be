"""Programs on a simulated machine: built with `homing cc`, run with `homing run --on`, counted."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from tests.compilers import why_not
from tests.patience import PATIENCE
from tests.rotation import in_rotation

TREE = Path(__file__).resolve().parents[2]
PROGRAMS = TREE / "tests" / "simulated"
FOUR = str(PROGRAMS / "four.toml")
LINES = (1 << 20) // 64  #: of the array of sweep.c

COMPILERS = {
    "gcc": "gcc",
    "g++": "g++",
    "gfortran": "gfortran",
    "clang": "clang-19",
    "clang++": "clang++-19",
    "flang": "flang-new-19",
}


def environment(**more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HOMING", "OMP_", "LD_", "GOMP_", "KMP_", "TSAN_"))
    }
    return {**kept, "PYTHONPATH": str(TREE), "OMP_NUM_THREADS": "4", "OMP_WAIT_POLICY": "passive", **more}


def homing(*words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "homing", *map(str, words)],
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Build a program with `homing cc`, once; the exam's results are kept in a folder of the session."""
    folder = tmp_path_factory.mktemp("simulated")
    cache = str(tmp_path_factory.mktemp("cache"))

    def make(source: str, compiler: str = "gcc", *flags: str) -> Path:
        if "lang" in compiler and (reason := why_not(COMPILERS[compiler])):
            pytest.skip(reason)
        if shutil.which(COMPILERS[compiler]) is None:
            pytest.skip(f"{compiler} is not installed")
        name = "_".join([Path(source).stem, compiler, *(flag.strip("-") for flag in flags)])
        program = folder / name.replace("/", "_")
        if not program.exists():
            words = [
                "cc",
                COMPILERS[compiler],
                "-O2",
                "-g",
                "-fopenmp",
                *flags,
                PROGRAMS / source,
                "-o",
                program,
            ]
            made = homing(*words, XDG_CACHE_HOME=cache)
            assert made.returncode == 0, made.stderr
        return program

    return make


def simulate(
    folder: Path, program: Path, *words: str, on: str = FOUR, flags: tuple[str, ...] = (), **more: str
) -> Any:
    """Run, and give the JSON back with the process's output in it."""
    path = folder / "out.json"
    path.unlink(missing_ok=True)
    ran = homing("run", "--on", on, "--json", path, *flags, "--", program, *words, **more)
    result = json.loads(path.read_text())
    result["output"], result["said"] = ran.stdout, ran.stderr
    result["status"] = ran.returncode
    return result


# --- known counts -----------------------------------------------------


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_misses_of_a_known_program(tmp_path: Path, build: Callable[..., Path], compiler: str) -> None:
    result = simulate(tmp_path, build("sweep.c", compiler), "8", flags=("--mechanism", "observe"))
    assert result["status"] == 0
    run = result["counts"]["run"]
    # Each thread sweeps its quarter, which is on node 0, and does not fit into its cache.
    matrix = run["misses"]
    for node in range(4):
        assert matrix[node][0] == pytest.approx(8 * LINES / 4 + (LINES if node == 0 else 0), rel=0.02)
        assert sum(matrix[node][1:]) < 0.01 * LINES
    assert run["home_shares"][0] > 0.99
    assert run["remote_fraction"] == pytest.approx(6 / 9, abs=0.01)
    # With every page on its owner's node, only what node 0 initialised is remote.
    assert run["oracle_remote_fraction"] == pytest.approx(0.75 / 9, abs=0.02)
    # A write before; a read and a write an element and sweep, and a second read where the compiler does not
    # forward what it wrote.
    each = {"gcc": 2, "clang": 3}[compiler]
    assert run["accesses"] == pytest.approx((1 << 17) * (8 * each + 1), rel=0.06)
    area = result["counts"]["areas"][0]
    assert area["variable"] == "u"
    assert area["share"] > 0.95
    region = max(result["counts"]["regions"], key=lambda one: one["total_misses"])
    assert region["count"] == 8
    assert region["remote_fraction"] == pytest.approx(0.75, abs=0.01)
    assert sum(one["total_misses"] for one in result["counts"]["iterations"]) == run["total_misses"]
    schema = json.loads((TREE / "homing" / "report" / "schema.json").read_text())
    for name in ("output", "said", "status"):
        del result[name]
    jsonschema.validate(result, schema)


# Random: of 256 pages, a share of 3/4 scatters by 0.027; four times that is allowed.
@pytest.mark.parametrize(
    ("initial", "remote", "scatter"),
    [
        ("round-robin", 0.75, 0.04),
        ("random", 0.75, 0.11),
        ("single-node", 6 / 9, 0.04),
        ("first-touch", 6 / 9, 0.04),
    ],
)
def test_initial_placements(
    tmp_path: Path, build: Callable[..., Path], initial: str, remote: float, scatter: float
) -> None:
    flags = ("--mechanism", "observe", "--initial", initial)
    run = simulate(tmp_path, build("sweep.c"), "8", flags=flags)["counts"]["run"]
    assert run["remote_fraction"] == pytest.approx(remote, abs=scatter)
    if initial in ("round-robin", "random"):
        assert max(run["home_shares"]) < 0.25 + scatter


def test_an_explicit_distribution(tmp_path: Path, build: Callable[..., Path]) -> None:
    flags = ("--mechanism", "observe", "--distribute", "heap*=block")
    run = simulate(tmp_path, build("sweep.c"), "8", flags=flags)["counts"]["run"]
    assert run["remote_fraction"] < 0.12  # the initialisation alone


@pytest.mark.parametrize("mode", ["reuse", "mapped"])
def test_memory_that_is_given_back_loses_its_home(
    tmp_path: Path, build: Callable[..., Path], mode: str
) -> None:
    run = simulate(tmp_path, build("sweep.c"), "8", mode, flags=("--mechanism", "observe"))["counts"]["run"]
    assert run["remote_fraction"] < 0.05


@pytest.mark.parametrize("mechanism", ["iterative", "next-touch"])
def test_mechanisms_send_pages_home(tmp_path: Path, build: Callable[..., Path], mechanism: str) -> None:
    result = simulate(tmp_path, build("sweep.c"), "40", flags=("--mechanism", mechanism))
    assert result["counts"]["moved_pages"] == pytest.approx(192, abs=16)
    assert result["counts"]["run"]["remote_fraction"] < 0.4
    assert result["counts"]["iterations"][-1]["remote_fraction"] < 0.05
    assert result["counts"]["time"]["migration_seconds"] > 0


def test_pages_stay_with_the_node_that_has_most_of_their_misses(
    tmp_path: Path, build: Callable[..., Path]
) -> None:
    """A node with one miss of eight is seen as often as that, not as often as the one with seven."""
    result = simulate(tmp_path, build("mirrored.c"), flags=("--cache", "64KiB:2"))
    assert result["status"] == 0
    assert result["counts"]["moved_pages"] == 0
    assert result["counts"]["run"]["remote_fraction"] == pytest.approx(1 / 8, abs=0.02)


def test_iterations_beyond_the_rows_of_a_record_are_counted_together(
    tmp_path: Path, build: Callable[..., Path]
) -> None:
    result = simulate(tmp_path, build("sweep.c"), "2100", "short", flags=("--mechanism", "observe"))
    iterations = result["counts"]["iterations"]
    assert [one["number"] for one in iterations] == list(range(2002))
    for count in ("accesses", "total_misses"):
        assert sum(one[count] for one in iterations) == result["counts"]["run"][count]
    assert iterations[-1]["accesses"] > 50 * iterations[-2]["accesses"]
    # The simulator's own tables are no memory of the program's.
    assert sum(one["bytes"] for one in result["processes"][0]["unwatched"]) < 64 << 20


def test_every_region_arms_again(tmp_path: Path, build: Callable[..., Path]) -> None:
    flags = ("--mechanism", "next-touch", "--arm", "every-region")
    result = simulate(tmp_path, build("sweep.c"), "12", flags=flags)
    assert result["counts"]["moved_pages"] == pytest.approx(192, abs=16)


def test_threads_are_placed_on_the_described_machine(tmp_path: Path, build: Callable[..., Path]) -> None:
    def nodes(**more: str) -> list[int]:
        run = simulate(
            tmp_path, build("sweep.c"), "4", on="istanbul", flags=("--mechanism", "observe"), **more
        )
        return [sum(row) > 1000 for row in run["counts"]["run"]["misses"]]

    cache = {"OMP_NUM_THREADS": "4"}
    assert nodes(**cache) == [True] * 4
    assert nodes(**cache, OMP_PROC_BIND="close") == [True, False, False, False]
    assert nodes(**cache, OMP_PLACES="{6:6}", OMP_PROC_BIND="close") == [False, True, False, False]
    assert nodes(OMP_NUM_THREADS="8", OMP_PLACES="numa_domains(2)") == [True, True, False, False]


def test_threads_that_bind_themselves(tmp_path: Path, build: Callable[..., Path]) -> None:
    run = simulate(tmp_path, build("masks.c"), flags=("--mechanism", "observe"))
    assert run["output"] == "done\n"
    phases = {one["phase"]: np.array(one["misses"]) for one in run["counts"]["phases"]}
    assert sorted(phases) == [7, 9]
    # Each worker swept its MiB where it was bound, then on node 0; the main thread, one of them in phase 7.
    expected = LINES * np.array([[0, 1, 2, 1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    assert phases[7] == pytest.approx(expected, abs=200)
    assert phases[9].sum() == 0
    schema = json.loads((TREE / "homing" / "report" / "schema.json").read_text())
    jsonschema.validate(run["counts"], {"$defs": schema["$defs"], "$ref": "#/$defs/counts"})


def test_threads_outside_openmp_take_the_cpus_in_turn(tmp_path: Path, build: Callable[..., Path]) -> None:
    run = simulate(tmp_path, build("masks.c"), "unbound", flags=("--mechanism", "observe"))
    assert run["output"] == "done\n"
    (phase,) = (one for one in run["counts"]["phases"] if one["phase"] == 7)
    assert phase["remote_fraction"] == pytest.approx(1 / 7, abs=0.02), "but for the main thread's sweep"


def test_memory_that_is_no_longer_used_leaves_the_cache(tmp_path: Path, build: Callable[..., Path]) -> None:
    flags = ("--mechanism", "observe")
    result = simulate(tmp_path, build("used_before.c"), on="origin2000-16", flags=flags)
    lines = 3 * (1 << 20) // 128
    assert lines <= result["counts"]["run"]["total_misses"] < 1.1 * lines


def test_larger_pages_are_shared_by_more_threads(tmp_path: Path, build: Callable[..., Path]) -> None:
    flags = ("--mechanism", "observe", "--page-size", "2MiB")
    run = simulate(tmp_path, build("sweep.c"), "8", "reuse", flags=flags)["counts"]["run"]
    assert run["remote_fraction"] > 0.5  # the whole array is on one page, or two
    assert run["remote_fraction"] < 0.9


def test_a_shared_cache_serves_what_a_node_mate_has(tmp_path: Path, build: Callable[..., Path]) -> None:
    flags = ("--mechanism", "observe", "--shared-cache", "4MiB:16")
    run = simulate(tmp_path, build("sweep.c"), "8", on="istanbul", flags=flags)["counts"]["run"]
    assert run["total_misses"] < 1.6 * LINES * 2  # a node's part stays in its cache
    assert run["shared_hits"] > 0


def test_misses_by_source_line(tmp_path: Path, build: Callable[..., Path]) -> None:
    for compiler in ("gcc", *(() if why_not("clang-19") else ("clang",))):
        result = simulate(
            tmp_path, build("sweep.c", compiler), "8", flags=("--mechanism", "observe", "--lines")
        )
        lines = {one["line"]: one for one in result["counts"]["lines"] if one["file"].endswith("sweep.c")}
        source = (PROGRAMS / "sweep.c").read_text().splitlines()
        sweep = next(at for at, text in enumerate(source, start=1) if "u[i] += 1" in text)
        assert max(lines.values(), key=lambda one: one["total_misses"])["line"] == sweep
        assert lines[sweep]["remote_fraction"] == pytest.approx(0.75, abs=0.02)


def test_turns_give_the_same_counts(tmp_path: Path, build: Callable[..., Path]) -> None:
    flags = ("--mechanism", "observe", "--deterministic")
    found = [simulate(tmp_path, build("sweep.c"), "3", flags=flags)["counts"]["run"] for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert found[0]["total_misses"] > LINES


def test_turns_go_on_where_a_destructor_runs_at_the_end_of_a_thread(
    tmp_path: Path, build: Callable[..., Path]
) -> None:
    flags = ("--mechanism", "observe", "--deterministic")
    result = simulate(tmp_path, build("survive.c"), "keys", flags=flags)
    assert result["status"] == 0, result["said"]
    assert float(result["output"]) == 3 * (1 + 40_000 * 39_999 / 2)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_turns_go_on_where_a_thread_waits_without_sleep(
    tmp_path: Path, build: Callable[..., Path], compiler: str
) -> None:
    flags = ("--mechanism", "observe", "--deterministic")
    result = simulate(tmp_path, build("taskgroup.c", compiler), "3", flags=flags)
    assert result["status"] == 0, result["said"]
    assert result["output"] == "3\n"
    if compiler == "clang":
        assert "counts may differ between runs" in result["said"]


# --- what it survives -----------------------------------------------------

#: The exit status of each mode.
PLAIN = dict.fromkeys(["", "nested", "tasks", "threads", "fork", "jump", "memory", "wide"], 0) | {"leave": 5}


@pytest.mark.parametrize(("mode", "compiler"), in_rotation(list(PLAIN), ["gcc", "clang"]))
def test_programs_survive(tmp_path: Path, build: Callable[..., Path], mode: str, compiler: str) -> None:
    program = build("survive.c", compiler, "-mcx16", "-latomic")
    plain = subprocess.run(
        [program, mode], env=environment(), capture_output=True, text=True, timeout=PATIENCE
    )
    result = simulate(tmp_path, program, mode, flags=("--mechanism", "next-touch"))
    assert plain.returncode == result["status"] == PLAIN[mode], result["said"]
    assert result["output"] == plain.stdout
    assert result["counts"]["run"]["accesses"] > 10_000


@pytest.mark.parametrize(
    ("source", "compiler"),
    [
        ("objects.cpp", "g++"),
        ("objects.cpp", "clang++"),
        ("sections.f90", "gfortran"),
        ("sections.f90", "flang"),
    ],
)
def test_other_languages(tmp_path: Path, build: Callable[..., Path], source: str, compiler: str) -> None:
    program = build(source, compiler)
    plain = subprocess.run(
        [program], env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    result = simulate(tmp_path, program)
    assert result["status"] == 0, result["said"]
    assert result["output"] == plain.stdout
    assert result["counts"]["run"]["total_misses"] > 1000
    if compiler == "gfortran":  # what was not instrumented is named
        assert "not counted but for memcpy and the like: libgfortran.so" in result["said"]


def test_a_thousand_threads(tmp_path: Path, build: Callable[..., Path]) -> None:
    result = simulate(tmp_path, build("many.c"), on="epyc-nps4", OMP_NUM_THREADS="4")
    assert result["output"] == "1000\n", result["said"]
    assert all(sum(row) > 0 for row in result["counts"]["run"]["misses"])


@pytest.mark.parametrize("flags", [(), ("-D_FORTIFY_SOURCE=2",)])
def test_memory_functions_are_counted(
    tmp_path: Path, build: Callable[..., Path], flags: tuple[str, ...]
) -> None:
    program = build("survive.c", "gcc", *flags, "-latomic")
    if flags:
        symbols = subprocess.run(["nm", "-D", program], capture_output=True, text=True, check=True).stdout
        assert "__memcpy_chk" in symbols
    runs = [
        simulate(tmp_path, program, mode, flags=("--mechanism", "observe"))["counts"]["run"]
        for mode in ("", "memory")
    ]
    lines = 40000 * 8 // 64
    # memset writes, memcpy and memmove read and write each line.
    assert runs[1]["accesses"] - runs[0]["accesses"] > 5 * lines


def test_a_program_of_gcc_s_sanitizer_runs_on_the_drop_in(tmp_path: Path) -> None:
    program = tmp_path / "sanitized"
    words = ["gcc", "-O2", "-g", "-fopenmp", "-fsanitize=thread", PROGRAMS / "sweep.c", "-o", program]
    made = subprocess.run(words, capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip("no libtsan here")
    result = simulate(tmp_path, program, "4", flags=("--mechanism", "observe"))
    assert result["status"] == 0, result["said"]
    assert result["counts"]["run"]["remote_fraction"] == pytest.approx(0.6, abs=0.02)


def test_a_plain_program_gets_a_line_that_says_how(tmp_path: Path) -> None:
    ran = homing("run", "--on", FOUR, "--summary", "none", "--", "/bin/true")
    assert ran.returncode == 0
    assert "nothing was counted in true: build it with `homing cc`" in ran.stderr
    ran = homing("run", "--on", FOUR, "--fail-if", "moved_pages > 1", "--", "/bin/true", HOMING="off")
    assert ran.returncode == 2
    assert ran.stderr.count("nothing was counted in true: HOMING=off is set") == 2
    assert "build it" not in ran.stderr
    program = tmp_path / "plain"
    words = ["gcc", "-O2", "-fopenmp", PROGRAMS / "sweep.c", "-o", program]
    subprocess.run(words, check=True, capture_output=True)
    ran = homing("run", "--on", FOUR, "--", program, "40")
    assert ran.returncode == 0
    assert "the process was killed" not in ran.stderr
    assert ran.stderr.count("nothing was counted in plain: build it with `homing cc`") == 1
    assert "did not end in order" not in ran.stderr


def test_constants_are_named(tmp_path: Path, build: Callable[..., Path]) -> None:
    result = simulate(tmp_path, build("constants.c"))
    assert re.search(r"reads of constants are not counted: up to constants_gcc \d+ KiB", result["said"])
    result = simulate(tmp_path, build("sweep.c"), "2")
    assert "constants" not in result["said"]


def test_no_address_space_and_no_overcommit(
    tmp_path: Path, build: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", "--on", FOUR, "--", str(build("sweep.c")), "2"]
    limited = subprocess.run(
        ["sh", "-c", 'ulimit -v 16000000; exec "$@"', "sh", sys.executable, "-m", "homing", *words],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert limited.returncode == 0, limited.stderr
    assert "ulimit -v must be unlimited" in limited.stderr

    from homing.errors import UserError
    from homing.simulate import on_machine

    strict = tmp_path / "overcommit_memory"
    strict.write_text("2\n")
    monkeypatch.setattr(on_machine, "_OVERCOMMIT", str(strict))
    with pytest.raises(UserError, match=r"vm\.overcommit_memory=2 refuses: sysctl"):
        on_machine._check(words[-2])


# --- the compiler's front -----------------------------------------------------


def test_what_would_drop_accesses_is_refused(tmp_path: Path) -> None:
    source = PROGRAMS / "sweep.c"
    lto = homing("cc", "gcc", "-O2", "-flto", source, "-o", tmp_path / "x", XDG_CACHE_HOME=str(tmp_path))
    assert lto.returncode == 2
    assert "-flto: link-time optimisation drops the instrumentation" in lto.stderr
    # Not instrumented at all: the exam sees it, whatever the reason is.
    words = [
        "cc",
        "clang-19",
        "-O2",
        "-fsanitize-ignorelist=" + str(tmp_path / "all"),
        source,
        "-o",
        tmp_path / "y",
    ]
    (tmp_path / "all").write_text("src:*\n")
    if not why_not("clang-19"):
        ignored = homing(*words, XDG_CACHE_HOME=str(tmp_path))
        assert ignored.returncode == 2
        assert "was seen to make 0 and 0" in ignored.stderr


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_objects_and_shared_libraries(tmp_path: Path, compiler: str) -> None:
    """A make-like build: objects, a shared object with instrumented code, a program."""
    if shutil.which(COMPILERS[compiler]) is None:
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "part.c").write_text(
        "void add(double* u, int n) { for (int i = 0; i < n; ++i) u[i] += 1; }\n"
    )
    (tmp_path / "main.c").write_text(
        "#include <stdlib.h>\nvoid add(double*, int);\nint main(void) { double* u = calloc(40000, 8);\n"
        "for (int k = 0; k < 3; ++k) add(u, 40000);\nreturn u[7] != 3; }\n"
    )
    use = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    name = COMPILERS[compiler]
    for words in (
        ["-O2", "-fPIC", "-shared", "-o", tmp_path / "libpart.so", tmp_path / "part.c"],
        ["-O2", "-c", "-MMD", "-o", tmp_path / "main.o", tmp_path / "main.c"],
        [tmp_path / "main.o", "-L", tmp_path, "-lpart", f"-Wl,-rpath,{tmp_path}", "-o", tmp_path / "program"],
    ):
        made = homing("cc", name, *words, **use)
        assert made.returncode == 0, made.stderr
    assert "main.o:" in (tmp_path / "main.d").read_text()
    result = simulate(tmp_path, tmp_path / "program")
    assert result["status"] == 0
    assert result["counts"]["run"]["accesses"] == pytest.approx(3 * 2 * 40000, rel=0.01)


# --- the command -----------------------------------------------------


def test_fail_if(tmp_path: Path, build: Callable[..., Path]) -> None:
    program = build("sweep.c")
    words = ("run", "--on", FOUR, "--mechanism", "observe", "--summary", "none", "--fail-if")
    bad = homing(*words, "area.u.remote_fraction > 0.2", "--", program, "8")
    assert bad.returncode == 96
    assert "area.u.remote_fraction > 0.2: true" in bad.stderr
    assert "u: fresh (sweep.c:" in bad.stderr and "remote_fraction = 0.6" in bad.stderr
    good = homing(*words, "area.u.remote_fraction > 0.9", "--", program, "8")
    assert (good.returncode, good.stderr) == (0, "")
    failed = homing(*words, "remote_fraction > 0", "--", build("survive.c"), "leave")
    assert failed.returncode == 5
    assert "was not looked at" in failed.stderr
    for expression, reason in (
        ("area.w.share > 0", "there is no array w; there are u"),
        ("remote >", "remote: there are"),
    ):
        wrong = homing(*words, expression, "--", program, "8")
        assert wrong.returncode == 2 and reason in wrong.stderr
    plain = homing(*words, "remote_fraction > 0", "--", "/bin/true")
    assert plain.returncode == 2 and "nothing was counted" in plain.stderr


def test_the_sweep_of_caches(tmp_path: Path, build: Callable[..., Path]) -> None:
    # A thread's part of the array fits in the largest cache, of 128 KiB, and in no smaller one.
    flags = ("--mechanism", "observe", "--sweep", "cache", "--summary", "none", "--deterministic")
    result = simulate(tmp_path, build("sweep.c"), "4", flags=flags, OMP_NUM_THREADS="8")
    rows = result["counts"]["sweep"]
    assert len(rows) >= 6 and sum(row["own"] for row in rows) == 1
    assert rows[-1]["total_misses"] < rows[0]["total_misses"] / 2
    assert result["output"].count("\n") == 1  # the program's own run alone is heard


def test_the_summary_and_the_record_tell_the_same(tmp_path: Path, build: Callable[..., Path]) -> None:
    record = tmp_path / "r.homing"
    ran = homing(
        "run", "--on", FOUR, "--mechanism", "observe", "--record", record, "--", build("sweep.c"), "8"
    )
    assert "counted" in ran.stderr and "67 %" in ran.stderr
    assert "64 KiB 4-way" in ran.stderr and "--sweep cache" in ran.stderr
    assert "T = 1 + m (R - 1) f" in ran.stderr and "0.04 rms" in ran.stderr
    again = homing("report", record, "--json", tmp_path / "again.json")
    assert "67 %" in again.stdout
    counts = json.loads((tmp_path / "again.json").read_text())["counts"]
    assert counts["machine"]["name"] == "four"


def test_misuse(tmp_path: Path) -> None:
    for words, reason in (
        (("--on", "nowhere"), "there is no machine nowhere"),
        (("--on", FOUR, "--nodes", "4"), "--nodes: only with --on lab"),
        (("--lines",), "--lines: only with --on MACHINE"),
        (("--on", FOUR, "--sweep", "pages"), "--sweep pages: must be cache"),
        (("--on", FOUR, "--turn", "0"), "--turn 0"),
    ):
        ran = homing("run", *words, "--", "/bin/true")
        assert ran.returncode == 2
        assert reason in ran.stderr, ran.stderr
    wrong = homing("run", "--on", FOUR, "--", "/bin/true", OMP_PLACES="{9}")
    assert wrong.returncode == 0 and "four has none of these CPUs; libgomp does without it" in wrong.stderr
    assert "sf15k" in homing("machine").stdout
    drawn = homing("machine", "sf15k").stdout
    assert "node 3" in drawn and "8MiB direct-mapped" in drawn


def test_misses_are_those_of_cachegrind() -> None:
    """Smaller problems drown in the loader's own misses; the whole comparison is a bench."""
    from homing.bench import simulated

    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    ours = simulated.run(simulated.build("lu", "gcc", True), ["330"], 1, cache="128KiB:8")
    theirs = simulated.cachegrind(simulated.build("lu", "gcc", False), ["330"], 128 << 10, 8)
    assert ours.counts["run"]["total_misses"] == pytest.approx(theirs.misses, rel=0.02)


def test_agreement_reads_what_the_guest_counted(tmp_path: Path) -> None:
    from homing.bench.agreement import _guest_fraction, _repeated_regions

    phases = [{"phase": number, "total_misses": 100, "remote_misses": 10 * number} for number in (1, 2, 3)]
    path = tmp_path / "lab.json"
    path.write_text(json.dumps({"counts": {"phases": phases}}))
    assert _guest_fraction(path) == 0.25
    regions = [
        {"count": 1, "total_misses": 50, "remote_misses": 50},
        {"count": 9, "total_misses": 50, "remote_misses": 5},
    ]
    assert _repeated_regions({"regions": regions}) == 0.1
