"""`homing run --on lab`: the same run inside a guest with several nodes.

The guest runs the program with the library preloaded, and nothing else of homing: the records come back
through a shared folder, and the summary is made here.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from homing import environment, launch
from homing.elf import judge
from homing.installation import find_library
from homing.lab_flags import lab_options
from homing.progress import Line
from homing.run import temporary_folder
from homing.run_end import Ended, Request, finish, say_room
from homing.run_files import Records


def run(request: Request, given: dict[str, Any]) -> int:
    """Run the command in the guest; returns its exit status (128 + n where signal n ended it)."""
    from homing.lab import guest
    from homing.lab.errors import LabInterrupted

    path = launch.find_command(request.command[0])
    library = find_library()
    verdict = judge(path, library)
    with launch.put_off() as waiting, temporary_folder(request, needed=True) as own:
        # The guest writes to the current folder and to this one, wherever its records are kept. What lies
        # beside it (the launcher's lock and note) is not the guest's.
        folder = os.path.join(own, "guest")
        os.mkdir(folder)
        # The guest's program may be another user (setpriv); on the host nobody else gets here.
        os.chmod(folder, 0o1777)
        records = Records(request.record, folder, local=False)
        options = lab_options(given, None if request.summary == "none" else Line("homing lab"), [folder])
        variables = dict(os.environ)
        notes = [*request.notes(), f"ran in a guest with {options.nodes} nodes; times there mean nothing"]
        if request.bind:
            notes.append("threads: " + environment.bind_threads(variables))
        variables.update(request.options)
        variables["HOMING_RECORD"] = records.pattern
        say_room(request, records)
        if verdict.preload:
            environment.preload(variables, library, folder)
        try:
            if waiting.came:
                raise LabInterrupted(waiting.came[0], "interrupted before the guest booted")
            result = guest.run(request.command, options, env=variables)
        except LabInterrupted as error:
            print(f"homing run: {error.message}", file=sys.stderr)
            return error.status
        for problem in (result.lost, result.failed):
            if problem:
                print(f"homing run: {problem}", file=sys.stderr)
        notes += result.remarks
        if options.count is not None and result.counts is None:
            notes.append("nothing was counted: the guest did not end in order")
        counts = None if result.counts is None else result.counts.to_dict()
        ended = Ended(result.exit_status, 0, result.guest_seconds, notes, verdict.reason, counts, gone=True)
        finish(request, records, ended)
        return result.exit_status
