"""Which part owns what, against a plain enumeration."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.translate.directives.model import Kind
from homing.translate.plan.distributions import Distribution, GridDistribution, grid_coordinates, grid_of

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
