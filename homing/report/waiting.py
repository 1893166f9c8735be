"""What the guard's waiting cost: remote accesses between the first decision that would have moved pages of an
area and the one that did, or the last one where none has."""

from __future__ import annotations

from homing.records import Record
from homing.values import dataclass

#: Mechanisms that move no page to where iterations want it, and what is said of that.
_STAYS = {
    "observe": "--mechanism observe moves nothing",
    "record-replay": "--mechanism record-replay moves pages for phases only",
}


#: With calls of upmlib_record, and none that ends an iteration (docs/phases.md).
_PHASES_ONLY = "pages move for the program's phases only: it marks no iteration (homing_iteration)"


def stays(record: Record) -> str:
    """Why pages stay where they are, whatever iterations want; "": they do not."""
    if said := _STAYS.get(record.facts.get("mechanism", ""), ""):
        return said
    own_phases = any(phase.region is None for phase in record.phases)
    marked = any(iteration.basis == "call" for iteration in record.iterations)
    return _PHASES_ONLY if own_phases and not marked else ""


@dataclass(frozen=True)
class Waiting:
    """seconds: estimated, of elapsed time; areas: that had to wait; still: areas that wait at the end."""

    seconds: float
    areas: int
    still: int


def waiting(record: Record) -> Waiting | None:
    """None where no area had to wait, or nothing was to be moved at all."""
    if stays(record):
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
