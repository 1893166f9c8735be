"""Where the code and the arrays that a record tells of come from, to be written into it after the run
(homing/record_additions.py): a program that is rebuilt, moved or deleted later has its names all the same."""

from __future__ import annotations

from homing.record_additions import Found

#: Seconds for debug information that the summary had no time for.
BUDGET = 30.0


def look_up(path: str, budget: float = BUDGET) -> Found:
    """Everything that a record needs the sources of. RecordError where it cannot be read."""
    from homing.records import read_record
    from homing.report.names import Namer
    from homing.report.sources import Sources

    record = read_record(path)
    namer = Namer(Sources(budget))
    namer.begin(record)
    namer.names(record.areas)
    for one in record.counted:
        if one.offset:
            namer.place(one.object, one.offset)
            namer.place(one.object, one.offset + 1)
    return namer.sources.found
