"""Plans: what becomes of arrays and loops, as objects, which --explain prints and --json writes."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from homing.translate.directives.model import Kind
from homing.translate.plan import explain
from homing.translate.plan.distributions import Distribution
from homing.translate.plan.model import (
    AnewPlan,
    Exchange,
    Home,
    LoopPlan,
    Plan,
    ReadPlan,
    Schedule,
    SerialPlan,
    SinglePlan,
)
from homing.translate.plan.record import to_json
from homing.translate.translation import Options, Refused, translate
from tests.python.translate_programs import APPS, PATIENCE, PROGRAMS, TREE

CHAPMAN = APPS / "chapman"


def plan_of(path: Path, target: str = "spmd") -> Plan:
    return translate([str(path)], Options(target, flags=(f"-I{APPS / 'common'}",))).plan


def written(folder: Path, text: str, name: str = "p.f90") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def boxes(exchanges: tuple[Exchange, ...]) -> list[str]:
    """`b(1:n, j-1..j+1) 2 * n` for each: where it lies, and how many elements it has."""
    return [f"{explain._box(one.box)} {one.count}" for one in exchanges]


def reduced(document: dict[str, Any]) -> Any:
    """Without what differs between equal programs in two languages: places and procedures' names."""
    leave = {"file", "files", "line", "lines", "column", "routine", "homing", "text", "passed_from"}

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(each) for key, each in value.items() if key not in leave}
        return [without(each) for each in value] if isinstance(value, list) else value

    return without(document)


# --- the paper's programs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["spmd", "mpi"])
def test_jacobi_fetches_one_column_on_each_side(target: str) -> None:
    plan = plan_of(CHAPMAN / "jacobi.f90", target)
    a, b = plan.arrays[:2]
    assert (a.formats(), a.shadow) == ("a(*, block)", ((0, 0), (0, 0)))
    assert (b.formats(), b.shadow) == ("b(*, block)", ((0, 0), (1, 1)))
    assert [one.formats() for one in plan.arrays[2:]] == ["column_sum(block)", "column_error(block)"]
    assert {one.directive for one in plan.arrays[2:]} == {"align"}
    _, sweep, copy, _ = plan.loops()
    assert (sweep.why, sweep.home, sweep.first, sweep.last) == (Home.ON_HOME, "a", "1", "n")
    assert [(one.variable, one.dimension, one.offset) for one in sweep.follows] == [("j", 1, 0)]
    assert boxes(sweep.fetches) == ["b(1:n, j-1..j+1) 2 * n"]
    assert (copy.home, copy.fetches, copy.pushes) == ("b", (), ())
    assert [one.gathered for one in plan.steps if isinstance(one, SerialPlan)] == [
        ("column_sum", "column_error")
    ]


def test_lu_broadcasts_the_column_that_one_owner_divided() -> None:
    plan = plan_of(CHAPMAN / "lu.f90")
    single = next(one for one in plan.steps if isinstance(one, SinglePlan))
    assert (single.owner, single.index, single.gathered) == ("lu", ((1, "k"),), ())
    update = plan.loops()[1]
    assert (update.why, update.first, update.fetches) == (Home.AFFINITY, "k + 1", ())
    assert boxes(update.broadcasts) == ["lu(k + 1:n, k) (-k + n)"]
    assert [(one.array, one.dimension, one.variable, one.offset) for one in update.locals] == [
        ("lu", 1, "j", 0)
    ]
    assert update.follows[0].dealt.kind is Kind.CYCLIC


@pytest.mark.parametrize("name", ["lbe.f90", "lbe.c"])
def test_lbe_pushes_six_directions_and_fetches_three_at_each_wall(name: str) -> None:
    plan = plan_of(CHAPMAN / name)
    interior = next(one for one in plan.loops() if one.pushes)
    assert len(interior.pushes) == 6
    assert {one.count for one in interior.pushes} == {"nx"}
    assert {(side.low, side.high) for one in interior.pushes for side in one.box.sides if side.follow} == {
        (-1, -1),
        (1, 1),
    }
    walls = [one for one in plan.steps if isinstance(one, SinglePlan)]
    assert [(one.owner, one.index[0][1], len(one.fetches)) for one in walls] == [
        ("f", "1", 3),
        ("f", "ny", 3),
    ]
    arguments = [one for one in plan.arrays if one.passed_from]
    assert {one.formats() for one in plan.arrays if one.name == "f"} == {
        "f(*, *, block)" if name.endswith("f90") else "f(block, *, *)"
    }
    assert len({one.shadow for one in plan.arrays if one.name == "f"}) == 1  # wherever it is passed
    assert {one.routine for one in arguments} >= {"start", "collision_advection_interior"}


@pytest.mark.parametrize("name", ["jacobi", "lu", "lbe"])
@pytest.mark.parametrize("suffix", ["f90", "c"])
def test_pages_follow_the_same_homes_and_exchange_nothing(name: str, suffix: str) -> None:
    path = CHAPMAN / f"{name}.{suffix}"
    parts, pages = plan_of(path, "spmd"), plan_of(path, "pages")
    own = [one for one in pages.loops() if one.schedule is Schedule.OWN]
    homes = {one.place: one.follows[0] for one in parts.loops()}
    assert own
    assert all(one.follows[0] == homes[one.place] for one in own)
    assert not any(one.fetches or one.pushes or one.broadcasts or one.locals for one in own)
    assert not any(array.pieces for array in pages.arrays)


def test_the_plans_for_threads_and_for_ranks_are_equal() -> None:
    for path in sorted(PROGRAMS.glob("*.f90")):
        try:
            mpi = plan_of(path, "mpi")
        except Refused:
            continue
        spmd = plan_of(path, "spmd")
        if path.name == "sums_in_regions.f90":  # its SINGLE and MASTER tell all ranks what they read
            differing = [one for one, other in zip(mpi.steps, spmd.steps, strict=True) if one != other]
            assert isinstance(differing[0], SinglePlan)
            assert differing[0].gathered == ("x",)
            continue
        if path.name == "names_of_loops.f90":  # its SINGLE writes what ranks have each
            differing = [one for one, other in zip(mpi.steps, spmd.steps, strict=True) if one != other]
            assert [type(one) for one in differing] == [SinglePlan]
            continue
        assert dataclasses.replace(mpi, target="spmd", notes=spmd.notes) == spmd, path


# --- two languages ------------------------------------------------------------------------------------------

FORTRAN_TWIN = """program twin
  implicit none
  integer, parameter :: n = 40, m = 30
  integer :: i, j
  integer(8) :: total
  integer(8) :: a(0:n + 1, 0:m + 1), b(0:n + 1, 0:m + 1), c(0:n + 1)
  !$homing distribute a(FORMAT, *), b(FORMAT, *), c(FORMAT)
  total = 0
  !$omp parallel do private(j)
  !$homing on home(b(i, :))
  do i = 0, n + 1
    c(i) = i
    do j = 0, m + 1
      b(i, j) = i + j
    end do
  end do
  !$omp parallel do private(j) reduction(+:total)
  !$homing on home(a(i, :))
  do i = 1, n
    do j = 1, m
      a(i, j) = b(i - 1, j) + b(i + 2, j - 1) + c(3)
      total = total + a(i, j)
    end do
  end do
  !$omp parallel do
  !$homing affinity(i) = data(c(i))
  do i = 2, n
    c(i - 1) = b(i, 1)
  end do
  print *, total
end program
"""

C_TWIN = """#include <stdio.h>
#define n 40
#define m 30
int main(void) {
    long total = 0;
    static long a[n + 2][m + 2], b[n + 2][m + 2], c[n + 2];
#pragma homing distribute a[FORMAT][*], b[FORMAT][*], c[FORMAT]
#pragma omp parallel for
#pragma homing on home(b[i][:])
    for (int i = 0; i <= n + 1; i++) {
        c[i] = i;
        for (int j = 0; j <= m + 1; j++)
            b[i][j] = i + j;
    }
#pragma omp parallel for reduction(+ : total)
#pragma homing on home(a[i][:])
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            a[i][j] = b[i - 1][j] + b[i + 2][j - 1] + c[3];
            total = total + a[i][j];
        }
#pragma omp parallel for
#pragma homing affinity(i) = data(c[i])
    for (int i = 2; i <= n; i++)
        c[i - 1] = b[i][1];
    printf("%ld\\n", total);
}
"""


@pytest.mark.parametrize("format_", ["block", "cyclic", "cyclic(5)", "gen_block(20, 22)"])
@pytest.mark.parametrize("target", ["spmd", "mpi", "pages"])
def test_equal_programs_have_equal_plans_in_both_languages(tmp_path: Path, format_: str, target: str) -> None:
    fortran = written(tmp_path, FORTRAN_TWIN.replace("FORMAT", format_))
    c = written(tmp_path, C_TWIN.replace("FORMAT", format_), "p.c")
    one, other = (reduced(to_json(plan_of(path, target))) for path in (fortran, c))
    assert one == other
    loops = [step for step in one["steps"] if step["kind"] == "loop"]
    assert [loop["why"] for loop in loops] == ["on home", "on home", "affinity"]
    if target == "pages":
        return
    # One row of 30 below; two rows above, moved by one column: each is a box of its own.
    above = (30, "m") if format_ == "cyclic" else (60, "2 * m")  # the row in between is another block's
    assert [(box["elements"], box["count"]) for box in loops[1]["fetches"]] == [(30, "m"), above]
    assert [box["elements"] for box in loops[1]["broadcasts"]] == [1]
    assert [(box["elements"], box["dimensions"][0]["low"]) for box in loops[2]["pushes"]] == [(1, -1)]
    assert loops[1]["reductions"] == [{"operator": "+", "variable": "total"}]


# --- numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["block", "cyclic", "cyclic(4)"])
@pytest.mark.parametrize(
    "written_at, reads", [(0, (-1, 1)), (0, (-2,)), (0, (1, 2)), (1, (0, 1, 2)), (-1, (-1, 0, 3))]
)
def test_what_a_block_fetches_is_what_lies_beside_it(
    tmp_path: Path, kind: str, written_at: int, reads: tuple[int, ...]
) -> None:
    """Counted index by index, for blocks that do not touch the ends or one another's shadows."""
    text = f"""program p
  implicit none
  integer, parameter :: n = 400
  integer :: i
  integer :: a(-9:n + 9), b(-9:n + 9)
  !$homing distribute a({kind}), b({kind})
  a = 0
  b = 1
  !$omp parallel do
  do i = 1, n
    a(i{written_at:+d}) = {" + ".join(f"b(i{at:+d})" for at in reads)}
  end do
  print *, sum(a)
end program
""".replace("i+0", "i").replace("i-0", "i")
    plan = plan_of(written(tmp_path, text))
    (loop,) = plan.loops()
    assert loop.follows[0].offset == written_at
    parts, extent = 4, 419
    cyclic = re.match(r"cyclic(?:\((\d)\))?", kind)
    dealt = (
        Distribution.cyclic(extent, parts, int(cyclic[1] or 1))
        if cyclic
        else Distribution.block(extent, parts)
    )
    block = list(dealt.local_ranges(1))[-2 if cyclic else 0]
    distances = [at - written_at for at in reads if at != written_at]
    # What lies between two neighbours is fetched with them.
    wanted = {index + at for index in block for at in range(min(distances), max(distances) + 1)}
    beside = len(wanted - set(block))
    assert sum(one.elements or 0 for one in loop.fetches) == beside
    (array,) = (one for one in plan.arrays if one.name == "b")
    assert array.shadow == ((max(0, -min(distances)), max(0, *distances)),)


def test_a_grid_says_that_a_count_is_not_known(tmp_path: Path) -> None:
    text = """program p
  implicit none
  integer, parameter :: n = 40
  integer :: i, j, a(n, n), b(n, n)
  !$homing distribute a(block, block), b(block, block)
  a = 0
  b = 1
  !$omp parallel do private(i)
  !$homing nest(j, i), on home(a(i, j))
  do j = 1, n
    do i = 2, n
      a(i, j) = b(i - 1, j)
    end do
  end do
  print *, sum(a)
end program
"""
    plan = plan_of(written(tmp_path, text))
    (loop,) = plan.loops()
    assert [(one.variable, one.dimension) for one in loop.follows] == [("i", 0), ("j", 1)]
    assert [(one.count, one.elements) for one in loop.fetches] == [("", None)]
    assert "as many elements for each block as the parts are long" in "\n".join(
        text for _, text in explain.lines(plan)
    )


# --- every other kind of step -------------------------------------------------------------------------------

STEPS = """program p
  implicit none
  integer, parameter :: n = 40
  integer :: i, k, s
  integer :: a(n), b(n), w(n)
  !$homing distribute a(block), b(block)
  a = 0
  b = 1
  !$omp parallel do
  do i = 1, n
    w(i) = i
  end do
  !$omp parallel private(s)
  s = a(1)
  do k = 1, 2
    !$omp do
    !$homing on home(a(i))
    do i = 2, n
      a(i) = b(i - 1) + s
    end do
  end do
  !$omp do
  !$homing on home(a(i))
  do i = 2, n
    a(i) = a(i) + b(i - 1)
  end do
  !$omp do
  !$homing on home(a(i))
  do i = 2, n
    a(i) = a(i) + 2*b(i - 1)
  end do
  !$omp end parallel
  !$omp parallel do
  !$homing affinity(i) = thread(i/2)
  do i = 1, n
    w(i) = w(i) + 1
  end do
  !$homing redistribute a(cyclic)
  print *, sum(a), sum(w)
end program
"""


def test_every_kind_of_step_is_in_the_plan(tmp_path: Path) -> None:
    plan = plan_of(written(tmp_path, STEPS))
    kept, repeated, first, again, thread = plan.loops()
    assert (kept.schedule, kept.reason) == (Schedule.KEPT, "touches no distributed array")
    # The first may run in no iteration over k, and then fetches nothing.
    assert boxes(repeated.fetches) == boxes(first.fetches) == ["b(i-1) 1"]
    assert (again.fetches, [box.array for box in again.at_hand]) == ((), ["b"])
    assert (thread.schedule, thread.thread, thread.why) == (Schedule.THREAD, "i/2", Home.THREAD)
    (read,) = (one for one in plan.steps if isinstance(one, ReadPlan))
    assert [(one.box.array, one.elements) for one in read.broadcasts] == [("a", 1)]
    (anew,) = (one for one in plan.steps if isinstance(one, AnewPlan))
    assert [one.kind for one in anew.dimensions] == [Kind.CYCLIC]
    serial = [one for one in plan.steps if isinstance(one, SerialPlan)]
    assert [(one.gathered, one.changed) for one in serial] == [(("a", "b"), ("a", "b")), (("a",), ())]
    lines = [one.place.line for one in plan.steps]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    "statement, reason",
    [
        ("a(i*i) = 1", "is not the index of a shared-out loop plus a number"),
        ("a(1) = i", "every iteration writes the same owner's element"),
        ("c(i) = a(i)", "is not distributed like"),
        ("a(i) = 1; if (i > 3) exit", "leaves a loop that is shared out"),
    ],
)
def test_a_refused_loop_says_why(tmp_path: Path, statement: str, reason: str) -> None:
    text = f"""program p
  implicit none
  integer, parameter :: n = 40
  integer :: i, a(n), b(n), c(2*n)
  !$homing distribute a(block), b(block), c(block)
  a = 0
  !$omp parallel do
  !$homing on home(b(i))
  do i = 2, n
    {statement}
  end do
  !$omp parallel do
  do i = 2, n
    b(i) = a(i)
  end do
  print *, sum(a)
end program
"""
    with pytest.raises(Refused) as caught:
        plan_of(written(tmp_path, text))
    plan = caught.value.plan
    refused, other = plan.loops()
    assert refused.schedule is Schedule.REFUSED
    assert reason in refused.reason
    assert other.schedule is Schedule.OWN
    assert [one.reason for one in plan.refused] == [one.reason for one in caught.value.problems]


# --- what is printed ----------------------------------------------------------------------------------------


def homing(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "homing", "translate", *words]
    environment = {"PYTHONPATH": str(TREE), "HOME": str(folder), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.parametrize("target", ["spmd", "pages", "mpi"])
def test_what_is_printed_and_what_is_written_are_the_plan(tmp_path: Path, target: str) -> None:
    written(tmp_path, FORTRAN_TWIN.replace("FORMAT", "block"))
    text = homing(tmp_path, "p.f90", "--to", target, "--explain")
    data = homing(tmp_path, "p.f90", "--to", target, "--explain", "--json")
    assert (text.returncode, data.returncode) == (0, 0), text.stderr + data.stderr
    plan = plan_of(tmp_path / "p.f90", target)
    shown = "\n".join(line for _, line in explain.lines(plan)) + "\n"
    assert text.stdout == shown.replace(f"{tmp_path}/", "")
    document = json.loads(json.dumps(to_json(plan)).replace(f"{tmp_path}/", ""))
    assert json.loads(data.stdout) == document
    for one in (*plan.arrays, *plan.steps):
        assert f"p.f90:{one.place.line}: {one.routine}: " in text.stdout


def test_a_refused_program_is_explained_with_status_one(tmp_path: Path) -> None:
    text = STEPS.replace("a(i) = b(i - 1) + s", "a(2*i) = b(i - 1) + s")
    written(tmp_path, text)
    told = homing(tmp_path, "p.f90", "--to", "spmd", "--explain")
    assert told.returncode == 1
    assert "p.f90:18: p: loop over i = 2..n: refused: " in told.stdout
    assert "refused: the distributed subscript" in told.stdout.splitlines()[-1]
    assert "p.f90:19:" in told.stderr
    data = homing(tmp_path, "p.f90", "--to", "spmd", "--explain", "--json")
    assert data.returncode == 1
    assert [one["line"] for one in json.loads(data.stdout)["refused"]] == [19]
    assert not (tmp_path / "spmd").exists()
    assert homing(tmp_path, "p.f90", "--to", "spmd").returncode == 1


def test_explanations_go_with_a_compilers_command(tmp_path: Path) -> None:
    written(tmp_path, STEPS)
    done = homing(
        tmp_path, "--to", "spmd", "--explain", "--json", "--", "gfortran", "-fopenmp", "-c", "p.f90"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"] == ["p.f90"]
    assert (tmp_path / "p.o").exists()
    refused = homing(tmp_path, "--to", "spmd", "--explain", "--", "gfortran", "-fopenmp", "-E", "p.f90")
    assert refused.returncode == 2
    assert "--explain: not with -E" in refused.stderr


def test_json_alone_is_misuse(tmp_path: Path) -> None:
    written(tmp_path, STEPS)
    done = homing(tmp_path, "p.f90", "--to", "spmd", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--json: only with --explain" in done.stderr


def test_the_manual_names_every_field(tmp_path: Path) -> None:
    manual = (TREE / "docs" / "json.md").read_text().partition("## homing translate --explain --json")[2]
    found = set[str]()

    def keys(value: Any) -> None:
        if isinstance(value, dict):
            found.update(value)
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            keys(each)

    for path in (
        written(tmp_path, STEPS),
        written(tmp_path, C_TWIN.replace("FORMAT", "cyclic"), "p.c"),
        CHAPMAN / "lu.f90",
        CHAPMAN / "lbe.f90",
    ):
        keys(to_json(plan_of(path)))
    with pytest.raises(Refused) as caught:
        plan_of(written(tmp_path, STEPS.replace("s = a(1)", "a(2) = a(1)")))
    keys(to_json(caught.value.plan))
    found.update(one.value for kind in (Home, Schedule) for one in kind)
    keys(to_json(plan_of(CHAPMAN / "jacobi.f90", "upm")))
    found.update(["loop", "single", "serial", "read", "redistribute", "note", "gathered", "scattered"])
    assert {name for name in found if f"`{name}`" not in manual} == set()


def test_the_manual_shows_what_is_printed(tmp_path: Path) -> None:
    manual = (TREE / "docs" / "directives.md").read_text()
    begin = manual.index("    program first\n")
    program = manual[begin : manual.index("    end program\n", begin)] + "    end program\n"
    path = written(tmp_path, re.sub(r"^ {4}", "", program, flags=re.MULTILINE), "first.f90")
    begin = manual.index("    first.f90: --to spmd\n")
    shown = manual[begin : manual.index("\n\n", begin)]
    printed = "\n".join(f"    {text}" for _, text in explain.lines(plan_of(path)))
    assert shown == printed.replace(f"{tmp_path}/", "")


def test_the_plan_for_upm_has_hot_arrays_and_the_time_loop() -> None:
    plan = plan_of(CHAPMAN / "jacobi.f90", "upm").upm
    assert plan is not None
    assert {one.name for one in plan.hot if one.registered} == {"a", "b", "column_sum", "column_error"}
    assert all(one.reads and one.writes for one in plan.hot)
    assert (plan.variable, plan.constructs, plan.region) == ("m", 2, None)
    assert plan.time_loop is not None and plan.time_loop.line == 67
    assert plan_of(CHAPMAN / "jacobi.f90").upm is None


def test_plans_are_frozen() -> None:
    plan = plan_of(CHAPMAN / "jacobi.f90")
    for one in (plan, *plan.arrays, *plan.steps, plan.loops()[1].follows[0], plan.loops()[1].fetches[0].box):
        assert dataclasses.is_dataclass(one)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, dataclasses.fields(one)[0].name, None)
        hash(one)  # and so is all that is in it
    assert all(isinstance(one, LoopPlan) for one in plan.loops())
