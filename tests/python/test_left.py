"""Why pages are where they are: what the summary and the JSON file say of each area with remote accesses, and
of the costs that decided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from homing.record_rows import ALL_AREAS
from homing.records import parse_record
from homing.report import summary as summary_module
from homing.report.json import to_json
from homing.report.left import BOUND
from homing.report.names import Namer
from homing.report.results import ProcessResult, Results, area_results
from homing.report.summary import print_summary
from tests.python.record_writer import RecordWriter

SCHEMA = json.loads((Path(summary_module.__file__).parent / "schema.json").read_text())
SOURCES = Path(__file__).resolve().parents[2] / "src"


def results_of(writer: RecordWriter) -> Results:
    record = parse_record(writer.bytes(), "x")
    return Results([ProcessResult(record, area_results(record, Namer()))])


def printed(results: Results, capsys: pytest.CaptureFixture[str]) -> str:
    print_summary(results)
    return capsys.readouterr().err


def one_area(pages: int = 1000, mechanism: str = "iterative") -> RecordWriter:
    """A run with one array, whose pages lie on one of two nodes and are used from both."""
    writer = RecordWriter()
    for node in range(2):
        writer.row("node", index=node, position=node, cpus=1, memory_bytes=1 << 30, target=1)
    writer.fact("mechanism", mechanism)
    writer.fact("cache_bytes", str(32 << 20))
    writer.row("area", id=0, begin=1 << 30, bytes=pages * 4096, kind=1, name=writer.text("grid"))
    writer.row("placement", area=0, when=1, pages=[pages, 0])
    writer.row("end", time=1.0, iterations=20)
    writer.sample(0, before=0.4, after=0.4, granules=100)
    return writer


OWNERS: dict[str, Any] = {"area": 0, "iteration": 9, "kind": 1, "samples": 120}
GUARD: dict[str, Any] = {"area": 0, "iteration": 9, "move_ns": 1.6e6}
#: Moves that made 80 % remote 40 %.
NEARER: tuple[str, dict[str, Any]] = (
    "estimate",
    {
        "area": 0,
        "granules": 100,
        "touches": 100,
        "weight": 100,
        "weight2": 100,
        "traffic": 1.0,
        "before": 80,
        "before1": 80,
        "before2": 80,
        "after": 40,
        "after1": 40,
        "after2": 40,
    },
)


@pytest.mark.parametrize(
    ("rows", "reason", "words"),
    [
        (
            [("ownership", {"wanted": 500}), ("guard", {})],
            "free",
            "500 pages of grid: remote accesses cost nothing measurable (what each node uses fits into its "
            "32 MiB cache)",
        ),
        (
            [("ownership", {"wanted": 500}), ("guard", {"remote_ns": 4e5})],
            "cost",
            "500 pages of grid: remote accesses have cost 400 us so far, the move takes 1.6 ms",
        ),
        (
            [("ownership", {"wanted": 500}), ("guard", {"remote_ns": 2e6, "permitted": 1})],
            "late",
            "500 pages of grid: the run ended before they were moved",
        ),
        (
            [
                ("ownership", {"wanted": 500}),
                ("guard", {"remote_ns": 2e6, "permitted": 1}),
                ("move", {"area": 0, "iteration": 9, "wanted": 500, "moved": 100, "refused": 400}),
                ("refusal", {"area": 0, "iteration": 9, "error": 12, "pages": 400}),
                ("refusal", {"area": 0, "iteration": 3, "error": 16, "pages": 2}),
            ],
            "refused",
            "400 pages of grid: refused: 400 ENOMEM (Cannot allocate memory)",
        ),
        ([("ownership", {"kind": 0})], "no pattern", "grid: no pattern of owners"),
        (
            [("ownership", {"kind": 3})],
            "shared",
            "grid: seems to be used by all nodes alike, so remote to others wherever it lies",
        ),
        (
            [("ownership", {"wanted": 3})],
            "believed",
            "grid: pages are with the owners that are believed, yet 31 to 50 % remote, estimated from 100 "
            "touches",
        ),
        (
            [],
            "unknown",
            "grid: who uses which page is not known (31 to 50 % remote, estimated from 100 touches)",
        ),
        (
            [("ownership", {"cold": 1})],
            "cold",
            "grid: the program has named other memory as hot",
        ),
        (
            [
                ("move", {"area": 0, "iteration": 4, "wanted": 500, "moved": 500}),
                ("ownership", {}),
                # Of an earlier decision: pages that were to be moved then are no longer.
                ("guard", {"iteration": 5}),
                NEARER,
            ],
            "home",
            "grid: at home with the node that uses it most; others use it, too",
        ),
        (
            [("move", {"area": 0, "iteration": 4, "wanted": 500, "moved": 500}), ("ownership", {})],
            "unchanged",
            "grid: pages were moved, and no less is remote than before (31 to 50 % remote, ",
        ),
        (
            # It was found on one node and is spread, and homing has moved none of it.
            [("ownership", {}), ("placement", {"area": 0, "when": 3, "pages": [500, 500]})],
            "placed",
            "grid: the program itself, or the kernel, has put pages elsewhere than homing left them",
        ),
        (
            [
                ("ownership", {}),
                ("move", {"area": 0, "iteration": 9, "wanted": 500, "moved": 500}),
                ("placement", {"area": 0, "when": 3, "pages": [500, 500]}),
            ],
            "unchanged",
            "grid: pages were moved, and no less is remote than before",
        ),
        (
            # The program's own call came behind the last decision, which wanted nothing.
            [
                ("ownership", {}),
                ("move", {"area": 0, "iteration": 9, "wanted": 500, "moved": 500, "time": 0.4}),
                ("move", {"area": 0, "iteration": 12, "wanted": 500, "moved": 500, "time": 0.6}),
                ("placement", {"area": 0, "when": 3, "pages": [1000, 0], "time": 0.9}),
                NEARER,
            ],
            "placed",
            "grid: the program itself, or the kernel, has put pages elsewhere than homing left them",
        ),
        (
            # Memory was given back: that is no move.
            [("ownership", {}), ("placement", {"area": 0, "when": 3, "pages": [500, 0], "absent": 500})],
            "believed",
            "grid: pages are with the owners that are believed, yet",
        ),
    ],
)
def test_why_pages_were_not_moved(
    rows: list[tuple[str, dict[str, Any]]], reason: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = one_area()
    for name, values in rows:
        writer.row(name, **{**{"ownership": OWNERS, "guard": GUARD}.get(name, {}), **values})
    results = results_of(writer)
    assert f"left       {words}" in printed(results, capsys)
    document = to_json(results)
    jsonschema.validate(document, SCHEMA)
    left = document["processes"][0]["areas"][0]["left"]
    assert left["reason"] == reason
    assert left["text"] in f"{words} {left['text']}"


@pytest.mark.parametrize(
    ("kind", "remote", "reason", "words"),
    [
        (1, 0, "free", "500 pages of grid: no cache miss to another node was counted"),
        (3, 0, "free", "500 pages of grid: no cache miss to another node was counted"),
        (
            3,
            785_000,
            "shared",
            "grid: seems to be used by all nodes alike, so remote to others wherever it lies",
        ),
        (
            1,
            785_000,
            "cost",
            "500 pages of grid: no cost was found that moving them would save, the move takes",
        ),
        (1, None, "cost", "500 pages of grid: no cost was found that moving them would save, the move takes"),
    ],
)
def test_only_what_has_no_remote_miss_is_said_to_have_none(
    kind: int, remote: int | None, reason: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = one_area()
    writer.fact("source", "simulator")
    writer.row("ownership", **OWNERS | {"kind": kind, "wanted": 500})
    writer.row("guard", **GUARD)
    if remote is not None:
        writer.row("counted", scope=3, id=0)
        writer.row("misses", **{"scope": 3, "id": 0, "from": 1, "first": 0, "to": [remote, 300]})
    results = results_of(writer)
    (process,) = to_json(results)["processes"]
    assert process["areas"][0]["left"]["reason"] == reason
    assert f"left       {words}" in printed(results, capsys)
    said = "".join(one["text"] + one["evidence"] for one in process["advice"])
    assert ("no cache miss" in said) == (reason == "free")


def test_what_all_nodes_use_costs_nothing_only_in_their_caches() -> None:
    for mebibytes, reason in ((32, "free"), (2, "shared")):
        writer = one_area()
        writer.fact("cache_bytes", str(mebibytes << 20))
        writer.row("ownership", **OWNERS | {"kind": 3, "wanted": 500})
        writer.row("guard", **GUARD)
        (process,) = to_json(results_of(writer))["processes"]
        assert process["areas"][0]["left"]["reason"] == reason


def test_what_costs_nothing_is_not_to_be_interleaved() -> None:
    writer = one_area()
    words = {"area": 0, "iteration": 9, "words": writer.text("SHARED")}
    writer.row("ownership", **OWNERS | {"kind": 3, "wanted": 500, "confidence": 1.0})
    writer.row("distribution", **words)
    writer.row("guard", **GUARD)
    (process,) = to_json(results_of(writer))["processes"]
    assert {one["kind"] for one in process["advice"]} == {"nothing"}


@pytest.mark.parametrize("owners", [None, {"wanted": 0}])
def test_pages_that_several_nodes_use_are_told_as_such(
    owners: dict[str, Any] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = one_area()
    half = {"before": 50, "before1": 50, "before2": 25, "after": 50, "after1": 50, "after2": 25}
    sums = {"granules": 100, "touches": 400, "weight": 100, "weight2": 100, "traffic": 1.0}
    writer.row("estimate", area=0, **half, **sums)
    if owners is not None:
        writer.row("ownership", **OWNERS | owners)
    assert "left       grid: several nodes use each page (" in printed(results_of(writer), capsys)


def test_chance_explains_only_what_may_be_little(capsys: pytest.CaptureFixture[str]) -> None:
    writer = one_area()
    writer.sample(0, before=0.08, after=0.08, granules=100)
    writer.row("ownership", **OWNERS | {"wanted": 3})
    assert "left       grid: the samples show no more of it away" in printed(results_of(writer), capsys)


def test_too_few_samples_without_owners_are_no_reason() -> None:
    writer = one_area()
    writer.sample(0, before=0.5, after=0.5, granules=9)
    assert to_json(results_of(writer))["processes"][0]["areas"][0]["left"] is None


def test_the_guards_account_is_in_the_document() -> None:
    writer = one_area()
    writer.row("ownership", **OWNERS, wanted=500)
    writer.row("guard", **GUARD, remote_ns=4e5)
    area = to_json(results_of(writer))["processes"][0]["areas"][0]
    assert area["guard"] == {"remote_seconds": 4e-4, "move_seconds": 1.6e-3, "permitted": False}
    assert area["owners"]["wanted_pages"] == 500
    assert area["left"]["pages"] == 500


@pytest.mark.parametrize(
    ("mechanism", "said"), [("observe", "moves nothing"), ("record-replay", "moves pages for phases only")]
)
def test_who_moves_nothing_at_iterations_says_so_and_what_a_move_would_bring(
    mechanism: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = one_area(mechanism=mechanism)
    writer.row("ownership", **OWNERS, wanted=500)
    writer.row("guard", **GUARD, remote_ns=3e9, permitted=1)
    words = f"500 pages of grid: --mechanism {mechanism} {said} (remote accesses have cost 3 s so far"
    assert words in printed(results_of(writer), capsys)


def test_threads_that_are_not_bound_are_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    writer = one_area()
    writer.row("thread", thread=100, node=0, cpu=0, bound=0, time=0.01)
    writer.row("move", area=0, iteration=4, wanted=500, moved=500)
    writer.row("ownership", **OWNERS | {"wanted": 0})
    writer.row(NEARER[0], **NEARER[1])
    assert "threads that are not bound change nodes (--bind)" in printed(results_of(writer), capsys)


def test_memory_that_the_program_bound(capsys: pytest.CaptureFixture[str]) -> None:
    assert f'"{BOUND}"' in (SOURCES / "engine" / "iterative.cpp").read_text()
    writer = one_area()
    writer.row("ownership", **OWNERS, wanted=500)
    writer.row("guard", **GUARD, remote_ns=2e6, permitted=1)
    writer.message(f"grid{BOUND}")
    text = printed(results_of(writer), capsys)
    assert "500 pages of grid: the program itself bound them to nodes" in text


def test_where_nothing_is_remote_there_is_nothing_to_explain(capsys: pytest.CaptureFixture[str]) -> None:
    writer = one_area()
    writer.sample(0, before=0.4, after=0.0, granules=160)
    writer.row("ownership", **{**OWNERS, "iteration": 20})
    results = results_of(writer)
    assert "\nleft  " not in printed(results, capsys)
    assert to_json(results)["processes"][0]["areas"][0]["left"] is None


@pytest.mark.parametrize("wanted", [0, 500])
def test_pages_that_calls_of_the_program_moved(wanted: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Such batches are of no area: nothing is said of the owners that were known before."""
    writer = one_area()
    writer.row("ownership", **OWNERS | {"wanted": wanted})
    writer.row("guard", **GUARD, remote_ns=2e6, permitted=1)
    before = to_json(results_of(writer))["processes"][0]["areas"][0]["left"]["reason"]
    assert before == ("late" if wanted else "believed")
    writer.row("move", area=ALL_AREAS, iteration=9, wanted=750, moved=750)
    writer.row("placement", area=0, when=3, iteration=20, pages=[250, 750])
    words = "moved otherwise than at iterations (next touch, phases, calls of the program"
    results = results_of(writer)
    assert f"left       grid: {words}" in printed(results, capsys)
    document = to_json(results)
    jsonschema.validate(document, SCHEMA)
    process = document["processes"][0]
    assert (process["moved_pages"], process["areas"][0]["moved_pages"]) == (750, 0)
    assert process["areas"][0]["left"]["reason"] == "others"


def test_areas_of_one_reason_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    writer = one_area()
    writer.row("ownership", **OWNERS, wanted=500)
    writer.row("guard", **GUARD, remote_ns=4e5)
    for number in range(1, 6):
        writer.row("area", id=number, bytes=400 << 12, kind=1, name=writer.text(f"u{number}"))
        writer.row("placement", area=number, when=1, pages=[400, 0])
        writer.row("ownership", **{**OWNERS, "area": number}, wanted=100)
        writer.row("guard", **{**GUARD, "area": number}, remote_ns=0 if number == 5 else 1e5)
    for number, name in ((8, "used"), (9, "unused")):
        writer.row("area", id=number, bytes=300 << 12, kind=1, name=writer.text(name))
        writer.row("placement", area=number, when=1, pages=[300, 0])
    writer.sample(8, before=0.0, after=0.0, granules=50)
    lines = printed(results_of(writer), capsys).splitlines()
    assert [line for line in lines if line.startswith("left ")] == [
        "left       900 pages of grid, u1, u2 and 2 more: remote accesses have cost 800 us so far, "
        "the move takes 8 ms",
        "left       100 pages of u5: remote accesses cost nothing measurable (what each node uses fits into "
        "its 32 MiB cache)",
    ]
    assert next(line for line in lines if line.startswith("unused")).rstrip().endswith("not seen")
    assert "not known" in next(line for line in lines if line.startswith("used"))


COST_VALUES = "local_ns = 90, remote_ns = 131.5, move_call_us = 50, move_page_us = 1.5"


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"costs": "assumed from distances"}, "assumed from distances"),
        (
            {"costs": "stated in /etc/costs.toml", "cost_values": COST_VALUES},
            "stated in /etc/costs.toml: a local access 90 ns, a remote one 131.5 ns; moving 50 us a call and "
            "1.5 us a page",
        ),
        (
            {"costs": f"stated in /home/u/.cache/homing/costs-{'0' * 16}.toml"},
            "measured on this machine (/home/u/",
        ),
        ({"costs": "stated in /tmp/homing-run-x/costs.toml", "simulated": "{}"}, "stated by the machine's"),
    ],
)
def test_the_origin_of_the_costs(
    facts: dict[str, str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = one_area()
    for key, value in facts.items():
        writer.fact(key, value)
    assert f"\ncosts      {text}" in printed(results_of(writer), capsys)


def test_where_remote_costs_what_local_does(capsys: pytest.CaptureFixture[str]) -> None:
    writer = one_area()
    writer.fact("cost_values", "local_ns = 90, remote_ns = 90, move_call_us = 50, move_page_us = 1.5")
    writer.row("ownership", **OWNERS, wanted=500)
    writer.row("guard", **GUARD)
    assert "a remote access costs no more than a local one here" in printed(results_of(writer), capsys)


def decided(writer: RecordWriter, area: int, *accounts: tuple[float, int]) -> None:
    """Decisions of the guard, one an iteration: (remote_ns so far, permitted)."""
    for iteration, (remote, permitted) in enumerate(accounts):
        values = {"iteration": iteration, "remote_ns": remote, "move_ns": 3e9, "permitted": permitted}
        writer.row("guard", area=area, **values)


def test_the_summary_says_what_waiting_cost(capsys: pytest.CaptureFixture[str]) -> None:
    writer = one_area()
    # Without the guard the first decision had moved them: what came before it nobody could save.
    decided(writer, 0, (1e9, 0), (2e9, 0), (3.5e9, 1), (1e9, 1))
    decided(writer, 1, (1e9, 0), (1.25e9, 0))
    results = results_of(writer)
    words = (
        "2 areas until moving had paid (--guard on), which cost 2.75 s of remote accesses; 1 at the end still"
    )
    assert f"waited     {words}" in " ".join(printed(results, capsys).split()).replace(
        "waited ", "waited     "
    )
    document = to_json(results)
    jsonschema.validate(document, SCHEMA)
    assert document["processes"][0]["waiting"] == {"seconds": 2.75, "areas": 2, "still": 1}


@pytest.mark.parametrize("mechanism", ["iterative", "observe"])
def test_where_nothing_waited_there_is_no_line(mechanism: str, capsys: pytest.CaptureFixture[str]) -> None:
    writer = one_area(mechanism=mechanism)
    decided(writer, 0, (1e9, mechanism == "iterative"))
    assert "waited" not in printed(results_of(writer), capsys)
    assert to_json(results_of(writer))["processes"][0]["waiting"] is None


@pytest.mark.parametrize(("marked", "reason"), [(False, "observe"), (True, "late")])
def test_where_the_program_records_phases_and_marks_no_iteration_pages_move_for_phases_only(
    capsys: pytest.CaptureFixture[str], marked: bool, reason: str
) -> None:
    writer = one_area()
    writer.row("ownership", **{**OWNERS, "wanted": 500})
    writer.row("guard", **{**GUARD, "remote_ns": 2e6, "permitted": 1})
    writer.row("phase", number=0, accessed=400, eligible=200, planned=20, replays=7, moved=140, undone=140)
    writer.row("iteration", number=9, regions=5, basis=5 if marked else 1)
    results = results_of(writer)
    assert to_json(results)["processes"][0]["areas"][0]["left"]["reason"] == reason
    said = "500 pages of grid: pages move for the program's phases only: it marks no iteration"
    assert (said in " ".join(printed(results, capsys).split())) == (not marked)
