"""The summary at any width, on a terminal and in a file: no fact is dropped."""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len

from homing.records import parse_record
from homing.report import summary as summary_module
from homing.report.layout import Column, fitted
from homing.report.names import Namer
from homing.report.results import ProcessResult, Results, area_results
from tests.python.record_writer import RecordWriter, four_node_run

WIDTHS = [*range(20, 130, 3), 79, 80, 81, 99, 100, 101, 150, 200, 300]
LONG = "a_rather_long_array_name_" + "0123456789" * 8
WIDE = "格子の温度と圧力の配列"


def results_of(*writers: RecordWriter) -> Results:
    read = [parse_record(writer.bytes(), "x") for writer in writers]
    return Results([ProcessResult(record, area_results(record, Namer())) for record in read])


def run(nodes: int = 4) -> RecordWriter:
    writer = RecordWriter()
    for node in range(nodes):
        writer.row("node", index=node, position=node, cpus=2, memory_bytes=8 << 30, target=1)
    for number, name in enumerate(("u", LONG, WIDE), start=1):
        writer.row("area", id=number, begin=number << 30, bytes=4096 * 1234, kind=1, name=writer.text(name))
        for first in range(0, nodes, 8):
            before, after = [[900, 334], [10, 700, 20, 504]] if first == 0 else [[0], [0]]
            writer.row("placement", area=number, when=1, first=first, pages=before)
            writer.row("placement", area=number, when=2, iteration=3, first=first, pages=after[:nodes])
        writer.row("ownership", area=number, iteration=3, kind=2, confidence=0.77, samples=300)
        writer.row("distribution", area=number, words=writer.text("CYCLIC(17) over 12 threads"))
        writer.sample(number, 0.731, 0.024, 612)
    writer.row("area_end", id=1, time=0.5)
    writer.row("end", time=1.0, iterations=20, settled_at=7, period=3)
    return writer


FACTS = [
    "4.8 MiB",
    "CYCLIC(17)",
    "12 threads",
    "77 %",
    "73 % -> 2.4 %",
    "69-76 -> 1.5-3.9 %",
    "612",
    "then freed",
]
PLACES = {4: ["73  27   0   0", "1  57   2  41"], 12: ["0: 73", "1: 27", "1: 57", "3: 41"]}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(results: Results, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    summary_module._print(results, terminal)
    return re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()


def holds(fact: str, lines: list[str]) -> bool:
    """All words of a fact, each whole: a table may fold a cell between them."""
    text = " ".join(lines)
    return all(word in text for word in fact.split())


def holds_in_order(name: str, text: str) -> bool:
    """All characters of a name in their order: a cell may be folded within it."""
    at = iter(text)
    return all(character in at for character in name)


@pytest.mark.parametrize("nodes", [4, 12])
def test_every_fact_is_there_at_every_width(nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    results = results_of(run(nodes))
    tables = 0
    for width in WIDTHS:
        lines = on_terminal(results, width, monkeypatch)
        missing = [fact for fact in FACTS + PLACES[nodes] if not holds(fact, lines)]
        assert not missing, (width, missing)
        assert holds_in_order(LONG, "".join(lines)) and holds_in_order(WIDE, "".join(lines)), width
        assert "…" not in "".join(lines), width
        header = next((line for line in lines if line.startswith("area ")), None)
        tables += header is not None
        if width < 100:
            assert header is None, f"a record for each area at {width}"
            assert sum("owners: " in line for line in lines) == 3
        if header is not None:
            table = lines[lines.index(header) - 1 :]
            table = table[: next(at for at, line in enumerate(table) if line.startswith("remote  "))]
            assert max(map(cell_len, table)) <= width
    assert tables >= 5


def test_files_and_pipes_have_a_fixed_width(monkeypatch: pytest.MonkeyPatch) -> None:
    results = results_of(run())
    outputs = set()
    for width in ("20", "80", "300"):
        monkeypatch.setenv("COLUMNS", width)
        file = io.StringIO()
        summary_module._print(results, file)
        outputs.add(file.getvalue())
    (text,) = outputs
    assert all(holds(fact, text.splitlines()) for fact in FACTS + PLACES[4])
    assert text.isascii() or WIDE[0] in text


def test_processes_of_a_run_at_every_width(monkeypatch: pytest.MonkeyPatch) -> None:
    writers = [four_node_run(program="/home/user/" + LONG, rank=rank, pid=5000 + rank) for rank in range(3)]
    results = results_of(*writers)
    for width in WIDTHS:
        lines = on_terminal(results, width, monkeypatch)
        for fact in ("5000", "5001", "5002", "5.5 MiB", "2.9 MiB", "75 % -> 1.0 %", "settled at"):
            assert holds(fact, lines), (width, fact)
        assert "…" not in "".join(lines)


def test_a_table_folds_what_may_be_folded_and_nothing_else() -> None:
    columns = [Column("name", least=6), Column("n", right=True), Column("kind", least=4)]
    rows = [["abcdefghijkl", "123", "x y z"], [WIDE, "4", ""]]
    assert fitted(columns, rows, 6 + 3 + 4 + 4 - 1) is None
    for width in (17, 20, 40):
        table = fitted(columns, rows, width)
        assert table is not None
        assert sum(table.widths) + 4 <= width
        assert table.widths[1] == 3
