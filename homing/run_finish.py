"""The end of a run that the native launcher (src/launcher) began: it starts Python for this where a program
of the run was at work, or where a file is asked for. What it did itself, it tells in a descriptor as JSON."""

from __future__ import annotations

import os
import sys

from homing import bundle, late_site, launch, temporary
from homing.channel import Channel
from homing.light import loads, signal
from homing.run_end import Ended, Request, finish
from homing.run_files import Records
from homing.streams import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _state(descriptor: int) -> dict[str, Any]:
    with open(descriptor, "rb") as file:
        file.seek(0)
        state: dict[str, Any] = loads(file.read())
    return state


def main() -> None:
    """Finish the run whose state is in the descriptor sys.argv[1], and end as its program ended."""
    late_site.install()
    state = _state(int(sys.argv[1]))
    status = int(state["status"])
    os.set_inheritable(state["lock"], False)
    os.set_inheritable(state["channel"], False)
    with guarded():
        try:
            with launch.put_off():
                # The launcher held them back. The first one that waits is put off now.
                held = {*launch.HELD} - {*state["held"]}
                signal.pthread_sigmask(signal.SIG_UNBLOCK, held)
                _finish(state, status)
        except launch.Interrupted as error:
            # As homing.run says it.
            print(
                f"homing run: interrupted ({launch.signal_name(128 + error.signal_number)})", file=sys.stderr
            )
            status = error.signal_number
        finally:
            temporary.remove_folder(state["folder"], state["lock"])
        bundle.keep()
    launch.end_like(status)


def _finish(state: dict[str, Any], status: int) -> None:
    request = Request(
        command=state["command"],
        options=state["options"],
        summary=state["summary"],
        json=state["json"],
        record=state["record"],
    )
    channel = Channel(state["channel"], state["token"], state["pieces"])
    records = Records(request.record, state["folder"], ended=channel)
    ended = Ended(
        launch.exit_status(status), state["process"], state["seconds"], state["notes"], state["aside"]
    )
    finish(request, records, ended)
