"""Which part owns which index: the distributions as numbers, for plans, checks and reports.

Indices, parts and positions count from 0.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homing.translate.directives.model import Kind


@dataclass(frozen=True)
class Distribution:
    """A one-dimensional distribution of the indices 0..extent-1 over the parts 0..owners-1.

    Made by block(), cyclic(), gen_block() and star(). ValueError for a negative extent, no owners, k < 1, or
    sizes that are negative or do not cover the extent.
    """

    kind: Kind
    extent: int
    owners: int
    width: int  # block, cyclic: indices in a block; otherwise 1
    bounds: tuple[int, ...] = ()  # gen_block: owners + 1 ascending bounds

    @classmethod
    def block(cls, extent: int, owners: int) -> Distribution:
        """ceil(extent / owners) consecutive indices each; the last owners may get fewer or none."""
        _check(extent, owners)
        return cls(Kind.BLOCK, extent, owners, max(-(-extent // owners), 1))

    @classmethod
    def cyclic(cls, extent: int, owners: int, k: int = 1) -> Distribution:
        """cyclic(k): blocks of k indices dealt out in turn."""
        _check(extent, owners)
        if k < 1:
            raise ValueError(f"CYCLIC({k}): must be at least 1")
        return cls(Kind.CYCLIC, extent, owners, k)

    @classmethod
    def gen_block(cls, extent: int, sizes: Sequence[int]) -> Distribution:
        """sizes[o] consecutive indices for owner o. They must add up to at least extent; extra is cut off."""
        _check(extent, len(sizes))
        if any(size < 0 for size in sizes) or sum(sizes) < extent:
            raise ValueError(f"GEN_BLOCK sizes {list(sizes)} do not cover {extent} indices")
        bounds = (0, *(min(extent, end) for end in itertools.accumulate(sizes)))
        return cls(Kind.GEN_BLOCK, extent, len(sizes), 1, bounds)

    @classmethod
    def star(cls, extent: int, owners: int) -> Distribution:
        """Not distributed: every owner has all of it, owner() is 0."""
        _check(extent, owners)
        return cls(Kind.STAR, extent, owners, 1)

    def owner(self, index: int) -> int:
        """The part that owns an index. 0 <= index < extent."""
        if self.kind is Kind.BLOCK:
            return index // self.width
        if self.kind is Kind.CYCLIC:
            return index // self.width % self.owners
        if self.kind is Kind.GEN_BLOCK:
            # Empty parts share a bound with their neighbour: the last bound not above the index belongs to
            # the owner.
            return bisect.bisect_right(self.bounds, index, hi=len(self.bounds) - 1) - 1
        return 0

    def stretch_end(self, index: int) -> int:
        """The end of the stretch of indices with the same owner that index lies in."""
        if self.kind is Kind.BLOCK or (self.kind is Kind.CYCLIC and self.owners > 1):
            return min(self.extent, (index // self.width + 1) * self.width)
        if self.kind is Kind.GEN_BLOCK:
            return self.bounds[self.owner(index) + 1]
        return self.extent

    def local_size(self, owner: int) -> int:
        """Number of indices that an owner has."""
        if self.kind is Kind.BLOCK:
            return min(self.extent - min(self.extent, owner * self.width), self.width)
        if self.kind is Kind.CYCLIC:
            rounds, rest = divmod(self.extent, self.width * self.owners)
            return rounds * self.width + min(rest - min(rest, owner * self.width), self.width)
        if self.kind is Kind.GEN_BLOCK:
            return self.bounds[owner + 1] - self.bounds[owner]
        return self.extent

    def local_index(self, index: int) -> int:
        """Position of an index among those of its owner, counted from 0."""
        if self.kind is Kind.BLOCK:
            return index % self.width
        if self.kind is Kind.CYCLIC:
            return index // (self.width * self.owners) * self.width + index % self.width
        if self.kind is Kind.GEN_BLOCK:
            return index - self.bounds[self.owner(index)]
        return index

    def global_index(self, owner: int, position: int) -> int:
        """Inverse: the index at a position of an owner. position < local_size(owner)."""
        if self.kind is Kind.BLOCK:
            return owner * self.width + position
        if self.kind is Kind.CYCLIC:
            return (position // self.width * self.owners + owner) * self.width + position % self.width
        if self.kind is Kind.GEN_BLOCK:
            return self.bounds[owner] + position
        return position

    def local_ranges(self, owner: int) -> Iterator[range]:
        """The owner's indices as ranges in ascending order, none of them empty."""
        size, position = self.local_size(owner), 0
        while position < size:
            first = self.global_index(owner, position)
            end = self.stretch_end(first)
            yield range(first, end)
            position += end - first


@dataclass(frozen=True)
class GridDistribution:
    """Several dimensions over a grid of parts (PROCESSORS). Parts are numbered from 0, the first dimension of
    the grid fastest, as Fortran lays out arrays.

    dimensions: one Distribution an array dimension; a STAR dimension takes no dimension of the grid, the
    others take one each, in order, and have its extent as their owners.
    """

    dimensions: tuple[Distribution, ...]

    @property
    def grid(self) -> tuple[int, ...]:
        return tuple(one.owners for one in self.dimensions if one.kind is not Kind.STAR)

    @property
    def parts(self) -> int:
        return math.prod(self.grid)

    def coordinates(self, part: int) -> tuple[int, ...]:
        """The part's place in the grid."""
        return grid_coordinates(part, self.grid)

    def owner(self, indices: Sequence[int]) -> int:
        """The part that owns an element."""
        part, stride = 0, 1
        for index, one in zip(indices, self.dimensions, strict=True):
            if one.kind is not Kind.STAR:
                part += one.owner(index) * stride
                stride *= one.owners
        return part

    def _owners(self, part: int) -> Iterator[tuple[Distribution, int]]:
        places = iter(self.coordinates(part))
        for one in self.dimensions:
            yield one, 0 if one.kind is Kind.STAR else next(places)

    def local_shape(self, part: int) -> tuple[int, ...]:
        """The extents of a part."""
        return tuple(one.local_size(owner) for one, owner in self._owners(part))

    def local_indices(self, indices: Sequence[int]) -> tuple[int, ...]:
        """Where an element lies within its owner's part."""
        return tuple(one.local_index(index) for index, one in zip(indices, self.dimensions, strict=True))

    def global_indices(self, part: int, positions: Sequence[int]) -> tuple[int, ...]:
        """Inverse: the element at a place of a part."""
        return tuple(
            one.global_index(owner, position)
            for (one, owner), position in zip(self._owners(part), positions, strict=True)
        )


def grid_coordinates(part: int, grid: Sequence[int]) -> tuple[int, ...]:
    """The place of a part in a grid of these extents, the first fastest."""
    places = []
    for extent in grid:
        part, place = divmod(part, extent)
        places.append(place)
    return tuple(places)


def grid_of(parts: int, fixed: Sequence[int]) -> tuple[int, ...]:
    """The extents of a grid of `parts` parts: as `fixed` says, where it is not 0; the others as near to each
    other as the divisors of what is left allow, larger ones first (as MPI_Dims_create). ValueError where the
    fixed ones do not divide parts."""
    left, rest = divmod(parts, math.prod(extent for extent in fixed if extent) or 1)
    free = sum(extent == 0 for extent in fixed)
    if rest or any(extent < 0 for extent in fixed) or (not free and left != 1):
        wanted = "x".join(str(extent) if extent else "*" for extent in fixed)
        raise ValueError(f"{parts} parts cannot be arranged as {wanted}")
    chosen = []
    for remaining in range(free, 0, -1):
        # The smallest divisor that the remaining ones can match, so that the extents descend.
        extent = min(d for d in range(1, left + 1) if left % d == 0 and d**remaining >= left)
        chosen.append(extent)
        left //= extent
    descending = iter(sorted(chosen, reverse=True))
    return tuple(extent or next(descending) for extent in fixed)


def _check(extent: int, owners: int) -> None:
    if extent < 0 or owners < 1:
        raise ValueError(f"{extent} indices over {owners} parts: must be at least 0 over 1")
