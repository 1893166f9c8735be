"""Names of memory that the user left out (`--areas`, `--area-minimum`): the record has no area of it, only
the library's own name, which tells the instruction that allocated it."""

from __future__ import annotations

import os

from homing.late import pattern
from homing.record_rows import Area
from homing.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from homing.report.names import Namer

_HEAP = pattern(r"heap@([^:+]+)(?::.*)?\+0x([0-9a-f]{1,15})$")


def left_out_names(record: Record, namer: Namer) -> dict[str, str]:
    """For people, by what the record says of it (`Unwatched.what`)."""
    paths = {os.path.basename(path): path for path in (*record.objects, record.program)}
    blocks: dict[str, tuple[str, Area]] = {}
    for what in dict.fromkeys(one.what for one in record.unwatched):
        found = _HEAP.search(what) if "heap@" in what else None
        if found is not None and found[1] in paths:
            origin = ((paths[found[1]], int(found[2], 16)),)
            number = len(blocks)
            area = Area(number, 0, 0, "heap", found[0], "", record.page_bytes, 0.0, origin, order=number)
            blocks[what] = (what[: found.start()], area)
    named = namer.names([area for _, area in blocks.values()]) if blocks else {}
    return {what: said + named[area.id][1].shown for what, (said, area) in blocks.items()}
