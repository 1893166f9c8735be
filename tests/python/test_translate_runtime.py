"""The run-time library of translated programs: its index arithmetic against distributions.py."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.translate.directives.model import Kind
from homing.translate.plan.distributions import Distribution, GridDistribution, grid_of
from tests.patience import PATIENCE
from tests.python.test_apps import ROOT

KINDS = {Kind.STAR: 0, Kind.BLOCK: 1, Kind.CYCLIC: 2, Kind.GEN_BLOCK: 3}
FORTRAN, C = 0, 1
#: The library asks once how many threads there are; layouts use fewer.
MOST_PARTS = 36


class DimensionStructure(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in
                ("lower", "upper", "kind", "argument", "shadow_low", "shadow_high",
                 "template_lower", "template_upper", "offset", "parts")]  # fmt: skip


@dataclass(frozen=True)
class Dimension:
    """lower..upper of an array that lies offset above the same indices of a template template_lower.."""

    one: Distribution
    lower: int
    upper: int
    template_lower: int
    offset: int
    shadow: tuple[int, int]

    @property
    def sizes(self) -> list[int]:
        return (
            [self.one.bounds[p + 1] - self.one.bounds[p] for p in range(self.one.owners)]
            if self.one.bounds
            else []
        )

    def structure(self) -> DimensionStructure:
        argument = {Kind.CYCLIC: self.one.width, Kind.GEN_BLOCK: self.one.owners}.get(self.one.kind, 0)
        template_upper = self.template_lower + self.one.extent - 1
        return DimensionStructure(
            self.lower, self.upper, KINDS[self.one.kind], argument, *self.shadow,
            self.template_lower, template_upper, self.offset, self.one.owners,
        )  # fmt: skip

    def owned(self, place: int) -> list[int]:
        """The array's indices of the parts at this place of the grid."""
        if self.one.kind is Kind.STAR:
            return list(range(self.lower, self.upper + 1))
        at = self.offset - self.template_lower
        return [index for index in range(self.lower, self.upper + 1) if self.one.owner(index + at) == place]


@st.composite
def dimensions(draw: st.DrawFn, most_parts: int) -> Dimension:
    extent, parts, kind = (
        draw(st.integers(0, 24)),
        draw(st.integers(1, most_parts)),
        draw(st.sampled_from(Kind)),
    )
    if kind is Kind.BLOCK:
        one = Distribution.block(extent, parts)
    elif kind is Kind.CYCLIC:
        one = Distribution.cyclic(extent, parts, draw(st.integers(1, 4)))
    elif kind is Kind.STAR:
        one = Distribution.star(extent, 1)
    else:
        sizes = draw(st.lists(st.integers(0, 9), min_size=parts, max_size=parts))
        sizes[draw(st.integers(0, parts - 1))] += max(0, extent - sum(sizes))
        one = Distribution.gen_block(extent, sizes)
    template_lower, offset = draw(st.integers(-3, 3)), draw(st.integers(-2, 2))
    begin = draw(st.integers(0, max(extent - 1, 0)))
    end = draw(st.integers(begin - 1, extent - 1)) if extent else begin - 1
    low = template_lower - offset
    shadow = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    return Dimension(one, low + begin, low + end, template_lower, offset, shadow)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc here")
    target = tmp_path_factory.mktemp("parts") / "libparts.so"
    source = Path(ROOT) / "homing" / "translate" / "runtime" / "homing_parts.c"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(target)], check=True, timeout=PATIENCE)
    loaded = ctypes.CDLL(str(target))
    loaded.omp_set_num_threads(MOST_PARTS)
    loaded.homing_start()
    loaded.homing_layout_create.restype = ctypes.c_void_p
    names = ("low", "high", "own_low", "own_high", "next", "stride", "local", "local_stride", "block_end")
    for name in names:
        getattr(loaded, f"homing_{name}").restype = ctypes.c_long
    return loaded


class Layout:
    """A layout of the library, as its functions see it."""

    def __init__(
        self, library: ctypes.CDLL, language: int, given: list[DimensionStructure], sizes: list[int]
    ) -> None:
        self._library = library
        structures = (DimensionStructure * len(given))(*given)
        array = (ctypes.c_long * max(len(sizes), 1))(*sizes)
        self._layout = ctypes.c_void_p(
            library.homing_layout_create(b"a", language, len(given), ctypes.c_size_t(8), structures, array)
        )

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._library, f"homing_{name}")

        def call(*numbers: int) -> int:
            # part and dimension are int, an index is long.
            given = [ctypes.c_int(n) for n in numbers[:2]] + [ctypes.c_long(n) for n in numbers[2:]]
            return int(function(self._layout, *given))

        return call

    def __enter__(self) -> Layout:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.homing_layout_free(self._layout)


def places(given: list[Dimension]) -> Iterator[tuple[int, list[int]]]:
    """(part, its place in each dimension), 0 in those that are not cut."""
    grid = GridDistribution(tuple(one.one for one in given))
    for part in range(grid.parts):
        cut = iter(grid.coordinates(part))
        yield part, [0 if one.one.kind is Kind.STAR else next(cut) for one in given]


@given(given=st.lists(dimensions(6), min_size=1, max_size=2), language=st.sampled_from([FORTRAN, C]))
def test_index_arithmetic(library: ctypes.CDLL, given: list[Dimension], language: int) -> None:
    sizes = [size for one in given for size in one.sizes]
    with Layout(library, language, [one.structure() for one in given], sizes) as layout:
        for part, place in places(given):
            for number, one in enumerate(given):
                check_dimension(layout, language, part, number, one, place[number])
        # Parts beyond the grid have nothing.
        beyond = math.prod(one.one.owners for one in given)
        if beyond < MOST_PARTS:
            for number, one in enumerate(given):
                if one.one.kind is not Kind.STAR:
                    owned = [i for i in range(one.lower, one.upper + 1) if layout.owns(beyond, number, i)]
                    assert owned == []


def check_dimension(
    layout: Layout, language: int, part: int, number: int, one: Dimension, place: int
) -> None:
    own = one.owned(place)
    inside = range(one.lower, one.upper + 1)
    assert [index for index in inside if layout.owns(part, number, index)] == own
    assert not layout.owns(part, number, one.lower - 1)
    assert not layout.owns(part, number, one.upper + 1)
    for index in inside:
        following = [each for each in own if each >= index]
        found = layout.next(part, number, index)
        assert found == following[0] if following else found > one.upper
    low, high = layout.low(part, number), layout.high(part, number)
    origin = 1 if language == FORTRAN else 0
    if one.one.kind is Kind.CYCLIC:
        assert layout.stride(number) == one.one.width * one.one.owners
        assert low == origin
        compact = one.one.owners == 1 or one.shadow == (0, 0)
        if compact:
            assert high == origin + len(own) - 1
            assert [layout.local(part, number, index) for index in own] == list(range(low, high + 1))
        else:
            check_neighbourhoods(layout, part, number, one, own)
        if compact and one.lower == one.template_lower and one.offset == 0:
            positions = [one.one.local_index(index - one.template_lower) + origin for index in own]
            assert [layout.local(part, number, index) for index in own] == positions
        for index in own:
            stretch = (
                one.one.stretch_end(index + one.offset - one.template_lower) - one.offset + one.template_lower
            )
            end = layout.block_end(part, number, index)
            assert min(end, one.upper) == min(stretch - 1, one.upper) or one.one.owners == 1
        return
    assert [layout.local(part, number, index) for index in own] == own
    own_low, own_high = layout.own_low(part, number), layout.own_high(part, number)
    assert list(range(own_low, own_high + 1)) == own
    if one.one.kind is Kind.STAR:
        assert (low, high) == (one.lower, one.upper)
    else:
        # A part of the template beside the array has the array's border in its shadow.
        positions = [i for i in range(one.one.extent) if one.one.owner(i) == place]
        mine = own or [i + one.template_lower - one.offset for i in positions]
        wide = range(mine[0] - one.shadow[0], mine[-1] + one.shadow[1] + 1) if mine else range(0)
        assert list(range(low, high + 1)) == [index for index in wide if index in inside]


def check_neighbourhoods(layout: Layout, part: int, number: int, one: Dimension, own: list[int]) -> None:
    """CYCLIC with a shadow: each block lies between elements of its own for its neighbours, which lie as far
    from the block's elements as their indices do."""
    k = one.one.width
    places: dict[int, tuple[int, int]] = {}  # place: block, index
    for index in own:
        at = layout.local(part, number, index)
        position = index + one.offset - one.template_lower
        begin = index - position % k
        for neighbour in range(begin - one.shadow[0], begin + k + one.shadow[1]):
            if not one.lower <= neighbour <= one.upper:
                continue
            place = at + neighbour - index
            assert layout.low(part, number) <= place <= layout.high(part, number)
            assert places.setdefault(place, (begin, neighbour)) == (begin, neighbour)
        following = [each for each in own if each > index]
        if k == 1 and following:
            assert layout.local(part, number, following[0]) == at + layout.local_stride(number)


@given(fixed=st.lists(st.sampled_from([0, 0, 1, 2, 3, 6]), min_size=1, max_size=3))
def test_grids_that_are_left_open(library: ctypes.CDLL, fixed: list[int]) -> None:
    try:
        wanted = grid_of(MOST_PARTS, fixed)
    except ValueError:
        return
    given = [Dimension(Distribution.cyclic(99, 1), 0, 98, 0, 0, (0, 0)).structure() for _ in fixed]
    for structure, parts in zip(given, fixed, strict=True):
        structure.parts = parts
    with Layout(library, C, given, []) as layout:
        # The stride of CYCLIC is the number of parts along the dimension.
        assert tuple(layout.stride(number) for number in range(len(given))) == wanted
