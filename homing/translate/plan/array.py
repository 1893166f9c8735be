"""A distributed array, as one routine knows it."""

from __future__ import annotations

from dataclasses import dataclass, field

from homing.translate.directives import model as d
from homing.translate.plan.model import Dimension
from homing.translate.tree import Declaration, Routine


@dataclass
class Unsure:
    """Dimensions of a dummy that may begin or end elsewhere than the array that is passed."""

    begins: set[int] = field(default_factory=set)
    ends: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Array:
    """A distributed array as one routine knows it."""

    name: str
    routine: Routine
    declaration: Declaration
    dimensions: list[Dimension]
    reshape: bool
    origin: d.Distribute | d.Align | None  # None: through a call
    given_shadow: list[tuple[int, int]] | None = None
    shadow: list[list[int]] = field(default_factory=list)  # derived: low and high of each dimension
    extents: tuple[str, ...] = ()
    passed_from: Array | None = None
    unsure: Unsure = field(default_factory=Unsure)
    linked: list[Array] = field(default_factory=list)
    tied: dict[int, list[tuple[Array, int]]] = field(default_factory=dict)  # see tie()

    @property
    def rank(self) -> int:
        return len(self.dimensions)

    @property
    def dummy(self) -> bool:
        return self.passed_from is not None

    def formats(self) -> str:
        """The distribution as a directive would say it."""
        return f"{self.name}({', '.join(one.format() for one in self.dimensions)})"

    def distributed_dimensions(self) -> list[int]:
        return [i for i, dimension in enumerate(self.dimensions) if dimension.distributed]

    def widen(self, dimension: int, low: int, high: int) -> None:
        """The shadow is at least this wide; so it is in every routine that the array is passed to or from,
        and in what is tied to it."""
        waiting, seen = [(self, dimension)], {(id(self), dimension)}
        while waiting:
            array, at = waiting.pop()
            widths = array.shadow[at]
            widths[0], widths[1] = max(widths[0], low), max(widths[1], high)
            for other, place in [*((one, at) for one in array.linked), *array.tied.get(at, [])]:
                if (id(other), place) not in seen:
                    seen.add((id(other), place))
                    waiting.append((other, place))

    def tie(self, dimension: int, other: Array, other_dimension: int) -> None:
        """The two dimensions get the same shadow, so that an index has the same local position in both."""
        ends = ((self, dimension, other, other_dimension), (other, other_dimension, self, dimension))
        for array, index, to, place in ends:
            if (to, place) not in array.tied.setdefault(index, []):
                array.tied[index].append((to, place))
        for array, index, _, _ in ends:
            low, high = array.shadow[index]
            given = array.given_shadow[index] if array.given_shadow else (0, 0)
            array.widen(index, max(low, given[0]), max(high, given[1]))

    def link(self, other: Array) -> None:
        """The two are the same array, or may be: one is passed as the other."""
        if other not in self.linked:
            self.linked.append(other)
            other.linked.append(self)
            for index, (low, high) in enumerate(list(other.shadow)):
                self.widen(index, low, high)
            for index, (low, high) in enumerate(list(self.shadow)):
                other.widen(index, low, high)
