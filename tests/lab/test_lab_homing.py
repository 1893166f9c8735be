"""homing at work on a kernel with four NUMA nodes: one boot, real moves, counted misses.

The counter's cache is small (64 KiB), so that small programs miss as large ones do on real machines.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from homing import environment
from homing.bench.guest_runs import BINDING, LAST_HALF, GuestRuns, Outcome
from homing.bench.places import find_program
from homing.errors import UserError
from homing.installation import find_library
from homing.lab import machine
from homing.lab.built import find_built
from homing.lab.options import CountOptions, LabOptions
from homing.lab.steps import Step
from homing.record_rows import AT_END
from homing.records import Record, read_record
from tests.rotation import in_rotation

NODES = 4
#: The kernel's scans for hint faults: often, but more rarely than one takes on a busy host (seconds for some
#: thousand pages). Otherwise all threads scan at once, and each has to run 32 times as long as its scan took
#: before the kernel lets it scan again (kernel/sched/fair.c, task_numa_work): no reference comes for minutes.
BALANCING: dict[str, Any] = {
    "numa_balancing": 1,
    "scan_delay_ms": 50,
    "scan_period_min_ms": 400,
    "scan_period_max_ms": 800,
}
SOURCES: dict[str, dict[str, Any]] = {"windows": {"numa_balancing": 0}, "hint-faults": BALANCING}
#: Where one source shows it: the other one takes another 14 to 30 s.
WINDOWS_FIRST = ["windows", pytest.param("hint-faults", marks=pytest.mark.full)]
#: Of `placed`: enough for each source to have seen its pages.
ITERATIONS = {"windows": "60", "hint-faults": "300"}
#: Enough for it to have seen some of them.
FEW_ITERATIONS = {"windows": "30", "hint-faults": "120"}
#: Of linux/mempolicy.h: MPOL_F_NUMA_BALANCING, and modes.
NUMA_BALANCING_FLAG = 1 << 13
MPOL_BIND, MPOL_PREFERRED_MANY = 2, 5
INITIALS = ["first-touch", "round-robin", "random", "single-node"]


def _missing() -> str:
    if shutil.which(machine.QEMU) is None:
        return f"{machine.QEMU} is not installed"
    try:
        find_library()
        find_built("libhoming_counter_plugin.so")
        for name in ("cg_gfortran", "jacobi_gcc"):
            find_program(name)
    except UserError as error:
        return error.message
    return ""


MISSING = _missing()
pytestmark = [pytest.mark.guest, pytest.mark.skipif(bool(MISSING), reason=MISSING or "all is there")]


@pytest.fixture(scope="module")
def runs() -> Iterator[GuestRuns]:
    options = LabOptions(nodes=NODES, memory_per_node_mib=512, count=CountOptions(cache_kib=64))
    with GuestRuns(options=options) as booted:
        yield booted


@pytest.fixture(scope="module")
def serial(runs: GuestRuns) -> Outcome:
    """CG class S without homing, all pages on one node."""
    return runs.run("serial", [find_program("cg_gfortran"), "--class", "S"])


def built(folder: Path, name: str) -> str:
    """tests/lab/NAME.c, built in the folder."""
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run(["gcc", "-O2", "-fopenmp", "-o", folder / name, source], check=True)
    return str(folder / name)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> str:
    return built(tmp_path_factory.mktemp("filled"), "filled")


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> str:
    return built(tmp_path_factory.mktemp("forked"), "forked")


@pytest.fixture(scope="module")
def temporaries(tmp_path_factory: pytest.TempPathFactory) -> str:
    return built(tmp_path_factory.mktemp("temporaries"), "temporaries")


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> str:
    program = tmp_path_factory.mktemp("placed") / "placed"
    folder = Path(__file__).parent
    end = program.with_name("libplaced_end.so")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", end, folder / "placed_end.c"], check=True)
    command = ["gcc", "-O2", "-fopenmp", "-o", program, folder / "placed.c", end, f"-Wl,-rpath,{end.parent}"]
    subprocess.run(command, check=True)
    return str(program)


def run_placed(
    runs: GuestRuns, words: list[str], homing: Mapping[str, str] | None, name: str = "placed", **settings: Any
) -> tuple[dict[str, Any], Record | None]:
    """What the program `placed`, or another of that kind, prints, and homing's record."""
    path = runs.guest.cwd / "placed.homing"
    path.unlink(missing_ok=True)
    variables = dict(BINDING)
    if homing is not None:
        variables.update(homing)
        variables.update(HOMING_RECORD=str(path), HOMING_ONLY=name)
        environment.preload(variables, find_library(), str(runs.guest.cwd))
    result = runs.guest.step(Step(command=words, env=variables, timeout=120, **settings))
    assert result.exit_status == 0, result.stderr
    return json.loads(result.stdout), read_record(str(path)) if homing is not None else None


def placed_sum(mib: int, iterations: int) -> int:
    """What `placed` computes: the elements' numbers, and one more in each iteration."""
    elements = mib << 17
    return elements * (elements - 1) // 2 + iterations * elements


@pytest.mark.parametrize("source", SOURCES)
def test_pages_that_parallel_initialisation_placed_stay(runs: GuestRuns, source: str) -> None:
    """Under hint faults homing touches pages to see where they are, which must not carry them to its node."""
    sizes = ["--size", "1M", "--iterations", ITERATIONS[source], "--initialise", "parallel"]
    command = [find_program("pattern_block_gcc"), *sizes]
    run = runs.run("parallel", command, homing={"HOMING_REFERENCES": source}, timeout=200, **SOURCES[source])
    assert run.homing is not None
    assert run.homing["moved"] < 26  # a tenth of the pages; three quarters were carried to one node once
    assert run.remote_fraction() < 0.1


@pytest.mark.parametrize("source", WINDOWS_FIRST)
def test_cg_comes_home(runs: GuestRuns, serial: Outcome, source: str) -> None:
    iterations = ["--iterations", "60"] if source == "hint-faults" else []
    command = [find_program("cg_gfortran"), "--class", "S", *iterations]
    homed = runs.run(source, command, homing={"HOMING_REFERENCES": source}, timeout=200, **SOURCES[source])
    assert homed.homing is not None
    assert homed.homing["source"].startswith(source)
    if not iterations:
        assert homed.output.verification == "successful"
        assert homed.output.results == serial.output.results
    # Two arrays of 230 pages together: three quarters of them were on the wrong node.
    assert homed.homing["moved"] > 100
    assert serial.remote_fraction(LAST_HALF) > 0.7
    assert homed.remote_fraction(LAST_HALF) < 0.5 * serial.remote_fraction(LAST_HALF)


def test_phases_of_a_program_are_marked_by_its_regions(runs: GuestRuns) -> None:
    marks = {
        "LD_PRELOAD": str(find_built("libhoming_region_marks.so")),
        "HOMING_MARK_ITERATIONS": "2",
        "HOMING_MARK_LAST_HALF": "8",
    }
    # Two regions an iteration; where the page for marks is taken the program leaves them to others.
    words = [find_program("pattern_block_gcc"), "--size", "1M", "--iterations", "5"]
    marked = runs.run("marked", words, env=marks)
    own = runs.run("own", words)
    # Three iterations; one iteration, four passes over an array, and the checksum, two passes.
    assert marked.misses[2] == pytest.approx(own.misses[2], rel=0.1)
    assert marked.misses[3] == pytest.approx(marked.misses[2] / 2, rel=0.2)


def test_what_counts_as_moved_is_there(runs: GuestRuns, placed: str) -> None:
    plain, _ = run_placed(runs, [placed, "4", "2"], None)
    found, record = run_placed(runs, [placed, "4", "60"], {})
    assert record is not None
    assert plain["nodes"] == [1024, 0, 0, 0]
    assert (plain["sum"], found["sum"]) == (placed_sum(4, 2), placed_sum(4, 60))
    assert found["unknown"] == 0
    # Static blocks of a quarter each; the borders may be off by a few pages.
    assert all(240 <= pages <= 272 for pages in found["nodes"]), found["nodes"]
    area = next(one for one in record.areas if one.begin <= found["address"] < one.begin + one.bytes)
    at_end = [one for one in record.placements if one.area == area.id and one.when == AT_END]
    at_end = at_end or [one for one in record.placements if one.area == area.id]
    told = list(at_end[-1].pages)
    # The area may begin in the page before the array: malloc's header.
    assert sum(abs(a - b) for a, b in zip(told, found["nodes"], strict=True)) <= 2, (told, found["nodes"])
    moved = sum(move.moved for move in record.moves if move.area == area.id)
    away = sum(found["nodes"][1:])
    assert moved >= away
    assert sum(move.bytes for move in record.moves if move.area == area.id) == 4096 * moved


@pytest.mark.parametrize("source", WINDOWS_FIRST)
def test_temporaries_leave_no_policy_and_the_same_results(
    runs: GuestRuns, temporaries: str, source: str
) -> None:
    """Whichever way they are allocated and end. How many come into being where they are used goes by what
    windows see in the time, which a busy guest does not have: tests/unit/test_engine_temporaries.cpp has
    that, and the pattern `temporaries` of `homing bench patterns`."""
    plain, _ = run_placed(runs, [temporaries], None)
    homing = {"HOMING_OBSERVE_SHARE": "0.1", "HOMING_REFERENCES": source}
    found, record = run_placed(runs, [temporaries], homing, "temporaries", **SOURCES[source])
    assert record is not None
    assert found["sum"] == plain["sum"]
    # What keeps the kernel's balancer off an area comes off it when homing next looks.
    assert plain["with_policy"] == 0 and (source != "windows" or found["with_policy"] == 0)
    assert max(plain["home"]) < 0.3 * plain["pages"], plain
    assert min(found["home"]) >= min(plain["home"]) - 1, found


@pytest.mark.parametrize(("policy", "source"), in_rotation(["none", "numactl", "own"], list(SOURCES)))
def test_policies_are_as_the_user_set_them(runs: GuestRuns, placed: str, policy: str, source: str) -> None:
    prefix = ["numactl", "-i", "all"] if policy == "numactl" else []
    own = ["own"] if policy == "own" else []
    if prefix and shutil.which(prefix[0]) is None:
        pytest.skip("numactl is not installed")
    words = [*prefix, placed, "4", "60", *own]
    found, record = run_placed(runs, words, {"HOMING_REFERENCES": source}, **SOURCES[source])
    assert record is not None
    assert record.facts["source"].startswith(source)
    assert found["process_after"] == found["process_before"]
    # While homing works, a policy of its own may be in force; at the end the one that it found is.
    assert found["process_end"] == found["process_before"]
    assert found["array_end"] == found["array_before"]


def test_replay_moves_pages_before_a_phase_and_undo_brings_them_back(
    runs: GuestRuns, tmp_path_factory: pytest.TempPathFactory
) -> None:
    phased = built(tmp_path_factory.mktemp("phased"), "phased")
    alone, _ = run_placed(runs, [phased], None)
    found, record = run_placed(runs, [phased], {"HOMING_REFERENCES": "windows"}, "phased")
    assert record is not None
    assert found["sum"] == alone["sum"]
    assert alone["in_phase"] == alone["behind"] == 6 * [0]
    assert found["in_phase"] == [0, 20, 20, 20, 20, 20], found
    assert found["behind"] == 6 * [0], found
    (phase,) = record.phases
    assert (phase.replays, phase.planned, phase.moved, phase.undone) == (5, 20, 100, 100)
    assert phase.remote_with_plan < phase.remote


@pytest.mark.parametrize("initial", INITIALS)
def test_initial_placements(runs: GuestRuns, placed: str, initial: str) -> None:
    homing = {"HOMING_INITIAL": initial, "HOMING_MECHANISM": "observe"}
    found, _ = run_placed(runs, [placed, "4", "10"], homing)
    nodes = found["nodes"]
    if initial in ("first-touch", "single-node"):
        assert nodes == [1024, 0, 0, 0]
    elif initial == "round-robin":
        assert all(abs(pages - 256) <= 1 for pages in nodes), nodes
    else:
        assert sum(nodes) == 1024
        assert all(180 <= pages <= 340 for pages in nodes), nodes  # six standard deviations


@pytest.mark.full  # filling a node so that nothing fits takes a minute; refusals: tests/unit, every errno
@pytest.mark.parametrize("source", SOURCES)
def test_a_full_node_gets_no_pages(runs: GuestRuns, placed: str, source: str) -> None:
    words, settings = [placed, "4", ITERATIONS[source]], SOURCES[source]
    if shutil.which("numactl") is None:
        pytest.skip("numactl is not installed")
    # What the kernel can free later is room for all of the pages (1 MiB once): file cache and slabs go first,
    # and again before each step, until three steps in a row leave the node as it was. Watermarks that it
    # boosts for a while would end the filling early.
    fill = """
        echo 0 > /proc/sys/vm/watermark_boost_factor
        free() { awk '/MemFree/ { print $4 }' /sys/devices/system/node/node1/meminfo; }
        numactl --preferred=1 fallocate -l 600M /dev/shm/fill
        size=0; full=0
        while [ $full -lt 3 ] && [ $size -lt 200 ]; do
            sync; echo 3 > /proc/sys/vm/drop_caches
            before=$(free); size=$((size + 8))
            numactl --preferred=1 fallocate -l ${size}M /dev/shm/more || exit 1
            if [ $((before - $(free))) -lt 128 ]; then full=$((full + 1)); else full=0; fi
        done
        [ $full -eq 3 ]
    """
    for _ in range(3):
        try:
            filled = runs.guest.step(Step(command=["sh", "-c", fill], timeout=120))
            assert filled.exit_status == 0, filled.stderr
            found, record = run_placed(runs, words, {"HOMING_REFERENCES": source}, **settings)
        finally:
            runs.guest.step(Step(command=["rm", "-f", "/dev/shm/fill", "/dev/shm/more"]))
        assert record is not None
        there = found["nodes"][1]
        if there <= 8:
            break
        # In a call of half a second the kernel may find room after all (mapped files): then what lies there
        # was moved.
        assert sum(move.moved for move in record.moves) == there + sum(found["nodes"][2:]), found["nodes"]
    plain, _ = run_placed(runs, words, None)
    assert record.facts["source"] == source
    assert found["sum"] == plain["sum"]
    assert found["nodes"][1] <= 8, found["nodes"]
    assert min(found["nodes"][2:]) >= 240, found["nodes"]
    assert sum(refusal.pages for refusal in record.refusals) >= 240  # and the summary says so


@pytest.mark.parametrize("source", WINDOWS_FIRST)
def test_a_memory_limit_holds_and_the_program_finishes(runs: GuestRuns, placed: str, source: str) -> None:
    words, settings = [placed, "16", FEW_ITERATIONS[source]], SOURCES[source]
    limited = (
        "set -e; mkdir -p /tmp/cg; mountpoint -q /tmp/cg || mount -t cgroup2 none /tmp/cg; "
        "echo +memory > /tmp/cg/cgroup.subtree_control; mkdir -p /tmp/cg/limited; "
        "echo 24M > /tmp/cg/limited/memory.max; echo $$ > /tmp/cg/limited/cgroup.procs; "
        'cat /tmp/cg/limited/memory.max >&2; exec "$@"'
    )
    limit = ["sh", "-c", limited, "sh", *words]
    found, record = run_placed(runs, limit, {"HOMING_REFERENCES": source}, **settings)
    assert record is not None
    assert record.facts["source"] == source
    assert sum(iteration.references for iteration in record.iterations) > 0
    assert found["sum"] == placed_sum(16, int(FEW_ITERATIONS[source]))
    assert sum(found["nodes"]) == 4096


@pytest.mark.full  # 10 s of a processor; that no policy of homing's stays behind: the tests around this one
@pytest.mark.parametrize("source", SOURCES)
def test_pages_that_come_late_land_where_there_is_memory(runs: GuestRuns, filled: str, source: str) -> None:
    """More of them than the first node has room for: under a policy of homing's it would be all they get."""
    found, record = run_placed(
        runs, [filled, "160", "4"], {"HOMING_REFERENCES": source}, name="filled", **SOURCES[source]
    )
    assert record is not None
    assert record.facts["source"] == source
    assert found["late"] == 160 * 256 * 4 // 10
    assert sum(found["nodes"]) == found["late"]
    assert sum(found["nodes"][1:]) > 0


def forks_cleanly(runs: GuestRuns, forked: str) -> int:
    """`forked` runs, and no policy of homing's crosses the fork. Its mode at work, without flags."""
    homing = {"HOMING_REFERENCES": "hint-faults", "HOMING_MECHANISM": "observe"}
    found, record = run_placed(runs, [forked, "8", "20"], homing, name="forked", **BALANCING)
    assert record is not None
    assert found["status"] == 0
    assert found["before"] == [0, 0]
    assert found["at_work"][0] & NUMA_BALANCING_FLAG
    # Pages that both share are copied when one of them writes: not to where a policy of ours says.
    assert found["in_parent"] == [0, 0]
    assert found["in_child"] == [0, 0]
    assert found["again"][0] == found["at_work"][0]  # the kernel may have moved pages meanwhile
    return int(found["at_work"][0]) & 0xFF


def test_a_fork_inherits_no_policy_of_homings(runs: GuestRuns, forked: str) -> None:
    assert forks_cleanly(runs, forked) in (MPOL_BIND, MPOL_PREFERRED_MANY)


@pytest.mark.full
def test_a_kernel_from_6_9_observes_by_a_policy_that_kills_nobody(filled: str, forked: str) -> None:
    options = LabOptions(
        nodes=NODES, memory_per_node_mib=512, kernel="6.12", count=CountOptions(cache_kib=64), timeout=500
    )
    with GuestRuns(options=options) as runs:
        assert forks_cleanly(runs, forked) == MPOL_PREFERRED_MANY
        test_pages_that_come_late_land_where_there_is_memory(runs, filled, "hint-faults")


def linked(folder: Path, name: str, flag: str) -> str:
    """tests/lab/NAME.c, built in the folder and linked with homing."""
    root, library = Path(__file__).resolve().parents[2], Path(find_library())
    command = ["gcc", "-O2", flag, "-o", folder / name, Path(__file__).with_name(f"{name}.c")]
    command += [f"-I{root / 'include'}", library, f"-Wl,-rpath,{library.parent}"]
    subprocess.run(command, check=True)
    return str(folder / name)


@pytest.fixture(scope="module")
def touched(tmp_path_factory: pytest.TempPathFactory) -> str:
    """It asks for next touch by name."""
    return linked(tmp_path_factory.mktemp("touched"), "touched", "-fopenmp")


def test_sampling_moves_a_registered_array_of_a_program_without_openmp(
    runs: GuestRuns, tmp_path: Path
) -> None:
    """The sampling of Nikolopoulos et al. (2000, section 2.1) needs no region: hint faults tell."""
    variables = {
        "HOMING_REFERENCES": "hint-faults",
        "HOMING_MECHANISM": "sampling",
        "HOMING_SAMPLING_INTERVAL": "0.2",
        # The guest takes up to 16 s to move a thousand. The program ends when half of its pages are at home,
        # and what is being moved then is not in the record any more.
        "HOMING_SAMPLING_PAGES": "100",
        "HOMING_RECORD": str(runs.guest.cwd / "threads.homing"),
    }
    command = [linked(tmp_path, "threads", "-pthread")]
    result = runs.guest.step(Step(command=command, env=variables, timeout=120, **BALANCING))
    assert result.exit_status == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["right"] == 1
    assert found["taken"] == 1
    # Its main thread placed a quarter of them right; the others were moved by homing, not by the kernel.
    assert found["home"] >= 1024
    moved = sum(move.moved for move in read_record(variables["HOMING_RECORD"]).moves)
    assert moved >= 400
    assert found["home"] <= 512 + moved + 100


@pytest.mark.parametrize("source", SOURCES)
def test_next_touch_by_name_beside_any_source(runs: GuestRuns, touched: str, source: str) -> None:
    variables = {
        **BINDING,
        "HOMING_REFERENCES": source,
        "HOMING_MECHANISM": "observe",
        "HOMING_GRANULE": "4KiB",
    }
    result = runs.guest.step(Step(command=[touched], env=variables, timeout=120, **SOURCES[source]))
    assert result.exit_status == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["status"] == 0
    if source == "windows":
        assert found["before"] == [1024, 0, 0, 0]
    else:  # the kernel may have balanced some pages already: homing only observes here
        assert sum(found["before"]) == 1024 and found["before"][0] > 900
    assert found["after"] == [256, 256, 256, 256]
    assert found["sum"] == 3 * 1024 * 4096


def test_next_touch_by_name_without_any_source(runs: GuestRuns, touched: str) -> None:
    """No source works here, and homing runs for the sake of affinity clauses only."""
    variables = {
        **BINDING,
        "HOMING_REFERENCES": "pmu",
        "HOMING_TASKS": "affinity",
        "HOMING_GRANULE": "4KiB",
    }
    result = runs.guest.step(Step(command=[touched], env=variables, timeout=120, numa_balancing=0))
    assert result.exit_status == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["status"] == 0
    assert found["after"] == [256, 256, 256, 256]
    assert found["sum"] == 3 * 1024 * 4096


#: Large enough to miss the cache, long enough for the kernel's scans.
PROGRAMS = {
    "cg_gfortran": ["--class", "W", "--iterations", "24"],
    "cg_flang": ["--class", "W", "--iterations", "24"],
    "mg_gfortran": ["--class", "W", "--iterations", "16"],
    "mg_flang": ["--class", "W", "--iterations", "16"],
    "jacobi_gcc": ["--n", "96", "--iterations", "160"],
    "jacobi_clang": ["--n", "96", "--iterations", "160"],
}
#: The vectors of class W have 56 KB each, less than what is watched unless a user says so.
SMALL = {"HOMING_AREA_MINIMUM": "32KiB"}


@pytest.fixture(scope="module")
def large_runs() -> Iterator[GuestRuns]:
    """With a cache for larger programs: 1 MiB."""
    with GuestRuns(options=LabOptions(nodes=NODES, count=CountOptions())) as booted:
        yield booted


@pytest.mark.full
@pytest.mark.parametrize("program", PROGRAMS)
def test_matrix(large_runs: GuestRuns, program: str, record_property: Any) -> None:
    """Both sources and all four initial placements come within three points of the oracle."""
    runs = large_runs
    command = [find_program(program), *PROGRAMS[program]]
    plain = runs.run(f"{program}-plain", command, timeout=300)
    best = plain.oracle_last_half
    failed = []
    for source, settings in SOURCES.items():
        for initial in INITIALS:
            homing = {"HOMING_REFERENCES": source, "HOMING_INITIAL": initial}
            homing |= SMALL if program.startswith("cg") else {}
            found = runs.run(f"{program}-{source}-{initial}", command, homing=homing, timeout=300, **settings)
            assert found.output.results == plain.output.results
            last = found.remote_fraction(LAST_HALF)
            record_property(f"{source} {initial}", f"{last:.4f}")
            line = f"{program} {source} {initial}: {last:.1%} remote in the last half, oracle {best:.1%}"
            print(line)
            if last - best > 0.03:
                failed.append(line)
    assert not failed, "\n".join(failed)
