"""Every OpenMP clause under every target, as the table has it: kept right, or refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.plan.clauses import TABLE, TARGETS, Place
from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, Workshop, run_command

TEXT = {
    "aligned": "aligned(c)",
    "allocate": "private(t) allocate(t)",
    "collapse": "collapse(1)",
    "copyin": "copyin(kept)",
    "copyprivate": "copyprivate(u)",
    "default": "default(none) shared(a, c, s, u)",
    "filter": "filter(0)",
    "firstprivate": "firstprivate(t)",
    "if": "if (n > 3)",
    "lastprivate": "lastprivate(t)",
    "linear": "linear(k)",
    "nontemporal": "nontemporal(c)",
    "num_threads": "num_threads(2)",
    "order": "order(concurrent)",
    "ordered": "ordered",
    "private": "private(t)",
    "proc_bind": "proc_bind(close)",
    "reduction": "reduction(+:s)",
    "safelen": "safelen(4)",
    "schedule": "schedule(dynamic, 1)",
    "shared": "shared(c)",
    "simdlen": "simdlen(2)",
}
SIMD = {"aligned", "linear", "nontemporal", "safelen", "simdlen"}
HOME = "  !$homing on home(a(i))"
HEAD = """program p
  implicit none
  integer, parameter :: n = 25
  real(8) :: a(n), s, t, u
  real(8), allocatable :: c(:)
  integer, save :: kept = 3
  integer :: i, k = 0
  !$omp threadprivate(kept)
  !$homing distribute a(block)
  allocate (c(n))
  a = 1; c = 2; s = 0; t = 5; u = 0
"""
BODY = "    a(i) = a(i) + i{}\n"


def _loop(clause: str, directive: str, home: str) -> str:
    term = " + t" if clause == "firstprivate" else ""
    own = clause in ("private", "allocate", "lastprivate")
    more = "    t = i\n    a(i) = a(i) + t\n" if own else ""
    more += "    k = k + 1\n" if clause == "linear" else ""
    more += "    s = s + a(i)\n" if clause == "reduction" else ""
    simd = " simd" if clause in SIMD else ""
    closing = " nowait" if clause == "nowait" else ""
    text = TEXT.get(clause, "")
    if clause == "affinity of sgi":  # says itself where the loop runs
        text, home = f"affinity(i) = {'thread(i)' if 'thread' in home else 'data(a(i))'}", "  ! ."
    lines = f"  !$omp {directive}{simd} {text}\n{home}\n  do i = 1, n\n{BODY.format(term)}{more}  end do\n"
    if directive == "do":
        lines = f"  !$omp parallel\n{lines}  !$omp end do{simd}{closing}\n  !$omp end parallel\n"
    return lines


def construct(place: Place, clause: str) -> str:
    """A construct with the clause, whose effect shows in a, s and u."""
    if place is Place.LOOP:
        return _loop(clause, "do" if clause == "nowait" else "parallel do", HOME)
    if place is Place.THREADS:
        directive = "do" if clause == "nowait" else "parallel do"
        return _loop(clause, directive, "  !$homing affinity(i) = thread(i)").replace("a(i)", "c(i)")
    if place is Place.REGION:  # combined: --to pages changes no other
        private = " private(i)" if clause == "default" else ""
        region = f"  !$omp parallel do {TEXT[clause]}{private}\n{HOME}\n  do i = 1, n\n"
        more = {"reduction": "    s = s + a(i)\n", "private": "    t = i\n    a(i) = t\n"}.get(clause, "")
        term = {"firstprivate": " + t", "copyin": " + kept"}.get(clause, "")
        return f"{region}{BODY.format(term)}{more}  end do\n"
    name = "masked" if clause == "filter" else "single"
    begin, end = ("", TEXT[clause]) if clause == "copyprivate" else (TEXT.get(clause, ""), "")
    end = "nowait" if clause == "nowait" else end
    region = "private(u)" if clause == "copyprivate" else ""
    behind = (
        f"  !$omp do\n{HOME}\n  do i = 1, n\n    a(i) = a(i) + u\n  end do\n  !$omp end do\n"
        if clause == "copyprivate"
        else ""
    )
    inside = {
        "copyprivate": "  u = a(20)\n",
        "firstprivate": "  a(21) = t\n  t = 7\n",
        "private": "  t = 7\n  a(22) = t\n",
        "allocate": "  t = 8\n  a(23) = t\n",
    }.get(clause, "  a(24) = 9\n")
    return (
        f"  !$omp parallel {region}\n  !$omp {name} {begin}\n{inside}  !$omp end {name} {end}\n{behind}"
        "  !$omp end parallel\n"
    )


ALL = [(place, clause) for place, clauses in TABLE.items() for clause in clauses]


@pytest.mark.parametrize("target", TARGETS)
def test_clauses_are_kept_or_refused(tmp_path: Path, target: str) -> None:
    path = tmp_path / "p.f90"
    for place, clause in ALL:
        path.write_text(HEAD + construct(place, clause) + "  print *, a, c, s, t, u\nend program\n")
        if target == "pages" and place is Place.SINGLE:
            continue  # not touched: the next test runs them
        if target in ("spmd", "mpi") and (place, clause) == (Place.LOOP, "ordered"):
            continue  # such a loop does not work on parts: targets/whole_constructs.py
        fate = TABLE[place][clause][TARGETS.index(target)]
        where = f"{clause} on {place.value}"
        try:
            text = translate([str(path)], Options(target)).outputs[0].text
        except TranslationError as error:
            assert fate.reason, f"{where}: {error}"
            reasons = [problem.reason for problem in error.problems]
            assert any(fate.reason in reason for reason in reasons), f"{where}: {reasons}"
            first = [problem for problem in error.problems if "is shared and written" not in problem.reason]
            assert all(problem.position.line == 12 for problem in first), where
            continue
        assert not fate.reason, f"{where} is translated"
        if fate.kept:
            name = clause.removesuffix(" of sgi")
            assert name in "".join(line for line in text.splitlines() if "!$omp" in line), where


@pytest.mark.parametrize("target", ["spmd", "mpi", "pages"])
def test_what_is_kept_is_right(tmp_path_factory: pytest.TempPathFactory, target: str) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("clauses"))
    kept = [
        construct(place, clause)
        for place, clause in ALL
        if TABLE[place][clause][TARGETS.index(target)].reason is None and clause != "affinity of sgi"
    ]
    source = workshop.place() / "p.f90"
    source.write_text(HEAD + "".join(kept) + "  print *, a, c, s, t, u\nend program\n")
    expected = workshop.printed(source).split()
    program, _ = workshop.translated(source, target)
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    for threads in ("1", "2") if target == "mpi" else ("1", "3"):
        found = run_command([*start, program], workshop.folder, OMP_NUM_THREADS=threads).split()
        assert [float(word) for word in found] == pytest.approx([float(word) for word in expected])


@pytest.mark.parametrize("target", TARGETS)
def test_a_clause_that_is_not_known_is_refused(tmp_path: Path, target: str) -> None:
    path = tmp_path / "p.f90"
    loop = construct(Place.LOOP, "schedule").replace("schedule", "yonder")
    path.write_text(HEAD + loop + "end program\n")
    if target == "upm":
        translate([str(path)], Options(target))
        return
    with pytest.raises(TranslationError, match="YONDER with distributed arrays is not supported"):
        translate([str(path)], Options(target))


COUNTERS = """#include <stdio.h>
#define N 40
double a[N][N], b[N][N];
#pragma homing distribute a[block][*], b[block][*]
int main(void) {
    int i, j;
    double s = 0;
    #pragma omp parallel for collapse(2)
    #pragma homing on home(a[i][:])
    for (i = 0; i < N; i++)
        for (j = 0; j < N; j++) a[i][j] = i * 3 + j;
    #pragma omp parallel default(none) shared(a, b, s)
    {
        #pragma omp for collapse(2)
        #pragma homing on home(b[i][:])
        for (i = 1; i < N - 1; i++)
            for (j = 0; j < N; j++) b[i][j] = a[i - 1][j] + a[i + 1][j];
        #pragma omp for reduction(+:s)
        #pragma homing on home(b[i][:])
        for (i = 0; i < N; i++) s += b[i][3];
    }
    printf("%g\\n", s);
    return 0;
}
"""


@pytest.mark.parametrize("target", ["spmd", "pages"])
def test_counters_of_c_loops_are_private_wherever_they_are_declared(tmp_path: Path, target: str) -> None:
    path = tmp_path / "p.c"
    path.write_text(COUNTERS)
    text = translate([str(path)], Options(target)).outputs[0].text
    omp = [line.strip() for line in text.splitlines() if "#pragma omp" in line]
    assert any("private(i)" in line and "private(j)" in line for line in omp)
    if target == "spmd":  # each thread's own in place of the worksharing loop
        assert text.count("\n        int i;\n") + text.count(" int i;") >= 2
    else:
        assert any("default(none)" in line and "hm_layout_a, hm_layout_b" in line for line in omp)
