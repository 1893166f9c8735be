"""Which task of a job a process is: the launchers' variables, in Python and in the library alike."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from homing import run_files
from homing.launchers import Task, load_launchers, task, tasks_per_node
from tests.patience import PATIENCE
from tests.python.conftest import TREE, Command

GENERATED = TREE / "build" / "release" / "generated"


def variables(text: str) -> dict[str, str]:
    """Words NAME=VALUE; those behind "PREFIX:" have it before their names."""
    found, prefix = {}, ""
    for word in text.split():
        if word.endswith(":"):
            prefix = word[:-1]
            continue
        name, _, value = word.partition("=")
        found[prefix + name] = value
    return found


#: An environment, and the rank of a process in it; None: it is the only one, or of no job.
CASES = [
    ("", None),
    # one task is none of several
    ("PMI_RANK=0 PMI_SIZE=1", None),
    ("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", None),
    ("MV2_COMM_WORLD_RANK=0 MV2_COMM_WORLD_SIZE=1", None),
    ("JSM_NAMESPACE_RANK=0 JSM_NAMESPACE_SIZE=1", None),
    ("FLUX_TASK_RANK=0 FLUX_JOB_SIZE=1", None),
    ("PMIX_RANK=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_JOB_ID=7", None),
    ("PALS_RANKID=0 PMI_RANK=0 PMI_SIZE=1", None),
    ("SLURM_PROCID=0 SLURM_NTASKS=1", None),
    # the script of a batch job, and what it starts without a launcher
    ("SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=1", None),
    ("SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=64 SLURM_LOCALID=0", None),
    ("SLURM_JOBID=7 SLURM_PROCID=0 SLURM_NPROCS=64", None),
    ("SLURM_JOB_ID=7 SLURM_NTASKS=64", None),
    # several
    ("PMI_RANK=0 PMI_SIZE=2", 0),
    ("PMI_RANK=1 PMI_SIZE=2", 1),
    ("SLURM_PROCID=0 SLURM_NTASKS=4", 0),
    ("SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=3 SLURM_NTASKS=4", 3),
    ("SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 SLURM_NTASKS=64", 0),
    ("SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=64", None),
    # nobody says how many there are
    ("PMI_RANK=0", 0),
    ("PMIX_RANK=0", 0),
    ("PMIX_RANK=5", 5),
    ("ALPS_APP_PE=2", 2),
    ("PALS_RANKID=0 PALS_LOCAL_RANKID=0", 0),
    ("PMIX_RANK=0 SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=1", 0),
    # the inner launcher counts
    ("SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=64 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4", 3),
    ("SLURM_PROCID=0 SLURM_NTASKS=64 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", None),
    ("SLURM_PROCID=1 SLURM_NTASKS=2 PMI_RANK=3 PMI_SIZE=4", 3),
    ("PMIX_RANK=3 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4", 3),
    # what is no number says nothing
    ("PMI_RANK=-1 PMI_SIZE=2", None),
    ("PMI_RANK=+1 PMI_SIZE=2", None),
    ("PMI_RANK=1x SLURM_PROCID=2", 2),
    ("PMI_RANK=99999999999999999999", None),
    ("PMI_RANK=2147483648", None),
    ("PMI_RANK=2147483647", 2147483647),
    ("PMI_RANK= SLURM_PROCID=2", 2),
    ("PMI_RANK=1 PMI_SIZE=0", 1),
    ("PMI_RANK=1 PMI_SIZE=many", 1),
    ("PMI_RANK=0 PMI_SIZE=\u0661", 0),
    ("SLURM_STEP_NUM_TASKS=x SLURM_NTASKS=2 SLURM_PROCID=1", 1),
]


@pytest.mark.parametrize(("text", "rank"), CASES)
def test_a_rank_is_one_of_several(text: str, rank: int | None) -> None:
    mine = task(variables(text))
    assert (None if mine is None else mine.rank) == rank


DRIVER = r"""
#include "record/rank.hpp"
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
int main() {
    for (std::string line; std::getline(std::cin, line);) {
        ::clearenv();
        std::istringstream words(line);
        for (std::string word; words >> word;) {
            const auto at = word.find('=');
            ::setenv(word.substr(0, at).c_str(), word.substr(at + 1).c_str(), 1);
        }
        std::cout << homing::record::process_rank() << "\n";
    }
}
"""


@pytest.mark.skipif(not GENERATED.is_dir(), reason="the library is not built")
def test_the_library_has_the_same_rule(tmp_path: Path) -> None:
    (tmp_path / "driver.cpp").write_text(DRIVER)
    source = TREE / "src" / "record" / "rank.cpp"
    command = ["g++", "-std=c++20", f"-I{TREE / 'src'}", f"-I{GENERATED}", tmp_path / "driver.cpp", source]
    subprocess.run([*command, "-o", tmp_path / "driver"], check=True, timeout=PATIENCE)
    names = sorted(
        {
            name
            for row in load_launchers()
            for names in (row.rank, row.size, row.batch, row.step)
            for name in names
        }
    )
    dice = random.Random(3)
    texts = [text for text, _ in CASES]
    for _ in range(3000):
        some = dice.sample(names, dice.randrange(1, 7))
        texts.append(
            " ".join(f"{name}={dice.choice(['0', '0', '1', '1', '2', '4', '', 'x', '-1'])}" for name in some)
        )
    done = subprocess.run(
        [tmp_path / "driver"],
        input="\n".join(texts) + "\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    ranks = [(mine.rank if (mine := task(variables(text))) else -1) for text in texts]
    assert [(text, int(rank)) for text, rank in zip(texts, done.stdout.split(), strict=True)] == list(
        zip(texts, ranks, strict=True)
    )
    assert len(set(ranks)) > 3


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("OMPI_COMM_WORLD_: RANK=5 SIZE=8 LOCAL_RANK=1 LOCAL_SIZE=4", (1, 4)),
        ("PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4", (1, 4)),
        ("PALS_RANKID=5 PALS_LOCAL_RANKID=1 PMI_RANK=5 PMI_SIZE=8 PMI_LOCAL_RANK=1 PMI_LOCAL_SIZE=4", (1, 4)),
        ("MV2_COMM_WORLD_: RANK=5 SIZE=8 LOCAL_RANK=1 LOCAL_SIZE=4", (1, 4)),
        ("JSM_NAMESPACE_: RANK=5 SIZE=8 LOCAL_RANK=1 LOCAL_SIZE=4", (1, 4)),
        ("SLURM_: PROCID=5 NTASKS=7 LOCALID=1 NODEID=1 STEP_TASKS_PER_NODE=4,3", (1, 3)),
        ("SLURM_: PROCID=5 NTASKS=7 LOCALID=1 NODEID=1 TASKS_PER_NODE=4,3", (1, 3)),
        ("SLURM_: PROCID=5 NTASKS=7 LOCALID=1 TASKS_PER_NODE=4,3", (1, None)),
        ("PMIX_RANK=5 SLURM_: PROCID=5 NTASKS=8 LOCALID=1 NODEID=1 STEP_TASKS_PER_NODE=4(x2)", (1, 4)),
        ("FLUX_TASK_RANK=5 FLUX_JOB_SIZE=8 FLUX_TASK_LOCAL_ID=1 FLUX_JOB_NNODES=2", (1, 4)),
        ("FLUX_TASK_RANK=5 FLUX_JOB_SIZE=7 FLUX_TASK_LOCAL_ID=1 FLUX_JOB_NNODES=2", (1, None)),
        ("PMI_RANK=5 PMI_SIZE=8", (None, None)),
        ("ALPS_APP_PE=5", (None, None)),
    ],
)  # fmt: skip
def test_which_tasks_are_on_this_host(text: str, local: tuple[int | None, int | None]) -> None:
    mine = task(variables(text))
    assert isinstance(mine, Task)
    assert (mine.local_rank, mine.local_size) == local


def test_slurms_counts_of_tasks() -> None:
    assert tasks_per_node("4(x2),3,1(x3)") == [4, 4, 3, 1, 1, 1]
    assert tasks_per_node("") == tasks_per_node("4(x2") == tasks_per_node("four") == []


# The names of files


def test_only_one_of_several_tasks_gets_a_suffix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for row in load_launchers():
        for name in (*row.rank, *row.size, *row.batch, *row.step):
            monkeypatch.delenv(name, raising=False)
    for text, rank in CASES:
        with monkeypatch.context() as chosen:
            for name, value in variables(text).items():
                chosen.setenv(name, value)
            expected = "r" if rank is None else f"r.{rank}"
            assert run_files.with_rank("r") == expected
            assert run_files.with_rank("r.%r") == "r.%r"


def test_the_names_that_were_used_are_said(homing: Command, tmp_path: Path) -> None:
    job = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    done = homing("run", "--json", "j", "--", "true", **job)
    assert "note: task 0 of 2 (Open MPI) has files of its own: --json j.0\n" in done.stderr
    done = homing("run", "--summary", "none", "--json", "j", "--", "true", **job)
    assert done.stderr == "homing run: task 0 of 2 (Open MPI) has files of its own: --json j.0\n"
    batch = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}
    done = homing("run", "--json", "k", "--", "true", **batch)
    assert (tmp_path / "k").is_file() and "task" not in done.stderr
