"""Tables that lose nothing: where a table does not fit into the width there is, each of its rows becomes a
record of a few lines."""

from __future__ import annotations

from homing.report.lines import Table, Text, cell_len
from homing.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Between columns.
_GAP = 2


@dataclass(frozen=True)
class Column:
    """header: lines above the column. right: numbers. least: it may be folded down to so many cells, or to
    its header; None: it is never folded."""

    header: str
    right: bool = False
    least: int | None = None


def fitted(columns: Sequence[Column], rows: Sequence[Sequence[str | Text]], width: int) -> Table | None:
    """A table that is no wider than `width` cells and holds every cell whole, if folded; None where there is
    none."""
    natural, least = [], []
    for at, column in enumerate(columns):
        header = _widest(column.header)
        whole = max([header, *(_widest(row[at]) for row in rows)])
        natural.append(whole)
        least.append(whole if column.least is None else min(whole, max(header, column.least)))
    room = width - _GAP * (len(columns) - 1) - sum(least)
    if room < 0:
        return None
    widths = list(least)
    for at in sorted(range(len(columns)), key=lambda at: natural[at] - least[at]):
        more = min(natural[at] - least[at], room)
        widths[at] += more
        room -= more
    table = Table(_GAP)
    for column, cells in zip(columns, widths, strict=True):
        table.add_column(column.header, cells, column.right)
    table.rows = [list(row) for row in rows]
    return table


def records(rows: Iterable[Sequence[str | Text]]) -> Iterable[Text]:
    """The first cell of each row as a line, the others below it, indented. Lines are not cut: a terminal
    wraps them."""
    for first, *others in rows:
        yield from _lines(first, "")
        for cell in others:
            yield from _lines(cell, "  ")


def _lines(cell: str | Text, indent: str) -> Iterable[Text]:
    text = Text(cell) if isinstance(cell, str) else cell
    for line in text.split("\n"):
        if line.plain:
            yield Text.assemble(indent, line)


def _widest(cell: str | Text) -> int:
    text = cell if isinstance(cell, str) else cell.plain
    return max((cell_len(line) for line in text.split("\n")), default=0)
