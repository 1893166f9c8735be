"""The summary and the JSON file: what they say about a run, and that the JSON keeps to its schema."""

from __future__ import annotations

import inspect
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homing import cli, record_rows
from homing.lab.counts import CacheModel, Counts, PhaseCounts, _OracleRange
from homing.record_format import RecordError
from homing.record_rows import Placement
from homing.records import parse_record
from homing.report import first_touch_advice, left, recommend
from homing.report import summary as summary_module
from homing.report.area_lines import MOST_AREAS, shares
from homing.report.debug_facts import Member
from homing.report.json import to_json
from homing.report.names import Namer
from homing.report.region_names import region_names
from homing.report.results import ProcessResult, Results, area_results, read_results
from homing.report.summary import print_summary
from homing.report.words import duration, size
from tests.python.record_writer import RecordWriter, four_node_run

SCHEMA = json.loads((Path(summary_module.__file__).parent / "schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def results_of(*writers: RecordWriter) -> Results:
    results = Results()
    for writer in writers:
        record, namer = parse_record(writer.bytes(), "x"), Namer()
        process = ProcessResult(record, area_results(record, namer))
        process.region_names = region_names(record, namer)
        results.processes.append(process)
    return results


def printed(results: Results, capsys: pytest.CaptureFixture[str]) -> str:
    print_summary(results)
    return capsys.readouterr().err


# The summary


def test_one_process(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(results_of(four_node_run()), capsys)
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    assert "4 NUMA nodes, 2 CPUs and 8.0 GiB each" in lines["machine"]
    assert "8, bound: 2 on node 0" in lines["threads"]
    assert "windows (pmu: no such PMU; hint-faults: kernel.numa_balancing is 0)" in lines["source"]
    assert "15 regions that repeat; settled at iteration 4 of 5" in lines["iteration"]
    assert re.search(r"3\.9 MiB +100 +0 +0 +0 +26 +25 +25 +24 +block +75 % -> 1\.0 %", lines["/main_mem/"])
    intervals = "(95 % intervals 71-79 % and 0.4-2.5 %)"
    touches = "from 400 sampled touches, 400 pages, the same at both ends"
    assert f"75 % -> 1.0 %, estimated {intervals} {touches}" in lines["remote"]
    assert re.search(r"1\.6 MiB +100 +0 +0 +0 +25 +25 +25 +25 +shared by all", lines["heap@cg+0x1234"])
    assert "740 pages, 2.9 MiB, in 2 calls (the longest 2 ms)" in lines["moved"]
    assert "8 ENOMEM (Cannot allocate memory), 2 EBUSY" in lines["moved"]
    assert "2.6 % of the run" in lines["time"]
    assert "not done: 2 pages stay where they are (2 times)" in text
    assert "[stack] 8.0 MiB" in lines["unwatched"]
    assert len(text.splitlines()) <= 20
    assert "\x1b" not in text


def test_small_unwatched_pieces_count_with_the_large_ones_of_their_kind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    writer = four_node_run()
    for at, what in enumerate(("stacks, and what else", "small pieces: stacks, and what else")):
        writer.row("unwatched", what=writer.text(what), begin=(1 + at) << 40, bytes=6 << 20)
    text = printed(results_of(writer), capsys)
    (told,) = (line for line in text.splitlines() if line.startswith("unwatched"))
    assert told == "unwatched  stacks, and what else 12 MiB; [stack] 8.0 MiB"


def test_an_estimate_says_that_most_iterations_were_not_seen(capsys: pytest.CaptureFixture[str]) -> None:
    writer = four_node_run()
    assert "none was seen" not in printed(results_of(writer), capsys)
    writer.row("end", iterations=163, settled_at=4)
    lines = {line.split("  ")[0]: line for line in printed(results_of(writer), capsys).splitlines()}
    assert lines["remote"].endswith("; of the last 157 iterations, at rest, none was seen")


def test_ranks_are_merged_with_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(results_of(four_node_run(rank=0, pid=50), four_node_run(rank=1, pid=51)), capsys)
    remote = r"75 % -> 1\.0 % \(71-79 -> 0\.4-2\.5 %\)"
    assert re.search(rf"^ +0 +50 +cg +5\.5 MiB +5 +4 +2\.9 MiB +10 +{remote} *$", text, re.MULTILINE)
    assert re.search(r"^ +1 +51 +cg ", text, re.MULTILINE)
    assert "1,480 pages" in text
    assert text.count("machine ") == 1


def test_advice_is_about_the_process_that_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    large = four_node_run(rank=1, pid=51)
    large.row("area", id=7, begin=1 << 40, bytes=1 << 30, kind=1, name=large.text("extra"), granule=4096)
    monkeypatch.setattr(
        summary_module,
        "advice_for",
        lambda process: [recommend.Advice("interleave", f"change {process.record.pid}.", "It is so.")],
    )
    text = printed(results_of(four_node_run(rank=0, pid=50), large), capsys)
    assert "the process with the largest areas, cg (rank 1, process 51" in text
    assert "change 51." in text and "change 50." not in text


def test_results_are_in_the_order_of_the_ranks(tmp_path: Path) -> None:
    paths = [str(four_node_run(rank=rank).write(tmp_path / f"{rank}.homing")) for rank in (2, 0, 1)]
    assert [process.record.rank for process in read_results(paths).processes] == [0, 1, 2]
    with pytest.raises(RecordError):
        read_results([*paths, str(tmp_path / "none")], strict=True)
    assert "No such file" in read_results([*paths, str(tmp_path / "none")]).unreadable[0]


def test_blocks_of_one_place_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    writer = RecordWriter()
    for node in range(2):
        writer.row("node", index=node, position=node, cpus=1, memory_bytes=1 << 30, target=1)
    name, path = writer.text("heap@a.out+0x20"), writer.text("/nowhere/a.out")
    for number in range(1, 301):
        place = 0x20 if number <= 200 else 0x30
        writer.row(
            "area",
            id=number,
            begin=number << 20,
            bytes=1 << 20,
            kind=2,
            name=name,
            origin=[place],
            origin_object=[path],
        )
        writer.row("placement", area=number, when=1, pages=[256, 0])
        writer.row("placement", area=number, when=3, pages=[0, 256])
    results = results_of(writer)
    assert [(area.count, area.bytes) for area in results.processes[0].areas] == [
        (200, 200 << 20),
        (100, 100 << 20),
    ]
    assert results.processes[0].areas[0].after is not None
    assert results.processes[0].areas[0].after.pages == (0, 200 * 256)
    assert "(x 200)" in printed(results, capsys)


def test_members_of_a_common_block_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    results = results_of(four_node_run())
    block = results.processes[0].areas[0]
    sizes = {"n": 4, "u": 3 << 20, "v": 2 << 20, "w": 0, "x": 1, "y": 0}
    members = tuple(Member(name, 0, size) for name, size in sizes.items())
    block.name = replace(block.name, members=members)
    block.ownership = results.processes[0].areas[1].ownership = None  # their words take room
    lines = printed(results, capsys).splitlines()
    below = lines[next(at for at, line in enumerate(lines) if line.startswith("/main_mem/")) + 1]
    assert re.match(r"  u 3\.0 MiB, v 2\.0 MiB, n 4 B and 3 more ", below)


def test_the_names_that_areas_are_chosen_by(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`homing report` tells them where a source line stands in their place; the summary of a run where areas
    were chosen."""
    results = results_of(four_node_run())
    block = results.processes[0].areas[1]
    block.name = replace(block.name, title="cg.c:7  x = malloc(n);", file="cg.c", line=7)
    block.ownership = None  # its words take room
    assert "heap@cg+0x1234" not in printed(results, capsys)
    results.names = True
    text = printed(results, capsys)
    assert re.search(r"^cg\.c:7  x = malloc\(n\); .*\n  heap@cg\+0x1234 *$", text, re.MULTILINE)
    assert len(re.findall(r"^/main_mem/", text, re.MULTILINE)) == 1


def test_an_area_of_many_blocks_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    writer = RecordWriter()
    for node in range(2):
        writer.row("node", index=node, position=node, target=1)
    place, path = 0x1234, writer.text("/home/user/rows")
    for number, blocks in enumerate((2000, 100), start=1):
        writer.row(
            "area",
            id=number,
            begin=number << 30,
            bytes=blocks << 17,
            kind=2,
            name=writer.text("heap@rows:main+0x1234"),
            origin=[place],
            origin_object=[path],
            blocks=blocks,
        )
        writer.row("placement", area=number, when=1, pages=[blocks * 32, 0])
    writer.row("area", id=3, begin=3 << 30, bytes=1 << 17, kind=2, origin=[place], origin_object=[path])
    results = results_of(writer)
    assert [(area.count, area.bytes) for area in results.processes[0].areas] == [(2101, 2101 << 17)]
    assert "(2,101 blocks)" in " ".join(printed(results, capsys).split())


def test_many_areas_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    writer = RecordWriter()
    writer.row("node", index=0, position=0, cpus=1, target=1)
    for number in range(1, 10001):
        writer.row(
            "area", id=number, begin=number << 20, bytes=number * 4096, kind=1, name=writer.text("table")
        )
        writer.row("placement", area=number, when=1, pages=[1])
    text = printed(results_of(writer), capsys)
    assert f"{10000 - MOST_AREAS:,} more areas" in text
    assert len(text.splitlines()) < 30


def test_a_freed_block_and_an_area_that_was_never_touched(capsys: pytest.CaptureFixture[str]) -> None:
    writer = RecordWriter()
    writer.row("node", index=0, position=0, cpus=1, target=1)
    for number in (1, 2, 3):
        writer.row(
            "area",
            id=number,
            begin=number << 20,
            bytes=number << 20,
            kind=3,
            name=writer.text(f"area{number}"),
        )
    writer.row("placement", area=1, when=1, pages=[0, 3], absent=253, time=0.1)
    writer.row("placement", area=1, when=1, pages=[256], time=0.2)  # it has grown
    writer.row("area_end", id=1, time=0.5)
    writer.row("placement", area=2, when=3, pages=[0], absent=512)
    text = printed(results_of(writer), capsys)
    assert re.search(r"area1 .* 100 + 100", text), "where it was last"
    assert text.count("(then freed)") == 1
    assert re.search(r"area2 .* unknown +not touched", text)
    assert "1 other area was not placed, at most 3.0 MiB of them at one time" in text


def test_what_next_touch_moves_is_counted_without_an_area() -> None:
    writer = RecordWriter()
    writer.row("move", area=0xFFFFFFFF, moved=12, wanted=12, bytes=12 * 4096)
    process = results_of(writer).processes[0]
    assert process.moved == 12
    assert to_json(Results([process]))["processes"][0]["moves"][0]["area"] is None


@pytest.mark.parametrize(
    ("pages", "text"),
    [
        ((3, 1), " 75  25"),
        ((0, 0), "not touched"),
        ((1000,) + (0,) * 7, "0: 100"),
        ((10,) * 8, "even, 12 each"),
        ((40, 30, 10, 10, 5, 5), "0: 40, 1: 30, 2: 10, 3: 10, others: 10"),
    ],
)
def test_shares(pages: tuple[int, ...], text: str) -> None:
    assert shares(Placement(1, 0.0, 1, 0, False, pages, 0), list(range(len(pages)))) == text


def test_numbers_for_people() -> None:
    assert [size(value) for value in (0, 1023, 1536, 10 << 20, 1 << 40)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "10 MiB",
        "1.0 TiB",
    ]
    times = ["5 us", "1.6 ms", "2 ms", "10 ms", "12 ms", "763 ms", "1.5 s", "12345 s"]
    values = (5e-6, 0.00161, 0.002, 0.00996, 0.0123, 0.763, 1.5, 12345)
    assert [duration(value) for value in values] == times
    assert [duration(value) for value in (999.6e-6, 0.9996, 999.6)] == ["1 ms", "1 s", "1000 s"]


def test_windows_beside_hint_faults_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    def source(questions: str) -> str:
        writer = four_node_run()
        writer.fact("source", "hint-faults")
        writer.fact("questions", questions)
        lines = printed(results_of(writer), capsys).splitlines()
        return next(line for line in lines if line.split()[:1] == ["source"])

    assert "hint-faults, and windows for what is asked (" in source("windows")
    assert "asked" not in source("none (windows: --no-signals)")


def test_an_array_whose_users_differ_by_region_says_which_one_its_pages_follow(
    capsys: pytest.CaptureFixture[str],
) -> None:
    writer = four_node_run()
    along = {"area": 1, "family": 2, "probability": 0.97}
    writer.row(
        "region", id=7, object=writer.text("/ft"), offset=64, symbol=writer.text("cffts1._omp_fn.0"), count=9
    )
    writer.row("region", id=8, object=writer.text("/ft"), offset=96, symbol=0, count=9)
    block, cyclic = writer.text("BLOCK over 4 threads"), writer.text("CYCLIC over 4 threads")
    writer.row("place_distribution", region=7, followed=1, touches=57, words=block, **along)
    writer.row("place_distribution", region=8, followed=0, touches=31, words=cyclic, **along)
    results = results_of(writer)
    text = printed(results, capsys)
    line = next(line for line in text.splitlines() if line.startswith("by region"))
    assert "pages follow cffts1 (57 touches, BLOCK over 4 threads, 97 %)" in line
    assert "not ft+0x60 (31 touches, CYCLIC over 4 threads, 97 %)" in line
    assert "by region" not in printed(results_of(four_node_run()), capsys)


def test_the_newest_row_of_each_phase_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    writer = four_node_run()
    recorded = {"phases": 2, "accessed": 400, "eligible": 200, "planned": 20}
    recorded |= {"references": 1000, "remote": 500}
    for replays in (1, 7):
        writer.row(
            "phase", number=0, replays=replays, moved=20 * replays, undone=20 * replays, seconds=0.0007,
            remote_with_plan=450, calls=2 * replays, **recorded,
        )  # fmt: skip
    writer.row("phase", number=1, replays=7, refused=3, **recorded)
    results = results_of(writer)
    (process,) = to_json(results)["processes"]
    assert [one["replays"] for one in process["phases"]] == [7, 7]
    text = " ".join(printed(results, capsys).split())
    assert "1: 20 of 200 critical pages (of 400 accessed), 50 % remote, 45 % with them elsewhere" in text
    assert "7 replays moved 140, 140 went back" in text
    assert "3 refused" in text
    assert "critical pages" not in printed(results_of(four_node_run()), capsys)


def test_a_run_that_could_not_be_observed_names_the_setting(capsys: pytest.CaptureFixture[str]) -> None:
    """As an MPI program's, on most machines."""
    writer = RecordWriter()
    why = (
        "pmu: perf_event_paranoid is 3; hint-faults: kernel.numa_balancing is 0; "
        "windows: libmpi.so is loaded: its peers may touch protected pages"
    )
    writer.fact("source_reasons", why)
    writer.message(f"no source of references works here ({why}): homing stepped aside", level=3)
    writer.fact("end", "stepped aside")
    text = printed(results_of(writer, writer), capsys)
    assert text.startswith("homing: nothing was done: cg: no source of references works here (pmu: ")
    assert "libmpi.so is loaded" in text
    assert text.count("sudo sysctl kernel.numa_balancing=1") == 1
    assert text.count("sudo sysctl kernel.perf_event_paranoid=2") == 1
    assert "sysctl" not in printed(results_of(four_node_run()), capsys), "windows observed there"


# JSON


def lab_counts() -> dict[str, Any]:
    """Counts as the lab gives them: two phases on two nodes."""
    phases = {phase: PhaseCounts(phase, 1000, [[80, 20], [40, 60]], 1, 2, 3, 0, 30) for phase in (1, 2)}
    oracle = (_OracleRange(1, 1, 200, 10), _OracleRange(2, 2, 200, 10), _OracleRange(1, 2, 400, 25))
    return Counts(2, 2, 1, CacheModel(1024, 16, 64, True), 2, 0, 50, phases, oracle).to_dict()


def test_json_keeps_to_the_schema() -> None:
    VALIDATOR.check_schema(SCHEMA)
    results = results_of(four_node_run(rank=0), four_node_run(ended=False), RecordWriter())
    results.command, results.status, results.seconds = ["./cg", "-x"], 3, 1.25
    results.counts = lab_counts()
    document = json.loads(json.dumps(to_json(results), allow_nan=False))
    VALIDATOR.validate(document)
    assert document["processes"][0]["areas"][0]["before"]["pages"] == [1000, 0, 0, 0]
    assert document["processes"][0]["refused"] == {"ENOMEM": 8, "EBUSY": 2}
    for one in (document["processes"][0], document["processes"][0]["areas"][0]):
        remote = one["remote_fraction"]
        assert (remote["before"], remote["after"], remote["touches"], remote["pages"]) == (
            0.75,
            0.01,
            400,
            400,
        )
        assert remote["before_interval"][0] < 0.75 < remote["before_interval"][1]
        assert remote["after_interval"][0] < 0.01 < remote["after_interval"][1]
    assert document["processes"][0]["areas"][1]["remote_fraction"]["before"] is None
    assert document["processes"][0]["iterations"]["settled_at"] == 4
    assert document["processes"][1]["record"]["complete"] is False
    assert document["counts"]["run"]["remote_fraction"] == 0.3


def test_json_is_text_whatever_files_are_called() -> None:
    found = results_of(four_node_run(program="/tmp/m\udcfcller"))
    found.command, found.unreadable, found.notes = ["./\udcff"], ["\udcfe: empty"], ["\udcfd"]
    assert json.dumps(to_json(found), ensure_ascii=False).encode("utf-8")
    assert to_json(found)["command"] == ["./?"]


def test_the_schema_refuses_what_is_not_documented() -> None:
    document = to_json(results_of(four_node_run()))
    document["processes"][0]["areas"][0]["surprise"] = 1
    assert not VALIDATOR.is_valid(document)
    del document["processes"][0]["areas"][0]["surprise"]
    assert VALIDATOR.is_valid(document)
    del document["processes"][0]["areas"][0]["owners"]
    assert not VALIDATOR.is_valid(document)


FILE = four_node_run().bytes()


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(16384, len(FILE) - 1), st.integers(0, 255)), max_size=12))
def test_json_of_damaged_rows_keeps_to_the_schema(damage: list[tuple[int, int]]) -> None:
    data = bytearray(FILE)
    for position, value in damage:
        data[position] = value
    record = parse_record(bytes(data), "x")
    document = to_json(Results([ProcessResult(record, area_results(record, Namer()))]))
    VALIDATOR.validate(json.loads(json.dumps(document, allow_nan=False)))


def test_the_schema_has_every_kind_that_is_written() -> None:
    """And the documents have what the schema has (below)."""
    areas, process = SCHEMA["$defs"]["area"]["properties"], SCHEMA["$defs"]["process"]["properties"]
    iterations = process["iterations"]["properties"]

    def literals(module: ModuleType, pattern: str) -> set[str]:
        return set(re.findall(pattern, inspect.getsource(module), re.MULTILINE))

    advised = set().union(
        *(literals(one, r'Advice\(\s*"([a-z-]+)"') for one in (recommend, first_touch_advice))
    )
    for schema, written in (
        (areas["kind"], record_rows.AREA_KINDS.values()),
        (areas["owners"]["properties"]["kind"], record_rows.OWNERSHIP_KINDS.values()),
        (iterations["rows"]["items"]["properties"]["state"], record_rows.ITERATION_STATES.values()),
        (iterations["rows"]["items"]["properties"]["basis"], record_rows.ITERATION_BASES.values()),
        (iterations["basis"], record_rows.ITERATION_BASES.values()),
        (process["messages"]["items"]["properties"]["level"], record_rows.MESSAGE_LEVELS.values()),
        (process["advice"]["items"]["properties"]["kind"], advised),
        (areas["left"]["properties"]["reason"], literals(left, r'^ {8}"([a-z ]+)": ')),
    ):
        assert {*schema["enum"]} - {"?", None} == {*written}, schema


def test_every_documented_field_is_in_the_document() -> None:
    """docs/json.md names every property of the schema, and every value of those that have a few."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "json.md").read_text()

    def properties(schema: Any) -> set[str]:
        if isinstance(schema, list):
            return set().union(*map(properties, schema))
        if not isinstance(schema, dict):
            return set()
        return set(schema.get("properties", {})) | set().union(*map(properties, schema.values()), set())

    def values(schema: Any) -> set[str]:
        """What an enumeration allows."""
        if isinstance(schema, list):
            return set().union(*map(values, schema))
        if not isinstance(schema, dict):
            return set()
        own = {value for value in schema.get("enum", []) if value not in (None, "?")}
        return own.union(*map(values, schema.values()))

    missing = {name for name in properties(SCHEMA) | values(SCHEMA) if f"`{name}`" not in text}
    assert not missing


def test_report_writes_json_and_a_summary_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = four_node_run().write(tmp_path / "r.homing")
    out = tmp_path / "out.json"
    assert cli.main(["report", str(path), "--json", str(out), "--summary", str(tmp_path / "s.txt")]) == 0
    VALIDATOR.validate(json.loads(out.read_text()))
    assert "/main_mem/" in (tmp_path / "s.txt").read_text()
    assert capsys.readouterr().out == ""
    assert cli.main(["report", str(path), "--json", "/no/folder/x"]) == 2
    assert cli.main(["report", str(path)]) == 0
    assert "/main_mem/" in capsys.readouterr().out


def test_a_file_on_standard_output_has_it_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record = str(four_node_run().write(tmp_path / "r"))
    assert cli.main(["report", record, "--json", "-"]) == 0
    VALIDATOR.validate(json.loads(capfd.readouterr().out))
    for flags in (["--json", "-", "--html", "-"], ["--perfetto", "-", "--map"]):
        assert cli.main(["report", record, *flags]) == 2
        assert "only one of them can have standard output" in capfd.readouterr().err
    assert cli.main(["report", record, "--json", "-", "--summary", "stderr"]) == 0
    assert "machine" in capfd.readouterr().err


def test_counts_of_the_lab_are_in_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    results = results_of(four_node_run())
    results.counts = lab_counts()
    text = printed(results, capsys)
    assert "30 % of 400 cache misses remote" in text
    assert "by phase: 30 %, 30 %" in text


def test_a_summary_for_a_terminal_has_colours() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    summary_module._print(results_of(four_node_run()), terminal)
    assert "\x1b[" in terminal.getvalue()


def test_names_that_a_program_makes_up_take_little_room(capsys: pytest.CaptureFixture[str]) -> None:
    """homing_watch takes any name: one of 65,536 letters made thousands of lines."""
    writer = four_node_run()
    for number, name in ((7, "x" * 65536), (8, ""), (9, "")):
        kind = 1 if number == 9 else 3
        row = {"begin": number << 32, "bytes": 4096 * 9, "kind": kind, "granule": 4096}
        writer.row(
            "area", id=number, name=writer.text(name), object=writer.text("/home/user/cg"), offset=99, **row
        )
        writer.row("placement", area=number, when=1, pages=[9])
    results = results_of(writer)
    text = printed(results, capsys)
    assert len(text.splitlines()) < 60
    assert "x..." in text or "...x" in text
    titles = [area["title"] for area in to_json(results)["processes"][0]["areas"]]
    assert "x" * 65536 in titles
    assert "named area at 0x800000000" in titles and "static area at 0x900000000" in titles
