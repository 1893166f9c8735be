"""What the guard's waiting cost: remote accesses between the first decision that would have moved pages of an
area and the one that did, or the last one where none has."""

from __future__ import annotations

from homing.records import Record
from homing.values import dataclass


@dataclass(frozen=True)
class Waiting:
    """seconds: estimated, of elapsed time; areas: that had to wait; still: areas that wait at the end."""

    seconds: float
    areas: int
    still: int


def waiting(record: Record) -> Waiting | None:
    """None where no area had to wait, or nothing was to be moved at all."""
    if record.facts.get("mechanism") == "observe":
        return None
    seconds = 0.0
    accounts: dict[int, float] = {}  # of areas that wait, at the decision before
    waited: set[int] = set()
    for one in record.guard_decisions:
        if one.area in accounts:
            # What was moved in part is taken off the account, and time passes without decisions at rest.
            seconds += max(0.0, one.remote_ns - accounts[one.area])
        if one.permitted:
            accounts.pop(one.area, None)
        else:
            accounts[one.area] = one.remote_ns
            waited.add(one.area)
    if not waited:
        return None
    return Waiting(seconds * 1e-9, len(waited), len(accounts))
