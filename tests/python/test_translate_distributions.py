"""Which part owns what: by number against a plain enumeration, as Fortran and C text against the numbers."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.translate.directives import Kind
from homing.translate.distributions import Distribution, GridDistribution, grid_coordinates, grid_of
from homing.translate.index_text import C_HELPERS, IndexText, Syntax

EXTENTS = st.one_of(st.integers(0, 5), st.integers(0, 60))
OWNERS = st.integers(1, 9)


@st.composite
def distributions(draw: st.DrawFn) -> Distribution:
    extent, owners, kind = draw(EXTENTS), draw(OWNERS), draw(st.sampled_from(Kind))
    if kind is Kind.BLOCK:
        return Distribution.block(extent, owners)
    if kind is Kind.CYCLIC:
        return Distribution.cyclic(extent, owners, draw(st.integers(1, 7)))
    if kind is Kind.STAR:
        return Distribution.star(extent, owners)
    sizes = draw(st.lists(st.integers(0, 12), min_size=owners, max_size=owners))
    sizes[draw(st.integers(0, owners - 1))] += max(0, extent - sum(sizes))
    return Distribution.gen_block(extent, sizes)


def dealt_out(one: Distribution) -> list[int]:
    """The owner of each index, by the words of the definitions."""
    if one.kind is Kind.BLOCK:
        width = max(-(-one.extent // one.owners), 1)
        blocks: list[tuple[int, int]] = [(owner, width) for owner in range(one.owners)]
    elif one.kind is Kind.CYCLIC:
        blocks = [(block % one.owners, one.width) for block in range(one.extent // one.width + 1)]
    elif one.kind is Kind.GEN_BLOCK:
        blocks = [(owner, one.bounds[owner + 1] - one.bounds[owner]) for owner in range(one.owners)]
    else:
        blocks = [(0, one.extent)]
    return [owner for owner, size in blocks for _ in range(size)][: one.extent]


@given(distributions())
def test_numbers(one: Distribution) -> None:
    owners = dealt_out(one)
    assert [one.owner(index) for index in range(one.extent)] == owners
    if one.kind is Kind.STAR:
        assert all(one.local_size(owner) == one.extent for owner in range(one.owners))
        return
    for owner in range(one.owners):
        own = [index for index in range(one.extent) if owners[index] == owner]
        assert one.local_size(owner) == len(own)
        assert [one.local_index(index) for index in own] == list(range(len(own)))
        assert [one.global_index(owner, position) for position in range(len(own))] == own
        ranges = list(one.local_ranges(owner))
        assert all(ranges)
        assert [index for each in ranges for index in each] == own
    for index in range(one.extent):
        differ = [later for later in range(index, one.extent) if owners[later] != owners[index]]
        assert one.stretch_end(index) == (differ[0] if differ else one.extent)


@given(st.lists(distributions(), min_size=1, max_size=3))
def test_grids(dimensions: list[Distribution]) -> None:
    grid = GridDistribution(tuple(dimensions))
    places = [grid_coordinates(part, grid.grid) for part in range(grid.parts)]
    assert len(set(places)) == grid.parts
    # Every part has the elements that its place in each dimension says, and all of them together have all.
    extents = [min(one.extent, 6) for one in dimensions]
    for indices in itertools.product(*(range(extent) for extent in extents)):
        part = grid.owner(indices)
        owners = iter(grid.coordinates(part))
        assert all(
            one.owner(index) == next(owners)
            for one, index in zip(dimensions, indices, strict=True)
            if one.kind is not Kind.STAR
        )
        assert grid.global_indices(part, grid.local_indices(indices)) == indices
        shape = grid.local_shape(part)
        assert all(at < extent for at, extent in zip(grid.local_indices(indices), shape, strict=True))


@given(st.integers(1, 200), st.lists(st.integers(0, 4), min_size=1, max_size=4))
def test_arranging_parts(parts: int, fixed: list[int]) -> None:
    product = 1
    for extent in fixed:
        product *= extent or 1
    try:
        grid = grid_of(parts, fixed)
    except ValueError:
        assert parts % product or (0 not in fixed and parts != product)
        return
    chosen = [extent for extent, wanted in zip(grid, fixed, strict=True) if not wanted]
    assert [extent for extent, wanted in zip(grid, fixed, strict=True) if wanted] == [e for e in fixed if e]
    assert chosen == sorted(chosen, reverse=True)
    total = 1
    for extent in grid:
        total *= extent
    assert total == parts


@pytest.mark.parametrize(
    ("parts", "grid"), [(6, (3, 2)), (16, (4, 4)), (12, (4, 3)), (7, (7, 1)), (1, (1, 1))]
)
def test_grids_are_nearly_square(parts: int, grid: tuple[int, int]) -> None:
    assert grid_of(parts, (0, 0)) == grid


@pytest.mark.parametrize(
    "make",
    [
        lambda: Distribution.block(-1, 2),
        lambda: Distribution.block(3, 0),
        lambda: Distribution.cyclic(3, 2, 0),
        lambda: Distribution.gen_block(5, [2, 2]),
        lambda: Distribution.gen_block(1, [2, -1]),
        lambda: Distribution.gen_block(1, []),
    ],
)
def test_what_is_no_distribution(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=r"must be|cover"):
        make()


# --- as text ------------------------------------------------------------------------------------------------

PARTS, EXTENT = 5, 11


@dataclass(frozen=True)
class Case:
    """One use of IndexText: the own ones of the iterations first..last by step."""

    kind: Kind
    chunk: str
    lower: str
    step: str
    offset: int

    def text(self, syntax: Syntax) -> IndexText:
        size = syntax.element("sizes", "{part}")
        return IndexText(self.kind, syntax, "hm", self.lower, "n", "parts", "me", self.chunk, size)

    def numbers(self, extent: int, parts: int) -> Distribution:
        if self.kind is Kind.BLOCK:
            return Distribution.block(extent, parts)
        if self.kind is Kind.CYCLIC:
            return Distribution.cyclic(extent, parts, 1 if self.chunk == "1" else 3)
        if self.kind is Kind.STAR:
            return Distribution.star(extent, parts)
        return Distribution.gen_block(extent, sizes(extent, parts))


CASES = [
    Case(kind, chunk, lower, step, offset)
    for kind, chunk in [*((kind, "1") for kind in Kind), (Kind.CYCLIC, "k")]
    for lower in ("1", "low")
    for step in ("1", "two")
    for offset in (-1, 0, 2)
]


def sizes(extent: int, parts: int) -> list[int]:
    """Of GEN_BLOCK, an empty part among them."""
    each = [0, *([-(-extent // parts)] * (parts - 1))]
    return [*each[:-1], extent]


def expected(case: Case) -> Iterator[tuple[int, ...]]:
    lower, step = (1 if case.lower == "1" else -2), (1 if case.step == "1" else 2)
    for parts, extent in itertools.product(range(1, PARTS + 1), range(EXTENT + 1)):
        one = case.numbers(extent, parts)
        for part in range(parts):
            yield (-1, one.local_size(part), -1, -1, -1)
            for index in range(min(extent, 1), extent, step):
                if one.kind is Kind.STAR or one.owner(index) == part:
                    position = one.local_index(index)
                    below = index if one.kind is Kind.STAR else position
                    yield (index + lower - case.offset, one.owner(index), position, index + lower, below)


FORTRAN = """
subroutine case_{number}(n, parts, me, k, low, two, sizes)
  implicit none
  integer, intent(in) :: n, parts, me, k, low, two, sizes(0:*)
  integer :: i
  {declarations}
  {setup}
  {require}
  print '(5(i0,1x))', -1, {size}, -1, -1, -1
  {loops}
end subroutine
"""
FORTRAN_MAIN = """
program check
  implicit none
  integer :: n, parts, me, sizes(0:{parts})
  do parts = 1, {parts}
    do n = 0, {extent}
      sizes = (n + parts - 1)/parts
      sizes(0) = 0
      sizes(parts - 1) = n
      do me = 0, parts - 1
        call case_{number}(n, parts, me, 3, -2, 2, sizes)
      end do
    end do
  end do
end program
"""
C = """
static void case_{number}(long n, long parts, long me, long k, long low, long two, const long* sizes) {{
    (void)k, (void)low, (void)two, (void)sizes, (void)me, (void)parts;
    {declarations}
    {setup}
    {require}
    printf("-1 %ld -1 -1 -1\\n", (long)({size}));
    {loops}
}}
"""
C_MAIN = """
    for (long parts = 1; parts <= {parts}; parts++)
        for (long n = 0; n <= {extent}; n++) {{
            long sizes[{parts}];
            for (long i = 0; i < parts; i++) sizes[i] = (n + parts - 1) / parts;
            sizes[0] = 0;
            sizes[parts - 1] = n;
            for (long me = 0; me < parts; me++) case_{number}(n, parts, me, 3, -2, 2, sizes);
        }}
"""


def written(case: Case, number: int, syntax: Syntax) -> str:
    """A procedure that prints what the text of a case says."""
    text = case.text(syntax)
    first = f"{case.lower} + min(1, n) - ({case.offset})" if syntax.fortran else "first"
    last = f"{case.lower} + n - 1 - ({case.offset})"
    loops = text.loops("i", "first", "last", case.step, case.offset)
    index = "home"
    position = text.local_index(index)
    values = [text.owner(index), position, text.global_index("position"), text.count_below(index)]
    names = [one.name for one in text.variables if not one.extent]
    arrays = [(one.name, one.extent) for one in text.variables if one.extent]
    if syntax.fortran:
        body = [f"do {loop.variable} = {loop.first}, {loop.last}, {loop.step}" for loop in loops]
        body += [f"home = i + ({case.offset})", f"position = {position}"]
        body += [f"print '(5(i0,1x))', i, {', '.join(values)}", *["end do"] * len(loops)]
        return FORTRAN.format(
            number=number,
            declarations="\n".join(
                [f"integer :: {name}" for name in ("first", "last", "home", "position", *names)]
                + [f"integer :: {name}(0:{extent} - 1)" for name, extent in arrays]
            ),
            setup="\n".join(
                [f"first = {first}", f"last = {last}", *text.setup_shared(), *text.setup()],
            ),
            require=f"if (.not. ({text.requirement()})) error stop" if text.requirement() else "",
            size=text.local_size(),
            loops="\n".join(body),
        )
    body = [
        f"for ({(v := each.variable)} = {each.first}; {v} <= {each.last}; {v} += {each.step}) {{"
        for each in loops
    ]
    body += [f"home = i + ({case.offset});", f"position = {position};"]
    printed = ", ".join(f"(long)({value})" for value in values)
    body += [f'printf("%ld %ld %ld %ld %ld\\n", i, {printed});', "}" * len(loops)]
    return C.format(
        number=number,
        declarations="\n".join(
            [f"long {name} = 0; (void){name};" for name in ("i", "first", "last", "home", "position", *names)]
            + [f"long {name}[{extent}];" for name, extent in arrays]
        ),
        setup="\n".join(
            [
                f"first = {case.lower} + (n > 0) - ({case.offset});",
                f"last = {last};",
                *text.setup_shared(),
                *text.setup(),
            ]
        ),
        require=f"if (!({text.requirement()})) exit(1);" if text.requirement() else "",
        size=text.local_size(),
        loops="\n".join(body),
    )


@pytest.mark.parametrize("syntax", [Syntax(True), Syntax(False)], ids=["fortran", "c"])
def test_text(syntax: Syntax, tmp_path: Path) -> None:
    """Compilers read the text as it is meant: iterations, owners, positions and indices of every part."""
    numbered = list(enumerate(CASES))
    procedures = "".join(written(case, number, syntax) for number, case in numbered)
    if syntax.fortran:
        code, compiler = tmp_path / "check.f90", "gfortran"
        loops = "".join(FORTRAN_MAIN.format(number=n, parts=PARTS, extent=EXTENT) for n, _ in numbered)
        # One program of all loops: the heads and ends of the others are taken out.
        inner = re.sub(r"\nprogram check\n.*\n.*\n|end program\n", "\n", loops)
        head = f"program check\n  implicit none\n  integer :: n, parts, me, sizes(0:{PARTS})\n"
        code.write_text(f"{procedures}\n{head}{inner}end program\n")
        flags = ["-fcheck=all", "-std=f2018", "-Wall", "-Wno-unused", "-Wno-unused-dummy-argument", "-Werror"]
        flags.append("-ffree-line-length-none")
    else:
        code, compiler = tmp_path / "check.c", "gcc"
        main = "".join(C_MAIN.format(number=n, parts=PARTS, extent=EXTENT) for n, _ in numbered)
        include = "#include <stdio.h>\n#include <stdlib.h>\n" + C_HELPERS
        code.write_text(f"{include}{procedures}\nint main(void) {{\n{main}return 0;\n}}\n")
        flags = ["-fsanitize=address,undefined", "-Wall", "-Wextra", "-Werror"]
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    program = tmp_path / "check"
    subprocess.run(
        [compiler, "-O0", *flags, str(code), "-o", str(program)], check=True, timeout=100, cwd=tmp_path
    )
    done = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60)
    lines = iter(done.stdout.splitlines())
    for case in CASES:
        wanted = list(expected(case))
        found = [tuple(int(word) for word in line.split()) for line in itertools.islice(lines, len(wanted))]
        assert found == wanted, case
    assert not list(lines)


def test_operands_of_one_kind() -> None:
    """Fortran's MIN, MAX and MOD take one kind only."""
    text = IndexText(Kind.BLOCK, Syntax(True, "8"), "hm", "1", "n", "parts", "me")
    (loop,) = text.loops("j", "2", "n - 1")
    assert (loop.first, loop.last) == ("max(2_8, int(hm_first, 8))", "min(int(n - 1, 8), int(hm_last, 8))")


@given(st.sampled_from(CASES))
def test_no_division_where_it_is_not_said(case: Case) -> None:
    """BLOCK and GEN_BLOCK subtract within a loop; a loop over CYCLIC's positions multiplies only."""
    text = case.text(Syntax(False))
    cheap = [text.global_index("p")] if case.chunk == "1" else []
    if case.kind is not Kind.CYCLIC:
        cheap.append(text.local_index("i"))
    assert not any(sign in one for one in cheap for sign in "/%")
