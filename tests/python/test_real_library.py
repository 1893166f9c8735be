"""The launcher, the library and the reader of records together: an OpenMP program on assumed nodes."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from homing.records import read_record
from tests.patience import PATIENCE
from tests.python.conftest import TREE, compile_c, environment
from tests.python.record_writer import LAYOUT

LIBRARY = Path(os.environ.get("HOMING_LIBRARY", TREE / "build" / "release" / "libhoming.so"))

pytestmark = pytest.mark.skipif(not LIBRARY.is_file(), reason=f"{LIBRARY} is not built")

PROGRAM = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
enum { n = 1 << 19 };
static double grid[n];
int main(void) {
    double *heap = malloc(n * sizeof *heap);
    for (int i = 0; i < n; i++) heap[i] = grid[i] = i;
    for (int iteration = 0; iteration < 40; iteration++) {
        #pragma omp parallel for schedule(static)
        for (int i = 0; i < n; i++) heap[i] += grid[i];
        #pragma omp parallel for schedule(static)
        for (int i = 0; i < n; i++) grid[i] = heap[i] * 0.5;
    }
    printf("%.17g\n", heap[n / 2]);
    if (getenv("KILLED")) kill(getpid(), SIGKILL);
    return 3;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("real") / "sweeper", PROGRAM, "-fopenmp", "-g")


def test_a_run_from_launch_to_json(program: Path, tmp_path: Path) -> None:
    variables = environment(
        LIBRARY, tmp_path, HOMING_ASSUME_NODES="4", OMP_NUM_THREADS="4", OMP_WAIT_POLICY="passive"
    )
    alone = subprocess.run([program], env=variables, capture_output=True, text=True, timeout=PATIENCE)
    words = ["run", "--json", "out.json", "--record", "kept.homing", "--", program]
    done = subprocess.run(
        [sys.executable, "-m", "homing", *words],
        env=variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (3, alone.stdout)
    document = json.loads((tmp_path / "out.json").read_text())
    schema = json.loads((TREE / "homing" / "report" / "schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    (process,) = document["processes"]
    assert process["record"]["program"] == str(program)
    assert process["record"]["complete"]
    assert len(process["nodes"]) == 4
    assert process["iterations"]["count"] > 0
    areas = {area["name"]: area for area in process["areas"]}
    assert areas["grid"]["bytes"] == 8 << 19
    assert areas["grid"]["source"]["line"] == 8
    heap = next(area for area in areas.values() if area["kind"] == "heap" and area["bytes"] >= 8 << 19)
    assert heap["source"]["line"] == 10
    assert heap["source"]["function"] == "main"
    assert "sweeper.c:10" in done.stderr
    assert "4 NUMA nodes (assumed" in done.stderr
    # What the guard reckons with is said, and why pages stay: these arrays fit into many a machine's caches.
    assert "costs      assumed from distances: a local access 90 ns, a remote one 180 ns;" in done.stderr
    assert int(process["facts"]["cache_bytes"]) > 0
    for area in areas.values():
        if area["left"] and area["left"]["reason"] == "free":
            assert area["left"]["text"] in done.stderr

    record = read_record(str(tmp_path / "kept.homing"))
    assert record.pid == process["record"]["pid"]
    # The rows that the library writes are those that the fixtures of the other tests imitate.
    written = {name: [list(field) for field in fields] for name, (_, fields) in LAYOUT.items()}
    header = json.loads((tmp_path / "kept.homing").read_bytes().split(b"\n")[1])
    assert {name: entry["fields"] for name, entry in header["rows"].items()} == written


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--references", "pmu"], "source     windows (pmu: nodes are assumed)"),
        (["--references", "hint-faults"], "source     windows (hint-faults: nodes are assumed)"),
        (
            ["--references", "pmu", "--mechanism", "next-touch"],
            "source     windows (pmu: next touch needs windows)",
        ),
        (["--references", "windows"], "source     windows\n"),
        ([], "source     windows\n"),
    ],
)
def test_a_source_that_was_asked_for_in_vain_is_told(
    words: list[str], said: str, program: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "homing", "run", *words, "--", program],
        env=environment(LIBRARY, tmp_path, HOMING_ASSUME_NODES="4", OMP_NUM_THREADS="2"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert said in done.stderr


def test_the_record_of_a_program_that_is_killed(program: Path, tmp_path: Path) -> None:
    variables = environment(
        LIBRARY, tmp_path, HOMING_ASSUME_NODES="4", OMP_NUM_THREADS="4", OMP_WAIT_POLICY="passive", KILLED="1"
    )
    words = ["run", "--json", "out.json", "--record", "kept.homing", "--", program]
    command = [sys.executable, "-m", "homing"]
    done = subprocess.run([*command, *words], env=variables, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    (process,) = json.loads((tmp_path / "out.json").read_text())["processes"]
    assert not process["record"]["complete"]
    assert not process["record"]["truncated"]
    iterations = process["iterations"]
    # At rest an iteration leaves no row of its own, and the rows of before the period was found count
    # regions: the count is that of the row of progress.
    assert 30 <= iterations["count"] <= 40
    assert "was killed after" in done.stderr
    again = subprocess.run([*command, "report", "kept.homing"], env=variables, cwd=tmp_path)
    assert again.returncode == 0
    cut = tmp_path / "cut.homing"
    cut.write_bytes((tmp_path / "kept.homing").read_bytes()[:20480])
    again = subprocess.run([*command, "report", cut], env=variables, cwd=tmp_path)
    assert again.returncode == 2


def results_of_run(program: Path, where: Path, **variables: str) -> dict[str, Any]:
    """The JSON results of the one process of a run on four assumed nodes."""
    setting = {
        "HOMING_ASSUME_NODES": "4",
        "OMP_NUM_THREADS": "4",
        "OMP_WAIT_POLICY": "passive",
        "OMP_PROC_BIND": "true",
        **variables,
    }
    subprocess.run(
        [sys.executable, "-m", "homing", "run", "--json", "out.json", "--summary", "none", "--", program],
        env=environment(LIBRARY, where, **setting),
        cwd=where,
        capture_output=True,
        timeout=PATIENCE,
    )
    (process,) = json.loads((where / "out.json").read_text())["processes"]
    assert isinstance(process, dict)
    return process


def test_what_the_user_leaves_out_is_named(program: Path, tmp_path: Path) -> None:
    process = results_of_run(program, tmp_path, HOMING_AREAS="exclude=grid,exclude=gird")
    left_out = {one["what"]: one["bytes"] for one in process["unwatched"]}
    assert left_out["left out by --areas: grid"] == 8 << 19
    said = [one["text"] for one in process["messages"] if one["level"] == "warning"]
    assert any("exclude=gird" in text for text in said)
    assert not any("exclude=grid" in text for text in said)

    process = results_of_run(program, tmp_path, HOMING_AREA_MINIMUM="1G")
    left_out = {one["what"]: one["bytes"] for one in process["unwatched"]}
    assert left_out["below --area-minimum: grid"] == 8 << 19
    assert any(what.startswith("below --area-minimum: heap@sweeper") for what in left_out)


#: A matrix that is allocated row by row, and a workspace of which a thirty-second is used. It goes on until
#: more pages moved than the matrix alone has to move: how many iterations that takes depends on how busy this
#: machine is. All is initialised on one of as many nodes as there are CPUs, up to four.
UNEVEN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <homing/homing.h>
#include <omp.h>
#include <stdlib.h>
static uint64_t moved(void) {
    int (*ask)(homing_statistics_t *) = dlsym(RTLD_DEFAULT, "homing_statistics");
    homing_statistics_t found = {.struct_bytes = sizeof found};
    return ask && ask(&found) == HOMING_OK ? found.pages_moved : 0;
}
enum { rows = 1000, columns = 1 << 14, n = 1 << 23 };
int main(void) {
    double **matrix = malloc(rows * sizeof *matrix), *work = malloc(32L * n * sizeof *work);
    for (int i = 0; i < rows; i++) {
        matrix[i] = malloc(columns * sizeof **matrix);
        for (int k = 0; k < columns; k++) matrix[i][k] = k;
    }
    for (int i = 0; i < n; i++) work[i] = i;
    const int nodes = omp_get_num_procs() < 4 ? omp_get_num_procs() : 4;
    const uint64_t pages = (rows * (uint64_t)columns + n / 2) * 8 / 4096 * (nodes - 1) / nodes;
    for (int iteration = 0; iteration < 10 || (moved() < pages && iteration < 1000); iteration++) {
        #pragma omp parallel for schedule(static)
        for (int i = 0; i < rows; i++)
            for (int k = 0; k < columns; k++) matrix[i][k] = matrix[i][k] * 0.5 + 1;
        #pragma omp parallel for schedule(static)
        for (int i = 0; i < n; i++) work[i] = work[i] * 0.5 + 1;
    }
    return matrix[7][7] + work[7] > 1e9;
}
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU has one node")
def test_rows_of_a_matrix_and_the_used_part_of_a_workspace_move(tmp_path: Path) -> None:
    flags = ("-fopenmp", "-O2", f"-I{TREE / 'include'}", "-ldl")
    # Observation may take its time: what is tested is what follows from it.
    process = results_of_run(
        compile_c(tmp_path / "uneven", UNEVEN, *flags), tmp_path, HOMING_OBSERVE_SHARE="1"
    )
    areas = {area["count"]: area for area in process["areas"] if area["kind"] == "heap"}
    assert set(areas) == {1, 1000}
    assert areas[1]["bytes"] == 32 * 8 << 23
    assert areas[1000]["moved_pages"] > 0
    assert areas[1]["moved_pages"] > 0
    assert areas[1]["after"]["absent"] > areas[1]["bytes"] // 4096 * 9 // 10


def test_the_record_keeps_single_touches_where_it_is_asked_for_them(program: Path, tmp_path: Path) -> None:
    variables = environment(
        LIBRARY,
        tmp_path,
        HOMING_ASSUME_NODES="4",
        OMP_NUM_THREADS="4",
        OMP_WAIT_POLICY="passive",
        HOMING_REFERENCES="windows",
        HOMING_OBSERVE_SHARE="0.5",
    )
    words = ["run", "--record-samples", "50", "--summary", "none", "--record", "kept.homing", "--", program]
    done = subprocess.run(
        [sys.executable, "-m", "homing", *words],
        env=variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 3, done.stderr
    record = read_record(str(tmp_path / "kept.homing"))
    samples, homes = record.table("sample"), record.table("homes")
    assert 0 < len(samples) <= 50
    areas = {area.id: area for area in record.areas}
    regions = {int(row["id"]) for row in record.table("region")}
    for row in samples:
        area = areas[int(row["area"])]
        assert int(row["granule"]) * area.granule <= area.bytes
        assert int(row["region"]) in regions and int(row["source"]) == 3
        assert int(row["thread"]) > 0 and 0 <= int(row["node"]) < 4
        assert int(row["object"]) > 0 and int(row["offset"]) > 0  # the code that touched
    assert {int(row["write"]) for row in samples} <= {0, 1}
    # Every granule of what was touched lies somewhere, or does not exist: runs without gaps.
    for area_id in {int(row["area"]) for row in samples}:
        runs = [row for row in homes if int(row["area"]) == area_id and int(row["when"]) == 1]
        assert int(runs[0]["first"]) == 0
        assert all(int(a["end"]) == int(b["first"]) for a, b in itertools.pairwise(runs))


#: What stands for /sys/devices/system/node, and nodes that are assumed: nothing (a tmpfs over it, as in some
#: containers), folders without files, and files without sense.
NODES = {
    "no nodes": ("true", "4"),
    "an empty node": ("mkdir node0 && echo 0 | tee online has_cpu >node0/cpulist", "4"),
    "two empty nodes": ("mkdir node0 node1 && echo 0-1 | tee online >has_cpu", "0"),
    "nonsense": (
        "mkdir node0 node1 && echo 0-1 | tee online >has_cpu && echo - | tee node0/cpulist node1/cpulist "
        "node0/meminfo >node0/distance",
        "0",
    ),
}


@pytest.mark.parametrize(("nodes", "assumed"), NODES.values(), ids=NODES)
def test_no_shape_of_sysfs_ends_a_program(program: Path, tmp_path: Path, nodes: str, assumed: str) -> None:
    folder = "/sys/devices/system/node"
    script = f"mount -t tmpfs none {folder} && cd {folder} && {nodes} && cd / && LD_PRELOAD=$L exec $P"
    variables = environment(LIBRARY, tmp_path, HOMING_ASSUME_NODES=assumed, OMP_NUM_THREADS="2")
    variables.update(L=str(LIBRARY), P=str(program), OMP_WAIT_POLICY="passive", HOMING_COSTS="")
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(done.stderr.strip())
    alone = subprocess.run(
        [program], env={**os.environ, "OMP_NUM_THREADS": "2"}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, alone.stdout, "")
