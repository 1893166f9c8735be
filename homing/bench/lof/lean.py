"""I-MG kept and discretised otherwise, made from the program of apps/lof: an experiment about the remote
share of PI and SI+MIG, which follows how much of what misses lies beyond a border.

Remote is what two threads share: planes of cells at the borders of their parts. Of what a plane's loop
reads, the program as it is has the states beyond the border, but face areas and right sides in the thread's
own part.
A program that keeps vertices in place of areas reads those beyond the border, too; the finest level of the
Euler equations has no right side; and a scheme of second order reads two planes beyond.
"""

from __future__ import annotations

import re
from pathlib import Path

from homing.bench.lof.copies import FLAGS, is_newer, run
from homing.bench.places import sources_folder
from homing.bench.programs import COMMON
from homing.errors import UserError

#: Behind the name of the program as it is: areas computed from vertices where they are needed.
VERTICES = "_vertices"
#: The same, and no right side on the finest level.
BARE = "_bare"
#: The same, and states at the faces of k by limited slopes, which reach two cells far. Cells of a colour then
#: see each other, so the digits depend on the order of threads.
WIDE = "_wide"
VARIANTS = (VERTICES, BARE, WIDE)

_FACES = """
  contains

    pure function face_i(i, j, k) result(area)
      integer, intent(in) :: i, j, k
      real(real64) :: area(3)
      area = quadrilateral(x(:, i, j - 1, k - 1), x(:, i, j, k - 1), x(:, i, j, k), x(:, i, j - 1, k))
    end function

    pure function face_j(i, j, k) result(area)
      integer, intent(in) :: i, j, k
      real(real64) :: area(3)
      area = quadrilateral(x(:, i - 1, j, k - 1), x(:, i - 1, j, k), x(:, i, j, k), x(:, i, j, k - 1))
    end function

    pure function face_k(i, j, k) result(area)
      integer, intent(in) :: i, j, k
      real(real64) :: area(3)
      area = quadrilateral(x(:, i - 1, j - 1, k), x(:, i, j - 1, k), x(:, i, j, k), x(:, i - 1, j, k))
    end function
"""
_SLOPES = """
    ! The state of cell (i, j, a) at its face towards cell (i, j, b).
    pure function at_face(a, b) result(state)
      integer, intent(in) :: a, b
      real(real64) :: state(unknowns), slope(unknowns), other(unknowns)
      integer :: own, towards, behind

      own = min(max(a, 1), n)
      towards = min(max(b, 1), n)
      behind = min(max(2*a - b, 1), n)
      slope = w(:, i, j, towards) - w(:, i, j, own)
      other = w(:, i, j, own) - w(:, i, j, behind)
      state = w(:, i, j, own) + 0.25_real64*(sign(1.0_real64, slope) + sign(1.0_real64, other)) &
          *min(abs(slope), abs(other))
    end function
"""
_DUMMY = "real(real64), intent(in) :: area_i(3, 0:n, n, n), area_j(3, n, 0:n, n), area_k(3, n, n, 0:n)"


def levels(text: str, bare: bool) -> str:
    """euler_levels.f90 with vertices in place of areas."""
    text = _once(
        text, "  public :: make_levels, start_flow", "  public :: make_levels, start_flow, quadrilateral"
    )
    areas = "real(real64), allocatable :: area_i(:, :, :, :), area_j(:, :, :, :), area_k(:, :, :, :)"
    text = _once(text, areas, "real(real64), allocatable :: x(:, :, :, :)")
    text = _once(text, "g%area_i(3, 0:n, n, n)", "g%x(3, 0:n, 0:n, 0:n)")
    text = re.sub(r" +allocate \(g%area_[jk].*\n", "", text)
    text = text.replace("status(8)\n", "status(6)\n", 1).replace("stat=status(8)", "stat=status(6)")
    text = _once(text, "3*size(g%area_i, kind=int64)", "size(g%x, kind=int64)")
    finest = _between(text, "  subroutine finest_plane", "  end subroutine\n")
    kept = re.sub(r" +g%area_i\(.*\n", "", finest)
    kept = re.sub(r" +do i = 0, n\n +end do\n", "", kept)
    kept = re.sub(r" +do j = 0, n\n +do i = 1, n\n +g%area_j.*\n +end do\n +end do\n", "", kept)
    kept = re.sub(r" +if \(k == 1\) g%area_k.*\n.*\n +g%area_k.*\n.*\n", "", kept)
    stored = "    call vertex_plane(n, k, high)\n"
    kept = _once(kept, stored, stored + "    if (k == 1) g%x(:, :, :, 0) = low\n    g%x(:, :, :, k) = high\n")
    text = text.replace(finest, kept)
    coarse = _between(text, "  subroutine coarse_plane", "  end subroutine\n")
    kept = re.sub(r" +do i = 0, g%n\n +g%area_i.*\n +end do\n", "", coarse)
    kept = re.sub(r" +do j = 0, g%n\n +do i = 1, g%n\n +g%area_j.*\n +end do\n +end do\n", "", kept)
    kept = re.sub(r".*g%area_k.*\n", "", kept)
    every_other = "    k2 = 2*k\n    if (k == 1) g%x(:, :, :, 0) = fine%x(:, ::2, ::2, 0)\n"
    kept = _once(kept, "    k2 = 2*k\n", every_other + "    g%x(:, :, :, k) = fine%x(:, ::2, ::2, k2)\n")
    text = text.replace(coarse, kept)
    if bare:
        text = _once(
            text, "    g%right(:, :, :, k) = 0\n", "    if (g%n /= level(1)%n) g%right(:, :, :, k) = 0\n"
        )
    return text


def multigrid(text: str, bare: bool, wide: bool = False) -> str:
    """euler_multigrid.f90 with the areas of a plane's faces from its vertices."""
    text = text.replace("g%area_i, g%area_j, g%area_k", "g%x").replace("area_i, area_j, area_k", "x")
    for name in ("newton_plane", "subtract_fluxes"):
        found = _between(text, f"  subroutine {name}(", "  end subroutine\n")
        made = _once(found, _DUMMY, "real(real64), intent(in) :: x(3, 0:n, 0:n, 0:n)")
        made = re.sub(r"area_([ijk])\(:, ", r"face_\1(", made)
        if wide:
            made = re.sub(
                r"w\(:, i, j, k\)(, -?face_k.*?), w\(:, i, j, max\(.*?\)\)",
                r"at_face(k, k - 1)\1, at_face(k - 1, k)",
                made,
            )
            made = re.sub(
                r"w\(:, i, j, k\)(, face_k.*?), w\(:, i, j, min\(.*?\)\)",
                r"at_face(k, k + 1)\1, at_face(k + 1, k)",
                made,
            )
        more = _FACES + (_SLOPES if wide else "")
        made = made.removesuffix("  end subroutine\n").rstrip("\n") + "\n" + more + "  end subroutine\n"
        text = text.replace(found, made)
    if bare:
        ruled = "    balance = -right(:, i, j, k)\n"
        one = "        balance = 0\n        if (n /= level(1)%n) balance = -right(:, i, j, k)\n"
        text = _once(text, "    " + ruled, one)
        text = _once(
            text,
            "      g%r(:, :, :, k) = g%right(:, :, :, k)\n",
            "      g%r(:, :, :, k) = 0\n      if (g%n /= level(1)%n) g%r(:, :, :, k) = g%right(:, :, :, k)\n",
        )
    if "area_" in text:
        raise UserError("lof: euler_multigrid.f90 has changed: the program with vertices cannot be made", 1)
    return text


def build(folder: Path, program: str, c_compiler: str, fortran_compiler: str) -> None:
    """The programs, with compilers that count. folder: where the program as it is lies; its file's name."""
    apps = sources_folder() / "apps"
    for suffix in VARIANTS:
        if is_newer(folder / f"{program}{suffix}", apps, Path(__file__)):
            continue
        bare, wide = suffix != VERTICES, suffix == WIDE
        made = folder / f"i_mg{suffix}"
        made.mkdir(parents=True, exist_ok=True)
        text = (apps / "lof" / "euler_levels.f90").read_text()
        (made / "euler_levels.f90").write_text(levels(text, bare))
        text = (apps / "lof" / "euler_multigrid.f90").read_text()
        (made / "euler_multigrid.f90").write_text(multigrid(text, bare, wide))
        objects = []
        for name in COMMON:
            source = str(apps / "common" / f"{name}.c")
            run([c_compiler, *FLAGS, f"-I{apps / 'common'}", "-c", source], made)
            objects.append(f"{name}.o")
        sources = [
            apps / "common" / "app.f90",
            *(apps / "lof" / f"{name}.f90" for name in ("euler_flux", "euler_flow")),
            made / "euler_levels.f90",
            made / "euler_multigrid.f90",
            apps / "lof" / "i_mg.f90",
        ]
        target = str(folder / f"{program}{suffix}")
        run([fortran_compiler, *FLAGS, *map(str, sources), *objects, "-lm", "-o", target], made)


def _between(text: str, begin: str, end: str) -> str:
    at = text.find(begin)
    if at < 0:
        raise UserError(f"lof: apps/lof has no {begin.strip()} any more", 1)
    return text[at : text.index(end, at) + len(end)]


def _once(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise UserError(f"lof: apps/lof has changed: {old.strip()}", 1)
    return text.replace(old, new)
