"""The setting that would let homing observe a program that it could not, as far as the record tells."""

from __future__ import annotations

from homing.late import pattern, re
from homing.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: How the library's reasons begin where nothing observes, from the start or from some moment on.
_NO_SOURCE = "no source of references works here"
_WINDOWS_END = "windows end here"
_SETTINGS = (
    (pattern(r"kernel\.numa_balancing is \d"), "sudo sysctl kernel.numa_balancing=1"),
    (pattern(r"perf_event_paranoid is ([3-9])"), "sudo sysctl kernel.perf_event_paranoid=2"),
)


def settings(records: Iterable[Record]) -> str:
    """The settings that would have made hint faults possible where windows were not; empty where nothing is
    known to be in their way, or homing could observe."""
    found: dict[str, str] = {}
    for record in records:
        texts = [message.text for message in record.messages]
        if not any(text.startswith((_NO_SOURCE, _WINDOWS_END)) for text in texts):
            continue
        for part in re.split(r"; |[()]", " ; ".join([record.facts.get("source_reasons", ""), *texts])):
            name, _, reason = part.strip().partition(": ")
            for known, command in _SETTINGS:
                if name in ("pmu", "hint-faults") and known.search(reason):
                    found[command] = f"{reason}: {command}"
    if not found:
        return ""
    return (
        "hint-faults observe where windows may not be used (MPI, RDMA, GPU libraries), if the kernel lets "
        "them: "
        f"{'; '.join(found.values())} (homing doctor shows what else they need)"
    )
