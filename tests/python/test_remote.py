"""The estimate of remote shares: both ends differ by what moved alone, the intervals hold the truth, and the
summary says what is known."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homing.record_rows import AreaSample, EndSums
from homing.records import parse_record
from homing.report.area_lines import change
from homing.report.json import to_json
from homing.report.names import Namer
from homing.report.remote import CONFIDENCE, LEAST_SAMPLES, Estimate, estimate, wilson
from homing.report.results import ProcessResult, Results, area_results, most_alive
from homing.report.summary import print_summary
from tests.python.record_writer import RecordWriter, four_node_run


def known(found: Estimate | None) -> Estimate:
    assert found is not None
    return found


def sample_of(pages: list[tuple[float, float, float]], traffic: float = 1.0) -> AreaSample:
    """An area's sample from (weight, remote share before, after) of its pages."""

    def sums(at: int) -> EndSums:
        values = [(page[0], page[at]) for page in pages]
        return EndSums(
            math.fsum(w * r for w, r in values),
            math.fsum(w * w * r for w, r in values),
            math.fsum(w * w * r * r for w, r in values),
        )

    weight, weight2 = math.fsum(page[0] for page in pages), math.fsum(page[0] ** 2 for page in pages)
    return AreaSample(1, False, len(pages), len(pages), traffic, weight, weight2, sums(1), sums(2))


SHARES = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
PAGES = st.lists(st.tuples(st.floats(1, 1e4), SHARES, SHARES), min_size=1, max_size=30)
AREAS = st.lists(st.tuples(PAGES, st.floats(1e-3, 1e6)), min_size=1, max_size=6)


@settings(max_examples=200)
@given(AREAS, st.randoms(use_true_random=False))
def test_an_estimate_lies_in_its_interval_whatever_the_order(
    areas: list[tuple[list[tuple[float, float, float]], float]], order: random.Random
) -> None:
    found = known(estimate([sample_of(*area) for area in areas]))
    for share in (found.before, found.after):
        assert 0 <= share.low <= share.fraction <= share.high <= 1
    order.shuffle(areas)
    again = known(estimate([sample_of(order.sample(pages, len(pages)), traffic) for pages, traffic in areas]))
    assert again.before.fraction == pytest.approx(found.before.fraction, abs=1e-9)
    assert again.after.high == pytest.approx(found.after.high, abs=1e-6)


@settings(max_examples=100)
@given(AREAS)
def test_where_nothing_moved_both_ends_are_one_number(
    areas: list[tuple[list[tuple[float, float, float]], float]],
) -> None:
    still = [([(w, before, before) for w, before, _ in pages], traffic) for pages, traffic in areas]
    found = known(estimate([sample_of(*area) for area in still]))
    assert found.before == found.after
    assert not found.changed


@pytest.mark.parametrize(("after", "shown"), [(0.5 + 1e-9, "50 %"), (0.504, "50 %"), (0.51, "50 % -> 51 %")])
def test_an_arrow_is_between_two_numbers(after: float, shown: str) -> None:
    assert change(known(estimate([sample_of([(1, 0.5, after)] * 1000)]))) == shown


def test_areas_weigh_what_their_traffic_does() -> None:
    areas = [sample_of([(1, 1.0, 1.0)] * 50, 3.0), sample_of([(1, 0.0, 0.0)] * 5000, 1.0)]
    assert known(estimate(areas)).before.fraction == pytest.approx(0.75)
    assert estimate([replace(areas[0], traffic=0.0)]) is None
    assert estimate([]) is None


def test_wilsons_interval_is_wilsons() -> None:
    """Newcombe 1998, table I: 81 of 263, and 0 of 20."""
    share = wilson(81 / 263, 263)
    assert (share.low, share.high) == (pytest.approx(0.2553, abs=5e-5), pytest.approx(0.3662, abs=5e-5))
    share = wilson(0.0, 20)
    assert (share.low, share.high) == (0.0, pytest.approx(0.1611, abs=5e-5))


def drawn(generator: np.random.Generator, area: dict[str, float]) -> tuple[AreaSample, float]:
    """A sample of a simulated area, and the truth. pages: of it; remote: share of them that are; n: sampled;
    touches: seen of each; alike: pages have all one remote share, about (0: they are remote or not); even:
    the sample is, else each page stands for those up to half-way to the next."""
    size, n, touches = int(area.get("pages", 10000)), int(area["n"]), int(area.get("touches", 1))
    remote, alike = area["remote"], area.get("alike", 0)
    population = (
        generator.beta(remote * alike, (1 - remote) * alike, size)
        if alike
        else (generator.random(size) < remote).astype(float)
    )
    at = np.sort(generator.choice(size, n, replace=False))
    if area.get("even"):
        weights = np.ones(n)
    else:
        weights = np.diff(np.concatenate([[0], (at[:-1] + at[1:] + 1) // 2, [size]])).astype(float)
    shares = generator.binomial(touches, population[at]) / touches
    pages = [(float(w), float(r), float(r)) for w, r in zip(weights, shares, strict=True)]
    return sample_of(pages, area["traffic"]), float(population.mean())


@pytest.mark.parametrize(
    "areas",
    [
        [{"remote": 0.3, "n": 100, "traffic": 1, "even": 1}],
        [{"remote": 0.01, "n": 100, "traffic": 1, "even": 1}],
        [{"remote": 0.75, "n": 40, "traffic": 1}],
        [{"remote": 0.05, "n": 300, "traffic": 1}],
        # Unequal sampling: what has most traffic was sampled least.
        [{"remote": 0.3, "n": 25, "traffic": 10}, {"remote": 0.75, "n": 500, "traffic": 1}],
        [{"remote": 0.0, "n": 60, "traffic": 1}, {"remote": 0.75, "n": 60, "traffic": 1}],
        [{"remote": (i % 4) / 4, "n": 1 + i % 7, "pages": 100, "traffic": 1 + i % 3} for i in range(60)],
        [{"remote": 0.02, "n": 1 + i % 7, "pages": 100, "traffic": 1 + i % 3} for i in range(60)],
        # Several touches of a page are no independent samples of the area.
        [{"remote": 0.3, "n": 60, "touches": 20, "traffic": 1, "even": 1}],
        [{"remote": 0.75, "n": 60, "touches": 5, "traffic": 1, "alike": 50}],
    ],
)
def test_intervals_hold_the_truth_in_95_per_cent_of_programs(areas: list[dict[str, float]]) -> None:
    generator = np.random.default_rng(20)
    programs, held = 400, 0
    for _ in range(programs):
        samples, truths = zip(*(drawn(generator, area) for area in areas), strict=True)
        truth = sum(t * area["traffic"] for t, area in zip(truths, areas, strict=True))
        truth /= sum(area["traffic"] for area in areas)
        found = known(estimate(samples))
        held += found.before.low <= truth <= found.before.high
    # Four standard errors below 95 %: a right interval falls short once in 30,000 such tests.
    assert held / programs >= CONFIDENCE - 4 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / programs)


# What is said


def results_of(*writers: RecordWriter) -> Results:
    read = [parse_record(writer.bytes(), "x") for writer in writers]
    return Results([ProcessResult(record, area_results(record, Namer())) for record in read])


def printed(results: Results, capsys: pytest.CaptureFixture[str]) -> str:
    print_summary(results)
    return capsys.readouterr().err


def line_of(label: str, text: str) -> str:
    return next((line for line in text.splitlines() if line.startswith(label)), "")


def one_area(before: float, after: float, granules: int, settled: int = 3) -> RecordWriter:
    writer = RecordWriter()
    for node in range(2):
        writer.row("node", index=node, position=node, cpus=1, memory_bytes=1 << 30, target=1)
    writer.fact("mechanism", "iterative")
    writer.row("area", id=1, begin=1 << 30, bytes=1000 * 4096, kind=1, name=writer.text("grid"))
    writer.row("placement", area=1, when=1, pages=[1000, 0])
    writer.sample(1, before, after, granules)
    writer.row("iteration", number=1, state=3, basis=1, regions=2)
    writer.row("end", time=1.0, iterations=9, settled_at=settled, period=2)
    return writer


def test_no_arrow_where_nothing_moved(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(results_of(one_area(0.56, 0.56, 100)), capsys)
    assert (
        "56 %, estimated (95 % interval 46-65 %) from 100 sampled touches, 100 pages; nothing moved" in text
    )
    assert "->" not in text


def test_pages_that_moved_for_nothing_are_not_said_to_have_stayed(capsys: pytest.CaptureFixture[str]) -> None:
    writer = one_area(0.56, 0.56, 100)
    writer.row("move", area=1, iteration=1, wanted=9, moved=9, bytes=9 * 4096, calls=1)
    text = printed(results_of(writer), capsys)
    assert "from 100 sampled touches, 100 pages; the same where moved pages ended" in text


def test_few_samples_are_no_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    results = results_of(one_area(0.5, 0.0, LEAST_SAMPLES - 1))
    text = printed(results, capsys)
    assert "not known: too few samples (19 sampled touches, 19 pages: 18 of 20 independent ones)" in text
    assert "->" not in text
    remote = to_json(results)["processes"][0]["remote_fraction"]
    assert (remote["before"], remote["after_interval"], remote["touches"]) == (None, None, 19)
    assert "->" in printed(results_of(one_area(0.5, 0.0, LEAST_SAMPLES + 2)), capsys)


def test_settled_never_stands_beside_a_high_share_without_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    writer = one_area(0.56, 0.56, 100)
    writer.row("ownership", area=1, iteration=2, kind=3, samples=100)
    line = line_of("iteration", printed(results_of(writer), capsys))
    shared = "seems to be used by all nodes alike, so remote to others wherever it lies"
    words = f"with 56 % still remote (estimated): {shared}"
    assert line.endswith(f"settled at iteration 3 of 9, {words}")
    unknown = line_of("iteration", printed(results_of(one_area(0.3, 0.3, 100)), capsys))
    assert unknown.endswith("30 % still remote (estimated): who uses which page is not known")
    for writer in (one_area(0.56, 0.01, 100), one_area(0.56, 0.56, 5), one_area(0.56, 0.56, 100, settled=0)):
        assert "still remote" not in printed(results_of(writer), capsys)


def test_what_an_estimate_of_accesses_is_of_stands_beside_what_was_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    writer = one_area(1.0, 1.0, 100)
    sums = {f"{end}{power}": 100.0 for end in ("before", "after") for power in ("", 1, 2)}
    writer.row(
        "estimate", area=1, by_access=1, granules=100, touches=100, traffic=1, weight=100, weight2=100, **sums
    )
    results = results_of(writer)
    assert "serial code" not in line_of("remote", printed(results, capsys))
    run = {"remote_fraction": 0.33, "total_misses": 1000, "oracle_remote_fraction": 0.01}
    results.counts = {"run": run}
    line = line_of("remote", printed(results, capsys))
    assert "; from the first parallel region on, without the serial code before it" in line


def test_what_was_counted_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    results = results_of(one_area(0.57, 0.11, 100))
    run = {"remote_fraction": 0.014, "total_misses": 1000, "oracle_remote_fraction": 0.01}
    results.counts = {"run": run, "phases": [{**run, "remote_fraction": 0.3}, run]}
    text = printed(results, capsys)
    assert 0 < text.index("counted ") < text.index("remote     57 % -> 11 %")
    assert "of touches, also those that hit a cache" in line_of("remote", text)
    assert "still remote" not in text, "the count of the last phase knows better"
    results.counts["phases"][-1]["remote_fraction"] = 0.37
    line = line_of("iteration", printed(results, capsys))
    assert "with 37 % still remote (counted in the last phase): " in line
    # Iterations since placement is stable are known better still; the last one may be a part of one.
    fractions = (0.75, 0.75, 0.75, 0.12, 0.14, 0.9)
    results.counts["iterations"] = [
        {"number": number, "total_misses": 100, "remote_misses": 100 * share}
        for number, share in enumerate(fractions)
    ]
    line = line_of("iteration", printed(results, capsys))
    assert "with 13 % still remote (counted since then): " in line


def test_a_record_without_estimates_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """As version 0.1.0 wrote them, or one of a mechanism that does not sample."""
    writer = four_node_run()
    writer.rows = [row for row in writer.rows if int.from_bytes(row[:4], "little") != 40]
    results = results_of(writer)
    assert "remote" not in printed(results, capsys)
    remote = to_json(results)["processes"][0]["remote_fraction"]
    assert (remote["before"], remote["pages"]) == (None, 0)


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(
            ["traffic", "weight", "weight2", "before", "before1", "before2", "after", "after1", "after2"]
        ),
        st.one_of(st.floats(), st.sampled_from([0.0, -1.0, 1e308, math.inf, math.nan])),
        max_size=4,
    )
)
def test_damaged_sums_are_left_out_or_give_fractions(damage: dict[str, float]) -> None:
    writer = one_area(0.5, 0.1, 100)
    values = {"weight": 100.0, "weight2": 100.0, "before": 50.0, "before1": 50.0, "before2": 50.0}
    writer.row("estimate", area=1, granules=100, touches=100.0, **{"traffic": 1.0, **values, **damage})
    found = results_of(writer).processes[0].remote
    if found is not None:
        assert 0 <= found.before.low <= found.before.high <= 1
        assert found.effective >= 0


def test_temporaries_are_told_by_what_lived_at_one_time(capsys: pytest.CaptureFixture[str]) -> None:
    writer = one_area(0.5, 0.5, 100)
    for number in range(2, 502):
        writer.row(
            "area",
            id=number,
            bytes=1 << 20,
            kind=2,
            time=number * 0.01,
            name=writer.text("heap@t"),
            origin=[0x20],
            origin_object=[writer.text("/nowhere/a.out")],
        )
        writer.row("area_end", id=number, time=(number + 3) * 0.01)
    results = results_of(writer)
    text = printed(results, capsys)
    assert "500 other areas were not placed, at most 3.0 MiB of them at one time" in text
    area = next(area for area in results.processes[0].areas if area.count == 500)
    assert (area.bytes, area.live_bytes) == (500 << 20, 3 << 20)
    assert to_json(results)["processes"][0]["areas"][1]["live_bytes"] == 3 << 20


def test_an_area_without_a_lifetime_counts() -> None:
    writer = RecordWriter()
    writer.row("area", id=1, bytes=4096, kind=1, time=0.5)
    writer.row("area_end", id=1, time=0.5)
    assert most_alive(parse_record(writer.bytes(), "x"), [1]) == 4096


def test_an_area_whose_places_were_sampled_weighs_as_long_as_it_lived() -> None:
    writer = RecordWriter()
    for number, (begin, end) in enumerate([(0.0, 0.75), (0.75, 1.0)], start=1):
        writer.row("area", id=number, bytes=4096, kind=1, time=begin)
        writer.row("area_end", id=number, time=end)
        writer.sample(number, float(number == 1), float(number == 1), 100)
    writer.row("end", time=1.0)
    record = parse_record(writer.bytes(), "x")
    assert known(estimate(list(record.samples.values()))).before.fraction == pytest.approx(0.75)


def test_the_newest_row_of_an_area_counts() -> None:
    writer = one_area(0.9, 0.9, 30)
    writer.sample(1, 0.5, 0.25, 100)
    found = known(results_of(writer).processes[0].remote)
    assert (found.before.fraction, found.after.fraction, found.granules) == (0.5, 0.25, 100)
