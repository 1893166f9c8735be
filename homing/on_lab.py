"""`homing run --on lab`: the same run inside a guest with several nodes.

The guest runs the program with the library preloaded, and nothing else of homing: the records come back
through a shared folder, and the summary is made here.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from typing import Any

from homing import environment, launch
from homing.elf import judge
from homing.errors import UserError
from homing.installation import find_library
from homing.lab_flags import lab_options
from homing.run import Request, find_records, finish, keep_records, record_pattern


def tell(text: str) -> None:
    """What takes long, on stderr."""
    print(f"homing lab: {text}", file=sys.stderr, flush=True)


def run(request: Request, given: dict[str, Any]) -> int:
    """Run the command in the guest; returns its exit status (128 + n where signal n ended it)."""
    from homing.lab import guest

    path = launch.find_command(request.command[0])
    library = find_library()
    verdict = judge(path, library)
    folder = tempfile.mkdtemp(prefix="homing-")
    try:
        writable = [folder]
        if request.record:
            writable.append(os.path.dirname(os.path.abspath(request.record.replace("%%", "%"))))
        options = lab_options(given, None if request.summary == "none" else tell, writable)
        variables = dict(os.environ)
        notes = [f"ran in a guest with {options.nodes} nodes; times there mean nothing"]
        if request.bind:
            notes.append("threads: " + environment.bind_threads(variables))
        variables.update(request.options)
        pattern = record_pattern(request.record, folder)
        before = {path: os.stat(path).st_ino for path in find_records(pattern)}
        variables["HOMING_RECORD"] = pattern
        if verdict.preload:
            environment.preload(variables, library, folder)
        result = guest.run(request.command, options, env=variables)
        kept = [path for path in find_records(pattern) if os.stat(path).st_ino != before.get(path)]
        counts = None if result.counts is None else result.counts.to_dict()
        status = result.exit_status
        try:
            finish(request, kept, 0, status, result.guest_seconds, notes, verdict.reason, counts)
            keep_records(request.record, kept)
        except UserError as error:
            # The program has run: its status is the answer, whatever becomes of the summary.
            print(f"homing run: {error.message}", file=sys.stderr)
        return status
    finally:
        shutil.rmtree(folder, ignore_errors=True)
