"""The reader of record files: values, and files that are cut off or damaged."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homing import cli
from homing.record_format import PIECE_BYTES, RecordError
from homing.records import parse_record, read_record
from homing.report.html.arrays import Arrays
from homing.report.html.views import views
from homing.report.json import to_json
from homing.report.names import Namer
from homing.report.perfetto import events
from homing.report.results import ProcessResult, Results, area_results
from homing.report.summary import print_summary
from tests.python.large_record import page_map
from tests.python.record_writer import HEADER_BYTES, LAYOUT, ROW_BYTES, RecordWriter, four_node_run

FILE = four_node_run().bytes(unused_rows=3)
#: Where its rows end.
END = len(FILE) - 3 * ROW_BYTES


def report_everything(data: bytes) -> str:
    """Everything that is ever made of a record; the only error that may come is RecordError."""
    record = parse_record(data, "x.homing")
    results = Results([ProcessResult(record, area_results(record, Namer()))])
    json.dumps(to_json(results), allow_nan=False)
    json.dumps([views(results, Arrays()), list(events(results))], allow_nan=False)
    text = io.StringIO()
    with contextlib.redirect_stderr(text):
        print_summary(results)
    return text.getvalue()


def test_every_value_comes_back() -> None:
    record = parse_record(FILE, "x.homing")
    assert (record.program, record.pid, record.rank, record.host) == ("/home/user/cg", 4711, -1, "node17")
    assert [node.index for node in record.nodes] == [0, 1, 2, 3]
    assert record.nodes[1].memory_bytes == 8 << 30
    assert record.distances[1] == [20, 10, 20, 20]
    assert record.facts["source"] == "windows"
    assert [thread.node for thread in record.threads] == [0, 0, 1, 1, 2, 2, 3, 3]
    static, heap = record.areas
    assert (static.name, static.kind, static.bytes) == ("/main_mem/", "static", 4096 * 1000)
    assert heap.origin == (("/home/user/cg", 0x1239),)
    assert [placement.pages for placement in record.placements if placement.area == 1] == [
        (1000, 0, 0, 0),
        (260, 250, 250, 240),
    ]
    assert [one.state for one in record.iterations] == [
        "searching",
        "observing",
        "observing",
        "settled",
        "settled",
    ]
    assert record.iterations[1].basis == "period"
    first, last = record.references
    assert first.remote_fraction == 0.75
    assert last.remote_fraction == pytest.approx(0.01)
    assert record.ownerships[1].kind == "block"
    assert record.ownerships[2].kind == "shared"
    assert record.moves[0].moved == 740
    assert {refusal.error: refusal.pages for refusal in record.refusals} == {12: 8, 16: 2}
    assert record.messages[0].text == "2 pages stay where they are"
    assert (record.messages[0].level, record.messages[0].repeats) == ("not done", 2)
    assert record.unwatched[0].what == "[stack]"
    assert record.end is not None
    assert record.end.settled_at == 4
    assert not record.truncated
    assert record.stepped_aside == ""


def test_more_than_eight_nodes_and_nodes_that_are_no_targets() -> None:
    writer = RecordWriter()
    for index in range(12):
        # Node 3 is never a target: it has no position, and the nodes after it move up.
        position = -1 if index == 3 else index - (index > 3)
        writer.row("node", index=index, position=position, target=index != 3)
    writer.row("placement", area=1, when=1, first=0, pages=[1] * 8)
    writer.row("placement", area=1, when=1, first=8, pages=[5, 6, 7])
    writer.row("references", **{"area": 1, "iteration": 1, "from": 9, "first": 8, "to": [0, 3, 1]})
    record = parse_record(writer.bytes(), "x")
    assert record.positions == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
    assert record.placements[0].pages == (1,) * 8 + (5, 6, 7)
    assert record.references[0].matrix[9].tolist() == [0] * 9 + [3, 1]
    assert record.references[0].remote_fraction == 0.25


def test_texts_longer_than_a_row_and_texts_that_are_missing() -> None:
    writer = RecordWriter()
    long = "ä" * 200 + "end"
    writer.fact("long", long)
    writer.row("fact", key=writer.text("missing"), value=999)
    writer.rows = [
        row
        for row in writer.rows
        if not (row[:4] == b"\1\0\0\0" and row[8:12] == (112).to_bytes(4, "little"))
    ]
    facts = parse_record(writer.bytes(), "x").facts
    assert facts["missing"] == "?"
    # The second piece of the text is gone: what came before it remains.
    assert facts["long"].startswith("ä" * 50)
    assert "end" not in facts["long"]
    whole = RecordWriter()
    whole.fact("long", long)
    assert parse_record(whole.bytes(), "x").facts["long"] == long


def test_names_cannot_drive_a_terminal() -> None:
    writer = RecordWriter(program="/tmp/\x1b[31mred\udce4")
    writer.message("\x1b]0;title\x07 bell")
    record = parse_record(writer.bytes(), "x")
    assert record.program == "/tmp/?[31mred?"
    assert "\x1b" not in record.messages[0].text


def test_a_row_type_that_this_version_does_not_know_is_skipped() -> None:
    writer = four_node_run()
    writer.header["rows"]["new_row"] = {"kind": 77, "fields": [["value", "u64", 1, 8]]}
    writer.rows.insert(3, (77).to_bytes(4, "little").ljust(ROW_BYTES, b"\7"))
    record = parse_record(writer.bytes(), "x")
    assert len(record.areas) == 2
    assert len(record.table("new_row")) == 1
    assert record.table("new_row")["value"][0] == 0x0707070707070707


def test_a_killed_process_leaves_a_readable_record(tmp_path: Path) -> None:
    record = read_record(str(four_node_run(ended=False).write(tmp_path / "r", unused_rows=100)))
    assert record.end is None
    assert record.seconds == pytest.approx(0.6)
    assert "did not end in order" in report_everything(record_bytes := (tmp_path / "r").read_bytes())
    assert len(record_bytes) > HEADER_BYTES


@pytest.mark.parametrize("full", [False, True])
def test_what_a_killed_process_leaves_is_whole(full: bool) -> None:
    """Whole blocks; where the disk was full, perhaps a part of one behind them that was never used."""
    data = four_node_run(ended=False).bytes()
    assert len(data) == PIECE_BYTES
    assert not parse_record(data + bytes(5 * 4096 * full), "x").truncated
    # The same, cut off after it was written.
    assert parse_record(data[: PIECE_BYTES - 4096], "x").truncated
    assert parse_record(data[:PIECE_BYTES] + data[HEADER_BYTES : HEADER_BYTES + 4096], "x").truncated


@pytest.mark.parametrize("how", ["stepped aside", "rows missing"])
def test_a_file_that_was_closed_without_its_last_rows_is_whole(how: str) -> None:
    writer = four_node_run(ended=False)
    writer.fact("end", how)
    data = writer.bytes()
    assert len(data) < PIECE_BYTES
    assert not parse_record(data, "x").truncated
    assert parse_record(data[:-1], "x").truncated


def test_how_a_file_grows_and_ends_is_as_the_library_says() -> None:
    sources = Path(__file__).resolve().parents[2] / "src"
    assert PIECE_BYTES == 1 << 20
    assert "piece_bytes = std::size_t{1} << 20;" in (sources / "record" / "record.cpp").read_text()
    assert '"end", "rows missing"' in (sources / "engine" / "journal.cpp").read_text()


def test_a_text_that_reads_like_another_record_is_a_text() -> None:
    writer = four_node_run()
    text = 'homing-record 1\n{"row_bytes": 128, "header_bytes": 16384}\n'
    writer.fact("note", text)
    writer.fact("long", "x" * 70 + text)
    assert parse_record(writer.bytes(), "x").facts["note"] == text.replace("\n", "?")


@settings(max_examples=60)
@given(st.integers(0, len(FILE)))
def test_any_truncation_gives_a_record_or_one_line(length: int) -> None:
    try:
        text = report_everything(FILE[:length])
    except RecordError as error:
        assert "\n" not in error.message
        assert "x.homing" in error.message
        assert length < HEADER_BYTES + ROW_BYTES
    else:
        assert "Traceback" not in text
        # The row `end` is the last one but for messages; what is cut off within it shows.
        assert ("the file's end is missing" in text) == (length < END or length % ROW_BYTES != 0)


@pytest.mark.parametrize("digits", [b"1", b"3", b"9"])
def test_a_column_of_another_length_is_not_read(digits: bytes) -> None:
    """Every length in the header, one after the other: a single value where several belong, and several
    where one does."""
    for found in re.finditer(rb'", ?(\d+), ?\d+\]', FILE[:HEADER_BYTES]):
        data = bytearray(FILE)
        width = found.end(1) - found.start(1)
        data[found.start(1) : found.end(1)] = digits.rjust(width)
        with contextlib.suppress(RecordError):
            report_everything(bytes(data))


def test_the_reader_knows_every_column() -> None:
    record = parse_record(FILE, "x.homing")
    for name, (_, fields) in LAYOUT.items():
        assert record.table(name).dtype.names == ("row", *(field[0] for field in fields)), name


@pytest.mark.parametrize(
    ("row", "changes"),
    [
        ("page_map", {"first": ("u32", 1), "node": ("i32", 1)}),
        ("page_map", {"node": ("f32", 11)}),
        ("distance", {"count": ("f32", 1)}),
        ("distance", {"from": ("i32", 2)}),
        ("references", {"from": ("i32", 1), "first": ("i32", 1)}),
        ("iteration", {"number": ("char", 1)}),
        ("first_touch", {"time": ("char", 1)}),
        ("sample", {"object": ("u32", 2)}),
        ("sample", {"time": ("char", 8)}),
        ("text", {"id": ("u32", 2)}),
        ("node", {"position": ("f32", 1)}),
        ("node", {"position": ("u8", 1), "target": ("u16", 1)}),
    ],
)
def test_columns_of_another_shape_are_left_out(row: str, changes: dict[str, tuple[str, int]]) -> None:
    writer = four_node_run()
    page_map(writer, 1, 1, [(0, 0), (10, 1)])
    where = {"object": writer.text("/home/user/cg"), "offset": 9}
    writer.row("sample", area=1, granule=3, thread=103, time=0.25, node=1, weight=1, **where)
    writer.row("first_touch", begin=0x10000000, end=0x10001000, samples=5, faults=5, time=0.1, **where)
    kind, fields = LAYOUT[row]
    writer.header["rows"][row] = {
        "kind": kind,
        "fields": [(name, *changes.get(name, (code, count)), at) for name, code, count, at in fields],
    }
    rows = list(writer.rows)
    for fill in (b"", b"\xf0" * 124, b"A" * 124):
        changed = kind.to_bytes(4, "little")
        writer.rows = [changed + fill if fill and one.startswith(changed) else one for one in rows]
        report_everything(writer.bytes())


@settings(max_examples=120)
@given(st.lists(st.tuples(st.integers(0, len(FILE) - 1), st.integers(0, 7)), min_size=1, max_size=8))
def test_any_bit_flips_give_a_record_or_one_line(flips: list[tuple[int, int]]) -> None:
    data = bytearray(FILE)
    for position, bit in flips:
        data[position] ^= 1 << bit
    try:
        report_everything(bytes(data))
    except RecordError as error:
        assert "\n" not in error.message


@settings(max_examples=100)
@given(st.data())
def test_damage_in_the_header_and_the_rows_that_are_used(data: st.DataObject) -> None:
    """As above, where it hurts most: the JSON, and whole random fields of rows."""
    damaged = bytearray(FILE)
    header_end = FILE.index(b"}\n\0")
    used = len(FILE) - 3 * ROW_BYTES
    start = data.draw(st.one_of(st.integers(0, header_end), st.integers(HEADER_BYTES, used - 9)))
    patch = data.draw(
        st.one_of(
            st.binary(min_size=1, max_size=8), st.sampled_from([b"\xff" * 8, b"\x7f" * 8, b"NaN", b"-1"])
        )
    )
    damaged[start : start + len(patch)] = patch
    with contextlib.suppress(RecordError):
        report_everything(bytes(damaged))


@settings(max_examples=100)
@given(st.binary(max_size=2000))
def test_random_bytes_are_no_record(data: bytes) -> None:
    with pytest.raises(RecordError):
        parse_record(data, "x")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\x7fELF and so on", "not a homing record"),
        (b"homing-record 9\n{}\n", "format 9"),
        (FILE[:500], "cut off"),
        (FILE[:12000], "only the record's header is there"),
        (FILE[:HEADER_BYTES], "only the record's header is there"),
        (FILE + FILE, "several records in one file"),
        (four_node_run(ended=False).bytes() + FILE, "several records in one file"),
        (FILE[: END - 17] + FILE, "several records in one file"),
        (FILE + FILE[:100], "several records in one file"),
        (FILE.replace(b'"row_bytes": 128', b'"row_bytes": 1e9'), "damaged"),
        (FILE.replace(b'"page_bytes": 4096', b'"page_bytes": 0   '), "damaged"),
        (FILE.replace(b'"page_bytes": 4096', b'"page_bytes": -1  '), "damaged"),
    ],
)
def test_report_of_a_bad_file_is_one_line_and_status_2(
    content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.homing"
    path.write_bytes(content)
    assert cli.main(["report", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert words in err
    assert "bad.homing" in err


@pytest.mark.parametrize("length", [END - 1, END - ROW_BYTES, HEADER_BYTES + ROW_BYTES])
def test_report_of_a_file_that_was_cut_off_shows_the_rest_and_has_status_2(
    length: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.homing"
    path.write_bytes(FILE[:length])
    assert cli.main(["report", str(path), "--json", str(tmp_path / "cut.json")]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("homing 0.1.0: cg")
    assert "the file's end is missing" in out
    assert err == f"homing report: {path}: the file's end is missing\n"
    assert json.loads((tmp_path / "cut.json").read_text())["processes"][0]["record"]["truncated"]


def test_report_of_a_killed_process_has_status_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = four_node_run(ended=False).write(tmp_path / "killed.homing")
    assert cli.main(["report", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "did not end in order" in out
    assert err == ""


def test_report_of_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "/nonexistent/file"]) == 2
    assert "No such file or directory" in capsys.readouterr().err
    assert cli.main(["report"]) == 2
    assert "which records" in capsys.readouterr().err
