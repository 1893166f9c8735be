"""Parallel loops that become one region: where that makes no difference, and where it would."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate import translation
from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import Workshop, run_command, without_times

LOOPS = """\
program p
  implicit none
  integer, parameter :: n = 40
  integer :: i, step, steps
  real(8) :: a(0:n + 1), b(0:n + 1), s
!$homing distribute a(block), b(block)
  steps = 5
  s = 2
  b = 0
  b(0) = 1
  do step = 1, steps
    !$omp parallel do default(shared) private(i)
    !$homing on home(a(i))
    do i = 1, n
      a(i) = (b(i - 1) + b(i + 1))/s
    end do
    !$omp end parallel do
    !$omp parallel do
    !$homing on home(b(i))
    do i = 1, n
      b(i) = a(i)
    end do
  end do
  print *, sum(b)
end program
"""
C_LOOPS = """\
#include <stdio.h>
int main(void) {
    static double a[42], b[42];
    const int steps = 5;
#pragma homing distribute a[block], b[block]
    b[0] = 1;
    for (int step = 0; step < steps; step++) {
#pragma omp parallel for
#pragma homing on home(a[i])
        for (int i = 1; i < 41; i++)
            a[i] = (b[i - 1] + b[i + 1]) / 2;
#pragma omp parallel for
#pragma homing on home(b[i])
        for (int i = 1; i < 41; i++)
            b[i] = a[i];
    }
    double sum = 0;
    for (int i = 0; i < 42; i++)
        sum += b[i];
    printf("%.17g\\n", sum);
    return 0;
}
"""


def regions(folder: Path, text: str, name: str = "p.f90") -> list[bool]:
    """Of each parallel region that reads shadows: does it hold the loop over steps?"""
    path = folder / name
    path.write_text(text)
    new = translate([str(path)], Options("spmd")).outputs[0].text
    begin, end = (
        ("#pragma omp parallel", "homing_leave") if name == "p.c" else ("!$omp parallel", "end parallel")
    )
    head = "step < steps" if name == "p.c" else "do step ="
    found = []
    for region in new.split(begin)[1:]:
        inside = region.split(end)[0]
        if "homing_fetch(" in inside:
            found.append(head in inside)
    return found


def test_a_loop_of_nothing_but_parallel_loops_is_in_the_region(tmp_path: Path) -> None:
    assert regions(tmp_path, LOOPS) == [True]
    assert regions(tmp_path, C_LOOPS, "p.c") == [True]


def test_parallel_loops_side_by_side_are_one_region(tmp_path: Path) -> None:
    text = LOOPS.replace("  end do\n  print", "    s = s + 1\n  end do\n  print")
    assert regions(tmp_path, text) == [False]
    path = tmp_path / "p.f90"
    new = translate([str(path)], Options("spmd")).outputs[0].text
    inside = new[new.index("do step =") :]
    assert inside.count("!$omp parallel") == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  print *, sum(b)", "  print *, sum(b), step"),  # the counter is of use behind it
        ("      b(i) = a(i)", "      b(i) = a(i) + step\n      steps = 5"),  # the bounds may change
        ("  integer :: i, step, steps", "  integer, target :: i, step, steps"),
        ("!$omp parallel do\n", "!$omp parallel do reduction(+:s)\n"),
        ("!$omp parallel do\n", "!$omp parallel do if(steps > 3)\n"),
        ("    !$omp parallel do\n", "    call other(a)\n    !$omp parallel do\n"),
        ("do step = 1, steps", "do step = 1, count(steps)"),
    ],
)
def test_the_region_stays_in_the_loop(tmp_path: Path, old: str, new: str) -> None:
    text = LOOPS.replace(old, new)
    assert text != LOOPS
    if "count(" in new:
        text = text.replace(
            "end program",
            "contains\n  integer function count(k)\n    integer :: k\n"
            "    count = k\n  end function\nend program",
        )
    if "other(" in new:
        text = text.replace(
            "end program",
            "contains\n  subroutine other(x)\n    real(8) :: x(0:n + 1)\n"
            "    x(0) = 0\n  end subroutine\nend program",
        )
    assert True not in regions(tmp_path, text)


def test_positions_are_the_programs(tmp_path: Path) -> None:
    path = tmp_path / "p.f90"
    path.write_text(LOOPS)
    plan = translate([str(path)], Options("spmd")).plan
    assert [step.place.line for step in plan.steps] == [9, 11, 14, 20, 24]


@pytest.mark.parametrize(("text", "name"), [(LOOPS, "p.f90"), (C_LOOPS, "p.c")])
def test_the_results_are_the_same(tmp_path: Path, text: str, name: str) -> None:
    workshop = Workshop(tmp_path)
    path = tmp_path / name
    path.write_text(text)
    plain = run_command([str(workshop.plain(path))], tmp_path)
    program, _ = workshop.translated(path, "spmd", checked=name == "p.f90")
    for threads in ("1", "3", "7"):
        assert without_times(run_command([str(program)], tmp_path, OMP_NUM_THREADS=threads)) == without_times(
            plain
        )


def test_what_no_join_changed_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second time, without joining, only where joining may be why: reading takes most of the time."""
    read: list[str] = []
    whole = translation.read_all
    monkeypatch.setattr(
        translation,
        "read_all",
        lambda sources, *more: (read.append(sources[0].path), whole(sources, *more))[1],
    )
    source = tmp_path / "p.c"
    one = C_LOOPS.replace("#pragma omp parallel for\n#pragma homing on home(b[i])\n", "")
    for text, times in ((one, 1), (C_LOOPS, 2)):
        read.clear()
        text = text.replace("int main", "int one(void) { return 1; }\nint main")  # laid out in lines first
        source.write_text(text.replace("a[i] = (", "b[3] = a[i] = ("))
        with pytest.raises(TranslationError) as error:
            translate([str(source)], Options("spmd"))
        assert [problem.position.line for problem in error.value.problems][:1] == [12]
        assert len(read) == times
