"""Why pages are where they are: for each area with remote accesses, what kept its pages from being moved.

All of it is in the record: the guard's account, the kernel's refusals, what was inferred of the owners. The
last decision about an area counts (src/engine/iterative.cpp).
"""

from __future__ import annotations

import math

from homing.record_rows import ALL_AREAS, Area, Move, Placement, Refusal
from homing.records import Record
from homing.report.remote import Estimate, estimate
from homing.report.waiting import stays
from homing.report.words import duration, number, percents, refused_words, size
from homing.values import dataclass, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from homing.record_rows import Ownership

#: A smaller share of an area's pages, or of the references to it, is left by chance.
SMALL = 0.05
#: Fewer touches of a larger area than this leave much unknown of its owners.
ENOUGH_SAMPLES = 40
#: Where a page was touched so often on average, and remote shares of pages differ from all and nothing so
#: much (of the sums of their squares to their sums), several nodes use each of its pages.
_OFTEN, _BETWEEN = 2.0, 0.75
#: The same of pages that are known from a sample of them only, which scatters.
_SAMPLED = 0.2
#: Mechanisms whose moves come with a decision about an area and are told of it.
_DECIDES = ("iterative", "observe", "hybrid", "record-replay")
#: What the engine says of memory that the program itself bound, after the area's name.
BOUND = " was bound to nodes by the program itself: left alone"


@dataclass(frozen=True)
class Account:
    """What the guard reckoned, in seconds: what remote accesses to an area have cost since its last move, and
    what the move takes."""

    remote: float = 0.0
    move: float = 0.0
    permitted: bool = True

    def __add__(self, other: Account) -> Account:
        return Account(self.remote + other.remote, self.move + other.move, self.permitted and other.permitted)


@dataclass(frozen=True)
class Left:
    """Why an area's pages are where they are. pages: that are thought to be away from their owners; 0: it is
    not for single pages. reason: one of those in docs/json.md. low, high: bounds of the remote share, and the
    touches that they rest on, where the reason tells them.
    """

    reason: str
    pages: int = 0
    account: Account = Account()
    errors: Mapping[int, int] = field(default_factory=dict)
    low: float = 1.0
    high: float = 0.0
    touches: float = 0.0

    def __add__(self, other: Left) -> Left:
        """Two blocks, or two areas: the reason of more pages, with the sums of those that share it."""
        if self.reason != other.reason:
            return max(self, other, key=lambda one: one.pages)
        errors = dict(self.errors)
        for error, pages in other.errors.items():
            errors[error] = errors.get(error, 0) + pages
        return replace(
            self,
            pages=self.pages + other.pages,
            account=self.account + other.account,
            errors=errors,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            touches=self.touches + other.touches,
        )


def account_of(record: Record, area: int) -> Account | None:
    """The guard's account of an area at the last decision about it; None where nothing was to be moved."""
    owners, guard = record.ownerships.get(area), record.guards.get(area)
    if owners is None or guard is None or guard.iteration != owners.iteration:
        return None
    return Account(guard.remote_ns * 1e-9, guard.move_ns * 1e-9, guard.permitted)


def why_left(
    record: Record,
    area: Area,
    found: Placement | None,
    last: Placement | None,
    moves: Sequence[Move],
    refusals: Sequence[Refusal],
) -> Left | None:
    """Why an area's pages are where they are; None where nothing is remote, or it is not known.

    found, last: its first and its last placement. moves, refusals: of the area.
    """
    pages = last.present if last else area.bytes // record.page_bytes
    owners = record.ownerships.get(area.id)
    remote = _remote(record, area)
    if owners is not None and found is not None and last is not None and not (found.sampled or last.sampled):
        others = _moved_otherwise(found, last, moves)
        if others >= max(1.0, SMALL * pages) and _moved_since(record, owners.iteration):
            return Left("others") if remote is not None and remote.after.fraction >= SMALL else None
    if owners is not None:
        now = [move for move in moves if move.iteration == owners.iteration]
        away = owners.wanted - sum(move.moved for move in now)
        if away >= max(1.0, SMALL * pages):
            return _not_moved(record, area, away, bool(now), refusals)
    if remote is None or remote.after.fraction < SMALL:
        return None
    if owners is not None and owners.cold:
        return Left("cold")
    moved = any(move.moved for move in moves)
    if refusals and not moved:
        errors = refused_pages(refusals)
        return Left("refused", sum(errors.values()), errors=errors)
    if owners is None:
        return _by_estimate(record, area, remote, "unknown") if remote.enough else None
    if _placed_by_others(record, owners, found, last, moves):
        return Left("placed")
    if owners.samples < min(ENOUGH_SAMPLES, pages / 2):
        return Left("samples")
    if owners.kind == "none":
        return Left("no pattern")
    if owners.kind == "shared":
        return Left("shared")
    if moved and remote.changed and remote.after.fraction < remote.before.fraction:
        return Left("home")
    if remote.after.low < SMALL:
        return Left("few")
    return _by_estimate(record, area, remote, "unchanged" if moved else "believed")


def _placed_by_others(
    record: Record,
    owners: Ownership,
    found: Placement | None,
    last: Placement | None,
    moves: Sequence[Move],
) -> bool:
    """Do pages lie elsewhere than where homing found them and has moved them to?"""
    if found is None or last is None or len(found.pages) != len(last.pages):
        return False
    if record.facts.get("mechanism") not in _DECIDES:
        return False
    many = max(1.0, (_SAMPLED if found.sampled or last.sampled else SMALL) * last.present)
    # The program's own calls are told as moves, too. Those of a mechanism come with a decision; but for
    # phases, whose pages go to and fro. Rows behind the last placement are sums of earlier moves.
    later = sum(move.moved for move in moves if move.iteration > owners.iteration and move.time < last.time)
    if later >= many and not record.phases:
        return True
    return _moved_otherwise(found, last, moves) >= many


def _moved_otherwise(found: Placement, last: Placement, moves: Iterable[Move]) -> int:
    """Pages of an area that lie elsewhere than they were found, beside those that it gave back and those that
    its own batches (moves) can have moved; below 0: these have moved some more than once."""
    gone = sum(max(0, then - now) for then, now in zip(found.pages, last.pages, strict=True))
    given_back = max(0, found.present - last.present)
    return gone - given_back - sum(move.moved for move in moves)


def _moved_since(record: Record, iteration: int) -> bool:
    """Did batches that are of no one area move pages in this iteration or after it?"""
    batches = (move for move in record.moves if move.area == ALL_AREAS)
    return any(move.moved and move.iteration >= iteration for move in batches)


def _remote(record: Record, area: Area) -> Estimate | None:
    """The estimate of the area's remote share; None where nothing was sampled."""
    sample = record.samples.get(area.id)
    return estimate([sample] if sample is not None else [])


def _by_estimate(record: Record, area: Area, remote: Estimate, reason: str) -> Left:
    """What the touches tell: that several nodes use each page, else the reason."""
    sample = record.samples[area.id]
    several = (
        sample.touches >= _OFTEN * sample.granules and sample.after.share2 < _BETWEEN * sample.after.share1
    )
    shares = remote.after
    return Left("several" if several else reason, low=shares.low, high=shares.high, touches=remote.touches)


def _not_moved(record: Record, area: Area, away: int, tried: bool, refusals: Sequence[Refusal]) -> Left:
    """Pages were to be moved, and were not."""
    owners = record.ownerships[area.id]
    account = account_of(record, area.id) or Account()
    if stays(record):
        return Left("observe", away, account)
    if not account.permitted:
        return _not_paid(record, area, owners, away, account)
    if tried:
        # What is to be tried once more, and never is, is recorded at the end.
        errors = refused_pages(one for one in refusals if one.iteration >= owners.iteration)
        return Left("refused" if errors else "late", away, account, errors)
    if any(message.text == area.name + BOUND for message in record.messages):
        return Left("bound", away)
    return Left("late", away, account)


def _not_paid(record: Record, area: Area, owners: Ownership, away: int, account: Account) -> Left:
    """The guard did not permit a move. An account of nothing says only that moving saves nothing: what all
    nodes use is remote to most of them wherever it lies."""
    if account.remote > 0:
        return Left("cost", away, account)
    if _costs_nothing(record, area, owners):
        return Left("free", away, account)
    if owners.kind == "shared":
        return Left("shared")
    remote = _remote(record, area)
    if remote is not None and (found := _by_estimate(record, area, remote, "")).reason:
        return found
    return Left("cost", away, account)


def _costs_nothing(record: Record, area: Area, owners: Ownership) -> bool:
    """Do remote accesses to an area cost nothing, whose account is empty?"""
    if record.facts.get("source") == "simulator":
        counted = [one for one in record.counted if one.scope == "area" and one.id == area.id]
        return bool(counted) and not any(one.misses.sum() - one.misses.trace() for one in counted)
    # The account is of what the touches cost (model/costs.hpp: TouchModel); of what all nodes use it is empty
    # also where pages are spread as well as can be.
    return owners.kind != "shared" or _no_dearer(record) or area.bytes <= _cache_bytes(record)


def refused_pages(refusals: Iterable[Refusal]) -> dict[int, int]:
    """Pages that the kernel refused, by errno."""
    errors: dict[int, int] = {}
    for refusal in refusals:
        errors[refusal.error] = errors.get(refusal.error, 0) + refusal.pages
    return errors


def why(left: Left, record: Record) -> str:
    """The reason in a few words, with its figures."""
    account = left.account
    move = duration(account.move)
    cost = f"remote accesses have cost {duration(account.remote)} so far, the move takes {move}"
    if account.remote <= 0:
        cost = f"no cost was found that moving them would save, the move takes {move}"
    shares = f"{percents([left.low, left.high])} remote, estimated from {number(round(left.touches))} touches"
    return {
        "observe": f"{briefly(left, record)} ({cost})",
        "cost": cost,
        "refused": f"refused: {refused_words(left.errors)}",
        "several": f"{briefly(left, record)} ({shares})",
        "unknown": f"{briefly(left, record)} ({shares})",
        "believed": f"{briefly(left, record)}, yet {shares}",
        "unchanged": f"{briefly(left, record)} ({shares})",
    }.get(left.reason) or briefly(left, record)


def briefly(left: Left, record: Record) -> str:
    """The reason without the figures of single areas."""
    return {
        "observe": stays(record),
        "free": _free(record),
        "cost": "remote accesses have not cost as much yet as the moves take",
        "samples": "too few samples to know who owns them",
        "bound": "the program itself bound them to nodes",
        "cold": "the program has named other memory as hot: pages move only there",
        "refused": "the kernel refused to move them",
        "late": "the run ended before they were moved",
        "no pattern": "no pattern of owners, so only pages that were seen are moved",
        "shared": "seems to be used by all nodes alike, so remote to others wherever it lies",
        "few": "the samples show no more of it away from its owner than chance and halos explain",
        "several": "several nodes use each page",
        "unknown": "who uses which page is not known",
        "believed": "pages are with the owners that are believed",
        "home": _shared_at_home(record),
        "placed": "the program itself, or the kernel, has put pages elsewhere than homing left them",
        "unchanged": "pages were moved, and no less is remote than before",
        "others": "moved otherwise than at iterations (next touch, phases, calls of the program, the kernel)",
    }[left.reason]


def _shared_at_home(record: Record) -> str:
    """Why remote accesses remain to pages that were moved to where they are used."""
    text = "at home with the node that uses it most; others use it, too"
    if any(not thread.bound for thread in record.threads):
        text += ", and threads that are not bound change nodes (--bind)"
    return text


def _free(record: Record) -> str:
    """Why remote accesses cost nothing (model/costs.hpp: TouchModel)."""
    if record.facts.get("source") == "simulator":
        return "no cache miss to another node was counted"
    if _no_dearer(record):
        return "a remote access costs no more than a local one here"
    cache = _cache_bytes(record)
    stated = f"{size(cache)} cache" if cache else "caches"
    return f"remote accesses cost nothing measurable (what each node uses fits into its {stated})"


def _no_dearer(record: Record) -> bool:
    """Does a remote access cost no more than a local one?"""
    costs = stated_costs(record)
    return bool(costs) and costs.get("remote_ns", math.inf) <= costs.get("local_ns", 0.0)


def _cache_bytes(record: Record) -> float:
    """The cache that the guard reckoned with; 0: not known."""
    cache = record.facts.get("cache_bytes", "")
    return float(cache) if cache.isdigit() else 0.0


def stated_costs(record: Record) -> dict[str, float]:
    """The costs that the guard reckoned with, named as in a costs file; empty where the record has none."""
    costs = {}
    for part in record.facts.get("cost_values", "").split(","):
        name, _, value = part.partition("=")
        try:
            costs[name.strip()] = float(value)
        except ValueError:
            continue
    return {name: value for name, value in costs.items() if math.isfinite(value)}
