"""Nothing above a hundredth of a process's memory stays unwatched without a reason in the record, however the
program came by it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from homing.records import Record
from tests.programs.build import build
from tests.python.test_programs import LIBRARY, MECHANISMS, records, run

KINDS = (
    "mapped_pool",
    "static_pool",
    "break",
    "stacks",
    "thread_local",
    "advised",
    "shared",
    "memfd",
    "private_file",
    "remapped",
    "committed",
    "small_maps",
    "raw",
    "read_only",
    "nodes",
    "middle_blocks",
    "rows",
)


@dataclass(frozen=True)
class Mapping:
    """A mapping, and its memory that is no file's: anonymous, or shared with others."""

    begin: int
    end: int
    resident: int
    line: str


def mappings(smaps: Path) -> list[Mapping]:
    """Of a copy of /proc/self/smaps."""
    found = []
    for text in re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", smaps.read_text())[1:]:
        head, *lines = text.splitlines()
        begin, end = (int(word, 16) for word in head.split()[0].split("-"))
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith(" kB")}
        shared = "s" in head.split()[1]
        resident = 1024 * (sizes["Rss"] if shared else sizes["Anonymous"])
        found.append(Mapping(begin, end, resident, head))
    return found


def watched_bytes(record: Record, one: Mapping) -> int:
    """What of a mapping lies in areas."""
    spans = sorted((area.begin, area.begin + area.bytes) for area in record.areas)
    covered, at = 0, one.begin
    for begin, end in spans:
        begin, end = max(begin, at), min(end, one.end)
        if begin < end:
            covered += end - begin
            at = end
    return covered


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_watched_is_named(kind: str, tmp_path: Path) -> None:
    program = build("footprint", "gcc")
    extra = {**MECHANISMS["windows"], "OMP_STACKSIZE": "16M", "OMP_NUM_THREADS": "4"}
    plain, _ = run([program, kind], {"OMP_STACKSIZE": "16M", "OMP_NUM_THREADS": "4"}, tmp_path)
    alone = sum(one.resident for one in mappings(tmp_path / "smaps"))
    outcome, errors = run(
        [program, kind],
        {**extra, "LD_PRELOAD": str(LIBRARY), "HOMING_RECORD": str(tmp_path / "%p.homing")},
        tmp_path,
    )
    assert outcome == plain, errors[-2000:]
    record = records(tmp_path)[0]
    found = mappings(tmp_path / "smaps")
    total = sum(one.resident for one in found)
    own = max(0, total - alone)  # homing's
    left = {one: max(0, one.resident - watched_bytes(record, one)) for one in found}
    named = sum(one.bytes for one in record.unwatched)
    largest = sorted(left, key=lambda one: -left[one])[:4]
    said = [(one.what, one.bytes) for one in record.unwatched]
    assert sum(left.values()) - named - own <= alone / 100, (
        [(one.line, left[one]) for one in largest],
        said,
    )
    # Each large mapping has a reason of its own: what is said of one does not stand for another.
    for one in largest:
        if left[one] - own <= alone / 100:
            continue
        assert any(row.begin < one.end and one.begin < row.begin + row.bytes for row in record.unwatched), (
            one,
            said,
        )
