"""`--bind` with several tasks on a host: each has CPUs of its own, or none is bound and the reason is
said."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from homing.binding import Core, cores_of, cpu_list, share, share_of, starter
from tests.patience import PATIENCE
from tests.python.conftest import TREE, environment


def machine(nodes: int, cores: int, threads: int = 1) -> list[Core]:
    count = nodes * cores
    return [
        Core(core // cores, tuple(core + count * thread for thread in range(threads)))
        for core in range(count)
    ]


def test_shares_are_disjoint_and_cover_everything() -> None:
    dice = random.Random(11)
    for _ in range(300):
        cores = machine(dice.randrange(1, 9), dice.randrange(1, 17), dice.choice([1, 1, 2, 4]))
        cores = dice.sample(cores, dice.randrange(1, len(cores) + 1))  # what a job may use has holes
        cores.sort(key=lambda core: (core.node, core.cpus))
        cpus = sorted(cpu for core in cores for cpu in core.cpus)
        count = dice.randrange(1, len(cpus) + 3)
        shares = [share_of(cores, rank, count) for rank in range(count)]
        if count > len(cpus):
            assert shares == [None] * count
            continue
        assert sorted(cpu for mine in shares if mine for cpu in mine) == cpus
        if count <= len(cores):
            sizes = [sum(set(core.cpus) <= (mine or set()) for core in cores) for mine in shares]
            assert sum(sizes) == len(cores), "cores stay whole"
            assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("nodes", "cores", "count"), [(4, 8, 8), (4, 8, 4), (4, 8, 2), (2, 6, 4), (8, 2, 16)]
)
def test_shares_follow_the_nodes(nodes: int, cores: int, count: int) -> None:
    """Where tasks and nodes divide evenly, a share is a part of one node or several whole nodes."""
    all_cores = machine(nodes, cores, threads=2)
    node_of = {cpu: core.node for core in all_cores for cpu in core.cpus}
    for rank in range(count):
        mine = share_of(all_cores, rank, count)
        assert mine is not None
        found = {node_of[cpu] for cpu in mine}
        assert len(found) == max(1, nodes // count)
        if len(found) > 1:
            assert mine == {cpu for cpu, node in node_of.items() if node in found}


def job(local_rank: int, local_size: int) -> dict[str, str]:
    return {
        "OMPI_COMM_WORLD_RANK": str(local_rank),
        "OMPI_COMM_WORLD_SIZE": str(2 * local_size),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(local_rank),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(local_size),
    }


def test_a_task_keeps_to_its_share() -> None:
    cores = machine(2, 4)
    every = set(range(8))
    mine = share(job(1, 4), every, every, cores)
    assert mine.cpus == {2, 3} and "CPUs 2-3 of 0-7 (local rank 1 of 4)" in mine.text
    assert share({}, every, every, cores).cpus is None
    assert share(job(0, 1), every, every, cores).text == ""
    # A mask that all tasks have in common (a batch system's, taskset before mpirun) is shared out.
    half = set(range(4))
    assert share(job(1, 2), half, half, cores[:4]).cpus == {2, 3}
    assert share(job(1, 2), half, None, cores[:4]).cpus == {2, 3}


def test_what_the_launcher_gave_a_task_stays() -> None:
    mine = share(job(1, 4), {2, 3}, set(range(8)), machine(2, 4)[2:4])
    assert mine.cpus is None and not mine.refused
    assert mine.text == "CPUs 2-3, as Open MPI gave them to this task"


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (job(3, 9), "not bound: 9 tasks on this host share CPUs 0-7, fewer than tasks"),
        (
            {"PMI_RANK": "1", "PMI_SIZE": "4"},
            "not bound: PMI does not say how many of the tasks are on this host",
        ),
        ({"PMIX_RANK": "0"}, "not bound: PMIx does not say"),
    ],
)
def test_where_no_share_is_known_nothing_is_bound(variables: dict[str, str], said: str) -> None:
    every = set(range(8))
    mine = share(variables, every, every, machine(2, 4))
    assert mine.refused and mine.cpus is None and mine.text.startswith(said)


def test_a_command_that_starts_the_tasks_is_not_bound() -> None:
    assert "mpirun ... homing run --bind -- PROGRAM" in starter(["/usr/bin/mpirun", "-n", "4", "./a.out"])
    assert starter(["./a.out"]) == ""


def test_lists_of_cpus() -> None:
    assert cpu_list({0, 1, 2, 8, 10, 11}) == "0-2,8,10-11"
    assert cpu_list(set()) == ""


def test_cores_as_the_kernel_tells_them(tmp_path: Path) -> None:
    """Two nodes with two cores of two threads each, whose numbers are far apart; a job that may use some."""
    node = tmp_path / "sys/devices/system/node"
    for index, cpus in ((0, "0-1,4-5"), (1, "2-3,6-7")):
        (node / f"node{index}").mkdir(parents=True)
        (node / f"node{index}/cpulist").write_text(cpus)
    (node / "online").write_text("0-1\n")
    for cpu in range(8):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    assert cores_of(range(8), str(tmp_path)) == [
        Core(0, (0, 4)), Core(0, (1, 5)), Core(1, (2, 6)), Core(1, (3, 7))
    ]  # fmt: skip
    assert cores_of({1, 5, 6}, str(tmp_path)) == [Core(0, (1, 5)), Core(1, (6,))]
    assert cores_of({0, 1}, str(tmp_path / "nothing")) == [Core(0, (0,)), Core(0, (1,))]
    assert sum(len(core.cpus) for core in cores_of(os.sched_getaffinity(0))) == len(os.sched_getaffinity(0))


#: Into a file of each rank: mpirun may mix the lines of several, or lose the last ones.
LOOK = (
    "import os; print(sorted(os.sched_getaffinity(0)), os.environ.get('OMP_PROC_BIND'),"
    " file=open('seen.' + os.environ['OMPI_COMM_WORLD_LOCAL_RANK'], 'w'))"
)


def mpirun(
    fake_library: Path, folder: Path, ranks: int, *words: str
) -> tuple[dict[int, tuple[str, str]], str]:
    """`homing run --bind` behind mpirun: for each rank its CPUs and OMP_PROC_BIND; and stderr."""
    command = [
        "mpirun",
        "--allow-run-as-root",
        "--oversubscribe",
        "--mca",
        "btl",
        "self,tcp",
        "-n",
        str(ranks),
    ]
    run = [sys.executable, "-m", "homing", "run", "--bind", "--json", "j", "--", sys.executable, "-c", LOOK]
    done = subprocess.run(
        [*command, *words, *run],
        env={**environment(fake_library, folder), "PYTHONPATH": str(TREE)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    found = {}
    for rank in range(ranks):
        cpus, _, bind = (folder / f"seen.{rank}").read_text().strip().rpartition(" ")
        found[rank] = (cpus, bind)
    assert sorted(path.name for path in folder.glob("j.*")) == [f"j.{rank}" for rank in range(ranks)]
    return found, done.stderr


@pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
def test_ranks_of_open_mpi_do_not_meet(fake_library: Path, tmp_path: Path) -> None:
    every = sorted(os.sched_getaffinity(0))
    found, _ = mpirun(fake_library, tmp_path, 2, "--bind-to", "none")
    shares = [eval(cpus) for cpus, _ in found.values()]
    assert sorted(cpu for mine in shares for cpu in mine) == every and len(shares) == 2
    assert {bind for _, bind in found.values()} == {"spread"}
    found, said = mpirun(fake_library, tmp_path, len(every) + 1, "--bind-to", "none")
    assert {cpus for cpus, _ in found.values()} == {str(every)} and {bind for _, bind in found.values()} == {
        "None"
    }
    assert "fewer than tasks" in said
