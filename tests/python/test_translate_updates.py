"""--to mpi: updates under ATOMIC and CRITICAL are combined where they are reductions of one variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import Workshop

UPDATES = """#include <math.h>
double a[40], w[40], *q = w, *at, most;
int k, k2 = 1, count[4], largest;
long double total;
extern int elsewhere[];
#define max(one, other) ((one) + 2 * (other))
#pragma homing distribute a[block]
int main(void) {
    #pragma omp parallel for private(k)
    for (int i = 0; i < 40; i++) {
        k = i;
        a[i] = i;
        BODY
    }
    return 0;
}
"""


def of_updates(folder: Path, body: str) -> None:
    path = folder / "p.c"
    path.write_text(UPDATES.replace("BODY", body))
    translate([str(path)], Options("mpi"))


@pytest.mark.parametrize(
    "body",
    [
        '_Pragma("omp atomic")\n    count[i % 4] += k & 3;',
        "most = fmax(most, a[i]);",
        "most = most > a[i] ? most : a[i];",
        "most = ((a[i]) <= most ? (a[i]) : (most));",
        "most = fmax(a[i] / 2, most);",
        '_Pragma("omp atomic")\n    most = a[i] * 2 - 1 + most;',
        '_Pragma("omp atomic")\n    count[i % 4] = (k & 3) + count[i % 4];',
        '_Pragma("omp atomic")\n    k2 = 12 / (k + 1) * k2;',
    ],
)
def test_updates_of_what_has_no_other_name_are_combined(tmp_path: Path, body: str) -> None:
    of_updates(tmp_path, body if "atomic" in body else f'_Pragma("omp critical")\n    {body}')


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('_Pragma("omp atomic")\n    w[i] += 1;', "w"),  # q is its other name
        ('_Pragma("omp atomic")\n    elsewhere[i % 4] += 1;', "elsewhere"),  # of no known size
        ('_Pragma("omp critical")\n    largest = max(largest, k);', "largest"),  # no maximum
        ('_Pragma("omp critical")\n    if (k++ > largest) largest = k++;', "largest"),  # two values
        ('_Pragma("omp critical")\n    most = a[i] > most ? a[i + 1] : most;', "most"),
        ('_Pragma("omp critical")\n    most = a[i] > most ? a[i] : 0;', "most"),
        ('_Pragma("omp critical")\n    most = most > fmax(a[i], 1) ? most : fmax(a[i], 1);', "most"),
        ('_Pragma("omp atomic")\n    most = a[i] - most;', "most"),
        ('_Pragma("omp atomic")\n    most = 2 / most;', "most"),
        ('_Pragma("omp critical")\n    most = 3 + a[i] * most;', "most"),
        ('_Pragma("omp critical")\n    most = 3 + +most;', "most"),
        ('_Pragma("omp atomic")\n    k2 = k << 1 + k2;', "k2"),
        ('_Pragma("omp atomic")\n    k2 = 0.6 + k2;', "k2"),
        # Another rank's index would go with an extremum that this rank found; an address means nothing to it.
        ('_Pragma("omp critical")\n    if (a[i] >= most) { most = a[i]; largest = i; }', "most"),
        ('_Pragma("omp critical")\n    if (a[i] > most || i == 3) { most = a[i]; largest = i; }', "most"),
        ('_Pragma("omp critical")\n    if (a[i] > most) { most = a[i]; at = &w[i]; }', "most"),
    ],
)
def test_updates_that_are_none_of_one_variable_are_refused(tmp_path: Path, body: str, name: str) -> None:
    with pytest.raises(TranslationError, match=f"'{name}' is shared and written in a loop"):
        of_updates(tmp_path, body)


@pytest.mark.parametrize("kind", ["real(16)", "real*16", "integer(kind=16)"])
def test_sums_of_128_bits_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "p.f90"
    path.write_text(
        f"""program p
  {kind} :: s
  real(8) :: a(9)
  !$homing distribute a(block)
  s = 0
  !$omp parallel do reduction(+: s)
  do i = 1, 9
    a(i) = i
    s = s + i
  end do
  print *, s
end program
"""
    )
    with pytest.raises(TranslationError, match="numbers of 128 bits"):
        translate([str(path)], Options("mpi"))


def test_sums_of_long_double_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TranslationError, match="numbers of 128 bits"):
        of_updates(tmp_path, '_Pragma("omp atomic")\n    total += a[i];')


CHOSEN = """#include <stdio.h>
double a[30], low = 99, high = -99;
int whole = 7;
#pragma homing distribute a[block]
int main(void) {
    #pragma omp parallel for
    for (int i = 0; i < 30; i++) a[i] = (i * 7) % 30 - 4.5;
    #pragma omp parallel for
    for (int i = 0; i < 30; i++) {
        #pragma omp critical
        {
            low = (low < a[i]) ? low : a[i];
            high = high < a[i] ? a[i] : high;
            whole = i >= whole ? i : whole;
        }
    }
    printf("%g %g %d\\n", low, high, whole);
    return 0;
}
"""


def test_the_larger_or_smaller_one_is_chosen(tmp_path_factory: pytest.TempPathFactory) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("chosen"))
    source = workshop.place() / "p.c"
    source.write_text(CHOSEN)
    workshop.expect_the_same(source, ("mpi",))


COMMUTED = """program p
  implicit none
  real(8) :: a(40), s = 1, m = 3, least = 50, r = 1
  integer :: i, k = 2, many(0:3) = 0
  !$homing distribute a(block)
  !$omp parallel do
  do i = 1, 40
    a(i) = mod(7*i, 40) + 0.5d0
  end do
  !$omp parallel do
  do i = 1, 40
    !$omp atomic
    s = a(i)*2 - 1 + s
    !$omp atomic update
    m = max(a(i), m)
    !$omp atomic
    least = min(a(i) + 1, 90d0, least)
    !$omp atomic
    k = max(k, i, 60 - 2*i)
    !$omp atomic
    r = merge(2d0, 1d0, mod(i, 8) == 0)/1d0*r
    !$omp critical
    many(mod(i, 4)) = 1 + many(mod(i, 4))
    !$omp end critical
  end do
  print *, s, m, least, k, r, many
end program
"""


def test_the_variable_may_stand_last(tmp_path_factory: pytest.TempPathFactory) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("commuted"))
    source = workshop.place() / "p.f90"
    source.write_text(COMMUTED)
    workshop.expect_the_same(source, ("mpi",))


@pytest.mark.parametrize(
    "statement",
    ["s = a(i) - s", "s = 2/s", "s = 3 + a(i)*s", "s = 2**s", "s = max(a(i), s + 1)", "s = max(s, a(i), s)"],
)
def test_what_only_looks_like_it_is_refused(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "p.f90"
    path.write_text(
        COMMUTED.replace("atomic\n    s = a(i)*2 - 1 + s", f"critical\n    {statement}\n!$omp end critical")
    )
    with pytest.raises(TranslationError, match="'s' is shared and written in a loop"):
        translate([str(path)], Options("mpi"))
