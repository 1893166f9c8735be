"""usage: recording.py NODES RECORD... > FILE: the touches of records (homing run --record-samples) as a
recording for benchmarks/replay.cpp, which tests/recordings/README.md describes.

The team's threads are dealt out to so many nodes as OMP_PROC_BIND=close does, whatever machine the records
were made on: what a thread touches does not depend on it. Several records are of runs of one program with
other seeds (--seed): areas that are not the same in all of them are left out, with their touches.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from homing.records import Record, read_record


def _areas(record: Record) -> dict[int, tuple[int, str]]:
    """Granules and name of each area that was touched, by id."""
    last = {}
    for row in record.table("sample"):
        area = int(row["area"])
        last[area] = max(last.get(area, 0), int(row["granule"]))
    return {
        area.id: (max(last[area.id] + 1, -(-area.bytes // area.granule)), area.name or "heap block")
        for area in record.areas
        if area.id in last
    }


def lines(paths: Sequence[str], nodes: int) -> list[str]:
    """The lines of the recording. Threads are numbered by the kernel's numbers: a team's threads are made in
    the order of their OpenMP numbers."""
    records = [read_record(path) for path in paths]
    areas = _areas(records[0])
    for record in records[1:]:
        other = _areas(record)
        areas = {id: one for id, one in areas.items() if other.get(id, one)[1] == one[1]}
        for id, (granules, name) in areas.items():
            areas[id] = (max(granules, other.get(id, (0, ""))[0]), name)
    threads = max(len({int(row["thread"]) for row in record.table("sample")}) for record in records)
    text = [
        "# touches of a real run, recorded by homing",
        "team " + " ".join(str(index * nodes // threads) for index in range(threads)),
    ]
    text += [f"area {id} {granules} {name}" for id, (granules, name) in sorted(areas.items())]
    for row in records[0].table("homes"):
        if int(row["when"]) == 1 and int(row["area"]) in areas:
            text.append(f"home {row['area']} {row['first']} {row['end']} {row['node']}")
    for record in records:
        samples = record.table("sample")
        granule = {area.id: area.granule for area in record.areas}
        number = {one: i for i, one in enumerate(sorted({int(row["thread"]) for row in samples}))}
        text += [
            f"touch {row['area']} {row['granule']} {number[int(row['thread'])]} {row['write']} "
            f"{row['iteration']} {row['region']} {row['place']} "
            f"{int(row['byte']) / granule[int(row['area'])]:.6g}"
            for row in samples
            if int(row["area"]) in areas
        ]
    return text


if __name__ == "__main__":
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    print("\n".join(lines(sys.argv[2:], int(sys.argv[1]))))
