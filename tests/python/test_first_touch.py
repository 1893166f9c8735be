"""Which code touched an array first, and the advice that rests on it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from homing.records import read_record
from homing.report import first_touch_advice, recommend, touch_site
from homing.report.first_touch import touched_first
from homing.report.json import to_json
from homing.report.lines import Text
from homing.report.results import Results, read_results
from homing.report.sources import Frame, Sources
from homing.report.summary import summary
from tests.places import TREE
from tests.python.record_writer import RecordWriter, four_node_run

STATIC, HEAP = 0x10000000, 0x20000000


class Known(Sources):
    """Sources that know the lines of offsets."""

    def frames(self, path: str, offset: int) -> tuple[Frame, ...]:
        return (Frame("init", "/src/two.c", offset - 1, "u[i] = 0;"),) if offset < 1000 else ()


def touch(writer: RecordWriter, begin: int, end: int, **values: Any) -> None:
    row = {"thread": 100, "node": 0, "samples": 10, "faults": 610, "time": 0.01, "last": 0.01, "offset": 31}
    writer.row("first_touch", object=writer.text("/home/user/cg"), begin=begin, end=end, **{**row, **values})


def of(writer: RecordWriter, folder: Path) -> Any:
    return touched_first(read_record(str(writer.write(folder / "a.homing"))), Known())


def test_a_place_is_told_with_its_line_and_threads(tmp_path: Path) -> None:
    writer = four_node_run()
    touch(writer, STATIC, STATIC + 4096 * 500)
    touch(writer, STATIC + 4096 * 500, STATIC + 4096 * 1000, thread=102, node=1)
    touch(writer, HEAP, HEAP + 4096 * 400, offset=40)
    found = of(writer, tmp_path)
    (one,) = found[1]
    assert (one.function, one.line, one.threads, one.nodes) == ("init", 31, (100, 102), (0, 1))
    assert (one.share, one.samples, one.where) == (1.0, 20, "two.c:31 (init)")
    assert [touch.line for touch in found[2]] == [40]


def test_a_piece_over_two_areas_is_shared_out(tmp_path: Path) -> None:
    writer = four_node_run()
    touch(writer, HEAP - 4096 * 400, HEAP + 4096 * 400, samples=100)
    assert of(writer, tmp_path)[2][0].samples == 50


def test_strays_and_places_without_samples_are_not_told(tmp_path: Path) -> None:
    writer = four_node_run()
    touch(writer, STATIC, STATIC + 4096 * 900, faults=6100)
    touch(writer, STATIC, STATIC + 4096, offset=32, faults=61)
    touch(writer, HEAP, HEAP + 4096, samples=1)
    found = of(writer, tmp_path)
    assert [one.line for one in found[1]] == [31]
    assert 2 not in found


def test_memory_that_had_two_arrays_was_touched_first_in_the_first_one(tmp_path: Path) -> None:
    writer = four_node_run()
    area = {"bytes": 4096 * 100, "kind": 2, "granule": 4096, "begin": 0x30000000}
    writer.row("area", id=7, time=0.1, name=writer.text("a"), **area)
    writer.row("area_end", id=7, time=0.2)
    writer.row("area", id=8, time=0.3, name=writer.text("b"), **area)
    touch(writer, 0x30000000, 0x30000000 + 4096 * 100, time=0.15)
    touch(writer, 0x30000000, 0x30000000 + 4096 * 100, time=0.35, offset=50)
    found = of(writer, tmp_path)
    assert [one.line for one in found[7]] == [31]
    assert [one.line for one in found[8]] == [50]


@pytest.mark.parametrize(
    "bad", [{"time": float("nan")}, {"begin": STATIC + 4096, "end": STATIC}, {"begin": 1 << 63}]
)
def test_damaged_rows_are_left_out(tmp_path: Path, bad: dict[str, Any]) -> None:
    writer = four_node_run()
    touch(writer, **{"begin": STATIC, "end": STATIC + 4096 * 1000, **bad})
    assert of(writer, tmp_path) == {}


def test_code_without_debug_information_is_named_by_its_symbol(tmp_path: Path) -> None:
    writer = four_node_run()
    touch(writer, STATIC, STATIC + 4096 * 1000, offset=5000, symbol=writer.text("setup_"))
    (one,) = of(writer, tmp_path)[1]
    assert (one.function, one.line) == ("setup_", 0)


def results(writer: RecordWriter, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    monkeypatch.setattr("homing.report.sources.Sources", Known)
    monkeypatch.setattr(Known, "declared", lambda self, area: None)
    return read_results([str(writer.write(folder / "a.homing"))])


def estimate(writer: RecordWriter, area: int, before: float, after: float, traffic: float) -> None:
    """Remote shares of an area of 500 sampled granules."""
    sums = {
        f"{end}{power}": 500 * share
        for end, share in (("before", before), ("after", after))
        for power in ("", 1, 2)
    }
    writer.row(
        "estimate",
        area=area,
        iteration=5,
        granules=500,
        touches=500,
        traffic=traffic,
        weight=500,
        weight2=500,
        **sums,
    )


def test_advice_names_the_loop_and_what_it_brings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = four_node_run()
    touch(writer, STATIC, STATIC + 4096 * 1000)
    estimate(writer, 1, 0.75, 0.05, 0.8)
    estimate(writer, 2, 0.5, 0.5, 0.2)
    found = results(writer, tmp_path, monkeypatch)
    (advice,) = [one for one in recommend.advice_for(found.processes[0]) if one.kind == "first-touch"]
    assert (
        "`#pragma omp parallel for schedule(static)` on the loop at two.c:31 (init), if its " in advice.text
    )
    assert advice.gain is not None
    assert (advice.gain.before, advice.gain.after) == pytest.approx((0.7, 0.14), abs=0.01)
    assert "70 % -> 14 % remote" in advice.words and "one thread" in advice.evidence
    lines = "\n".join(text.plain for text in summary(found) if hasattr(text, "plain"))
    assert "first at two.c:31 (init) by one thread" in lines and advice.words in lines


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            {"shared": ("seed",)},
            "Let homing move /main_mem/: the loop at two.c:31 (init) cannot be shared out as it is, its "
            "iterations share seed.",
        ),
        (
            {"directive": 29},
            "First touch /main_mem/ in parallel: switch on the directive at two.c:29 for the loop at "
            "two.c:31 (init), if its iterations do not need each other.",
        ),
        (
            {"private": ("j", "k")},
            "First touch /main_mem/ in parallel: put `#pragma omp parallel for schedule(static) "
            "private(j, k)` on the loop at two.c:31 (init), if its iterations do not need each other.",
        ),
    ],
)
def test_advice_about_a_loop_minds_what_its_iterations_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: dict[str, Any], text: str
) -> None:
    writer = four_node_run()
    touch(writer, STATIC, STATIC + 4096 * 1000)
    estimate(writer, 1, 0.75, 0.05, 1.0)
    monkeypatch.setattr(
        touch_site, "site", lambda *_: touch_site.Site(touch_site.LOOP, "/src/two.c", 31, **source)
    )
    (advice,) = advice_of(writer, tmp_path, monkeypatch)
    assert advice.text == text
    assert advice.gain is not None and advice.gain.after == pytest.approx(0.05)


def advice_of(writer: RecordWriter, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[recommend.Advice]:
    process = results(writer, folder, monkeypatch).processes[0]
    return [one for one in recommend.advice_for(process) if one.kind == "first-touch"]


def owned(writer: RecordWriter, area: int, distribution: str, confidence: float = 0.99) -> None:
    """Believed owners of an area that was all remote, and is at home now: it was moved there."""
    writer.row("ownership", area=area, iteration=3, kind=1, confidence=confidence, samples=99)
    writer.row("distribution", area=area, iteration=3, words=writer.text(distribution), known=99)
    writer.row("move", area=area, iteration=3, wanted=300, moved=300, bytes=300 * 4096, calls=1, time=0.3)
    estimate(writer, area, 0.75, 0.05, 0.5)


def test_evidence_is_told_by_array_where_it_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = four_node_run()
    for area, begin, pages in ((1, STATIC, 1000), (2, HEAP, 400)):
        owned(writer, area, f"BLOCK over {area * 2} threads")
        touch(writer, begin, begin + 4096 * pages)
    (same,) = advice_of(writer, tmp_path, monkeypatch)
    assert same.evidence == (
        "100 % of each was first touched by one thread; used: /main_mem/ as BLOCK over 2 threads; "
        "heap@cg+0x1234 as BLOCK over 4 threads."
    )


def test_what_several_threads_touched_first_gets_no_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = four_node_run()
    owned(writer, 2, "BLOCK over 2 threads")
    for thread in (100, 102):
        touch(writer, HEAP, HEAP + 4096 * 400, thread=thread)
    assert all(one.area != 1 for one in advice_of(writer, tmp_path, monkeypatch))


@pytest.mark.parametrize("distribution", ["SINGLE on thread 3", "SHARED"])
def test_what_has_no_parts_is_not_touched_in_parallel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distribution: str
) -> None:
    writer = four_node_run()
    owned(writer, 2, distribution, 0.5)
    touch(writer, HEAP, HEAP + 4096 * 400)
    assert all(one.area != 1 for one in advice_of(writer, tmp_path, monkeypatch))


def test_pages_without_a_pattern_are_advised_where_moving_them_has_helped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a pool of arrays: no one distribution describes it."""
    writer = four_node_run()
    owned(writer, 2, "NONE", 0.5)
    touch(writer, HEAP, HEAP + 4096 * 400)
    (advice,) = (one for one in advice_of(writer, tmp_path, monkeypatch) if one.area == 1)
    assert advice.evidence.endswith("and it is used by other threads.")


def test_lines_of_headers_and_libraries_are_never_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = Frame("std::fill", "/usr/include/c++/13/bits/stl_algobase.h", 922, "*first = tmp;")
    own = Frame("main", "/src/vv.cpp", 4, "std::vector<double> a(n,1.0), b(n);")
    writer = four_node_run()
    owned(writer, 1, "BLOCK over 4 threads")
    touch(writer, STATIC, STATIC + 4096 * 1000)
    known: tuple[Frame, ...] = (header,)
    monkeypatch.setattr(Known, "frames", lambda self, path, offset: known)
    (advice,) = advice_of(writer, tmp_path, monkeypatch)
    told = "First touch /main_mem/ in parallel, as it is used (BLOCK over 4 threads), if its order does not "
    assert advice.text == f"{told}matter."
    assert (advice.file, advice.line) == ("", 0)
    known = (header, own)
    (advice,) = advice_of(writer, tmp_path, monkeypatch)
    assert "what is allocated at vv.cpp:4 (main) is written there, by one thread; take storage" in advice.text


def test_json_has_first_touches_and_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = four_node_run()
    touch(writer, STATIC, STATIC + 4096 * 1000)
    estimate(writer, 1, 0.75, 0.05, 0.8)
    data = to_json(results(writer, tmp_path, monkeypatch))
    schema = json.loads((TREE / "homing/report/schema.json").read_text())
    jsonschema.validate(data, schema)
    process = data["processes"][0]
    assert process["areas"][0]["first_touch"][0]["line"] == 31
    assert process["advice"][0]["kind"] == "first-touch"
    assert process["advice"][0]["remote_after"] == pytest.approx(0.05)


@pytest.mark.parametrize(("cost", "advised"), [(0, 0), (5e5, 1)])
def test_no_advice_where_no_cost_was_found_that_a_move_would_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cost: float, advised: int
) -> None:
    writer = four_node_run()
    writer.fact("source", "simulator")  # and no counts: what remote accesses cost is not known
    touch(writer, STATIC, STATIC + 4096 * 1000)
    estimate(writer, 1, 0.75, 0.05, 1.0)
    writer.row("ownership", area=1, iteration=4, kind=1, confidence=0.99, samples=300, wanted=750)
    writer.row("guard", area=1, iteration=4, remote_ns=cost, move_ns=1e6, permitted=0)
    assert len(advice_of(writer, tmp_path, monkeypatch)) == advised


def test_no_advice_where_the_owner_touched_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = four_node_run()
    estimate(writer, 1, 0.02, 0.02, 1.0)
    kinds = {one.kind for one in recommend.advice_for(results(writer, tmp_path, monkeypatch).processes[0])}
    assert not kinds & {"first-touch", "interleave"}


@pytest.mark.parametrize(
    ("file", "distribution", "directive"),
    [
        ("a.c", "BLOCK over 4 threads", "#pragma omp parallel for schedule(static)"),
        ("a.F90", "BLOCK over 4 threads", "!$omp parallel do schedule(static)"),
        ("a.cpp", "CYCLIC(2) over 4 threads", "#pragma omp parallel for schedule(static, chunk)"),
    ],
)
def test_the_directive_is_in_the_languages_words(file: str, distribution: str, directive: str) -> None:
    assert first_touch_advice._directive(file, distribution) == directive


def test_blocks_that_are_left_out_have_the_names_of_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = four_node_run()
    for at, name in enumerate(("heap@cg+0x20", "heap@cg:init_+0x20", "heap@other+0x20", "grid"), start=1):
        what = writer.text(f"left out by --areas: {name}")
        writer.row("unwatched", what=what, begin=at << 40, bytes=32 << 20)
    found = summary(results(writer, tmp_path, monkeypatch))
    (told,) = (line.plain for line in found if isinstance(line, Text) and line.plain.startswith("unwatched"))
    named = "left out by --areas: u (two.c:31) 64 MiB; left out by --areas: heap@other+0x20 32 MiB"
    assert told.startswith(f"unwatched  {named}; left out by --areas: grid 32 MiB")


def test_where_first_touches_cannot_be_seen_the_summary_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = four_node_run()
    writer.row("fact", key=writer.text("first_touch"), value=writer.text("unknown: perf_event_paranoid is 3"))
    found = summary(results(writer, tmp_path, monkeypatch))
    lines = [line.shown(False) for line in found if isinstance(line, Text)]
    (told,) = (line for line in lines if line.startswith("touched"))
    assert told.startswith("touched    not known which code touched memory first: perf_event_paranoid is 3; ")
    assert "; found /main_mem/, heap@cg+0x1234 on node 0: its threads did" in told


FILLS = """
#include <stdlib.h>
enum { words = 1 << 22 };
int main(void) {
    double* a = malloc(words * sizeof *a);
    #pragma omp parallel for schedule(static)
    for (long i = 0; i < words; ++i) a[i] = i;
    for (int k = 0; k < 20; ++k) {
        #pragma omp parallel for schedule(static)
        for (long i = 0; i < words; ++i) a[i] += k;
    }
    return a[7] < 0;
}
"""


#: Filled by threads that end before the first region, one after the other.
FILLED_BY_THREADS = """
#include <pthread.h>
#include <stdlib.h>
enum { words = 1 << 22 };
static double* a;
static void* fill(void* half) {
    for (long i = 0; i < words / 2; ++i) a[i + (half ? words / 2 : 0)] = i;
    return 0;
}
int main(void) {
    a = malloc(words * sizeof *a);
    for (int half = 0; half < 2; ++half) {
        pthread_t thread;
        pthread_create(&thread, 0, fill, half ? a : 0);
        pthread_join(thread, 0);
    }
    for (int k = 0; k < 20; ++k) {
        #pragma omp parallel for schedule(static)
        for (long i = 0; i < words; ++i) a[i] += k;
    }
    return a[7] < 0;
}
"""


def threads_that_touched(source: str, folder: Path, **variables: str) -> set[int]:
    """The numbers of the threads that are known to have touched arrays of this program first."""
    (folder / "fills.c").write_text(source)
    program = folder / "fills"
    subprocess.run(["gcc", "-O1", "-g", "-fopenmp", folder / "fills.c", "-o", program], check=True)
    library = os.environ.get("HOMING_LIBRARY", str(TREE / "build" / "release" / "libhoming.so"))
    settings = {
        "HOMING_ASSUME_NODES": "2",
        "HOMING_RECORD": str(folder / "r.homing"),
        "OMP_NUM_THREADS": "2",
    }
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_", "HOMING"))
    }
    subprocess.run([program], env={**kept, **settings, **variables, "LD_PRELOAD": library}, check=True)
    record = read_record(str(folder / "r.homing"))
    if not record.facts["first_touch"].startswith("page faults"):
        pytest.skip(record.facts["first_touch"])
    found = touched_first(record, Sources())
    return {thread for touches in found.values() for touch in touches for thread in touch.threads}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
@pytest.mark.parametrize(
    "bound", [{}, {"OMP_PROC_BIND": "spread", "OMP_PLACES": "cores"}], ids=["free", "bound"]
)
def test_touches_of_all_threads_are_seen(bound: dict[str, str], tmp_path: Path) -> None:
    """Also where the runtime has bound the first thread to its place before homing looks."""
    assert len(threads_that_touched(FILLS, tmp_path, **bound)) == 2


def test_touches_of_threads_that_have_ended_are_seen(tmp_path: Path) -> None:
    assert len(threads_that_touched(FILLED_BY_THREADS, tmp_path)) == 2
