"""Memory that the program names anew is another area, but neither freed nor there twice."""

from __future__ import annotations

import pytest

from homing.records import parse_record
from homing.report.names import Namer
from homing.report.renamed import renamed
from homing.report.results import ProcessResult, Results, area_results
from homing.report.summary import print_summary
from tests.python.record_writer import RecordWriter

NAMED, MAPPING, HEAP = 3, 6, 2
PAGES = 400


def run(*areas: tuple[str, int, float, float | None], placed: tuple[int, ...] = (0,)) -> RecordWriter:
    """Areas of one piece of memory: name, kind, begin and end in seconds."""
    writer = RecordWriter()
    for node in range(2):
        writer.row("node", index=node, position=node, cpus=1, memory_bytes=1 << 30, target=1)
    for number, (name, kind, begin, end) in enumerate(areas):
        place = {"begin": 1 << 30, "bytes": PAGES * 4096, "kind": kind, "granule": 4096}
        writer.row("area", id=number, name=writer.text(name), time=begin, **place)
        if end is not None:
            writer.row("area_end", id=number, time=end)
        if number in placed:
            writer.row("placement", area=number, when=1, pages=[PAGES, 0], time=begin)
    writer.row("end", time=9.0)
    return writer


def lines(writer: RecordWriter, capsys: pytest.CaptureFixture[str]) -> str:
    record = parse_record(writer.bytes(), "x")
    print_summary(Results([ProcessResult(record, area_results(record, Namer()))]))
    return capsys.readouterr().err


def test_what_is_named_again_is_not_freed_and_not_another_memory(capsys: pytest.CaptureFixture[str]) -> None:
    writer = run(("u", NAMED, 1, 2), ("v", NAMED, 2.000001, 3), ("mapped", MAPPING, 3.000001, None))
    assert renamed(parse_record(writer.bytes(), "x")) == {0: 1, 1: 2}
    text = lines(writer, capsys)
    assert "(then another area)" in text
    assert "(then freed)" not in text and "not placed" not in text


def test_what_is_freed_is(capsys: pytest.CaptureFixture[str]) -> None:
    for writer in (
        run(("u", NAMED, 1, 2), ("v", NAMED, 3, None)),  # memory that came into being later
        run(("u", HEAP, 1, 2), ("v", HEAP, 2.000001, None)),  # a block where another one was
    ):
        text = lines(writer, capsys)
        assert "(then freed)" in text
        assert "1 other area was not placed, at most 1.6 MiB of them at one time" in text
