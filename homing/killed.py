"""Runs whose launcher was killed (SIGKILL, a timeout of the script that started it): the next launcher of
this user says what became of them, and removes what they left."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from homing import temporary
from homing.record_format import RecordError, printable

#: Of the folders of runs.
PREFIX = "homing-run-"
_MOST_COMMAND = 60


def note(folder: temporary.Folder, command: Sequence[str], pattern: str, quiet: bool) -> None:
    """Leave in the folder what the next launcher needs to know. pattern: of the records that the user named,
    empty: they lie in the folder; quiet: nobody asked for a summary."""
    known = {
        "process": os.getpid(),
        "command": [os.fsencode(word).decode("utf-8", "replace") for word in command],
        "start": time.time(),
        "records": os.fsencode(pattern).decode("utf-8", "surrogateescape"),
        "quiet": quiet,
    }
    folder.note(json.dumps(known).encode())


def clean() -> None:
    """Remove what killed launchers left whose programs have ended, and say in a line what became of them."""
    for path, text in temporary.abandoned(PREFIX):
        try:
            known = json.loads(text)
            variable = os.fsencode(f"HOMING_RECORD={known['records']}\0") if known["records"] else b""
        except (ValueError, KeyError, TypeError):  # it was killed before it could leave a note
            known, variable = {}, b""
        # The program may outlive its launcher, and still write its record.
        if temporary.is_used(os.fsencode(path.name), variable):
            continue
        said = ""
        with contextlib.suppress(KeyError, TypeError, ValueError, OSError):
            said = _said(path, known)
        shutil.rmtree(path, ignore_errors=True)
        if said:
            print(f"homing run: {said}", file=sys.stderr)


def _said(path: Path, known: dict[str, Any]) -> str:
    """What became of a run; empty: there is nothing to tell, or nobody asked."""
    if known.get("quiet", True):
        return ""
    command = shlex.join(known["command"])
    if len(command) > _MOST_COMMAND:
        command = command[: _MOST_COMMAND - 3] + "..."
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(known["start"]))
    who = f"process {int(known['process'])}, {when}: {printable(command)}"
    begin = f"the launcher of an earlier run was killed ({who})"
    if known["records"]:
        from homing.run_files import find_records

        mine = [one for one in find_records(known["records"]) if os.stat(one).st_mtime >= known["start"] - 1]
        names = " ".join(shlex.quote(printable(one)) for one in mine)
        return f"{begin}; its program's record stays: homing report {names}" if mine else ""
    from homing.records import read_record

    records = []
    for file in sorted(path.glob("*.homing")):
        try:
            records.append(read_record(str(file)))
        except RecordError:
            continue
    working = [record for record in records if not record.stepped_aside]
    if not working:
        return ""
    moved = sum(move.moved for record in working for move in record.moves)
    iterations = sum(_iterations(record) for record in working)
    who = os.path.basename(working[0].program) if len(working) == 1 else f"{len(working)} processes"
    ended = "" if all(record.end for record in working) else ", and did not end in order"
    return f"{begin}; {who} moved {moved:,} pages in {iterations:,} iterations{ended}"


def _iterations(record: Any) -> int:
    if record.end is not None:
        return int(record.end.iterations)
    return max((iteration.number + 1 for iteration in record.iterations), default=0)
