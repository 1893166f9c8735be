"""A record of many areas and many runs of pages, for what has to stay quick with it."""

from __future__ import annotations

import random
from itertools import accumulate

from tests.python.record_writer import RecordWriter, four_node_run

#: Runs in one row `page_map`.
WIDTH = 11


def page_map(writer: RecordWriter, area: int, when: int, runs: list[tuple[int, int]], step: int = 1) -> None:
    """Append a page map: runs of (first granule, node position)."""
    for at in range(0, len(runs), WIDTH):
        part = runs[at : at + WIDTH]
        writer.row(
            "page_map",
            area=area,
            when=when,
            at=at,
            count=len(part),
            step=step,
            first=[first for first, _ in part],
            node=[node for _, node in part],
        )


def large_run(areas: int, runs: int, iterations: int = 500) -> RecordWriter:
    """A run of so many areas, with so many runs of pages in all: a quarter of them in one area."""
    random.seed(7)
    writer = four_node_run()
    each = max(1, runs * 3 // 4 // (2 * areas))
    for number in range(areas):
        area, count = 1000 + number, each if number else runs // 8
        borders = list(accumulate((random.randrange(1, 16) for _ in range(count)), initial=0))
        granules = borders.pop()
        writer.row(
            "area",
            id=area,
            begin=0x7F0000000000 + (number << 32),
            bytes=4096 * granules,
            kind=1,
            name=writer.text(f"field_{number:05}"),
            object=writer.text("/home/user/cg"),
            granule=4096,
            time=0.02,
        )
        writer.row("placement", area=area, when=1, pages=[granules], time=0.04)
        writer.row("placement", area=area, when=3, pages=[granules // 4] * 4, time=0.6)
        page_map(writer, area, 1, [(at, random.randrange(4)) for at in borders])
        ends = [(at, min(3, at * 4 // granules + (random.random() < 0.05))) for at in borders]
        page_map(writer, area, 3, ends)
        writer.sample(area, before=0.75, after=0.02, granules=100, traffic=1.0 / (1 + number), time=0.6)
        writer.row("ownership", area=area, iteration=3, kind=1, confidence=0.99, samples=300, wanted=10)
        words = writer.text("BLOCK over 8 threads")
        writer.row("distribution", area=area, iteration=3, family=1, words=words, known=99)
    for number in range(6, 6 + iterations):
        writer.row(
            "iteration",
            number=number,
            time=number * 0.1,
            seconds=0.1 + 0.02 * random.random(),
            regions=15,
            state=2,
            basis=1,
        )
    return writer
